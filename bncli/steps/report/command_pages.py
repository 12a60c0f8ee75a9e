"""Make the report pages of the commands describe, compare and monitor."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence

from bncli.engine.prediction.monitoring import LEAST_PSI, LEAST_UNKNOWN, AttributeCounts
from bncli.files.pictures.curve_plots import Series, series_plot
from bncli.files.pictures.effect_plots import share_bars
from bncli.files.pictures.page import (
    Block,
    Cards,
    Grid,
    Listing,
    Page,
    Paragraph,
    Picture,
    Section,
    Tile,
    count,
    figure,
    listed,
    percent,
)
from bncli.steps.compare.analysis import HIGHER_IS_BETTER, CompareReport, metric_text
from bncli.steps.compare.outputs import rank_diagram, scatter_drawing, scatter_panels
from bncli.steps.describe import AttributeBins, DescribeReport
from bncli.steps.monitor import MonitorReport
from bncli.steps.report.structure_section import evaluation_provenance

MOST_COLUMNS = 1000
"""The maximum number of columns listed in a table of the page, and of attributes that have a table of bins."""
MOST_PICTURES = 24
_MOST_BARS = 30
_MOST_LABELS = 40
_MONITORED_MEANS = (
    ("log_loss", "Log-loss", "log-loss, nats per row", "higher is worse"),
    ("confidence", "Confidence", "mean probability of the decision", "lower is less certain"),
    ("log_p", "Typicality of the rows", "mean ln P(x), nats", "lower is more unusual"),
)


def description_page(report: DescribeReport, data: Sequence[str]) -> Page:
    """Return the page that describes a table: its class, columns, bins (if computed) and recommended command line."""
    names = ", ".join(os.path.basename(path) for path in data)
    size = f"{count(report.rows, 'row')}, {count(len(report.columns), 'column')}"
    recommended = [Listing([report.recommended])] if report.recommended else []
    sections = (
        Section("class", "Class", tuple(_class_blocks(report))),
        Section("columns", "Columns", tuple(_column_blocks(report))),
        *([] if report.bins is None else [_bins_section(report.bins, report.event or "")]),
        Section("begin", "Recommended command", (*map(Paragraph, report.notes), *recommended)),
        evaluation_provenance(data, None),
    )
    tiles = [Tile("Rows", f"{report.rows:,}"), Tile("Columns", f"{len(report.columns):,}")]
    if report.of_class is not None and report.of_class.labels:
        labels, rows = report.of_class.labels, report.of_class.rows
        most = percent(max(rows) / max(sum(rows), 1))
        tiles.append(Tile("Class", report.of_class.name, count(len(labels), "label")))
        tiles.append(Tile("Most frequent label", most, labels[rows.index(max(rows))]))
    return Page(f"Description of {names}", size, sections, tiles=tiles)


def _class_blocks(report: DescribeReport) -> Iterator[Block]:
    """Yield the entropy of the class and the frequencies of its labels, at most the _MOST_LABELS most frequent ones."""
    column = report.of_class
    if column is None or not column.labels:
        yield Paragraph("No column can be used as the class.")
        return
    total = max(sum(column.rows), 1)
    order = sorted(range(len(column.rows)), key=lambda i: -column.rows[i])
    share = percent(column.rows[order[0]] / total)
    text = f"The most frequent label of {column.name} is {column.labels[order[0]]} ({share})"
    yield Paragraph(f"{text}; its entropy is {column.bits:.3f} bits.")
    rows = [(column.labels[i], f"{column.rows[i]:,}", percent(column.rows[i] / total)) for i in order[:_MOST_LABELS]]
    yield Grid("Labels", ("label", "rows", "share"), rows, (1, 2))
    if len(order) > _MOST_LABELS:
        yield Paragraph(f"{count(len(order) - _MOST_LABELS, 'label')} with fewer rows not shown.", "gap")


def _column_blocks(report: DescribeReport) -> Iterator[Block]:
    """Yield the columns that `fit` does not use, and a plot and a table of the columns by mutual information.

    Both begin with the column that has the most information about the class. The plot has at most _MOST_BARS columns,
    and the table at most MOST_COLUMNS.
    """
    others = [column for column in report.columns if column.name != report.class_name]
    order = sorted(others, key=lambda column: -(column.bits or 0.0))
    informative = [((column.name,), column.bits or 0.0) for column in order if column.bits][:_MOST_BARS]
    cards = list[Block]()
    if informative:
        drawing = share_bars(
            "Information about the class, bits", informative, [f"{bits:.3f}" for _, bits in informative]
        )
        sentence = f"{informative[0][0][0]} has the most information about the class: {informative[0][1]:.3f} bits."
        cards.append(Picture("bits", "Information about the class", sentence, drawing))
    left_out = [column.name for column in others if not column.use]
    if left_out:
        yield Paragraph(f"fit does not use {listed(left_out)}.")
    rows = [
        (
            column.name,
            column.type,
            f"{'' if column.exact else '~'}{column.distinct:,}",
            percent(column.missing / max(report.rows, 1)),
            "–" if column.bits is None else f"{column.bits:.3f}",
            "yes" if column.use else "no",
            column.reason,
        )
        for column in order[:MOST_COLUMNS]
    ]
    headings = ("column", "type", "distinct", "missing", "bits", "used by fit", "reason")
    cards.append(Grid("Columns by information about the class", headings, rows, (2, 3, 4)))
    yield Cards(cards)
    if len(order) > MOST_COLUMNS:
        yield Paragraph(f"{count(len(order) - MOST_COLUMNS, 'column')} with less information not shown.", "gap")


def _bins_section(bins: Sequence[AttributeBins], event: str) -> Section:
    """Return the section on the bins of the first MOST_COLUMNS attributes.

    bins: sorted by descending information value. event: the label whose rate the table gives for every bin.
    """
    blocks = list[Block]([Paragraph(f"The event is {event}. Attributes are sorted by information value.")])
    ranks = [(entry.attribute, f"{len(entry.bins):,}", figure(entry.iv)) for entry in bins[:MOST_COLUMNS]]
    grids = [Grid("Information value", ("attribute", "bins", "IV"), ranks, (1, 2))]
    headings = ("value", "rows", "events", "event rate", "weight of evidence", "IV")
    for entry in bins[:MOST_COLUMNS]:
        about = "" if entry.exact else "~"
        rows = [
            (
                value,
                f"{about}{own.rows:,.10g}",
                f"{about}{own.events:,.10g}",
                "–" if own.event_rate is None else percent(own.event_rate),
                figure(own.woe),
                figure(own.iv),
            )
            for value, own in zip(entry.values, entry.bins, strict=True)
        ]
        grids.append(Grid(f"{entry.attribute} (IV {figure(entry.iv)})", headings, rows, (1, 2, 3, 4, 5)))
    blocks.append(Cards(grids))
    if len(bins) > MOST_COLUMNS:
        blocks.append(
            Paragraph(f"{count(len(bins) - MOST_COLUMNS, 'attribute')} with less information not shown.", "gap")
        )
    return Section("bins", "Bins and weight of evidence", blocks)


def comparison_page(report: CompareReport) -> Page:
    """Return the page that compares learners over data sets, with one section per metric and a provenance section."""
    trial = report.results
    sections = [
        Section(f"by-{metric}", f"Results: {metric_text(metric)}", tuple(_metric_blocks(report, metric)))
        for metric in report.metrics
    ]
    options = [(name, trial.options.get(name) or "") for name in trial.learners]
    learners = Grid("Learners", ("learner", "options"), options)
    sections.append(Section("made", "Provenance", (Paragraph(f"{trial.protocol}."), learners)))
    size = f"{count(len(trial.learners), 'learner')} on {count(len(trial.data), 'data set')}: {trial.protocol}."
    return Page("Comparison of learners", size, sections)


def _metric_blocks(report: CompareReport, metric: str) -> Iterator[Block]:
    """Yield a table of the means of a metric and, if they can be computed over several data sets, its plots.

    The plots show the average ranks and each learner against the baseline. If there are too few data sets for the tests
    to be significant, a caution comes first.
    """
    summary = report.summaries.get(metric)
    cards = list[Block]()
    if summary is not None and summary.average_ranks:
        cards.append(_rank_picture(report, metric, summary.average_ranks))
        if summary.caution:
            yield Paragraph(summary.caution, "warning")
    # For a single data set the table below contains everything.
    panels = scatter_panels(report, metric)
    if len(report.results.data) > 1 and any(panel.points for panel in panels):
        most = max(panels, key=lambda panel: panel.better - panel.worse)
        n = most.better + most.equal + most.worse
        sentence = f"{most.name} is better than {report.baseline} on {most.better} of {count(n, 'data set')}, "
        sentence += f"worse on {most.worse}."
        if most.better <= most.worse:
            sentence = f"No learner is better than {report.baseline} on more data sets than on which it is worse."
        title = f"{metric_text(metric)} of every learner against {report.baseline}"
        drawing = scatter_drawing(report, metric, panels)
        cards.append(Picture(f"scatter-{metric}", title, sentence, drawing, wide=True))
    learners = report.results.learners
    rows = []
    for data in report.results.data:
        means = [report.metric_mean(data, name, metric) for name in learners]
        cells = ["–" if m is None else f"{figure(m.mean)} ± {figure(m.std)}{' *' if m.best else ''}" for m in means]
        rows.append((data, *cells))
    better = "higher" if metric in HIGHER_IS_BETTER else "lower"
    caption = f"{metric_text(metric)}: mean ± standard deviation; {better} is better, * marks the best"
    cards.append(Grid(caption, ("data", *learners), rows, tuple(range(1, len(learners) + 1))))
    yield Cards(cards)


def _rank_picture(report: CompareReport, metric: str, average_ranks: dict[str, float]) -> Picture:
    """Draw the average ranks: as a critical-difference diagram if the learners were tested, otherwise as bars."""
    summary = report.summaries[metric]
    title = f"Average ranks by {metric_text(metric)} (1 is best)"
    ranks = sorted(average_ranks.items(), key=lambda pair: pair[1])
    best = [name for name, rank in ranks if rank <= ranks[0][1] + 1e-9]
    verb, sets = "has" if len(best) == 1 else "share", count(len(summary.sets), "data set")
    sentence = f"{listed(best)} {verb} the best average rank, {ranks[0][1]:.2f} over {sets}."
    drawing = rank_diagram(report, metric)
    if drawing is None:
        drawing = share_bars("Average ranks", [((name,), rank) for name, rank in ranks], [f"{r:.2f}" for _, r in ranks])
        return Picture(f"ranks-{metric}", title, sentence, drawing)
    alike = [name for group in summary.groups if best[0] in group for name in group if name not in best]
    if alike:
        verb = "does" if len(alike) == 1 else "do"
        differences = f"{listed(alike)} {verb} not differ significantly from the best"
    else:
        all_differ = "the best differs significantly from all others"
        differences = all_differ if len(best) < len(ranks) else "no learners differ significantly"
    sentence += f" In the Nemenyi test (5 %), {differences}; a bar joins learners without a significant difference."
    return Picture(f"ranks-{metric}", title, sentence, drawing, wide=True)


def monitoring_page(report: MonitorReport) -> Page:
    """Return the page on scored files: drift from training, predictions, log-loss, and missing and unseen values."""
    model, rows = report.overall.model, report.overall.tally.rows
    provenance = evaluation_provenance(report.files, None, "monitor")
    command = Listing([shlex.join(["bncli", "monitor", *report.files, "--report", "report.html"])])
    sections = (
        Section("drift", "Drift", tuple(_drift_blocks(report))),
        Section("predictions", "Predictions", tuple(_prediction_blocks(report))),
        Section("figures", "Confidence and log-loss", tuple(_mean_blocks(report))),
        Section("unknown", "Missing and unseen values", tuple(_missing_and_unseen(report))),
        Section(provenance.word, provenance.title, (*provenance.blocks, command)),
    )
    of = f"a model for {model.class_name} fitted to {count(model.rows, 'row')}"
    summary = f"{count(rows, 'row')} in {count(len(report.files), 'file')} scored by {of}."
    n_drifted = sum(any(drift.drifted for drift in report.drifts(name)) for name in report.names)
    tally = report.overall.tally
    tiles = (
        Tile("Rows", f"{rows:,}"),
        Tile("Drifted columns", f"{n_drifted:,}", f"of {len(report.names):,}, in any file"),
        Tile("Mean confidence", figure(tally.confidence.mean)),
        Tile("Log-loss", figure(tally.log_loss.mean)),
    )
    return Page(f"Monitor of {model.class_name}", summary, sections, tiles=tiles)


def _drift_blocks(report: MonitorReport) -> Iterator[Block]:
    """Yield the drifted columns, plots of the first MOST_PICTURES columns, and tables of files and columns.

    Drifted columns come first; the table has at most MOST_COLUMNS columns of the data.
    """
    n = len(report.files)
    order = sorted(report.names, key=lambda name: not any(drift.drifted for drift in report.drifts(name)))
    drifted_files = [name for name, monitor in zip(report.short_names, report.monitors, strict=True) if monitor.drifted]
    if drifted_files:
        columns = [name for name in order if any(drift.drifted for drift in report.drifts(name))]
        verb = "has" if len(columns) == 1 else "have"
        where = f"In {len(drifted_files):,} of {count(n, 'file')} ({listed(drifted_files)})"
        yield Paragraph(f"{where} {listed(columns)} {verb} drifted.", "warning")
    else:
        yield Paragraph(f"No column has drifted from the training data in {count(n, 'file')}.")
    yield Cards([_psi_picture(report, number, name) for number, name in enumerate(order[:MOST_PICTURES], 1)])
    if len(order) > MOST_PICTURES:
        yield Paragraph(f"{count(len(order) - MOST_PICTURES, 'column')} with less drift not shown.", "gap")
    limit = f"at least {LEAST_PSI:g} (dashed) and higher than chance explains, or if"
    unknown = f"at least {percent(LEAST_UNKNOWN)} of its values were never seen in training"
    yield Paragraph(f"A column has drifted if its stability index (PSI) is {limit} {unknown}.")
    rows = []
    for name, monitor in report.named_monitors:
        tally = monitor.tally
        means = map(figure, (tally.confidence.mean, tally.log_p.mean, tally.log_loss.mean))
        rows.append((name, f"{tally.rows:,}", *means, listed(monitor.drifted) or "none"))
    headings = ("file", "rows", "confidence", "ln P(x)", "log-loss", "drifted")
    files = Grid("Files in time order", headings, rows, (1, 2, 3, 4))
    by_column = []
    for name in order[:MOST_COLUMNS]:
        drifts = report.drifts(name)
        known = [drift.psi for drift in drifts if drift.psi is not None]
        psi = (known[0], known[-1], max(known)) if known else (None, None, None)
        by_column.append((name, *map(figure, psi), f"{sum(drift.drifted for drift in drifts):,} of {len(drifts):,}"))
    titles = ("column", "first PSI", "last PSI", "highest PSI", "files with drift")
    yield Cards((files, Grid("Columns, drifted ones first", titles, by_column, (1, 2, 3, 4))))


def _psi_picture(report: MonitorReport, number: int, name: str) -> Picture:
    """Plot the population stability index (PSI) of a column in every file; `number` makes the plot's name unique."""
    drifts, names = report.drifts(name), report.short_names
    values = [drift.psi for drift in drifts]
    drawing = series_plot(name, "PSI", values, [LEAST_PSI] * len(values), names)
    n_drifted = sum(drift.drifted for drift in drifts)
    sentence = f"Drifted in {n_drifted:,} of {count(len(values), 'file')}" if n_drifted else "Not drifted"
    known = [(psi, i) for i, psi in enumerate(values) if psi is not None]
    if known:
        psi, i = max(known, key=lambda pair: pair[0])
        sentence += f"; PSI at most {psi:.3g} in {names[i]}, by chance {drifts[i].psi_expected or 0.0:.2g}."
    else:
        sentence += "; no value of the training rows occurs."
    # The index does not include values that never occurred in training, which also count as drift.
    tallies = [next(a for a in monitor.tally.attributes if a.name == name) for monitor in report.monitors]
    n_rows = (max(monitor.tally.rows, 1) for monitor in report.monitors)
    shares = [tally.unknown / n for tally, n in zip(tallies, n_rows, strict=True)]
    most = max(range(len(shares)), key=lambda i: shares[i])
    if shares[most] >= LEAST_UNKNOWN:
        sentence += f" Values never seen in training: {percent(shares[most])} of rows in {names[most]}."
    return Picture(f"psi-{number}", name, sentence, drawing)


