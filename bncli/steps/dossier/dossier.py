"""Write the dossier of a model: one page and one JSON file.

The page has the checklists, then the sections of the model's report page, then sections that only a dossier has. The
JSON file is:

    {"format": "bncli-dossier", "version": 1, "bncli_version": ..., "model": "m.bnc", "rows": ...,
     "unlabelled_rows": ..., "about": {"intended_use": null, ...},
     "checklists": {"tripod_ai": [{"item": "1", "title": ..., "status": "not provided", ...}, ...], ...},
     "evaluation": {...}, "periods": [...], "monitor": {...}, "sensitivity": {...}, "challengers": [...],
     "verification": {...}, "data": {...}, "specification": {...}, "files": [{"kind", "path", "sha256"}, ...]}

`evaluation` has the keys of `evaluate --json` except `seconds`; with two classes it always has `gains` and
`net_benefit`. `monitor` has the keys of `monitor --json`, and `verification` the keys of `verify --json`.
`specification` has the keys of `inspect --json`, and `command` and `python`: the command that fits the model and a
Python program that computes its predictions, each null if there is none.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from bncli import __version__
from bncli.engine.data.schema import NumericAttribute
from bncli.engine.evaluation.groups import Group
from bncli.engine.model import Tables
from bncli.errors import UsageError
from bncli.files.artifacts.monitors import expected_json
from bncli.files.artifacts.provenance import recipe_json
from bncli.files.atomic import write_bytes
from bncli.files.json_documents import dump_json
from bncli.files.paths import check_outputs, check_target
from bncli.files.pictures.page import (
    Block,
    FoldedBlocks,
    Grid,
    Page,
    Paragraph,
    Section,
    count,
    figure,
    html_page,
    listed,
    percent,
)
from bncli.steps.dossier.checklists import CHECKLISTS, FIELDS, STATUSES, About, Answer, Checklist, read_about
from bncli.steps.dossier.findings import DossierSources, Findings, find_all
from bncli.steps.evaluate.report import GroupsReport, intervals_json
from bncli.steps.report.performance_section import comparison_sentence, never_predicted, paired_difference
from bncli.steps.report.report import ReportInputs, model_page
from bncli.watch import Run, Stage

VERSION = 1
_CALIBRATION = ("calibration_slope", "calibration_intercept", "calibration_in_the_large")
_MOST_LINES = 1000
"""The maximum number of rows of a table of attributes, disclosed values, tables with small cells, or columns."""
_FEW_EVENTS = 100
"""With fewer rows of the rarest label, metrics are too uncertain for a verdict (Collins, Ogundimu & Altman 2016)."""


_NAMES = {"accuracy": "accuracy", "log_loss": "log-loss", "auc": "AUC", "brier": "Brier score"}


class DossierReport(NamedTuple):
    """The result of a dossier: the paths of the model, the page and the JSON file, and counts.

    rows, unlabelled_rows: the number of test rows with and without a class. items: the number of items by checklist and
    status. properties_refuted: the number of refuted properties.
    """

    model: str
    page: str
    json: str
    rows: int
    unlabelled_rows: int
    items: dict[str, dict[str, int]]
    properties_refuted: int

    def as_json(self) -> dict[str, Any]:
        """Return all fields by name."""
        return self._asdict()


def dossier(model_path: str, sources: DossierSources, *, output: str, run: Run = Run()) -> DossierReport:
    """Write `dossier.html` and `dossier.json` about the model at `model_path` to the folder `output`.

    Raises UsageError if `output` is `-` or a file, and the errors of `read_about` and `find_all`.
    """
    page_path, json_path = (os.path.join(output, f"dossier.{ending}") for ending in ("html", "json"))
    source = sources.source
    if output == "-" or (os.path.lexists(output) and not os.path.isdir(output)):
        raise UsageError(
            f"-o needs a folder for two files, but {output!r} is not a folder", hint="give the path of a folder"
        )
    if not os.path.isdir(output):
        check_target(output.rstrip("/"))
    check_outputs(
        (page_path, json_path) if os.path.isdir(output) else (),
        (model_path, *source.paths, source.schema_file, sources.about, *sources.challengers),
    )
    about = About() if sources.about is None else read_about(sources.about)
    found = find_all(model_path, sources, about, run)
    run.watch(Stage("write"))
    facts = facts_of(found)
    answers = {checklist.word: checklist.answer(about, facts) for checklist in CHECKLISTS}
    content = dump_json(_content(found, model_path, about, answers)).encode()
    page = html_page(dossier_page(found, model_path, sources, about, answers)).encode()
    os.makedirs(output, exist_ok=True)
    write_bytes(json_path, content)
    write_bytes(page_path, page)
    counts = {word: Counter(answer.status for answer in own) for word, own in answers.items()}
    return DossierReport(
        model=model_path,
        page=page_path,
        json=json_path,
        rows=found.scored.report.rows,
        unlabelled_rows=found.unlabelled,
        items={word: {status.replace(" ", "_"): own[status] for status in STATUSES} for word, own in counts.items()},
        properties_refuted=sum(one.holds is False for one in found.verified.properties or ()),
    )


def _content(
    found: Findings, model_path: str, about: About, answers: Mapping[str, Sequence[Answer]]
) -> Mapping[str, Any]:
    """Return the content of the JSON file, which does not depend on the time or the duration of the run."""
    evaluated = found.scored.report
    evaluation = evaluated.as_json()
    if evaluated.two_class is not None:
        lines = evaluated.two_class.net_benefit
        evaluation["net_benefit"] = [line._asdict() | {"ci": [*line.ci]} for line in lines]
        evaluation["gains"] = [line._asdict() for line in evaluated.two_class.gains]
    del evaluation["seconds"]
    groups = GroupsReport(tuple(period.group for period in found.periods if period.group is not None), ())
    known = {group["value"]: group for group in groups.as_json()["groups"]}
    periods = []
    for period in found.periods:
        unknown = dict.fromkeys(next(iter(known.values()))) | {"ci": {}, "rows": 0, "weight": 0.0}
        group = known.get(period.name, unknown) | {"by": found.time, "value": period.name}
        ends = {} if period.figures is None else period.figures.intervals
        names = _CALIBRATION if len(evaluated.labels) == 2 else ()
        periods.append(
            group
            | {name: getattr(period.figures, name, None) for name in names}
            | {"ci": group["ci"] | intervals_json({name: ends.get(name) for name in names})}
            | {"unlabelled_rows": period.rows - group["rows"], "expected": expected_json(period.expected)}
        )
    challengers = []
    for other in found.challengers:
        mean, error = paired_difference(evaluated, other)
        difference = {"mean": mean, "low": mean - error, "high": mean + error}
        intervals = intervals_json(other.report.intervals.metrics)
        challengers.append(
            {"name": other.name, **other.report.metrics, "ci": intervals, "log_loss_difference": difference}
        )
    return {
        "format": "bncli-dossier",
        "version": VERSION,
        "bncli_version": __version__,
        "model": model_path,
        "rows": evaluated.rows,
        "unlabelled_rows": found.unlabelled,
        "about": {name: about.fields.get(name) for name in FIELDS},
        "checklists": {word: [answer.as_json() for answer in own] for word, own in answers.items()},
        "evaluation": evaluation,
        "periods": periods,
        "monitor": found.monitored.as_json(),
        "sensitivity": {
            "rows": found.sensitivity_rows,
            "attributes": [{"name": name} | own._asdict() for name, own in found.sensitivities.items()],
        },
        "challengers": challengers,
        "verification": found.verified.as_json(),
        "data": found.data,
        "specification": found.specification,
        "files": [{"kind": kind, "path": path, "sha256": digest} for kind, path, digest in found.files],
    }


def dossier_page(
    found: Findings, model_path: str, sources: DossierSources, about: About, answers: Mapping[str, Sequence[Answer]]
) -> Page:
    """Return the page: the checklists, the sections of the model's report page, and further findings."""
    paths = sources.source.paths
    words = ["bncli", "dossier", model_path, "--data", *paths, *([] if found.time is None else ["--time", found.time])]
    words += [word for name in sources.by for word in ("--by", name)]
    words += [word for path in sources.challengers for word in ("--beside", path)]
    words += [*(["--about", sources.about] if sources.about else []), "-o", "DIR"]
    inputs = ReportInputs(found.scored, paths, compared_models=found.challengers, command=shlex.join(words))
    page = model_page(found.model, model_path, inputs)
    checklists = [
        Section(
            checklist.word.replace("_", "-"),
            checklist.title,
            tuple(_checklist_blocks(checklist, answers[checklist.word])),
        )
        for checklist in CHECKLISTS
    ]
    further = (
        Section("stability", "Stability", tuple(_stability_blocks(found))),
        Section("sensitivity", "Sensitivity and proven properties", tuple(_sensitivity_blocks(found))),
        Section("disclosure", "Disclosure", tuple(_disclosure_blocks(found))),
        Section("test-data", "Test data and files", tuple(_data_blocks(found))),
    )
    title = about.fields.get("title", page.title)
    summary = f"Dossier for validation. {page.summary}"
    return replace(page, title=title, summary=summary, sections=(*checklists, *page.sections, *further))


