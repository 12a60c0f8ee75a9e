"""Preconditioners from the Hessian of the log-likelihood, estimated on a sample of rows at the most frequent cells.

With z_t the indicators of row t's cells, the Hessian of -CLL couples the classes y and y' by

    H_yy' = sum over rows t of w_t P(y | x_t) (1[y = y'] - P(y' | x_t)) z_t z_t'

It is summarised by one matrix of co-occurrences per class, C_y = sum_t w_t q_ty z_t z_t'; see
`bncli.engine.kernels.preconditioning` for what is made of them. A row's q is such that the summary of this row alone,
1[y = y'] q_y - q_y q_y' / sum(q), has the trace of its Hessian:

    q_y = h_y / (1 - sum_k h_k^2 / (sum_k h_k)^2),    h_y = P(y | x) (1 - P(y | x))

Exact for two classes, where q_0 = q_1 = 2 P(0|x) P(1|x), and for uniform P. (P(y | x) in its place is exact for one row
and far too stiff for the sum over rows, most of which leave no doubt about their class.) At W = 0 all C_y are C/K, and
one matrix serves. Later the matrices can be *refreshed* at the present tables; with rare classes or almost separable
data that saves most of the remaining passes.

A preconditioner need not be exact: evenly spaced rows serve, and only the TOP most frequent cells get a dense block.
The others are scaled by their own curvature. Where tables follow predictors, all this is of predictors, not of cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bncli.engine.coordinates import Coordinates, Index
from bncli.engine.dataset import Shard
from bncli.engine.kernels.preconditioning import Precondition, Sample, anchored, cellwise, shared
from bncli.engine.likelihood import ConditionalLikelihood
from bncli.engine.predictors import Predictors

Array = NDArray[np.float64]

TOP = 400
BLOCK_ENTRIES = 1 << 20
"""The dense blocks of all classes together hold at most so many numbers."""
START_ROWS = 1 << 14
REFRESH_ROWS = 1 << 13
REFRESH_WORK = 4e9
"""A refresh samples more rows than REFRESH_ROWS while the multiplications stay under this."""
SAMPLE_BLOCK = 1 << 11


@dataclass(frozen=True)
class Whitening:
    """What the preconditioners of one ascent share: lambda, the weight of every cell (or predictor), the top ones."""

    likelihood: ConditionalLikelihood
    space: Coordinates
    penalty: float
    weights: Array
    top: Index

    def start(self, p: Array) -> Precondition:
        """The preconditioner of uniform P(y | x), in the metric of the space at p."""
        return self._build(p, self._co_occurrences(START_ROWS, None))

    def refresh(self, p: Array) -> Precondition:
        """The preconditioner at the probabilities of p."""
        tables = self.space.tables(p)
        work = 2.0 * len(tables) * len(self.top) ** 2
        return self._build(p, self._co_occurrences(max(REFRESH_ROWS, int(REFRESH_WORK / work)), tables))

    def _build(self, p: Array, grams: Array) -> Precondition:
        bias = int(np.flatnonzero(self.top == 0)[0])  # cell 0 is in every row: its count is the sum of the P(y | x)
        sample = Sample(grams, self.top, np.multiply.outer(grams[:, bias, bias] / self.weights[0], self.weights))
        n_labels = self.likelihood.data.n_labels
        sharing = self.space.sharing
        if sharing is None:
            jacobian = self.space.jacobian(p, self.top)
            curvature = self.space.curvature(p, sample.mass)
            return cellwise(sample, self.space.scale, curvature, jacobian, self.penalty, n_labels)
        if isinstance(sharing, Predictors):
            return anchored(sample, self.penalty, n_labels)
        return shared(sample, sharing.scale, sharing.index, sharing.n_parameters, self.penalty)

    def _co_occurrences(self, max_rows: int, tables: Array | None) -> Array:
        """C_y over the top cells, (1 or K, top, top), scaled up from the sampled rows."""
        fusion, data = self.likelihood.fusion, self.likelihood.data
        position = np.full(len(self.weights), len(self.top))
        position[self.top] = np.arange(len(self.top))
        sharing = self.space.sharing
        if isinstance(sharing, Predictors):
            places = [sharing.active(members, position, len(self.top)) for members in fusion.members]
        else:
            places = [position[members] for members in fusion.members]
        expanded = None if tables is None else fusion.expand(tables)
        stride = max(1, -(-data.n_rows // max_rows))
        mean = data.total_weight / data.n_rows
        total, weight = data.reduce(_grams, places, len(self.top), stride, expanded, mean, states=fusion.codes)
        share = 1.0 / data.n_labels if tables is None else 1.0
        return np.asarray(total * (share * data.total_weight / weight), np.float64)


def whitening(likelihood: ConditionalLikelihood, space: Coordinates, penalty: float) -> Whitening:
    """Choose the top cells by weight, ties to the lower cell; the bias, active in every row, is always among them."""
    weights = likelihood.cell_weights()
    if isinstance(space.sharing, Predictors):
        weights = space.sharing.sums(weights[np.newaxis])[0]
    n_top = min(TOP, int((BLOCK_ENTRIES / likelihood.data.n_labels) ** 0.5))
    top = np.sort(np.argsort(-weights, kind="stable")[:n_top])
    return Whitening(likelihood, space, penalty, weights, top)


def _grams(
    shard: Shard, places: Sequence[Index], n_top: int, stride: int, tables: Sequence[Array] | None, unit: float
) -> tuple[Array, float]:
    """The shard's part of the co-occurrences (1 or K, top, top), and the weight of its sampled rows, in `unit`s."""
    n_blocks = 1 if tables is None or len(tables[0]) == 2 else len(tables[0])
    total = np.zeros((n_blocks, n_top, n_top))
    rows = np.arange(0, shard.n_rows, stride)
    row_weights = np.ones(len(rows)) if shard.weights is None else shard.weights[rows] / unit
    for start in range(0, len(rows), SAMPLE_BLOCK):
        block = rows[start : start + SAMPLE_BLOCK]
        codes = [np.asarray(c[block], np.intp) for c in shard.state]
        indicators = _indicators(codes, places, n_top)
        weights = row_weights[start : start + SAMPLE_BLOCK]
        factors = weights[np.newaxis] if tables is None else _factors(codes, tables) * weights
        for gram, factor in zip(total, factors, strict=True):
            gram += (indicators * factor[:, np.newaxis].astype(np.float32)).T @ indicators
    return total, float(row_weights.sum())


def _indicators(codes: Sequence[Index], places: Sequence[Index], n_top: int) -> NDArray[np.float32]:
    columns = np.concatenate([place[code] for place, code in zip(places, codes, strict=True)], axis=1)
    indicators = np.zeros((len(columns), n_top + 1), np.float32)  # the last column takes all other cells
    indicators[np.arange(len(columns))[:, np.newaxis], columns] = 1.0
    return indicators[:, :n_top]


def _factors(codes: Sequence[Index], tables: Sequence[Array]) -> Array:
    """q, shape (K, rows); for two classes, which have the same, (1, rows)."""
    scores = np.zeros((len(tables[0]), len(codes[0])))
    for table, code in zip(tables, codes, strict=True):
        scores += table[:, code]
    scores -= scores.max(axis=0)
    p = np.exp(scores)
    p /= p.sum(axis=0)
    if len(p) == 2:
        return 2.0 * p[:1] * p[1:]
    h = p * (1.0 - p)
    total = h.sum(axis=0) ** 2
    ratio = total / np.maximum(total - np.square(h).sum(axis=0), np.finfo(float).tiny)
    h *= np.minimum(ratio, 2.0)  # never more, but for rounding: 1 - p is 0 where p is within 1e-16 of 1
    return h
