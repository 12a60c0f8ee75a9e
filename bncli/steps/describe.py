"""Describe a table before learning: each column, the class, and a recommended `fit` command.

For each column the report states how it is read, which values it has, whether `fit` will use it and why, and its mutual
information with the class. This is the weighted plug-in estimate in bits, from the rows with a known class. A missing
value counts as a value of its own, as in learning by default. Dates, and numeric columns with more than 20 distinct
values, are first cut by the default discretizer.

If a column has very many distinct values, only a sample of them is kept. The cuts of a numeric column are then learned
from the sample. For a categorical column the mutual information I is estimated from the kept values x, each of which
represents s_x values:

    I = sum over x of s_x  sum over y of  P(x, y) log2 [ P(x, y) / (P(x) P(y)) ]

If this estimate is below 0 or above the entropy of the class, 0 or the entropy is reported instead.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.columns import CategoricalColumn, Columns, NumericColumn
from bncli.engine.data.cutting import PoolingRule, learn_dataset
from bncli.engine.data.schema import Attribute, CategoricalAttribute, DateForm, NumberForm, NumericAttribute
from bncli.engine.evaluation.table_checks import Finding
from bncli.engine.evaluation.two_class import BinEvidence, measure_bins
from bncli.engine.kernels.arrays import Array, Integers
from bncli.engine.kernels.information import mutual_information
from bncli.engine.prediction.contributions import value_names
from bncli.engine.prediction.edits import check_positive
from bncli.errors import BncliError, UsageError
from bncli.files.paths import check_outputs
from bncli.files.reading.column_roles import (
    DeclaredRoles,
    are_too_many_labels,
    look_like_data,
    look_like_measurements,
    read_schema_file,
    split_names,
    write_schema_file,
)
from bncli.files.reading.column_summaries import ColumnSummary, TableSummary, summarise_table
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_rows
from bncli.recipe import Recipe
from bncli.steps.learning_inputs import check_training_table, is_read_twice
from bncli.steps.run import Stopwatch
from bncli.watch import Run, Stage, silent

FEW_VALUES = 20
"""Numeric columns with at most this many distinct values are not cut before their mutual information is computed."""
_MOST_LABELS = 20
"""The maximum number of distinct values of a column that is proposed as the class."""
_PROPOSED_NAMES = 4
_COMMONEST = 5
_LEAK = 0.99
"""A column whose mutual information is at least this fraction of the class entropy is reported as a possible leak."""
_LAST_COLUMN = "the last column"
_NOTES_ABOUT_MARKS = " may mean missing; add --missing "
_PLURAL = {"numeric": "numbers", "categorical": "categories", "date": "dates"}


@dataclass(frozen=True)
class ClassCounts:
    """The class column and its counts.

    labels: the K labels. weights, rows: the total weight (K,) and the number of rows of each label. codes: the position
    of the label of each distinct value of the class column, or -1 if the value is missing or has no weight. unlabelled:
    number of rows whose value has the code -1.
    """

    name: str
    labels: tuple[str, ...]
    weights: Array
    codes: Integers
    rows: tuple[int, ...]
    unlabelled: int

    @property
    def bits(self) -> float:
        """The entropy of the class in bits."""
        shares = self.weights[self.weights > 0] / max(self.weights.sum(), 1e-300)
        return float(-(shares * np.log2(shares)).sum()) + 0.0

    def table(self, summary: ColumnSummary) -> Array:
        """Return the weight of each kept value of a column in each class, an array (n_values, K)."""
        table = np.zeros((len(summary.counted.rows), len(self.labels)))
        for counted, label in enumerate(self.codes):
            if label >= 0:
                table[:, label] += summary.counted.by_class[:, counted]
        return table


class LearnedAttribute(NamedTuple):
    """An attribute that learning makes from a column, with its mutual information with the class and its counts.

    bits: the mutual information in bits. counts: the total weight of the rows with each code and class, an array
    (cardinality, K).
    """

    attribute: Attribute
    bits: float
    counts: Array


class AttributeBins(NamedTuple):
    """An attribute with its information value (`iv`) and bins; `values` are the names of the bins.

    exact: whether all distinct values were counted, not only a sample.
    """

    attribute: str
    iv: float
    values: tuple[str, ...]
    bins: tuple[BinEvidence, ...]
    exact: bool

    def as_json(self) -> dict[str, Any]:
        bins = [{"value": v, **entry._asdict()} for v, entry in zip(self.values, self.bins, strict=True)]
        return {"attribute": self.attribute, "iv": self.iv, "bins": bins}


@dataclass(frozen=True)
class ColumnReport:
    """The report on a column of the table.

    bits: mutual information with the class in bits (for the class column its entropy), or None if it was not computed.
    use, reason: whether `fit` will use the column, and why.
    exact: whether `distinct`, `median`, `commonest` and `bits` are exact rather than estimates.
    smallest, median, largest: numbers for a column of numbers, strings for a column of dates; None for other columns.
    commonest: for other columns, the five most frequent values with their numbers of rows.
    same_as: an earlier column, or the class, with the same values in every row.
    should_ignore: whether the recommended command ignores the column.
    learned_attributes: the attributes that learning makes from it.
    """

    name: str
    type: str
    distinct: int
    missing: int
    example: str
    bits: float | None
    use: bool
    reason: str
    exact: bool
    smallest: float | str | None = None
    median: float | str | None = None
    largest: float | str | None = None
    commonest: tuple[tuple[str, int], ...] = ()
    same_as: str | None = None
    should_ignore: bool = False
    learned_attributes: tuple[LearnedAttribute, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the fields by name.

        The keys `smallest`, `median` and `largest` are present if `smallest` is not None, otherwise `commonest` is.
        """
        numbers = {"smallest": self.smallest, "median": self.median, "largest": self.largest}
        common = [{"value": value, "rows": rows} for value, rows in self.commonest]
        return {
            "name": self.name,
            "type": self.type,
            "distinct": self.distinct,
            "missing": self.missing,
            "example": self.example,
            "bits": self.bits,
            "use": self.use,
            "reason": self.reason,
            "exact": self.exact,
            **({"commonest": common} if self.smallest is None else numbers),
            **({} if self.same_as is None else {"same_as": self.same_as}),
        }