def _prediction_blocks(report: MonitorReport) -> Iterator[Block]:
    """Yield a plot per label, for at most the MOST_PICTURES labels that are predicted most often.

    A plot shows the label's fraction of the predictions in each file and, if known, of the true labels.
    """
    labels, names = report.overall.model.labels, report.short_names
    order = sorted(range(len(labels)), key=lambda y: -report.overall.tally.predictions[y])
    predicted = [_divide_by_sum(monitor.tally.predictions.tolist()) for monitor in report.monitors]
    true = [_divide_by_sum(monitor.tally.classes.tolist()) for monitor in report.monitors]
    spans = []
    for y in range(len(labels)):
        known = [share for share in (shares[y] for shares in predicted) if share is not None]
        spans.append(max(known) - min(known) if known else 0.0)
    moved = max(order, key=lambda y: spans[y])
    ends = _first_and_last([shares[moved] for shares in predicted], names)
    yield Paragraph(f"The share of {labels[moved]} changed most: {ends}.")
    pictures = []
    for number, y in enumerate(order[:MOST_PICTURES], 1):
        values, truth = [shares[y] for shares in predicted], [shares[y] for shares in true]
        sentence = f"Predicted for {_first_and_last(values, names)}."
        if any(share is not None for share in truth):
            sentence += f" True labels (dashed): {_first_and_last(truth, names)}."
        drawing = series_plot(labels[y], "share of rows", values, truth, names)
        pictures.append(Picture(f"predicted-{number}", labels[y], sentence, drawing))
    yield Cards(pictures)
    if len(order) > MOST_PICTURES:
        yield Paragraph(f"{count(len(order) - MOST_PICTURES, 'less frequent label')} not shown.", "gap")


