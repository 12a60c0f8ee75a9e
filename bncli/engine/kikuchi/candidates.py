"""The candidates of one size: every region of so many attributes, and which of its subsets the model already covers.

All that a step needs of a candidate A follows from the coverage of its subsets, kept as one row of flags. A subset is
a number whose bit p says that it has the p-th attribute of A. With u_Q = 1 where Q in A is not covered, adding A
changes counting numbers and degrees of freedom by

    dc_R = sum over Q in A, R in Q, of u_Q (-1)^|Q - R|
    ddf = (K - 1) sum over Q in A of u_Q prod over i in Q of (|X_i| - 1)

(see `bncli.engine.structures.region_graph`; the second is that of conditional degrees of freedom, others have other
terms: `bncli.engine.kikuchi.degrees_of_freedom`). Both are products of arrays over all candidates at once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import numpy as np

from bncli.engine.kernels.arrays import Array, Index, Mask
from bncli.engine.structures.region_graph import Region


class Candidates:
    """sets (M, size), in lexicographic order; covered and df (M, 2^size), by the numbers of subsets.

    df: what a subset adds to the degrees of freedom when it becomes covered.
    """

    def __init__(self, sets: Index, df: Array) -> None:
        self.sets, self.size, self._df = sets, sets.shape[1], df
        self.covered = np.zeros((len(sets), 1 << self.size), bool)
        self.covered[:, 0] = True

    def cover(self, sets: Iterable[Region]) -> Index:
        """Marks what the model now covers; the candidates to which that is new."""
        touched = np.zeros(len(self.sets), bool)
        for covered in sets:
            for positions in itertools.combinations(range(self.size), len(covered)) if covered else ():
                having = self._having(positions, covered)
                self.covered[having, sum(1 << p for p in positions)] = True
                touched[having] = True
        return np.flatnonzero(touched)

    def _having(self, positions: Sequence[int], covered: Region) -> Index:
        """The candidates with these attributes at these positions."""
        alike = self.sets[:, positions[0]] == covered[0]
        for position, attribute in zip(positions[1:], covered[1:], strict=True):
            alike &= self.sets[:, position] == attribute
        return np.flatnonzero(alike)

    @property
    def present(self) -> Mask:
        """Whether a region of the model contains the candidate."""
        return self.covered[:, -1]

    def added_df(self) -> Array:
        """What every candidate adds to the degrees of freedom."""
        return np.asarray(np.where(self.covered, 0.0, self._df).sum(axis=1))

    def changes(self, which: Index) -> Array:
        """dc of these candidates, (len(which), 2^size), by the numbers of subsets."""
        return (~self.covered[which]).astype(np.float64) @ _signs(self.size)


def _signs(size: int) -> Array:
    """(-1)^|Q - R| of all subsets Q (rows) and R in Q (columns), elsewhere 0."""
    one = np.array([[1.0, 0.0], [-1.0, 1.0]])
    signs = np.ones((1, 1))
    for _ in range(size):
        signs = np.kron(one, signs)
    return signs


def all_sets(attributes: Sequence[int], size: int) -> Index:
    """Every set of `size` attributes, in lexicographic order."""
    flat = itertools.chain.from_iterable(itertools.combinations(attributes, size))
    return np.fromiter(flat, np.intp, math.comb(len(attributes), size) * size).reshape(-1, size)


def strongest_sets(ranked: Sequence[int], size: int, most: int) -> Index:
    """At most `most` sets of `size` attributes, in lexicographic order; ranked: the attributes, the strongest first.

    Sets whose weakest attribute is strongest are taken first, of equals those whose second weakest is, and so on. None
    where fewer attributes than that are ranked.
    """
    if len(ranked) < size:
        return np.empty((0, size), np.intp)
    n = size
    while n < len(ranked) and math.comb(n, size) < most:
        n += 1
    places = all_sets(range(n), size)
    places = places[np.lexsort(places.T)][:most]
    sets = np.sort(np.array(ranked, np.intp)[places], axis=1)
    return sets[np.lexsort(sets.T[::-1])]
