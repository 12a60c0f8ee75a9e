"""Collect the findings on a model for its dossier; each comes from the step that computes it.

Performance is computed only from rows with a class. The monitor and the expected performance of each period also
include rows without a class.

The periods of a column of dates are days, months, quarters or years: the finest unit with at most MOST_PERIODS periods,
or years if there is none. The periods of a numeric column are its values if there are at most MOST_PERIODS of them, and
otherwise intervals with about a tenth of the rows each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from bncli.engine.data.columns import Columns
from bncli.engine.data.schema import NumericAttribute, direction_of
from bncli.engine.discretizers.equal_frequency import cut_points
from bncli.engine.evaluation.cross_validation import predict
from bncli.engine.evaluation.groups import Group, GroupColumn, measure_groups
from bncli.engine.evaluation.two_class import TwoClassFigures, measure_two_classes
from bncli.engine.model import DecisionRule, Model
from bncli.engine.prediction.contributions import value_names
from bncli.engine.prediction.decision_rules import Decider
from bncli.engine.prediction.monitoring import ExpectedFigure, Monitor, ScoreMonitor, are_training_rows
from bncli.engine.prediction.scoring import compile_scorer
from bncli.engine.prediction.what_if import Sensitivity, measure_sensitivities
from bncli.errors import BncliError, UsageError
from bncli.files.artifacts.model import read_model
from bncli.files.artifacts.monitors import monitored_model
from bncli.files.reading.byte_streams import find_inputs
from bncli.files.reading.source import Source
from bncli.steps.describe import describe
from bncli.steps.dossier.checklists import About
from bncli.steps.evaluate.evaluate import read_test_rows, report_on_rows
from bncli.steps.evaluate.group_columns import carry_group_columns, group_columns, with_groups
from bncli.steps.export import export
from bncli.steps.inspect import inspect
from bncli.steps.monitor import MonitorReport, monitor_rows
from bncli.steps.report.performance_section import ComparedModel, score_other_models
from bncli.steps.report.reliability_section import ScoredTable
from bncli.steps.report.structure_section import file_hash, fit_command
from bncli.steps.verify import VerifyReport, verify
from bncli.watch import Note, Run, Stage

MOST_PERIODS = 24
_TENTHS = 10
SENSITIVITY_ROWS = 1000
"""The maximum number of evenly spaced rows on which sensitivities are computed."""
FEW_ROWS = 10
"""Values with fewer training rows than this are listed."""
_PROPERTY_SECONDS = 20.0


@dataclass(frozen=True)
class DossierSources:
    """The inputs of a dossier besides the model: test rows, columns that define groups, ABOUT.toml and challengers."""

    source: Source
    by: Sequence[str] = ()
    about: str | None = None
    challengers: Sequence[str] = ()


class Period(NamedTuple):
    """A period of time: the metrics of its rows with a class, and the metrics expected for all its rows.

    rows: the number of all its rows. group: the metrics of the rows with a class, or None if there are none. figures:
    the two-class metrics of these rows, or None with more classes or without such rows.
    """

    name: str
    rows: int
    group: Group | None
    figures: TwoClassFigures | None
    expected: Mapping[str, ExpectedFigure]


@dataclass(frozen=True)
class Findings:
    """All findings on a model that its dossier contains.

    - scored: the rows with a class and their evaluation. unlabelled: the number of rows without a class.
    - time: the name of the time column, or None. periods: in time order; () without a time column.
    - monitored: all rows compared with the training rows. verified: the self-test of the model file, the verdicts on
      properties, and what the file discloses about small numbers of rows.
    - sensitivities: by attribute, on `sensitivity_rows` rows. challengers: other models on the same rows.
    - data: the description of the test table. specification: the tables and effects of the model, with the command that
      fits it and a Python program, each None if there is none.
    - files: kind, path and SHA-256 of every file; the SHA-256 is "" if the file cannot be read again.
    """

    model: Model
    scored: ScoredTable
    unlabelled: int
    time: str | None
    periods: Sequence[Period]
    monitored: MonitorReport
    verified: VerifyReport
    sensitivities: Mapping[str, Sensitivity]
    sensitivity_rows: int
    challengers: Sequence[ComparedModel]
    data: Mapping[str, Any]
    specification: Mapping[str, Any]
    files: Sequence[tuple[str, str, str]]


def find_all(model_path: str, sources: DossierSources, about: About, run: Run) -> Findings:
    """Compute all findings on the model at `model_path`.

    Raises UsageError for standard input, BncliError if no row has a class, and the errors of the steps.
    """
    source, watch = sources.source, run.watch
    if "-" in source.paths:
        raise UsageError(
            "the data are read several times, but the standard input can be read only once",
            hint="give the path of a file",
        )
    model = read_model(model_path)
    labelled = carry_group_columns(replace(source, drop_unlabelled=True), sources.by)
    everything = read_test_rows([model], labelled, run, keep_unlabelled=True)
    assert everything.label is not None
    with_class = np.flatnonzero(everything.label.codes >= 0)
    rows = everything.take(with_class)
    if not rows.n_rows:
        what = f"no row has a value of '{source.class_name or model.schema.class_name}', the class"
        raise BncliError(what, where=source.paths[0], hint="add rows with labels: a dossier needs them")
    on_training_rows = are_training_rows(rows, model, compile_scorer(model).used)
    if on_training_rows:
        text = "the rows look like the training rows of the model, so the figures are too optimistic; use other rows"
        watch(Note(text, warning=True))
    protocol = "a model on its training rows" if on_training_rows else "a model on a test set"
    report = replace(report_on_rows(model, rows, labelled, protocol, run), on_training_rows=on_training_rows)
    groups = []
    for column in group_columns(everything, labelled, model.schema.attributes, watch):
        groups.append(replace(column, codes=column.codes[with_class]))
        empty = np.setdiff1d(column.codes, groups[-1].codes).tolist()
        if empty:
            values = _join_names([column.values[code] or "missing" for code in empty])
            text = f"the figures by {column.name} leave out {values}, because no row with these values has a class"
            watch(Note(text, warning=True))
    report = with_groups(report, groups, watch)
    scored = ScoredTable.of(model, rows, report, allow_missing=source.allow_missing_columns)
    again = replace(source, on_bad_row="skip") if source.bad_rows_file is not None else source
    monitored = monitor_rows(model_path, again, run=run)
    challengers = score_other_models(
        sources.challengers, model.schema.class_name, model.schema.labels, replace(labelled, carried=(), time=None), run
    )
    watch(Stage("verify"))
    properties = list(dict.fromkeys((*_monotone_properties(model), *about.properties)))
    verified = verify(model_path, properties=properties, property_seconds=_PROPERTY_SECONDS, disclosure=FEW_ROWS)
    step = -(-rows.n_rows // SENSITIVITY_ROWS)
    codes = [column[::step] for column in scored.encoded.codes]
    weights = report.predictions.weights
    decider = Decider.of(replace(model.rule or DecisionRule(), sets=None), model.schema.labels)
    sensitivities = measure_sensitivities(
        compile_scorer(model),
        codes,
        report.predictions.codes[::step],
        None if weights is None else weights[::step],
        lambda log_p: decider.decide(log_p).codes,
    )
    names = [model.schema.attributes[i].name for i in scored.used]
    files = [("model", model_path), *(("data", file.path) for file in find_inputs(source.paths, keep=True))]
    files += [("schema", source.schema_file)] if source.schema_file else []
    files += [("about", sources.about)] if sources.about else []
    files += [("challenger", path) for path in sources.challengers]
    periods = tuple(_periods(everything, scored, model, source.allow_missing_columns))
    if unknown := [period.name for period in periods if period.group is None]:
        which = "that period" if len(unknown) == 1 else "these periods"
        text = f"no row of {_join_names(unknown)} has a class, so only expected figures are available for {which}"
        watch(Note(text, warning=True))
    if alone := [period.name for period in periods if period.group is not None and period.group.metrics["auc"] is None]:
        text = f"the AUC is undefined for {_join_names(alone)}: all rows of the period have the same label"
        watch(Note(text, warning=True))
    again = replace(again, class_name=again.class_name or model.schema.class_name, time=None, on_bad_row="skip")
    described = describe(again, run=Run(run.threads)).as_json()
    # keys on learning from the test table are left out
    about_data = ("rows", "class", "labels", "unlabelled", "columns", "notes", "findings")
    try:
        program = export(model_path, "python").text
    except BncliError:  # some models have no program; their tables suffice
        program = None
    content = inspect(model_path, tables=True, effects=True).as_json()
    return Findings(
        model=model,
        scored=scored,
        unlabelled=monitored.overall.tally.rows - rows.n_rows,
        time=None if rows.split_by is None or not periods else rows.split_by.columns[-1],
        periods=periods,
        monitored=monitored,
        verified=verified,
        sensitivities=dict(zip(names, sensitivities, strict=True)),
        sensitivity_rows=len(range(0, rows.n_rows, step)),
        challengers=challengers,
        data={name: described[name] for name in about_data},
        specification={"command": fit_command(model), "python": program, **content},
        files=[(kind, path, file_hash(path) or "") for kind, path in files],
    )


def _monotone_properties(model: Model) -> Iterator[str]:
    """Yield a statement for each attribute in use that was fitted with a monotonicity constraint."""
    schema = model.schema
    for i, attribute in enumerate(schema.attributes):
        if i in model.attributes and (direction := direction_of(schema, i)):
            label = schema.labels[schema.direction_label]
            word = "falls" if direction > 0 else "rises"
            yield f"the probability of {_quote_name(label)} never {word} as {_quote_name(attribute.name)} rises"


def _quote_name(name: str) -> str:
    return name if name.isidentifier() else f"'{name}'" if '"' in name else f'"{name}"'


def _join_names(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + ", ..." * (len(names) > 5)


def _periods(everything: Columns, scored: ScoredTable, model: Model, allow_missing: bool) -> Iterator[Period]:
    """Yield each period in time order, or nothing without times; `everything` also has the rows without a class."""
    by = everything.split_by
    if by is None or by.times is None:
        return
    assert everything.label is not None
    codes, names = _name_periods(by.times, by.is_date)
    labels, (log_p, true, weights) = scored.report.labels, scored.report.predictions
    is_known = everything.label.codes >= 0
    known_codes = codes[is_known]
    column = GroupColumn(by.columns[-1], names, known_codes)
    decided, units = scored.report.decisions.rows, scored.report.units
    groups = {group.value: group for group in measure_groups(column, labels, log_p, true, weights, decided, units)}
    all_log_p = log_p if is_known.all() else predict(model, everything, allow_missing=allow_missing)
    watcher = ScoreMonitor(model, ())
    for number, name in enumerate(names):
        every, own = np.flatnonzero(codes == number), np.flatnonzero(known_codes == number)
        figures = None
        if len(labels) == 2 and len(own):
            figures = measure_two_classes(log_p[:, own], true[own], None if weights is None else weights[own])
        watcher.begin()
        watcher.tally.rows = len(every)
        watcher.add_predictions((), all_log_p[:, every], None)
        expected = Monitor(monitored_model(model), watcher.tally).expected
        yield Period(name, len(every), groups.get(name), figures, expected)


def _name_periods(times: np.ndarray[Any, Any], is_date: bool) -> tuple[Any, tuple[str, ...]]:
    """Return the index of the period of each row, (N,), and the names of the periods in time order.

    times: the time of each row, (N,), in seconds since 1970 if it is a date.
    """
    if is_date:
        days = times.astype("datetime64[s]").astype("datetime64[D]")
        months = days.astype("datetime64[M]").astype(np.int64)
        for size, unit in ((None, "D"), (1, "M"), (3, "Q"), (12, "Y")):
            numbers = days.astype(np.int64) if size is None else months // size
            values, codes = np.unique(numbers, return_inverse=True)
            if len(values) <= MOST_PERIODS or unit == "Y":
                starts = (values * (size or 1)).astype(f"datetime64[{'D' if size is None else 'M'}]")
                texts = [str(start) for start in starts]
                if unit == "Q":
                    texts = [f"{text[:-3]}-Q{(int(text[-2:]) + 2) // 3}" for text in texts]
                return codes, tuple(text[:-3] for text in texts) if unit == "Y" else tuple(texts)
    values, codes = np.unique(times, return_inverse=True)
    if len(values) <= MOST_PERIODS:
        texts = [f"{value:.10g}" for value in values.tolist()]
        if len(set(texts)) < len(texts):
            texts = [str(value).removesuffix(".0") for value in values.tolist()]
        return codes, tuple(texts)
    cuts = cut_points(times, np.zeros(len(times), np.uint8), 1, None, bins=_TENTHS)
    attribute = NumericAttribute("time", False, (), cuts=cuts)
    return np.searchsorted(np.array(cuts), times, side="left"), tuple(value_names(attribute)[: len(cuts) + 1])