def _checklist_blocks(checklist: Checklist, answers: Sequence[Answer]) -> Iterator[Block]:
    """Yield the number of items by status, the empty fields of ABOUT.toml, and a table with one row per item."""
    numbers = [f"{sum(answer.status == status for answer in answers):,} {status}" for status in STATUSES]
    note = "The items are paraphrased; only the original text is authoritative."
    yield Paragraph(f"{checklist.subject}. {count(len(answers), 'item')}: {', '.join(numbers)}. {note}")
    empty = list(dict.fromkeys(name for answer in answers for name in answer.missing))
    if empty:
        yield FoldedBlocks(
            f"fields-{checklist.word}",
            f"Fields of ABOUT.toml that are empty ({len(empty):,})",
            [Grid("Empty fields", ("field", "what to write"), [(name, FIELDS[name]) for name in empty])],
        )
    rows = []
    for answer in answers:
        gaps = f"Not provided: {', '.join(answer.missing)}." if answer.missing else ""
        text = " ".join(part for part in (*answer.about, *answer.facts, gaps) if part)
        rows.append((answer.item.number, answer.item.title, answer.item.question, answer.status, text))
    yield Grid("Items", ("item", "title", "question", "status", "answer"), rows)


def _stability_blocks(found: Findings) -> Iterator[Block]:
    """Yield the measured and the expected metrics of each period, and a table of both over all rows."""
    if not found.periods:
        yield Paragraph("Figures by period need a time column: add --time COLUMN.", "gap")
    else:
        rows = []
        for period, _, group, figures, _ in found.periods:
            if group is None:
                continue
            metrics = ("error", "log_loss", "auc")
            cells = [_with_interval(group.metrics[name], group.intervals.get(name)) for name in metrics]
            large = "–" if figures is None else figure(figures.calibration_in_the_large)
            rows.append((period, f"{group.rows:,}", *cells, large))
        headings = ("period", "rows", "error rate", "log-loss", "AUC", "calibration in the large")
        yield Grid(f"Figures by {found.time}, with 95 % intervals", headings, rows, (1,))
        rows = []
        for name, n_rows, group, _, expected in found.periods:
            without = n_rows - (0 if group is None else group.rows)
            cells = [_with_interval(own.value, own.interval) for own in expected.values()]
            rows.append((name, f"{n_rows:,}", f"{without:,}", *cells))
        headings = ("period", "rows", "without a class", "accuracy", "log-loss", "AUC")
        yield Grid(f"Expected from the probabilities, by {found.time}, with 95 % intervals", headings, rows, (1, 2))
        if sentence := unexpected_figures(found):
            yield Paragraph(sentence)
    monitor = found.monitored.overall
    measured = {"accuracy": monitor.accuracy, "log_loss": monitor.tally.log_loss.mean, "auc": monitor.auc}
    rows = []
    for name, own in monitor.expected.items():
        interval = "–" if own.interval is None else " to ".join(map(figure, own.interval))
        title = "AUC" if name == "auc" else name.replace("_", "-")
        rows.append((title, figure(own.value), interval, figure(measured[name])))
    yield Grid("Expected from the probabilities", ("figure", "expected", "95 % interval", "measured"), rows, (1, 2, 3))


