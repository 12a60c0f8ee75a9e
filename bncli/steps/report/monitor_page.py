"""The page of monitors: what has drifted from training, what is predicted, missing and unseen, file after file."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from bncli.engine.prediction.monitoring import LEAST_PSI, LEAST_UNKNOWN, AttributeCounts, Monitor
from bncli.files.pictures.curve_plots import Series, series_plot
from bncli.files.pictures.page import Block, Grid, Listing, Page, Paragraph, Picture, Pictures, Section
from bncli.steps.monitor import MonitorReport
from bncli.steps.report.page_text import count, figure, listed, percent
from bncli.steps.report.structure_section import evaluation_provenance

MOST_PICTURES = 24
MOST_COLUMNS = 1000
_FIGURES = (
    ("log_loss", "Log-loss.", "log-loss, nats a row", "higher is worse"),
    ("confidence", "Confidence.", "mean probability of the decision", "lower is less sure"),
    ("log_p", "How usual the rows are.", "mean ln P(x), nats", "lower is more unusual"),
)


def monitoring_page(report: MonitorReport) -> Page:
    """Return all sections, in the order of a reader's questions."""
    model, rows = report.whole.model, report.whole.tally.rows
    made = evaluation_provenance(report.files, None, "monitor")
    again = Listing([shlex.join(["bncli", "monitor", *report.files, "--report", "report.html"])])
    sections = (
        Section("drift", "Has anything drifted?", tuple(_drifted(report))),
        Section("predictions", "What does it predict?", tuple(_predictions(report))),
        Section("figures", "Is it as sure and as right as it was?", tuple(_figures(report))),
        Section("unknown", "What is missing or was never seen?", tuple(_missing_and_unseen(report))),
        Section(made.word, made.question, (*made.blocks, again)),
    )
    of = f"a model that tells {model.class_name}, learnt from {count(model.rows, 'row')}"
    summary = f"{count(rows, 'row')} in {count(len(report.files), 'file')} of score --monitor, scored by {of}."
    return Page(f"Monitor of {model.class_name}", summary, sections)


def _drifted(report: MonitorReport) -> Iterator[Block]:
    names, n = report.short_names, len(report.files)
    order = sorted(report.names, key=lambda name: not any(drift.drifted for drift in report.drifts(name)))
    bad = [name for name, one in zip(names, report.monitors, strict=True) if one.drifted]
    if bad:
        far = [name for name in order if any(drift.drifted for drift in report.drifts(name))]
        verb = "has" if len(far) == 1 else "have"
        yield Paragraph(
            f"In {len(bad):,} of {count(n, 'file')} ({listed(bad)}) {listed(far)} {verb} drifted.", "warning"
        )
    else:
        yield Paragraph(f"Nothing has drifted from training in {count(n, 'file')}.")
    shown = order[:MOST_PICTURES]
    yield Pictures([_psi(report, number, name) for number, name in enumerate(shown, 1)])
    if len(order) > len(shown):
        yield Paragraph(f"{count(len(order) - len(shown), 'column')} more drifted less.", "gap")
    limit = f"at least {LEAST_PSI:g} (dashed) and more than chance explains, or where"
    unknown = f"{percent(LEAST_UNKNOWN)} of its values or more were never seen in training"
    yield Paragraph(f"A column has drifted where its stability index (PSI) is {limit} {unknown}.")
    yield _files(report)
    yield _columns(report, order)


def _psi(report: MonitorReport, number: int, name: str) -> Picture:
    drifts, names = report.drifts(name), report.short_names
    values = [drift.psi for drift in drifts]
    drawing = series_plot(name, "PSI", values, [LEAST_PSI] * len(values), names)
    known = [(psi, i) for i, psi in enumerate(values) if psi is not None]
    times = sum(drift.drifted for drift in drifts)
    told = f"Drifted in {times:,} of {count(len(values), 'file')}" if times else "Not drifted"
    if known:
        psi, i = max(known, key=lambda one: one[0])
        told += f"; PSI at most {psi:.3g} in {names[i]}, by chance {drifts[i].psi_expected or 0.0:.2g}."
    else:
        told += "; no value of training occurs."
    return Picture(f"psi-{number}", f"{name}.", told + _strange(report, name), drawing)


