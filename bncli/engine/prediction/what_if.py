"""The fewest changed values that change the decision (counterfactuals: Wachter, Mittelstadt & Russell 2018).

All sets of one attribute with all their values are tried, then all of two, and so on up to a limit: the search is exact
within it. Of the changes of the same number that lead to another label, that is told after which this label is the most
probable. The label of a row is the most probable one, or that which a rule decides for.

Conventions: an attribute is changed to another of its values, in codes: a number to another interval. A missing value
may become any; nothing becomes missing. The change that comes first in the schema's order wins a tie. Rows that flip
with fewer changes are not looked at again, so a change that leaves a value as it is flips nothing. To abstain is no
label that a change leads to; a row abstained from flips to any. Cost: a scoring of the rows left for each set of
changes.

What to ask next: the missing attribute whose answer is expected to tell most of the class.

Of a row that shows e and lacks attribute j, the answer is worth

    I(Y; X_j | e) = sum over v of P(v | e) [ H(Y | e) - H(Y | e, X_j = v) ]

nats: the expected fall of the entropy of the class (value of information, Howard 1966; Heckerman, Horvitz & Nathwani
1992). Exact: what else is missing is marginalized.

Conventions: the lower index wins a tie. Where no answer is worth more than 1e-12 nats nothing is named. A value that
training never had is not missing: asking again would tell nothing. Cost: a look-up of the row for each value of each
missing attribute; rows that lack what others depend on go through inference.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.schema import Attribute, NumericAttribute, Schema, source_column
from bncli.engine.kernels.arrays import Array, Codes, Index
from bncli.engine.model import Model
from bncli.engine.prediction.contributions import value_names
from bncli.engine.prediction.joint_model import JointModel
from bncli.errors import ModelError, UsageError

MOST_CHANGES = 50_000
"""Sets of changes that are tried for a row."""
_LEAST = float(np.finfo(np.float64).min)
"""In place of ln 0: costs may decide for a label that is impossible."""
Change = tuple[tuple[int, int], ...]
"""(position of the attribute, its new code), ascending."""


def _most_probable(log_p: Array) -> Index:
    found: Index = log_p.argmax(axis=0)
    return found


class Flips:
    """What may change: positions in `used`, at most `most` at a time; score(codes) is log P(y | x_t), (K, N).

    decide(log P): the labels (N,), below 0 for none; the most probable one where nothing is said.
    """

    def __init__(
        self,
        schema: Schema,
        used: Sequence[int],
        allowed: Sequence[int],
        most: int,
        score: Callable[..., Array],
        decide: Callable[[Array], Index] = _most_probable,
    ) -> None:
        attributes = [schema.attributes[i] for i in used]
        self._sizes = {p: attributes[p].n_values for p in sorted(allowed)}
        self._words = {p: _words(attributes[p]) for p in self._sizes}
        self._most, self._score, self._decide = most, score, decide
        # Sets of 1 to `most` attributes with a value each: the sums of the products of so many sizes.
        sizes = list(self._sizes.values())
        counts = [1] + [0] * most
        for size in sizes:
            for k in range(most, 0, -1):
                counts[k] += counts[k - 1] * size
        n_changes = sum(counts[1:])
        if n_changes > MOST_CHANGES:
            what = f"there are {n_changes:,} ways to change up to {most} of {len(self._sizes)} columns"
            hint = f"at most {MOST_CHANGES:,} are tried: name fewer by --flip-columns, or say a lower --flip-changes"
            raise UsageError(what, hint=hint)

    def find(self, codes: Sequence[Codes], log_p: Array) -> list[str]:
        """Return `A=v; B=w` for every row, the empty text where no so few changes lead to another label."""
        changes = self.changes(codes, log_p)
        return ["; ".join(self._words[p][code] for p, code in change) for change in changes]

    def changes(self, codes: Sequence[Codes], log_p: Array) -> list[Change]:
        """Return the changes for every row, () for none; log_p (K, N) is of the rows as they are."""
        labels = self._decide(log_p)
        found: list[Change] = [()] * len(labels)
        left: Index = np.arange(len(labels))
        for size in range(1, self._most + 1):
            if not len(left):
                break
            chosen, best = self._best(size, [column[left] for column in codes], labels[left])
            for row, change in zip(left.tolist(), chosen, strict=True):
                found[row] = change
            left = left[np.isneginf(best)]
        return found

    def _best(self, size: int, codes: list[Codes], labels: Index) -> tuple[list[Change], Array]:
        """Of changes of so many values: the best of every row, and ln P of the label that it leads to."""
        best = np.full(len(labels), -np.inf)
        chosen: list[Change] = [()] * len(labels)
        for change in self._all(size):
            given = list(codes)
            for p, code in change:
                given[p] = np.full_like(codes[p], code)
            log_p = self._score(given)
            told = self._decide(log_p)
            own = np.maximum(log_p[told, np.arange(len(told))], _LEAST)
            reached = np.where((told == labels) | (told < 0), -np.inf, own)
            for row in np.flatnonzero(reached > best).tolist():
                chosen[row] = change
            best = np.maximum(best, reached)
        return chosen, best

    def _all(self, size: int) -> Iterator[Change]:
        for places in itertools.combinations(self._sizes, size):
            for values in itertools.product(*(range(self._sizes[p]) for p in places)):
                yield tuple(zip(places, values, strict=True))


def _words(attribute: Attribute) -> list[str]:
    """Return what each value is called: `colour=red`, `age<=27.5`, `age=27.5..41`."""
    names = value_names(attribute)[: attribute.n_values]
    return [f"{attribute.name}{'' if _is_bound(attribute, name) else '='}{name}" for name in names]


def _is_bound(attribute: Attribute, name: str) -> bool:
    return isinstance(attribute, NumericAttribute) and name[0] in "<>"


LEAST_GAIN = 1e-12
"""Nats."""


class NextBest:
    """A model made ready; ModelError where it cannot marginalize. `used`: the schema's attributes of the codes.

    shift (K,): that of another prior, added to ln P(y, x); None for the model's own.
    """

    def __init__(self, model: Model, used: Sequence[int], shift: Array | None = None) -> None:
        schema = model.schema
        attributes = [schema.attributes[i] for i in used]
        levels = [attribute.name for attribute in attributes if attribute.missing]
        if levels:
            what = f"a missing {levels[0]!r} is a value of its own to the model, which does not ask for what is missing"
            raise ModelError(what, hint="learn it with --missing-policy marginalize")
        self._joint = JointModel(model, used)
        self._shift = 0.0 if shift is None else shift[:, np.newaxis]
        self._cardinalities = [attribute.cardinality for attribute in attributes]
        self.names = tuple(source_column(attribute) for attribute in attributes)

    def gains(self, codes: Sequence[Codes], missing: Sequence[NDArray[np.bool_]]) -> Array:
        """I(Y; X_j | e_t) in nats, shape (used, N), 0 where attribute j is not missing in row t; missing[j] (N,)."""
        gains = np.zeros((len(codes), len(codes[0]) if codes else 0))
        for j, lacks in enumerate(missing):
            rows = np.flatnonzero(lacks)
            if len(rows):
                gains[j, rows] = self._gain(j, [column[rows] for column in codes])
        return gains

    def ask(self, codes: Sequence[Codes], missing: Sequence[NDArray[np.bool_]]) -> list[str]:
        """Return the column to ask for of every row, the empty text where nothing is missing or would tell anything."""
        gains = self.gains(codes, missing)
        if not len(gains):
            return []
        best: Index = gains.argmax(axis=0)
        told = gains.max(axis=0) > LEAST_GAIN
        return [self.names[j] if tells else "" for j, tells in zip(best.tolist(), told.tolist(), strict=True)]

    def _gain(self, j: int, codes: list[Codes]) -> Array:
        """Of attribute j for rows that lack it."""
        given: list[Codes] = list(codes)
        joints = []
        for value in range(self._cardinalities[j]):
            given[j] = np.full_like(codes[j], value)
            joints.append(self._joint.log_joint(given) + self._shift)
        # (values, K, N) that sum to 1 in every row.
        log_p = np.stack(joints)
        p = np.exp(log_p - log_p.max(axis=(0, 1)))
        p = np.asarray(p / p.sum(axis=(0, 1)))
        of_class, of_value = p.sum(axis=0, keepdims=True), p.sum(axis=1, keepdims=True)
        ratio = np.divide(p, of_class * of_value, out=np.ones_like(p), where=p > 0)
        return np.asarray(np.maximum((p * np.log(ratio)).sum(axis=(0, 1)), 0.0))