def _with_interval(value: float | None, ends: tuple[float, float] | None) -> str:
    return figure(value) if ends is None else f"{figure(value)} ({' to '.join(map(figure, ends))})"


def _sensitivity_blocks(found: Findings) -> Iterator[Block]:
    """Yield a table of how much predictions change when each attribute is permuted, and a table of the properties."""
    order = sorted(found.sensitivities.items(), key=lambda pair: -pair[1].log_loss_increase)
    rows = [
        (name, f"{own.log_loss_increase:.4f}", f"{own.mean_change:.4f}", percent(own.changed))
        for name, own in order[:_MOST_LINES]
    ]
    caption = f"Sensitivity to permuted attributes ({count(found.sensitivity_rows, 'row')})"
    headings = ("attribute", "increase in log-loss", "mean change in a probability", "rows whose decision may change")
    yield Grid(caption, headings, rows, (1, 2, 3))
    words = {True: "proven", False: "refuted", None: "open: the time limit was reached"}
    properties = [(one.text, words[one.holds], one.shown or "–") for one in found.verified.properties or ()]
    if properties:
        yield Grid("Properties over all inputs", ("property", "verdict", "counter-example"), properties)
    else:
        yield Paragraph("No property was given: see properties in ABOUT.toml, and bncli help properties.", "gap")


