"""Running a program: forward to the scores, backward to what every table entry contributed.

Forward, slots are filled with probabilities as they are; products of many are divided by their largest entry, whose
logarithm is carried along. Where a number gets too small nevertheless, everything is done again with logarithms.

Backward (reverse accumulation), with adjoint(z) = dV / d ln z of whatever value V the rows make of the scores:

    Contract   adjoint(left[y, x_1, x, i]) += left[y, x_1, x, i] sum over u with i(u) = i, and over the axes that left
               lacks, of right[y, x_1, x, j(u)] adjoint(out[y, x, u]) / out[y, x, u]; the right side likewise
    Join       adjoint(left[y, x, i]) += sum over u with i(u) = i, and over the axes that left lacks, of adjoint(out)
    Look       adjoint(W[y, cell]) += adjoint(out)

Where the adjoint of a score ln P(y, e_t) is w_t, an entry's adjoint is its expected count.

Products of two tables with the first attribute marginalized, and their derivatives.

    out[y, x, u] = sum over x_1 of left[y, x_1, x, u] right[y, x_1, x, u]

x stands for all other axes; either side may lack some of them, and the right one the configurations u. Where the sides
share x_1 alone and the right one lacks u, this is a product of matrices. The product itself is never built.

Cost: 0.7 ns a number of the product for each direction, a tenth of it for matrices.
"""

from __future__ import annotations

import math
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bncli.engine.inference.program import UNIT, CellRange, Contract, Join, ProductOperand, Program, SlotRange
from bncli.engine.kernels.arrays import Array, Index

SMALL = 1e-300
"""Stands for sums of 0: what they are divided into is 0 as well."""


@dataclass(frozen=True)
class Factor:
    """A table of shape (K, one axis for each of `axes`, configurations); a `single` one is without configurations.

    The axes of the product are numbered from 1, which is the attribute to be marginalized.
    """

    table: Array
    axes: tuple[int, ...]
    single: bool

    @property
    def names(self) -> str:
        """The axes as np.einsum takes them: A for the class, Z for configurations."""
        return _named(self.axes) + "Z" * (not self.single)


SHORT = 256
"""Up to so many configurations, all rows of a table are summed by one bincount; beyond it, each by its own."""
SMALL_SCORE = 1e-200
SMALL_ENTRY = 1e-290
"""Below these, what has been lost to the smallest number there is (1e-308) might count."""


class _Product(NamedTuple):
    """What a contraction leaves for the way back: its factors and their contraction; in logs, the product itself."""

    left: Factor
    right: Factor | None
    total: Array


class _TooSmallError(Exception):
    """Probabilities that do not fit into a number."""


@dataclass
class Forward:
    """slots[s] (K, ..., configurations); scales[s] (K, configurations) are logs to be added, None for none."""

    program: Program
    slots: list[Array]
    scales: list[Array | None]
    products: list[_Product]

    def score_slots(self) -> list[Array]:
        """Return scores by class and configuration of every score slot, each (K, configurations)."""
        return [self.slots[score_slot.slot] for score_slot in self.program.score_slots]

    def scale(self, sides: Sequence[ProductOperand | None]) -> Array | None:
        """Return log carried along by a product of tables, (K, configurations)."""
        total = None
        for side in sides:
            scale = None if side is None else self.scales[side.slot]
            if scale is not None and side is not None:
                found = np.take(scale, side.ids, axis=1)
                total = found if total is None else total + found
        return total

    def keep_scale(self, place: SlotRange, scale: Array | None) -> None:
        if scale is None:
            return
        slot = self.slots[place.slot]
        kept = self.scales[place.slot]
        if kept is None:
            kept = self.scales[place.slot] = np.zeros((len(slot), slot.shape[-1]))
        kept[:, place.first : place.last] = scale


def contract(left: Factor, right: Factor | None, n_axes: int) -> Array:
    """Return the sum, shape (K, axes 2 to n_axes, configurations)."""
    if right is None:
        return np.asarray(left.table.sum(axis=1))
    if not _matrices(left, right):
        out = _named(range(2, n_axes + 1)) + "Z"
        return np.asarray(np.einsum(f"{left.names},{right.names}->{out}", left.table, right.table))
    flat = np.matmul(_flat(right).transpose(0, 2, 1), _flat(left))
    order = (*right.axes[1:], *left.axes[1:])
    shape = (len(flat), *right.table.shape[2:], *left.table.shape[2:])
    return (
        np.asarray(flat)
        .reshape(shape)
        .transpose(0, *(1 + order.index(axis) for axis in range(2, n_axes + 1)), len(shape) - 1)
    )


