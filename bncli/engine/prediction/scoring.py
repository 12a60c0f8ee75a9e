"""Scoring: from the codes of a row to ln P(y | x), by adding up one table entry per family.

    S[t, y] = bias[y] + sum over families f of W_f[cell_f(t), y],     ln P(y | x_t) = S[t, y] - ln sum_c exp S[t, c]

Unknown attributes. An attribute of a new row is unknown if its value never occurred in training, or if it is missing
and training had no missing value. It then has the code one past its last, "unobserved". Before the first row is scored,
every table that does not become too large gets entries for this code along each attribute: 0 if the family's own
attribute is unknown (the family is left out), and the average over its values with their training frequencies q if a
parent is unknown,

    W_f[unobserved, p, y] = 0        W_f[v, unobserved, y] = sum over values p of q(p) W_f[v, p, y]

with the product of the frequencies for several unknown parents. A family without a child (the parents of the class) is
averaged over all unknown attributes. So the inner loop treats unknown attributes like any other. If families use an
attribute in a coarser binning, the coarse codes of a block of rows are looked up once; an unknown attribute stays
unknown, and a coarse code has the sum of the frequencies of its codes.

Other models. A model that marginalizes missing values scores rows exactly by inference if leaving families out is not
enough (`prediction.marginalization`). A calibrated model applies its map (`engine.calibration`) to the
log-probabilities last. An average over a path (`engine.kikuchi`) is scored in one pass: the tables of the stages are
added up one after the other, and after each stage its probabilities are added to the average (`prediction.factors`). A
logarithmic pool is one sum of tables. In a linear pool the score rows of the components are stacked, and a family that
several of them have is looked up only once. Families without the class are never looked up, since they cancel if all
attributes are known.

Conventions: with two classes only the difference S[t, 1] - S[t, 0] is added up. Log-probabilities have shape (K, N), so
that sums run over contiguous memory. Families are not fused into larger tables: that would halve the number of
look-ups, but look-ups take only a hundredth of the time of scoring a file. Cost per row: a multiplication and an
addition per parent, and a look-up per family and class (with two classes: per family), about 2 ns each.

Another class prior. Predictions for a population with other class frequencies need no new learning:

    P'(y | x) = P(y | x) pi'(y) / pi(y), normalised over the classes

pi is the prior under which the model was learned: the class frequencies of its training rows, with class weights. For a
model calibrated by a map per class, pi consists of the class frequencies of the calibration rows, to which such a map
adapts (a temperature does not). This is Bayes' rule if P(x | y) stays the same (Saerens, Latinne & Decaestecker
2002, Neural Computation 14), for every kind of model. ln pi'(y) - ln pi(y) is one number per class. Cost: an addition
and a sum per row and class.

Single rows. `RowLookUp` scores one row at a time, in microseconds, with exactly the results of a block. For a block the
cost of a numpy call is spread over the rows; for one row it is nearly the whole cost. So the tables of a model are
stored in a different layout, and a row takes the same few calls however many tables there are:

    cell_f = sum over attributes a of f of  share[f, a, code_a]        what a code adds to the cell number, looked up
    S[r]   = shift[r] + entry_1[r] + entry_2[r] + ...                   in the order in which blocks are added up

Packed tables (see `prediction.factors`) keep their joint tables: each lane of a word is a table over the attributes of
the word, and the lanes are added up before their sum is added to the scores. For rows with unknown values there are
other words, whose layout is computed when the first such row comes.

A row goes through `log_probabilities`, as a block of one row, if the model is an average over a path or has a region
whose table is too large to expand. So does a row with an unknown value if the value is marginalized by inference, or if
tables are too large to have entries for unknown values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from bncli.engine.calibration import CalibrationMap
from bncli.engine.data.columns import unknown_label_error
from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.data.schema import Schema
from bncli.engine.kernels.arrays import Array, Codes, Index, Mask, log_softmax, sum_in_order
from bncli.engine.model import Model, Path, Pool, Predictor, Tables
from bncli.engine.prediction.factors import (
    Factor,
    LookUps,
    PackedTables,
    RegionFactor,
    Regrouped,
    SharedFactor,
    SubmodelTensors,
    TableFactor,
    WideFactor,
    host_factor,
    score_rows,
    stages_of,
    table_factors,
)
from bncli.engine.prediction.marginalization import (
    NetworkTables,
    incomplete_rows,
    log_joint,
    network_to_marginalize,
)
from bncli.errors import ModelError, UsageError

ROWS_PER_BLOCK = 1 << 14
"""The maximum number of rows scored at a time, so that temporary arrays stay in the second-level cache."""
LEAST_PROBABILITY = 1e-280
"""Averaged probabilities below this value may have lost digits to underflow."""
_TINY = float(np.finfo(np.float64).tiny)
_STEEPEST = 690.0
"""The largest difference of scores d for which neither exp(d) nor exp(-d) over- or underflows, with a margin."""
TRAINING = "training"
"""The name of the prior that consists of the class frequencies of the training rows, without class weights."""
_SUM_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Stage:
    """A step of scoring: a shift and factors to add to the scores (R, rows).

    weight: the weight that the resulting probabilities have in an average over a path, 1 for a single stage. shift:
    (R, 1). There is one score row per class, or for two classes a single row, S[t, 1] - S[t, 0]. In a linear pool the
    score rows of all models are stacked.
    """

    weight: float
    shift: Array
    factors: tuple[TableFactor | RegionFactor, ...]

    def add_to(self, scores: Array, codes: Sequence[Index]) -> None:
        """Add the shift and the factors to scores (R, rows).

        codes[p] (rows,): the codes at position p: of attribute scorer.used[p], or of a regrouped attribute after these.
        """
        if self.shift.any():
            scores += self.shift
        for factor in self.factors:
            factor.add_to(scores, codes)


@dataclass(frozen=True)
class Scorer:
    """A model compiled for scoring.

    - used: the indices of the schema's attributes that it needs, ascending
    - stages: one stage, or for an average over a path several, each of which adds to the scores of the stages before it
    - network: the tables for rows whose missing values require inference, or None if look-ups always suffice
    - regrouped: pairs of a position in `used` and an array with the coarse code of every code, "unobserved" last;
      factors refer to these coarse columns by the positions that follow the end of `used`
    - weights: the weights of the models in a linear pool, whose score rows are stacked in one stage; otherwise empty
    - calibration: the map that is applied to the log-probabilities last, or None
    """

    used: tuple[int, ...]
    n_labels: int
    stages: tuple[Stage, ...]
    network: NetworkTables | None = None
    regrouped: Regrouped = ()
    weights: tuple[float, ...] = ()
    calibration: CalibrationMap | None = None


def compile_scorer(model: Model) -> Scorer:
    """Compile a model for scoring, including its calibration map."""
    scorer = compile_predictor(model.predictor, model.schema)
    return scorer if model.calibration is None else replace(scorer, calibration=model.calibration.map)


def compile_predictor(predictor: Predictor, schema: Schema) -> Scorer:
    if isinstance(predictor, Tables):
        scorer = _compile_tables((predictor,), schema)
        return replace(scorer, network=network_to_marginalize(predictor, schema))
    if isinstance(predictor, Path):
        return compile_path(predictor)
    if predictor.pool is Pool.LOGARITHMIC:
        return _compile_tables((predictor.combined,), schema)
    scorer = _compile_tables([component.tables for component in predictor.components], schema)
    return replace(scorer, weights=tuple(component.weight for component in predictor.components))


def _compile_tables(models: Sequence[Tables], schema: Schema) -> Scorer:
    """Return a scorer with one stage, in which the score rows of all models are stacked."""
    used = tuple(sorted({a for tables in models for family in tables.families for a in family.attributes}))
    shift = np.concatenate([score_rows(tables.bias[None, :]) for tables in models])
    factors, regrouped = table_factors(models, schema, used)
    return Scorer(used, models[0].bias.size, (Stage(1.0, shift, factors),), None, regrouped)


def compile_path(path: Path) -> Scorer:
    """Compile a path for scoring, omitting attributes that are used only by steps after the last one with weight."""
    path_stages = stages_of(path)
    hosts = {host for stage in path_stages for host, _ in stage.hosts}
    used = tuple(sorted({a for host in hosts for a in path.families[host].attributes}))
    tensors = SubmodelTensors(path)
    stages = []
    for stage in path_stages:
        shift = score_rows(stage.class_change * path.class_logs[None, :])
        factors = tuple(host_factor(tensors, host, changes, used) for host, changes in stage.hosts)
        stages.append(Stage(stage.weight, shift, factors))
    return Scorer(used, path.class_logs.size, tuple(stages))


def log_probabilities(scorer: Scorer, codes: Sequence[Codes], n_rows: int | None = None) -> Array:
    """Return ln P(y | x_t), shape (K, N).

    codes[j] (N,): the codes of attribute scorer.used[j]; a code equal to the cardinality means "unobserved". n_rows:
    the number of rows N, needed only for a model that uses no attribute. Raises BncliError if a row needs inference
    with tables that are too large.
    """
    log_p = uncalibrated(scorer, codes, n_rows)
    return log_p if scorer.calibration is None else scorer.calibration.apply(log_p)


def uncalibrated(scorer: Scorer, codes: Sequence[Codes], n_rows: int | None = None) -> Array:
    """Return ln P(y | x_t), shape (K, N), before calibration, for the same arguments as `log_probabilities`."""
    n = len(codes[0]) if codes else n_rows or 0
    if scorer.network is None:
        return _look_up(scorer, codes, n)
    by_attribute = dict(zip(scorer.used, codes, strict=True))
    incomplete = incomplete_rows(scorer.network, by_attribute)
    if not len(incomplete):
        return _look_up(scorer, codes, n)
    complete = np.delete(np.arange(n), incomplete)
    log_p = np.empty((scorer.n_labels, n))
    log_p[:, complete] = _look_up(scorer, [column[complete] for column in codes], len(complete))
    joint = log_joint(scorer.network, by_attribute, incomplete)
    joint -= joint.max(axis=0)
    log_p[:, incomplete] = joint - np.log(sum_in_order(np.exp(joint)))
    return log_p


def _look_up(scorer: Scorer, codes: Sequence[Codes], n: int) -> Array:
    """Return ln P(y | x_t) of rows that need no inference, from the tables alone."""
    log_p = np.empty((scorer.n_labels, n))
    scores = np.empty((len(scorer.stages[0].shift), min(n, ROWS_PER_BLOCK)))
    for start in range(0, n, ROWS_PER_BLOCK):
        stop = min(start + ROWS_PER_BLOCK, n)
        out, block = log_p[:, start:stop], scores[:, : stop - start]
        block[:] = 0.0
        indices = [column[start:stop].astype(np.intp) for column in codes]
        indices += [np.take(coarse, indices[p], mode="clip") for p, coarse in scorer.regrouped]
        if scorer.weights:
            scorer.stages[0].add_to(block, indices)
            components = np.split(block, len(scorer.weights))
            write_log_average(components, scorer.weights, out)
        elif len(scorer.stages) == 1:
            scorer.stages[0].add_to(block, indices)
            write_log_softmax(block, out)
        else:
            # ln sum over stages of weight softmax_y S
            out[:] = 0.0
            for stage in scorer.stages:
                stage.add_to(block, indices)
                add_softmax(block, stage.weight, out)
            # Near underflow the sum of probabilities has lost digits that logarithms keep.
            rare = np.flatnonzero(out.min(axis=0) < LEAST_PROBABILITY)
            log_shares(out)
            if rare.size:
                of_rare, terms = np.zeros((len(scores), rare.size)), []
                for stage in scorer.stages:
                    stage.add_to(of_rare, [column[rare] for column in indices])
                    terms.append(np.empty((len(out), rare.size)))
                    write_log_softmax(of_rare, terms[-1])
                    terms[-1] += math.log(stage.weight)
                out[:, rare] = normalised(np.asarray(np.logaddexp.reduce(terms)))
    return log_p


def write_log_average(scores: Sequence[Array], weights: Sequence[float], out: Array) -> None:
    """Write the logarithms of averaged probabilities into out (K, rows).

    scores: one array (R, rows) per model. weights: one per model, with sum 1.
    """
    out[:] = 0.0
    for one, weight in zip(scores, weights, strict=True):
        add_softmax(one, weight, out)
    # Near underflow the sum of probabilities has lost digits that logarithms keep.
    rare = np.flatnonzero(out.min(axis=0) < LEAST_PROBABILITY)
    log_shares(out)
    if rare.size:
        terms = np.empty((len(weights), len(out), rare.size))
        for term, one, weight in zip(terms, scores, weights, strict=True):
            write_log_softmax(one[:, rare], term)
            term += math.log(weight)
        out[:, rare] = normalised(np.asarray(np.logaddexp.reduce(terms)))


def write_log_softmax(scores: Array, out: Array) -> None:
    """Compute ln P(y | x_t) from scores (R, rows) and write it into out (K, rows).

    For two classes, whose only score row is d = S[t, 1] - S[t, 0], ln P(1 | x_t) = min(d, 0) - ln(1 + exp(-|d|)).
    """
    if len(out) == 2:
        difference = scores[0]
        log_sum = np.log1p(np.exp(-np.abs(difference)))
        np.minimum(difference, 0.0, out=out[1])
        np.minimum(-difference, 0.0, out=out[0])
        out -= log_sum
        return
    np.subtract(scores, scores.max(axis=0), out=out)
    out -= np.log(sum_in_order(np.exp(out)))


def add_softmax(scores: Array, weight: float, out: Array) -> None:
    """Compute probabilities from scores (R, rows) and add them, times `weight`, to out (K, rows).

    With two classes, small probabilities are accurate too, down to exp(-_STEEPEST).
    """
    if len(out) == 2:
        # P(0) = 1 / (1 + e^d) and P(1) = e^d / (1 + e^d), each by itself, so that neither is 1 minus the other
        odds = np.clip(scores[0], -_STEEPEST, _STEEPEST)
        np.exp(odds, out=odds)
        share = odds + 1.0
        np.divide(weight, share, out=share)
        out[0] += share
        share *= odds
        out[1] += share
        return
    shares = scores - scores.max(axis=0)
    np.exp(shares, out=shares)
    shares *= weight / sum_in_order(shares)
    out += shares


def log_shares(out: Array) -> None:
    """Normalise the columns of out (K, rows) to sum to 1 and take logarithms, in place; 0 counts as about _TINY."""
    if len(out) != 2:
        out /= sum_in_order(out)
        np.log(np.maximum(out, _TINY, out=out), out=out)
        return
    # with odds = smaller / larger <= 1, ln of the larger fraction is -ln(1 + odds), and of the smaller ln odds more
    second = out[1] > out[0]
    odds = np.minimum(out[0], out[1]) / np.maximum(out[0], out[1])
    larger = np.log1p(odds)
    smaller = np.log(np.maximum(odds, _TINY, out=odds), out=odds)
    np.negative(larger, out=larger)
    smaller += larger
    out[0] = np.where(second, smaller, larger)
    out[1] = np.where(second, larger, smaller)


def normalised(logs: Array) -> Array:
    """Normalise log-probabilities (K, rows) so that the probabilities of each row sum to 1 and none exceeds 1."""
    return np.asarray(np.minimum(logs - np.logaddexp.reduce(logs, axis=0), 0.0))


def log_probabilities_of(predictor: Predictor, data: Dataset) -> Array:
    """Return ln P(y | x_t) (K, N) of every row of a data set; the result does not depend on the number of threads.

    A code equal to the cardinality means "unobserved". If rows are scored only once by many small tables, this is much
    cheaper than computing fused codes (`engine.counting.fused_codes`).
    """
    scorer = compile_predictor(predictor, data.schema)
    return np.concatenate(data.map(_score_block, scorer), axis=1)


def _score_block(block: RowBlock, scorer: Scorer) -> Array:
    return log_probabilities(scorer, [block.codes[a] for a in scorer.used], block.n_rows)


def prior_shift(model: Model, prior: Mapping[str, float] | str) -> Array:
    """Return ln pi'(y) - ln pi(y), (K,), for another prior pi', up to a constant that cancels in predictions.

    prior: TRAINING, or positive probabilities of all labels, which sum to 1. Raises UsageError if it is neither, and
    ModelError if the model's class frequencies are needed, but not stored or not all positive.
    """
    labels, frequencies = model.schema.labels, model.schema.label_frequencies
    calibrated = () if model.calibration is None else model.calibration.frequencies
    if isinstance(prior, str):
        if prior != TRAINING:
            raise UsageError(f"{prior!r} is not a prior", hint=f"give {TRAINING}, or a probability for every label")
    else:
        for label, share in prior.items():
            if label not in labels:
                raise unknown_label_error(label, labels, "--prior", model.schema.class_name)
            if not 0 < share < math.inf:
                what = f"--prior gives {label!r} the probability {share:g}"
                raise UsageError(what, hint="every label needs a probability above 0")
        for label in labels:
            if label not in prior:
                what = f"--prior has no probability for the label {label!r}"
                raise UsageError(what, hint="give a probability for every label")
        total = math.fsum(prior.values())
        if abs(total - 1) > _SUM_TOLERANCE:
            raise UsageError(f"the probabilities of --prior sum to {total:g}", hint="they must sum to 1")
    if (calibrated or not isinstance(prior, str)) and (not frequencies or min(frequencies) <= 0):
        what = "the model does not record its class frequencies, so its prior cannot be replaced"
        raise ModelError(what, hint="fit the model again: files of format 7 and later contain the frequencies")
    # ln pi_training(y) - ln pi_calibration(y)
    to_training: Array | float = 0.0
    if calibrated:
        to_training = np.log(frequencies / np.sum(frequencies)) - np.log(calibrated / np.sum(calibrated))
    if isinstance(prior, str):
        # ln pi_training - ln pi: class weights multiplied the frequencies, so their logarithms are subtracted
        undone = np.zeros(len(labels)) if model.class_weights is None else -np.log(model.class_weights)
        return np.asarray(undone + to_training)
    other = np.array([prior[label] for label in labels]) / total
    return np.asarray(np.log(other) - np.log(frequencies / np.sum(frequencies)) + to_training)


def shift_log_probabilities(log_probabilities: Array, shift: Array | None) -> Array:
    """Return ln P'(y | x_t) under another prior from ln P(y | x_t), (K, N) each; a shift of None changes nothing.

    shift (K,): the result of `prior_shift`.
    """
    if shift is None:
        return log_probabilities
    return log_softmax(log_probabilities + shift[:, np.newaxis], axis=0)


class _Segment(NamedTuple):
    """Consecutive tables of the same score rows.

    rows: the indices of the score rows, or None for all. entries (cells, R): the entries of all tables of the segment,
    one table after the other. first, last: the segment has the tables first .. last - 1 of the layout. is_sum: whether
    they are summed before they are added to the scores, as packed tables are.
    """

    rows: Index | None
    entries: Array
    first: int
    last: int
    is_sum: bool


@dataclass(frozen=True)
class _Layout:
    """The tables of a stage, for rows in which the same packed tables have unknown values.

    A pair is a table and one of its attributes. shares: for each pair in turn, what every code of the attribute adds to
    the cell number of the table. first_shares: for each pair, the index of code 0 in `shares`. positions: for each
    pair, the position of the attribute. starts: for each table, the index of its first pair.
    """

    positions: Index
    first_shares: Index
    shares: Index
    starts: Index
    segments: tuple[_Segment, ...]


class RowLookUp:
    """A scorer of single rows of codes, compiled from a `Scorer`; several threads may use it at the same time."""

    def __init__(self, scorer: Scorer, cardinalities: Sequence[int]) -> None:
        self._scorer = scorer
        self._stage = scorer.stages[0]
        self._unknown = np.array(cardinalities, np.intp)
        """For each attribute used, the code of an unknown value."""
        self._packings = [f for f in map(_unshared, self._stage.factors) if isinstance(f, PackedTables)]
        self._layouts: dict[tuple[bool, ...], _Layout | None] = {}
        self._all_known = self._layout(np.zeros(len(cardinalities), np.bool_))

    def log_p(self, codes: Sequence[int]) -> Array:
        """Return ln P(y | x), shape (K,), for the codes of the attributes used."""
        row = np.array(codes, np.intp)
        is_unknown = row == self._unknown
        layout = self._layout(is_unknown) if is_unknown.any() else self._all_known
        if layout is None:
            return log_probabilities(self._scorer, list(row[:, None].astype(np.uint32)), 1)[:, 0]
        # a copy, since scores are added to in place
        scores = self._stage.shift + 0.0
        if layout.segments:
            # the cell of every table: the sum of what its attributes' codes add
            cells = np.add.reduceat(layout.shares[layout.first_shares + row[layout.positions]], layout.starts)
            for rows, entries, first, last, is_sum in layout.segments:
                added = entries[cells[first:last]]
                own = scores if rows is None else scores[rows]
                if not is_sum:
                    added = np.concatenate((own.T, added))
                # the terms of one sum are added in their order, and not in pairs
                total = np.add.accumulate(added)[-1][:, None]
                if is_sum:
                    total += own
                if rows is None:
                    scores = total
                else:
                    scores[rows] = total
        out = np.empty((self._scorer.n_labels, 1))
        if self._scorer.weights:
            write_log_average(np.split(scores, len(self._scorer.weights)), self._scorer.weights, out)
        else:
            write_log_softmax(scores, out)
        calibration = self._scorer.calibration
        log_p: Array = (out if calibration is None else calibration.apply(out))[:, 0]
        return log_p

    def _layout(self, is_unknown: Mask) -> _Layout | None:
        """Return the layout for rows with these unknown values, or None if such a row is scored as a block."""
        key = tuple(any(is_unknown[p] for p, _ in packing.unobserved) for packing in self._packings)
        if self._scorer.network is not None and is_unknown.any():
            return None
        if any(isinstance(_unshared(f), WideFactor) and is_unknown.any() for f in self._stage.factors):
            return None
        if key not in self._layouts:
            self._layouts[key] = self._make_layout(key)
        return self._layouts[key]

    def _make_layout(self, incomplete: Sequence[bool]) -> _Layout | None:
        """Return the layout for rows in which the packed tables marked `incomplete` have unknown values.

        Returns None for an average over a path, and if some tables have no layout.
        """
        if len(self._scorer.stages) > 1:
            return None
        is_incomplete = dict(zip(map(id, self._packings), incomplete, strict=True))
        coarse = dict(enumerate(self._scorer.regrouped, len(self._scorer.used)))
        n_codes = (self._unknown + 1).tolist()
        shares, positions, first_shares, starts = list[Index](), list[int](), list[int](), list[int]()
        segments: list[_Segment] = []
        n_shares = 0
        for rows, is_sum, tables in _segments_of_stage(self._stage, is_incomplete):
            if tables is None:
                return None
            first, n_cells, entries = len(starts), 0, []
            for by_position, own in tables:
                starts.append(len(first_shares))
                for i, (position, share) in enumerate(by_position):
                    if position in coarse:
                        position, digits = coarse[position]
                        # by own codes instead of coarse ones
                        share = share[digits]
                    positions.append(position)
                    first_shares.append(n_shares)
                    # the first pair of a table also adds the cells of the tables before it in the segment
                    shares.append(share[: n_codes[position]] + (n_cells if i == 0 else 0))
                    n_shares += len(shares[-1])
                entries.append(own)
                n_cells += len(own)
            columns = None if rows is None else np.array(rows, np.intp)
            segments.append(_Segment(columns, np.concatenate(entries), first, len(starts), is_sum))
        return _Layout(
            np.array(positions, np.intp),
            np.array(first_shares, np.intp),
            np.concatenate(shares) if shares else np.empty(0, np.intp),
            np.array(starts, np.intp),
            tuple(segments),
        )


_Table = tuple[list[tuple[int, Index]], Array]
"""Pairs (position, what each code of the attribute adds to the cell number), and the entries (cells, R)."""
_Run = tuple[tuple[int, ...] | None, bool, list[_Table] | None]
"""Indices of score rows (None for all), whether the tables are summed first, and the tables (None without a layout)."""


def _segments_of_stage(stage: Stage, is_incomplete: dict[int, bool]) -> Iterable[_Run]:
    """Yield the tables of a stage in order, grouping consecutive tables that have the same score rows."""
    pending: list[_Table] = []
    pending_rows: tuple[int, ...] | None = None
    for factor in stage.factors:
        rows = factor.rows if isinstance(factor, SharedFactor) else None
        inner = _unshared(factor)
        if isinstance(inner, (Factor, WideFactor)):
            if pending and rows != pending_rows:
                yield pending_rows, False, pending
                pending = []
            pending_rows = rows
            # what each code of each attribute adds to the cell number; never used for unknown values of a wide factor
            shares, stride = [], 1
            for position, n in zip(reversed(inner.positions), reversed(inner.shape), strict=True):
                shares.append((position, stride * np.arange(n + isinstance(inner, WideFactor))))
                stride *= n
            pending.append((shares[::-1], inner.tables.T))
            continue
        if pending:
            yield pending_rows, False, pending
            pending = []
        if not isinstance(inner, PackedTables):
            yield rows, True, None
            return
        # packed tables of rows with unknown values have words of their own
        parts = inner.kept_parts if is_incomplete[id(inner)] else (inner.complete,)
        if parts is None:
            yield rows, True, None
            return
        for part in parts:
            yield rows, True, list(chain.from_iterable(map(_lane_tables, part)))
    if pending:
        yield pending_rows, False, pending


def _unshared(factor: object) -> object:
    return factor.factor if isinstance(factor, SharedFactor) else factor


def _lane_tables(look_ups: LookUps) -> Iterable[_Table]:
    """Yield each lane of a word as a table."""
    bits, words, tables = look_ups
    for lane, entries in enumerate(tables):
        shares = []
        for position, word in words:
            # the lane's part of what each code adds to the word
            share = word.view(f"u{bits // 8}").reshape(len(word), -1)[:, lane].astype(np.intp)
            if share.any():
                shares.append((position, share))
        # a table whose cell is always 0 still needs one attribute
        shares = shares or [(words[0][0], np.zeros(len(words[0][1]), np.intp))]
        yield shares, entries if entries.ndim == 2 else entries[:, None]
