"""Fused codes: one code per row for the joint value of several attributes; only values that occur are numbered.

`fuse` packs families into groups, so that a pass over the rows looks up one value per group instead of one per family.
`extend` adds one attribute to the joint codes of others.

Families are fused into groups as long as the joint configurations *observed* in the data are few enough for a group's
table to fit the second-level cache. Then the scores S of a row take one look-up per group, and a gradient takes one
bincount per group:

    S[t] = sum over groups g of E_g[code_g(t)],    E_g[u] = sum over families f in g of W[cell_f(u)]

The cells of all families are numbered in one range. Cell 0 is the bias, which is always active, and the cells of the
families follow, one family after another. Building the groups costs as much as a few passes over the rows. `fuse` marks
the values that occur to renumber them; it sorts rows only if they are so few that one group holds all families.

The number of possible joint values is a product of cardinalities, but at most N of them occur in N rows. Attributes are
added to joint codes one at a time, and after each step the values that occur are renumbered, in the order of the old
number u and then of the attribute's value x. If the attribute has |X| values,

    new code of (u, x) = rank of u |X| + x among those that occur

Presence is marked in an array (two passes over the rows). If u |X| + x has a large range, `extend` sorts the values
instead, which gives the same numbers.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.dataset import Dataset, RowBlock, code_dtype
from bncli.engine.kernels.arrays import Array, Codes, Index, Integers, Mask, cell_numbers, distinct
from bncli.engine.structures.structure import Family

FusedCodes = Sequence[Integers]
"""The codes of a block's rows in each group: a list of arrays (rows,), or an array (groups, rows)."""
MAX_JOINT = 1 << 22
"""No family is added to a group if the group's observed configurations times the values of an attribute exceed this."""
WIDE_BYTES = 200 << 20
"""Codes take 8 bytes each, ready for indexing, if they all fit into this many bytes; otherwise the narrowest type."""
MANY_ROWS = 1 << 18
"""With at least this many rows per block, freed memory is returned to the system at once."""
NUMBERS_AT_A_TIME = 1 << 14
"""The maximum number of cells looked up at a time in a loop over configurations, so that they stay in the cache."""
MAX_MARKED = 1 << 25
"""`extend` marks presence in an array for up to this many possible values (5 bytes each); otherwise it sorts them."""