def _divide_by_sum(counts: Sequence[float]) -> list[float | None]:
    """Return counts divided by their sum, or None for each if the sum is 0."""
    total = sum(counts)
    return [number / total if total else None for number in counts]


def _first_and_last(values: Series, names: Sequence[str]) -> str:
    """Describe the first and the last known fraction, and the highest one if it differs from both.

    values: one fraction per file, or None. Returns "no rows" if no fraction is known.
    """
    known = [(value, name) for value, name in zip(values, names, strict=True) if value is not None]
    if not known:
        return "no rows"
    ends = f"{percent(known[0][0])} of rows in {known[0][1]}"
    if len(known) > 1:
        ends += f", {percent(known[-1][0])} in {known[-1][1]}"
    most = max(known, key=lambda pair: pair[0])
    return ends if most[0] in (known[0][0], known[-1][0]) else f"{ends}, at most {percent(most[0])} in {most[1]}"


def _mean_blocks(report: MonitorReport) -> Iterator[Block]:
    """Yield plots of log-loss, confidence and ln P(x) per file, and a table of expected and measured performance."""
    pictures = []
    for field, title, upwards, better in _MONITORED_MEANS:
        values: list[float | None] = [getattr(monitor.tally, field).mean for monitor in report.monitors]
        known = [(value, name) for value, name in zip(values, report.short_names, strict=True) if value is not None]
        if not known:
            continue
        ends = f"{known[0][0]:.3f} in {known[0][1]}"
        if len(known) > 1:
            ends += f", {known[-1][0]:.3f} in {known[-1][1]}"
        held_out = report.overall.model.held_out_log_loss if field == "log_loss" else None
        sentence = f"{ends} ({better})."
        if held_out is not None:
            sentence += f" The dashed line, {held_out:.3f}, is the held-out log-loss when the model was fitted."
        drawing = series_plot(title, upwards, values, [held_out] * len(values), report.short_names)
        pictures.append(Picture(field.replace("_", "-"), title, sentence, drawing))
    yield Cards(pictures)
    rows = []
    for name, monitor in report.named_monitors:
        cells = []
        for own, expected in zip(
            (monitor.accuracy, monitor.tally.log_loss.mean, monitor.auc), monitor.expected.values(), strict=True
        ):
            interval = "" if expected.interval is None else f" ({' to '.join(map(figure, expected.interval))})"
            cells += [f"{figure(expected.value)}{interval}", figure(own)]
        rows.append((name, *cells))
    parts = ("accuracy", "log-loss", "AUC")
    headings = ("file", *(f"{part}{what}" for part in parts for what in (" expected (95 %)", " measured")))
    yield Grid("Performance: expected from the probabilities, and measured on labelled rows", headings, rows)
    if not report.overall.tally.log_loss.n:
        yield Paragraph("The error rate is unknown, because these rows have no class.", "gap")
    if report.overall.no_log_p:
        yield Paragraph(f"ln P(x) of the rows is not known: {report.overall.no_log_p}.", "gap")


