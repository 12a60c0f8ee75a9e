"""The conditional log-likelihood of tables, its gradient, and products with its Hessian: passes over complete rows.

    CLL = sum over rows t of w_t ln P(y_t | x_t)
    dCLL / dW_f[c, y] = sum over rows t with cell_f(t) = c of w_t (1[y_t = y] - P(y | x_t))

All tables are one array W of shape (K, n_cells): cell 0 is the bias, then family after family. There are kernels for
two classes and for more, each with look-ups for few rows and classes and with sparse products for many.

A `condensed` likelihood is the same function with less work: equal rows are merged into one row with their total
weight, and cells without rows, whose gradient is 0, are left out. In a network of discretized columns this often
removes most rows and cells: in TAN on shuttle, 15,210 of 58,000 rows are distinct, and 2,029 of 5,681 cells have rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from bncli.engine.counting.fused_codes import Fusion, fuse
from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.kernels import passes
from bncli.engine.kernels.arrays import Array, Codes, Index, Integers
from bncli.engine.kernels.passes import MANY_CLASSES, SOME_CLASSES, Indicators
from bncli.engine.structures.regrouping import with_regrouped_columns
from bncli.engine.structures.structure import Family

FEW_ROWS = 1 << 14
"""With up to this many rows, a fit by look-ups takes no longer than importing scipy.sparse."""
KEPT_BYTES = 200 << 20
"""Sparse matrices are stored up to this total size; beyond it, they are rebuilt in every pass."""
MOST_MERGED = 1 << 18
"""Equal rows are merged only if there are at most this many rows."""
MERGE_WORK, MERGE_WORK_OF_ATTRIBUTE = 100.0, 25.0
"""Approximate nanoseconds per row to find equal rows and to fuse the distinct ones: fixed, and per attribute."""
PASSES = 20.0
"""Merging must pay off within this number of passes."""
SAMPLED, FEW_EQUAL = 1 << 12, 0.02
"""The approximate size of the sample in which equal rows are first looked for, and the minimum fraction of duplicates
in that sample for which merging is tried."""


class _Kernels(NamedTuple):
    """The functions of `kernels.passes` for one kind of rows.

    `value_and_gradient(codes, labels, weights, tables)`; `point(codes, [weights,] tables)` returns what the Hessian
    needs at a point; `product(codes, point, [weights,] tables)` multiplies by the Hessian. Weights are an argument of
    `point` for two classes, and of `product` for more.
    """

    value_and_gradient: Callable[..., tuple[float, Any]]
    point: Callable[..., Any]
    product: Callable[..., Any]
    two_classes: bool
    sparse: bool


_TWO = _Kernels(
    passes.gradient_two_classes,
    passes.curvature_two_classes,
    passes.hessian_two_classes,
    two_classes=True,
    sparse=False,
)
_SOME = _Kernels(passes.gradient_classes, passes.probabilities, passes.hessian_classes, two_classes=False, sparse=False)
_SPARSE_TWO = _Kernels(
    passes.sparse_gradient_two_classes,
    passes.sparse_curvature_two_classes,
    passes.sparse_hessian_two_classes,
    two_classes=True,
    sparse=True,
)
_SPARSE = _Kernels(
    passes.sparse_gradient_classes,
    passes.sparse_probabilities,
    passes.sparse_hessian_classes,
    two_classes=False,
    sparse=True,
)


@dataclass(frozen=True)
class ConditionalLikelihood:
    """The likelihood of rows that are fused for repeated passes.

    `data` and `families` are the original rows and families; only `fusion` has the codes of regrouped attributes.
    `states` has the codes and labels of each block as the kernels need them. With `single`, passes over more than
    MANY_CLASSES classes use single precision. `cells` are the cells that the tables have, as indices among all cells of
    the families, or None if the tables have all of them.
    """

    data: Dataset
    families: tuple[Family, ...]
    fusion: Fusion
    states: list[Any]
    single: bool = False
    cells: Index | None = None

    @property
    def n_cells(self) -> int:
        return self.fusion.n_cells

    @property
    def pass_work(self) -> float:
        """The approximate time of one `value_and_gradient` in nanoseconds."""
        per_class = 8.0 + 2.0 * len(self.fusion.members)
        # sparse products of many classes take about half as long per class as look-ups
        if self.data.n_labels > SOME_CLASSES:
            per_class /= 2
        return 1e5 + self.data.n_rows * (self.data.n_labels - 1) * per_class

    def value_and_gradient(self, cells: Array) -> tuple[float, Array]:
        """Return CLL in nats and its gradient, shape (K, n_cells), at the tables `cells` of the same shape."""
        kernels, operand = _kernels(self.data), self._operand(cells)
        cll, totals = self.data.reduce(_value_and_gradient, kernels, operand, states=self.states)
        return cll, self._gathered(totals)

    def hessian(self, cells: Array) -> Callable[[Array], Array]:
        """Return the map V -> HV, both (K, n_cells), where H is the Hessian of -CLL at `cells`.

        It stores one value per row for K = 2, and K values per row for more classes.
        """
        points = self.data.keep(_point, _kernels(self.data), self._operand(cells), states=self.states)
        return partial(self._product, list(zip(self.states, points, strict=True)))

    def _product(self, states: Sequence[Any], cells: Array) -> Array:
        return self._gathered(self.data.reduce(_product, _kernels(self.data), self._operand(cells), states=states))

    def _operand(self, cells: Array) -> Any:
        """Return the tables that the kernels read: one per group, or one for all groups for sparse products.

        P(y | x) depends only on differences of scores. So the tables hold differences from the first class, except for
        look-ups of more than two classes.
        """
        kernels = _kernels(self.data)
        if kernels is _SOME:
            return self.fusion.expand(cells)
        if kernels is _TWO:
            return [table[0] for table in self.fusion.expand(cells[1:] - cells[:1])]
        differences = cells[1] - cells[0] if kernels is _SPARSE_TWO else np.ascontiguousarray((cells[1:] - cells[0]).T)
        operand = self.fusion.activations @ differences
        return operand.astype(np.float32) if self.single and self.data.n_labels > MANY_CLASSES else operand

    def _gathered(self, totals: Any) -> Array:
        """Turn the sums that the kernels return into cells (K, n_cells)."""
        kernels = _kernels(self.data)
        if kernels is _SOME:
            return self.fusion.gather(totals)
        if kernels is _TWO:
            differences = self.fusion.gather([total[np.newaxis] for total in totals])
        else:
            differences = np.atleast_2d((self.fusion.activations.T @ totals).T)
        # the gradient of the first class, which the kernels leave out: residuals sum to 0 over the classes
        return np.concatenate([-differences.sum(axis=0, keepdims=True), differences])

    @cached_property
    def condensed(self) -> ConditionalLikelihood:
        """The likelihood with equal rows merged, if that saves time, and with only the cells that have rows.

        If neither changes anything, it is this likelihood itself.
        """
        distinct = _distinct_rows(self.data, self.families, self.pass_work)
        likelihood = self if distinct is None else conditional_likelihood(distinct, self.families)
        fusion = likelihood.fusion
        has_rows = np.zeros(fusion.n_cells, bool)
        for members in fusion.members:
            has_rows[members] = True
        if has_rows.all():
            return likelihood
        numbers = np.cumsum(has_rows) - 1
        fewer = Fusion(tuple(numbers[members] for members in fusion.members), fusion.codes, int(has_rows.sum()))
        return replace(likelihood, fusion=fewer, cells=np.flatnonzero(has_rows))

    def variances(self, cells: Array) -> Array:
        """Return the sums of w P(y | x) (1 - P(y | x)) over the rows in each cell, (K, n_cells).

        The data must have more than MANY_CLASSES classes.
        """
        totals = self.data.reduce(_variances, self._operand(cells), states=self.states)
        return np.ascontiguousarray((self.fusion.activations.T @ totals).T)

    def sums(self, row_values: Array) -> Array:
        """Return the sums of `row_values` (k, N) over the rows in each cell, shape (k, n_cells)."""
        bounds = self.data.bounds()
        states = [(codes, row_values[:, a:b]) for codes, (a, b) in zip(self.fusion.codes, bounds, strict=True)]
        return self.fusion.gather(self.data.reduce(_configuration_sums, self.fusion.members, states=states))

    def cell_weights(self) -> Array:
        """Return the weight of the rows in each cell, shape (n_cells,)."""
        totals = self.data.reduce(_configuration_weights, self.fusion.members, states=self.fusion.codes)
        return np.asarray(self.fusion.gather([total[np.newaxis] for total in totals])[0])


def conditional_likelihood(data: Dataset, families: Sequence[Family]) -> ConditionalLikelihood:
    """Return the likelihood of `data`, fused for passes over `families`.

    Memory: one code per row and fused group, and sparse matrices of up to KEPT_BYTES.
    """
    kernels = _kernels(data)
    regrouped, fused = with_regrouped_columns(data, families)
    fusion = fuse(regrouped, fused, _max_configurations(data.n_labels, data.n_rows), interleaved=kernels.sparse)
    sizes = [len(members) for members in fusion.members]
    keep = data.n_rows * len(sizes) * np.dtype(np.int32).itemsize <= KEPT_BYTES
    at_a_time = passes.SPARSE_BLOCK if data.n_labels <= SOME_CLASSES else passes.MANY_CLASSES_BLOCK
    states = data.keep(_state, kernels, sizes, at_a_time, keep, data.n_labels > MANY_CLASSES, states=fusion.codes)
    return ConditionalLikelihood(data, tuple(families), fusion, states)


def _distinct_rows(data: Dataset, families: Sequence[Family], pass_work: float) -> Dataset | None:
    """Return the distinct rows with the total weights of equal ones, or None if that would save too little time.

    Rows are equal if they have the same label and the same values of all attributes in `families`.
    """
    attributes = sorted({attribute for family in families for attribute in family.attributes})
    work = data.n_rows * (MERGE_WORK + MERGE_WORK_OF_ATTRIBUTE * len(attributes))
    if not 0 < data.n_rows <= MOST_MERGED or PASSES * pass_work < work:
        return None
    columns = [data.labels, *(data.codes[attribute] for attribute in attributes)]
    sample = slice(None, None, -(-data.n_rows // SAMPLED))
    keys = _row_keys([column[sample] for column in columns])
    if len(np.unique(keys)) > (1 - FEW_EQUAL) * len(keys):
        return None
    keys = _row_keys(columns)
    order = np.argsort(keys)
    is_first = np.append(True, np.diff(keys[order]) != 0)
    rows = order[is_first]
    numbers = np.empty(data.n_rows, np.intp)
    numbers[order] = np.cumsum(is_first) - 1
    # equal keys of unequal rows are possible, if hardly
    is_merged = all((column == column[rows][numbers]).all() for column in columns)
    if not is_merged or PASSES * pass_work * (1 - len(rows) / data.n_rows) < work:
        return None
    # counted in the order of the rows: sums of weights then do not depend on how the keys were sorted
    return replace(data.take(rows), weights=np.bincount(numbers, data.weights).astype(np.float64))


def _row_keys(columns: Sequence[Codes]) -> Integers:
    """Return a hash of each row: equal rows have equal hashes, and different rows almost never do."""
    factors = np.random.default_rng(0).integers(0, 1 << 63, len(columns), np.uint64) * 2 + 1
    keys = np.zeros(len(columns[0]), np.uint64)
    for column, factor in zip(columns, factors, strict=True):
        keys += column * factor
    return keys


def _max_configurations(n_labels: int, n_rows: int) -> int:
    """Return the maximum number of configurations of a group, whose K tables should fit into a cache of 1 MiB."""
    in_cache = 8192 if n_labels == 2 else 2048 if n_labels <= SOME_CLASSES else 512
    return min(in_cache, max(256, n_rows // 8))


def _kernels(data: Dataset) -> _Kernels:
    if data.n_labels > SOME_CLASSES or data.n_rows > FEW_ROWS:
        return _SPARSE_TWO if data.n_labels == 2 else _SPARSE
    return _TWO if data.n_labels == 2 else _SOME


def _state(
    block: RowBlock, kernels: _Kernels, sizes: Sequence[int], at_a_time: int, keep: bool, single: bool
) -> tuple[Any, Any]:
    """Return the codes of a block, or indicators for sparse products, and its labels, or signs for two classes."""
    if kernels.sparse:
        codes = Indicators(block.state.T, sizes, at_a_time, keep, single=single)
        return codes, np.where(block.labels == 1, 1, -1).astype(np.int8) if kernels.two_classes else block.labels
    if kernels.two_classes:
        return block.state, np.where(block.labels == 1, 1.0, -1.0)
    return block.state, block.labels.astype(np.intp)


def _value_and_gradient(block: RowBlock, kernels: _Kernels, operand: Any) -> tuple[float, Any]:
    codes, labels = block.state
    return kernels.value_and_gradient(codes, labels, block.weights, operand)


def _variances(block: RowBlock, operand: Array) -> Array:
    codes, _labels = block.state
    return passes.sparse_variances(codes, block.weights, operand)


def _point(block: RowBlock, kernels: _Kernels, operand: Any) -> Any:
    codes, _labels = block.state
    return kernels.point(codes, block.weights, operand) if kernels.two_classes else kernels.point(codes, operand)


def _product(block: RowBlock, kernels: _Kernels, operand: Any) -> Any:
    (codes, _labels), point = block.state
    if kernels.two_classes:
        return kernels.product(codes, point, operand)
    return kernels.product(codes, point, block.weights, operand)


def _configuration_sums(block: RowBlock, members: Sequence[Index]) -> list[Array]:
    codes, values = block.state
    return [np.stack([np.bincount(c, row, len(m)) for row in values]) for c, m in zip(codes, members, strict=True)]


def _configuration_weights(block: RowBlock, members: Sequence[Index]) -> list[Array]:
    return [
        np.bincount(codes, block.weights, len(m)).astype(np.float64)
        for codes, m in zip(block.state, members, strict=True)
    ]
