"""Scoring: from the codes of a row to ln P(y | x), by adding up one table entry per family.

    S[t, y] = bias[y] + sum over families f of W_f[cell_f(t), y],     ln P(y | x_t) = S[t, y] - ln sum_c exp S[t, c]

Unknown attributes. An attribute of a new row is unknown if its value never occurred in training, or if it is missing
and training had no missing value. It then has the code one past its last, "unobserved". Before the first row is scored,
every table gets entries for this code along each attribute: 0 if the family's own attribute is unknown (the family is
left out), and the average over its values with their training frequencies q if a parent is unknown,

    W_f[unobserved, p, y] = 0        W_f[v, unobserved, y] = sum over values p of q(p) W_f[v, p, y]

with the product of the frequencies for several unknown parents. A family without a child (the parents of the class) is
averaged over all unknown attributes. So the inner loop treats unknown attributes like any other. If families use an
attribute in a coarser binning, the coarse codes of a block of rows are looked up once; an unknown attribute stays
unknown, and a coarse code has the sum of the frequencies of its codes.

Other models. A model that marginalizes missing values scores rows exactly by inference if leaving families out is not
enough (`prediction.marginalization`). A calibrated model applies its map (`engine.calibration`) to the
log-probabilities last. An average over a path (`engine.kikuchi`) is scored in one pass: the tables of the stages are
added up one after the other, and after each stage its probabilities are added to the average
(`prediction.path_factors`). A logarithmic pool is one sum of tables. In a linear pool the score rows of the components
are stacked, and a family that several of them have is looked up once for all their tables. Families without the class
are never looked up, since they cancel if all attributes are known.

Conventions: with two classes only the difference S[t, 1] - S[t, 0] is added up. Log-probabilities have shape (K, N), so
that sums run over contiguous memory. Families are not fused into larger tables: that would halve the look-ups, but
these are a hundredth of the cost of scoring a file. Cost per row: a multiplication and an addition per parent, and a
look-up per family and class (with two classes: per family), about 2 ns each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bncli.engine.calibration import CalibrationMap
from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.data.schema import Schema
from bncli.engine.kernels.arrays import Array, Codes, Index, sum_in_order
from bncli.engine.model import Model, Path, Pool, Predictor, Tables
from bncli.engine.prediction.factors import Regrouped, TableFactor, score_rows, table_factors
from bncli.engine.prediction.marginalization import (
    NetworkTables,
    incomplete_rows,
    log_joint,
    network_to_marginalize,
)
from bncli.engine.prediction.path_factors import RegionFactor, SubmodelTensors, host_factor, stages_of

ROWS_PER_BLOCK = 1 << 14
"""The number of rows scored at a time, whose temporaries stay in the second-level cache."""
LEAST_PROBABILITY = 1e-280
"""Average probabilities below this one may have lost digits to underflow."""
_TINY = float(np.finfo(np.float64).tiny)
_STEEPEST = 690.0
"""The largest difference of scores d for which neither exp(d) nor exp(-d) over- or underflows, with a margin."""


@dataclass(frozen=True)
class Stage:
    """A step of scoring: a shift (R, 1) and factors to add to the scores; `weight`: that of the probabilities then.

    There is one score row per class, or for two classes one row, their difference.
    """

    weight: float
    shift: Array
    factors: tuple[TableFactor | RegionFactor, ...]

    def add_to(self, scores: Array, codes: Sequence[Index]) -> None:
        """Add to scores (R, rows); codes[p] (rows,) belongs to attribute scorer.used[p]."""
        if self.shift.any():
            scores += self.shift
        for factor in self.factors:
            factor.add_to(scores, codes)


@dataclass(frozen=True)
class Scorer:
    """A model compiled for scoring.

    - used: attributes of the schema that it needs, ascending
    - stages: one, or several for an average over a path, whose tables are added up one after the other
    - network: for rows whose missing values require inference; None if no row can require it
    - regrouped: (position in `used`, coarse code of every code, "unobserved" the last); factors number these attributes
      after those of `used`
    - weights: those of the components of a linear pool, whose score rows are stacked in the single stage
    """

    used: tuple[int, ...]
    n_labels: int
    stages: tuple[Stage, ...]
    network: NetworkTables | None = None
    regrouped: Regrouped = ()
    weights: tuple[float, ...] = ()
    calibration: CalibrationMap | None = None


def compile_scorer(model: Model) -> Scorer:
    """Return the model compiled for scoring."""
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
    """Return a scorer with one stage that has the score rows of all models."""
    used = tuple(sorted({a for tables in models for family in tables.families for a in family.attributes}))
    shift = np.concatenate([score_rows(tables.bias[None, :]) for tables in models])
    factors, regrouped = table_factors(models, schema, used)
    return Scorer(used, models[0].bias.size, (Stage(1.0, shift, factors),), None, regrouped)


def compile_path(path: Path) -> Scorer:
    """Return the scorer of a path, without the attributes that only steps after the last one with weight use."""
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

    codes[j] (N,): those of attribute scorer.used[j]; a code equal to the cardinality means "unobserved". n_rows: needed
    only for a model that uses no attribute.
    """
    log_p = uncalibrated(scorer, codes, n_rows)
    return log_p if scorer.calibration is None else scorer.calibration.apply(log_p)


