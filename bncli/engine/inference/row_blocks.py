"""All rows compiled for repeated passes: block by block, as many rows together as have tables that fit in memory.

Families whose attributes are all observed in a row: look-ups, fused like those of complete rows.

An attribute with missing values has one code more, so the table of a family grows by cells that hold 0: there,
something is hidden, and the family's part is found in another way.

Rows whose tables fit in memory together, and what a pass over them finds.

The exact likelihood of tables on rows with missing values: what is not observed is marginalized.

    CLL = sum over rows t of w_t ln P(y_t | e_t),    LL = sum over rows t of w_t ln P(y_t, e_t)
    P(y, e_t) = sum over completions x of e_t of exp(W_0[y] + sum over families f of W_f[cell_f(x), y])

e_t are the observed codes of row t; a missing value has the code one past the last. The W are normalised log CPTs, one
for every node of the network. With r[t, y] the derivative of the value with respect to ln P(y, e_t), which is w_t
(1[y_t = y] - P(y | e_t)) for the CLL and w_t 1[y_t = y] for LL,

    d/dW_f[c, y] = sum over rows t of r[t, y] P(cell_f = c | e_t, y)

(Greiner, Su, Shen & Zhou 2005, Machine Learning 59, where W depends on free parameters: the chain rule follows.)

A family whose attributes are all observed is a look-up, fused with others as for complete rows; where that is every
family, nothing else is done. The rest is a program compiled once (`compilation`) for the families that a row needs: for
CLL, those on which P(class | e_t) depends; for LL, those that are not barren. A barren family gets no expected counts:
theta times those of its parents would be right, which changes nothing in a maximisation.

Memory: rows are worked on in so many groups that the tables of one take at most 256 MiB.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bncli.engine.counting.fused_codes import Fusion, fuse
from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.data.schema import Schema
from bncli.engine.inference import row_blocks
from bncli.engine.inference import row_blocks as row_block
from bncli.engine.inference.elimination import elimination_order, requisite, supporting
from bncli.engine.inference.execution import backward, forward
from bncli.engine.inference.program import Limits, Program, TooManyError, TooWideError, compile_rows
from bncli.engine.kernels import passes
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.model import Tables
from bncli.engine.structures.structure import Family
from bncli.errors import BncliError

IN_CACHE = 4096
"""Configurations of a group whose differences stay in a second-level cache of 1 MiB; for K > 2, half as many."""


@dataclass(frozen=True)
class Observed:
    """Fused codes of rows; own[i] is the table cell that the fusion knows as cell padded[i]."""

    fusion: Fusion
    own: Index
    padded: Index
    n_cells: int

    def expand(self, cells: Array) -> list[Array]:
        """Return tables of the groups, each (K, configurations), from cells of shape (K, n_cells)."""
        padded = np.zeros((len(cells), self.fusion.n_cells))
        padded[:, self.padded] = cells[:, self.own]
        return self.fusion.expand(padded)

    def gather(self, tables: Sequence[Array]) -> Array:
        """Return the transpose of `expand`."""
        cells = np.zeros((len(tables[0]), self.n_cells))
        cells[:, self.own] = self.fusion.gather(tables)[:, self.padded]
        return cells


class CompiledRows(NamedTuple):
    """Rows of a block: their program, their labels, and the fused codes of each group and each score slot.

    Signs are 1 for the second class, else -1.
    """

    rows: Index
    program: Program
    labels: Index
    signs: Array
    codes: list[Index]


Sums = tuple[float, list[Array], Array]
"""A value, its derivatives by group and configuration, and what programs add to its gradient in the cells."""
RowPass = Callable[[CompiledRows, Array | None, list[Array]], tuple[float, list[Array]]]
MAX_TABLE = 1 << 24
"""Entries of one configuration's table, all classes together, beyond which a network is refused."""
MAX_PROGRAM = 1 << 24
"""Entries of all tables of rows compiled together (8 bytes each, and as many for their derivatives)."""
NANOSECONDS = 8.0
"""An entry takes so long, forward and backward."""


