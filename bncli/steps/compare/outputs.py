"""What a comparison writes beside its report: outcomes as CSV, tables as LaTeX, drawings as SVG.

Drawings are of the first metric asked for.

A comparison as tables for a paper: the figures on every data set, average ranks, and all pairs of learners.
"""

from __future__ import annotations

import csv as csv_format
import io
import math
from collections.abc import Sequence

from bncli.engine.evaluation.significance import win_draw_loss
from bncli.errors import BncliError, UsageError
from bncli.files.atomic import write_bytes
from bncli.files.exports.latex import LatexTable, bold, escape, italic, write_tables
from bncli.files.paths import refuse_ending
from bncli.files.pictures.comparison_plots import ScatterPanel, critical_difference_diagram, scatter_plots
from bncli.files.pictures.drawing import Drawing
from bncli.steps.compare.analysis import (
    HIGHER_IS_BETTER,
    ComparedFigure,
    CompareReport,
    LearnerPair,
    Summary,
    metric_text,
)
from bncli.steps.compare.entries import COSTS, COUNTS

_MOST_WITH_SPREAD = 5
"""Learners up to which means stand with their standard deviations: a page has no room for more."""
_LEAST_P = 0.0005
"""What would be rounded to 0 is told as a bound."""
NOT_DRAWN = (".png", ".pdf", ".jpg", ".jpeg", ".gif", ".eps", ".ps", ".html", ".tex")
"""Endings of drawings in other formats."""


def write_outputs(
    report: CompareReport,
    *,
    csv: str | None = None,
    latex: str | None = None,
    diagram: str | None = None,
    scatter: str | None = None,
) -> None:
    """Write those that have a path, each whole or not at all."""
    if csv:
        _write_csv(report, csv)
    if latex:
        write_tables(latex, paper_tables(report))
    if diagram:
        write_bytes(diagram, _diagram(report, diagram).encode())
    if scatter:
        write_bytes(scatter, _scatter(report, scatter).encode())


def _write_csv(report: CompareReport, path: str) -> None:
    """Write the figures of every fold, one line per fold; undefined figures are empty fields."""
    trial = report.trial
    metrics = list(dict.fromkeys(name for one in trial.outcomes for name in one.metrics))
    stages = list(dict.fromkeys(stage for one in trial.outcomes for stage in one.seconds))
    counts = list(dict.fromkeys(name for one in trial.outcomes for name in one.costs))
    names = ["data", "learner", "repeat", "fold", "rows", *metrics, *(f"{stage}_seconds" for stage in stages), *counts]
    rows = [
        {
            **{name: getattr(one, name) for name in names[:5]},
            **one.metrics,
            **{f"{stage}_seconds": value for stage, value in one.seconds.items()},
            **one.costs,
        }
        for one in trial.outcomes
    ]
    text = io.StringIO()
    writer = csv_format.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    # A name that the command line could not decode is told as it came, and does not end a long run.
    write_bytes(path, text.getvalue().encode("utf-8", "backslashreplace"))


def _diagram(report: CompareReport, path: str) -> str:
    metric = report.metrics[0]
    drawing = rank_diagram(report, metric)
    if drawing is None:
        what = f"there are not two learners with {metric_text(metric)} on two data sets to draw average ranks of"
        raise BncliError(what, where=path)
    return drawing.source()


def _scatter(report: CompareReport, path: str) -> str:
    metric = report.metrics[0]
    panels = scatter_panels(report, metric)
    if metric in COSTS and not panels:
        what = f"no data set has {metric_text(metric)} of {report.baseline} and of another learner to draw"
        raise BncliError(what, where=path, hint="parameters in closed form have none; name another --baseline")
    return scatter_drawing(report, metric, panels).source()


def paper_tables(report: CompareReport) -> list[LatexTable]:
    """Return two tables a metric, the second one only where there is a summary; and the seconds."""
    tables: list[LatexTable] = []
    for metric in report.metrics:
        tables.append(_figures(report, metric))
        tables += [_pairs(where, summary, metric) for where, summary in _summaries(report, metric)]
    return [*tables, _seconds(report)]


