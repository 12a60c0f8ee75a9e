"""Some effects as numbers of each row: what the preconditioner of effects needs of the rows.

    z_tq = sum over families f of T[cell_f(t), q],    C_b[q, r] = sum over rows t of factor_bt z_tq z_tr

There are two ways to C, and the faster one is taken: to count the cells of every two families together, as is done for
indicators (`bncli.engine.kernels.gram`), which is best for few families; or the plain product of matrices, rows by
effects, which is best where many families have few of the effects each.

The numbers are looked up by the configurations of the fused groups: a block of effects belongs to one family, and a
family to one group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bncli.engine.counting.fusion import Fusion
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.kernels.gram import Functions, Packing, functions_work, pack_functions
from bncli.engine.parameter_spaces.effects import Effects

ROWS = 1 << 11
"""Rows at a time: their effects stay in cache."""
LOOKED_UP, MULTIPLIED = 2.0, 0.1
"""Nanoseconds, roughly, of a number that is looked up, and of a multiplication in a product of matrices."""


@dataclass(frozen=True)
class Features:
    """n effects of each row; `families` look up those of one family each."""

    families: tuple[Functions, ...]
    n: int

    def work(self, n_rows: int, n_blocks: int) -> float:
        """Nanoseconds, roughly, of `products`."""
        return n_rows * self.n * (LOOKED_UP + MULTIPLIED * n_blocks * self.n)

    def affordable_rows(self, budget: float, n_blocks: int) -> int:
        """How many rows `budget` nanoseconds are enough for."""
        return int(budget / self.work(1, n_blocks))

    def products(self, configurations: Sequence[Index], factors: Array) -> Array:
        """C (blocks, n, n); configurations[g] (rows,) of group g, factors (blocks, rows)."""
        total = np.zeros((len(factors), self.n, self.n))
        for start in range(0, factors.shape[1], ROWS):
            rows = slice(start, start + ROWS)
            total += weighted_products(self.values([codes[rows] for codes in configurations]), factors[:, rows])
        return total

    def values(self, configurations: Sequence[Index]) -> Array:
        """z (rows, n); configurations[g] (rows,) of group g."""
        out = np.empty((len(configurations[0]), self.n))
        for family in self.families:
            out[:, family.numbers] = family.values[family.codes[configurations[family.group]]]
        return out


def weighted_products(values: Array, factors: Array) -> Array:
    """C (blocks, n, n) of z (rows, n) and factors (blocks, rows)."""
    return np.stack([(values.T * factor) @ values for factor in factors])


def features(effects: Effects, fusion: Fusion, chosen: Index, n_rows: int, n_blocks: int) -> Packing | Features:
    """The effects `chosen`, ascending, the bias, 0, among them, for about so many rows and sets of factors."""
    families = tuple(_functions(effects, fusion, chosen))
    plain = Features(families, len(chosen))
    if functions_work(families, n_rows, n_blocks) <= plain.work(n_rows, n_blocks):
        return pack_functions(families, len(chosen))
    return plain


def _functions(effects: Effects, fusion: Fusion, chosen: Index) -> Iterator[Functions]:
    """The bias, then the families that have any of these effects, group by group."""
    of_family: dict[int, list[tuple[Index, Array]]] = {}
    for family, numbers, table in effects.columns(chosen):
        of_family.setdefault(family, []).append((numbers, table))
    first = np.cumsum([1, *(family.n_cells for family in effects.families)])
    yield Functions(0, np.zeros(len(fusion.members[0]), np.intp), np.zeros(1, np.intp), np.ones((1, 1)))
    for g, members in enumerate(fusion.members):
        for cells in members.T:
            family = int(np.searchsorted(first, cells[0], side="right")) - 1  # -1 for the bias
            if family in of_family:
                numbers = np.concatenate([some for some, _ in of_family[family]])
                table = np.concatenate([values for _, values in of_family[family]], axis=1)
                met = np.bincount(cells - first[family], minlength=len(table)) > 0
                codes = (np.cumsum(met) - 1)[cells - first[family]]
                yield Functions(g, codes, numbers, table[met])
