"""Which joint value of several attributes each row shows, numbered by what occurs.

The number of possible joint values is a product of cardinalities; those that occur in N rows are at most N. Joint
codes grow by one attribute at a time, and after each step the values that occur are renumbered in the order of
the old number and the attribute's value:

    new code of (u, x) = rank of u |X| + x among those that occur

Where u |X| + x has a small range, presence is marked in an array (two passes over the rows); beyond it, the
values are sorted. Both give the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.kernels.arrays import Index, Mask
from bncli.engine.kernels.cells import cell_numbers

MAX_MARKED = 1 << 25
"""Presence is marked for up to so many possible values (5 bytes each), and sorted out beyond them."""


@dataclass(frozen=True)
class JointCodes:
    """codes[s] (rows of block s,): the number of each row's joint value, below `size`; every number occurs."""

    codes: list[NDArray[np.uint32]]
    size: int


def no_attributes(data: Dataset) -> JointCodes:
    """All rows alike."""
    return JointCodes([np.zeros(b - a, np.uint32) for a, b in data.bounds()], 1)


def extend(data: Dataset, joint: JointCodes, attribute: int) -> tuple[JointCodes, Index]:
    """The joint values with `attribute` added, and the old number of each new one, shape (new size,), ascending."""
    radix = data.schema.cardinalities[attribute]
    if joint.size * radix <= MAX_MARKED:
        present = np.flatnonzero(data.reduce(_mark, attribute, radix, joint.size, states=joint.codes))
        renumber = np.zeros(joint.size * radix, np.uint32)
        renumber[present] = np.arange(len(present), dtype=np.uint32)
        codes = data.map(_look_up, attribute, radix, renumber, states=joint.codes)
    else:
        present = np.unique(np.concatenate(data.map(_distinct, attribute, radix, states=joint.codes)))
        codes = data.map(_search, attribute, radix, present, states=joint.codes)
    return JointCodes(codes, len(present)), present // radix


def _mark(block: RowBlock, attribute: int, radix: int, size: int) -> Mask:
    """Which values occur in the block (a logical or is the sum of booleans)."""
    present = np.zeros(size * radix, bool)
    for rows in block.slices():
        present[_values(block, attribute, radix, rows)] = True
    return present


def _look_up(block: RowBlock, attribute: int, radix: int, renumber: NDArray[np.uint32]) -> NDArray[np.uint32]:
    codes = np.empty(block.n_rows, np.uint32)
    for rows in block.slices():
        codes[rows] = renumber[_values(block, attribute, radix, rows)]
    return codes


def _distinct(block: RowBlock, attribute: int, radix: int) -> Index:
    return np.unique(_values(block, attribute, radix, slice(None)))


def _search(block: RowBlock, attribute: int, radix: int, present: Index) -> NDArray[np.uint32]:
    return np.searchsorted(present, _values(block, attribute, radix, slice(None))).astype(np.uint32)


def _values(block: RowBlock, attribute: int, radix: int, rows: slice) -> Index:
    return cell_numbers([block.state[rows], block.codes[attribute][rows]], (0, radix))
