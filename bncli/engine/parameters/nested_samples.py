"""Nested samples of the rows, drawn so that rare cells keep their rows, and weighted so that sums stay what they are.

The sample of about n rows takes row t with probability

    q_t = min(1, n r_t),    r_t = w_t / 2W + w_t l_t / 2L,    l_t = sum over families f of 1 / m_f(cell_f(t), y_t)

and gives it the weight w_t / q_t. m_f(c, y) is the weight of the rows of class y in cell c, the class by itself being a
family of one cell; W is the weight of all rows and L the number of pairs (cell, class) that occur, which is
sum_t w_t l_t. l_t is an upper bound, up to the spread of P(y | x), of the leverage of the row: where rows are drawn by
their leverage, every direction of the Hessian is estimated equally well (Cohen, Lee, Musco, Musco, Peng & Sidford 2015,
Uniform sampling for matrix approximation, ITCS). A cell of a class keeps all of its rows while they are few: its
expected number in the sample is at least n / 2L, or all. The other half is drawn evenly and bounds the weights.

Nested: row t is in the sample iff u_t < q_t for one uniform number u_t, so the smaller samples are parts of the larger.
Weights are scaled class by class to the class's weight in all rows. The numbers are drawn block by block with a
generator of each block's own, so that threads change nothing; memory is that of the largest sample and of a block's
numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.kernels.arrays import Array, Index, Integers
from bncli.engine.parameters.likelihood import ConditionalLikelihood

SEED = 0


@dataclass(frozen=True)
class Growth:
    """How samples grow: from how many rows in all on, and how large the largest and the smallest of them are.

    With P free parameters the largest has rows_per_parameter P rows, but no fewer than least_largest and a `share` of
    all; no more than MOST of all, if these are fewest_per_parameter P. Each of the others has a quarter of the next,
    while that is as many as `least` rows and LEAST_PER_PARAMETER P.
    """

    many_rows: int = 50_000
    rows_per_parameter: int = 16
    fewest_per_parameter: int = 6
    least_largest: int = 1 << 14
    share: float = 1 / 32
    least: int = 1 << 13

    def sizes(self, n_rows: int, n_parameters: int) -> tuple[int, ...]:
        """Return ascending; none where rows are few, or too few for so many parameters."""
        most = int(MOST * n_rows)
        if n_rows < self.many_rows or most < max(self.fewest_per_parameter * n_parameters, self.least_largest):
            return ()
        largest = max(self.rows_per_parameter * n_parameters, self.least_largest, int(n_rows * self.share))
        largest = min(largest, most)
        sizes = [largest]
        while sizes[0] >= RATIO * max(self.least, LEAST_PER_PARAMETER * n_parameters):
            sizes.insert(0, sizes[0] // RATIO)
        return tuple(sizes)


MOST = 1 / 4
"""A sample larger than this share of the rows saves too little."""
RATIO = 4
LEAST_PER_PARAMETER = 16
"""The optimum of fewer rows is no nearer to that of four times as many than the start is."""


class _Drawn(NamedTuple):
    """Row numbers, ascending; the size from which on each is in the sample, u / r; and its r."""

    rows: Index
    places: Array
    rates: Array


def nested_samples(likelihood: ConditionalLikelihood, sizes: Sequence[int]) -> Iterator[Dataset]:
    """Sample of about so many of the likelihood's rows, ascending as `sizes` are; each made when it is asked for."""
    data = likelihood.data
    drawn = _drawn_up_to(likelihood, sizes[-1])
    for n in sizes:
        kept = drawn.places < n
        rows, rates = drawn.rows[kept], drawn.rates[kept]
        weights = 1.0 if data.weights is None else data.weights[rows]
        labels = data.labels[rows]
        expanded = weights / np.minimum(n * rates, 1.0)
        totals = np.bincount(labels, expanded, data.n_labels)
        scale = data.class_counts / np.where(totals > 0, totals, 1.0)
        yield replace(data.take(rows), weights=expanded * scale[labels])


def _drawn_up_to(likelihood: ConditionalLikelihood, n_rows: int) -> _Drawn:
    data, fusion = likelihood.data, likelihood.fusion
    joint = fusion.gather(
        data.reduce(_joint_weights, [len(m) for m in fusion.members], data.n_labels, states=fusion.codes)
    )
    occurring = joint > 0
    inverse = np.zeros(joint.shape)
    inverse[occurring] = 1.0 / joint[occurring]
    tables = [table.T.ravel() for table in fusion.expand(inverse / (2 * np.count_nonzero(occurring)))]
    states = list(enumerate(fusion.codes))
    parts = data.map(_draw, tables, 1.0 / (2.0 * data.total_weight), n_rows, data.n_labels, states=states)
    starts = [a for a, _ in data.bounds()]
    rows = np.concatenate([start + part.rows for start, part in zip(starts, parts, strict=True)])
    return _Drawn(rows, np.concatenate([p.places for p in parts]), np.concatenate([p.rates for p in parts]))


def _joint_weights(block: RowBlock, sizes: Sequence[int], n_labels: int) -> list[Array]:
    """Return the weight of the rows of each class in each configuration, (K, configurations) a group."""
    return [
        np.bincount(_with_labels(codes, block, n_labels), block.weights, n * n_labels)
        .reshape(n, n_labels)
        .T.astype(float)
        for codes, n in zip(block.state, sizes, strict=True)
    ]


def _with_labels(codes: Integers, block: RowBlock, n_labels: int) -> Index:
    return np.asarray(codes, np.intp) * n_labels + block.labels


def _draw(block: RowBlock, tables: Sequence[Array], even: float, n_rows: int, n_labels: int) -> _Drawn:
    number, codes = block.state
    rates = np.full(block.n_rows, even)
    for table, code in zip(tables, codes, strict=True):
        rates += table[_with_labels(code, block, n_labels)]
    if block.weights is not None:
        rates *= block.weights
    places = np.random.default_rng([SEED, number]).random(block.n_rows) / rates
    rows = np.flatnonzero(places < n_rows)
    return _Drawn(rows, places[rows], rates[rows])
