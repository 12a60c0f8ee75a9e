"""Scores of families as a greedy search asks for them: each counted and scored once.

A search that considers one more parent j for an attribute i with the attribute parents P needs the score of the family
(i, P + j) for every j: a *column*, which one sweep over the rows gives (see `bncli.engine.counting.sweep`). Columns are
kept, and answer for smaller families too: (i, P - l) stands in the column of (i, P - l - j), if the search met it.

Conventions: a family with parents whose table would have more than MAX_CELLS cells has the score -infinity, so that
no search moves to it. Memory: n numbers a column; tables are forgotten when they are scored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.counting.sweep import n_cells, tables_with_one_more
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.structure_search.family_score import FamilyScore
from bncli.watch import Progress, Watch, silent

Family = tuple[int, frozenset[int]]

NOBODY: frozenset[int] = frozenset()
MANY_ROWS = 1 << 16
"""From here on counting costs more than handling tables, and pairs of attributes are counted as super-attributes."""
MAX_CELLS = 1 << 24
"""Cells of the largest table (128 MiB) that a family may have."""


@dataclass(frozen=True)
class FamilyCache:
    """The scores, in nats, of families of informative attributes that all have the class as a parent."""

    counts: Counts
    rule: FamilyScore
    _columns: dict[Family, Array] = field(default_factory=dict)
    _alone: dict[Family, float] = field(default_factory=dict)

    def without_parents(self) -> list[float]:
        """The score of every informative attribute with the class alone; counted in one pass over the rows."""
        informative = self.counts.data.schema.informative
        self.counts.tables([(i,) for i in informative])
        return [self.score(i, NOBODY) for i in informative]

    def score_pairs(self, watch: Watch = silent) -> None:
        """The columns of all attributes without parents, from the table of every pair once."""
        informative, n = self.counts.data.schema.informative, len(self.counts.data.schema.attributes)
        largest = sorted(informative, key=self.counts.data.schema.cardinalities.__getitem__)[-2:]
        if n_cells(self.counts.data, largest) > MAX_CELLS:
            return  # each column is then counted by itself when it is asked for
        scores, done = np.full((n, n), -np.inf), 0
        for i, j, tables in self._pair_tables(informative):
            watch(Progress(done, math.comb(len(informative), 2), "pairs of attributes"))
            done += len(i)
            scores[i, j] = self.rule.score(tables)
            if not self.rule.equivalent:
                scores[j, i] = self.rule.score(tables.swapaxes(-2, -3))
        if self.rule.equivalent:
            alone = np.zeros(n)
            alone[list(informative)] = self.without_parents()
            # the score of an equivalent rule gains the same in both directions; -inf marks what was not counted
            scores = np.maximum(scores, (scores - alone[:, np.newaxis]).T + alone[:, np.newaxis])
        self._columns.update(((i, NOBODY), scores[i]) for i in informative)

    def _pair_tables(self, attributes: Sequence[int]) -> Iterator[tuple[Index, Index, Array]]:
        """(i, j, n[x_i, x_j, y]) for pairs whose tables have one shape; packing pays where there are many rows."""
        if self.counts.data.n_rows >= MANY_ROWS:
            yield from self.counts.pair_batches(attributes)
            return
        for place, i in enumerate(attributes):
            for later, tables in tables_with_one_more(self.counts.data, i, (), attributes[place + 1 :]):
                yield np.full(len(later), i), np.array(later), tables

    def score(self, child: int, parents: frozenset[int]) -> float:
        """The score of one family."""
        # any parent may have come last: the score is in the column of the others
        for last in sorted(parents):
            column = self._columns.get((child, parents - {last}))
            if column is not None:
                return float(column[last])
        if (child, parents) not in self._alone:
            self._alone[child, parents] = self._score_alone((child, *sorted(parents)))
        return self._alone[child, parents]

    def _score_alone(self, members: tuple[int, ...]) -> float:
        if len(members) > 1 and n_cells(self.counts.data, members) > MAX_CELLS:
            return -math.inf
        (table,) = self.counts.tables([members])
        return float(self.rule.score(table.reshape(len(table), -1, table.shape[-1])))

    def column(self, child: int, parents: frozenset[int]) -> Array:
        """The score of (child, parents + j) for every attribute j, shape (n,); -infinity where that is no candidate."""
        if (child, parents) not in self._columns:
            self._columns[child, parents] = self._new_column(child, parents)
        return self._columns[child, parents]

    def _new_column(self, child: int, parents: frozenset[int]) -> Array:
        data = self.counts.data
        base = (child, *sorted(parents))
        column = np.full(len(data.schema.attributes), -np.inf)
        candidates = [j for j in data.schema.informative if j not in base and n_cells(data, (*base, j)) <= MAX_CELLS]
        for group, tables in tables_with_one_more(data, child, base[1:], candidates):
            column[group] = self.rule.score(tables)
        return column
