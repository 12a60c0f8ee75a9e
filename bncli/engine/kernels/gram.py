"""Weighted Gram matrices Z'QZ of 0/1 indicator columns, one per block of weights.

    C_b[i, j] = sum over rows t of q_bt z_ti z_tj

Here z_ti is 1 if indicator i is active in row t, and q_bt is the weight of the row in block b. A row has one
configuration in each group of attributes, and its configurations determine the active indicators. Indicators that
exclude one another form a *set*; the sets are packed under joint codes of up to PACKED values, and every pair of packs
takes one weighted bincount. Cost: packs^2 / 2 bincounts per block, regardless of the number of indicators. On real
tables this takes between a tenth and all of the time of the dense product of 0/1 columns. Real-valued functions of a
code with few values, several of which may be nonzero in the same row, are packed and counted in the same way.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bncli.engine.kernels.arrays import Array, Index

PACKED = 128
"""Sets share a pack while they have at most this many joint codes; a larger set has a pack of its own."""
ROWS = 1 << 14
"""The number of rows processed at a time, so that temporaries stay in the cache."""


@dataclass(frozen=True)
class Pack:
    """A pack: sets of indicators under one joint code.

    The code of row t is the sum over `parts` (g, share) of share[configuration of t in group g]. `indicators` are the
    positions of the pack's indicators among all indicators. active (n_codes, indicators in the pack) is 1 where a code
    activates an indicator, or holds the values of functions. It is None if code i means that the pack's indicator i is
    active; one further code may mean that none is.
    """

    parts: tuple[tuple[int, Index], ...]
    n_codes: int
    indicators: Index
    active: Array | None

    def codes(self, configurations: Sequence[Index]) -> Index:
        (g, share), *others = self.parts
        # a copy, by indexing with an array, so adding to it in place is safe
        total = share[configurations[g]]
        for g, share in others:
            total += share[configurations[g]]
        return total

    def project(self, tables: Array) -> Array:
        """Return `tables` (..., n_codes) summed over codes, weighted by `active`, as (..., indicators in the pack)."""
        if self.active is None:
            # code i is indicator i; the slice drops the code of "none is active"
            return tables[..., : len(self.indicators)]
        return np.asarray(tables @ self.active)

    def project_rows(self, tables: Array) -> Array:
        """Return the same sums for tables (..., n_codes, any), as (..., indicators in the pack, any)."""
        if self.active is None:
            return tables[..., : len(self.indicators), :]
        return np.asarray(self.active.T @ tables)


@dataclass(frozen=True)
class Packing:
    """The packs of n indicators; an indicator that no configuration activates is in none of them."""

    packs: tuple[Pack, ...]
    n: int

    def work(self, n_rows: int, n_blocks: int) -> float:
        """Return the approximate time of `co_occurrences` in nanoseconds."""
        return _work([pack.n_codes for pack in self.packs], n_rows, n_blocks)

    def affordable_rows(self, budget: float, n_blocks: int) -> int:
        """Return the number of rows for which `co_occurrences` takes about `budget` nanoseconds."""
        fixed = self.work(0, n_blocks)
        return max(0, int((budget - fixed) / (self.work(ROWS, n_blocks) - fixed) * ROWS))


@dataclass(frozen=True)
class Functions:
    """Functions of one code, which the configuration in the group with number `group` determines.

    codes (configurations,) is the code of each configuration, values (codes, functions) the functions' values, and
    numbers (functions,) their positions among all functions.
    """

    group: int
    codes: Index
    numbers: Index
    values: Array


@dataclass(frozen=True)
class _Set:
    """A set of indicators; a configuration of `group` activates at most one of them.

    local (configurations,) is the position of the active indicator in `indicators`, or len(indicators) if none is
    active. With `values` (n_codes, indicators), `local` is a code instead, and the "indicators" are functions of it.
    """

    group: int
    local: Index
    n_codes: int
    indicators: Index
    values: Array | None = None


def pack_indicators(active: Sequence[Index], n: int) -> Packing:
    """Return the packing of n indicators.

    active[g] (configurations, sets) is the indicator that a configuration of group g activates in each set, or n if it
    activates none.
    """
    sets = []
    for g, of_group in enumerate(active):
        # most of the sets of a wide table have no indicator: they are skipped together
        for column in of_group.T[(of_group < n).any(axis=0)]:
            present = np.bincount(column, minlength=n + 1) > 0
            indicators = np.flatnonzero(present[:n])
            # n, "no indicator", comes last, so it gets the number after those of the indicators that occur
            number = np.cumsum(present) - 1
            sets.append(_Set(g, number[column], int(present.sum()), indicators))
    return _pack_sets(sets, n)


def pack_functions(families: Sequence[Functions], n: int) -> Packing:
    """Return the packing of n functions, given as families of functions of one code each."""
    return _pack_sets([_Set(f.group, f.codes, len(f.values), f.numbers, f.values) for f in families], n)


def _pack_sets(sets: Sequence[_Set], n: int) -> Packing:
    """Return the packing of sets; the first set of a pack is the most significant digit of the mixed-radix codes."""
    packs = []
    for part in _pack_slices([one_set.n_codes for one_set in sets]):
        members = sets[part]
        n_codes = 1
        # From the least to the most significant digit, n_codes is the place value of the next digit. Sets of one group
        # share a look-up: the same configuration determines their digits, so they are added up beforehand.
        parts: dict[int, Index] = {}
        for member in reversed(members):
            share = member.local * n_codes
            parts[member.group] = parts[member.group] + share if member.group in parts else share
            n_codes *= member.n_codes
        indicators = np.concatenate([member.indicators for member in members])
        if len(members) == 1 and members[0].values is None:
            # its codes number the indicators already
            packs.append(Pack(tuple(parts.items()), n_codes, indicators, None))
            continue
        # (members, n_codes): the digit of each member in every joint code, the first member's the most significant
        digits = np.array(np.unravel_index(np.arange(n_codes), [member.n_codes for member in members]))
        active = []
        for codes, member in zip(digits, members, strict=True):
            if member.values is None:
                # the code len(indicators), "none is active", equals no column number: a row of zeros
                active.append(np.asarray(codes[:, np.newaxis] == np.arange(len(member.indicators)), np.float64))
            else:
                # codes of a family of functions look up the functions' values
                active.append(np.asarray(member.values[codes]))
        packs.append(Pack(tuple(parts.items()), n_codes, indicators, np.concatenate(active, axis=1)))
    return Packing(tuple(packs), n)


def _pack_slices(n_codes: Sequence[int]) -> Iterator[slice]:
    """Yield the slice of consecutive sets that share each pack, given the number of codes of each set."""
    first, joint = 0, 1
    for place, size in enumerate(n_codes):
        if place > first and joint * size > PACKED:
            yield slice(first, place)
            first, joint = place, 1
        joint *= size
    if first < len(n_codes):
        yield slice(first, len(n_codes))


def functions_work(families: Sequence[Functions], n_rows: int, n_blocks: int) -> float:
    """Return the approximate time, in nanoseconds, of `co_occurrences` with the packing of these functions."""
    n_codes = [len(family.values) for family in families]
    return _work([math.prod(n_codes[part]) for part in _pack_slices(n_codes)], n_rows, n_blocks)


def _work(n_codes: Sequence[int], n_rows: int, n_blocks: int) -> float:
    """Return the approximate time of `co_occurrences` in nanoseconds, given the number of codes of each pack."""
    sizes = np.array(n_codes, float)
    n_pairs = len(sizes) * (len(sizes) + 1) / 2
    # cells of all pair tables: sum over pairs a <= b of s_a s_b
    entries = float(sizes.sum() ** 2 + np.square(sizes).sum()) / 2
    # Nanoseconds: per pair of packs, its joint codes; per block of weights, a bincount over the rows. The cells of the
    # tables are written once for every ROWS rows.
    return n_pairs * 2e4 + n_blocks * (n_pairs * (6e3 + 1.8 * n_rows) + entries * max(1, n_rows / ROWS))


def co_occurrences(packing: Packing, configurations: Sequence[Index], factors: Array) -> Array:
    """Return C (blocks, n, n), given configurations[g] (rows,) of every group and weights `factors` (blocks, rows)."""
    packs = packing.packs
    # the indicators of a pack side by side, so that its part of C is a slice; only the lower triangle is computed
    edges = np.cumsum([0, *(len(pack.indicators) for pack in packs)]).tolist()
    slices = [slice(start, end) for start, end in itertools.pairwise(edges)]
    total = np.zeros((len(factors), packing.n, packing.n))
    for start in range(0, factors.shape[1], ROWS):
        rows = slice(start, start + ROWS)
        codes = [pack.codes([c[rows] for c in configurations]) for pack in packs]
        _add_rows(total, packs, slices, codes, factors[:, rows])
    packed = np.concatenate([np.zeros(0, np.intp), *(pack.indicators for pack in packs)])
    # an indicator that no configuration activates is in no pack
    places = np.empty(packing.n, np.intp)
    places[np.append(packed, np.setdiff1d(np.arange(packing.n), packed))] = np.arange(packing.n)
    # one matrix after the other, so that temporary arrays are small
    for c in total:
        # the blocks on the diagonal are symmetric themselves, and exactly so after halving
        for within in slices:
            c[within, within] /= 2
        c += c.T
        c[:] = c.take(places, axis=0).take(places, axis=1)
    return total


def _add_rows(
    total: Array, packs: Sequence[Pack], slices: Sequence[slice], codes: Sequence[Index], factors: Array
) -> None:
    """Add rows to the blocks of C on and below the diagonal; the indicators of C are ordered by pack."""
    for a, (first, code, place) in enumerate(zip(packs, codes, slices, strict=True)):
        joint = np.empty_like(code)
        for second, other, other_place in zip(packs[:a], codes[:a], slices, strict=False):
            np.multiply(code, second.n_codes, out=joint)
            joint += other
            # the rows' weights by the codes of both packs, (blocks, codes of first, codes of second)
            tables = np.empty((len(factors), first.n_codes * second.n_codes))
            for table, q in zip(tables, factors, strict=True):
                table[:] = np.bincount(joint, q, len(table))
            of_second = second.project(tables.reshape(-1, second.n_codes))
            of_second = of_second.reshape(len(factors), first.n_codes, -1)
            total[:, place, other_place] += first.project_rows(of_second)
        # among the indicators of one pack
        sums = np.array([np.bincount(code, q, first.n_codes) for q in factors])
        if first.active is None:
            # they exclude one another, so each occurs together with itself only
            n = len(first.indicators)
            total[:, place, place] += sums[:, :n][:, :, np.newaxis] * np.eye(n)
        else:
            # sum over codes u of a[u, i] q[u] a[u, j]
            total[:, place, place] += first.active.T @ (sums[:, :, np.newaxis] * first.active)
