"""The exact likelihood of tables on rows with missing values, which are marginalized.

    CLL = sum over rows t of w_t ln P(y_t | e_t),    LL = sum over rows t of w_t ln P(y_t, e_t)
    P(y, e_t) = sum over completions x of e_t of exp(W_0[y] + sum over families f of W_f[cell_f(x), y])

e_t are the observed codes of row t; a missing value has the code one past the last. The W are the logarithms of
conditional probability tables (CPTs), one for every node of the network. Let r[t, y] be the derivative of the CLL or LL
with respect to ln P(y, e_t), which is w_t (1[y_t = y] - P(y | e_t)) for CLL and w_t 1[y_t = y] for LL. Then

    d/dW_f[c, y] = sum over rows t of r[t, y] P(cell_f = c | e_t, y)

(Greiner, Su, Shen & Zhou 2005, Machine Learning 59, where W depends on free parameters: the chain rule follows.)

A family whose attributes are all observed in a row is scored by a look-up, fused with others as for complete rows; if
this holds for all families, nothing else is needed. The other families that a row needs are compiled once into a
program: for CLL, the families on which P(class | e_t) depends; for LL, the families that are not barren. A family is
barren in a row if its child and all descendants of its child are missing. A barren family gets no expected counts
(theta times the counts of its parents would be right, but that has no effect in a maximisation).

Memory: the rows of a block are compiled in groups whose tables take at most 256 MiB.

Programs are run forward to the scores, and backward to the derivatives with respect to every table entry. In the
forward pass, slots are filled with probabilities. Products of many factors are divided by their largest entry, whose
logarithm is stored. If a value nevertheless becomes too small, everything is computed again with logarithms.

Backward pass (reverse accumulation), with adjoint(z) = dV / d ln z of a value V that is a function of the scores:

    Contract   adjoint(left[y, x_1, x, i]) += left[y, x_1, x, i] sum over u with i(u) = i, and over the axes that left
               lacks, of right[y, x_1, x, j(u)] adjoint(out[y, x, u]) / out[y, x, u]; the right side likewise
    Join       adjoint(left[y, x, i]) += sum over u with i(u) = i, and over the axes that left lacks, of adjoint(out)
    CellRange  adjoint(W[y, cell]) += adjoint(out)

If the adjoint of a score ln P(y, e_t) is w_t, an entry's adjoint is its expected count.

Contractions are products of two tables with the first attribute marginalized:

    out[y, x, u] = sum over x_1 of left[y, x_1, x, u] right[y, x_1, x, u]

x stands for all other axes; either side may lack some of them, and the right side may lack the configurations u. If the
sides share only x_1 and the right side lacks u, this is a matrix product. The product of the tables is stored only if
logarithms are used. Cost: 0.7 ns per entry of that product for each direction, a tenth of it for matrix products.
"""

from __future__ import annotations

import itertools
import math
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bncli.engine.counting.fused_codes import Fusion, fuse
from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.data.schema import Schema
from bncli.engine.inference.program import (
    UNIT,
    CellRange,
    Contract,
    Join,
    Limits,
    ProductOperand,
    Program,
    SlotRange,
    TooManyError,
    TooWideError,
    compile_rows,
    elimination_order,
    requisite,
    supporting,
)
from bncli.engine.kernels import passes
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.structures.structure import Family
from bncli.errors import BncliError

IN_CACHE = 4096
"""The maximum number of configurations of a group, so that their score differences stay in a cache of 1 MiB.

With more than two classes it is half of this, and with few rows less: an eighth of the rows, but at least 256.
"""
MAX_TABLE = 1 << 24
"""The maximum number of entries, over all classes, of the table of one configuration; larger ones are refused."""
MAX_PROGRAM = 1 << 24
"""The maximum number of entries of all tables of rows compiled together (8 bytes each, and again for derivatives)."""
NANOSECONDS = 8.0
"""The approximate time per entry of a forward and a backward pass together, in nanoseconds."""
SMALL = 1e-300
"""The smallest divisor; where a divisor is 0, its dividend is 0 as well."""
SHORT = 256
"""With up to this many configurations, one bincount sums all rows of a table; with more, there is one per row."""
SMALL_SCORE = 1e-200
SMALL_ENTRY = 1e-290
"""Below these limits for P(y, e_t) and for entries of tables to be rescaled, underflow (at 1e-308) may lose digits."""