def _disclosure_blocks(found: Findings) -> Iterator[Block]:
    """Yield what the model file discloses about small numbers of training rows: values, table cells, held-out rows."""
    disclosed = found.verified.disclosure
    assert disclosed is not None
    few = f"fewer than {disclosed.min_rows} training rows"
    have = "has" if len(disclosed.values) == 1 else "have"
    yield Paragraph(f"{count(len(disclosed.values), 'value')} of the model file {have} {few}.")
    rows = [(one.attribute, one.value, f"{one.rows:,.6g}", ", ".join(one.where)) for one in disclosed.values]
    if rows:
        yield Grid(f"Values with {few}", ("column", "value", "rows", "where"), rows[:_MOST_LINES], (2,))
    tables = [
        (" & ".join(one.attributes), f"{one.cells:,}", f"{one.below:,}", f"{one.unknown:,}")
        for one in disclosed.tables
        if one.below or one.unknown
    ]
    if tables:
        heads = ("table of", "cells", "with few rows", "may have few rows")
        yield Grid(f"Tables with cells of {few}", heads, tables[:_MOST_LINES], (1, 2, 3))
    if disclosed.held_out:
        yield Paragraph(f"The file stores the probabilities of {count(disclosed.held_out, 'held-out row')}.")


def _data_blocks(found: Findings) -> Iterator[Block]:
    """Yield the columns of the test table, and the SHA-256 of every file."""
    if found.unlabelled:
        yield Paragraph(f"{count(found.unlabelled, 'row')} without a class are not part of the figures.", "warning")
    rows = [
        (column["name"], column["type"], f"{column['distinct']:,}", f"{column['missing']:,}", column["example"] or "")
        for column in found.data["columns"][:_MOST_LINES]
    ]
    yield Grid("Columns of the test table", ("column", "type", "distinct", "missing", "example"), rows, (2, 3))
    yield Grid("Files", ("kind", "path", "SHA-256"), found.files)


