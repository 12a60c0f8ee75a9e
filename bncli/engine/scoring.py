"""Scoring: from the codes of a row to log P(y | x), by adding up one table entry per family.

    S[t, y] = bias[y] + sum over families f of W_f[cell_f(t), y],     log P(y | x_t) = S[t, y] - log sum_c exp S[t, c]

An attribute of a new row can be unknown: a value never seen in training, or a hole where training had none. Such an
attribute has the code one past its last, "unobserved", and every table is expanded by that code along each attribute
before the first row is scored: a row of zeros where the family's own attribute is unknown (the family is left
out), and where a parent is unknown the average over its values with their training frequencies q:

    W_f[unobserved, p, y] = 0        W_f[v, unobserved, y] = sum over values p of q(p) W_f[v, p, y]

with the product of the frequencies for several unknown parents. A family without a child of its own (the
class's parents) averages over all its unknowns. So the inner loop knows nothing of unknowns.

A model that was learnt with holes summed out sums out what it does not know instead, exactly: rows for which that is
more than leaving families out are scored apart (`bncli.engine.summing_out`). Families without the class in them are
looked up for no row; they cancel where everything that they depend on is known.

Decided here: for two classes only the difference S[t, 1] - S[t, 0] is added up. Log-probabilities are class-major,
(K, N), so that every sum runs along memory. Families are not fused into larger tables: that would halve the
look-ups, but they are a hundredth of the cost of scoring a file. Cost per row: a multiplication and an addition
per parent, a look-up per family and class (for two classes: per family), about 2 ns each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bncli.engine.dataset import Codes
from bncli.engine.factors import Averages, Factor, Floats, WideFactor
from bncli.engine.model import Model
from bncli.engine.schema import Attribute, Schema
from bncli.engine.structure import Family
from bncli.engine.summing_out import Network, incomplete_rows, log_joint, network_to_sum

ROWS_PER_BLOCK = 1 << 14
"""Rows scored at a time: their temporaries stay in the second-level cache."""
EXPANDED_ENTRIES = 1 << 20
"""A table is expanded when the result holds at most so many entries, or at most twice as many as before."""


@dataclass(frozen=True)
class Scorer:
    """A model compiled for scoring. `used`: the schema's attributes that it needs, ascending.

    shift (R, 1) and the factors' tables hold R score rows: the K classes, or for K = 2 their difference alone.
    `network`: what rows are scored by that lack something that has to be summed out; None where no row is.
    """

    used: tuple[int, ...]
    n_labels: int
    shift: Floats
    factors: tuple[Factor | WideFactor, ...]
    network: Network | None


def compile_scorer(model: Model) -> Scorer:
    """The model's tables, expanded by the code "unobserved"."""
    tables = model.tables
    used = tuple(sorted({a for family in tables.families for a in family.attributes}))
    factors = tuple(
        _compile_family(family, weights, model.schema, used)
        for family, weights in zip(tables.families, tables.weights, strict=True)
        if family.by_class
    )
    return Scorer(used, tables.bias.size, _score_rows(tables.bias[None, :]), factors, network_to_sum(model))


def _compile_family(family: Family, weights: Floats, schema: Schema, used: tuple[int, ...]) -> Factor | WideFactor:
    positions = tuple(used.index(a) for a in family.attributes)
    averages = tuple(
        None if axis == 0 and family.child is not None else _frequencies(schema.attributes[a])
        for axis, a in enumerate(family.attributes)
    )
    tables = _score_rows(weights)
    shape = tuple(n + 1 for n in family.shape)
    if len(tables) * math.prod(shape) > max(EXPANDED_ENTRIES, 2 * tables.size):
        return WideFactor(positions, family.shape, tables, averages)
    cube = _expand(tables.reshape(-1, *family.shape), averages)
    return Factor(positions, shape, cube.reshape(len(tables), -1))


def _score_rows(weights: Floats) -> Floats:
    """(cells, K) -> (K, cells), or (1, cells) for two classes: second minus first."""
    rows: Floats = np.ascontiguousarray(weights.T)
    if len(rows) == 2:
        rows = rows[1:] - rows[:1]
    return rows


def _frequencies(attribute: Attribute) -> Floats:
    """Training frequencies of the attribute's codes, summing to 1; uniform if nothing was counted."""
    counts = np.array(attribute.frequencies, dtype=np.float64)
    if not counts.sum() > 0:
        counts = np.ones(attribute.cardinality)
    frequencies: Floats = counts / counts.sum()
    return frequencies


def _expand(cube: Floats, averages: Averages) -> Floats:
    """(R, n_1, n_2, ...) -> (R, n_1 + 1, n_2 + 1, ...): the last code of every axis stands for "unobserved"."""
    for axis, frequencies in enumerate(averages, start=1):
        if frequencies is None:
            unobserved = np.zeros_like(cube.take(0, axis))
        else:
            unobserved = np.tensordot(cube, frequencies, axes=(axis, 0))
        cube = np.concatenate([cube, np.expand_dims(unobserved, axis)], axis=axis)
    return cube


def log_probabilities(scorer: Scorer, codes: Sequence[Codes], n_rows: int | None = None) -> Floats:
    """log P(y | x_t), shape (K, N); codes[j] (N,) belongs to attribute scorer.used[j], its cardinality = unobserved.

    `n_rows` is needed only where a model uses no attribute at all.
    """
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


def _look_up(scorer: Scorer, codes: Sequence[Codes], n: int) -> Floats:
    """log P(y | x_t) where the tables have an entry for all that a row shows and does not show."""
    result = np.empty((scorer.n_labels, n))
    scores = np.empty((len(scorer.shift), min(n, ROWS_PER_BLOCK)))
    for start in range(0, n, ROWS_PER_BLOCK):
        stop = min(start + ROWS_PER_BLOCK, n)
        block = scores[:, : stop - start]
        block[:] = scorer.shift
        indices = [column[start:stop].astype(np.intp) for column in codes]
        for factor in scorer.factors:
            factor.add_to(block, indices)
        _normalise(block, result[:, start:stop])
    return result


def _normalise(scores: Floats, out: Floats) -> None:
    """Log-softmax over the classes; for two, from the difference d: log P(1) = min(d, 0) - log(1 + exp(-|d|))."""
    if len(out) == 2:
        difference = scores[0]
        log_sum = np.log1p(np.exp(-np.abs(difference)))
        np.minimum(difference, 0.0, out=out[1])
        np.minimum(-difference, 0.0, out=out[0])
        out -= log_sum
        return
    np.subtract(scores, scores.max(axis=0), out=out)
    out -= np.log(np.exp(out).sum(axis=0))