class PassSize(NamedTuple):
    """The number of entries of all tables and products of a pass, and the attributes of the largest table.

    The entries are counted over all classes.
    """

    entries: int
    widest: tuple[int, ...]


@dataclass(frozen=True)
class IncompleteLikelihood:
    """The likelihood of rows under the families of a whole network (`Dag.families` with `all_factors`).

    joint: whether `value_and_gradient` and `work` refer to LL instead of CLL. These two and `log_joint` raise
    BncliError if marginalizing the missing values of some row needs too large a table. All tables together are one
    array of shape (K, n_cells), as in `Tables.cells`: W_0, then family after family.
    """

    data: Dataset
    families: tuple[Family, ...]
    joint: bool = False

    @property
    def work(self) -> PassSize:
        """The size of one call of `value_and_gradient`."""
        blocks = (self._joint if self.joint else self._conditional).blocks
        programs = [compiled.program for block in blocks for compiled in block]
        cardinalities = self.data.schema.cardinalities
        scopes = (program.widest for program in programs)
        widest = max(scopes, key=lambda scope: math.prod(cardinalities[a] for a in scope), default=())
        return PassSize(self.data.n_labels * sum(program.work for program in programs), widest)

    def value_and_gradient(self, cells: Array) -> tuple[float, Array]:
        """Return CLL or LL in nats and its gradient, shape (K, n_cells), at the tables `cells` of the same shape.

        The gradient of LL is the expected count of every cell and class, except for cells of barren families.
        """
        observed, blocks = self._joint if self.joint else self._conditional
        tables = observed.expand(cells)
        value, totals, gradient = self.data.reduce(_value_and_gradient, cells, tables, not self.joint, states=blocks)
        return value, observed.gather(totals) + gradient

    def log_joint(self, cells: Array) -> Array:
        """Return ln P(y, e_t), shape (K, N), at the tables `cells` (K, n_cells)."""
        observed, blocks = self._joint
        return np.concatenate(self.data.map(_log_joint, cells, observed.expand(cells), states=blocks), axis=1)

    @cached_property
    def _conditional(self) -> CompiledBlocks:
        return _compile_all(self.data, self.families, conditional=True)

    @cached_property
    def _joint(self) -> CompiledBlocks:
        return _compile_all(self.data, self.families, conditional=False)


class CompiledBlocks(NamedTuple):
    """The compiled rows of all blocks, for P(class | e_t) or P(class, e_t).

    observed: the look-ups of observed families. blocks[s]: the groups of compiled rows of block s.
    """

    observed: ObservedFamilies
    blocks: list[list[CompiledRows]]


class CompiledRows(NamedTuple):
    """Rows of a block that were compiled together.

    rows: their indices in the block. labels: their class codes. signs: 1 for rows of the second class, -1 for all
    others. codes: one array (rows,) per group of fused families, then one per score slot of the program.
    """

    rows: Index
    program: Program
    labels: Index
    signs: Array
    codes: list[Index]


@dataclass(frozen=True)
class ObservedFamilies:
    """The fused look-ups of families, for rows in which all attributes of the family are observed.

    An attribute with missing values has one more code, so the table of a family is padded with cells that hold 0; for
    rows in these cells a program computes the family's contribution. Cell own[i] of the original tables is cell
    padded[i] of the padded tables.
    """

    fusion: Fusion
    own: Index
    padded: Index
    n_cells: int

    def expand(self, cells: Array) -> list[Array]:
        """Return the tables of the groups, each (K, configurations), from cells (K, n_cells)."""
        padded = np.zeros((len(cells), self.fusion.n_cells))
        padded[:, self.padded] = cells[:, self.own]
        return self.fusion.expand(padded)

    def gather(self, tables: Sequence[Array]) -> Array:
        """Apply the transpose of `expand`: sum the tables of the groups into cells (K, n_cells)."""
        cells = np.zeros((len(tables[0]), self.n_cells))
        cells[:, self.own] = self.fusion.gather(tables)[:, self.padded]
        return cells