def facts_of(found: Findings) -> Mapping[str, str]:
    """Return the facts that answer items of the checklists, keyed by name, without those that do not apply."""
    facts = _facts_of_model(found) | _facts_of_rows(found) | _facts_of_figures(found)
    return {word: text for word, text in facts.items() if text}


def _facts_of_model(found: Findings) -> dict[str, str]:
    model, schema = found.model, found.model.schema
    recipe = model.recipe
    used = [schema.attributes[i] for i in sorted(model.attributes)]
    numeric = [attribute.name for attribute in used if isinstance(attribute, NumericAttribute)]
    kinds = f"{len(numeric):,} numeric, {len(used) - len(numeric):,} categorical"
    options = ", ".join(f"{key}={value}" for key, value in recipe_json(recipe).items() if value is not None)
    labels = " or ".join(schema.labels) if len(schema.labels) <= 6 else count(len(schema.labels), "label")
    weight = sum(schema.label_frequencies)
    frequencies = zip(schema.labels, schema.label_frequencies, strict=bool(schema.label_frequencies))
    shares = [f"{label} {n:,.10g} ({percent(n / weight)})" for label, n in frequencies] if weight else []
    rows_of_labels = f", of which {', '.join(shares)}" if shares else ""

    # How it was learned and changed.
    penalty = "" if model.penalty is None else f" Penalty {model.penalty:.4g}"
    penalty += ", chosen by cross-validation." if penalty and model.penalty_cv is not None else "." * bool(penalty)
    held_out = model.held_out_log_loss
    inner = (
        "" if held_out is None else (f" Held-out log-loss when the model was fitted: {figure(held_out)} nats per row.")
    )
    edits = [f"{' & '.join(edit.effect)} ({edit.action}; {edit.why})" for edit in model.edits]
    changed = f"Effects changed by hand: {listed(edits)}." if edits else "No effect was changed by hand."
    calibrated = ""
    if model.calibration is not None:
        calibrated = f" Probabilities are calibrated ({model.calibration.map.method})."

    # What it decides, and what it assumes.
    rule = model.rule
    rules = []
    if rule is not None and rule.threshold is not None:
        chosen = f", chosen by {rule.threshold.chosen}" if rule.threshold.chosen else ""
        rules.append(f"{schema.labels[1]} if its probability is at least {rule.threshold.value:.4g}{chosen}")
    if rule is not None and rule.costs is not None:
        rules.append("the label with the lowest expected cost")
    if rule is not None and rule.abstain_below is not None:
        rules.append(f"no decision if all probabilities are below {rule.abstain_below:g}")
    weighted = "Classes have equal weight: probabilities assume the class frequencies in training."
    if model.class_weights is not None:
        factors = zip(schema.labels, model.class_weights, strict=True)
        weighted = f"Classes were weighted ({', '.join(f'{label} {w:.4g}' for label, w in factors)}): probabilities "
        weighted += "assume the weighted frequencies."
    unseen = "are an error" if schema.unseen == "error" else "are treated as unknown and get an average score"
    missing = "is treated as one more value" if schema.missing_policy == "level" else "is marginalized"

    # What it computes.
    effects = found.specification["effects"]
    shares_of = [f"{' & '.join(effect['attributes'])} {percent(effect['share'])}" for effect in effects]
    formula = "ln P(label | row) is the sum of one entry per table, normalized over the labels"
    if not isinstance(model.predictor, Tables):
        formula = f"P(label | row) is a weighted mean over several models; in each, {formula}"
    program = "" if found.specification["python"] is None else "; specification.python is a program that computes it"
    command = found.specification["command"]
    by_command = f"Command: {command}." if command else "Parts of the model were supplied as files."

    # What was verified.
    self_test = found.verified.self_test
    properties = found.verified.properties or ()
    verdicts = {True: "proven", False: "refuted", None: "open: the time limit was reached"}
    proven = [f"{one.text}: {verdicts[one.holds]}{f' ({one.shown})' if one.shown else ''}" for one in properties]
    disclosed = found.verified.disclosure
    below = "" if disclosed is None else count(len(disclosed.values), "value")

    return {
        "model": f"Predicts {schema.class_name} ({labels}) from {count(len(used), 'attribute')}: "
        f"{model.structure_learned}, parameters {recipe.param}.",
        "outcome": f"Column {schema.class_name} with the labels {labels}.",
        "attributes": f"{count(len(used), 'attribute')} ({kinds}): {', '.join(a.name for a in used)}.",
        "selection": f"{len(used):,} of {count(len(schema.attributes), 'attribute')} are used"
        + ("." if len(used) == len(schema.attributes) else "; the others are not informative or were left out."),
        "preparation": f"Numbers are cut into intervals ({recipe.discretize}) on training rows alone; "
        "the cuts are in the model file.",
        "missing": f"A missing value {missing}. {_missing_text(found)}",
        "unknown_values": f"Values that did not occur in training {unseen}. A missing value {missing}. "
        f"{_missing_text(found)}",
        "method": f"{model.structure_learned}; parameters {recipe.param}. Options: {options}.",
        "tuning": (penalty + inner).strip(),
        "changes": f"{changed}{calibrated} Fitted by bncli {model.version}.",
        "imbalance": weighted,
        "output": f"The probability of each label.{calibrated} Decision: "
        f"{'; '.join(rules) if rules else 'the most probable label'}.",
        "prediction": f"By the model file; {formula}.{calibrated}",
        "development": f"{count(model.n_rows, 'training row')}{rows_of_labels}.",
        "specification": f"All tables are in dossier.json (specification{program}), and on this page: {formula}."
        f"{calibrated} {by_command}",
        "effects": f"Shares of the variance of the score: {listed(shares_of) or 'no attribute is used'}.",
        "self_test": ""
        if self_test is None
        else f"{self_test.rows:,} stored rows were scored again; the largest difference is {self_test.max_dp:.1e}.",
        "certificates": "; ".join(proven) + ("." if proven else ""),
        "disclosure": ""
        if disclosed is None
        else f"{below} in the model file ha{'s' if len(disclosed.values) == 1 else 've'} fewer than "
        f"{disclosed.min_rows} training rows; {count(disclosed.held_out, 'single row')} with stored held-out "
        "probabilities.",
        "software": f"Fitted by bncli {model.version}. Scoring needs Python with NumPy and bncli, or an export that "
        "works without bncli.",
    }


