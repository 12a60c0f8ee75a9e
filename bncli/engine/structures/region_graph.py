"""Counting numbers: the exponent of each region's submodel in a model, so that overlaps are not counted twice.

A model is a set of regions M. Regions inside another region are redundant. The other regions, their intersections, the
intersections of these and so on form the region graph, with the counting numbers

    c_R = 1 - sum of c_S over S strictly containing R,      log Phi(v) = sum over R of c_R ln P(v_R)

(cluster variation method: Yedidia, Freeman & Weiss 2001; Jakulin & Rish 2006, algorithm 1). Then every set Q inside
some region, a "covered" set, has sum of c_R over R containing Q = 1, and all other sets have 0. Moebius inversion turns
this into a sum over covered sets, from which everything needed here follows without building the graph:

    log Phi(v) = sum over covered Q of k_Q(v_Q),    k_Q(v_Q) = sum over R in Q of (-1)^|Q - R| ln P(v_R)

So adding a region A only adds terms for its own subsets: k_Q for every Q in A that was not covered before.
A region is a tuple of attribute indices, ascending, without the class; () is the class alone, which is always covered.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

Region = tuple[int, ...]
Member = TypeVar("Member", bound=Hashable)


def subsets(region: Region) -> Iterable[Region]:
    """Return every subset, the empty one first, then by size.

    >>> list(subsets((0, 2)))
    [(), (0,), (2,), (0, 2)]
    """
    return itertools.chain.from_iterable(itertools.combinations(region, size) for size in range(len(region) + 1))


def cover(covered: set[Region], region: Region) -> list[Region]:
    """Add the subsets of a new region to the covered sets of a model; return those that were not covered, by size.

    >>> cover({(), (0,), (1,), (0, 1)}, (1, 2))
    [(2,), (1, 2)]
    """
    new = [subset for subset in subsets(region) if subset not in covered]
    covered.update(new)
    return new


def counting_changes(newly_covered: Iterable[Region]) -> dict[Region, int]:
    """Return the nonzero changes of counting numbers when one region adds the sets `newly_covered`.

    dc_R = sum over Q in newly_covered, R in Q, of (-1)^|Q - R|

    With sets as bits of a number, the sum is taken over one member after the other, which costs m 2^m steps for a
    region of m attributes instead of 3^m.

    >>> counting_changes([(2,), (1, 2)])  # (1, 2) joins (0, 1): P(0, 1) P(1, 2) / P(1), since both contain 1
    {(1,): -1, (1, 2): 1}
    """
    sets = list(newly_covered)
    bits = {member: 1 << place for place, member in enumerate(sorted(set(itertools.chain.from_iterable(sets))))}
    numbers = [0] * (1 << len(bits))
    for region in sets:
        numbers[sum(bits[member] for member in region)] = 1
    for bit in bits.values():
        for mask in range(len(numbers)):
            if not mask & bit:
                numbers[mask] -= numbers[mask | bit]
    changes = {mask: number for mask, number in enumerate(numbers) if number}
    return {tuple(i for i, bit in bits.items() if mask & bit): number for mask, number in changes.items()}


def maximal(regions: Iterable[tuple[Member, ...]]) -> list[tuple[Member, ...]]:
    """Return the regions that no other region contains, each once, in the order given.

    >>> maximal([(0,), (0, 1), (1, 0), (2,)])
    [(0, 1), (2,)]
    """
    distinct: dict[frozenset[Member], tuple[Member, ...]] = {}
    for region in regions:
        distinct.setdefault(frozenset(region), region)
    holders: dict[Member, set[int]] = defaultdict(set)
    for position, region in enumerate(distinct.values()):
        for member in region:
            holders[member].add(position)
    outermost = []
    for region in distinct.values():
        # the regions that contain this one, itself among them, hold all its members
        containing = sorted((holders[member] for member in region), key=len)
        n_containing = len(containing[0].intersection(*containing[1:])) if region else len(distinct)
        if n_containing == 1:
            outermost.append(region)
    return outermost


def inside_earlier(regions: Sequence[tuple[Hashable, ...]]) -> list[int]:
    """Return the positions of the regions that an earlier region contains or equals, ascending; no region is empty."""
    holders: dict[Hashable, set[int]] = defaultdict(set)
    inside = []
    for position, region in enumerate(regions):
        containing = sorted((holders[member] for member in region), key=len)
        if containing[0].intersection(*containing[1:]):
            inside.append(position)
        for member in region:
            holders[member].add(position)
    return inside