def _figures(report: CompareReport, metric: str) -> LatexTable:
    learners = report.trial.learners
    spread = len(learners) <= _MOST_WITH_SPREAD
    rows = [
        [escape(data), *(_cell(report.figure(data, name, metric), metric, spread) for name in learners)]
        for data in report.trial.data
    ]
    what = "Mean and standard deviation" if spread else "Mean"
    caption = f"{what} of the {escape(metric_text(metric))}, {escape(str(report.trial.protocol))}. Bold: the best"
    if metric not in COSTS:
        caption += "; italic: not significantly worse than the best (corrected resampled $t$-test, 5\\,\\%)"
    caption += "."
    below = [row for where, summary in _summaries(report, metric) for row in _below(report, where, summary)]
    summary = report.summaries.get(metric)
    caption += _friedman(summary) if summary else ""
    return LatexTable(caption, ["", *map(escape, learners)], [rows, below])


def _cell(figure: ComparedFigure | None, metric: str, spread: bool) -> str:
    if figure is None:
        return "--"
    digits = 1 if metric in COUNTS else 4
    mean = _number(figure.mean, digits)
    mean = bold(mean) if figure.best else italic(mean) if figure.not_worse else mean
    std = rf" {{\scriptsize$\pm$ {_number(figure.std, digits)}}}" if spread and figure.std is not None else ""
    return mean + std


def _number(value: float | None, digits: int = 4) -> str:
    if value is None:
        return "--"
    if math.isinf(value):
        return r"$\infty$" if value > 0 else r"$-\infty$"
    return f"{round(value, digits) + 0.0:.{digits}f}" if abs(value) < 1000 else f"{value:.1f}"


def _summaries(report: CompareReport, metric: str) -> list[tuple[str, Summary]]:
    """Over all data sets, where that is told, then over each group; with where it is over."""
    found = [("", report.summaries.get(metric)), *((one.name, one.summaries.get(metric)) for one in report.groups)]
    return [(f", {escape(name)}" if name else "", summary) for name, summary in found if summary is not None]


def _below(report: CompareReport, where: str, summary: Summary) -> list[list[str]]:
    """Average ranks, and wins, draws and losses against the baseline."""
    learners = report.trial.learners
    ranks = [f"{summary.average_ranks[name]:.2f}" if name in summary.average_ranks else "--" for name in learners]
    pairs = [summary.against(name, report.baseline) for name in learners]
    counts = [f"{pair.wins}/{pair.draws}/{pair.losses}" if pair else "" for pair in pairs]
    ratios = [f"{pair.ratio:.3f}" if pair and pair.ratio is not None else "" for pair in pairs]
    against = f"against {escape(report.baseline)}"
    rows = [["average rank", *ranks], [f"W/D/L {against}", *counts], [f"ratio {against}", *ratios]]
    return [[head + where, *cells] for head, *cells in rows]


def _friedman(summary: Summary) -> str:
    test = summary.friedman
    if test is None:
        return ""
    k, n = len(summary.average_ranks), len(summary.sets)
    return (
        rf" Friedman: $\chi^2_{{{k - 1}}} = {_finite(test.chi_squared)}$, ${_p_is(test.p)}$; Iman--Davenport: "
        rf"$F_{{{k - 1},{(k - 1) * (n - 1)}}} = {_finite(test.f)}$, ${_p_is(test.f_p)}$; Nemenyi's critical "
        rf"difference at 5\,\%: {summary.critical_difference:.3f}."
    )


def _finite(value: float) -> str:
    return r"\infty" if math.isinf(value) else f"{value:.2f}"


def _p_is(p: float) -> str:
    return f"p = {_p(p)}" if p >= _LEAST_P else f"p {_p(p)}"


def _p(p: float) -> str:
    return f"{p:.3f}" if p >= _LEAST_P else "<0.001"


def _pairs(where: str, summary: Summary, metric: str) -> LatexTable:
    n = len(summary.sets)
    sets = f"{n} data set{'' if n == 1 else 's'}"
    over = f"All pairs of learners by {escape(metric_text(metric))} over {sets}{where}: wins, draws and"
    if summary.friedman is None:
        rows = [[*_first_cells(pair), _number(pair.ratio, 3)] for pair in summary.pairs]
        caption = f"{over} losses of the first, and the geometric mean of ratios."
        return LatexTable(caption, ["first", "second", "W/D/L", "ratio"], [rows], names=2)
    caption = (
        f"{over} losses of the first with the sign test, Wilcoxon's signed-rank test (Holm: adjusted over all pairs), "
        "the one-sided paired $t$-test for the first being better, and the geometric mean of ratios."
    )
    header = ["first", "second", "W/D/L", "sign $p$", "Wilcoxon $p$", "Holm $p$", "$t$ $p$", "ratio"]
    return LatexTable(caption, header, [[_pair(pair) for pair in summary.pairs]], names=2)


