"""Scoring: from the codes of a row to log P(y | x), by adding up one table entry per family.

    S[t, y] = bias[y] + sum over families f of W_f[cell_f(t), y],     log P(y | x_t) = S[t, y] - log sum_c exp S[t, c]

An attribute of a new row can be unknown: a value never seen in training, or a missing value where training had none.
Such an attribute has the code one past its last, "unobserved", and every table is expanded by that code along each
attribute before the first row is scored: a row of zeros where the family's own attribute is unknown (the family is left
out), and where a parent is unknown the average over its values with their training frequencies q:

    W_f[unobserved, p, y] = 0        W_f[v, unobserved, y] = sum over values p of q(p) W_f[v, p, y]

with the product of the frequencies for several unknown parents. A family without a child of its own (the
class's parents) averages over all its unknowns. So the inner loop knows nothing of unknowns. Where a family looks at
an attribute in a coarser binning, the coarse codes of a row block are looked up once, whichever families share them; an
unknown stays unknown, and coarse codes have the frequencies of what they join.

A model whose policy for missing values is to marginalize does so instead, exactly: rows for which that is more than
leaving families out are scored apart (`prediction.marginalization`). Families without the class in them are looked up
for no row; they cancel where everything that they depend on is known.

A model that is calibrated has a map (`bncli.engine.calibration`) applied to these log-probabilities last.

An average over a path of models (`bncli.engine.kikuchi`) is one pass too: the steps' tables are added up one after the
other, and the probabilities of every step with weight are taken on the way. There, each submodel is
marginalized over what is unknown.

An ensemble is one pass as well: a logarithmic pool is one sum of tables; of a linear one the score rows of its
components stand one above the other, and a family that several of them have is one look-up of all their tables.

Conventions: for two classes only the difference S[t, 1] - S[t, 0] is added up. Log-probabilities are class-major,
(K, N), so that every sum runs along memory. Families are not fused into larger tables: that would halve the
look-ups, but they are a hundredth of the cost of scoring a file. Cost per row: a multiplication and an addition
per parent, a look-up per family and class (for two classes: per family), about 2 ns each.

Rows that do not show all that a network depends on: log P(y | what they show), marginalized over the rest.

    P(y | e) = sum over all values u of the unobserved attributes of P(y, e, u) / sum over c of the same of P(c, e, u)

An unobserved attribute that is nobody's parent has a factor that sums to 1: leaving it out is the sum. Only where a row
lacks an attribute on which another node depends is there more to do; such rows go through `bncli.engine.inference`, all
others are scored by look-ups as ever. Naive Bayes needs nothing but look-ups.

Conventions: rows go through inference so many at a time as keeps its tables small; blocks follow from the rows alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import singledispatch

import numpy as np

from bncli.engine.calibration import CalibrationMap
from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.data.schema import Schema
from bncli.engine.kernels.arrays import Array, Codes, Index
from bncli.engine.model import Ensemble, Model, Path, Pool, Predictor, Tables
from bncli.engine.prediction.factors import (
    LEAST_PROBABILITY,
    RegionFactor,
    SubmodelTensors,
    add_softmax,
    compile_host,
    log_average,
    log_shares,
    log_softmax,
    normalised,
    score_rows,
    stages_of,
)
from bncli.engine.prediction.table_factors import TableFactor, table_factors

MARGINALIZATION_ROWS_PER_BLOCK = 1 << 16


@dataclass(frozen=True)
class Network:
    """The tables of a model as log probabilities; `needed`: attributes on which another node depends, ascending."""

    schema: Schema
    tables: Tables
    needed: tuple[int, ...]


def network_to_marginalize(tables: Tables, schema: Schema) -> Network | None:
    """Return None where the model does not marginalize, or leaving out is all there ever is to do."""
    if not schema.marginalizes:
        return None
    needed = {a for family in tables.families for a in family.attributes[family.child is not None :]}
    return Network(schema, tables, tuple(sorted(needed))) if needed else None


def incomplete_rows(network: Network, codes: dict[int, Codes]) -> Index:
    """Return the rows, ascending, that lack a needed attribute; codes[i] (N,) belongs to schema attribute i."""
    cardinalities = network.schema.cardinalities
    return np.flatnonzero(np.logical_or.reduce([codes[i] == cardinalities[i] for i in network.needed]))


def log_joint(network: Network, codes: dict[int, Codes], rows: Index) -> Array:
    """Return ln P(y, what row t shows) of these rows, shape (K, rows)."""
    blocks = [
        rows[start : start + MARGINALIZATION_ROWS_PER_BLOCK]
        for start in range(0, len(rows), MARGINALIZATION_ROWS_PER_BLOCK)
    ]
    return np.concatenate([_block(network, codes, block) for block in blocks], axis=1)


def _block(network: Network, codes: dict[int, Codes], rows: Index) -> Array:
    from bncli.engine.inference.incomplete_likelihood import IncompleteLikelihood

    nothing: Codes = np.broadcast_to(np.zeros(1, np.uint8), len(rows))
    columns = [codes[i][rows] if i in codes else nothing for i in range(len(network.schema.attributes))]
    likelihood = IncompleteLikelihood(Dataset(network.schema, tuple(columns), nothing), network.tables.families)
    return likelihood.log_joint(network.tables.cells)


ROWS_PER_BLOCK = 1 << 14
"""Rows scored at a time: their temporaries stay in the second-level cache."""


@dataclass(frozen=True)
class Stage:
    """What is added to the scores, shift (R, 1) and factors, and the weight of the probabilities that they then give.

    A score row belongs to a class; for two classes there is one, that of their difference.
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
    """A model compiled for scoring. `used`: the schema's attributes that it needs, ascending.

    One stage, or for an average over a path several, whose tables are added up one after the other. `network`: what
    rows are scored by that lack something that has to be marginalized; None where no row is. regrouped[v] = (position
    in `used`, coarse code of every code, "unobserved" the last): positions of factors count on from `used` to these.
    weights: of the components of a linear pool, whose score rows stand one above the other in the one stage; else ().
    """

    used: tuple[int, ...]
    n_labels: int
    stages: tuple[Stage, ...]
    network: Network | None = None
    regrouped: tuple[tuple[int, Index], ...] = ()
    weights: tuple[float, ...] = ()
    calibration: CalibrationMap | None = None

    def indices(self, codes: Sequence[Codes]) -> list[Index]:
        """Return the codes of a block of rows, followed by those of the regrouped attributes."""
        plain = [column.astype(np.intp) for column in codes]
        return plain + [np.take(table, plain[p], mode="clip") for p, table in self.regrouped]