def _strange(report: MonitorReport, name: str) -> str:
    """Return a sentence where values that training never had are as many as make drift, which the index leaves out."""
    tallies = [next(a for a in one.tally.attributes if a.name == name) for one in report.monitors]
    rows = (max(one.tally.rows, 1) for one in report.monitors)
    shares = [tally.unknown / n for tally, n in zip(tallies, rows, strict=True)]
    most = max(range(len(shares)), key=lambda i: shares[i])
    if shares[most] < LEAST_UNKNOWN:
        return ""
    return f" Values never seen in training: {percent(shares[most])} of rows in {report.short_names[most]}."


def _files(report: MonitorReport) -> Grid:
    """Return a line per file, and one for all of them."""
    monitors = [*zip(report.short_names, report.monitors, strict=True)]
    if len(monitors) > 1:
        monitors.append(("all", report.whole))
    rows = [
        (
            *(name, f"{one.tally.rows:,}", figure(one.tally.confidence.mean), figure(one.tally.log_p.mean)),
            *(figure(one.tally.log_loss.mean), listed(one.drifted) or "none"),
        )
        for name, one in monitors
    ]
    headings = ("file", "rows", "confidence", "ln P(x)", "log-loss", "drifted")
    return Grid("Files in the order of time", headings, rows, (1, 2, 3, 4))


def _columns(report: MonitorReport, order: Sequence[str]) -> Grid:
    """Return a line an attribute."""
    rows = []
    for name in order[:MOST_COLUMNS]:
        drifts = report.drifts(name)
        known = [drift for drift in drifts if drift.psi is not None]
        highest = max((drift.psi or 0.0 for drift in known), default=None)
        ends = (known[0].psi, known[-1].psi) if known else (None, None)
        times = sum(drift.drifted for drift in drifts)
        rows.append((name, *map(figure, (*ends, highest)), f"{times:,} of {len(drifts):,}"))
    headings = ("column", "first PSI", "last PSI", "highest PSI", "files where it drifted")
    return Grid("Columns, those that drifted first", headings, rows, (1, 2, 3, 4))


def _predictions(report: MonitorReport) -> Iterator[Block]:
    """Yield the share of each label among predictions, most frequent first, and among true labels if known."""
    labels, names = report.whole.model.labels, report.short_names
    order = sorted(range(len(labels)), key=lambda y: -report.whole.tally.predictions[y])
    predicted = [_shares(one.tally.predictions.tolist()) for one in report.monitors]
    true = [_shares(one.tally.classes.tolist()) for one in report.monitors]
    moved = max(order, key=lambda y: _span([one[y] for one in predicted]))
    told = _ends([one[moved] for one in predicted], names)
    yield Paragraph(f"{labels[moved]} is the label whose share moved farthest: {told}.")
    pictures = []
    for number, y in enumerate(order[:MOST_PICTURES], 1):
        values, truth = [one[y] for one in predicted], [one[y] for one in true]
        sentence = f"Predicted for {_ends(values, names)}."
        if any(share is not None for share in truth):
            sentence += f" Truly so (dashed): {_ends(truth, names)}."
        drawing = series_plot(labels[y], "share of rows", values, truth, names)
        pictures.append(Picture(f"predicted-{number}", f"{labels[y]}.", sentence, drawing))
    yield Pictures(pictures)
    if len(order) > MOST_PICTURES:
        yield Paragraph(f"{count(len(order) - MOST_PICTURES, 'label')} more were predicted less often.", "gap")


def _shares(counts: Sequence[float]) -> list[float | None]:
    total = sum(counts)
    return [one / total if total else None for one in counts]