def _value_and_gradient(
    block: RowBlock, cells: Array, tables: list[Array], conditional: bool
) -> tuple[float, list[Array], Array]:
    """Return the contribution of a block to CLL or LL, and its derivatives with respect to group tables and cells.

    tables[g] (K, configurations): the table of group g; its derivatives have the same shape. cells (K, n_cells): all
    tables; the derivatives with respect to cells are those that come from programs.
    """
    value, totals, gradient = 0.0, [np.zeros(table.shape) for table in tables], np.zeros(cells.shape)
    for compiled in block.state:
        run = forward(compiled.program, cells)
        weights = None if block.weights is None else block.weights[compiled.rows]
        # lists: one table per group, then one per score slot; a row's score is the sum of its entries
        scores = tables + run.score_slots()
        if not conditional:
            # the derivatives of LL are the weights of the rows of each class and configuration
            slopes = []
            for codes, table in zip(compiled.codes, scores, strict=True):
                counts = np.bincount(compiled.labels * table.shape[1] + codes, weights, table.size)
                slopes.append(counts.astype(float).reshape(table.shape))
            part = sum(float(np.vdot(slope, table)) for slope, table in zip(slopes, scores, strict=True))
        elif len(cells) == 2:
            differences = [table[1] - table[0] for table in scores]
            part, slopes = passes.gradient_two_classes(compiled.codes, compiled.signs, weights, differences)
            # the gradient of the first class is the negative gradient of the second
            slopes = [np.stack([-slope, slope]) for slope in slopes]
        else:
            part, slopes = passes.gradient_classes(compiled.codes, compiled.labels, weights, scores)
        value += part
        for total, slope in zip(totals, slopes[: len(tables)], strict=True):
            total += slope
        if compiled.program.score_slots:
            # slopes of the score slots are adjoints of the program's results
            gradient += backward(run, slopes[len(tables) :], cells.shape[1])
    return value, totals, gradient


def _log_joint(block: RowBlock, cells: Array, tables: list[Array]) -> Array:
    """Return ln P(y, e_t), shape (K, rows), for the rows of a block; arguments as in `_value_and_gradient`."""
    scores = np.zeros((len(cells), block.n_rows))
    for compiled in block.state:
        score_slots = forward(compiled.program, cells).score_slots()
        for codes, table in zip(compiled.codes, tables + score_slots, strict=True):
            scores[:, compiled.rows] += np.take(table, codes, axis=1)
    return scores


class _Plan(NamedTuple):
    """The inputs of compilation besides the rows.

    hidden: the attributes that are missing in some row. order: their elimination order. conditional: whether programs
    are for P(class | e_t) rather than P(class, e_t).
    """

    schema: Schema
    families: tuple[Family, ...]
    hidden: tuple[int, ...]
    order: tuple[int, ...]
    conditional: bool


