"""Counting numbers: how often the submodel of a region enters a model, so that overlaps are not counted twice.

A model is a set of regions M. Those inside another are redundant; the rest, their intersections, the intersections of
these and so on are the region graph, with the counting numbers

    c_R = 1 - sum of c_S over S strictly containing R,      log Phi(v) = sum over R of c_R ln P(v_R)

(cluster variation method: Yedidia, Freeman & Weiss 2001; Jakulin & Rish 2006, algorithm 1). Then every set Q that some
region contains, "covered", has sum of c_R over R containing Q = 1, and all other sets have 0. Moebius inversion turns
this into a sum over covered sets, from which everything that is needed here follows without building the graph:

    log Phi(v) = sum over covered Q of k_Q(v_Q),    k_Q(v_Q) = sum over R in Q of (-1)^|Q - R| ln P(v_R)
    df = (K - 1) sum over covered Q of prod over i in Q of (|X_i| - 1)

(df: conditional degrees of freedom, Jakulin & Rish 2006, equation 7; K classes.) So adding the region A touches the
submodels of its own subsets only: it adds k_Q of every Q in A that was not covered.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

Region = tuple[int, ...]
Member = TypeVar("Member", bound=Hashable)
"""An attribute, by index or by name."""


class Coverage:
    """Which sets of attributes some region of a growing model contains; the class alone always is."""

    def __init__(self, regions: Iterable[Region] = ()) -> None:
        self._covered: set[Region] = {()}
        for region in regions:
            self.add(region)

    def __contains__(self, region: Region) -> bool:
        return region in self._covered

    def __iter__(self) -> Iterator[Region]:
        return iter(self._covered)

    def uncovered(self, region: Region) -> list[Region]:
        """Return the subsets of `region`, itself among them, that no region contains, small ones first."""
        return [subset for subset in subsets(region) if subset not in self._covered]

    def add(self, region: Region) -> list[Region]:
        """Take the region into the model; the sets that were not covered before."""
        new = self.uncovered(region)
        self._covered.update(new)
        return new


def subsets(region: Region) -> Iterable[Region]:
    """Return every subset, the empty one first, then by size.

    >>> list(subsets((0, 2)))
    [(), (0,), (2,), (0, 2)]
    """
    return itertools.chain.from_iterable(itertools.combinations(region, size) for size in range(len(region) + 1))


def counting_changes(newly_covered: Iterable[Region]) -> dict[Region, int]:
    """Return the changes of counting numbers when these sets, what one region adds, become covered; without zeros.

    dc_R = sum over Q in newly_covered, R in Q, of (-1)^|Q - R|

    The sum is taken over one member of Q - R after the other, sets being the bits of a number: m 2^m steps for the m
    members of the region, not 3^m.

    >>> model = Coverage([(0, 1)])
    >>> counting_changes(model.add((1, 2)))  # P(0, 1) P(1, 2) / P(1): the overlap would be counted twice
    {(1,): -1, (1, 2): 1}
    """
    covered = list(newly_covered)
    bits = {member: 1 << place for place, member in enumerate(sorted(set(itertools.chain.from_iterable(covered))))}
    numbers = [0] * (1 << len(bits))
    for region in covered:
        numbers[sum(bits[member] for member in region)] = 1
    for bit in bits.values():
        for without in range(len(numbers)):
            if not without & bit:
                numbers[without] -= numbers[without | bit]
    changes = {mask: number for mask, number in enumerate(numbers) if number}
    return {tuple(i for i, bit in bits.items() if mask & bit): number for mask, number in changes.items()}


def degrees_of_freedom(newly_covered: Iterable[Region], cardinalities: Sequence[int], n_labels: int) -> int:
    """Return what these sets add to df; that of the class alone, (), is K - 1.

    >>> degrees_of_freedom(subsets((0, 1)), cardinalities=(3, 4), n_labels=2)  # 3 * 4 cells
    12
    """
    return (n_labels - 1) * sum(math.prod(cardinalities[i] - 1 for i in covered) for covered in newly_covered)


def maximal(regions: Iterable[tuple[Member, ...]]) -> list[tuple[Member, ...]]:
    """Return the regions that no other one contains, each once, in the order given.

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

    def holding(region: tuple[Member, ...]) -> int:
        fewest, *others = sorted((holders[member] for member in region), key=len)
        return len(fewest.intersection(*others))

    return [region for region in distinct.values() if (holding(region) if region else len(distinct)) == 1]


def inside_earlier(regions: Sequence[tuple[Hashable, ...]]) -> list[int]:
    """Return the positions of the regions (not empty) that an earlier one contains or equals, ascending.

    The holders of a member are the earlier regions that have it: a region is inside those that hold all its members.
    """
    holders: dict[Hashable, set[int]] = defaultdict(set)
    found = []
    for position, region in enumerate(regions):
        fewest, *others = sorted((holders[member] for member in region), key=len)
        if fewest.intersection(*others):
            found.append(position)
        for member in region:
            holders[member].add(position)
    return found