def compile_scorer(model: Model) -> Scorer:
    """Return everything that the model looks up, expanded by the code "unobserved"."""
    scorer = compile_predictor(model.predictor, model.schema)
    return scorer if model.calibration is None else replace(scorer, calibration=model.calibration.map)


@singledispatch
def compile_predictor(predictor: Predictor, schema: Schema) -> Scorer:
    """Return the scorer of a predictor, by its kind."""
    raise TypeError(f"there is no scorer for {type(predictor).__name__}")


@compile_predictor.register
def _(tables: Tables, schema: Schema) -> Scorer:
    return replace(_compile_tables((tables,), schema), network=network_to_marginalize(tables, schema))


@compile_predictor.register
def _(ensemble: Ensemble, schema: Schema) -> Scorer:
    if ensemble.pool is Pool.LOGARITHMIC:
        return _compile_tables((ensemble.combined,), schema)
    scorer = _compile_tables([component.tables for component in ensemble.components], schema)
    return replace(scorer, weights=tuple(component.weight for component in ensemble.components))


def _compile_tables(models: Sequence[Tables], schema: Schema) -> Scorer:
    """Return the tables of one model, or of several, one stage with all their score rows."""
    used = tuple(sorted({a for m in models for family in m.families for a in family.attributes}))
    shift = np.concatenate([score_rows(tables.bias[None, :]) for tables in models])
    factors, regrouped = table_factors(models, schema, used)
    return Scorer(used, models[0].bias.size, (Stage(1.0, shift, factors),), None, regrouped)


@compile_predictor.register
def _(path: Path, _: Schema) -> Scorer:
    return compile_path(path)


def compile_path(path: Path) -> Scorer:
    """Return the stages of a path (`bncli.engine.prediction.factors`).

    Attributes of steps without weight are not used.
    """
    gathered = stages_of(path)
    hosts = {host for stage in gathered for host, _ in stage.hosts}
    used = tuple(sorted({a for host in hosts for a in path.families[host].attributes}))
    tensors = SubmodelTensors(path)
    stages = []
    for stage in gathered:
        shift = score_rows(stage.class_change * path.class_logs[None, :])
        factors = tuple(compile_host(tensors, host, changes, used) for host, changes in stage.hosts)
        stages.append(Stage(stage.weight, shift, factors))
    return Scorer(used, path.class_logs.size, tuple(stages))