def _matrices(left: Factor, right: Factor) -> bool:
    return right.single and not left.single and set(left.axes) & set(right.axes) == {1}


def _named(axes: Iterable[int]) -> str:
    return "A" + "".join(string.ascii_lowercase[axis - 1] for axis in axes)


def _flat(factor: Factor) -> Array:
    return factor.table.reshape(*factor.table.shape[:2], -1)


def slopes(left: Factor, right: Factor | None, n_axes: int, total: Array, adjoint: Array) -> tuple[Array, Array | None]:
    """Adjoints of the logs of both sides, shaped like their tables, from that of ln(total) = ln(out)."""
    ratio = adjoint / np.maximum(total, SMALL)
    if right is None:
        return left.table * ratio[:, np.newaxis], None
    if not _matrices(left, right):
        out = _named(range(2, n_axes + 1)) + "Z"
        to_left = np.einsum(f"{right.names},{out}->{left.names}", right.table, ratio)
        to_right = np.einsum(f"{left.names},{out}->{right.names}", left.table, ratio)
    else:
        order = (*right.axes[1:], *left.axes[1:])
        flat = ratio.transpose(0, *(axis - 1 for axis in order), n_axes)
        flat = flat.reshape(len(flat), math.prod(right.table.shape[2:]), -1)
        to_left = np.matmul(_flat(right), flat).reshape(left.table.shape)
        to_right = np.matmul(_flat(left), flat.transpose(0, 2, 1)).reshape(right.table.shape)
    to_left *= left.table
    to_right *= right.table
    return to_left, to_right


def forward(program: Program, cells: Array) -> Forward:
    """Fill the slots from the tables `cells`, shape (K, n_cells)."""
    try:
        return _run(program, cells, in_logs=False)
    except _TooSmallError:
        # rare enough to be paid for by doing everything twice
        return _run(program, cells, in_logs=True)


def _run(program: Program, cells: Array, *, in_logs: bool) -> Forward:
    slots = [np.empty((len(cells), *shape)) for shape in program.shapes]
    slots[UNIT][:] = 0.0 if in_logs else 1.0
    for score_slot in program.score_slots:
        slots[score_slot.slot][:, 0] = 0.0
    run = Forward(program, slots, [None] * len(slots), [])
    looked = np.take(cells, program.cells, axis=1)
    if not in_logs:
        np.exp(looked, out=looked)
    for operation in program.operations:
        out = _at(slots, operation.to)
        if isinstance(operation, CellRange):
            out[...] = looked[:, operation.first : operation.last].reshape(out.shape)
        elif isinstance(operation, Join):
            (_join_logs if in_logs else _join)(operation, run, out)
        else:
            (_contract_logs if in_logs else _contract)(operation, run, out)
    return run


def _at(slots: Sequence[Array], place: SlotRange) -> Array:
    return slots[place.slot][..., place.first : place.last]


def _join_logs(operation: Join, run: Forward, out: Array) -> None:
    left, right = _aligned(operation, run.slots)
    np.add(left, right, out=out)


def _aligned(operation: Join | Contract, slots: Sequence[Array]) -> list[Array]:
    """Return tables of both sides with the axes of the product, those that they lack of length 1."""
    sides = [side for side in (operation.left, operation.right) if side is not None]
    return [
        np.expand_dims(
            _taken(side, slots),
            tuple(axis for axis in range(1, operation.n_axes + 1) if axis not in side.axes),
        )
        for side in sides
    ]


def _taken(side: ProductOperand, slots: Sequence[Array]) -> Array:
    """Return the side's tables by configuration of the product; a view where that does."""
    slot = slots[side.slot]
    found: Array = slot[..., side.run] if side.run is not None else np.take(slot, side.ids, axis=-1)
    return found


def _join(operation: Join, run: Forward, out: Array) -> None:
    left, right = _aligned(operation, run.slots)
    np.multiply(left, right, out=out)
    scale = run.scale((operation.left, operation.right))
    if operation.rescale:
        scale = _rescaled(out, scale)
    run.keep_scale(operation.to, scale)


def _rescaled(table: Array, scale: Array | None) -> Array:
    """Divides each configuration's table by its largest entry; returns the logs to be carried along."""
    axes = tuple(range(1, table.ndim - 1))
    most = table.max(axis=axes)
    # after division the lost digits could no longer be seen
    if most.size and float(table.min()) < SMALL_ENTRY:
        raise _TooSmallError
    table /= np.expand_dims(most, axes)
    np.log(most, out=most)
    return np.asarray(most if scale is None else most + scale)


