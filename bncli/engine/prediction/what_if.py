"""What-if questions: changes of values that change a decision, missing values worth asking for, and sensitivity.

Counterfactuals (Wachter, Mittelstadt & Russell 2018). All changes of one attribute are tried, then all changes of two,
and so on up to a limit, within which the search is exact. If several smallest sets of changes lead to another label,
the set whose new label is most probable is returned. The label of a row is the most probable one, or the one that a
decision rule chooses.

- Changes are changes of codes: a numeric value moves to another interval. A missing value may become any value; no
  value becomes missing. Ties go to the change that comes first in the order of the schema.
- Every row is tried with all values, including its own. This does no harm: such a change is really a smaller set of
  changes, and a row for which a smaller set suffices is not tried again.
- Abstention is not a label that a change may lead to; a row without a decision may change to any label.
- Cost: the remaining rows are scored once per set of changes.

Value of information (Howard 1966; Heckerman, Horvitz & Nathwani 1992). For a row with the observed values e that lacks
attribute j, the value of X_j has the conditional mutual information with the class

    I(Y; X_j | e) = sum over v of P(v | e) [ H(Y | e) - H(Y | e, X_j = v) ]

in nats, the expected decrease of the entropy of the class. It is exact: other missing values are marginalized.

- If attributes are tied, the first one is returned; if none has more than LEAST_GAIN nats, none is returned. A value
  that never occurred in training is not missing: asking again would not help.
- Cost: the row is looked up once per value of each missing attribute; rows that lack a parent of another attribute go
  through inference.

Sensitivity of predictions to each attribute, on given rows. Let f_v be the weighted fraction of the rows in which
attribute j has value v, and x_t(v) row t with v in place of its own value. With means weighted by the rows' weights,

    log-loss increase = sum over v of f_v mean over t of -ln P(y_t | x_t(v))  -  mean over t of -ln P(y_t | x_t)
    mean change       = sum over v of f_v mean over t of max_y |P(y | x_t(v)) - P(y | x_t)|
    changed           = weighted fraction of the rows that are decided differently for some value v with f_v > 0

The first is the expectation of the permutation importance (Breiman 2001; Fisher, Rudin & Dominici 2019, JMLR 20) over
random values of j. Cost: the rows are scored once per value of each attribute.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.schema import NumericAttribute, Schema, source_column
from bncli.engine.kernels.arrays import Array, Codes, Index, Integers
from bncli.engine.model import Model
from bncli.engine.prediction.contributions import value_names
from bncli.engine.prediction.marginalization import JointModel
from bncli.engine.prediction.scoring import Scorer, log_probabilities
from bncli.errors import ModelError, UsageError

MOST_CHANGES = 50_000
"""The maximum number of sets of changes that are tried per row."""
LEAST_GAIN = 1e-12
_LEAST_LOG = float(np.finfo(np.float64).min)
"""The value that replaces ln 0, since a rule with costs may decide for an impossible label."""
Change = tuple[tuple[int, int], ...]
"""Pairs (position of an attribute, its new code), by ascending position."""


class CounterfactualSearch:
    """A search for a smallest set of changed values, of at most `most` attributes, that changes a row's decision.

    used: the attributes whose codes are given. allowed: the positions in `used` of the attributes that may change.
    score: maps codes to ln P(y | x_t) (K, N). decide: maps these to the indices of labels (N,), negative for no
    decision; by default it chooses the most probable labels. Raises UsageError if there are more than MOST_CHANGES sets
    of changes.
    """

    def __init__(
        self,
        schema: Schema,
        used: Sequence[int],
        allowed: Sequence[int],
        most: int,
        score: Callable[..., Array],
        decide: Callable[[Array], Index] = lambda log_p: np.asarray(log_p.argmax(axis=0)),
    ) -> None:
        self._n_values: dict[int, int] = {}
        self._texts: dict[int, list[str]] = {}
        """For each position, the string for each new value, such as `colour=red`, `age<=27.5` or `age=27.5..41`."""
        for p in sorted(allowed):
            attribute = schema.attributes[used[p]]
            is_number = isinstance(attribute, NumericAttribute)
            self._n_values[p] = attribute.n_values
            self._texts[p] = [
                f"{attribute.name}{'' if is_number and name[0] in '<>' else '='}{name}"
                for name in value_names(attribute)[: attribute.n_values]
            ]
        self._most, self._score, self._decide = most, score, decide
        # counts[k]: number of sets of k changes, a sum of products of k numbers of values; such elementary symmetric
        # polynomials grow by one attribute at a time
        counts = [1] + [0] * most
        for n in self._n_values.values():
            for k in range(most, 0, -1):
                counts[k] += counts[k - 1] * n
        n_changes = sum(counts[1:])
        if n_changes > MOST_CHANGES:
            what = f"there are {n_changes:,} ways to change up to {most} of {len(self._n_values)} columns"
            hint = (
                f"at most {MOST_CHANGES:,} are tried: give fewer columns with --flip-columns, or lower --flip-changes"
            )
            raise UsageError(what, hint=hint)

    def find(self, codes: Sequence[Codes], log_p: Array) -> list[str]:
        """Return the changes of every row as a string `A=v; B=w`, or "" if none lead to another label."""
        changes = self.changes(codes, log_p)
        return ["; ".join(self._texts[p][code] for p, code in change) for change in changes]

    def changes(self, codes: Sequence[Codes], log_p: Array) -> list[Change]:
        """Return the changes of every row, or () if none lead to another label.

        codes: (N,) for each attribute used. log_p (K, N): ln P(y | x_t) of the unchanged rows.
        """
        labels = self._decide(log_p)
        best_changes: list[Change] = [()] * len(labels)
        left: Index = np.arange(len(labels))
        for size in range(1, self._most + 1):
            if not len(left):
                break
            rows, own_labels = [column[left] for column in codes], labels[left]
            # The best change of this size, by ln P of the label to which it leads.
            best = np.full(len(left), -np.inf)
            changes = (
                tuple(zip(positions, values, strict=True))
                for positions in itertools.combinations(self._n_values, size)
                for values in itertools.product(*(range(self._n_values[p]) for p in positions))
            )
            for change in changes:
                changed = list(rows)
                for p, code in change:
                    changed[p] = np.full_like(rows[p], code)
                new_log_p = self._score(changed)
                decided = self._decide(new_log_p)
                of_decided = np.maximum(new_log_p[decided, np.arange(len(decided))], _LEAST_LOG)
                reached = np.where((decided == own_labels) | (decided < 0), -np.inf, of_decided)
                for row in left[reached > best].tolist():
                    best_changes[row] = change
                best = np.maximum(best, reached)
            left = left[np.isneginf(best)]
        return best_changes


class NextBest:
    """A search for the missing attribute with the largest mutual information with the class, given the observed values.

    used: the schema's attributes whose codes are given. shift (K,): the terms that another prior adds to ln P(y, x), or
    None. Raises ModelError if an attribute has a missing level, or if the model is not a network or is calibrated.
    """

    def __init__(self, model: Model, used: Sequence[int], shift: Array | None = None) -> None:
        attributes = [model.schema.attributes[i] for i in used]
        levels = [attribute.name for attribute in attributes if attribute.missing]
        if levels:
            what = f"a missing {levels[0]!r} counts as one more value in this model, so no column can be recommended"
            raise ModelError(what, hint="learn it with --missing-policy marginalize")
        self._joint = JointModel(model, used)
        self._shift = 0.0 if shift is None else shift[:, np.newaxis]
        self._cardinalities = [attribute.cardinality for attribute in attributes]
        self.names = tuple(source_column(attribute) for attribute in attributes)

    def gains(self, codes: Sequence[Codes], missing: Sequence[NDArray[np.bool_]]) -> Array:
        """Return I(Y; X_j | e_t) in nats, (attributes used, N); it is 0 where attribute j is not missing in row t.

        missing[j] (N,): whether each row lacks attribute j.
        """
        gains = np.zeros((len(codes), len(codes[0]) if codes else 0))
        for j, is_missing in enumerate(missing):
            rows = np.flatnonzero(is_missing)
            if not len(rows):
                continue
            answered = [column[rows] for column in codes]
            joints = []
            for value in range(self._cardinalities[j]):
                answered[j] = np.full_like(answered[j], value)
                joints.append(self._joint.log_joint(answered) + self._shift)
            # P(v, y | e), shape (values, K, rows)
            log_p = np.stack(joints)
            p = np.exp(log_p - log_p.max(axis=(0, 1)))
            p = np.asarray(p / p.sum(axis=(0, 1)))
            of_class, of_value = p.sum(axis=0, keepdims=True), p.sum(axis=1, keepdims=True)
            ratio = np.divide(p, of_class * of_value, out=np.ones_like(p), where=p > 0)
            gains[j, rows] = np.maximum((p * np.log(ratio)).sum(axis=(0, 1)), 0.0)
        return gains

    def ask(self, codes: Sequence[Codes], missing: Sequence[NDArray[np.bool_]]) -> list[str]:
        """Return the column to ask for in every row, or "" if no missing value is worth more than LEAST_GAIN nats.

        The list is empty if no attribute is used.
        """
        gains = self.gains(codes, missing)
        if not len(gains):
            return []
        best: Index = gains.argmax(axis=0)
        is_worth_asking = gains.max(axis=0) > LEAST_GAIN
        return [
            self.names[j] if worth else "" for j, worth in zip(best.tolist(), is_worth_asking.tolist(), strict=True)
        ]


class Sensitivity(NamedTuple):
    """The log-loss increase in nats, the mean change of probabilities, and the fraction of rows decided differently."""

    log_loss_increase: float
    mean_change: float
    changed: float


def measure_sensitivities(
    scorer: Scorer,
    codes: Sequence[Codes],
    labels: Integers,
    weights: Array | None = None,
    decide: Callable[[Array], Integers] | None = None,
) -> list[Sensitivity]:
    """Compute the sensitivity of predictions to every attribute of scorer.used on N > 0 rows.

    codes: (N,) for each of these attributes. labels (N,): label codes. weights (N,), or None if every row has weight 1.
    decide: maps ln P(y | x_t) (K, N) to decisions (N,); None chooses the most probable label.
    """
    decide = decide or (lambda log_p: log_p.argmax(axis=0))
    weights = np.ones(len(labels)) if weights is None else weights
    shares, rows = weights / weights.sum(), np.arange(len(labels))
    log_p = log_probabilities(scorer, codes, len(labels))
    p, decided, loss = np.exp(log_p), decide(log_p), float(shares @ -log_p[labels, rows])
    found = []
    for j, column in enumerate(codes):
        frequencies = np.bincount(column, shares)
        new_loss, change, is_changed = 0.0, 0.0, np.zeros(len(rows), np.bool_)
        for value in np.flatnonzero(frequencies > 0).tolist():
            replaced = [*codes[:j], np.full_like(column, value), *codes[j + 1 :]]
            new = log_probabilities(scorer, replaced, len(rows))
            new_loss += frequencies[value] * float(shares @ -new[labels, rows])
            change += frequencies[value] * float(shares @ np.abs(np.exp(new) - p).max(axis=0))
            is_changed |= decide(new) != decided
        found.append(Sensitivity(new_loss - loss, change, float(shares @ is_changed)))
    return found
