"""Nested samples of the rows in which rare cells keep their rows, with weights that make sums unbiased.

The sample of about n rows takes row t with probability

    q_t = min(1, n r_t),  r_t = w_t / (2 W) + w_t l_t / (2 L),  l_t = sum over families f of 1 / m_f(cell_f(t), y_t)

and gives it the weight w_t / q_t. m_f(c, y) is the weight of the rows of class y in cell c; the class alone counts as a
family of one cell. W is the weight of all rows and L the number of pairs (cell, class) that occur, which is
sum_t w_t l_t. l_t is an upper bound, up to the spread of P(y | x), of the leverage of the row: if rows are drawn by
their leverage, every direction of the Hessian is estimated equally well (Cohen, Lee, Musco, Musco, Peng & Sidford 2015,
Uniform sampling for matrix approximation, ITCS). A pair (cell, class) with few rows keeps them all: the
expected number of its rows in the sample is at least n / (2 L), or all of them. The first term of r_t draws the other
half of the sample evenly, which bounds the weights.

The samples are nested because row t is in a sample if u_t < q_t for a single uniform number u_t. The weights of each
class are scaled to the weight of the class in all rows. Random numbers are drawn block by block, with one generator per
block, so that the number of threads has no effect. Memory: the largest sample and the temporary arrays of a block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.kernels.arrays import Array, Index, Integers
from bncli.engine.parameters.likelihood import ConditionalLikelihood

SEED = 0
MOST = 1 / 4
"""The maximum size of a sample as a fraction of the rows; a larger sample saves too little."""
RATIO = 4
LEAST_PER_PARAMETER = 16
"""With fewer rows per parameter, the optimum of a sample is no closer than the start to the optimum of the next sample,
which is RATIO times as large.
"""


@dataclass(frozen=True)
class Growth:
    """The rules for the sizes of the samples, for data sets of at least `many_rows` rows.

    With P free parameters, the largest sample has rows_per_parameter P rows, but no fewer than `least_largest` and the
    fraction `share` of all rows, and no more than the fraction MOST of them. There are no samples if the fraction MOST
    of all rows is less than fewest_per_parameter P or `least_largest`. Each smaller sample has a quarter of the rows of
    the next one, as long as that is at least `least` and at least LEAST_PER_PARAMETER P.
    """

    many_rows: int = 50_000
    rows_per_parameter: int = 16
    fewest_per_parameter: int = 6
    least_largest: int = 1 << 14
    share: float = 1 / 32
    least: int = 1 << 13

    def sizes(self, n_rows: int, n_parameters: int) -> tuple[int, ...]:
        """Return the sizes in ascending order, or () if there are few rows, or too few for the parameters."""
        most = int(MOST * n_rows)
        if n_rows < self.many_rows or most < max(self.fewest_per_parameter * n_parameters, self.least_largest):
            return ()
        largest = max(self.rows_per_parameter * n_parameters, self.least_largest, int(n_rows * self.share))
        sizes = [min(largest, most)]
        while sizes[0] >= RATIO * max(self.least, LEAST_PER_PARAMETER * n_parameters):
            sizes.insert(0, sizes[0] // RATIO)
        return tuple(sizes)


def weighted_samples(likelihood: ConditionalLikelihood, sizes: Sequence[int]) -> Iterator[Dataset]:
    """Yield samples of the likelihood's rows of about these sizes, which ascend; each is made only when requested."""
    data, fusion = likelihood.data, likelihood.fusion
    configurations = [len(members) for members in fusion.members]
    joint = fusion.gather(data.reduce(_joint_weights, configurations, data.n_labels, states=fusion.codes))
    occurring = joint > 0
    inverse = np.zeros(joint.shape)
    inverse[occurring] = 1.0 / joint[occurring]
    # l_t / 2L of each (configuration, class), numbered as in `_with_labels`; `_draw` adds 1 / 2W and multiplies by w_t
    tables = [table.T.ravel() for table in fusion.expand(inverse / (2 * np.count_nonzero(occurring)))]
    even = 1.0 / (2.0 * data.total_weight)
    parts = data.map(_draw, tables, even, sizes[-1], data.n_labels, states=list(enumerate(fusion.codes)))
    drawn = np.concatenate([start + part[0] for (start, _), part in zip(data.bounds(), parts, strict=True)])
    # u_t < min(1, n r_t) exactly if u_t / r_t < n, as u_t < 1: one number per row decides for every n
    thresholds, rates = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
    for n in sizes:
        taken = thresholds < n
        rows = drawn[taken]
        weights = 1.0 if data.weights is None else data.weights[rows]
        labels = data.labels[rows]
        expanded = weights / np.minimum(n * rates[taken], 1.0)
        totals = np.bincount(labels, expanded, data.n_labels)
        # weights of each class sum to its weight in all rows
        scale = data.class_counts / np.where(totals > 0, totals, 1.0)
        yield replace(data.take(rows), weights=expanded * scale[labels])


def _joint_weights(block: RowBlock, sizes: Sequence[int], n_labels: int) -> list[Array]:
    """Return the weight of the rows of each class in each configuration, (K, configurations) per group."""
    tables = []
    for codes, n in zip(block.state, sizes, strict=True):
        weights = np.bincount(_with_labels(codes, block, n_labels), block.weights, n * n_labels)
        tables.append(weights.reshape(n, n_labels).T.astype(float))
    return tables


def _draw(
    block: RowBlock, tables: Sequence[Array], even: float, n_rows: int, n_labels: int
) -> tuple[Index, Array, Array]:
    """Draw a sample of about `n_rows` rows; return the rows in ascending order, and u / r and r of each.

    A row is in every sample with a size above its u / r.
    """
    number, codes = block.state
    rates = np.full(block.n_rows, even)
    for table, code in zip(tables, codes, strict=True):
        rates += table[_with_labels(code, block, n_labels)]
    if block.weights is not None:
        rates *= block.weights
    thresholds = np.random.default_rng([SEED, number]).random(block.n_rows) / rates
    rows = np.flatnonzero(thresholds < n_rows)
    return rows, thresholds[rows], rates[rows]


def _with_labels(codes: Integers, block: RowBlock, n_labels: int) -> Index:
    return np.asarray(codes, np.intp) * n_labels + block.labels
