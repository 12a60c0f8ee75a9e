"""Rows whose tables fit in memory together, and what a pass over them finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bncli.engine.data.dataset import RowBlock
from bncli.engine.inference.execution import backward, forward
from bncli.engine.inference.program import Program
from bncli.engine.kernels import passes
from bncli.engine.kernels.arrays import Array, Index


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


def conditional(block: RowBlock, cells: Array, tables: list[Array]) -> Sums:
    """The sum of w_t ln P(y_t | e_t); tables[g] (K, configurations) are the groups', `cells` (K, n_cells) all cells."""
    return _over_compiled(block, cells, tables, _conditional)


def joint(block: RowBlock, cells: Array, tables: list[Array]) -> Sums:
    """The sum of w_t ln P(y_t, e_t)."""
    return _over_compiled(block, cells, tables, _joint)


def log_joint(block: RowBlock, cells: Array, tables: list[Array]) -> Array:
    """ln P(y, e_t), shape (K, rows)."""
    scores = np.zeros((len(cells), block.n_rows))
    for compiled in block.state:
        score_slots = forward(compiled.program, cells).score_slots()
        for codes, table in zip(compiled.codes, tables + score_slots, strict=True):
            scores[:, compiled.rows] += np.take(table, codes, axis=1)
    return scores


RowPass = Callable[[CompiledRows, Array | None, list[Array]], tuple[float, list[Array]]]


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


def _joint(compiled: CompiledRows, weights: Array | None, tables: list[Array]) -> tuple[float, list[Array]]:
    """The derivatives are the weight of the rows by class and configuration."""
    counts = [
        np.bincount(compiled.labels * table.shape[1] + codes, weights, table.size).astype(float).reshape(table.shape)
        for codes, table in zip(compiled.codes, tables, strict=True)
    ]
    return sum(float(np.vdot(count, table)) for count, table in zip(counts, tables, strict=True)), counts
