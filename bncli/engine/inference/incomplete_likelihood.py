"""The exact likelihood of tables on rows with missing values, which are marginalized.

    CLL = sum over rows t of w_t ln P(y_t | e_t),    LL = sum over rows t of w_t ln P(y_t, e_t)
    P(y, e_t) = sum over completions x of e_t of exp(W_0[y] + sum over families f of W_f[cell_f(x), y])

e_t are the observed codes of row t; a missing value has the code one past the last. The W are normalised log CPTs, one
for every node of the network. With r[t, y] the derivative of the value with respect to ln P(y, e_t), which is w_t
(1[y_t = y] - P(y | e_t)) for the CLL and w_t 1[y_t = y] for LL,

    d/dW_f[c, y] = sum over rows t of r[t, y] P(cell_f = c | e_t, y)

(Greiner, Su, Shen & Zhou 2005, Machine Learning 59, where W depends on free parameters: the chain rule follows.)

A family whose attributes are all observed is a look-up, fused with others as for complete rows; if all families are
observed, nothing else is needed. The other families that a row needs are compiled once into a program: for CLL, those
on which P(class | e_t) depends; for LL, those that are not barren. A barren family gets no expected counts (theta times
the counts of its parents would be right, but that has no effect in a maximisation).

Memory: the rows of a block are compiled in groups whose tables take at most 256 MiB.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bncli.engine.counting.fused_codes import Fusion, fuse
from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.data.schema import Schema
from bncli.engine.inference.execution import backward, forward
from bncli.engine.inference.program import (
    Limits,
    Program,
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
"""The most configurations of a group, whose differences then stay in a cache of 1 MiB; half as many for K > 2."""
MAX_TABLE = 1 << 24
"""The most entries of the table of one configuration, over all classes; a network that needs more is refused."""
MAX_PROGRAM = 1 << 24
"""The most entries of all tables of rows compiled together (8 bytes each, and as many for their derivatives)."""
NANOSECONDS = 8.0
"""Approximate nanoseconds per entry, forward and backward."""


class PassSize(NamedTuple):
    """The number of entries of all tables and products of a pass, and the attributes of the largest table."""

    entries: int
    widest: tuple[int, ...]


@dataclass(frozen=True)
class IncompleteLikelihood:
    """The likelihood of rows under the families of a whole network (`Dag.families` with `all_factors`).

    If `joint`, `value_and_gradient` and `work` are those of LL instead of CLL. The first pass raises BncliError if the
    missing values of some row need too large a table. Tables are one array of shape (K, n_cells).
    """

    data: Dataset
    families: tuple[Family, ...]
    joint: bool = False

    @property
    def work(self) -> PassSize:
        """The size of one `value_and_gradient`."""
        return (self._joint if self.joint else self._conditional).work

    def value_and_gradient(self, cells: Array) -> tuple[float, Array]:
        """Return CLL or LL in nats and its gradient, shape (K, n_cells), at the tables `cells` of the same shape.

        The gradient of LL is the expected count of every cell and class.
        """
        return (self._joint if self.joint else self._conditional).value_and_gradient(cells)

    def log_joint(self, cells: Array) -> Array:
        """Return ln P(y, e_t), shape (K, N)."""
        return self._joint.log_joint(cells)

    @cached_property
    def _conditional(self) -> CompiledBlocks:
        return _compile_all(self.data, self.families, conditional=True)

    @cached_property
    def _joint(self) -> CompiledBlocks:
        return _compile_all(self.data, self.families, conditional=False)


@dataclass(frozen=True)
class CompiledBlocks:
    """The compiled rows of all blocks, blocks[s], for P(class | e_t) if `conditional`, else for P(class, e_t)."""

    data: Dataset
    observed: ObservedFamilies
    blocks: list[list[CompiledRows]]
    conditional: bool

    @property
    def work(self) -> PassSize:
        programs = [compiled.program for block in self.blocks for compiled in block]
        cardinalities = self.data.schema.cardinalities
        scopes = (program.widest for program in programs)
        widest = max(scopes, key=lambda scope: math.prod(cardinalities[a] for a in scope), default=())
        return PassSize(self.data.n_labels * sum(program.work for program in programs), widest)

    def value_and_gradient(self, cells: Array) -> tuple[float, Array]:
        tables = self.observed.expand(cells)
        value, totals, gradient = self.data.reduce(
            _value_and_gradient, cells, tables, self.conditional, states=self.blocks
        )
        return value, self.observed.gather(totals) + gradient

    def log_joint(self, cells: Array) -> Array:
        tables = self.observed.expand(cells)
        return np.concatenate(self.data.map(_log_joint, cells, tables, states=self.blocks), axis=1)


class CompiledRows(NamedTuple):
    """The compiled rows of a block: their program, labels, and codes in each group and each score slot.

    Signs are 1 for the second class, else -1.
    """

    rows: Index
    program: Program
    labels: Index
    signs: Array
    codes: list[Index]


@dataclass(frozen=True)
class ObservedFamilies:
    """The fused look-ups of families, for rows in which all attributes of the family are observed.

    An attribute with missing values has one more code, so the table of a family is padded with cells that hold 0: rows
    in these cells get the family's part from a program. own[i] is the cell of the table, padded[i] that of the padded
    one.
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
    """Return the block's part of CLL or LL, the derivatives for the tables of the groups, and those for the cells.

    The latter come from programs. tables[g] (K, configurations) are the tables of the groups, `cells` (K, n_cells) all
    cells.
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
            # the gradient of the first class is minus that of the second
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
    """Return ln P(y, e_t), shape (K, rows)."""
    scores = np.zeros((len(cells), block.n_rows))
    for compiled in block.state:
        score_slots = forward(compiled.program, cells).score_slots()
        for codes, table in zip(compiled.codes, tables + score_slots, strict=True):
            scores[:, compiled.rows] += np.take(table, codes, axis=1)
    return scores


class _Plan(NamedTuple):
    """The inputs of compilation besides the rows: the attributes hidden in some row, and their elimination order."""

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
    return CompiledBlocks(data, replace(observed, fusion=replace(observed.fusion, codes=())), blocks, conditional)


def _hidden_attributes(block: RowBlock, members: Sequence[int], cardinalities: dict[int, int]) -> set[int]:
    """Return the attributes that are unobserved in some row of the block."""
    return {a for a in members if block.n_rows and block.codes[a].max() >= cardinalities[a]}


def _compile(block: RowBlock, plan: _Plan) -> list[CompiledRows]:
    """Compile the rows of a block, in as many groups as the limits require."""
    compiled: list[CompiledRows] = []
    waiting = [np.arange(block.n_rows)]
    while waiting:
        rows = waiting.pop()
        try:
            compiled.append(_compile_rows(block, rows, plan))
        except TooManyError:
            waiting += _group_by_pattern(block, rows, plan)
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


def _group_by_pattern(block: RowBlock, rows: Index, plan: _Plan) -> list[Index]:
    """Split rows by whether an attribute is hidden, as late as possible in the elimination order, or into halves.

    Rows that differ in such an attribute share few tables.
    """
    for attribute in reversed(plan.order):
        hidden = block.codes[attribute][rows] >= plan.schema.cardinalities[attribute]
        # both parts must be large enough to be worth a program of their own
        if min(np.count_nonzero(hidden), np.count_nonzero(~hidden)) > len(rows) // 8:
            return [rows[hidden], rows[~hidden]]
    return [rows[len(rows) // 2 :], rows[: len(rows) // 2]]