class PassSize(NamedTuple):
    """Entries of all tables and products of a pass, and the attributes of the largest of them."""

    entries: int
    widest: tuple[int, ...]


class _Plan(NamedTuple):
    """What compiling needs beside the rows."""

    schema: Schema
    families: tuple[Family, ...]
    hiding: tuple[int, ...]
    order: tuple[int, ...]
    conditional: bool


@dataclass(frozen=True)
class CompiledBlocks:
    """blocks[s] are the compiled rows of block s."""

    data: Dataset
    observed: Observed
    blocks: list[list[CompiledRows]]

    @property
    def work(self) -> PassSize:
        programs = [p.program for block in self.blocks for p in block]
        cardinalities = self.data.schema.cardinalities
        widest = max(
            (p.widest for p in programs), key=lambda scope: math.prod(cardinalities[a] for a in scope), default=()
        )
        return PassSize(self.data.n_labels * sum(program.work for program in programs), widest)

    @property
    def pass_work(self) -> float:
        """Nanoseconds, roughly, of `conditional`."""
        look_ups = sum(len(p.codes) * len(p.rows) for block in self.blocks for p in block)
        per_row = (self.data.n_labels - 1) * (8.0 * self.data.n_rows + 2.0 * look_ups)
        return 1e5 + per_row + NANOSECONDS * self.work.entries

    def conditional(self, cells: Array) -> tuple[float, Array]:
        """Return CLL and its gradient."""
        tables = self.observed.expand(cells)
        cll, totals, gradient = self.data.reduce(row_block.conditional, cells, tables, states=self.blocks)
        return cll, self.observed.gather(totals) + gradient

    def joint(self, cells: Array) -> tuple[float, Array]:
        """LL and its gradient."""
        tables = self.observed.expand(cells)
        ll, totals, gradient = self.data.reduce(row_block.joint, cells, tables, states=self.blocks)
        return ll, self.observed.gather(totals) + gradient

    def log_joint(self, cells: Array) -> Array:
        """Return ln P(y, e_t), shape (K, N)."""
        tables = self.observed.expand(cells)
        return np.concatenate(self.data.map(row_block.log_joint, cells, tables, states=self.blocks), axis=1)


@dataclass(frozen=True)
class IncompleteLikelihood:
    """Rows compiled, where they are first needed, for repeated passes. Tables are one array of shape (K, n_cells)."""

    data: Dataset
    families: tuple[Family, ...]

    @property
    def n_cells(self) -> int:
        return 1 + sum(family.n_cells for family in self.families)

    @property
    def pass_work(self) -> float:
        """Nanoseconds, roughly, of one `value_and_gradient`."""
        return self._conditional.pass_work

    @property
    def work(self) -> PassSize:
        """What one `value_and_gradient` fills with numbers beyond look-ups; known before it is asked for."""
        return self._conditional.work

    @property
    def joint_work(self) -> PassSize:
        """The same of one `joint`."""
        return self._joint.work

    def value_and_gradient(self, cells: Array) -> tuple[float, Array]:
        """Return CLL in nats and its gradient, shape (K, n_cells), at the tables `cells` of the same shape."""
        return self._conditional.conditional(cells)

    def joint(self, cells: Array) -> tuple[float, Array]:
        """LL in nats, and the expected count of every cell and class, which is LL's gradient, shape (K, n_cells)."""
        return self._joint.joint(cells)

    def log_joint(self, cells: Array) -> Array:
        """Return ln P(y, e_t), shape (K, N)."""
        return self._joint.log_joint(cells)

    def flatten(self, tables: Tables) -> Array:
        """Return tables as one array of shape (K, n_cells)."""
        return np.concatenate([tables.bias[:, np.newaxis], *(w.T for w in tables.weights)], axis=1)

    def tables(self, cells: Array) -> Tables:
        """Return the inverse of `flatten`."""
        edges = np.cumsum([1, *(family.n_cells for family in self.families)])[:-1]
        bias, *weights = np.split(cells, edges, axis=1)
        return Tables(bias[:, 0].copy(), self.families, tuple(np.ascontiguousarray(w.T) for w in weights))

    @cached_property
    def _conditional(self) -> CompiledBlocks:
        return row_blocks.compile_all(self.data, self.families, conditional=True)

    @cached_property
    def _joint(self) -> CompiledBlocks:
        return row_blocks.compile_all(self.data, self.families, conditional=False)


