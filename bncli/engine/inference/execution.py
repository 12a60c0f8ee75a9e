"""Run a program: forward to the scores, backward to the derivatives with respect to every table entry.

Forward, slots are filled with probabilities; products of many factors are divided by their largest entry, whose
logarithm is kept. If a number nevertheless becomes too small, everything is computed again with logarithms.

Backward (reverse accumulation), with adjoint(z) = dV / d ln z of a value V that is a function of the scores:

    Contract   adjoint(left[y, x_1, x, i]) += left[y, x_1, x, i] sum over u with i(u) = i, and over the axes that left
               lacks, of right[y, x_1, x, j(u)] adjoint(out[y, x, u]) / out[y, x, u]; the right side likewise
    Join       adjoint(left[y, x, i]) += sum over u with i(u) = i, and over the axes that left lacks, of adjoint(out)
    CellRange  adjoint(W[y, cell]) += adjoint(out)

If the adjoint of a score ln P(y, e_t) is w_t, an entry's adjoint is its expected count.

Contractions are products of two tables with the first attribute marginalized:

    out[y, x, u] = sum over x_1 of left[y, x_1, x, u] right[y, x_1, x, u]

x stands for all other axes; either side may lack some of them, and the right side may lack the configurations u. If the
sides share only x_1 and the right side lacks u, this is a matrix product. The product of the tables is never stored.
Cost: 0.7 ns per number of that product for each direction, a tenth of it for matrix products.
"""

from __future__ import annotations

import math
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bncli.engine.inference.program import UNIT, CellRange, Contract, Join, ProductOperand, Program, SlotRange
from bncli.engine.kernels.arrays import Array

SMALL = 1e-300
"""Replaces divisors of 0, whose dividends are 0 as well."""
SHORT = 256
"""With up to this many configurations, one bincount sums all rows of a table, otherwise one per row."""
SMALL_SCORE = 1e-200
SMALL_ENTRY = 1e-290
"""Below these values, losses by underflow (at 1e-308) might matter."""


class Factor(NamedTuple):
    """A table of shape (K, one axis for each of `axes`, configurations), or without the last axis if `single`.

    The axes of the product are numbered from 1, which is the attribute to be marginalized.
    """

    table: Array
    axes: tuple[int, ...]
    single: bool

    @property
    def names(self) -> str:
        """The axes for np.einsum: A for the class, Z for configurations."""
        return _axis_names(self.axes) + "Z" * (not self.single)


class _Contraction(NamedTuple):
    """The factors and the result of a contraction, stored for the backward pass.

    If logarithms were used, `left` is the whole product and `right` is None.
    """

    left: Factor
    right: Factor | None
    total: Array


class _TooSmallError(Exception):
    """Raised when probabilities underflow."""


@dataclass
class ForwardPass:
    """The state after a forward pass, which the backward pass needs.

    slots[s] is (K, ..., configurations); scales[s] (K, configurations) has logarithms to be added to those of the slot,
    or is None.
    """

    program: Program
    slots: list[Array]
    scales: list[Array | None]
    contractions: list[_Contraction]

    def score_slots(self) -> list[Array]:
        """Return the scores of every score slot, each (K, configurations)."""
        return [self.slots[score_slot.slot] for score_slot in self.program.score_slots]


def forward(program: Program, cells: Array) -> ForwardPass:
    """Fill the slots from the tables `cells`, shape (K, n_cells), and return the state after that."""
    try:
        return _run(program, cells, in_logs=False)
    except _TooSmallError:
        # this is rare enough to compute everything twice
        return _run(program, cells, in_logs=True)


def _run(program: Program, cells: Array, *, in_logs: bool) -> ForwardPass:
    slots = [np.empty((len(cells), *shape)) for shape in program.shapes]
    slots[UNIT][:] = 0.0 if in_logs else 1.0
    for score_slot in program.score_slots:
        # configuration 0 of a score slot: nothing to add
        slots[score_slot.slot][:, 0] = 0.0
    run = ForwardPass(program, slots, [None] * len(slots), [])
    # all cells of the program at once, (K, n); a CellRange takes its part
    looked_up = np.take(cells, program.cells, axis=1)
    if not in_logs:
        np.exp(looked_up, out=looked_up)
    for operation in program.operations:
        out = _range_of(slots, operation.to)
        if isinstance(operation, CellRange):
            out[...] = looked_up[:, operation.first : operation.last].reshape(out.shape)
        elif isinstance(operation, Contract):
            (_contract_logs if in_logs else _contract)(operation, run, out)
        elif in_logs:
            left, right = _aligned(operation, slots)
            np.add(left, right, out=out)
        else:
            left, right = _aligned(operation, slots)
            np.multiply(left, right, out=out)
            scale = _scale_of(run, operation)
            _store_scale(run, operation.to, _rescale(out, scale) if operation.rescale else scale)
    return run