def _contract_logs(operation: Contract, run: Forward, out: Array) -> None:
    """Store the product as one table, exp(logs - max)."""
    tables = _aligned(operation, run.slots)
    product = tables[0].copy() if len(tables) == 1 else tables[0] + tables[1]
    most = product.max(axis=1)
    # the largest exponent is then 0: nothing overflows
    product -= most[:, np.newaxis]
    np.exp(product, out=product)
    total = product.sum(axis=1)
    np.log(total, out=out)
    out += most
    run.products.append(_Product(Factor(product, tuple(range(1, operation.n_axes + 1)), single=False), None, total))


def _contract(operation: Contract, run: Forward, out: Array) -> None:
    left = _factor(operation.left, run.slots, single=False)
    right = None if operation.right is None else _factor(operation.right, run.slots, single=operation.right.single)
    total = contract(left, right, operation.n_axes)
    scale = run.scale((operation.left, operation.right))
    if operation.last:
        if float(total.min()) < SMALL_SCORE:
            raise _TooSmallError
        np.log(total, out=out)
        if scale is not None:
            out += scale
    else:
        out[...] = total
        run.keep_scale(operation.to, _rescaled(out, scale) if operation.rescale else scale)
    run.products.append(_Product(left, right, total))


def _factor(side: ProductOperand, slots: Sequence[Array], *, single: bool) -> Factor:
    table = np.ascontiguousarray(slots[side.slot][..., side.ids[0]]) if single else _taken(side, slots)
    return Factor(table, side.axes, single)


def backward(run: Forward, adjoints: Sequence[Array], n_cells: int) -> Array:
    """dV/dW, shape (K, n_cells), from dV/d(score), shape (K, configurations), of every score slot. Consumes the run."""
    program = run.program
    sums = [np.zeros(slot.shape) for slot in run.slots]
    for score_slot, adjoint in zip(program.score_slots, adjoints, strict=True):
        sums[score_slot.slot] = adjoint
    looked = np.empty((len(run.slots[UNIT]), len(program.cells)))
    for operation in reversed(program.operations):
        out = _at(sums, operation.to)
        if isinstance(operation, CellRange):
            looked[:, operation.first : operation.last] = out.reshape(len(out), -1)
        elif isinstance(operation, Join):
            _collect(sums, operation.left, operation.n_axes, out)
            _collect(sums, operation.right, operation.n_axes, out)
        else:
            _pull_back(operation, run.products.pop(), sums, out)
    return np.array([np.bincount(program.cells, row, n_cells) for row in looked])


def _collect(sums: Sequence[Array], side: ProductOperand, n_axes: int, adjoint: Array) -> None:
    """Add adjoints of a product to those of one of its sides: over the axes that it lacks, and by configuration."""
    if side.slot == UNIT:
        return
    lacks = tuple(axis for axis in range(1, n_axes + 1) if axis not in side.axes)
    _add(sums[side.slot], side, adjoint.sum(axis=lacks) if lacks else adjoint)


def _add(slot: Array, side: ProductOperand, adjoint: Array) -> None:
    """Adjoints by configuration; those of a single one may be summed already."""
    if side.single:
        slot[..., side.ids[0]] += adjoint if adjoint.ndim < slot.ndim else adjoint.sum(axis=-1)
    elif side.run is not None:
        slot[..., side.run] += adjoint
    else:
        table = slot.reshape(-1, slot.shape[-1])
        _scatter(table, side.ids, adjoint.reshape(len(table), -1))


def _scatter(table: Array, ids: Index, rows: Array) -> None:
    """table[:, ids[u]] += rows[:, u] for all u."""
    size = table.shape[1]
    if len(ids) > SHORT:
        for total, row in zip(table, rows, strict=True):
            total += np.bincount(ids, row, size)
    else:
        numbers = np.add.outer(np.arange(len(table)) * size, ids)
        table += np.bincount(numbers.ravel(), rows.ravel(), table.size).reshape(table.shape)


def _pull_back(operation: Contract, product: _Product, sums: Sequence[Array], out: Array) -> None:
    to_left, to_right = slopes(product.left, product.right, operation.n_axes, product.total, out)
    if operation.right is not None and to_right is None:  # the product as a whole
        _collect(sums, operation.left, operation.n_axes, to_left)
        _collect(sums, operation.right, operation.n_axes, to_left)
        return
    _add(sums[operation.left.slot], operation.left, to_left)
    if operation.right is not None and to_right is not None:
        _add(sums[operation.right.slot], operation.right, to_right)
