"""Scoring one row at a time, in microseconds, with exactly the results of `prediction.scoring`.

For a block of rows the cost of a numpy call is spread over the rows; for one row it is nearly the whole cost. So the
tables of a model are stored in a different layout, and a row takes the same few calls however many tables there are:

    cell_f = sum over attributes a of f of  share[f, a, code_a]        what a code adds to the cell number, looked up
    S[r]   = shift[r] + entry_1[r] + entry_2[r] + ...                   in the order in which blocks are added up

Packed tables (see `prediction.factors`) keep their joint tables: each lane of a word is a table over the attributes of
the word, and the lanes are added up before their sum is added to the scores. For rows with unknown values there are
other words, whose layout is computed when the first such row comes.

Averages over a path, tables that are too large to have entries for unknown values, and values that are marginalized by
inference go through `log_probabilities` as a block of one row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np

from bncli.engine.kernels.arrays import Array, Index, Mask
from bncli.engine.prediction.factors import Factor, LookUps, PackedTables, SharedFactor, WideFactor
from bncli.engine.prediction.scoring import Scorer, Stage, log_average, log_probabilities, log_softmax


class _Segment(NamedTuple):
    """Consecutive tables of the same score rows.

    rows: the score rows, None for all. entries (cells, R): those of all tables of the segment. first, last: the range
    of these tables among those of all segments. is_sum: whether they are summed before they are added to the scores, as
    packed tables are.
    """

    rows: Index | None
    entries: Array
    first: int
    last: int
    is_sum: bool


@dataclass(frozen=True)
class _Layout:
    """The tables of a stage, for rows in which the same packed tables have unknown values.

    A pair is a table and one of its attributes. shares: what every code adds to the cell number, pair after pair.
    first_shares: for each pair, the index of code 0 in `shares`. positions: for each pair, the position of the
    attribute. starts: the index of the first pair of each table.
    """

    positions: Index
    first_shares: Index
    shares: Index
    starts: Index
    segments: tuple[_Segment, ...]


class RowLookUp:
    """Looks up ln P(y | x) of one row of codes at a time; safe to use from several threads."""

    def __init__(self, scorer: Scorer, cardinalities: Sequence[int]) -> None:
        self._scorer = scorer
        self._stage = scorer.stages[0]
        self._unknown = np.array(cardinalities, np.intp)
        """The code of an unknown value of each attribute used."""
        self._packings = [f for f in map(_unshared, self._stage.factors) if isinstance(f, PackedTables)]
        self._layouts: dict[tuple[bool, ...], _Layout | None] = {}
        self._all_known = self._layout(np.zeros(len(cardinalities), np.bool_))

    def log_p(self, codes: Sequence[int]) -> Array:
        """Return ln P(y | x), shape (K,), for the codes of the attributes used."""
        row = np.array(codes, np.intp)
        is_unknown = row == self._unknown
        layout = self._layout(is_unknown) if is_unknown.any() else self._all_known
        if layout is None:
            return log_probabilities(self._scorer, list(row[:, None].astype(np.uint32)), 1)[:, 0]
        # a copy, since scores are added to in place
        scores = self._stage.shift + 0.0
        if layout.segments:
            # the cell of every table: the sum of what its attributes' codes add
            cells = np.add.reduceat(layout.shares[layout.first_shares + row[layout.positions]], layout.starts)
            for rows, entries, first, last, is_sum in layout.segments:
                added = entries[cells[first:last]]
                own = scores if rows is None else scores[rows]
                if not is_sum:
                    added = np.concatenate((own.T, added))
                # the terms of one sum are added in their order, and not in pairs
                total = np.add.accumulate(added)[-1][:, None]
                if is_sum:
                    total += own
                if rows is None:
                    scores = total
                else:
                    scores[rows] = total
        out = np.empty((self._scorer.n_labels, 1))
        if self._scorer.weights:
            log_average(np.split(scores, len(self._scorer.weights)), self._scorer.weights, out)
        else:
            log_softmax(scores, out)
        calibration = self._scorer.calibration
        log_p: Array = (out if calibration is None else calibration.apply(out))[:, 0]
        return log_p

    def _layout(self, is_unknown: Mask) -> _Layout | None:
        """Return the layout for rows with these unknown values, or None if they are scored as a block of one row."""
        key = tuple(any(is_unknown[p] for p, _ in packing.unobserved) for packing in self._packings)
        if self._scorer.network is not None and is_unknown.any():
            return None
        if any(isinstance(_unshared(f), WideFactor) and is_unknown.any() for f in self._stage.factors):
            return None
        if key not in self._layouts:
            self._layouts[key] = self._make_layout(key)
        return self._layouts[key]

    def _make_layout(self, incomplete: Sequence[bool]) -> _Layout | None:
        """Return the layout for rows in which the packed tables marked `incomplete` have unknown values.

        Returns None for tables that have no layout.
        """
        if len(self._scorer.stages) > 1:
            return None
        is_incomplete = dict(zip(map(id, self._packings), incomplete, strict=True))
        coarse = dict(enumerate(self._scorer.regrouped, len(self._scorer.used)))
        n_codes = (self._unknown + 1).tolist()
        shares, positions, first_shares, starts = list[Index](), list[int](), list[int](), list[int]()
        segments: list[_Segment] = []
        n_shares = 0
        for rows, is_sum, tables in _segments_of_stage(self._stage, is_incomplete):
            if tables is None:
                return None
            first, n_cells, entries = len(starts), 0, []
            for by_position, own in tables:
                starts.append(len(first_shares))
                for i, (position, share) in enumerate(by_position):
                    if position in coarse:
                        position, digits = coarse[position]
                        # by own codes instead of coarse ones
                        share = share[digits]
                    positions.append(position)
                    first_shares.append(n_shares)
                    # the first pair of a table also adds the cells of the tables before it in the segment
                    shares.append(share[: n_codes[position]] + (n_cells if i == 0 else 0))
                    n_shares += len(shares[-1])
                entries.append(own)
                n_cells += len(own)
            columns = None if rows is None else np.array(rows, np.intp)
            segments.append(_Segment(columns, np.concatenate(entries), first, len(starts), is_sum))
        return _Layout(
            np.array(positions, np.intp),
            np.array(first_shares, np.intp),
            np.concatenate(shares) if shares else np.empty(0, np.intp),
            np.array(starts, np.intp),
            tuple(segments),
        )


_Table = tuple[list[tuple[int, Index]], Array]
"""Pairs (position, what each code of the attribute adds to the cell number), and the entries (cells, R)."""
_Run = tuple[tuple[int, ...] | None, bool, list[_Table] | None]
"""Score rows (None: all), whether the tables are summed first, and the tables; None for tables without a layout."""


def _segments_of_stage(stage: Stage, is_incomplete: dict[int, bool]) -> Iterable[_Run]:
    """Yield the tables of a stage in their order, consecutive ones of the same score rows together."""
    pending: list[_Table] = []
    pending_rows: tuple[int, ...] | None = None
    for factor in stage.factors:
        rows = factor.rows if isinstance(factor, SharedFactor) else None
        inner = _unshared(factor)
        if isinstance(inner, (Factor, WideFactor)):
            if pending and rows != pending_rows:
                yield pending_rows, False, pending
                pending = []
            pending_rows = rows
            pending.append((_cell_number_terms(inner), inner.tables.T))
            continue
        if pending:
            yield pending_rows, False, pending
            pending = []
        if not isinstance(inner, PackedTables):
            yield rows, True, None
            return
        # packed tables of rows with unknown values have words of their own
        parts = inner.kept_parts() if is_incomplete[id(inner)] else (inner.complete,)
        if parts is None:
            yield rows, True, None
            return
        for part in parts:
            yield rows, True, list(chain.from_iterable(map(_lane_tables, part)))
    if pending:
        yield pending_rows, False, pending


def _unshared(factor: object) -> object:
    return factor.factor if isinstance(factor, SharedFactor) else factor


def _cell_number_terms(factor: Factor | WideFactor) -> list[tuple[int, Index]]:
    """Return (position, what each code adds to the cell number) per attribute.

    For a wide factor, those of unknown values are never used.
    """
    shares, stride = [], 1
    for position, n in zip(reversed(factor.positions), reversed(factor.shape), strict=True):
        digits = np.arange(n + isinstance(factor, WideFactor))
        shares.append((position, stride * digits))
        stride *= n
    return shares[::-1]


def _lane_tables(look_ups: LookUps) -> Iterable[_Table]:
    """Yield the lanes of a word as tables."""
    bits, words, tables = look_ups
    for lane, entries in enumerate(tables):
        shares = []
        for position, word in words:
            # the lane's part of what each code adds to the word
            share = word.view(f"u{bits // 8}").reshape(len(word), -1)[:, lane].astype(np.intp)
            if share.any():
                shares.append((position, share))
        # a table whose cell is always 0 still needs one attribute
        shares = shares or [(words[0][0], np.zeros(len(words[0][1]), np.intp))]
        yield shares, entries if entries.ndim == 2 else entries[:, None]
