"""Rows as a few fused codes: families packed into groups by the joint configurations that occur.

A pass over the data looks up one number per family and row. Families are fused into groups as long as the
configurations *observed* in the data stay few enough for a group's table to live in the second-level cache; then one
look-up serves the whole group, and a gradient is one bincount per group:

    S[t] = sum over groups g of E_g[code_g(t)],    E_g[u] = sum over families f in g of W[cell_f(u)]

Cells of all families are numbered in one range: cell 0 is the bias, always active; then family after family.
Building costs as much as a few passes; it renumbers by presence and never sorts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.dataset import Dataset, RowBlock, code_dtype
from bncli.engine.kernels.arrays import Array, Index, Integers, Mask
from bncli.engine.kernels.cells import cell_numbers
from bncli.engine.structures.structure import Family

FusedCodes = Sequence[Integers]

MAX_JOINT = 1 << 22
"""Fusion is not tried where more joint configurations are possible; the group is closed instead."""
WIDE_BYTES = 200 << 20
"""Codes are kept ready for indexing (8 bytes each) up to this size in all, in the narrowest type beyond it."""


@dataclass(frozen=True)
class Fusion:
    """members[g] (configurations, families in g): the cells that a configuration of group g activates.

    codes[s][g] (rows of block s,): the configuration of each row. n_cells counts the bias.
    """

    members: tuple[Index, ...]
    codes: Sequence[FusedCodes]
    n_cells: int

    def expand(self, cells: Array) -> list[Array]:
        """Tables of the groups, each (rows of `cells`, configurations), from cells of shape (any, n_cells)."""
        tables = []
        for members in self.members:
            table = np.take(cells, members[:, 0], axis=1)
            for column in members.T[1:]:
                table += np.take(cells, column, axis=1)
            tables.append(table)
        return tables

    def gather(self, tables: Sequence[Array]) -> Array:
        """The transpose of `expand`: cells (any, n_cells) from one table (any, configurations) a group."""
        targets = np.concatenate([members.ravel() for members in self.members])
        widths = np.concatenate([np.full(len(members), members.shape[1]) for members in self.members])
        rows = zip(*tables, strict=True)
        return np.array([np.bincount(targets, np.repeat(np.concatenate(row), widths), self.n_cells) for row in rows])


def fuse(data: Dataset, families: Sequence[Family], max_configurations: int) -> Fusion:
    """Groups with at most `max_configurations` observed configurations each; a lone family may have more."""
    offsets = list(itertools.accumulate((family.n_cells for family in families), initial=1))
    groups = list(_groups(data, families, max_configurations))
    members = [_members(group, families, offsets, bias=g == 0) for g, group in enumerate(groups)]
    # indexing with narrow codes converts them in every pass; wide ones are converted once
    wide = data.n_rows * len(groups) * 8 <= WIDE_BYTES
    codes = [
        [group.codes[s].astype(np.intp if wide else code_dtype(group.size)) for group in groups]
        for s in range(len(data.bounds()))
    ]
    return Fusion(tuple(members), codes, offsets[-1])


@dataclass(frozen=True)
class _Group:
    """Families fused so far, and the configuration of each row, block by block.

    Attributes were added one by one: added[a] = (radix, present), where present[u] = u' radix + value of a is the
    configuration u in terms of the configuration u' before a was added.
    """

    families: tuple[int, ...]
    added: dict[int, tuple[int, Index]]
    codes: FusedCodes
    size: int

    def values(self) -> dict[int, Index]:
        """The value of every attribute in each configuration, (size,)."""
        found = {}
        configurations = np.arange(self.size)
        for attribute, (radix, present) in reversed(self.added.items()):
            configurations, found[attribute] = np.divmod(present[configurations], radix)
        return found


def _groups(data: Dataset, families: Sequence[Family], max_configurations: int) -> Iterator[_Group]:
    empty = _Group((), {}, [np.zeros(b - a, np.uint32) for a, b in data.bounds()], 1)
    group = empty
    for f in _depth_first(families):
        grown = _add_family(data, group, f, families[f])
        # a lone family that is too large stays a group of its own: it cannot be made smaller
        if grown is None or (group.families and grown.size > max_configurations):
            yield group
            grown = _add_family(data, empty, f, families[f])
            assert grown is not None, "a family alone always fits"
        group = grown
    yield group


def _depth_first(families: Sequence[Family]) -> list[int]:
    """Families so that a child follows the family of its first parent: neighbours share attributes."""
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


def _add_family(data: Dataset, group: _Group, f: int, family: Family) -> _Group | None:
    """The group with one family more; None where too many joint configurations are possible to try."""
    for attribute, radix in zip(family.attributes, family.shape, strict=True):
        if attribute not in group.added:
            if group.families and group.size * radix > MAX_JOINT:
                return None
            group = _add_attribute(data, group, attribute, radix)
    return _Group((*group.families, f), group.added, group.codes, group.size)


def _add_attribute(data: Dataset, group: _Group, attribute: int, radix: int) -> _Group:
    present = np.flatnonzero(data.reduce(_presence, attribute, radix, group.size, states=group.codes))
    renumber = np.zeros(group.size * radix, np.uint32)
    renumber[present] = np.arange(len(present), dtype=np.uint32)
    codes = data.map(_extend, attribute, radix, renumber, states=group.codes)
    return _Group(group.families, {**group.added, attribute: (radix, present)}, codes, len(present))


def _presence(block: RowBlock, attribute: int, radix: int, size: int) -> Mask:
    """Which joint configurations occur in the block (a logical or is the sum of booleans)."""
    present = np.zeros(size * radix, bool)
    for rows in block.slices():
        present[cell_numbers([block.state[rows], block.codes[attribute][rows]], (size, radix))] = True
    return present


def _extend(block: RowBlock, attribute: int, radix: int, renumber: NDArray[np.uint32]) -> NDArray[np.uint32]:
    codes = np.empty(block.n_rows, np.uint32)
    for rows in block.slices():
        codes[rows] = renumber[cell_numbers([block.state[rows], block.codes[attribute][rows]], (0, radix))]
    return codes


def _members(group: _Group, families: Sequence[Family], offsets: list[int], *, bias: bool) -> Index:
    columns = [np.zeros(group.size, np.intp)] if bias else []
    values = group.values()
    for f in group.families:
        digits = [values[a] for a in families[f].attributes]
        columns.append(offsets[f] + cell_numbers(digits, families[f].shape))
    return np.stack(columns, axis=1)