@dataclass(frozen=True)
class DescribeReport:
    """The report on a table: its columns in file order, including the class, and what to know before learning.

    of_class: the class, or None if there is none or it has too many labels to be counted. warnings: signs that the
    header is missing, or that the wrong column was taken as the class. notes: the warnings and other remarks.
    recommended: the recommended command line, empty for a table without rows.
    schema_file: the file that was written, if any. event, bins: the label that counts as the event, and the bins of the
    attributes in decreasing order of information value; None unless requested.
    findings: properties of the rows that would make held-out metrics misleading.
    """

    rows: int
    class_name: str | None
    of_class: ClassCounts | None
    columns: tuple[ColumnReport, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    recommended: str
    schema_file: str | None
    findings: tuple[Finding, ...]
    seconds: dict[str, float]
    event: str | None = None
    bins: tuple[AttributeBins, ...] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        known = self.of_class
        labels = [] if known is None else zip(known.labels, known.rows, strict=True)
        return {
            "rows": self.rows,
            "class": self.class_name,
            "class_bits": None if known is None else known.bits,
            "labels": [{"label": label, "rows": rows} for label, rows in labels],
            "unlabelled": None if known is None else known.unlabelled,
            "columns": [column.as_json() for column in self.columns],
            "notes": list(self.notes),
            "findings": [finding.as_json() for finding in self.findings],
            "warnings": list(self.warnings),
            "recommended": self.recommended,
            "schema": self.schema_file,
            "seconds": self.seconds,
            **({} if self.bins is None else {"event": self.event, "bins": [entry.as_json() for entry in self.bins]}),
        }


def describe(source: Source, *, schema_out: str | None = None, bins: bool = False, run: Run = Run()) -> DescribeReport:
    """Describe a table and, if `schema_out` is given, write a schema file.

    If the class can be learned and the table is in files, the rows (of a large table, a sample) are read a second time
    to look for findings. bins: also return the bins, with their weights of evidence, of each attribute that `fit` would
    use. If bins are requested, raises UsageError for a class without exactly two labels, and if the event
    `source.positive` is not one of them.
    """
    check_outputs((schema_out,), (*source.paths, source.schema_file, read_schema_file(source).place))
    stopwatch = Stopwatch(run.watch)
    stopwatch(Stage("read"))
    summary = summarise_table(source, threads=run.threads, watch=stopwatch)
    stopwatch(Stage("describe"))
    of_class = _count_classes(summary)
    columns = []
    # The first column with each digest; the class comes before all others.
    first = {} if summary.class_name is None else {summary.columns[summary.class_name].digest: summary.class_name}
    for name in summary.names:
        if name not in summary.columns:
            reason = f"contains {summary.nested[name]}s; flatten it, or add --ignore {shlex.quote(name)}"
            report = ColumnReport(name, "nested", 0, 0, "", None, False, reason, True, should_ignore=True)
        else:
            report = _report_column(name, summary, of_class, source)
            if summary.n_rows and name not in summary.nested:
                original = first.setdefault(summary.columns[name].digest, name)
                if original != name:
                    should_ignore = report.type not in ("identifier", "constant")
                    reason = f"the same as '{original}' in every row"
                    report = replace(report, same_as=original, reason=reason, should_ignore=should_ignore)
        if not summary.n_rows:
            report = replace(report, use=False, reason="there are no rows", should_ignore=False)
        columns.append(report)
    # If the class cannot be learned, propose columns with few values, none of them missing, the last one first.
    class_column = next((column for column in columns if column.name == summary.class_name), None)
    proposed = []
    if class_column is not None and not class_column.use:
        for column in reversed(columns):
            few = column.type == "categorical" and 2 <= column.distinct <= _MOST_LABELS and not column.missing
            if few and column.name != summary.roles.weights and column.name not in summary.ignored:
                proposed.append(column.name)
    if summary.n_rows:
        has_class = class_column is not None and class_column.use
        warnings = _warnings(source, summary, has_class)
        notes = [*warnings, *_notes(summary, of_class, proposed, has_class)]
        recommended = _recommended_command(source, summary, of_class, columns, proposed, schema_out)
    else:
        notes, warnings, recommended = ["the table has a header and no rows"], [], ""
    findings = tuple[Finding, ...]()
    if of_class is not None and class_column is not None and class_column.use and is_read_twice(source):
        findings = _check_rows(source, run._replace(watch=stopwatch))
    if schema_out is not None:
        write_schema_file(schema_out, _declared_roles(summary, columns, proposed))
    event, attribute_bins = _bins(columns, of_class, source.positive) if bins else (None, None)
    return DescribeReport(
        rows=summary.n_rows,
        class_name=summary.class_name,
        of_class=of_class,
        columns=tuple(columns),
        notes=tuple(notes),
        warnings=tuple(warnings),
        recommended=recommended,
        schema_file=schema_out,
        findings=findings,
        seconds=stopwatch.seconds(),
        event=event,
        bins=attribute_bins,
    )


def _bins(
    columns: Sequence[ColumnReport], of_class: ClassCounts | None, positive: str | None
) -> tuple[str, tuple[AttributeBins, ...]]:
    """Return the event, and the bins of the attributes that `fit` would use, in decreasing order of information value.

    The event is the label `positive` or, if that is None, the second label. Raises UsageError unless the class has two
    labels.
    """
    if of_class is None or len(of_class.labels) != 2:
        found = "there is no class" if of_class is None else f"'{of_class.name}' has {len(of_class.labels)}"
        raise UsageError(f"--bins needs a class with two labels: {found}", hint="choose another class with --class")
    if positive is not None:
        check_positive(positive, of_class.name, of_class.labels)
    event = of_class.labels[1] if positive is None else positive
    found_bins = []
    for column in columns:
        for attribute, _, counts in column.learned_attributes if column.use else ():
            if attribute.informative:
                whole = counts.astype(np.int64)
                order = slice(None) if event == of_class.labels[1] else slice(None, None, -1)
                iv, bins = measure_bins((whole if (whole == counts).all() else counts)[:, order])
                values = value_names(attribute)[: attribute.cardinality]
                found_bins.append(AttributeBins(attribute.name, iv, values, tuple(bins), column.exact))
    return event, tuple(sorted(found_bins, key=lambda entry: -entry.iv))


def _check_rows(source: Source, run: Run) -> tuple[Finding, ...]:
    """Read the table again, or a sample if it is large, and return the findings; none if it cannot be learned from."""
    try:
        policy = "skip" if source.bad_rows_file is not None else source.on_bad_row
        quiet = run._replace(watch=silent)
        table = read_rows(replace(source, on_bad_row=policy, drop_unlabelled=True), cuts=None, run=quiet, seed=0)[0]
    except BncliError:  # a table that cannot be learned from can still be described
        return ()
    check = check_training_table(table, source, run)
    return () if check is None else check.findings


def _count_classes(summary: TableSummary) -> ClassCounts | None:
    """Return the class with its counts, or None if there is no class or if it has too many labels to be counted."""
    if summary.class_name is None or summary.labels is None:
        return None
    counted = summary.columns[summary.class_name].counted
    weights = counted.by_class.sum(axis=0)[: len(summary.labels.codes)]
    codes = np.where(weights > 0, summary.labels.codes, -1)
    used = np.unique(codes[codes >= 0])
    codes = np.where(codes >= 0, np.searchsorted(used, codes), -1)
    # Each value of the class column lies in one class, its own.
    code_of_value = codes[counted.by_class.argmax(axis=1)] if len(counted.rows) else codes[:0]
    rows = np.bincount(code_of_value + 1, counted.rows, len(used) + 1).astype(np.int64)
    totals = np.bincount(codes + 1, weights, len(used) + 1)[1:].astype(np.float64)
    labels = tuple(summary.labels.levels[i] for i in used)
    return ClassCounts(summary.class_name, labels, totals, codes, tuple(rows[1:].tolist()), int(rows[0]))


def _report_column(name: str, summary: TableSummary, of_class: ClassCounts | None, source: Source) -> ColumnReport:
    """Return the report on any column, including the class and the row weights."""
    column = summary.columns[name]
    is_attribute = name not in (summary.class_name, summary.roles.weights)
    report = _report_attribute(name, column, summary.n_rows, of_class if is_attribute else None)
    if name == summary.class_name:
        report = replace(report, bits=None if of_class is None else of_class.bits, should_ignore=False)
        if report.type == "constant":
            return replace(report, use=False, reason=f"the class, but {report.reason}")
        if of_class is not None and not are_too_many_labels(report.distinct, summary.n_rows):
            measured = "; it looks like a number" if look_like_measurements(of_class.labels, summary.n_rows) else ""
            return replace(report, use=True, reason=f"the class ({_why_class(source, summary)}){measured}")
        if column.is_plain or isinstance(column.decision.form, NumberForm):
            return replace(
                report, type="numeric", use=False, reason="the class, but its values are numbers instead of labels"
            )
        count = f"{'' if report.exact else '~'}{report.distinct:,}"
        return replace(report, type="identifier", use=False, reason=f"the class, but it has too many labels ({count})")
    if name == summary.roles.weights:
        return replace(report, use=True, reason="the row weights", should_ignore=False)
    if name in summary.ignored:
        return replace(report, use=False, reason="not used (--ignore, --use or the schema file)", should_ignore=False)
    return report


def _why_class(source: Source, summary: TableSummary) -> str:
    declared = read_schema_file(source)
    if source.class_name is not None:
        return "--class"
    if declared.class_name == summary.class_name:
        return f"as set in {declared.place}"
    return "by its name" if summary.class_name == "class" else _LAST_COLUMN


def _report_attribute(name: str, summary: ColumnSummary, n_rows: int, of_class: ClassCounts | None) -> ColumnReport:
    """Return the report on a column that may be an attribute."""
    rows, distinct = summary.counted.rows, summary.n_distinct
    smallest: float | str | None = None
    median: float | str | None = None
    largest: float | str | None = None
    commonest: tuple[tuple[str, int], ...] = ()
    if isinstance(summary.column, NumericColumn):
        kind = "date" if summary.is_date else "numeric"
        values = summary.column.values.astype(np.float64)
        present = ~np.isnan(values)
        low, high = (None if math.isnan(value) else value for value in (summary.low, summary.high))
        middle = weighted_median(values[present], (rows * summary.counted.scale)[present])
        form = summary.decision.form
        smallest, median, largest = low, middle, high
        if isinstance(form, DateForm):
            # dates in ISO form, with the time of the day unless that is 0:00, or times of the day without a date
            texts = [None if v is None else str(np.datetime64(int(v), "s")) for v in (low, middle, high)]
            smallest, median, largest = (
                text and (text.partition("T")[2] if form.order == "time" else text.removesuffix("T00:00:00"))
                for text in texts
            )
    else:
        assert isinstance(summary.column, CategoricalColumn)
        kind = "constant" if distinct <= 1 else "categorical"
        codes, levels = summary.column.codes, summary.column.levels
        present = codes >= 0
        by_level = np.bincount(codes[present], rows[present], len(levels))
        order = np.argsort(-by_level, kind="stable")[:_COMMONEST]
        commonest = tuple((levels[i], int(by_level[i])) for i in order)
    learned_attributes = None if of_class is None or len(of_class.labels) < 2 else _learn_attributes(summary, of_class)
    report = ColumnReport(
        name=name,
        type=kind,
        distinct=distinct,
        missing=int(rows[~present].sum()),
        example=summary.example,
        bits=None if of_class is None else _column_information_bits(summary, of_class, learned_attributes or []),
        use=True,
        reason="",
        exact=summary.counted.exact,
        smallest=smallest,
        median=median,
        largest=largest,
        commonest=commonest,
        learned_attributes=tuple(learned_attributes or ()),
    )
    return _with_use_and_reason(report, summary, n_rows, learned_attributes, of_class)


def weighted_median(values: Array, weights: Array) -> float | None:
    """Return the median of the values, where values[i] occurs weights[i] times, or None if there are no values.

    If exactly half of the total weight lies below a value, the median is the mean of the two middle values.
    """
    if not len(values):
        return None
    order = np.argsort(values, kind="stable")
    ends = np.cumsum(weights[order])
    # the values at which the weight reaches half of the total, and exceeds it
    low, high = (values[order][np.searchsorted(ends, ends[-1] / 2, side)] for side in ("left", "right"))
    return float(low / 2 + high / 2) + 0.0


def _learn_attributes(summary: ColumnSummary, of_class: ClassCounts) -> list[LearnedAttribute]:
    """Return the attributes that learning makes from a column, learned from its kept values with their weights."""
    table = of_class.table(summary)
    value, label = np.nonzero(table)
    if not len(value):
        return []
    weights = represented = (table * summary.counted.scale[:, np.newaxis])[value, label]
    # what can be learned depends on the size of the sample, not on the number of rows that it represents
    if not summary.counted.exact:
        weights = weights * (table.sum() / weights.sum())
    columns = {name: column.take(value) for name, column in summary.decision.attributes.items()}
    cells = Columns(len(value), columns, "", CategoricalColumn(label, of_class.labels), weights)
    data = learn_dataset(cells, group_levels=_default_pooling() if summary.counted.exact else "off")
    n_labels = len(of_class.labels)
    return [
        LearnedAttribute(
            attribute,
            _mutual_information_bits(codes, label, weights, n_labels),
            _class_table(codes, label, represented, n_labels, attribute.cardinality),
        )
        for attribute, codes in zip(data.schema.attributes, data.codes, strict=True)
    ]


@cache
def _default_pooling() -> PoolingRule:
    rule: PoolingRule = Recipe.of().group_levels
    return rule


def _mutual_information_bits(values: NDArray[Any], labels: NDArray[Any], weights: Array, n_labels: int) -> float:
    """Compute the mutual information, in bits, of coded values (N,) and labels (N,) with weights (N,)."""
    if not len(values):
        return 0.0
    table = _class_table(values, labels, weights, n_labels, int(values.max()) + 1)
    return float(mutual_information(table)) / math.log(2)


def _class_table(values: NDArray[Any], labels: NDArray[Any], weights: Array, n_labels: int, n_values: int) -> Array:
    """Return the total weight of each combination of value and label, an array (n_values, n_labels)."""
    cells = values.astype(np.int64) * n_labels + labels
    return np.bincount(cells, weights, n_values * n_labels).astype(np.float64).reshape(n_values, n_labels)


def _column_information_bits(
    summary: ColumnSummary, of_class: ClassCounts, learned_attributes: Sequence[LearnedAttribute]
) -> float:
    """Return the mutual information of a column with the class, in bits.

    It is computed from the values of a categorical column, and of a numeric column with at most FEW_VALUES distinct
    values. For other numeric columns it is computed from the learned intervals. For a date column it is the largest
    mutual information of any of its parts.
    """
    is_name = isinstance(summary.column, CategoricalColumn)
    if not is_name and (summary.is_date or summary.n_distinct > FEW_VALUES):
        return max((entry.bits for entry in learned_attributes), default=0.0)
    table = of_class.table(summary)
    value, label = np.nonzero(table)
    weights = table[value, label]
    if isinstance(summary.column, NumericColumn):
        codes = np.unique(summary.column.values.astype(np.float64)[value], return_inverse=True)[1]
        return _mutual_information_bits(codes, label, weights, len(of_class.labels))
    assert isinstance(summary.column, CategoricalColumn)
    if summary.counted.exact:
        return _mutual_information_bits(summary.column.codes[value] + 1, label, weights, len(of_class.labels))
    total = of_class.weights.sum()
    if not total:
        return 0.0
    independent = table.sum(axis=1, keepdims=True) * of_class.weights
    terms = weights * np.log2(weights * total / independent[value, label])
    return float(np.clip((terms * summary.counted.scale[value]).sum() / total, 0.0, of_class.bits))


def _with_use_and_reason(
    report: ColumnReport,
    summary: ColumnSummary,
    n_rows: int,
    learned_attributes: Sequence[LearnedAttribute] | None,
    of_class: ClassCounts | None,
) -> ColumnReport:
    """Return the report with `type`, `use`, `reason` and `should_ignore` filled in.

    learned_attributes: the attributes learned from the column. None for the class and the row weights, and if there is
    no class with at least two labels.
    """
    if report.type == "constant":
        use = report.missing > 0 and report.distinct == 1
        what = "only one value" if report.distinct else "no values"
        return replace(report, use=use, reason=f"{what}{', or missing' if use else ''}")
    decision = summary.decision
    reasons = [_without_name(note, report.name) for note in decision.notes if _NOTES_ABOUT_MARKS not in note]
    if decision.without_marks:
        marks = ", ".join(decision.marks)
        would_be = f"without {marks} they would be {decision.without_marks}"
        reasons.append(would_be if decision.attributes else f"{marks} may mean missing")
    if not decision.attributes:
        kind = "date" if report.type == "date" else "identifier"
        return replace(report, type=kind, use=False, reason="; ".join(reasons))
    use = learned_attributes is None or any(entry.attribute.informative for entry in learned_attributes)
    if _is_running_number(report, n_rows):
        reason = "distinct whole numbers: possibly an identifier"
        reason += "" if use else " (interactions may still use it)"
        return replace(report, use=use, reason=reason, should_ignore=True)
    if not use:
        why = "no cut point gives" if report.type != "categorical" else "they have too little"
        kind = reasons.pop(0) if report.type == "date" and reasons else _PLURAL[report.type]
        reasons.insert(0, f"{kind}, but {why} information about the class (interactions may still use them)")
    elif not reasons or report.type != "date":
        reasons.insert(
            0, _PLURAL[report.type] + _describe_cuts([entry.attribute for entry in learned_attributes or []])
        )
    class_bits = 0.0 if of_class is None else of_class.bits
    if report.bits is not None and class_bits and report.bits >= _LEAK * class_bits:
        reasons.append("this column alone determines the class: check that it is known before the class")
    return replace(report, use=use, reason="; ".join(reasons))


def _without_name(note: str, name: str) -> str:
    """Return a note about a column without the column's name."""
    for start, instead in ((f"column '{name}': ", ""), (f"date column {name} was ", "dates, ")):
        if note.startswith(start):
            return instead + note.removeprefix(start)
    note = note.removeprefix("left out as ").replace(f" in {name} (", " (")
    return note.replace(f": {name} (", " (").removesuffix(f": {name}")


def _is_running_number(report: ColumnReport, n_rows: int) -> bool:
    """Return whether a column looks like a sequential identifier.

    Such a column has numbers, more than FEW_VALUES rows, and no missing values. It has a distinct value in every row
    (within 5 % if the number of distinct values is an estimate). Its minimum and maximum are integers that differ by
    less than twice the number of rows.
    """
    low, high = report.smallest, report.largest
    if not isinstance(low, float) or not isinstance(high, float) or report.missing or n_rows <= FEW_VALUES:
        return False
    # An estimated number of values may be off by a few per cent.
    each = report.distinct == n_rows if report.exact else abs(report.distinct - n_rows) < 0.05 * n_rows
    return low.is_integer() and high.is_integer() and each and high - low < 2 * n_rows


def _describe_cuts(attributes: Sequence[Attribute]) -> str:
    """Describe the number of cut points or groups of the first attribute that has any; empty if none has."""
    for attribute in attributes:
        if isinstance(attribute, NumericAttribute) and attribute.cuts:
            return f", cut at {len(attribute.cuts)} point{'s' if len(attribute.cuts) > 1 else ''}"
        if isinstance(attribute, CategoricalAttribute) and attribute.groups:
            n = len(attribute.groups)
            return f", pooled into {n} group{'s' if n > 1 else ''}"
    return ""


def _warnings(source: Source, summary: TableSummary, has_class: bool) -> list[str]:
    """Return warnings about a header that seems to be missing, and about a class that was guessed."""
    warnings = []
    if look_like_data(summary.names):
        warnings.append("the column names are numbers: is the header missing? Add --names a,b,c to give one")
    else:
        levels = {
            name: column.column.levels
            for name, column in summary.columns.items()
            if isinstance(column.column, CategoricalColumn)
        }
        values = [name for name in summary.names if name in levels.get(name, ())]
        if len(values) >= 2 and 2 * len(values) >= len(levels):
            listed = ", ".join(map(repr, values[:_PROPOSED_NAMES])) + ", ..." * (len(values) > _PROPOSED_NAMES)
            text = f"some columns contain their own name as a value ({listed})"
            warnings.append(f"{text}: is the header missing? Add --names a,b,c to give one")
    if has_class and _why_class(source, summary) == _LAST_COLUMN:
        guess = f"{summary.class_name!r} is used as the class because it is the last column"
        warnings.append(f"{guess}; add --class NAME to choose another")
    return warnings


def _notes(summary: TableSummary, of_class: ClassCounts | None, proposed: Sequence[str], has_class: bool) -> list[str]:
    """Return notes about the class and about missing values; `proposed` lists columns that could be the class."""
    notes: list[str] = []
    if proposed:
        notes.append(
            f"possible classes: {' or '.join(map(repr, proposed[:_PROPOSED_NAMES]))}; choose one with --class NAME"
        )
    elif not has_class:
        notes.append("no column looks like a class with a few labels; choose one with --class NAME")
    if of_class is not None and of_class.unlabelled and not proposed:
        rows = "row" if of_class.unlabelled == 1 else "rows"
        notes.append(f"the class is missing in {of_class.unlabelled:,} {rows}; add --drop-unlabelled to leave them out")
    if marks := _missing_marks(summary):
        notes.append(
            f"these values may mean missing: {', '.join(marks)} (add --missing +TOKEN to treat one as missing)"
        )
    return notes


def _missing_marks(summary: TableSummary) -> list[str]:
    """Return the possible tokens for missing values that keep columns from being read as numeric or as dates."""
    decisions = [column.decision for name, column in summary.columns.items() if name != summary.class_name]
    return list(dict.fromkeys(mark for decision in decisions if decision.without_marks for mark in decision.marks))


def _recommended_command(
    source: Source,
    summary: TableSummary,
    of_class: ClassCounts | None,
    columns: Sequence[ColumnReport],
    proposed: Sequence[str],
    schema_out: str | None,
) -> str:
    """Return a `fit` command with the given options about reading and columns, and those that this table needs."""
    flags: list[str] = []
    delimiter = "tab" if source.delimiter == "\t" else source.delimiter
    dates = None if source.dates == "auto" else source.dates
    words = ("--format", "--delimiter", "--encoding", "--decimal", "--dates")
    for flag, value in zip(words, (source.format, delimiter, source.encoding, source.decimal, dates), strict=True):
        flags += [] if value is None else [flag, value]
    if source.names is not None:
        flags += ["--names", ",".join(f'"{name}"' if "," in name else name for name in source.names)]
    for token in source.missing_tokens or ():
        flags += ["--missing", token]
    if source.on_bad_row != "fail":
        flags += ["--on-bad-row", source.on_bad_row]
    if source.schema_file is not None:
        flags += ["--schema", source.schema_file]
    advised = (text for column in summary.columns.values() for text in column.decision.advised)
    for text in dict.fromkeys((*_missing_marks(summary), *advised)):
        flags += ["--missing", f"+{text}"]
    class_name = proposed[0] if proposed else source.class_name
    if schema_out is not None:
        # The schema file that was written holds all options about columns, except a class that is only proposed.
        flags += ["--schema", schema_out]
        flags += ["--class", proposed[0]] if proposed else []
    else:
        flags += [] if class_name is None else ["--class", class_name]
        all_names = [column.name for column in columns]
        useless = [c.name for c in columns if c.should_ignore and (not source.use or c.name in source.use)]
        ignored = list(dict.fromkeys([*split_names(source.ignore, all_names), *useless]))
        lists = [("--ignore", ignored), ("--categorical", source.categorical), ("--numeric", source.numeric)]
        for flag, names in (*lists, ("--use", source.use)):
            for name in split_names([*names], all_names):
                flags += [flag, name]
        flags += ["--drop-incomplete"] if source.drop_incomplete else []
        flags += [] if source.weights is None else ["--weights", source.weights]
    if source.drop_unlabelled or (of_class is not None and of_class.unlabelled and not proposed):
        flags += ["--drop-unlabelled"]
    output = ["-o", "model.bnc"] if source.paths == ("-",) or len(source.paths) > 1 else []
    return shlex.join(["bncli", "fit", *source.paths, *flags, *output])


def _declared_roles(summary: TableSummary, columns: Sequence[ColumnReport], proposed: Sequence[str]) -> DeclaredRoles:
    """Return the role recommended for each column.

    Dates, numeric columns in national formats, and columns that need other tokens for missing values are given no role,
    because `fit` recognizes them itself.
    """
    class_name = proposed[0] if proposed else summary.class_name
    lists: dict[str, list[str]] = {"categorical": [], "numeric": [], "ignore": []}
    for column in columns:
        if column.name in (class_name, summary.roles.weights):
            continue
        if column.type == "nested":
            lists["ignore"].append(column.name)
            continue
        is_unused = column.type in ("identifier", "constant") or column.should_ignore
        decision = summary.columns[column.name].decision
        changes = bool(decision.without_marks or decision.advised)  # with the recommended --missing
        if column.name in summary.ignored or (is_unused and not changes):
            lists["ignore"].append(column.name)
        elif not changes and decision.form is None:
            lists[column.type].append(column.name)
    roles = {key: tuple(names) for key, names in lists.items()}
    return DeclaredRoles(None, class_name, summary.roles.weights, **roles)
