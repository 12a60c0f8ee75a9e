"""Contributions: why a row got the label that it got, as a sum that comes out.

What is explained are the log-odds of the predicted class p against the geometric mean of the others, for two classes
ln P(p)/P(other):

    log_odds = ln P(p | x) - 1/(K - 1) sum over c != p of ln P(c | x) = base + sum over terms T of contribution_T

A term is a set of attributes that the model looks at together; its contribution is the entry of its purified table (see
`bncli.engine.prediction.purification`) for the row and the class p. `base` belongs to no attribute: the log-odds of
the average row.

For an average of models, P = sum over s of w_s P_s, the contributions of the models are averaged with the weights that
the row itself gives them, r_s = w_s P_s(p | x) / P(p | x), and `base` takes what the average of scores leaves of the
logarithm of averaged probabilities. It does the same for rows whose missing values a network marginalizes over.

Of a calibrated model what is explained is what its tables say, before the map; a temperature T divides log-odds and
contributions alike, which is exact, and `Explanation.scaled` does it.

Conventions: contributions are named by falling absolute size, ties to smaller sets, then to the schema's order. Cost:
a look-up a term and row (2^n terms for a table over n attributes, each set of attributes once), and for an average
of models a multiplication a model and term besides.

The words of an explanation: what a code of an attribute stands for, and what a term saw in a row.

A numeric value is told as its interval: `<=27.5`, `27.5..41` (above 27.5, up to 41), `>41`. A missing value that counts
as a value is `missing`; what the model knows nothing of is `unknown`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bncli.engine.data.schema import Attribute, NumericAttribute, Schema
from bncli.engine.kernels.arrays import Array, Codes, Index
from bncli.engine.model import Model
from bncli.engine.prediction.factors import cells_of
from bncli.engine.prediction.mixtures import mixture_of
from bncli.engine.prediction.purification import ContrastTensor, Score, contrasts, purified
from bncli.engine.prediction.scoring import compile_predictor, log_probabilities, network_to_marginalize
from bncli.engine.structures.regrouping import regroup_codes
from bncli.engine.structures.structure import BinnedAttribute

_LARGEST = 1 << 62


class TermText(NamedTuple):
    """A term and what it saw: the values of its attributes in words."""

    attributes: tuple[str, ...]
    values: tuple[str, ...]


class TermNames:
    """Names for what terms saw. `terms`: the attributes of each; codes come for the attributes `used`."""

    def __init__(self, schema: Schema, terms: Sequence[tuple[int, ...]], used: Sequence[int]) -> None:
        self._place = {a: position for position, a in enumerate(used)}
        self._names = {a: schema.attributes[a].name for a in used}
        self._values = {a: value_names(schema.attributes[a]) for a in used}
        self._terms = terms

    def of(self, chosen: Index, codes: Sequence[Codes]) -> tuple[Index, tuple[TermText, ...]]:
        """Return chosen (m, N): the terms named for each row, -1 none. What was seen, as places in a list; -1 none."""
        flat = chosen.ravel()
        places = np.full(flat.shape, -1, np.intp)
        wordings: list[TermText] = []
        order = np.argsort(flat, kind="stable")
        terms, starts = np.unique(flat[order], return_index=True)
        for term, entries in zip(terms.tolist(), np.split(order, starts)[1:], strict=True):
            if term >= 0:
                found, seen = self._seen(self._terms[term], entries % chosen.shape[1], codes)
                places[entries] = found + len(wordings)
                wordings += seen
        return places.reshape(chosen.shape), tuple(wordings)

    def _seen(self, attributes: tuple[int, ...], rows: Index, codes: Sequence[Codes]) -> tuple[Index, list[TermText]]:
        """Return which of the listed wordings each of these rows has."""
        digits = {a: codes[self._place[a]][rows].astype(np.int64) for a in attributes}
        cells = np.zeros(len(rows), np.int64)
        size = 1
        for a in attributes:
            base = len(self._values[a])
            if size * base > _LARGEST:
                cells = np.unique(cells, return_inverse=True)[1].astype(np.int64)
                size = len(rows)
            cells = cells * base + digits[a]
            size *= base
        _, first, places = np.unique(cells, return_index=True, return_inverse=True)
        names = tuple(self._names[a] for a in attributes)
        values = zip(*([self._values[a][d] for d in digits[a][first].tolist()] for a in attributes), strict=True)
        return places.astype(np.intp).ravel(), [TermText(names, seen) for seen in values]


NUMBERS_PER_BLOCK = 1 << 20
"""Most numbers in the temporaries of a block of rows."""
NUMBERS_OF_MANY_TABLES = 1 << 22
"""The same where there are very many tables, each of which is looked at once a block."""
LEAST = 1e-12
"""Of a contribution, nats: a smaller one is rounding, and stays with the rest."""


@dataclass(frozen=True)
class Explanation:
    """Rows explained: log_odds = base + the sum of contributions[:, t] + rest, each (N,); contributions (m, N).

    reasons (m, N) are places in `wordings`, which say of what each contribution comes; -1: there is none.
    """

    log_odds: Array
    base: Array
    rest: Array
    contributions: Array
    reasons: Index
    wordings: tuple[TermText, ...]

    def scaled(self, factor: float) -> Explanation:
        """Return all numbers times a factor."""
        log_odds, base, rest = self.log_odds * factor, self.base * factor, self.rest * factor
        contributions = self.contributions * factor
        return replace(self, log_odds=log_odds, base=base, rest=rest, contributions=contributions)


@dataclass(frozen=True)
class _LookUp:
    """A tensor to be looked up: entries in the order of cells, then classes."""

    term: int
    positions: tuple[int, ...]
    shape: tuple[int, ...]
    entries: Array

    def add_to(self, sums: Array, digits: Sequence[Index], labels: Index, share: Array | float) -> None:
        """Add share times the entries of the rows' cells and labels to sums (rows,)."""
        places = cells_of([digits[p] for p in self.positions], self.shape) * (self.entries.size // self.n_cells)
        places += labels
        sums += share * np.take(self.entries, places, mode="clip")

    @property
    def n_cells(self) -> int:
        return int(np.prod(self.shape))


class Explainer:
    """A model compiled for explaining rows; codes come for the attributes `used`, as to `log_probabilities`."""

    def __init__(self, model: Model, used: Sequence[int]) -> None:
        mixture = mixture_of(model.predictor, model.schema)
        self._mixture = mixture
        pure = [purified(term, model.schema) for term in mixture.terms]
        self.terms = _terms(pure)
        self._columns: dict[BinnedAttribute, int] = {}
        self._used = tuple(used)
        number = {attributes: t for t, attributes in enumerate(self.terms)}
        self._pure = [self._compiled(term, number) for term in pure]
        self._tables = [
            [(table, np.array([number[key] for key in table.terms], np.intp)) for table in term.tables] for term in pure
        ]
        self._constants = [term.constant for term in pure]
        self._averages = len(mixture.weights) > 1
        self._scorers = [compile_predictor(tables, model.schema) for tables in mixture.models] if self._averages else []
        self._raw = [self._compiled(term, {}) for term in mixture.terms] if self._averages and not self._scorers else []
        self._marginalizes = network_to_marginalize(model.tables, model.schema) is not None
        self._words = TermNames(model.schema, self.terms, self._used)

    def _compiled(self, term: Score, number: dict[tuple[int, ...], int]) -> list[_LookUp]:
        return [self._look_up(tensor, number.get(tensor.attributes, -1)) for tensor in term.tensors]

    def _look_up(self, tensor: ContrastTensor, term: int) -> _LookUp:
        columns = zip(tensor.attributes, tensor.groupings, strict=True)
        positions = tuple(self._columns.setdefault(column, len(self._columns)) for column in columns)
        return _LookUp(term, positions, tensor.values.shape[:-1], tensor.values.ravel())

    def explain(self, codes: Sequence[Codes], log_probabilities: Array, predicted: Index, most: int) -> Explanation:
        """Return log_probabilities (K, N) and the labels predicted (N,).

        At most `most` contributions a row, the largest.
        """
        n_rows, n_labels = len(predicted), len(log_probabilities)
        log_odds = contrasts(log_probabilities.T)[np.arange(n_rows), predicted]
        base, rest = np.empty(n_rows), np.empty(n_rows)
        contributions, chosen = np.zeros((most, n_rows)), np.full((most, n_rows), -1, np.intp)
        n_models, n_terms = self._mixture.numbers.shape
        average = (n_models + n_terms) * (n_labels + 1) if self._averages else 0
        numbers = NUMBERS_OF_MANY_TABLES if any(self._tables) else NUMBERS_PER_BLOCK
        step = max(1, numbers // (2 * len(self.terms) + len(self._columns) + average + 1))
        for start in range(0, n_rows, step):
            block = slice(start, min(start + step, n_rows))
            sums, constant = self._sums([column[block] for column in codes], predicted[block])
            exact = not self._averages and not self._marginalizes
            base[block] = constant if exact else log_odds[block] - sums.sum(axis=0)
            rest[block] = _largest(sums, contributions[:, block], chosen[:, block])
        reasons, wordings = self._words.of(chosen, codes)
        return Explanation(log_odds, base, rest, contributions, reasons, wordings)

    def _sums(self, codes: Sequence[Codes], predicted: Index) -> tuple[Array, Array]:
        """Return the contribution of every term (T, rows), and that of no attribute (rows,)."""
        column = dict(zip(self._used, codes, strict=True))
        # The codes of every attribute in each of its binnings; unobserved is one past the last.
        seen = (column[a] if grouping is None else regroup_codes(column[a], grouping) for a, grouping in self._columns)
        digits = [digits.astype(np.intp) for digits in seen]
        shares = self._shares(digits, column, predicted)
        sums, constant = np.zeros((len(self.terms), len(predicted))), np.zeros(len(predicted))
        for share, own, look_ups, tables in zip(shares, self._constants, self._pure, self._tables, strict=True):
            constant += share * own[predicted]
            for look_up in look_ups:
                look_up.add_to(sums[look_up.term], digits, predicted, share)
            for table, places in tables:
                table.add_to(sums, places, column, predicted, share)
        return sums, constant

    def _shares(self, digits: Sequence[Index], column: Mapping[int, Codes], predicted: Index) -> Array:
        """Return how much every term counts.

        (P,), or for an average of models (P, rows), by the weights a row gives them.
        """
        weights, numbers = self._mixture.weights, self._mixture.numbers
        if not self._averages:
            return np.asarray(numbers[0])
        own = self._log_shares_of_models(column, predicted) if self._scorers else self._log_shares(digits, predicted)
        log_weights = np.log(weights)[:, None] + own
        log_weights -= log_weights.max(axis=0)
        own = np.exp(log_weights)
        own /= own.sum(axis=0)
        return np.asarray(numbers.T @ own)

    def _log_shares_of_models(self, column: Mapping[int, Codes], predicted: Index) -> Array:
        """Return ln P_s(predicted | x), shape (S, rows), of models that are terms."""
        rows = np.arange(len(predicted))
        scored = (log_probabilities(scorer, [column[a] for a in scorer.used], len(rows)) for scorer in self._scorers)
        return np.array([log_p[predicted, rows] for log_p in scored])

    def _log_shares(self, digits: Sequence[Index], predicted: Index) -> Array:
        """Return ln P_s(predicted | x), shape (S, rows)."""
        n_labels, n_rows = len(self._constants[0]), len(predicted)
        terms = np.empty((len(self._raw), n_labels, n_rows))
        for scores, score, look_ups in zip(terms, self._mixture.terms, self._raw, strict=True):
            scores[:] = score.constant[:, None]
            for y in range(n_labels):
                for look_up in look_ups:
                    look_up.add_to(scores[y], digits, np.full(n_rows, y, np.intp), 1.0)
        models = np.tensordot(self._mixture.numbers, terms, axes=(1, 0))
        models *= (n_labels - 1) / n_labels  # from contrasts back to scores
        models -= models.max(axis=1, keepdims=True)
        own = models[:, predicted, np.arange(n_rows)]
        return np.asarray(own - np.log(np.exp(models).sum(axis=1)))


def value_names(attribute: Attribute) -> tuple[str, ...]:
    """Return what every code stands for, "unknown" the last."""
    values = _intervals(attribute.cuts) if isinstance(attribute, NumericAttribute) else attribute.levels
    return (*values, *(["missing"] * attribute.missing), "unknown")


def _intervals(cuts: Sequence[float]) -> tuple[str, ...]:
    if not cuts:
        return ("any",)
    texts = [f"{cut:.6g}" for cut in cuts]
    if len(set(texts)) < len(texts):
        texts = [repr(float(cut)) for cut in cuts]
    between = (f"{low}..{high}" for low, high in pairwise(texts))
    return (f"<={texts[0]}", *between, f">{texts[-1]}")


def _terms(scores: Sequence[Score]) -> tuple[tuple[int, ...], ...]:
    """Return the sets of attributes that have a term; small ones first, then in the schema's order."""
    found = {tensor.attributes for score in scores for tensor in score.tensors}
    found.update(key for score in scores for table in score.tables for key in table.terms)
    return tuple(sorted(found, key=lambda key: (len(key), key)))


def _largest(sums: Array, contributions: Array, chosen: Index) -> Array:
    """Return the entries of sums (T, rows) of largest absolute size into contributions and chosen.

    The sum of the others.
    """
    by_row = np.ascontiguousarray(sums.T)
    sizes = np.abs(by_row)
    rows = np.arange(len(by_row))
    for place in range(min(len(contributions), len(sums))):
        terms = sizes.argmax(axis=1)
        told = sizes[rows, terms] >= LEAST
        contributions[place] = np.where(told, by_row[rows, terms], 0.0)
        chosen[place] = np.where(told, terms, -1)
        sizes[rows, terms] = -1.0
        by_row[rows[told], terms[told]] = 0.0
    return np.asarray(by_row.sum(axis=1))