def _missing_and_unseen(report: MonitorReport) -> Iterator[Block]:
    """Yield a sentence, plots and a table of the fractions of missing values and of values not seen in training.

    Columns without such values are left out. At most MOST_PICTURES columns are plotted, and MOST_COLUMNS are in the
    table, those with the largest fractions.
    """
    n_rows, tallies = max(report.overall.tally.rows, 1), report.overall.tally.attributes
    positions = [i for i, tally in enumerate(tallies) if tally.missing or tally.unseen]
    positions.sort(key=lambda i: -(tallies[i].missing + tallies[i].unseen))
    if not positions:
        yield Paragraph("No value is missing, and all values were seen in training.")
        return
    named = [f"{tallies[i].name} ({percent((tallies[i].missing + tallies[i].unseen) / n_rows)})" for i in positions]
    yield Paragraph(f"Missing or not seen in training: {listed(named)}.")
    pictures = []
    for number, i in enumerate(positions[:MOST_PICTURES], 1):
        per_file = [(monitor.tally.attributes[i], monitor.tally.rows) for monitor in report.monitors]
        values = [(tally.missing + tally.unseen) / n if n else None for tally, n in per_file]
        training = _missing_in_training(tallies[i])
        ends = _first_and_last(values, report.short_names)
        sentence = f"{ends}; missing in training (dashed): {percent(training)}."
        drawing = series_plot(tallies[i].name, "share of rows", values, [training] * len(values), report.short_names)
        pictures.append(Picture(f"unknown-{number}", tallies[i].name, sentence, drawing))
    yield Cards(pictures)
    rows = []
    for tally in (tallies[i] for i in positions[:MOST_COLUMNS]):
        shares = (_missing_in_training(tally), tally.missing / n_rows, tally.unseen / n_rows)
        rows.append((tally.name, *map(percent, shares)))
    headings = ("column", "missing in training", "missing", "never seen in training")
    yield Grid("Shares of all rows", headings, rows, (1, 2, 3))


def _missing_in_training(tally: AttributeCounts) -> float:
    """Return the fraction of training rows in which the attribute was missing, or 0 if these are not counted."""
    total = float(tally.training.sum())
    return float(tally.training[-1]) / total if tally.missing_counts and total else 0.0
