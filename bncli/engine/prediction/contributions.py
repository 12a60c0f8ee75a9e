"""Explain a prediction: how much each attribute of a row contributes to the log-odds of the predicted label.

The log-odds compare the predicted class p with the geometric mean of the other classes; for two classes they are
ln P(p)/P(other). They are a sum:

    log_odds = ln P(p | x) - 1/(K - 1) sum over c != p of ln P(c | x) = base + sum over terms T of contribution_T

A term is a set of attributes that the model uses together; its contribution is the entry of its purified table
(`prediction.purification`) for the row's values and the class p. `base` belongs to no attribute: it is the average
log-odds, if attributes are independent and distributed as in training.

For an average of models, P = sum over s of w_s P_s, the contributions of the models are averaged with the posterior
weights r_s = w_s P_s(p | x) / P(p | x). `base` is then the difference between the log-odds and the sum of all
contributions. The same holds if missing values are marginalized over a network.

For a calibrated model the contributions are computed before the calibration map is applied. A temperature T divides
both log-odds and contributions, which is exact: see `Explanation.scaled`.

Conventions: contributions are listed by decreasing absolute value; ties go to smaller sets, then to the order of the
schema. Cost: a look-up per term and row. A table over n attributes has up to 2^n terms, but tables share the terms
over the same attributes. An average of models also needs a multiplication per model and term.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bncli.engine.data.schema import Attribute, NumericAttribute, Schema
from bncli.engine.kernels.arrays import Array, Codes, Index
from bncli.engine.model import Model
from bncli.engine.prediction.factors import cells_of
from bncli.engine.prediction.marginalization import network_to_marginalize
from bncli.engine.prediction.purification import Score, contrasts, mixture_of
from bncli.engine.prediction.scoring import compile_predictor, log_probabilities
from bncli.engine.structures.regrouping import join_equal_intervals, regroup_attribute, regroup_codes
from bncli.engine.structures.structure import BinnedAttribute, Grouping

NUMBERS_PER_BLOCK = 1 << 20
"""The approximate maximum number of values in the temporary arrays of a block of rows."""
NUMBERS_OF_MANY_TABLES = 1 << 22
"""The same maximum for models with very many tables, each of which is looked up once per block."""
LEAST = 1e-12
"""Contributions with smaller absolute values, in nats, count as rounding errors: not listed, but included in `rest`."""
_LARGEST = 1 << 62
"""The joint values of a term are renumbered before their numbers exceed this limit, so that they fit into an int64."""


class TermText(NamedTuple):
    """The description of a term: the names of its attributes, and their values in a row."""

    attributes: tuple[str, ...]
    values: tuple[str, ...]


@dataclass(frozen=True)
class Explanation:
    """The explanations of N rows: log_odds = base + sum of the m listed contributions + rest.

    log_odds, base, rest: (N,). contributions (m, N): by decreasing absolute value, padded with 0. term_of (m, N): the
    index in `terms` of each contribution's term, or -1 where a row has fewer than m listed contributions.
    """

    log_odds: Array
    base: Array
    rest: Array
    contributions: Array
    term_of: Index
    terms: tuple[TermText, ...]

    def scaled(self, factor: float) -> Explanation:
        """Return the explanation with log-odds, base, rest and contributions multiplied by `factor`."""
        log_odds, base, rest = self.log_odds * factor, self.base * factor, self.rest * factor
        contributions = self.contributions * factor
        return replace(self, log_odds=log_odds, base=base, rest=rest, contributions=contributions)


class Explainer:
    """A model compiled for explaining rows; their codes are given for the attributes `used`, in this order.

    Raises BncliError if a table has too many attributes.
    """

    def __init__(self, model: Model, used: Sequence[int]) -> None:
        mixture = mixture_of(model.predictor, model.schema)
        self._mixture, self._used = mixture, tuple(used)
        purified = [term.purified(model.schema) for term in mixture.terms]
        # every set of attributes with a term in some score, small sets first
        sets = {tensor.attributes for score in purified for tensor in score.tensors}
        sets.update(key for score in purified for table in score.tables for key in table.terms)
        self.terms = tuple(sorted(sets, key=lambda key: (len(key), key)))
        number = {attributes: t for t, attributes in enumerate(self.terms)}
        self._columns: dict[BinnedAttribute, int] = {}
        """The index of the digits of each attribute and binning that is looked up."""
        self._look_ups = [self._look_ups_of(score, number) for score in purified]
        self._tables = [
            [(table, np.array([number[key] for key in table.terms], np.intp)) for table in score.tables]
            for score in purified
        ]
        self._constants = [score.constant for score in purified]
        self._is_average = len(mixture.weights) > 1
        models = mixture.models if self._is_average else ()
        self._scorers = [compile_predictor(tables, model.schema) for tables in models]
        needs_scores = self._is_average and not self._scorers
        self._term_scores = [self._look_ups_of(score, {}) for score in mixture.terms] if needs_scores else []
        self._marginalizes = network_to_marginalize(model.tables, model.schema) is not None
        self._term_texts = _TermTexts(model.schema, self.terms, self._used, self._joined_intervals(model.schema))

    def _joined_intervals(self, schema: Schema) -> dict[int, tuple[Grouping | None, ...]]:
        """Return the groupings that join intervals with equal contributions, for each term that has any.

        The result maps the index of a term to one grouping of codes per attribute, None for an attribute whose codes
        are kept. Values within a joined interval have the same contribution to this term. Averages of models, models
        with a `PureTable`, and terms of several tensors have no entry: they are described by the cuts of their
        attributes.
        """
        joined: dict[int, tuple[Grouping | None, ...]] = {}
        if len(self._look_ups) > 1 or self._tables[0]:
            return joined
        binnings = list(self._columns)
        n_tables = Counter(look_up.term for look_up in self._look_ups[0])
        for look_up in self._look_ups[0]:
            if n_tables[look_up.term] > 1:
                continue
            # (codes of each attribute ..., K), "unobserved" last
            values = look_up.entries.reshape(*look_up.shape, -1)
            groupings: list[Grouping | None] = []
            for axis, (a, binning) in enumerate(binnings[position] for position in look_up.positions):
                attribute = schema.attributes[a]
                if not isinstance(attribute, NumericAttribute):
                    groupings.append(None)  # a level has a name of its own, also where several count as one
                    continue
                coarse = attribute if binning is None else regroup_attribute(attribute, binning)
                observed = np.moveaxis(values, axis, 0)[: coarse.cardinality]
                grouping = join_equal_intervals(coarse, observed)
                if grouping is None or binning is None:
                    groupings.append(grouping or binning)
                else:
                    groupings.append(tuple(grouping[code] for code in binning))
            if any(groupings):
                joined[look_up.term] = tuple(groupings)
        return joined

    def _look_ups_of(self, score: Score, number: Mapping[tuple[int, ...], int]) -> list[_LookUp]:
        look_ups = []
        for tensor in score.tensors:
            axes = zip(tensor.attributes, tensor.groupings, strict=True)
            positions = tuple(self._columns.setdefault(axis, len(self._columns)) for axis in axes)
            term = number.get(tensor.attributes, -1)
            look_ups.append(_LookUp(term, positions, tensor.values.shape[:-1], tensor.values.ravel()))
        return look_ups

    def explain(self, codes: Sequence[Codes], log_probabilities: Array, predicted: Index, most: int) -> Explanation:
        """Explain each row by its largest contributions, at most `most` of them.

        codes[j] (N,): the codes of attribute used[j]. log_probabilities (K, N): ln P(y | x). predicted (N,): the index
        of each row's predicted label.
        """
        n_rows, n_labels = len(predicted), len(log_probabilities)
        log_odds = contrasts(log_probabilities.T)[np.arange(n_rows), predicted]
        base, rest = np.empty(n_rows), np.empty(n_rows)
        contributions, chosen = np.zeros((most, n_rows)), np.full((most, n_rows), -1, np.intp)
        n_models, n_terms = self._mixture.numbers.shape
        of_average = (n_models + n_terms) * (n_labels + 1) if self._is_average else 0
        numbers = NUMBERS_OF_MANY_TABLES if any(self._tables) else NUMBERS_PER_BLOCK
        step = max(1, numbers // (2 * len(self.terms) + len(self._columns) + of_average + 1))
        for start in range(0, n_rows, step):
            block = slice(start, min(start + step, n_rows))
            sums, constant = self._contributions([column[block] for column in codes], predicted[block])
            # then base and contributions add up to the log-odds by themselves; otherwise base takes up the difference
            is_exact = not self._is_average and not self._marginalizes
            base[block] = constant if is_exact else log_odds[block] - sums.sum(axis=0)
            rest[block] = take_largest(sums, contributions[:, block], chosen[:, block])
        return Explanation(log_odds, base, rest, contributions, *self._term_texts.describe(chosen, codes))

    def _contributions(self, codes: Sequence[Codes], predicted: Index) -> tuple[Array, Array]:
        """Return the contributions of all terms, (T, rows), and the constant of the predicted label, (rows,)."""
        column = dict(zip(self._used, codes, strict=True))
        # the codes of every attribute in each of its binnings; "unobserved" is one past the last
        digits = [
            (column[a] if grouping is None else regroup_codes(column[a], grouping)).astype(np.intp)
            for a, grouping in self._columns
        ]
        shares = self._shares(digits, column, predicted)
        sums, constant = np.zeros((len(self.terms), len(predicted))), np.zeros(len(predicted))
        for share, own, look_ups, tables in zip(shares, self._constants, self._look_ups, self._tables, strict=True):
            constant += share * own[predicted]
            for look_up in look_ups:
                look_up.add_to(sums[look_up.term], digits, predicted, share)
            for table, rows in tables:
                table.add_to(sums, rows, column, predicted, share)
        return sums, constant

    def _shares(self, digits: Sequence[Index], column: Mapping[int, Codes], predicted: Index) -> Array:
        """Return the factors of the P scores of the mixture: (P,), or for an average of models (P, rows).

        For an average, the factor of a score is the mean of its coefficients in the models, weighted by the models'
        posterior weights in the row.
        """
        weights, numbers = self._mixture.weights, self._mixture.numbers
        if not self._is_average:
            return np.asarray(numbers[0])
        # ln P_s(predicted | x) of every model s
        rows = np.arange(len(predicted))
        if self._scorers:
            of_models = []
            for scorer in self._scorers:
                log_p = log_probabilities(scorer, [column[a] for a in scorer.used], len(rows))
                of_models.append(log_p[predicted, rows])
            own = np.array(of_models)
        else:
            own = self._log_probabilities_of_models(digits, predicted)
        # ln w_s P_s(p | x), normalised over the models
        log_weights = np.log(weights)[:, None] + own
        log_weights -= log_weights.max(axis=0)
        row_weights = np.exp(log_weights)
        row_weights /= row_weights.sum(axis=0)
        return np.asarray(numbers.T @ row_weights)

    def _log_probabilities_of_models(self, digits: Sequence[Index], predicted: Index) -> Array:
        """Return ln P_s(predicted | x), shape (S, rows), for models whose scores are sums of the mixture's terms."""
        n_labels, n_rows = len(self._constants[0]), len(predicted)
        terms = np.empty((len(self._term_scores), n_labels, n_rows))
        for scores, score, look_ups in zip(terms, self._mixture.terms, self._term_scores, strict=True):
            scores[:] = score.constant[:, None]
            for y in range(n_labels):
                for look_up in look_ups:
                    look_up.add_to(scores[y], digits, np.full(n_rows, y, np.intp), 1.0)
        # every model's scores are a combination of the terms: (S, terms) times (terms, K, rows)
        models = np.tensordot(self._mixture.numbers, terms, axes=(1, 0))
        models *= (n_labels - 1) / n_labels  # from contrasts back to scores
        models -= models.max(axis=1, keepdims=True)
        own = models[:, predicted, np.arange(n_rows)]
        return np.asarray(own - np.log(np.exp(models).sum(axis=1)))


