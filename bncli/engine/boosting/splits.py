"""One oblivious tree: level after level the question that gains most in all nodes together.

With gradients g (of a class, or of a random projection of all) and curvatures h of the rows, a question that
sends the rows of every node n to the left L or to the right R gains

    sum over nodes n and gradients q of
        g_Lnq^2 / (h_Ln + lambda) + g_Rnq^2 / (h_Rn + lambda) - g_nq^2 / (h_n + lambda)

(Friedman 2001, Annals of Statistics 29; Chen & Guestrin 2016, KDD, equation 7, summed over the nodes of a level). An
interval's questions are the edges of its bins, with a missing value on either side; a category's are the beginnings of
its levels when they are ordered by their gradient against their curvature (Fisher 1958, JASA 53), for several gradients
along their leading direction.

Cost: for each level one weighted count a row, column and sum, and about ten operations a node, bin and sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bncli.engine.boosting.columns import Block, Column, Columns
from bncli.engine.kernels.arrays import Array, Index, Mask

LEAST_CURVATURE = 0.1
"""On either side of a question, all nodes together."""
LEAST_GAIN = 1e-9


@dataclass(frozen=True)
class Question:
    """Which bins of a column go to the right."""

    column: int
    right: Mask
    gain: float


class Splits:
    """Grows trees on windows of the rows of `columns`."""

    def __init__(self, columns: Columns, penalty: float, depth: int) -> None:
        self.columns, self.penalty, self.depth = columns, penalty, depth
        self._layouts = [_Layout(block, self._of(block)) for block in columns.blocks]

    def grow(self, gradients: Array, curvatures: Array, start: int, n_rows: int) -> list[Question]:
        """The questions of a tree from gradients (N, Q) and curvatures (N,) of the shuffled rows from `start` on."""
        stop, n = start + n_rows, len(curvatures)
        window = np.arange(start, stop) % n
        sums = [np.ascontiguousarray(column) for column in (*gradients[window].T, curvatures[window])]
        tiled = [[np.tile(s, len(layout.columns)) for s in sums] for layout in self._layouts]
        node, questions = np.zeros(n_rows, np.intp), list[Question]()
        for level in range(self.depth):
            best = self._best(node, 1 << level, tiled, slice(start, stop))
            if best is None:
                break
            questions.append(best)
            node = 2 * node + self._answers(best, slice(start, stop))
        return questions

    def _of(self, block: Block) -> tuple[Column, ...]:
        return self.columns.columns[block.first : block.first + len(block.starts)]

    def _best(self, node: Index, n_nodes: int, tiled: Sequence[list[Array]], rows: slice) -> Question | None:
        best: Question | None = None
        for layout, sums in zip(self._layouts, tiled, strict=True):
            places = layout.block.places[:, rows] + node * layout.block.n_places
            flat, size = places.ravel(), n_nodes * layout.block.n_places
            counted: Array = np.stack([np.bincount(flat, s, size).reshape(n_nodes, -1) for s in sums])
            found = layout.best(counted, self.penalty)
            if found.gain > LEAST_GAIN and (best is None or found.gain > best.gain):
                best = found
        return best

    def _answers(self, question: Question, rows: slice) -> Mask:
        """Of the rows, in their shuffled order."""
        for layout in self._layouts:
            inside = question.column - layout.block.first
            if 0 <= inside < len(layout.columns):
                right = np.zeros(layout.block.n_places, bool)
                right[layout.starts[inside] : layout.stops[inside]] = question.right
                return np.asarray(np.take(right, layout.block.places[inside, rows]))
        raise IndexError(question.column)


class _Layout:
    """A block's places as questions: the end of each bin, then once more with the missing level on the left."""

    def __init__(self, block: Block, columns: tuple[Column, ...]) -> None:
        self.block, self.columns = block, columns
        sizes = np.array([column.n_bins for column in columns])
        self.starts, self.stops = block.starts, block.starts + sizes
        self.column_of = np.repeat(np.arange(len(columns)), sizes)
        self.categories = [c for c, column in enumerate(columns) if not column.ordered and column.n_bins > 2]
        with_missing = np.array([c for c, column in enumerate(columns) if column.ordered and column.missing], np.intp)
        places = [np.arange(self.starts[c], self.stops[c] - 2) for c in with_missing]
        self.again = np.concatenate([*places, np.zeros(0, np.intp)]).astype(np.intp)
        """Places that are asked with the missing level on the left, too."""
        self.missing_place = self.stops[self.column_of[self.again]] - 1

    def best(self, counted: Array, penalty: float) -> Question:
        """The question of the highest gain from counted (Q + 1, nodes, places), the curvatures last."""
        order = self._order(counted, penalty)
        ordered = counted if order is None else counted[:, :, order]
        left = self._left(ordered)
        total = left[:, :, self.stops[0] - 1 : self.stops[0]]
        left = np.concatenate([left, left[:, :, self.again] + counted[:, :, self.missing_place]], axis=2)
        gains = _gains(left, total, penalty)
        best = int(gains.argmax())
        return self._question(best, float(gains[best]), order)

    def _left(self, counted: Array) -> Array:
        """Sums over the bins of a column up to each place."""
        sums = counted.cumsum(axis=2)
        before = np.zeros((*sums.shape[:2], len(self.columns)))
        before[:, :, 1:] = sums[:, :, self.starts[1:] - 1]
        sums -= before[:, :, self.column_of]
        return sums

    def _order(self, counted: Array, penalty: float) -> Index | None:
        """Places with the levels of every category in the order of their gradients; None where there is none."""
        if not self.categories:
            return None
        order = np.arange(self.block.n_places)
        sums = counted.sum(axis=1)
        for c in self.categories:
            own = slice(self.starts[c], self.stops[c])
            order[own] = self.starts[c] + np.argsort(_direction(sums[:-1, own], sums[-1, own], penalty), kind="stable")
        return order

    def _question(self, best: int, gain: float, order: Index | None) -> Question:
        place = best if best < self.block.n_places else int(self.again[best - self.block.n_places])
        c = int(self.column_of[place])
        right = np.zeros(self.columns[c].n_bins, bool)
        after = np.arange(place + 1, self.stops[c])
        right[(after if order is None else order[after]) - self.starts[c]] = True
        if best >= self.block.n_places:
            right[-1] = False
        return Question(self.block.first + c, right, gain)


