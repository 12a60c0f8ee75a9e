"""Score rows in batches: probabilities, explanations, answers to what-if questions, and counts for a monitor.

`score`, `monitor` and the Python API all score rows with a `RowScorer`. A block of probabilities has at most 2^21
values (or a single row), however many classes there are.
"""

from __future__ import annotations

import difflib
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.catalogue.option_kinds import parse_decimal
from bncli.engine.calibration import Temperature
from bncli.engine.data.columns import MISSING, UNSEEN, CategoricalColumn, Columns
from bncli.engine.data.dataset import encode_attributes
from bncli.engine.data.schema import (
    Attribute,
    CategoricalAttribute,
    NumberForm,
    NumericAttribute,
    Schema,
    source_column,
)
from bncli.engine.kernels.arrays import Array, Codes, Index
from bncli.engine.model import DecisionRule, Model
from bncli.engine.prediction.contributions import Explainer, Explanation, value_names
from bncli.engine.prediction.decision_rules import decide_labels
from bncli.engine.prediction.marginalization import JointModel
from bncli.engine.prediction.monitoring import Monitor, ScoreMonitor
from bncli.engine.prediction.probability_intervals import LEVEL, IntervalFinder
from bncli.engine.prediction.purification import contrasts
from bncli.engine.prediction.scoring import compile_scorer, shift_log_probabilities, uncalibrated
from bncli.engine.prediction.sufficient_reasons import ReasonSearch
from bncli.engine.prediction.what_if import CounterfactualSearch, NextBest
from bncli.errors import ModelError, UsageError
from bncli.files.artifacts.monitors import monitored_model
from bncli.files.exports.score_layout import ExtraColumn, ExtraValues, most_probable
from bncli.files.reading.rows_by_schema import Batch, Batches
from bncli.files.reading.source import Source, list_names
from bncli.watch import Run

NUMBERS_PER_BLOCK = 1 << 21
_NUMBERS_PER_CONTRIBUTION = 16
"""The assumed memory of a contribution and its description, as a number of float64 values."""
_LISTED_LEVELS = 10


@dataclass(frozen=True)
class WhatIfQuestions:
    """The questions to answer about each row in addition to its prediction.

    next_best: whether to find the missing value with the highest expected information about the class.
    changes: pairs (column, value) to set in every row before predicting it again; an empty value means missing.
    flip: whether to find the smallest change of values that leads to another decision; it changes at most
        `flip_changes` values, all in the columns `flip_columns` (empty: any column).
    surprise: whether to compute -ln P(x), in nats.
    because: time limit in seconds per row for finding a smallest set of values that alone fixes the decision; None for
        no search.
    labels_only: whether to leave out the probabilities after `changes`.
    """

    next_best: bool = False
    changes: tuple[tuple[str, str], ...] = ()
    flip: bool = False
    flip_columns: tuple[str, ...] = ()
    flip_changes: int = 2
    surprise: bool = False
    because: float | None = None
    labels_only: bool = False

    @property
    def any(self) -> bool:
        """Whether any question is asked."""
        return self.next_best or bool(self.changes) or self.flip or self.surprise or self.because is not None


@dataclass
class ScoreCounts:
    """Counts over the rows scored so far.

    unseen, missing: number of such values by column of the table. highest: with two labels, the largest ln P of the
    second label in any row. unproven: number of rows for which a smaller set of values that fixes the decision may
    exist. excess: the maximum number of values by which such a set may be smaller. unknown_labels: number of
    monitored rows with a class that is not a label of the model.
    """

    rows: int = 0
    unseen: Counter[str] = field(default_factory=Counter)
    missing: Counter[str] = field(default_factory=Counter)
    highest: float = -math.inf
    unproven: int = 0
    excess: int = 0
    unknown_labels: int = 0

    def add(self, other: ScoreCounts) -> None:
        """Add the counts of rows that another scorer has scored."""
        self.rows += other.rows
        self.unseen.update(other.unseen)
        self.missing.update(other.missing)
        self.highest = max(self.highest, other.highest)
        self.unproven += other.unproven
        self.excess = max(self.excess, other.excess)
        self.unknown_labels += other.unknown_labels

    @property
    def notes(self) -> list[str]:
        """Notes about rows that are excluded from the measured metrics of a monitor."""
        if not self.unknown_labels:
            return []
        one = self.unknown_labels == 1
        rows, are = ("1 row has", "it is") if one else (f"{self.unknown_labels:,} rows have", "they are")
        return [f"{rows} a class that is not a label of the model; {are} not included in the measured figures"]