def _first_cells(pair: LearnerPair) -> list[str]:
    return [escape(pair.first), escape(pair.second), f"{pair.wins}/{pair.draws}/{pair.losses}"]


def _pair(pair: LearnerPair) -> list[str]:
    ps = (pair.sign_p, pair.wilcoxon_p, pair.holm_all_p, pair.t_p)
    told = [f"${_p(p)}$" if p is not None else "--" for p in ps]
    return [*_first_cells(pair), *told, _number(pair.ratio, 3)]


def _seconds(report: CompareReport) -> LatexTable:
    rows = [
        [
            escape(name),
            *(_number(seconds, 3) for seconds in pace.seconds.values()),
            *(_number(ratio, 2) for ratio in pace.ratio.values()),
        ]
        for name, pace in report.paces.items()
    ]
    against = escape(report.baseline)
    caption = f"Processor seconds a fold, means over the data sets, and geometric means of ratios to {against}."
    return LatexTable(caption, ["", "fit", "score", "ratio, fit", "ratio, score"], [rows])


def refuse_idle_outputs(
    n_learners: int, n_sets: int, metric: str, *, diagram: str | None = None, scatter: str | None = None
) -> None:
    """Before any work: UsageError for a drawing in another format, or of what there will not be by this metric."""
    for path in (diagram, scatter):
        refuse_ending(path, NOT_DRAWN, "drawings are written as SVG")
    if n_learners < 2 and (diagram or scatter):
        flag = "--diagram" if diagram else "--scatter"
        raise UsageError(f"{flag} draws how learners differ, and there is one", hint="give another --learner")
    if n_sets < 2 and diagram:
        raise UsageError("--diagram draws average ranks over data sets, and there is one", hint="give more DATA")
    if metric in COSTS and diagram:
        what = (
            f"--diagram draws who is not told apart by a test, and costs such as {metric_text(metric)} are not tested"
        )
        raise UsageError(what, hint="draw them with --scatter")


def rank_diagram(report: CompareReport, metric: str) -> Drawing | None:
    """Average ranks, and who is not told apart; None where nothing is tested."""
    summary = report.summaries.get(metric)
    if summary is None or summary.critical_difference is None:
        return None
    title = f"Average ranks by {metric_text(metric)} over {len(summary.sets)} data sets"
    return critical_difference_diagram(title, summary.average_ranks, summary.groups, summary.critical_difference)


def scatter_panels(report: CompareReport, metric: str) -> list[ScatterPanel]:
    """Return every learner against the baseline; of costs those that have any."""
    others = [name for name in report.trial.learners if name != report.baseline]
    panels = [_panel(report, name, metric) for name in others]
    return [panel for panel in panels if panel.points] if metric in COSTS else panels


def _panel(report: CompareReport, learner: str, metric: str) -> ScatterPanel:
    """Return the data sets on which both have finite figures; a logarithm asks for costs above 0."""
    least = {"fit_seconds": 1e-9, "iterations": 0.5, "passes": 0.5}.get(metric, -math.inf)
    points: list[tuple[str, float, float]] = []
    for data in report.trial.data:
        across, upwards = (report.figure(data, name, metric) for name in (report.baseline, learner))
        if across and upwards and math.isfinite(across.mean + upwards.mean):
            points.append((data, max(across.mean, least), max(upwards.mean, least)))
    sign = 1 if metric in HIGHER_IS_BETTER else -1
    counts = win_draw_loss([sign * y for _, _, y in points], [sign * x for _, x, _ in points])
    return ScatterPanel(learner, points, counts.wins, counts.draws, counts.losses)


def scatter_drawing(report: CompareReport, metric: str, panels: Sequence[ScatterPanel]) -> Drawing:
    """Return a panel a learner, a point per data set."""
    title = f"{metric_text(metric)} on each data set: every learner against {report.baseline}"
    lower = metric not in HIGHER_IS_BETTER
    return scatter_plots(
        title, report.baseline, panels, lower_is_better=lower, logarithmic=True if metric in COSTS else None
    )