@dataclass(frozen=True)
class _LookUp:
    """A tensor in flat form: entries (cells * K,), the class changing fastest.

    term: the index of its term, -1 if it has none. positions: for each axis, the index of its digits. shape: the number
    of digits on each axis.
    """

    term: int
    positions: tuple[int, ...]
    shape: tuple[int, ...]
    entries: Array

    def add_to(self, sums: Array, digits: Sequence[Index], labels: Index, share: Array | float) -> None:
        """Add `share` times the entry of each row's cell and label to sums (rows,)."""
        n_labels = self.entries.size // int(np.prod(self.shape))
        numbers = cells_of([digits[p] for p in self.positions], self.shape) * n_labels
        numbers += labels
        sums += share * np.take(self.entries, numbers, mode="clip")


def take_largest(sums: Array, contributions: Array, chosen: Index) -> Array:
    """Copy each row's m entries of largest absolute value from sums (T, rows) into contributions (m, rows).

    The indices of their terms are written into `chosen` (m, rows). Entries whose absolute value is below LEAST are not
    listed: they become 0, with index -1. Returns the sum of the entries that are not listed, (rows,).
    """
    by_row = np.ascontiguousarray(sums.T)
    sizes = np.abs(by_row)
    rows = np.arange(len(by_row))
    for place in range(min(len(contributions), len(sums))):
        terms = sizes.argmax(axis=1)
        is_listed = sizes[rows, terms] >= LEAST
        contributions[place] = np.where(is_listed, by_row[rows, terms], 0.0)
        chosen[place] = np.where(is_listed, terms, -1)
        # taken: never the largest again
        sizes[rows, terms] = -1.0
        by_row[rows[is_listed], terms[is_listed]] = 0.0
    return np.asarray(by_row.sum(axis=1))


