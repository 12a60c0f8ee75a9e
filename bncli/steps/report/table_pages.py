"""Pages that are not of a model: a first look at a table, and a comparison of learners."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from bncli.files.pictures.effect_plots import share_bars
from bncli.files.pictures.page import Block, Grid, Listing, Page, Paragraph, Picture, Section
from bncli.steps.compare.analysis import HIGHER_IS_BETTER, CompareReport, Summary, metric_text
from bncli.steps.compare.outputs import rank_diagram, scatter_drawing, scatter_panels
from bncli.steps.describe import DescribeReport
from bncli.steps.report.page_text import count, figure, listed, percent
from bncli.steps.report.structure_section import evaluation_provenance

MOST_COLUMNS = 1000
_MOST_BARS = 30
_MOST_LABELS = 40


def description_page(report: DescribeReport, data: Sequence[str]) -> Page:
    """Of a table: its class, its columns, and the command line to begin with."""
    names = ", ".join(os.path.basename(one) for one in data)
    size = f"{count(report.rows, 'row')}, {count(len(report.columns), 'column')}"
    recommended = [Listing([report.recommended])] if report.recommended else []
    sections = (
        Section("class", "What is to be told?", tuple(_class(report))),
        Section("columns", "What tells it?", tuple(_columns(report))),
        Section("begin", "How do I begin?", (*map(Paragraph, report.notes), *recommended)),
        evaluation_provenance(data, None),
    )
    return Page(f"A first look at {names}", size, sections)


def _class(report: DescribeReport) -> Iterator[Block]:
    known = report.of_class
    if known is None or not known.labels:
        yield Paragraph("There is no column that can be the class as it is.")
        return
    total = max(sum(known.rows), 1)
    order = sorted(range(len(known.rows)), key=lambda i: -known.rows[i])
    first = known.labels[order[0]]
    share = percent(known.rows[order[0]] / total)
    yield Paragraph(f"{known.name}: {share} are {first}; {known.bits:.3f} bits are to be known.")
    rows = [(known.labels[i], f"{known.rows[i]:,}", percent(known.rows[i] / total)) for i in order[:_MOST_LABELS]]
    yield Grid("Labels", ("label", "rows", "share"), rows, (1, 2))
    if len(order) > _MOST_LABELS:
        yield Paragraph(f"{count(len(order) - _MOST_LABELS, 'label')} more have fewer rows.", "gap")


def _columns(report: DescribeReport) -> Iterator[Block]:
    others = [column for column in report.columns if column.name != report.class_name]
    order = sorted(others, key=lambda column: -(column.bits or 0.0))
    telling = [((column.name,), column.bits or 0.0) for column in order if column.bits][:_MOST_BARS]
    if telling:
        drawing = share_bars("Bits about the class", telling, [f"{bits:.3f}" for _, bits in telling])
        sentence = f"{telling[0][0][0]} tells most of the class, {telling[0][1]:.3f} bits."
        yield Picture("bits", "Bits about the class.", sentence, drawing)
    left_out = [column.name for column in others if not column.use]
    if left_out:
        yield Paragraph(f"fit leaves out {listed(left_out)}.")
    rows = [
        (
            *(column.name, column.type, f"{'' if column.exact else '~'}{column.distinct:,}"),
            *(percent(column.missing / max(report.rows, 1)), "–" if column.bits is None else f"{column.bits:.3f}"),
            *("yes" if column.use else "no", column.reason),
        )
        for column in order[:MOST_COLUMNS]
    ]
    headings = ("column", "type", "distinct", "missing", "bits", "fit uses it", "why")
    yield Grid("Columns, those that tell most first", headings, rows, (2, 3, 4))
    if len(order) > MOST_COLUMNS:
        yield Paragraph(f"{count(len(order) - MOST_COLUMNS, 'column')} more tell less.", "gap")


def comparison_page(report: CompareReport) -> Page:
    """Of learners on data sets, a table a metric, with average ranks where there are any."""
    trial = report.results
    sections = [
        Section(f"by-{metric}", f"Who is best by {metric_text(metric)}?", tuple(_metric(report, metric)))
        for metric in report.metrics
    ]
    options = [(name, trial.options.get(name) or "") for name in trial.learners]
    learners = Grid("Learners", ("learner", "options"), options)
    sections.append(Section("made", "How was it made?", (Paragraph(f"{trial.protocol}."), learners)))
    size = f"{count(len(trial.learners), 'learner')} on {count(len(trial.data), 'data set')}: {trial.protocol}."
    return Page("Learners compared", size, sections)


def _metric(report: CompareReport, metric: str) -> Iterator[Block]:
    trial = report.results
    better = "more" if metric in HIGHER_IS_BETTER else "less"
    summary = report.summaries.get(metric)
    if summary is not None and summary.average_ranks:
        yield _ranks(report, metric, summary)
        if summary.caution:
            yield Paragraph(summary.caution, "warning")
    yield from _against_baseline(report, metric)
    rows = [(data, *(_cell(report, data, name, metric) for name in trial.learners)) for data in trial.data]
    numbers = tuple(range(1, len(trial.learners) + 1))
    caption = f"{metric_text(metric)}: mean ± standard deviation; {better} is better, * the best"
    yield Grid(caption, ("data", *trial.learners), rows, numbers)


def _ranks(report: CompareReport, metric: str, summary: Summary) -> Picture:
    """With who cannot be told apart, where that is tested."""
    ranks = sorted(summary.average_ranks.items(), key=lambda one: one[1])
    best = [name for name, rank in ranks if rank <= ranks[0][1] + 1e-9]
    verb, sets = "has" if len(best) == 1 else "share", count(len(summary.sets), "data set")
    sentence = f"{listed(best)} {verb} the best average rank, {ranks[0][1]:.2f} over {sets}."
    drawing = rank_diagram(report, metric)
    if drawing is None:
        drawing = share_bars("Average ranks", [((name,), rank) for name, rank in ranks], [f"{r:.2f}" for _, r in ranks])
        return Picture(f"ranks-{metric}", f"Average ranks by {metric_text(metric)}, 1 the best.", sentence, drawing)
    alike = [name for group in summary.groups if best[0] in group for name in group if name not in best]
    if alike:
        apart = f"{listed(alike)} {'is' if len(alike) == 1 else 'are'} not told apart from the best"
    else:
        apart = "the best is told apart from all others" if len(best) < len(ranks) else "nobody is told apart"
    sentence += f" By the test of Nemenyi (5 %) {apart}; a bar joins learners that are not told apart."
    return Picture(
        f"ranks-{metric}", f"Average ranks by {metric_text(metric)}, 1 the best.", sentence, drawing, wide=True
    )


def _against_baseline(report: CompareReport, metric: str) -> Iterator[Picture]:
    """Yield every learner against the baseline, a point per data set; of one data set the table says it all."""
    panels = scatter_panels(report, metric)
    if len(report.results.data) < 2 or not any(panel.points for panel in panels):
        return
    most = max(panels, key=lambda panel: panel.better - panel.worse)
    n = most.better + most.equal + most.worse
    sets = f"{most.better} of {count(n, 'data set')}, worse on {most.worse}"
    sentence = f"{most.name} is better than {report.baseline} on {sets}."
    if most.better <= most.worse:
        sentence = f"No learner is better than {report.baseline} on more data sets than it is worse on."
    drawing = scatter_drawing(report, metric, panels)
    yield Picture(
        f"scatter-{metric}",
        f"{metric_text(metric)} of every learner against {report.baseline}.",
        sentence,
        drawing,
        wide=True,
    )


def _cell(report: CompareReport, data: str, learner: str, metric: str) -> str:
    found = report.metric_mean(data, learner, metric)
    if found is None:
        return "–"
    return f"{figure(found.mean)} ± {figure(found.std)}{' *' if found.best else ''}"
