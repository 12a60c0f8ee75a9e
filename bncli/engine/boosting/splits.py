"""One oblivious tree: level after level the question that gains most in all nodes together.

With a gradient g (of one of two classes, or a random projection of all) and a curvature h of every row, a question that
sends the rows of every node n to the left L or to the right R gains

    sum over nodes n of   g_Ln^2 / (h_Ln + lambda) + g_Rn^2 / (h_Rn + lambda) - g_n^2 / (h_n + lambda)

(Friedman 2001, Annals of Statistics 29; Chen & Guestrin 2016, KDD, equation 7, summed over the nodes of a level). An
interval's questions are the edges of its bins, with a missing value on either side; a category's are the beginnings of
its levels when they are ordered by g / (h + lambda), all nodes together (Fisher 1958, JASA 53).

For the questions alone, gradients and curvatures are rounded at random to whole numbers, so that both sums fit into one
double (Shi, Ke, Chen et al. 2022, NeurIPS: Quantized training of gradient boosting decision trees); of many rows
WINDOW are looked at.

Cost: for each level one weighted count a row and column, and about twenty operations a node and bin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bncli.engine.boosting.columns import BinnedColumns, Block
from bncli.engine.kernels.arrays import Array, Index, Mask

LEAST_CURVATURE = 0.1
"""On either side of a question, all nodes together."""
LEAST_GAIN = 1e-9
WINDOW = 1 << 17
"""Rows, at most."""
_FIELD = 26
"""Bits of a double for each of two sums; with a sign each, and all rows in one node, none overflows."""


Units = tuple[float, float]
"""What a whole number of gradient, and of curvature, stands for."""


@dataclass(frozen=True)
class BinSplit:
    """Which bins of a column go to the right."""

    column: int
    right: Mask
    gain: float


class Splits:
    """Grows trees on windows of the rows of `columns`."""

    def __init__(self, columns: BinnedColumns, penalty: float, depth: int) -> None:
        self.columns, self.penalty, self.depth = columns, penalty, depth

    def grow(self, g: Array, h: Array, rows: slice, rng: np.random.Generator) -> list[BinSplit]:
        """The questions of a tree from the gradients and curvatures (n,) of a window of the shuffled rows."""
        packed, units = _packed(g, h, rng)
        longest = np.tile(packed, max((len(block.columns) for block in self.columns.blocks), default=0))
        tiled = [longest[: len(block.columns) * len(h)] for block in self.columns.blocks]
        node, questions = np.zeros(len(h), np.intp), list[BinSplit]()
        for level in range(self.depth):
            best = self._best(node, 1 << level, tiled, units, rows)
            if best is None:
                break
            questions.append(best)
            node = 2 * node + self._answers(best, rows)
        return questions

    def _best(self, node: Index, n_nodes: int, tiled: Sequence[Array], units: Units, rows: slice) -> BinSplit | None:
        best: BinSplit | None = None
        for block, packed in zip(self.columns.blocks, tiled, strict=True):
            n_places = len(block.columns) * block.width
            flat = (block.places[:, rows] + node * n_places).ravel()
            sums: Array = np.bincount(flat, packed, n_nodes * n_places).astype(np.float64, copy=False)
            counted = sums.reshape(n_nodes, -1, block.width)
            found = _best_of(block, counted, units, self.penalty)
            if found.gain > LEAST_GAIN and (best is None or found.gain > best.gain):
                best = found
        return best

    def _answers(self, question: BinSplit, rows: slice) -> Mask:
        """Of the rows of the window."""
        block = next(b for b in self.columns.blocks if 0 <= question.column - b.first < len(b.columns))
        c = question.column - block.first
        right = np.zeros(len(block.columns) * block.width, bool)
        right[c * block.width : c * block.width + len(question.right)] = question.right
        return np.asarray(np.take(right, block.places[c, rows]))


def _packed(g: Array, h: Array, rng: np.random.Generator) -> tuple[Array, Units]:
    """Both in each number (n,), in whole units."""
    most = 2.0 ** (_FIELD - 1 - math.ceil(math.log2(len(g) + 1))) - 1
    units = tuple(max(float(np.abs(x).max(initial=0.0)), 1e-300) / most for x in (g, h))
    whole_g, whole_h = (np.floor(x / unit + rng.random(len(x))) for x, unit in zip((g, h), units, strict=True))
    return whole_g * 2.0**_FIELD + whole_h, (units[0], units[1])


def _unpacked(packed: Array, units: Units) -> tuple[Array, Array]:
    """Sums of g and of h."""
    g = np.rint(packed * 2.0**-_FIELD)
    h = packed - g * 2.0**_FIELD
    g *= units[0]
    h *= units[1]
    return g, h


def _best_of(block: Block, counted: Array, units: Units, penalty: float) -> BinSplit:
    """The block's question of the highest gain, from packed sums (nodes, columns, width)."""
    order = _order(block, counted, units, penalty)
    if order is not None:
        counted = counted[:, np.arange(len(order))[:, np.newaxis], order]
    left = counted.cumsum(axis=2)
    total = left[:, :1, -1:].copy()
    again = [c for c, column in enumerate(block.columns) if column.ordered and column.missing]
    # the missing level, the last bin, on the left
    last = np.array([block.columns[c].n_bins - 1 for c in again], np.intp)
    # beyond the last question the missing level is on the left already
    asked = np.arange(block.width) < last[:, np.newaxis] - 1
    moved = np.where(asked, left[:, again] + counted[:, again, last][..., np.newaxis], 0.0) if again else None
    gains = _gains(left, total, units, penalty)
    best = int(gains.argmax())
    found = _question(block, best, float(gains.flat[best]), order)
    if moved is None:
        return found
    gains = _gains(moved, total, units, penalty)
    gains[~asked] = 0.0
    best = int(gains.argmax())
    if gains.flat[best] <= found.gain:
        return found
    c, end = divmod(best, block.width)
    right = np.arange(block.columns[again[c]].n_bins) > end
    right[-1] = False
    return BinSplit(block.first + again[c], right, float(gains.flat[best]))