class _TermTexts:
    """Descriptions of terms by the names of their attributes and the values of rows.

    terms: the attributes of each term. used: the attributes whose codes are given to `describe`. joined: maps the index
    of a term with joined intervals to one grouping per attribute. A value is then named after its group, or after its
    code if the grouping is None or the term is not in `joined`.
    """

    def __init__(
        self,
        schema: Schema,
        terms: Sequence[tuple[int, ...]],
        used: Sequence[int],
        joined: Mapping[int, tuple[Grouping | None, ...]],
    ) -> None:
        self._place = {a: position for position, a in enumerate(used)}
        self._names = {a: schema.attributes[a].name for a in used}
        self._values = {a: value_names(schema.attributes[a]) for a in used}
        self._terms = terms
        self._joined: dict[int, list[tuple[str, ...]]] = {}
        """The names of the codes of each attribute in a term with joined intervals, keyed by the index of the term."""
        for term, groupings in joined.items():
            texts = []
            for a, grouping in zip(terms[term], groupings, strict=True):
                if grouping is None:
                    texts.append(self._values[a])
                else:
                    names = value_names(regroup_attribute(schema.attributes[a], grouping))
                    texts.append((*(names[group] for group in grouping), names[-1]))
            self._joined[term] = texts

    def describe(self, chosen: Index, codes: Sequence[Codes]) -> tuple[Index, tuple[TermText, ...]]:
        """Describe the terms `chosen` (m, N); return indices (m, N) into descriptions, and the descriptions.

        codes[j] (N,): the codes of attribute used[j]. An index of -1 stands for no term, in arguments and result.
        """
        flat = chosen.ravel()
        text_numbers = np.full(flat.shape, -1, np.intp)
        texts: list[TermText] = []
        order = np.argsort(flat, kind="stable")
        terms, starts = np.unique(flat[order], return_index=True)
        # entries: positions in `flat` with this term; position modulo N is the row
        for term, entries in zip(terms.tolist(), np.split(order, starts)[1:], strict=True):
            if term < 0:
                continue
            # Number the values that occur together, since rows with the same values share a description.
            attributes, rows = self._terms[term], entries % chosen.shape[1]
            digits = {a: codes[self._place[a]][rows].astype(np.int64) for a in attributes}
            joint, size = np.zeros(len(rows), np.int64), 1
            for a in attributes:
                n_values = len(self._values[a])
                if size * n_values > _LARGEST:
                    joint = np.unique(joint, return_inverse=True)[1].astype(np.int64)
                    size = len(rows)
                joint = joint * n_values + digits[a]
                size *= n_values
            _, first, text_of_row = np.unique(joint, return_index=True, return_inverse=True)
            text_numbers[entries] = text_of_row.astype(np.intp).ravel() + len(texts)
            names = tuple(self._names[a] for a in attributes)
            columns = zip(attributes, self._joined.get(term, [self._values[a] for a in attributes]), strict=True)
            values = zip(*([of_code[d] for d in digits[a][first].tolist()] for a, of_code in columns), strict=True)
            texts += [TermText(names, of_row) for of_row in values]
        return text_numbers.reshape(chosen.shape), tuple(texts)


def value_names(attribute: Attribute) -> tuple[str, ...]:
    """Return the name of each code of an attribute, "unknown" last.

    A categorical code has the name of its level. The codes of a numeric attribute are intervals: `<=27.5`, `27.5..41`
    (above 27.5, up to 41), `>41`; `any` if it has no cuts. The missing level, if there is one, is `missing`; a value
    that the model does not know is `unknown`.
    """
    if not isinstance(attribute, NumericAttribute):
        values: tuple[str, ...] = attribute.levels
    elif not attribute.cuts:
        values = ("any",)
    else:
        texts = [f"{cut:.6g}" for cut in attribute.cuts]
        if len(set(texts)) < len(texts):
            texts = [repr(float(cut)) for cut in attribute.cuts]
        values = (f"<={texts[0]}", *(f"{low}..{high}" for low, high in pairwise(texts)), f">{texts[-1]}")
    return (*values, *(["missing"] * attribute.missing), "unknown")