def _facts_of_rows(found: Findings) -> dict[str, str]:
    report, monitor = found.scored.report, found.monitored.overall
    supports = [f"{label} {own.support:,.10g}" for label, own in zip(report.labels, report.per_label, strict=True)]
    without = f"; {count(found.unlabelled, 'row')} without a class not evaluated" if found.unlabelled else ""
    columns = [column for column in found.data["columns"] if column["name"] != found.data["class"]]
    lacking = [f"{column['name']} {column['missing']:,}" for column in columns if column["missing"]]
    drifted = monitor.drifted
    psi = [(drift.psi, name) for name in found.monitored.names for drift in found.monitored.drifts(name) if drift.psi]
    highest = f"; highest stability index {max(psi)[0]:.3f} ({max(psi)[1]})" if psi else ""
    if report.on_training_rows:
        partition = "The test rows are the training rows, so the figures are too optimistic."
    else:
        partition = "Judging by their number and frequencies, the test rows are not the training rows."
    expected = []
    for name, own in monitor.expected.items():
        if own.value is not None:
            interval = "" if own.interval is None else f" ({' to '.join(map(figure, own.interval))})"
            expected.append(f"{_NAMES[name]} {figure(own.value)}{interval}")
    warnings = []
    if report.on_training_rows:
        warnings.append("the figures are computed on the training rows")
    fewest = min((own.support for own in report.per_label), default=0)
    if fewest < _FEW_EVENTS:
        warnings.append(f"the rarest label has {fewest:,.10g} test rows, fewer than {_FEW_EVENTS}")
    if drifted:
        warnings.append(f"{listed(drifted)} drifted since training")
    refuted = [one.text for one in found.verified.properties or () if one.holds is False]
    warnings += [f"refuted: {text}" for text in refuted]
    warnings += [finding["message"] for finding in found.data["findings"]]
    times = [period.name for period in found.periods]
    return {
        "rows": f"{count(report.rows, 'test row')}{without}.",
        "sample_size": f"{count(found.model.n_rows, 'training row')}; tested: {', '.join(supports)}.",
        "characteristics": f"{count(len(columns), 'column')} in the test table, described in dossier.json (data); "
        + (f"missing values: {listed(lacking)}." if lacking else "no value is missing."),
        "files": "; ".join(f"{kind} {path} (SHA-256 {digest[:16]}...)" for kind, path, digest in found.files) + ".",
        "partition": partition,
        "drift": (f"Drifted: {listed(drifted)}" if drifted else "No attribute has drifted") + f"{highest}.",
        "dates": f"Test rows from {times[0]} to {times[-1]}." if times else "",
        "expected": f"On {count(monitor.tally.rows, 'row')}, the probabilities imply {', '.join(expected)}.",
        "warnings": "; ".join(warnings) + ("." if warnings else ""),
    }