def _question(block: Block, best: int, gain: float, order: Index | None) -> BinSplit:
    """The bins beyond the best place."""
    c, end = divmod(best, block.width)
    right = np.zeros(block.width, bool)
    after = np.arange(end + 1, block.width)
    right[after if order is None else order[c, after]] = True
    return BinSplit(block.first + c, right[: block.columns[c].n_bins], gain)


def _order(block: Block, counted: Array, units: Units, penalty: float) -> Index | None:
    """The bins of every column (columns, width), levels by their gradients; None where there are none to order."""
    if block.stays.all():
        return None
    g, h = _unpacked(counted.sum(axis=0), units)
    # what is alike stays in its order
    return np.argsort(np.where(block.stays, np.inf, g / (h + penalty)), axis=1, kind="stable")


def _gains(left: Array, total: Array, units: Units, penalty: float) -> Array:
    """(columns, places) from packed sums: left (nodes, columns, places), overwritten, and total (nodes, 1, 1)."""
    all_g, all_h = _unpacked(total, (1.0, 1.0))
    g = left * 2.0**-_FIELD
    np.rint(g, out=g)
    left -= g * 2.0**_FIELD
    h = left
    curvature = h.sum(axis=0)
    # in place, in whole units: half of the time goes into reading and writing
    lost = penalty / units[1]
    rest = all_g - g
    g *= g
    h += lost
    g /= h
    rest *= rest
    np.subtract(all_h + 2.0 * lost, h, out=h)
    rest /= h
    g += rest
    gains = (g.sum(axis=0) - float((all_g * all_g / (all_h + lost)).sum())) * (units[0] ** 2 / units[1])
    least = LEAST_CURVATURE / units[1]
    gains[(curvature <= least) | (all_h.sum() - curvature <= least)] = 0.0
    return np.asarray(gains)
