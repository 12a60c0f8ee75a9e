"""The fewest changed values that change the decision (counterfactuals: Wachter, Mittelstadt & Russell 2018).

All sets of one attribute with all their values are tried, then all of two, and so on up to a limit: the search is exact
within it. Of the changes of the same number that lead to another label, that is told after which this label is the most
probable. The label of a row is the most probable one, or that which a rule decides for.

Conventions: an attribute is changed to another of its values, in codes: a number to another interval. A missing value
may become any; nothing becomes missing. The change that comes first in the schema's order wins a tie. Rows that flip
with fewer changes are not looked at again, so a change that leaves a value as it is flips nothing. To abstain is no
label that a change leads to; a row abstained from flips to any. Cost: a scoring of the rows left for each set of
changes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from bncli.engine.data.schema import Attribute, NumericAttribute, Schema
from bncli.engine.explanation.wording import value_names
from bncli.engine.kernels.arrays import Array, Codes, Index
from bncli.errors import UsageError

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
        n_changes = _n_changes(list(self._sizes.values()), most)
        if n_changes > MOST_CHANGES:
            what = f"there are {n_changes:,} ways to change up to {most} of {len(self._sizes)} columns"
            hint = f"at most {MOST_CHANGES:,} are tried: name fewer by --flip-columns, or say a lower --flip-changes"
            raise UsageError(what, hint=hint)

    def find(self, codes: Sequence[Codes], log_p: Array) -> list[str]:
        """`A=v; B=w` for every row, the empty text where no so few changes lead to another label."""
        changes = self.changes(codes, log_p)
        return ["; ".join(self._words[p][code] for p, code in change) for change in changes]

    def changes(self, codes: Sequence[Codes], log_p: Array) -> list[Change]:
        """The changes for every row, () for none; log_p (K, N) is of the rows as they are."""
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


def _n_changes(sizes: Sequence[int], most: int) -> int:
    """Sets of 1 to `most` attributes with a value each: the sums of the products of so many sizes."""
    counts = [1] + [0] * most
    for size in sizes:
        for k in range(most, 0, -1):
            counts[k] += counts[k - 1] * size
    return sum(counts[1:])


def _words(attribute: Attribute) -> list[str]:
    """What each value is called: `colour=red`, `age<=27.5`, `age=27.5..41`."""
    names = value_names(attribute)[: attribute.n_values]
    return [f"{attribute.name}{'' if _is_bound(attribute, name) else '='}{name}" for name in names]


def _is_bound(attribute: Attribute, name: str) -> bool:
    return isinstance(attribute, NumericAttribute) and name[0] in "<>"