def _contract_logs(operation: Contract, run: ForwardPass, out: Array) -> None:
    """Contract logarithms; the product is stored as one table, exp(logs - max)."""
    tables = _aligned(operation, run.slots)
    product = tables[0].copy() if len(tables) == 1 else tables[0] + tables[1]
    most = product.max(axis=1)
    # the largest exponent is then 0, so that nothing overflows
    product -= most[:, np.newaxis]
    np.exp(product, out=product)
    total = product.sum(axis=1)
    np.log(total, out=out)
    out += most
    whole = Factor(product, tuple(range(1, operation.n_axes + 1)), single=False)
    run.contractions.append(_Contraction(whole, None, total))


def _contract(operation: Contract, run: ForwardPass, out: Array) -> None:
    left = _factor_of_side(operation.left, run.slots, single=False)
    right = (
        None if operation.right is None else _factor_of_side(operation.right, run.slots, single=operation.right.single)
    )
    total = contract(left, right, operation.n_axes)
    scale = _scale_of(run, operation)
    if operation.last:
        if float(total.min()) < SMALL_SCORE:
            raise _TooSmallError
        np.log(total, out=out)
        if scale is not None:
            out += scale
    else:
        out[...] = total
        _store_scale(run, operation.to, _rescale(out, scale) if operation.rescale else scale)
    run.contractions.append(_Contraction(left, right, total))


def _factor_of_side(side: ProductOperand, slots: Sequence[Array], *, single: bool) -> Factor:
    table = np.ascontiguousarray(slots[side.slot][..., side.ids[0]]) if single else _operand_entries(side, slots)
    return Factor(table, side.axes, single)


def _aligned(operation: Join | Contract, slots: Sequence[Array]) -> list[Array]:
    """Return the tables of both sides with all axes of the product; axes that a side lacks have length 1."""
    tables = []
    for side in (operation.left, operation.right):
        if side is not None:
            lacking = tuple(axis for axis in range(1, operation.n_axes + 1) if axis not in side.axes)
            tables.append(np.expand_dims(_operand_entries(side, slots), lacking))
    return tables


def _operand_entries(side: ProductOperand, slots: Sequence[Array]) -> Array:
    """Return the side's table for each configuration of the product; a view if the configurations are consecutive."""
    slot = slots[side.slot]
    table: Array = slot[..., side.run] if side.run is not None else np.take(slot, side.ids, axis=-1)
    return table


def _range_of(slots: Sequence[Array], place: SlotRange) -> Array:
    return slots[place.slot][..., place.first : place.last]


def _scale_of(run: ForwardPass, operation: Join | Contract) -> Array | None:
    """Return the sum of both sides' scales, (K, configurations), or None if neither has any."""
    total = None
    for side in (operation.left, operation.right):
        slot_scale = None if side is None else run.scales[side.slot]
        if slot_scale is not None and side is not None:
            scale = np.take(slot_scale, side.ids, axis=1)
            total = scale if total is None else total + scale
    return total


def _store_scale(run: ForwardPass, place: SlotRange, scale: Array | None) -> None:
    if scale is None:
        return
    slot, slot_scale = run.slots[place.slot], run.scales[place.slot]
    if slot_scale is None:
        slot_scale = run.scales[place.slot] = np.zeros((len(slot), slot.shape[-1]))
    slot_scale[:, place.first : place.last] = scale


def _rescale(table: Array, scale: Array | None) -> Array:
    """Divide each configuration's table by its largest entry; return the logarithms, added to `scale`."""
    axes = tuple(range(1, table.ndim - 1))
    most = table.max(axis=axes)
    # after the division the loss of digits could not be detected
    if most.size and float(table.min()) < SMALL_ENTRY:
        raise _TooSmallError
    table /= np.expand_dims(most, axes)
    np.log(most, out=most)
    return np.asarray(most if scale is None else most + scale)


def contract(left: Factor, right: Factor | None, n_axes: int) -> Array:
    """Multiply both factors and sum over the first attribute; return (K, axes 2 to n_axes, configurations)."""
    if right is None:
        return np.asarray(left.table.sum(axis=1))
    if not _is_matrix_product(left, right):
        out = _axis_names(range(2, n_axes + 1)) + "Z"
        # sum over x_1, both factors having one table per configuration Z
        return np.asarray(np.einsum(f"{left.names},{right.names}->{out}", left.table, right.table))
    # sum over x_1: (K, axes of right, x_1) times (K, x_1, axes of left and configurations)
    flat = np.asarray(np.matmul(_as_matrices(right).transpose(0, 2, 1), _as_matrices(left)))
    # the axes of the product, (K, axes of right, axes of left, configurations), are put in their order
    order = (*right.axes[1:], *left.axes[1:])
    table = flat.reshape(len(flat), *right.table.shape[2:], *left.table.shape[2:])
    return table.transpose(0, *(1 + order.index(axis) for axis in range(2, n_axes + 1)), table.ndim - 1)