def _missing_text(found: Findings) -> str:
    tally = found.monitored.overall.tally
    n = max(tally.rows, 1)
    lacking = [f"{own.name} {percent(own.missing / n)}" for own in tally.attributes if own.missing]
    unseen = [f"{own.name} {percent(own.unseen / n)}" for own in tally.attributes if own.unseen]
    text = (
        f"Missing values in the test rows: {listed(lacking)}." if lacking else "No value is missing in the test rows."
    )
    return text + (f" Never seen in training: {listed(unseen)}." if unseen else "")


def _facts_of_figures(found: Findings) -> dict[str, str]:
    report = found.scored.report
    two_class = report.two_class
    calibration, benefit = "", ""
    if two_class is not None:
        parts = []
        for name in ("slope", "intercept", "in_the_large"):
            own = getattr(two_class, f"calibration_{name}")
            ends = two_class.intervals.get(f"calibration_{name}")
            interval = "" if ends is None else f" ({' to '.join(map(figure, ends))})"
            parts.append(f"{name.replace('_', ' ')} {figure(own)}{interval}")
        calibration = f"Calibration: {', '.join(parts)}; calibration error {figure(report.metrics['ece'])}."
        better = [line.threshold for line in two_class.net_benefit if line.model > max(line.all, line.none)]
        benefit = "The net benefit is not above that of always or never predicting the event at any threshold."
        if better:
            benefit = (
                f"The net benefit is above that of always or never predicting the event at {len(better)} of 99 "
                f"thresholds, "
            )
            benefit += f"from {min(better):.2f} to {max(better):.2f}."
    else:
        calibration = f"Calibration error {figure(report.metrics['ece'])}."
    never = never_predicted(report)
    groups = () if report.groups is None else report.groups.groups
    fairness = list[str]()
    for entry in () if report.groups is None else report.groups.fairness:
        gaps = [f"{name.replace('_', ' ')} {gap.difference:.3f}" for name, gap in entry.gaps.items() if gap is not None]
        if gaps:
            largest = "largest" if fairness else "Largest"
            fairness.append(f"{largest} differences by {entry.by} for {entry.label}: {', '.join(gaps)}")
    periods = [period.group for period in found.periods if period.group is not None]
    columns = list(dict.fromkeys(group.by for group in groups))
    of_groups = [
        _lowest_and_highest_text(
            f"{count(sum(g.by == by for g in groups), 'group')} by {by}", [group for group in groups if group.by == by]
        )
        for by in columns
    ]
    of_periods = (
        _lowest_and_highest_text(f"{count(len(periods), 'period')} by {periods[0].by}", periods) if periods else ""
    )
    most = sorted(found.sensitivities.items(), key=lambda pair: -pair[1].log_loss_increase)
    sensitivity = [f"{name} {own.log_loss_increase:.4f}" for name, own in most]
    where = " and ".join([*(f"groups by {by}" for by in columns), *(["periods"] if periods else [])])
    parts = []
    for name in ("auc", "log_loss", "accuracy", "brier"):
        ends = report.intervals.metrics.get(name)
        interval = "" if ends is None else f" ({' to '.join(map(figure, ends))})"
        parts.append(f"{_NAMES[name]} {figure(report.metrics[name])}{interval}")
    return {
        "performance": f"On {count(report.rows, 'row')}: {', '.join(parts)}.",
        "calibration": calibration,
        "net_benefit": f"{never} {benefit}".strip(),
        "baseline": ("" if found.challengers else "No other model was compared (--beside). ")
        + f"Class frequencies alone: log-loss {figure(report.baseline.log_loss)}, accuracy "
        f"{figure(report.baseline.accuracy)}.",
        "groups": " ".join(of_groups),
        "periods": f"{of_periods} {unexpected_figures(found)}".strip(),
        "heterogeneity": f"All figures with intervals for {where}." if where else "",
        "fairness": f"{'; '.join(fairness)}. {never}".strip() if fairness else "",
        "sensitivity": f"Increase in log-loss when an attribute's values are permuted: {listed(sensitivity)} "
        f"({count(found.sensitivity_rows, 'row')})."
        if sensitivity
        else "",
        "challenger": " ".join(comparison_sentence(report, other) for other in found.challengers),
        "measures": "Accuracy, log-loss, Brier score, AUC, calibration error, balanced accuracy, Matthews coefficient"
        + (", calibration slope and intercept, net benefit" if two_class is not None else "")
        + f"; {report.intervals.method}.",
    }


