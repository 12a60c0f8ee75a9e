"""All rows compiled for repeated passes: block by block, as many rows together as have tables that fit in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.data.schema import Schema
from bncli.engine.inference import row_block
from bncli.engine.inference.building import Limits, TooManyError, TooWideError
from bncli.engine.inference.compilation import compile_rows
from bncli.engine.inference.elimination_order import elimination_order
from bncli.engine.inference.observed import Observed, observe
from bncli.engine.inference.requisite import requisite, supporting
from bncli.engine.inference.row_block import CompiledRows
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.structures.structure import Family
from bncli.errors import BncliError

MAX_TABLE = 1 << 24
"""Entries of one configuration's table, all classes together, beyond which a network is refused."""
MAX_PROGRAM = 1 << 24
"""Entries of all tables of rows compiled together (8 bytes each, and as many for their derivatives)."""


NANOSECONDS = 8.0
"""An entry takes so long, forward and backward."""


class Work(NamedTuple):
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
    def work(self) -> Work:
        programs = [p.program for block in self.blocks for p in block]
        cardinalities = self.data.schema.cardinalities
        widest = max(
            (p.widest for p in programs), key=lambda scope: math.prod(cardinalities[a] for a in scope), default=()
        )
        return Work(self.data.n_labels * sum(program.work for program in programs), widest)

    @property
    def pass_work(self) -> float:
        """Nanoseconds, roughly, of `conditional`."""
        look_ups = sum(len(p.codes) * len(p.rows) for block in self.blocks for p in block)
        per_row = (self.data.n_labels - 1) * (8.0 * self.data.n_rows + 2.0 * look_ups)
        return 1e5 + per_row + NANOSECONDS * self.work.entries

    def conditional(self, cells: Array) -> tuple[float, Array]:
        """CLL and its gradient."""
        tables = self.observed.expand(cells)
        cll, totals, gradient = self.data.reduce(row_block.conditional, cells, tables, states=self.blocks)
        return cll, self.observed.gather(totals) + gradient

    def joint(self, cells: Array) -> tuple[float, Array]:
        """LL and its gradient."""
        tables = self.observed.expand(cells)
        ll, totals, gradient = self.data.reduce(row_block.joint, cells, tables, states=self.blocks)
        return ll, self.observed.gather(totals) + gradient

    def log_joint(self, cells: Array) -> Array:
        """ln P(y, e_t), shape (K, N)."""
        tables = self.observed.expand(cells)
        return np.concatenate(self.data.map(row_block.log_joint, cells, tables, states=self.blocks), axis=1)


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
    """The attributes that some row hides."""
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


def _split(block: RowBlock, rows: Index, plan: _Plan) -> list[Index]:
    """By whether the attribute marginalized last is hidden: such rows share little; by number where all are alike."""
    for attribute in reversed(plan.order):
        hidden = block.codes[attribute][rows] >= plan.schema.cardinalities[attribute]
        if min(np.count_nonzero(hidden), np.count_nonzero(~hidden)) > len(rows) // 8:
            return [rows[hidden], rows[~hidden]]
    return [rows[len(rows) // 2 :], rows[: len(rows) // 2]]


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