def uncalibrated(scorer: Scorer, codes: Sequence[Codes], n_rows: int | None = None) -> Array:
    """Return the result of `log_probabilities` before calibration."""
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
            log_average(components, scorer.weights, out)
        elif len(scorer.stages) == 1:
            scorer.stages[0].add_to(block, indices)
            log_softmax(block, out)
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
                out[:, rare] = _log_average_of_stages(scorer.stages, [column[rare] for column in indices], len(out))
    return log_p


def _log_average_of_stages(stages: Sequence[Stage], codes: Sequence[Index], n_labels: int) -> Array:
    scores = np.zeros((len(stages[0].shift), len(codes[0])))
    terms = []
    for stage in stages:
        stage.add_to(scores, codes)
        terms.append(np.empty((n_labels, scores.shape[1])))
        log_softmax(scores, terms[-1])
        terms[-1] += math.log(stage.weight)
    return normalised(np.asarray(np.logaddexp.reduce(terms)))


def log_average(scores: Sequence[Array], weights: Sequence[float], out: Array) -> None:
    """Write the logarithms of averaged probabilities into out (K, rows).

    scores: those of each model, (R, rows). weights: those of the models, which sum to 1.
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
            log_softmax(one[:, rare], term)
            term += math.log(weight)
        out[:, rare] = normalised(np.asarray(np.logaddexp.reduce(terms)))


def log_softmax(scores: Array, out: Array) -> None:
    """Write ln P, from scores (R, rows), into out (K, rows).

    For two classes, whose only score row is the difference d, ln P(1) = min(d, 0) - ln(1 + exp(-|d|)).
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
    """Add `weight` times the probabilities, from scores (R, rows), to out (K, rows).

    With two classes, small probabilities are accurate too.
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
    """Replace each entry of out (K, rows) by the logarithm of its share of the column; a share of 0 counts as _TINY."""
    if len(out) != 2:
        out /= sum_in_order(out)
        np.log(np.maximum(out, _TINY, out=out), out=out)
        return
    # ln of the larger share is -ln(1 + odds) with odds = smaller / larger <= 1; that of the smaller adds ln odds
    second = out[1] > out[0]
    odds = np.minimum(out[0], out[1]) / np.maximum(out[0], out[1])
    larger = np.log1p(odds)
    smaller = np.log(np.maximum(odds, _TINY, out=odds), out=odds)
    np.negative(larger, out=larger)
    smaller += larger
    out[0] = np.where(second, smaller, larger)
    out[1] = np.where(second, larger, smaller)


def normalised(logs: Array) -> Array:
    """Normalise log-probabilities (K, rows) whose probabilities nearly sum to 1; none of the result is above 0."""
    return np.asarray(np.minimum(logs - np.logaddexp.reduce(logs, axis=0), 0.0))


def log_probabilities_of(predictor: Predictor, data: Dataset) -> Array:
    """Return ln P(y | x_t) of every row of a data set, (K, N), independent of the number of threads.

    Codes equal to the cardinality are unobserved. For rows that are scored only once by many small tables, this costs a
    fraction of computing fused codes (`engine.counting.fused_codes`).
    """
    scorer = compile_predictor(predictor, data.schema)
    return np.concatenate(data.map(_score_block, scorer), axis=1)


def _score_block(block: RowBlock, scorer: Scorer) -> Array:
    return log_probabilities(scorer, [block.codes[a] for a in scorer.used], block.n_rows)