@dataclass(frozen=True)
class Fusion:
    """The families fused into groups; n_cells is the number of cells of all families, plus 1 for the bias.

    members[g] (configurations, families in g) are the cells that a configuration of group g activates; group 0 has one
    more column, for the bias. codes[s][g] (rows of block s,) is the configuration of each row.
    """

    members: tuple[Index, ...]
    codes: Sequence[FusedCodes]
    n_cells: int

    def expand(self, cells: Array) -> list[Array]:
        """Return the tables E_g, (A, configurations of g): sums of the cells (A, n_cells) of each configuration.

        A is any number. The loop is over configurations or families, whichever are fewer.
        """
        tables = []
        for members in self.members:
            if 0 < members.shape[0] < members.shape[1]:
                # cells.take(rows) is (any, configurations, families in g)
                at_a_time = max(1, NUMBERS_AT_A_TIME // max(1, len(cells) * members.shape[1]))
                slices = [members[start : start + at_a_time] for start in range(0, len(members), at_a_time)]
                sums = [np.add.reduce(cells.take(rows, axis=1), axis=2) for rows in slices]
                tables.append(sums[0] if len(sums) == 1 else np.concatenate(sums, axis=1))
                continue
            table = cells.take(members[:, 0], axis=1)
            for column in members.T[1:]:
                table += cells.take(column, axis=1)
            tables.append(table)
        return tables

    def gather(self, tables: Sequence[Array]) -> Array:
        """Apply the transpose of `expand`: sum tables[g] (A, configurations of g) into cells (A, n_cells)."""
        targets, widths = self._targets
        # row i of all groups side by side, so that one bincount serves all groups
        rows = (row[0] if len(row) == 1 else np.concatenate(row) for row in zip(*tables, strict=True))
        sums = [np.bincount(targets, row.repeat(widths), self.n_cells) for row in rows]
        return np.array(sums, np.float64).reshape(-1, self.n_cells)

    @cached_property
    def _targets(self) -> tuple[Index, Index | int]:
        """The cells of all configurations, group after group, and the number of cells of each configuration."""
        if len(self.members) == 1:
            return self.members[0].ravel(), self.members[0].shape[1]
        widths = [np.full(len(members), members.shape[1]) for members in self.members]
        return np.concatenate([members.ravel() for members in self.members]), np.concatenate(widths)

    @cached_property
    def activations(self) -> Any:
        """The sparse matrix A[u, c] = 1 if configuration u (numbered group after group) activates cell c, by rows.

        A W replaces `expand` and A'T replaces `gather` in repeated passes over many rows.
        """
        from scipy.sparse import csr_array  # costs more to import than a small fit: only where it is used

        columns = np.concatenate([members.ravel() for members in self.members], dtype=np.int32)
        widths = np.concatenate([np.full(len(members), members.shape[1]) for members in self.members])
        starts = np.append(0, np.cumsum(widths)).astype(np.int32)
        return csr_array((np.ones(len(columns)), columns, starts), shape=(len(widths), self.n_cells))


def fuse(data: Dataset, families: Sequence[Family], max_configurations: int, *, interleaved: bool = False) -> Fusion:
    """Fuse families into groups of at most `max_configurations` observed configurations; a single family may have more.

    With `interleaved`, codes are arrays (groups, rows) that hold the codes of a row side by side in memory, in the
    narrowest type.
    """
    offsets = list(itertools.accumulate((family.n_cells for family in families), initial=1))
    order = _depth_first(families)
    # no group can have more configurations than there are rows
    if 0 < data.n_rows <= max_configurations and families:
        groups = [_fuse_distinct_rows(data, families, offsets, order)]
    else:
        growing = [_Group(data)]
        for f in order:
            # the group is full: the family begins the next one, which accepts any first family
            if not growing[-1].add(f, families[f], max_configurations):
                growing.append(_Group(data))
                growing[-1].add(f, families[f], max_configurations)
        groups = [(group.members(families, offsets, bias=g == 0), group.codes) for g, group in enumerate(growing)]
        del growing
    members = tuple(members for members, _ in groups)
    states = [list(codes) for codes in zip(*(codes for _, codes in groups), strict=True)]
    del groups  # so that interleaving can free the codes of a block
    if interleaved:
        dtype = code_dtype(max(len(of_group) for of_group in members))
        return Fusion(members, data.keep(_interleave, dtype, states=states), offsets[-1])
    # indexing with narrow codes converts them in every pass; wide ones are converted once
    wide = data.n_rows * len(members) * 8 <= WIDE_BYTES
    kinds = [np.dtype(np.intp) if wide else code_dtype(len(of_group)) for of_group in members]
    return Fusion(members, data.keep(_as_types, kinds, states=states), offsets[-1])


def _depth_first(families: Sequence[Family]) -> list[int]:
    """Return the indices of the families in an order in which a child comes after the family of its first parent.

    Neighbours then tend to share attributes.
    """
    by_child = {family.attributes[0]: f for f, family in enumerate(families) if family.child is not None}
    followers: dict[int | None, list[int]] = {}
    for f, family in enumerate(families):
        parent = by_child.get(family.attributes[1]) if family.child is not None and len(family.attributes) > 1 else None
        followers.setdefault(parent, []).append(f)
    order: list[int] = []
    stack = followers.get(None, [])[::-1]
    while stack:
        order.append(stack.pop())
        stack += followers.get(order[-1], [])[::-1]
    return order


def _fuse_distinct_rows(
    data: Dataset, families: Sequence[Family], offsets: list[int], order: list[int]
) -> tuple[Index, FusedCodes]:
    """Return the members and codes of one group of all families, for so few rows that it cannot become too large.

    The configurations are the distinct rows, numbered as adding one family after the other would number them.
    """
    # the cell of every row in every family, (families, N), families of one size together
    cells = np.zeros((len(families), data.n_rows), np.intp)
    by_size: dict[int, list[int]] = {}
    for f, family in enumerate(families):
        by_size.setdefault(len(family.attributes), []).append(f)
    for size, alike in by_size.items():
        for axis in range(size):
            radices = np.array([families[f].shape[axis] for f in alike])
            digits = np.stack([data.codes[families[f].attributes[axis]] for f in alike])
            # mixed-radix numbers of all families of this size, one digit at a time
            cells[alike] = cells[alike] * radices[:, np.newaxis] + digits
    cells = cells[order]
    # the last key of lexsort is the primary one, hence the reversal: the first family decides first
    by_cells = np.lexsort(cells[::-1])
    ordered = cells[:, by_cells]
    is_new = np.append(True, (ordered[:, 1:] != ordered[:, :-1]).any(axis=0))
    codes = np.empty(data.n_rows, np.uint32)
    # the rank of each row among the distinct ones
    codes[by_cells] = np.cumsum(is_new) - 1
    first = np.array(offsets[:-1])[order]
    members = np.zeros((int(is_new.sum()), len(families) + 1), np.intp)  # the first of each is the bias
    members[:, 1:] = (ordered[:, is_new] + first[:, np.newaxis]).T
    return members, [codes[a:b] for a, b in data.bounds()]


class _Group:
    """A group that families are added to, and the configuration of each row, block by block.

    Attributes are added one by one: _added[a] = (radix, present), where present[u] = u' radix + value of a expresses
    the configuration u by the configuration u' before a was added.
    """

    def __init__(self, data: Dataset) -> None:
        self._data = data
        self._families: list[int] = []
        self._added: dict[int, tuple[int, Index]] = {}
        self.codes: FusedCodes = data.keep(_zeros)
        self._size = 1

    def add(self, f: int, family: Family, max_configurations: int) -> bool:
        """Add a family if the group stays small enough, and return whether it was added; the first one always is."""
        added, codes, size = dict[int, tuple[int, Index]](), self.codes, self._size
        for attribute, radix in zip(family.attributes, family.shape, strict=True):
            if attribute not in self._added:
                if self._families and size * radix > MAX_JOINT:
                    return False
                # the joint configurations that occur; rows are then renumbered by their rank among these
                present = np.flatnonzero(self._data.reduce(_presence, attribute, radix, size, states=codes))
                # in the narrowest type at once: with many rows the wide codes of all groups would not fit in memory
                renumber = np.zeros(size * radix, code_dtype(len(present)))
                renumber[present] = np.arange(len(present), dtype=renumber.dtype)
                codes = self._data.keep(_renumber, attribute, radix, renumber, states=codes)
                added[attribute], size = (radix, present), len(present)
        if self._families and size > max_configurations:
            return False
        self._families.append(f)
        self._added.update(added)
        self.codes, self._size = codes, size
        return True

    def members(self, families: Sequence[Family], offsets: list[int], *, bias: bool) -> Index:
        """Return the cells that every configuration activates, (configurations, families); `bias` adds cell 0 first."""
        values = {}  # the value of every attribute in each configuration
        configurations = np.arange(self._size)
        # undo the renumbering: the last attribute added is the fastest digit of present[u]
        for attribute, (radix, present) in reversed(self._added.items()):
            configurations, values[attribute] = np.divmod(present[configurations], radix)
        columns = [np.zeros(self._size, np.intp)] if bias else []
        for f in self._families:
            digits = [values[a] for a in families[f].attributes]
            columns.append(offsets[f] + cell_numbers(digits, families[f].shape))
        return np.stack(columns, axis=1)


def _zeros(block: RowBlock) -> Codes:
    return np.zeros(block.n_rows, np.uint8)


def _joint_values(block: RowBlock, attribute: int, radix: int, rows: slice) -> Index:
    """Return u |X| + x, (rows,), where u is the joint code in the block's state and x the attribute's value."""
    return cell_numbers([block.state[rows], block.codes[attribute][rows]], (0, radix))


def _presence(block: RowBlock, attribute: int, radix: int, size: int) -> Mask:
    """Return whether each joint value occurs in the block; the sum of booleans over blocks is a logical or."""
    present = np.zeros(size * radix, bool)
    for rows in block.slices():
        present[_joint_values(block, attribute, radix, rows)] = True
    return present


def _renumber(block: RowBlock, attribute: int, radix: int, renumber: Codes) -> Codes:
    codes = np.empty(block.n_rows, renumber.dtype)
    for rows in block.slices():
        codes[rows] = renumber[_joint_values(block, attribute, radix, rows)]
    return codes


def _interleave(block: RowBlock, dtype: np.dtype[Any]) -> Integers:
    """Return the codes as one array (groups, rows); free the separate ones, because memory may not hold both."""
    codes = np.empty((block.n_rows, len(block.state)), dtype)
    # popped from the end, so that each separate array is freed once it is copied
    for g in reversed(range(len(block.state))):
        codes[:, g] = block.state.pop()
    if block.n_rows >= MANY_ROWS:
        # the GNU C library keeps freed memory between pieces in use; malloc_trim returns it to the system
        with suppress(OSError, AttributeError, TypeError):
            ctypes.CDLL(None).malloc_trim(0)
    return codes.T


def _as_types(block: RowBlock, kinds: Sequence[np.dtype[Any]]) -> list[Integers]:
    return [codes.astype(dtype, copy=False) for codes, dtype in zip(block.state, kinds, strict=True)]


@dataclass(frozen=True)
class JointCodes:
    """The code of each row's joint value, codes[s] (rows of block s,); every code below `size` occurs."""

    codes: list[NDArray[np.uint32]]
    size: int


def no_attributes(data: Dataset) -> JointCodes:
    """Return the joint codes of no attributes: 0 for every row."""
    return JointCodes([np.zeros(b - a, np.uint32) for a, b in data.bounds()], 1)


def extend(data: Dataset, joint: JointCodes, attribute: int) -> tuple[JointCodes, Index]:
    """Add an attribute to the joint codes; return the new codes, and the old code of each new one, ascending."""
    radix = data.schema.cardinalities[attribute]
    if joint.size * radix <= MAX_MARKED:
        present = np.flatnonzero(data.reduce(_presence, attribute, radix, joint.size, states=joint.codes))
        renumber = np.zeros(joint.size * radix, np.uint32)
        renumber[present] = np.arange(len(present), dtype=np.uint32)
        codes = data.map(_renumber, attribute, radix, renumber, states=joint.codes)
    else:
        present = distinct(np.concatenate(data.map(_distinct, attribute, radix, states=joint.codes)))
        codes = data.map(_search, attribute, radix, present, states=joint.codes)
    return JointCodes(codes, len(present)), present // radix


def _distinct(block: RowBlock, attribute: int, radix: int) -> Index:
    return distinct(_joint_values(block, attribute, radix, slice(None)))


def _search(block: RowBlock, attribute: int, radix: int, present: Index) -> NDArray[np.uint32]:
    return np.searchsorted(present, _joint_values(block, attribute, radix, slice(None))).astype(np.uint32)