def _compile_all(data: Dataset, families: tuple[Family, ...], *, conditional: bool) -> CompiledBlocks:
    members = sorted({attribute for family in families for attribute in family.attributes})
    cardinalities = {a: n for family in families for a, n in zip(family.attributes, family.shape, strict=True)}
    hidden = tuple(sorted(set().union(*data.map(_hidden_attributes, members, cardinalities))))
    cliques = [[a for a in family.attributes if a in hidden] for family in families]
    order = elimination_order(cliques, {a: cardinalities[a] for a in hidden})
    # the families that are counted are fused
    counted = [family.by_class or not conditional for family in families]
    starts = np.cumsum([1, *(family.n_cells for family in families)])
    own, padded, wide = [np.zeros(1, np.intp)], [np.zeros(1, np.intp)], []
    start = 1
    for family, first in zip(itertools.compress(families, counted), itertools.compress(starts, counted), strict=True):
        # one more code for missing values
        shape = tuple(n + (a in hidden) for a, n in zip(family.attributes, family.shape, strict=True))
        wide.append(replace(family, shape=shape))
        own.append(first + np.arange(family.n_cells))
        cells = np.arange(start, start + wide[-1].n_cells).reshape(shape)
        # the padded cells without a missing value, in the order of the table's cells
        padded.append(cells[tuple(slice(n) for n in family.shape)].ravel())
        start += wide[-1].n_cells
    most = min(IN_CACHE if data.n_labels == 2 else IN_CACHE // 2, max(256, data.n_rows // 8))
    observed = ObservedFamilies(fuse(data, wide, most), np.concatenate(own), np.concatenate(padded), int(starts[-1]))
    plan = _Plan(data.schema, families, hidden, tuple(order), conditional)
    blocks = data.map(_compile, plan, states=observed.fusion.codes)
    return CompiledBlocks(replace(observed, fusion=replace(observed.fusion, codes=())), blocks)


def _hidden_attributes(block: RowBlock, members: Sequence[int], cardinalities: dict[int, int]) -> set[int]:
    """Return the attributes that are unobserved in some row of the block."""
    return {a for a in members if block.n_rows and block.codes[a].max() >= cardinalities[a]}


def _compile(block: RowBlock, plan: _Plan) -> list[CompiledRows]:
    """Compile the rows of a block, in one group or, if the limits require it, in several."""
    compiled: list[CompiledRows] = []
    waiting = [np.arange(block.n_rows)]
    while waiting:
        rows = waiting.pop()
        try:
            compiled.append(_compile_rows(block, rows, plan))
        except TooManyError:
            # Rows that differ in whether an attribute is hidden share few tables, the fewer the later it is eliminated.
            # Both parts must be large enough to be worth a program of their own; otherwise the rows are halved.
            for attribute in reversed(plan.order):
                hidden = block.codes[attribute][rows] >= plan.schema.cardinalities[attribute]
                if min(np.count_nonzero(hidden), np.count_nonzero(~hidden)) > len(rows) // 8:
                    waiting += [rows[hidden], rows[~hidden]]
                    break
            else:
                waiting += [rows[len(rows) // 2 :], rows[: len(rows) // 2]]
    return compiled


def _compile_rows(block: RowBlock, rows: Index, plan: _Plan) -> CompiledRows:
    schema, n_labels = plan.schema, len(plan.schema.labels)
    codes = {a: block.codes[a][rows] for family in plan.families for a in family.attributes}
    hidden = {a: codes[a] >= schema.cardinalities[a] for a in plan.hidden}
    needed = (requisite if plan.conditional else supporting)(plan.families, hidden, len(rows))
    limits = Limits(MAX_TABLE // n_labels, MAX_PROGRAM // n_labels)
    try:
        program = compile_rows(plan.families, needed, codes, hidden, plan.order, limits)
    except TooWideError as error:
        names = [schema.attributes[attribute].name for attribute in error.scope]
        listed = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        what = "the missing values of a row must be marginalized over a table that is too large"
        raise BncliError(
            f"{what}: {listed} are missing together",
            hint="learn with fewer parents, or with --missing-policy level, which treats missing as a further level",
        ) from None
    labels = block.labels[rows].astype(np.intp)
    # codes in the groups of observed families, then in the score slots of the program
    fused = [np.asarray(group[rows]) for group in block.state]
    signs = np.where(labels == 1, 1.0, -1.0)
    return CompiledRows(rows, program, labels, signs, fused + [score_slot.codes for score_slot in program.score_slots])


class Factor(NamedTuple):
    """A table of shape (K, one axis for each of `axes`, configurations), or without the last axis if `single`.

    The axes of the product are numbered from 1; axis 1 is the attribute to be marginalized.
    """

    table: Array
    axes: tuple[int, ...]
    single: bool

    @property
    def names(self) -> str:
        """The names of the axes for np.einsum: A for the class, a, b, ... for attributes, Z for configurations."""
        return _axis_names(self.axes) + "Z" * (not self.single)


class _Contraction(NamedTuple):
    """The factors and the result of a contraction, stored for the backward pass.

    `right` is None if there is a single factor. It is also None if logarithms were used; then `left` is the whole
    product, divided by its largest entries.
    """

    left: Factor
    right: Factor | None
    total: Array


class _TooSmallError(Exception):
    """Raised when probabilities are so small that underflow may have lost digits."""


@dataclass
class ForwardPass:
    """The state after a forward pass, which the backward pass needs.

    slots[s]: the entries of slot s, (K, ..., configurations), or their logarithms if underflow required them; score
    slots always hold logarithms. scales[s] (K, configurations): terms to add to the logarithms of these entries, or
    None if there are none.
    """

    program: Program
    slots: list[Array]
    scales: list[Array | None]
    contractions: list[_Contraction]

    def score_slots(self) -> list[Array]:
        """Return the scores of every score slot, each (K, configurations)."""
        return [self.slots[score_slot.slot] for score_slot in self.program.score_slots]


def forward(program: Program, cells: Array) -> ForwardPass:
    """Run a program forward on the tables `cells`, shape (K, n_cells), and return the resulting state."""
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
        out = slots[operation.to.slot][..., operation.to.first : operation.to.last]
        if isinstance(operation, CellRange):
            out[...] = looked_up[:, operation.first : operation.last].reshape(out.shape)
        elif isinstance(operation, Contract) and in_logs:
            # the product is stored as one table, exp(logs - max)
            tables = _aligned(operation, slots)
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
        elif isinstance(operation, Contract):
            left = Factor(_operand_entries(operation.left, slots), operation.left.axes, single=False)
            right, side = None, operation.right
            if side is not None and side.single:
                right = Factor(np.ascontiguousarray(slots[side.slot][..., side.ids[0]]), side.axes, single=True)
            elif side is not None:
                right = Factor(_operand_entries(side, slots), side.axes, single=False)
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
        elif in_logs:
            first, second = _aligned(operation, slots)
            np.add(first, second, out=out)
        else:
            first, second = _aligned(operation, slots)
            np.multiply(first, second, out=out)
            scale = _scale_of(run, operation)
            _store_scale(run, operation.to, _rescale(out, scale) if operation.rescale else scale)
    return run


def _aligned(operation: Join | Contract, slots: Sequence[Array]) -> list[Array]:
    """Return the table of each side with all axes of the product; axes that a side lacks have length 1."""
    tables = []
    for side in (operation.left, operation.right):
        if side is not None:
            lacking = tuple(axis for axis in range(1, operation.n_axes + 1) if axis not in side.axes)
            tables.append(np.expand_dims(_operand_entries(side, slots), lacking))
    return tables


def _operand_entries(side: ProductOperand, slots: Sequence[Array]) -> Array:
    """Return the side's table for each configuration of the product; a view if its configurations are consecutive."""
    slot = slots[side.slot]
    table: Array = slot[..., side.run] if side.run is not None else np.take(slot, side.ids, axis=-1)
    return table


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
    """Divide the table of each class and configuration by its largest entry, in place.

    Returns the logarithms of the largest entries plus `scale`, (K, configurations). Raises _TooSmallError if an entry
    is so small that digits may have been lost.
    """
    axes = tuple(range(1, table.ndim - 1))
    most = table.max(axis=axes)
    # after the division the loss of digits could not be detected
    if most.size and float(table.min()) < SMALL_ENTRY:
        raise _TooSmallError
    table /= np.expand_dims(most, axes)
    np.log(most, out=most)
    return np.asarray(most if scale is None else most + scale)


def contract(left: Factor, right: Factor | None, n_axes: int) -> Array:
    """Multiply both factors and sum over the first attribute; return (K, axes 2 to n_axes, configurations).

    If `right` is None, only the sum of `left` is computed.
    """
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
    """Return the adjoints of the logarithms of both factors, in their shapes, from the adjoint of ln(total).

    If `right` is None, so is its adjoint.
    """
    ratio = adjoint / np.maximum(total, SMALL)
    if right is None:
        return left.table * ratio[:, np.newaxis], None
    if not _is_matrix_product(left, right):
        out = _axis_names(range(2, n_axes + 1)) + "Z"
        # d ln(total) / d ln(entry) is the fraction of the total that has the entry as a factor
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
    """Run a program backward: return dV/dW (K, n_cells) from dV/d(score) (K, configurations) of every score slot.

    The state `run` is consumed and cannot be used again.
    """
    program = run.program
    sums = [np.zeros(slot.shape) for slot in run.slots]
    for score_slot, adjoint in zip(program.score_slots, adjoints, strict=True):
        # nothing else uses a score slot, so its adjoint is set, not added
        sums[score_slot.slot] = adjoint
    looked_up = np.empty((len(run.slots[UNIT]), len(program.cells)))
    for operation in reversed(program.operations):
        out = sums[operation.to.slot][..., operation.to.first : operation.to.last]
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
            slot: Array = sums[side.slot]
            own: Array = adjoint.sum(axis=lacking) if is_whole and lacking else adjoint
            if side.single:
                # summed over the configurations already, or not
                slot[..., side.ids[0]] += own if own.ndim < slot.ndim else own.sum(axis=-1)
                continue
            if side.run is not None:
                slot[..., side.run] += own
                continue
            # slot[..., ids[u]] += own[..., u] for all u
            table = slot.reshape(-1, slot.shape[-1])
            rows, size = own.reshape(len(table), -1), slot.shape[-1]
            if len(side.ids) > SHORT:
                for sums_of_row, row in zip(table, rows, strict=True):
                    sums_of_row += np.bincount(side.ids, row, size)
            else:
                # positions in the flattened table: row * size + id
                numbers = np.add.outer(np.arange(len(table)) * size, side.ids)
                table += np.bincount(numbers.ravel(), rows.ravel(), table.size).reshape(table.shape)
    return np.array([np.bincount(program.cells, row, n_cells) for row in looked_up])