def unexpected_figures(found: Findings) -> str:
    """Return a sentence on which metrics of the periods are outside the intervals implied by the probabilities.

    It is "" if no metric can be compared. Periods in which any row has no class are left out.
    """
    outside, n_compared = [], 0
    for period in found.periods:
        if period.group is None or period.group.rows != period.rows:
            continue
        for name, own in period.expected.items():
            measured = period.group.metrics[name]
            if own.interval is None or measured is None:
                continue
            n_compared += 1
            low, high = own.interval
            if not low <= measured <= high:
                expected = f"expected {figure(low)} to {figure(high)}"
                outside.append(f"{_NAMES[name]} of {period.name} ({figure(measured)}, {expected})")
    if not n_compared:
        return ""
    by_chance = f"about 1 in 20 is outside by chance; {count(n_compared, 'figure')} were compared"
    if not outside:
        return "All figures of the periods are within the intervals that the probabilities imply."
    return f"Outside the intervals that the probabilities imply: {'; '.join(outside)} ({by_chance})."


def _lowest_and_highest_text(where: str, groups: Sequence[Group]) -> str:
    """Return a sentence, beginning with `where`, on the lowest and the highest log-loss and AUC of the groups."""
    parts = []
    for name in ("log_loss", "auc"):
        known = [(own, group.value or "missing") for group in groups if (own := group.metrics[name]) is not None]
        if known:
            (low, at_low), (high, at_high) = min(known), max(known)
            parts.append(f"{_NAMES[name]} {figure(low)} ({at_low}) to {figure(high)} ({at_high})")
    return f"{where}: {', '.join(parts) or 'no figures'}."