def log_probabilities(scorer: Scorer, codes: Sequence[Codes], n_rows: int | None = None) -> Array:
    """Return log P(y | x_t), shape (K, N).

    Codes[j] (N,) belongs to attribute scorer.used[j], its cardinality = unobserved.

    `n_rows` is needed only where a model uses no attribute at all.
    """
    found = uncalibrated(scorer, codes, n_rows)
    return found if scorer.calibration is None else scorer.calibration.apply(found)


def uncalibrated(scorer: Scorer, codes: Sequence[Codes], n_rows: int | None = None) -> Array:
    """Return what `log_probabilities` says before it is calibrated."""
    n = len(codes[0]) if codes else n_rows or 0
    incomplete = None if scorer.network is None else incomplete_rows(scorer.network, _by_attribute(scorer, codes))
    if scorer.network is None or incomplete is None or not len(incomplete):
        return _look_up(scorer, codes, n)
    complete = np.delete(np.arange(n), incomplete)
    result = np.empty((scorer.n_labels, n))
    result[:, complete] = _look_up(scorer, [column[complete] for column in codes], len(complete))
    joint = log_joint(scorer.network, _by_attribute(scorer, codes), incomplete)
    joint -= joint.max(axis=0)
    result[:, incomplete] = joint - np.log(np.exp(joint).sum(axis=0))
    return result


def _by_attribute(scorer: Scorer, codes: Sequence[Codes]) -> dict[int, Codes]:
    return dict(zip(scorer.used, codes, strict=True))


def _look_up(scorer: Scorer, codes: Sequence[Codes], n: int) -> Array:
    """Return log P(y | x_t) where the tables have an entry for all that a row shows and does not show."""
    result = np.empty((scorer.n_labels, n))
    scores = np.empty((len(scorer.stages[0].shift), min(n, ROWS_PER_BLOCK)))
    for start in range(0, n, ROWS_PER_BLOCK):
        stop = min(start + ROWS_PER_BLOCK, n)
        block = scores[:, : stop - start]
        block[:] = 0.0
        indices = scorer.indices([column[start:stop] for column in codes])
        if scorer.weights:
            scorer.stages[0].add_to(block, indices)
            log_average(np.split(block, len(scorer.weights)), scorer.weights, result[:, start:stop])
        elif len(scorer.stages) == 1:
            scorer.stages[0].add_to(block, indices)
            log_softmax(block, result[:, start:stop])
        else:
            # ln sum over stages of weight softmax_y S; rows with a probability near underflow are done again in logs.
            out = result[:, start:stop]
            out[:] = 0.0
            for stage in scorer.stages:
                stage.add_to(block, indices)
                add_softmax(block, stage.weight, out)
            # near underflow the sum of probabilities has lost digits that logarithms keep
            rare = np.flatnonzero(out.min(axis=0) < LEAST_PROBABILITY)
            log_shares(out)
            if rare.size:
                out[:, rare] = _average_in_logs(scorer.stages, [column[rare] for column in indices], len(out))
    return result


def _average_in_logs(stages: Sequence[Stage], codes: Sequence[Index], n_labels: int) -> Array:
    scores = np.zeros((len(stages[0].shift), len(codes[0])))
    terms = []
    for stage in stages:
        stage.add_to(scores, codes)
        terms.append(np.empty((n_labels, scores.shape[1])))
        log_softmax(scores, terms[-1])
        terms[-1] += math.log(stage.weight)
    return normalised(np.asarray(np.logaddexp.reduce(terms)))


def log_probabilities_of(predictor: Predictor, data: Dataset) -> Array:
    """Return ln P(y | x_t) of every row of a data set, (K, N), whatever the number of threads.

    Unobserved values, coded by the cardinality, are averaged over. Where rows are asked about once, and the tables are
    many and small, this costs a fraction of fusing the rows for them (`bncli.engine.counting.fused_codes`).
    """
    scorer = compile_predictor(predictor, data.schema)
    return np.concatenate(data.map(_of_block, scorer), axis=1)


def _of_block(block: RowBlock, scorer: Scorer) -> Array:
    return log_probabilities(scorer, [block.codes[a] for a in scorer.used], block.n_rows)
