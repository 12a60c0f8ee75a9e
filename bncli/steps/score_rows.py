"""Scores batch after batch of rows, and counts what it meets.

Conventions: no block of probabilities holds more than 2^21 numbers, however many classes there are. With
`unseen="error"` the first value in the rows' order that training never saw stops the run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from bncli.engine.calibration import Temperature
from bncli.engine.data.columns import UNSEEN, CategoricalColumn
from bncli.engine.data.encoding import encode_attributes
from bncli.engine.data.schema import CategoricalAttribute, source_column
from bncli.engine.kernels.arrays import Array, Codes, Index
from bncli.engine.model import DecisionRule, Model
from bncli.engine.prediction.contributions import Explainer, Explanation
from bncli.engine.prediction.monitoring import MonitorCounts, ScoreMonitor
from bncli.engine.prediction.prior import shifted
from bncli.engine.prediction.purification import contrasts
from bncli.engine.prediction.scoring import compile_scorer, uncalibrated
from bncli.errors import ModelError
from bncli.files.exports.score_layout import most_probable
from bncli.files.reading.rows_by_schema import Batch
from bncli.steps.what_if import PreparedQuestions, WhatIfQuestions

NUMBERS_PER_BLOCK = 1 << 21
_PER_REASON = 16
"""Numbers that a contribution and its words count for."""


class Counts(NamedTuple):
    """Rows that were scored, and their values never seen and missing, by column; `highest` as in ScoredRows.

    tally: what was counted for a monitor, None without one.
    """

    rows: int
    unseen: Counter[str]
    missing: Counter[str]
    highest: float
    tally: MonitorCounts | None = None


class ScoredBlock(NamedTuple):
    """Consecutive rows of a batch: where, log P(y | x_t) (K, rows), why, and what was asked beyond the prediction."""

    rows: slice
    log_p: Array
    why: Explanation | None
    added: tuple[Sequence[str] | Array, ...]


class ScoredRows:
    """Scores batch after batch, and counts what it meets.

    strict: a value that training never saw is an error. explain: how many contributions to the prediction are told.
    `needed`: the columns that the model looks at; `absent`, those that the rows lack, is for the reader to say.
    shift: that of another prior (K,), None for the model's own. `highest`: ln P of the second of two labels in the row
    that has most of it.
    """

    def __init__(self, model: Model, strict: bool = False, explain: int = 0, shift: Array | None = None) -> None:
        self.strict = strict
        self.shift = shift
        self.count = 0
        self.absent: tuple[str, ...] = ()
        self.unseen: Counter[str] = Counter()
        self.missing: Counter[str] = Counter()
        self.highest = -math.inf
        self._schema = model.schema
        self._scorer = compile_scorer(model)
        self._explain = explain
        self._explainer = Explainer(model, self._scorer.used) if explain else None
        self._attributes = [model.schema.attributes[i] for i in self._scorer.used]
        self.watcher: ScoreMonitor | None = None
        self.asked: PreparedQuestions | None = None
        self.needed = tuple(attribute.name for attribute in self._attributes)
        self._columns = tuple(source_column(attribute) for attribute in self._attributes)

    def watch(self, model: Model) -> None:
        """Count all that goes through for a monitor as well, the class too where it is there."""
        self.watcher = ScoreMonitor(model, self._scorer.used)
        self.needed = (*self.needed, model.schema.class_name)

    def ask(self, model: Model, questions: WhatIfQuestions, rule: DecisionRule | None) -> None:
        """Answers these of every row, decided by this rule."""

        def score(codes: Sequence[Codes]) -> Array:
            return self._final(uncalibrated(self._scorer, codes))

        self.asked = PreparedQuestions(model, self._scorer.used, questions, score, self.shift, rule)

    def add(self, others: Counts) -> None:
        """Count rows that were scored elsewhere."""
        self.count += others.rows
        self.unseen.update(others.unseen)
        self.missing.update(others.missing)
        self.highest = max(self.highest, others.highest)
        if self.watcher is not None and others.tally is not None:
            self.watcher.tally.merge(others.tally)

    def texts_wanted(self) -> tuple[str, ...]:
        """Return columns whose text is read beside those to keep.

        If an unseen value is an error, those that can have one.
        """
        return tuple(a.name for a in self._attributes if isinstance(a, CategoricalAttribute) and self.strict)

    def score(self, batch: Batch) -> Iterator[ScoredBlock]:
        """Yield the rows of a batch in their order, so many at a time."""
        encoded = encode_attributes(batch.columns, self._schema, self._scorer.used, allow_missing=bool(self.absent))
        n_rows = batch.columns.n_rows
        self.count += n_rows
        if self.watcher is not None:
            self.watcher.add_values(encoded, n_rows)
        self.unseen.update(dict(zip(self._columns, encoded.unseen, strict=True)))
        # of the parts of a date, which are missing together, the column counts once
        self.missing.update(dict(zip(self._columns, encoded.missing, strict=True)))
        step = max(1, NUMBERS_PER_BLOCK // (self._scorer.n_labels + _PER_REASON * self._explain))
        for start in range(0, n_rows, step):
            block = slice(start, min(start + step, n_rows))
            codes = [column[block] for column in encoded.codes]
            raw = uncalibrated(self._scorer, codes, block.stop - start)
            log_p = self._final(raw)
            if len(log_p) == 2:
                self.highest = max(self.highest, float(log_p[1].max()))
            if self.watcher is not None:
                label = batch.columns.label
                self.watcher.add_predictions(codes, log_p, None if label is None else label.codes[block])
            asked = () if self.asked is None else self.asked.answers(batch.columns, block, codes, log_p)
            yield ScoredBlock(block, log_p, self._why(codes, raw, most_probable(log_p)), asked)

    def _final(self, raw: Array) -> Array:
        """Return what is said in the end: calibrated, and under the prior that was asked for."""
        return shifted(raw if self._scorer.calibration is None else self._scorer.calibration.apply(raw), self.shift)

    def _why(self, codes: Sequence[Codes], raw: Array, predicted: Index) -> Explanation | None:
        """Reasons are those of the tables: a temperature divides them all, the shift of a prior is part of the base.

        Other maps are left out of them.
        """
        if self._explainer is None:
            return None
        why = self._explainer.explain(codes, raw, predicted, self._explain)
        calibration = self._scorer.calibration
        if isinstance(calibration, Temperature):
            why = why.scaled(1 / calibration.temperature)
        if self.shift is None:
            return why
        added = contrasts(self.shift)[predicted]
        return replace(why, log_odds=why.log_odds + added, base=why.base + added)

    def refuse_unseen(self, batch: Batch, kept_names: tuple[str, ...]) -> None:
        """Raise ModelError for the first value, row by row, that training never saw."""
        first: tuple[int, str] | None = None
        for name in self.needed:
            column = batch.columns.attributes.get(name)
            if isinstance(column, CategoricalColumn) and (column.codes == UNSEEN).any():
                found = int((column.codes == UNSEEN).argmax()), name
                first = found if first is None or found[0] < first[0] else first
        if first is not None:
            row, name = first
            value = batch.kept[kept_names.index(name)][row].as_py().strip()
            what = f"column {name!r} has the value {value!r}, which training never saw"
            raise ModelError(what, where=batch.locate(row), hint="--unseen average scores such rows")

    def in_order(self, counts: Counter[str]) -> dict[str, int]:
        """Without the columns that have none."""
        return {name: counts[name] for name in dict.fromkeys(self._columns) if counts[name]}