def _gains(left: Array, total: Array, penalty: float) -> Array:
    """(places,) from sums on the left (Q + 1, nodes, places) and in all (Q + 1, nodes, 1)."""
    right_h = total[-1] - left[-1]
    left_inverse, right_inverse = 1.0 / (left[-1] + penalty), 1.0 / (right_h + penalty)
    gains = np.zeros(left.shape[2])
    for g, all_g in zip(left[:-1], total[:-1], strict=True):
        rest = all_g - g
        gains += np.einsum("np,np,np->p", g, g, left_inverse) + np.einsum("np,np,np->p", rest, rest, right_inverse)
        gains -= float((all_g * all_g / (total[-1] + penalty)).sum())
    gains[(left[-1].sum(axis=0) <= LEAST_CURVATURE) | (right_h.sum(axis=0) <= LEAST_CURVATURE)] = 0.0
    return gains


def _direction(g: Array, h: Array, penalty: float) -> Array:
    """Where each level lies (levels,) along the direction in which g / h, (Q, levels), differ most."""
    ratios = g / (h + penalty)
    if len(g) == 1:
        return np.asarray(ratios[0])
    centred = ratios - (ratios @ h)[:, np.newaxis] / max(float(h.sum()), 1e-12)
    return np.asarray(np.linalg.eigh((centred * h) @ centred.T)[1][:, -1] @ centred)


def leaf_of(answers: Iterator[Mask] | Sequence[Mask], n_rows: int) -> Index:
    """The leaf of every row from its answers, the first the most significant digit."""
    leaf = np.zeros(n_rows, np.intp)
    for answer in answers:
        leaf = 2 * leaf + answer
    return leaf
