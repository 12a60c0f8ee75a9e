"""The page of a dossier: the checklists, then the report page of the model, then what only a dossier has."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from bncli.files.pictures.page import Block, FoldedBlocks, Grid, Page, Paragraph, Section
from bncli.steps.dossier.about import FIELDS, About
from bncli.steps.dossier.checklists import CHECKLISTS, STATUSES, Answer, Checklist
from bncli.steps.dossier.findings import DossierSources, Findings
from bncli.steps.report.page_text import count, figure, percent
from bncli.steps.report.report import ReportInputs, model_page

_MOST_LINES = 1000


def dossier_page(
    found: Findings,
    model_path: str,
    sources: DossierSources,
    about: About,
    answers: Mapping[str, Sequence[Answer]],
) -> Page:
    """Return the page: the checklists, the sections of the model's page, and further findings."""
    paths = sources.source.paths
    words = ["bncli", "dossier", model_path, "--data", *paths, *([] if found.time is None else ["--time", found.time])]
    words += [word for name in sources.by for word in ("--by", name)]
    words += [word for path in sources.beside for word in ("--beside", path)]
    words += [*(["--about", sources.about] if sources.about else []), "-o", "DIR"]
    inputs = ReportInputs(found.scored, paths, beside=found.beside, command=shlex.join(words))
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
    """Yield how many items are answered, the fields to fill in, and a line per item."""
    numbers = [f"{sum(answer.status == status for answer in answers):,} {status}" for status in STATUSES]
    note = "The items are in our own words; the original text is what counts."
    yield Paragraph(f"{checklist.subject}. {count(len(answers), 'item')}: {', '.join(numbers)}. {note}")
    empty = list(dict.fromkeys(name for answer in answers for name in answer.missing))
    if empty:
        yield FoldedBlocks(
            f"fields-{checklist.word}",
            f"Fields of ABOUT.toml that are empty ({len(empty):,})",
            [Grid("Empty fields", ("field", "what belongs into it"), [(name, FIELDS[name]) for name in empty])],
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
        yield Paragraph("Figures by period need a column of time: add --time COLUMN.", "gap")
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
    monitor = found.monitored.whole
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
    """Yield how much the predictions change with each attribute, and the properties."""
    order = sorted(found.sensitivities.items(), key=lambda pair: -pair[1].log_loss_increase)
    rows = [
        (name, f"{own.log_loss_increase:.4f}", f"{own.mean_change:.4f}", percent(own.changed))
        for name, own in order[:_MOST_LINES]
    ]
    caption = f"Attributes whose values are exchanged ({count(found.sensitivity_rows, 'row')})"
    headings = ("attribute", "log-loss added", "mean change of a probability", "rows that may be decided otherwise")
    yield Grid(caption, headings, rows, (1, 2, 3))
    words = {True: "proven", False: "refuted", None: "open: the time ran out"}
    properties = [(one.text, words[one.holds], one.shown or "–") for one in found.verified.properties or ()]
    if properties:
        yield Grid("Properties over all inputs", ("property", "verdict", "counter-example"), properties)
    else:
        yield Paragraph("No property was stated: see properties in ABOUT.toml, and bncli help properties.", "gap")


def _disclosure_blocks(found: Findings) -> Iterator[Block]:
    """Yield the values and tables of the file that rest on few training rows."""
    disclosed = found.verified.disclosure
    assert disclosed is not None
    few = f"fewer than {disclosed.min_rows} training rows"
    yield Paragraph(f"{count(len(disclosed.values), 'value')} of the model file rest on {few}.")
    rows = [(one.attribute, one.value, f"{one.rows:,.6g}", ", ".join(one.where)) for one in disclosed.values]
    if rows:
        yield Grid(f"Values with {few}", ("column", "value", "rows", "where"), rows[:_MOST_LINES], (2,))


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
