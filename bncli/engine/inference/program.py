"""What a compiled program consists of: slots for tables, and the operations that fill them.

A slot is an array of shape (K, |x_1|, |x_2|, ..., configurations): a function of the class and of hidden attributes
x_1, x_2, ... (the slot's scope), once for each configuration of observed values that some row shows. Rows with equal
content share a configuration, so that work is done once for all of them. Three operations fill slots:

    Look       CPT entries of a family at the codes observed
    Join       out[y, x, u] = left[y, x, i(u)] right[y, x, j(u)], axes that one side lacks repeated
    Contract   out[y, x, u] = sum over x_1 of left[y, x_1, x, i(u)] right[y, x_1, x, j(u)]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bncli.engine.kernels.arrays import Index

UNIT = 0
"""The slot of a table that is 1 everywhere, for rows that lack one side of a join."""


class Place(NamedTuple):
    """Configurations first, first + 1, ..., last - 1 of a slot."""

    slot: int
    first: int
    last: int


@dataclass(frozen=True)
class Look:
    """Entries `first` to `last` of the program's cells, in the order of the slot."""

    to: Place
    first: int
    last: int


class Side(NamedTuple):
    """Configurations ids[u] of a slot; `axes` are the axes of the product that it has, 1 for the first attribute.

    `single`: all ids are equal. `run`: they are so many consecutive ones, or None.
    """

    slot: int
    ids: Index
    axes: tuple[int, ...]
    single: bool
    run: slice | None = None


@dataclass(frozen=True)
class Join:
    """The product of two tables with `n_axes` attributes in all; divided by its largest entries if `rescale`."""

    to: Place
    left: Side
    right: Side
    n_axes: int
    rescale: bool


@dataclass(frozen=True)
class Contract:
    """The product of two tables (one table where right is None), its first attribute marginalized.

    The logarithm of that if it is the `last`, for a score slot.
    """

    to: Place
    left: Side
    right: Side | None
    n_axes: int
    rescale: bool
    last: bool


class ScoreSlot(NamedTuple):
    """A slot of logarithms without hidden attributes: row t of the program adds configuration codes[t] (0: nothing)."""

    slot: int
    codes: Index


@dataclass(frozen=True)
class Program:
    """shapes[s] of slot s, the class's axis left out; cells (entries that are looked up,), numbers of table cells."""

    n_rows: int
    shapes: Sequence[tuple[int, ...]]
    operations: Sequence[Look | Join | Contract]
    cells: Index
    score_slots: Sequence[ScoreSlot]
    work: int
    """Numbers in all slots and products, for one class."""
    widest: tuple[int, ...]
    """The attributes of the largest scope, by the number of their joint values."""