def observe(data: Dataset, families: Sequence[Family], counted: Sequence[bool], hiding: Collection[int]) -> Observed:
    """Fuse the families that are `counted`; `hiding` are the attributes that some row hides."""
    starts = np.cumsum([1, *(family.n_cells for family in families)])
    own, padded, wide = [np.zeros(1, np.intp)], [np.zeros(1, np.intp)], []
    start = 1
    for family, first in zip(itertools.compress(families, counted), itertools.compress(starts, counted), strict=True):
        wide.append(_padded(family, hiding))
        own.append(first + np.arange(family.n_cells))
        cells = np.arange(start, start + wide[-1].n_cells).reshape(wide[-1].shape)
        padded.append(cells[tuple(slice(n) for n in family.shape)].ravel())
        start += wide[-1].n_cells
    most = min(IN_CACHE if data.n_labels == 2 else IN_CACHE // 2, max(256, data.n_rows // 8))
    return Observed(fuse(data, wide, most), np.concatenate(own), np.concatenate(padded), int(starts[-1]))


def _padded(family: Family, hiding: Collection[int]) -> Family:
    return replace(family, shape=tuple(n + (a in hiding) for a, n in zip(family.attributes, family.shape, strict=True)))


def conditional(block: RowBlock, cells: Array, tables: list[Array]) -> Sums:
    """Return the sum of w_t ln P(y_t | e_t).

    Tables[g] (K, configurations) are the groups', `cells` (K, n_cells) all cells.
    """
    return _over_compiled(block, cells, tables, _conditional)


def _over_compiled(block: RowBlock, cells: Array, tables: list[Array], row_pass: RowPass) -> Sums:
    value, totals, gradient = 0.0, [np.zeros(table.shape) for table in tables], np.zeros(cells.shape)
    for compiled in block.state:
        run = forward(compiled.program, cells)
        weights = None if block.weights is None else block.weights[compiled.rows]
        part, slopes = row_pass(compiled, weights, tables + run.score_slots())
        value += part
        for total, slope in zip(totals, slopes[: len(tables)], strict=True):
            total += slope
        if compiled.program.score_slots:
            gradient += backward(run, slopes[len(tables) :], cells.shape[1])
    return value, totals, gradient


def _conditional(compiled: CompiledRows, weights: Array | None, tables: list[Array]) -> tuple[float, list[Array]]:
    if len(tables[0]) != 2:
        return passes.some_classes(compiled.codes, compiled.labels, weights, tables)
    cll, slopes = passes.two_classes(compiled.codes, compiled.signs, weights, [t[1] - t[0] for t in tables])
    return cll, [np.stack([-slope, slope]) for slope in slopes]


def joint(block: RowBlock, cells: Array, tables: list[Array]) -> Sums:
    """Return the sum of w_t ln P(y_t, e_t)."""
    return _over_compiled(block, cells, tables, _joint)


def _joint(compiled: CompiledRows, weights: Array | None, tables: list[Array]) -> tuple[float, list[Array]]:
    """Return the derivatives, which are the weights of the rows by class and configuration."""
    counts = [
        np.bincount(compiled.labels * table.shape[1] + codes, weights, table.size).astype(float).reshape(table.shape)
        for codes, table in zip(compiled.codes, tables, strict=True)
    ]
    return sum(float(np.vdot(count, table)) for count, table in zip(counts, tables, strict=True)), counts


def log_joint(block: RowBlock, cells: Array, tables: list[Array]) -> Array:
    """Return ln P(y, e_t), shape (K, rows)."""
    scores = np.zeros((len(cells), block.n_rows))
    for compiled in block.state:
        score_slots = forward(compiled.program, cells).score_slots()
        for codes, table in zip(compiled.codes, tables + score_slots, strict=True):
            scores[:, compiled.rows] += np.take(table, codes, axis=1)
    return scores


def compile_all(data: Dataset, families: tuple[Family, ...], *, conditional: bool) -> CompiledBlocks:
    """For P(class | evidence) alone (`conditional`), or for P(class, evidence)."""
    members = sorted({attribute for family in families for attribute in family.attributes})
    cardinalities = {a: n for family in families for a, n in zip(family.attributes, family.shape, strict=True)}
    found = data.map(_hiding, members, cardinalities)
    hiding = tuple(sorted(set().union(*found)))
    cliques = [[a for a in family.attributes if a in hiding] for family in families]
    order = elimination_order(cliques, {a: cardinalities[a] for a in hiding})
    counted = [family.by_class or not conditional for family in families]
    observed = observe(data, families, counted, hiding)
    plan = _Plan(data.schema, families, hiding, tuple(order), conditional)
    blocks = data.map(_compile, plan, states=observed.fusion.codes)
    return CompiledBlocks(data, replace(observed, fusion=replace(observed.fusion, codes=())), blocks)


def _hiding(block: RowBlock, members: Sequence[int], cardinalities: dict[int, int]) -> set[int]:
    """Return the attributes that some row hides."""
    return {a for a in members if block.n_rows and block.codes[a].max() >= cardinalities[a]}


def _compile(block: RowBlock, plan: _Plan) -> list[CompiledRows]:
    compiled: list[CompiledRows] = []
    waiting = [np.arange(block.n_rows)]
    while waiting:
        rows = waiting.pop()
        try:
            compiled.append(_compiled(block, rows, plan))
        except TooManyError:
            waiting += _split(block, rows, plan)
    return compiled


def _compiled(block: RowBlock, rows: Index, plan: _Plan) -> CompiledRows:
    codes = {a: block.codes[a][rows] for family in plan.families for a in family.attributes}
    cardinality = plan.schema.cardinalities
    hidden = {a: codes[a] >= cardinality[a] for a in plan.hiding}
    needed = (requisite if plan.conditional else supporting)(plan.families, hidden, len(rows))
    n_labels = len(plan.schema.labels)
    limits = Limits(MAX_TABLE // n_labels, MAX_PROGRAM // n_labels)
    try:
        program = compile_rows(plan.families, needed, codes, hidden, plan.order, limits)
    except TooWideError as error:
        raise _too_wide(error, plan.schema) from None
    labels = block.labels[rows].astype(np.intp)
    fused = [np.asarray(group[rows]) for group in block.state]
    signs = np.where(labels == 1, 1.0, -1.0)
    return CompiledRows(rows, program, labels, signs, fused + [score_slot.codes for score_slot in program.score_slots])


def _too_wide(error: TooWideError, schema: Schema) -> BncliError:
    names = [schema.attributes[attribute].name for attribute in error.scope]
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    return BncliError(
        f"the missing values of a row must be marginalized over a table too large: {shown} are unobserved together",
        hint="learn with fewer parents, or with --missing-policy level, where a missing value is one more level",
    )


def _split(block: RowBlock, rows: Index, plan: _Plan) -> list[Index]:
    """By whether the attribute marginalized last is hidden: such rows share little; by number where all are alike."""
    for attribute in reversed(plan.order):
        hidden = block.codes[attribute][rows] >= plan.schema.cardinalities[attribute]
        if min(np.count_nonzero(hidden), np.count_nonzero(~hidden)) > len(rows) // 8:
            return [rows[hidden], rows[~hidden]]
    return [rows[len(rows) // 2 :], rows[: len(rows) // 2]]


def incomplete_likelihood(data: Dataset, families: Sequence[Family]) -> IncompleteLikelihood:
    """For the families of a whole network (`Dag.families` with `whole`).

    BncliError, at the first pass, where the missing values of some row need too large a table.
    """
    return IncompleteLikelihood(data, tuple(families))