def contraction_adjoints(
    left: Factor, right: Factor | None, n_axes: int, total: Array, adjoint: Array
) -> tuple[Array, Array | None]:
    """Return the adjoints of the logarithms of both factors, in their shapes, from the adjoint of ln(total)."""
    ratio = adjoint / np.maximum(total, SMALL)
    if right is None:
        return left.table * ratio[:, np.newaxis], None
    if not _is_matrix_product(left, right):
        out = _axis_names(range(2, n_axes + 1)) + "Z"
        # d ln(total) / d ln(entry) is the share of the total that has the entry as a factor
        to_left = np.einsum(f"{right.names},{out}->{left.names}", right.table, ratio)
        to_right = np.einsum(f"{left.names},{out}->{right.names}", left.table, ratio)
    else:
        # as in `contract`: (K, axes of right, axes of left and configurations)
        order = (*right.axes[1:], *left.axes[1:])
        flat = ratio.transpose(0, *(axis - 1 for axis in order), n_axes)
        flat = flat.reshape(len(flat), math.prod(right.table.shape[2:]), -1)
        to_left = np.matmul(_as_matrices(right), flat).reshape(left.table.shape)
        to_right = np.matmul(_as_matrices(left), flat.transpose(0, 2, 1)).reshape(right.table.shape)
    to_left *= left.table
    to_right *= right.table
    return to_left, to_right


def _is_matrix_product(left: Factor, right: Factor) -> bool:
    return right.single and not left.single and set(left.axes) & set(right.axes) == {1}


def _axis_names(axes: Iterable[int]) -> str:
    return "A" + "".join(string.ascii_lowercase[axis - 1] for axis in axes)


def _as_matrices(factor: Factor) -> Array:
    return factor.table.reshape(*factor.table.shape[:2], -1)


def backward(run: ForwardPass, adjoints: Sequence[Array], n_cells: int) -> Array:
    """Return dV/dW, (K, n_cells), from dV/d(score), (K, configurations), of every score slot.

    The forward pass cannot be used again afterwards.
    """
    program = run.program
    sums = [np.zeros(slot.shape) for slot in run.slots]
    for score_slot, adjoint in zip(program.score_slots, adjoints, strict=True):
        # nothing else uses a score slot, so its adjoint is set, not added
        sums[score_slot.slot] = adjoint
    looked_up = np.empty((len(run.slots[UNIT]), len(program.cells)))
    for operation in reversed(program.operations):
        out = _range_of(sums, operation.to)
        if isinstance(operation, CellRange):
            looked_up[:, operation.first : operation.last] = out.reshape(len(out), -1)
            continue
        to_left, to_right, sides = out, out, (operation.left, operation.right)
        is_whole = isinstance(operation, Join)
        if isinstance(operation, Contract):
            left, right, total = run.contractions.pop()
            to_left, own_right = contraction_adjoints(left, right, operation.n_axes, total, out)
            # if logarithms were used, both sides have the adjoint of the whole product
            is_whole = operation.right is not None and own_right is None
            to_right = to_left if own_right is None else own_right
        for side, adjoint in zip(sides, (to_left, to_right), strict=True):
            if side is None or side.slot == UNIT:
                continue
            lacking = tuple(axis for axis in range(1, operation.n_axes + 1) if axis not in side.axes)
            _add_adjoint(sums[side.slot], side, adjoint.sum(axis=lacking) if is_whole and lacking else adjoint)
    return np.array([np.bincount(program.cells, row, n_cells) for row in looked_up])


def _add_adjoint(slot: Array, side: ProductOperand, adjoint: Array) -> None:
    """Add the adjoints of a product's configurations to those of a slot.

    For a `single` operand, they may be summed over the configurations already.
    """
    if side.single:
        slot[..., side.ids[0]] += adjoint if adjoint.ndim < slot.ndim else adjoint.sum(axis=-1)
    elif side.run is not None:
        slot[..., side.run] += adjoint
    else:
        # slot[..., ids[u]] += adjoint[..., u] for all u
        table = slot.reshape(-1, slot.shape[-1])
        rows, size = adjoint.reshape(len(table), -1), slot.shape[-1]
        if len(side.ids) > SHORT:
            for total, row in zip(table, rows, strict=True):
                total += np.bincount(side.ids, row, size)
        else:
            # positions in the flattened table: row * size + id
            numbers = np.add.outer(np.arange(len(table)) * size, side.ids)
            table += np.bincount(numbers.ravel(), rows.ravel(), table.size).reshape(table.shape)
