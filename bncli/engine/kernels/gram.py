"""Co-occurrence of indicators, weighted by one factor per row and block.

    C_b[i, j] = sum over rows t of q_bt z_ti z_tj

Rows come as configurations of groups, and a configuration tells which indicators are active. Indicators that exclude
one another form a *set*; the sets are packed under joint codes of up to PACKED values, and every pair of packs is one
weighted bincount. Cost: packs^2 / 2 bincounts a block, whatever the number of indicators; on real tables between once
and a tenth of the dense product of 0/1 columns. Functions of few codes, of which several may be other than 0 at a time,
are packed and counted likewise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bncli.engine.kernels.arrays import Array, Index

PACKED = 128
"""Sets share a pack while their joint codes are at most so many; a larger set has one of its own."""
ROWS = 1 << 14
"""Rows at a time: temporaries stay in cache."""


@dataclass(frozen=True)
class Pack:
    """Sets under one code: that of row t is the sum over `parts` (g, share) of share[configuration of t in group g].

    active (n_codes, indicators in the pack) is 1 where a code has that indicator, or the value of that function; None
    where code i is indicator i, and one more code, if there is one, means none.
    """

    parts: tuple[tuple[int, Index], ...]
    n_codes: int
    indicators: Index
    active: Array | None

    def codes(self, configurations: Sequence[Index]) -> Index:
        (g, share), *others = self.parts
        total = share[configurations[g]]
        for g, share in others:
            total += share[configurations[g]]
        return total

    def project(self, tables: Array) -> Array:
        """Return sums (any, any, indicators) over the codes, the last axis of `tables`."""
        if self.active is None:
            return tables[..., : len(self.indicators)]
        return np.asarray(tables @ self.active)


@dataclass(frozen=True)
class Packing:
    """All packs of n indicators."""

    packs: tuple[Pack, ...]
    n: int

    def work(self, n_rows: int, n_blocks: int) -> float:
        """Nanoseconds, roughly, of `co_occurrences`."""
        return _work([pack.n_codes for pack in self.packs], n_rows, n_blocks)

    def affordable_rows(self, budget: float, n_blocks: int) -> int:
        """Return how many rows `budget` nanoseconds are enough for."""
        fixed = self.work(0, n_blocks)
        return max(0, int((budget - fixed) / (self.work(ROWS, n_blocks) - fixed) * ROWS))


@dataclass(frozen=True)
class Functions:
    """Some functions of a code that follows from a group's configuration: codes (configurations,) of group `group`.

    values (codes, functions); `numbers` says which of all functions they are.
    """

    group: int
    codes: Index
    numbers: Index
    values: Array


@dataclass(frozen=True)
class _Set:
    """One set: the place among `indicators` of the active one in each configuration, their number where none is.

    With `values` (n_codes, indicators) these are functions of any code.
    """

    group: int
    local: Index
    n_codes: int
    indicators: Index
    values: Array | None = None

    def at(self, codes: Index) -> Array:
        """Return the indicators or functions (codes, any) at some codes."""
        if self.values is not None:
            return np.asarray(self.values[codes])
        return np.asarray((codes[:, np.newaxis] == np.arange(len(self.indicators))), np.float64)


def pack(places: Sequence[Index], n: int) -> Packing:
    """places[g] (configurations, sets) is the indicator that a configuration activates in each set, n where none."""
    # most of the sets of a wide table have no indicator: they are passed over together
    found = (_set(g, column, n) for g, place in enumerate(places) for column in place.T[(place < n).any(axis=0)])
    return _packed([one for one in found if one is not None], n)


def _set(group: int, column: Index, n: int) -> _Set | None:
    present = np.bincount(column, minlength=n + 1) > 0
    indicators = np.flatnonzero(present[:n])
    if not len(indicators):
        return None
    number = np.cumsum(present) - 1
    return _Set(group, number[column], int(present.sum()), indicators)


def _packed(sets: Sequence[_Set], n: int) -> Packing:
    return Packing(tuple(_close(sets[part]) for part in _shared([one.n_codes for one in sets])), n)


def _close(sets: Sequence[_Set]) -> Pack:
    """Joint codes are mixed-radix numbers, the first set slowest."""
    n_codes = 1
    parts: dict[int, Index] = {}
    for found in reversed(sets):
        share = found.local * n_codes
        parts[found.group] = parts[found.group] + share if found.group in parts else share
        n_codes *= found.n_codes
    digits = np.array(np.unravel_index(np.arange(n_codes), [s.n_codes for s in sets]))
    indicators = np.concatenate([s.indicators for s in sets])
    if len(sets) == 1 and sets[0].values is None:
        return Pack(tuple(parts.items()), n_codes, indicators, None)
    active = [s.at(codes) for codes, s in zip(digits, sets, strict=True)]
    return Pack(tuple(parts.items()), n_codes, indicators, np.concatenate(active, axis=1))


def _shared(n_codes: Sequence[int]) -> Iterator[slice]:
    """Neighbouring sets that share a pack."""
    first, joint = 0, 1
    for place, size in enumerate(n_codes):
        if place > first and joint * size > PACKED:
            yield slice(first, place)
            first, joint = place, 1
        joint *= size
    if first < len(n_codes):
        yield slice(first, len(n_codes))


def pack_functions(families: Sequence[Functions], n: int) -> Packing:
    """Return the same for n functions, in families with one code each."""
    return _packed([_Set(f.group, f.codes, len(f.values), f.numbers, f.values) for f in families], n)


def functions_work(families: Sequence[Functions], n_rows: int, n_blocks: int) -> float:
    """Of what `pack_functions` would make."""
    n_codes = [len(family.values) for family in families]
    return _work([math.prod(n_codes[part]) for part in _shared(n_codes)], n_rows, n_blocks)


def _work(n_codes: Sequence[int], n_rows: int, n_blocks: int) -> float:
    """By the codes of every pack."""
    sizes = np.array(n_codes, float)
    n_pairs = len(sizes) * (len(sizes) + 1) / 2
    entries = float(sizes.sum() ** 2 + np.square(sizes).sum()) / 2
    return n_pairs * 2e4 + n_blocks * (n_pairs * (6e3 + 1.8 * n_rows) + entries * max(1, n_rows / ROWS))


def co_occurrences(packing: Packing, configurations: Sequence[Index], factors: Array) -> Array:
    """Return C (blocks, n, n); configurations[g] (rows,) of group g, factors (blocks, rows) not negative."""
    total = np.zeros((len(factors), packing.n, packing.n))
    for start in range(0, factors.shape[1], ROWS):
        rows = slice(start, start + ROWS)
        codes = [pack.codes([c[rows] for c in configurations]) for pack in packing.packs]
        _add(total, packing.packs, codes, factors[:, rows])
    return total


def _add(total: Array, packs: Sequence[Pack], codes: Sequence[Index], factors: Array) -> None:
    for a, (first, code) in enumerate(zip(packs, codes, strict=True)):
        joint = np.empty_like(code)
        for second, other in zip(packs[:a], codes[:a], strict=True):
            np.multiply(code, second.n_codes, out=joint)
            joint += other
            size = first.n_codes * second.n_codes
            tables = np.array([np.bincount(joint, f, size) for f in factors])
            tables = tables.reshape(len(factors), first.n_codes, second.n_codes)
            block = first.project(second.project(tables).transpose(0, 2, 1))
            total[:, second.indicators[:, np.newaxis], first.indicators] += block
            total[:, first.indicators[:, np.newaxis], second.indicators] += block.transpose(0, 2, 1)
        own = np.array([np.bincount(code, f, first.n_codes) for f in factors])
        total[:, first.indicators[:, np.newaxis], first.indicators] += _within(first, own)


def _within(pack: Pack, sums: Array) -> Array:
    """Return C among the indicators of one pack, from the sums (blocks, n_codes) of its codes."""
    if pack.active is None:
        own = sums[:, : len(pack.indicators)]
        return own[:, :, np.newaxis] * np.eye(len(pack.indicators))
    return np.asarray(pack.active.T @ (sums[:, :, np.newaxis] * pack.active))