def _span(values: Series) -> float:
    known = [value for value in values if value is not None]
    return max(known) - min(known) if known else 0.0


def _ends(values: Series, names: Sequence[str]) -> str:
    """Return the first and the last share, and the highest where it is neither."""
    known = [(value, name) for value, name in zip(values, names, strict=True) if value is not None]
    if not known:
        return "no rows"
    told = f"{percent(known[0][0])} of rows in {known[0][1]}"
    if len(known) > 1:
        told += f", {percent(known[-1][0])} in {known[-1][1]}"
    most = max(known, key=lambda one: one[0])
    return told if most[0] in (known[0][0], known[-1][0]) else f"{told}, at most {percent(most[0])} in {most[1]}"


def _figures(report: MonitorReport) -> Iterator[Block]:
    """Yield log-loss, confidence and ln P(x), where they are known."""
    pictures, held_out = [], report.whole.model.held_out_log_loss
    for word, title, upwards, better in _FIGURES:
        values = [_mean(one, word) for one in report.monitors]
        known = [(value, name) for value, name in zip(values, report.short_names, strict=True) if value is not None]
        if not known:
            continue
        told = f"{known[0][0]:.3f} in {known[0][1]}"
        if len(known) > 1:
            told += f", {known[-1][0]:.3f} in {known[-1][1]}"
        beside = held_out if word == "log_loss" else None
        sentence = f"{told} ({better})."
        if beside is not None:
            sentence += f" Rows held out when it was learnt had {beside:.3f} (dashed)."
        drawing = series_plot(title, upwards, values, [beside] * len(values), report.short_names)
        pictures.append(Picture(word.replace("_", "-"), title, sentence, drawing))
    yield Pictures(pictures)
    if not report.whole.tally.log_loss.n:
        yield Paragraph("No row had its class, so that nothing is known of how often it was right.", "gap")
    if report.whole.no_log_p:
        yield Paragraph(f"How usual the rows are is not known: {report.whole.no_log_p}.", "gap")


def _mean(one: Monitor, word: str) -> float | None:
    mean: float | None = getattr(one.tally, word).mean
    return mean


def _missing_and_unseen(report: MonitorReport) -> Iterator[Block]:
    """Missing values and those that training never had, of the columns where there are any."""
    rows = max(report.whole.tally.rows, 1)
    places = [i for i, one in enumerate(report.whole.tally.attributes) if one.missing or one.unseen]
    tallies = report.whole.tally.attributes
    places.sort(key=lambda i: -(tallies[i].missing + tallies[i].unseen))
    if not places:
        yield Paragraph("No value is missing, and none is one that training never had.")
        return
    told = [f"{tallies[i].name} ({percent((tallies[i].missing + tallies[i].unseen) / rows)})" for i in places]
    yield Paragraph(f"Missing or never seen in training: {listed(told)}.")
    pictures = []
    for number, i in enumerate(places[:MOST_PICTURES], 1):
        each = [(one.tally.attributes[i], one.tally.rows) for one in report.monitors]
        values = [(one.missing + one.unseen) / n if n else None for one, n in each]
        training = _missing_in_training(tallies[i])
        sentence = f"{_ends(values, report.short_names)}; missing in training (dashed): {percent(training)}."
        drawing = series_plot(tallies[i].name, "share of rows", values, [training] * len(values), report.short_names)
        pictures.append(Picture(f"unknown-{number}", f"{tallies[i].name}.", sentence, drawing))
    yield Pictures(pictures)
    lines = [
        (one.name, percent(_missing_in_training(one)), percent(one.missing / rows), percent(one.unseen / rows))
        for one in (tallies[i] for i in places[:MOST_COLUMNS])
    ]
    headings = ("column", "missing in training", "missing", "never seen in training")
    yield Grid("Shares of all rows", headings, lines, (1, 2, 3))


def _missing_in_training(tally: AttributeCounts) -> float:
    total = float(tally.training.sum())
    return float(tally.training[-1]) / total if tally.missing_counts and total else 0.0