class ScoredBlock(NamedTuple):
    """A block of consecutive rows.

    rows: their positions in the batch. log_p: ln P(y | x_t), (K, rows). why: the explanation, or None if not requested.
    answers: the values of the additional output columns.
    """

    rows: slice
    log_p: Array
    why: Explanation | None
    answers: tuple[ExtraValues, ...]


class RowScorer:
    """A scorer that applies a model to batches of rows, and counts the rows.

    strict: whether a value not seen in training is an error. explain: maximum number of contributions to report per
    row. shift: the terms (K,) that another prior adds to ln P(y | x_t), or None for the model's own. questions: what-if
    questions; `rule` makes the decisions that they are about. monitored: whether to count the rows for a monitor, with
    the class if the table has it. level: the nominal coverage of the intervals to report, or None for no intervals.
    abstain_wider: a width, or None; also report in which rows the interval of the predicted label is wider than this.

    Raises UsageError or ModelError for questions or intervals that the model does not support. The attribute `needed`
    has the names of the columns to read: those that the model uses and, for a monitor, the class.
    """

    def __init__(
        self,
        model: Model,
        *,
        strict: bool = False,
        explain: int = 0,
        shift: Array | None = None,
        questions: WhatIfQuestions | None = None,
        rule: DecisionRule | None = None,
        monitored: bool = False,
        level: float | None = None,
        abstain_wider: float | None = None,
    ) -> None:
        self._model, self._schema = model, model.schema
        self.strict, self._explain, self._shift = strict, explain, shift
        self._scorer = compile_scorer(model)
        self._explainer = Explainer(model, self._scorer.used) if explain else None
        self._attributes = [model.schema.attributes[i] for i in self._scorer.used]
        self._columns = tuple(source_column(attribute) for attribute in self._attributes)
        self._texts: tuple[str, ...] = ()
        self._allow_missing = False
        self.counts = ScoreCounts()
        self.needed = tuple(attribute.name for attribute in self._attributes)
        self.what_if: WhatIfAnswers | None = None
        if questions is not None and questions.any:
            self.what_if = WhatIfAnswers(
                model, self._scorer.used, questions, self._log_p, self._calibrated_and_shifted, shift, rule
            )
        self._intervals: IntervalFinder | None = None
        self._level, self._abstain_wider = level, abstain_wider
        if level is not None or abstain_wider is not None:
            finder = IntervalFinder(model, self._scorer.used, self._calibrated_and_shifted, level or LEVEL)
            self._intervals = finder
        self.watcher: ScoreMonitor | None = None
        if monitored:
            self.watcher = ScoreMonitor(model, self._scorer.used)
            self.needed = (*self.needed, model.schema.class_name)

    def open(self, source: Source, run: Run, keep: Sequence[str] | Literal["all"] = ()) -> Batches:
        """Open the table whose batches are to be scored; `keep` lists columns to copy to the output as strings."""
        # An error about an unseen value shows its text.
        texts = [a.name for a in self._attributes if isinstance(a, CategoricalAttribute) and self.strict]
        batches = Batches(source, self._schema, self.needed, keep=keep, texts=texts, run=run)
        self._texts, self._allow_missing = batches.kept_names, bool(batches.absent)
        return batches

    def score(self, batch: Batch) -> Iterator[ScoredBlock]:
        """Yield the scored rows of a batch in blocks; a strict scorer raises ModelError for an unseen value."""
        n_rows = batch.columns.n_rows
        if not n_rows:
            return
        if self.strict:
            self._refuse_unseen(batch)
        encoded = encode_attributes(batch.columns, self._schema, self._scorer.used, allow_missing=self._allow_missing)
        self.counts.rows += n_rows
        if self.watcher is not None:
            self.watcher.add_values(encoded, n_rows)
            if batch.columns.label is not None:
                self.counts.unknown_labels += int((batch.columns.label.codes == UNSEEN).sum())
        # The parts of a date come from one column and are missing together: as keys of a dict they count once.
        self.counts.unseen.update(dict(zip(self._columns, encoded.unseen, strict=True)))
        self.counts.missing.update(dict(zip(self._columns, encoded.missing, strict=True)))
        step = max(1, NUMBERS_PER_BLOCK // (self._scorer.n_labels + _NUMBERS_PER_CONTRIBUTION * self._explain))
        for start in range(0, n_rows, step):
            block = slice(start, min(start + step, n_rows))
            codes = [column[block] for column in encoded.codes]
            raw = uncalibrated(self._scorer, codes, block.stop - start)
            log_p = self._calibrated_and_shifted(raw)
            if len(log_p) == 2:
                self.counts.highest = max(self.counts.highest, float(log_p[1].max()))
            if self.watcher is not None:
                label = batch.columns.label
                self.watcher.add_predictions(codes, log_p, None if label is None else label.codes[block])
            answers: tuple[ExtraValues, ...] = ()
            if self._intervals is not None:
                intervals = self._intervals.find(codes, raw)
                if self._level is not None:
                    answers = tuple(end for ends in zip(intervals.low, intervals.high, strict=True) for end in ends)
                if self._abstain_wider is not None:
                    widths = intervals.widths(most_probable(log_p))
                    answers += ((widths > self._abstain_wider).astype(np.float64),)
            if self.what_if is not None:
                answers += self.what_if.answer(batch.columns, block, codes, log_p, self.counts)
            yield ScoredBlock(block, log_p, self._explanation(codes, raw, most_probable(log_p)), answers)

    @property
    def columns(self) -> tuple[ExtraColumn, ...]:
        """The additional output columns: intervals, abstention and the answers to what-if questions."""
        columns: list[ExtraColumn] = []
        if self._level is not None:
            columns += [ExtraColumn(f"p_{y}_{end}", "log_p") for y in self._schema.labels for end in ("low", "high")]
        if self._abstain_wider is not None:
            columns.append(ExtraColumn("", "abstain"))
        return (*columns, *(() if self.what_if is None else self.what_if.columns))

    def _log_p(self, codes: Sequence[Codes]) -> Array:
        return self._calibrated_and_shifted(uncalibrated(self._scorer, codes))

    def _calibrated_and_shifted(self, raw: Array) -> Array:
        calibration = self._scorer.calibration
        return shift_log_probabilities(raw if calibration is None else calibration.apply(raw), self._shift)

    def _explanation(self, codes: Sequence[Codes], raw: Array, predicted: Index) -> Explanation | None:
        """Return the explanation based on the model's tables, or None if none was requested.

        All contributions are divided by the temperature of the calibration, if it has one; other calibration maps are
        not included. The shift for another prior is part of the base.
        """
        if self._explainer is None:
            return None
        why = self._explainer.explain(codes, raw, predicted, self._explain)
        calibration = self._scorer.calibration
        if isinstance(calibration, Temperature):
            why = why.scaled(1 / calibration.temperature)
        if self._shift is None:
            return why
        added = contrasts(self._shift)[predicted]
        return replace(why, log_odds=why.log_odds + added, base=why.base + added)

    def _refuse_unseen(self, batch: Batch) -> None:
        """Raise ModelError for the first row with a value that was not seen in training, if there is one."""
        first: tuple[int, str] | None = None
        for name in self.needed:
            column = batch.columns.attributes.get(name)
            if isinstance(column, CategoricalColumn) and (column.codes == UNSEEN).any():
                row = int((column.codes == UNSEEN).argmax())
                first = (row, name) if first is None or row < first[0] else first
        if first is not None:
            row, name = first
            value = batch.kept[self._texts.index(name)][row].as_py().strip()
            what = f"column {name!r} has the value {value!r}, which was not seen in training"
            raise ModelError(what, where=batch.locate(row), hint="add --unseen average to score such rows")

    def in_column_order(self, counts: Counter[str]) -> dict[str, int]:
        """Return the nonzero counts, in the order of the columns."""
        return {name: counts[name] for name in dict.fromkeys(self._columns) if counts[name]}

    def monitor(self) -> Monitor:
        """Return the monitor of the rows scored so far; the scorer must be `monitored`."""
        assert self.watcher is not None
        return Monitor(monitored_model(self._model), self.watcher.tally, self.watcher.no_log_p)


class WhatIfAnswers:
    """The answers to what-if questions about rows.

    used: positions of the schema's attributes to which the codes belong. score: a function that returns the final
    ln P(y | x_t) (K, N) for codes. finish: a function that returns the same for the log-probabilities (K, N) that the
    tables give, before calibration and shift.
    shift: as in RowScorer. rule: makes the decisions for `flip` and `because`; without a rule, or if it has only
    prediction sets, the decision is the most probable label. Raises UsageError or ModelError for questions that the
    model cannot answer.
    """

    def __init__(
        self,
        model: Model,
        used: Sequence[int],
        questions: WhatIfQuestions,
        score: Callable[[Sequence[Codes]], Array],
        finish: Callable[[Array], Array],
        shift: Array | None,
        rule: DecisionRule | None,
    ) -> None:
        self._questions, self._score = questions, score
        self._attributes = [model.schema.attributes[i] for i in used]
        self._labels = model.schema.labels
        names = [attribute.name for attribute in self._attributes]
        self._changed_codes = codes_of_values(questions.changes, self._attributes, model.schema)
        self._next_best = NextBest(model, used, shift) if questions.next_best else None
        self._joint = JointModel(model, used) if questions.surprise else None
        decide = partial(decide_labels, rule, self._labels)
        self._reasons: ReasonSearch | None = None
        if questions.because is not None:
            self._reasons = ReasonSearch(model, used, finish, decide, rule, shift, questions.because, time.monotonic)
            self._value_texts = [[(a.name, value) for value in value_names(a)] for a in self._attributes]
        self._flips = None
        if questions.flip:
            allowed = [position_of_column(name, names, model.schema) for name in questions.flip_columns or names]
            self._flips = CounterfactualSearch(model.schema, used, allowed, questions.flip_changes, score, decide)

    @property
    def columns(self) -> tuple[ExtraColumn, ...]:
        """The output columns of the answers."""
        columns: list[ExtraColumn] = []
        if self._questions.changes:
            columns.append(ExtraColumn("prediction_if", "text"))
            if not self._questions.labels_only:
                columns += [ExtraColumn(f"p_if_{label}", "log_p") for label in self._labels]
        columns += [ExtraColumn("flip", "text")] if self._flips else []
        columns += [ExtraColumn("next_best", "text")] if self._next_best else []
        columns += [ExtraColumn("surprise", "number")] if self._joint else []
        if self._reasons:
            columns += [ExtraColumn("because", "values"), ExtraColumn("because_exact", "flag")]
        return tuple(columns)

    def answer(
        self, columns: Columns, rows: slice, codes: Sequence[Codes], log_p: Array, counts: ScoreCounts
    ) -> tuple[ExtraValues, ...]:
        """Return the values of the output columns for these rows of a batch, given their codes and ln P (K, N).

        Rows for which a smaller sufficient reason may exist are counted in `counts`.
        """
        answers: list[ExtraValues] = []
        if self._changed_codes:
            changed = list(codes)
            for position, code in self._changed_codes:
                changed[position] = np.full_like(codes[position], code)
            log_p_if = self._score(changed)
            answers.append([self._labels[y] for y in most_probable(log_p_if).tolist()])
            answers += [] if self._questions.labels_only else list(log_p_if)
        if self._flips is not None:
            answers.append(self._flips.find(codes, log_p))
        if self._next_best is not None:
            missing = [_is_missing(columns, attribute, rows) for attribute in self._attributes]
            answers.append(self._next_best.ask(codes, missing) if codes else [""] * log_p.shape[1])
        if self._joint is not None:
            answers.append(-self._joint.log_p(codes) if codes else np.zeros(log_p.shape[1]))
        if self._reasons is not None:
            reasons = self._reasons.find(codes, log_p)
            values: list[list[tuple[str, str]]] = [[] for _ in range(len(reasons.members))]
            for names, column, chosen in zip(self._value_texts, codes, reasons.members.T, strict=True):
                for row in np.flatnonzero(chosen).tolist():
                    values[row].append(names[column[row]])
            answers += [values, reasons.exact.astype(np.float64)]
            counts.unproven += int((~reasons.exact).sum())
            excess = reasons.members.sum(axis=1) - reasons.at_least
            counts.excess = max(counts.excess, int(excess.max(initial=0, where=~reasons.exact)))
        return tuple(answers)


def _is_missing(columns: Columns, attribute: Attribute, rows: slice) -> NDArray[np.bool_]:
    """Return for each row whether the value is missing; an absent column is missing in every row."""
    column = columns.attributes.get(attribute.name)
    if column is None:
        return np.ones(rows.stop - rows.start, np.bool_)
    if isinstance(column, CategoricalColumn):
        return np.asarray(column.codes[rows] == MISSING)
    values: NDArray[Any] = column.values[rows]  # type: ignore[union-attr]
    return np.asarray(np.isnan(values)) if values.dtype.kind == "f" else np.zeros(len(values), np.bool_)


def codes_of_values(
    changes: Iterable[tuple[str, str]], attributes: Sequence[Attribute], schema: Schema
) -> list[tuple[int, int]]:
    """Return (position, code) of each column to set; raise UsageError for an invalid column or value."""
    names = [attribute.name for attribute in attributes]
    codes: dict[int, int] = {}
    for name, text in changes:
        position = position_of_column(name, names, schema)
        if position in codes:
            raise UsageError(f"the column {name!r} is set twice", hint="give --set once per column")
        attribute, value = attributes[position], text.strip()
        if not value:
            codes[position] = attribute.n_values  # the missing level, or the code "unknown" without one
        elif isinstance(attribute, NumericAttribute):
            comma = isinstance(attribute.form, NumberForm) and attribute.form.decimal == ","
            number = parse_decimal(value.replace(",", ".") if comma else value)
            if number is None:
                raise UsageError(f"{value!r} is not a number, but {attribute.name!r} is numeric")
            codes[position] = int(np.searchsorted(attribute.cuts, number, side="left"))
        else:
            code = attribute.code_of.get(value)
            if code is None:
                more = ", ..." if len(attribute.levels) > _LISTED_LEVELS else ""
                known = ", ".join(attribute.levels[:_LISTED_LEVELS]) + more
                raise UsageError(f"{attribute.name!r} has no value {value!r}", hint=f"it has {known}")
            codes[position] = code
    return list(codes.items())


def position_of_column(name: str, names: Sequence[str], schema: Schema) -> int:
    """Return the position of `name` in `names`, the columns that the model uses; raise UsageError for another name."""
    if name in names:
        return names.index(name)
    if name == schema.class_name:
        raise UsageError(f"{name!r} is the class, which the model predicts", hint="choose an attribute")
    if any(attribute.name == name for attribute in schema.attributes):
        raise UsageError(f"the model does not use {name!r}", hint="leave it out: it does not change predictions")
    near = difflib.get_close_matches(name, names, 1, 0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"it uses {list_names(names, 10)}"
    raise UsageError(f"the model has no column {name!r}", hint=hint)
