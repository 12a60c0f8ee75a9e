"""A comparison as tables for a paper: the figures on every data set, average ranks, and all pairs of learners."""

from __future__ import annotations

import math

from bncli.files.latex import LatexTable, bold, escaped, italic
from bncli.steps.comparing.outcomes import COSTS, COUNTS
from bncli.steps.comparing.report import CompareReport, Figure, Pair, Summary, told

_MOST_WITH_SPREAD = 5
"""Learners up to which means stand with their standard deviations: a page has no room for more."""
_LEAST_P = 0.0005
"""What would be rounded to 0 is told as a bound."""


def paper_tables(report: CompareReport) -> list[LatexTable]:
    """Two tables a metric, the second one only where there is a summary; and the seconds."""
    tables: list[LatexTable] = []
    for metric in report.metrics:
        tables.append(_figures(report, metric))
        tables += [_pairs(where, summary, metric) for where, summary in _summaries(report, metric)]
    return [*tables, _seconds(report)]


def _figures(report: CompareReport, metric: str) -> LatexTable:
    learners = report.trial.learners
    spread = len(learners) <= _MOST_WITH_SPREAD
    rows = [
        [escaped(data), *(_cell(report.figure(data, name, metric), metric, spread) for name in learners)]
        for data in report.trial.data
    ]
    what = "Mean and standard deviation" if spread else "Mean"
    caption = f"{what} of the {escaped(told(metric))}, {escaped(str(report.trial.protocol))}. Bold: the best"
    if metric not in COSTS:
        caption += "; italic: not significantly worse than the best (corrected resampled $t$-test, 5\\,\\%)"
    caption += "."
    below = [row for where, summary in _summaries(report, metric) for row in _below(report, where, summary)]
    summary = report.summaries.get(metric)
    caption += _friedman(summary) if summary else ""
    return LatexTable(caption, ["", *map(escaped, learners)], [rows, below])


def _summaries(report: CompareReport, metric: str) -> list[tuple[str, Summary]]:
    """Over all data sets, where that is told, then over each group; with where it is over."""
    found = [("", report.summaries.get(metric)), *((one.name, one.summaries.get(metric)) for one in report.groups)]
    return [(f", {escaped(name)}" if name else "", summary) for name, summary in found if summary is not None]


def _cell(figure: Figure | None, metric: str, spread: bool) -> str:
    if figure is None:
        return "--"
    digits = 1 if metric in COUNTS else 4
    mean = _number(figure.mean, digits)
    mean = bold(mean) if figure.best else italic(mean) if figure.not_worse else mean
    std = rf" {{\scriptsize$\pm$ {_number(figure.std, digits)}}}" if spread and figure.std is not None else ""
    return mean + std


def _below(report: CompareReport, where: str, summary: Summary) -> list[list[str]]:
    """Average ranks, and wins, draws and losses against the baseline."""
    learners = report.trial.learners
    ranks = [f"{summary.average_ranks[name]:.2f}" if name in summary.average_ranks else "--" for name in learners]
    pairs = [summary.against(name, report.baseline) for name in learners]
    counts = [f"{pair.wins}/{pair.draws}/{pair.losses}" if pair else "" for pair in pairs]
    ratios = [f"{pair.ratio:.3f}" if pair and pair.ratio is not None else "" for pair in pairs]
    against = f"against {escaped(report.baseline)}"
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


def _pairs(where: str, summary: Summary, metric: str) -> LatexTable:
    n = len(summary.sets)
    sets = f"{n} data set{'' if n == 1 else 's'}"
    over = f"All pairs of learners by {escaped(told(metric))} over {sets}{where}: wins, draws and"
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


def _pair(pair: Pair) -> list[str]:
    ps = (pair.sign_p, pair.wilcoxon_p, pair.holm_all_p, pair.t_p)
    told = [f"${_p(p)}$" if p is not None else "--" for p in ps]
    return [*_first_cells(pair), *told, _number(pair.ratio, 3)]


def _first_cells(pair: Pair) -> list[str]:
    return [escaped(pair.first), escaped(pair.second), f"{pair.wins}/{pair.draws}/{pair.losses}"]


def _seconds(report: CompareReport) -> LatexTable:
    rows = [
        [
            escaped(name),
            *(_number(seconds, 3) for seconds in pace.seconds.values()),
            *(_number(ratio, 2) for ratio in pace.ratio.values()),
        ]
        for name, pace in report.paces.items()
    ]
    against = escaped(report.baseline)
    caption = f"Processor seconds a fold, means over the data sets, and geometric means of ratios to {against}."
    return LatexTable(caption, ["", "fit", "score", "ratio, fit", "ratio, score"], [rows])


def _number(value: float | None, digits: int = 4) -> str:
    if value is None:
        return "--"
    if math.isinf(value):
        return r"$\infty$" if value > 0 else r"$-\infty$"
    return f"{round(value, digits) + 0.0:.{digits}f}" if abs(value) < 1000 else f"{value:.1f}"


def _finite(value: float) -> str:
    return r"\infty" if math.isinf(value) else f"{value:.2f}"


def _p_is(p: float) -> str:
    return f"p = {_p(p)}" if p >= _LEAST_P else f"p {_p(p)}"


def _p(p: float) -> str:
    return f"{p:.3f}" if p >= _LEAST_P else "<0.001"
