"""Write the dossier of a model: one page and one JSON file.

The page has the checklists, then the report page of the model, then what only a dossier has. The JSON file is:

    {"format": "bncli-dossier", "version": 1, "model": "m.bnc", "about": {"intended_use": null, ...},
     "checklists": {"tripod_ai": [{"item": "1", "title": ..., "status": "not provided", ...}, ...], ...},
     "evaluation": {...}, "periods": [...], "monitor": {...}, "sensitivity": {...}, "challengers": [...],
     "verification": {...}, "data": {...}, "specification": {...}, "files": [{"kind", "path", "sha256"}, ...]}

`evaluation` has the keys of `evaluate --json`, `monitor` those of `monitor --json`, `verification` those of
`verify --json`, and `specification` those of `inspect --json`.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from bncli import __version__
from bncli.errors import UsageError
from bncli.files.artifacts.monitors import expected_json
from bncli.files.atomic import write_bytes
from bncli.files.json_documents import dump_json
from bncli.files.paths import check_outputs, check_target
from bncli.files.pictures.page import Block, FoldedBlocks, Grid, Page, Paragraph, Section, html_page
from bncli.steps.dossier.checklists import CHECKLISTS, FIELDS, STATUSES, About, Answer, Checklist, read_about
from bncli.steps.dossier.facts import facts_of, unexpected_figures
from bncli.steps.dossier.findings import DossierSources, Findings, find_all
from bncli.steps.evaluate.report import GroupsReport, intervals_json
from bncli.steps.report.page_text import count, figure, percent
from bncli.steps.report.performance_section import paired_difference
from bncli.steps.report.report import ReportInputs, model_page
from bncli.watch import Run, Stage

VERSION = 1
_CALIBRATION = ("calibration_slope", "calibration_intercept", "calibration_in_the_large")
_MOST_LINES = 1000


class DossierReport(NamedTuple):
    """The two files that were written, and the number of items of each checklist by status."""

    model: str
    page: str
    json: str
    rows: int
    unlabelled_rows: int
    items: dict[str, dict[str, int]]
    properties_refuted: int

    def as_json(self) -> dict[str, Any]:
        """Return every field by name."""
        return self._asdict()


def dossier(model_path: str, sources: DossierSources, *, output: str, run: Run = Run()) -> DossierReport:
    """Write `dossier.html` and `dossier.json` about the model at `model_path` to the folder `output`."""
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
    """Return the content of the JSON file; it does not depend on when or how fast it was made."""
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
    """Return the page: the checklists, the sections of the model's page, and further findings."""
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
    """Yield the number of items answered, the fields to fill in, and a line per item."""
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
    """Yield the figures of each period, and the expected beside the measured figures."""
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
    """Yield the changes of the predictions with each attribute, and the properties."""
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
    """Yield what the model file discloses about few training rows: values, cells of tables, and held-out rows."""
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
