"""What a person sees of a comparison: the figures on every data set, then who wins over all of them, and how fast.

With one data set there is one table, a line per learner. With more there are two a metric: the figures, a line a data
set, and the ranks and tests, a line per learner, with a legend below the first of these; and one more a group. A table
that is wider than the page goes on below; no word is broken. Marks stand behind the figures, since colour does not
survive a pipe; the seconds, which no two runs share, come last.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from bncli.cli.console import page_width
from bncli.cli.tables import TextColumn, add_row, fitted_tables, plain_table, shortened
from bncli.steps.compare.analysis import ComparedFigure, CompareReport, Summary, metric_text
from bncli.steps.compare.entries import COSTS, COUNTS

if TYPE_CHECKING:
    from rich.table import Table

_MOST_WITH_SPREAD = 6
"""Learners up to which means stand with their standard deviations: a line has no room for more."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_LEAST_P = 0.0001
_BEST, _NOT_WORSE = "*", "="
_MARKS = f"{_BEST} best   {_NOT_WORSE} not significantly worse (corrected resampled t-test, 5 %)"
_LEGEND = (
    ("rank", "average rank over the data sets; 1 is the best everywhere"),
    ("mean", "geometric mean of its figures, of costs"),
    ("group", "with a letter in common: not told apart (Nemenyi, 5 %)"),
    ("W-D-L", "on how many data sets it wins, draws, loses against the baseline"),
    ("ratio", "geometric mean of its figures over the baseline's"),
    ("sign p", "p-value: are wins and losses equally likely? (two-sided)"),
    ("Wilcoxon", "the same of the sizes of the differences too (signed ranks, two-sided)"),
    ("Holm p", "Wilcoxon's, raised for as many comparisons as there are learners"),
    ("t p", "p-value: is its mean better than the baseline's? (paired t, one-sided)"),
)
"""What each column of the ranks answers; a line has at most 80 letters."""
_UNTESTED = ("rank", "W-D-L", "ratio")


def tables(report: CompareReport) -> list[str | Table]:
    """Return tables and lines, in the order in which they are read."""
    trial = report.trial
    shown: list[str | Table] = [_heading(report)]
    if len(trial.data) == 1:
        shown += _one_set(report)
    else:
        for metric in report.metrics:
            shown += _several_sets(report, metric, legend=metric == next(iter(report.summaries), None))
    if report.gaps:
        table, most = plain_table("Could not be tried", "data", "learner", "reason"), page_width() // 4
        for column in table.columns[:2]:
            column.no_wrap = True
        for (data, name), reason in report.gaps.items():
            add_row(table, shortened(data, most), shortened(name, most), reason)
        shown.append(table)
    if len(trial.learners) > 1:
        shown.append(_MARKS if set(report.metrics) - set(COSTS) else f"{_BEST} best")
    return [*shown, "", *_pace_tables(report)]


def _heading(report: CompareReport) -> str:
    trial = report.trial
    rows = sum(trial.sizes[name] for name in trial.data)
    sets = f"{len(trial.data)} data sets, " if len(trial.data) > 1 else ""
    return f"{sets}{rows:,} rows; {trial.protocol}"


def _one_set(report: CompareReport) -> Iterator[Table]:
    """Yield all metrics of all learners."""
    (data,), learners = report.trial.data, report.trial.learners
    columns = [
        TextColumn(
            metric_text(metric), [_cell(report.figure(data, name, metric), metric, spread=True) for name in learners]
        )
        for metric in report.metrics
    ]
    yield from fitted_tables(data, TextColumn("learner", learners), columns, "further figures")


def _cell(figure: ComparedFigure | None, metric: str, spread: bool) -> str:
    """Return the mean, its mark, and the standard deviation."""
    if figure is None:
        return "-"
    mark = _BEST if figure.best else _NOT_WORSE if figure.not_worse else " "
    std = f" ±{_number(figure.std, metric)}" if spread and figure.std is not None else ""
    return f"{_number(figure.mean, metric)}{std} {mark}"


def _number(value: float | None, metric: str = "") -> str:
    """Return four decimals, fewer for large numbers and for counts."""
    if value is None:
        return "-"
    if not math.isfinite(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.1f}" if abs(value) >= 100 or metric in COUNTS else f"{round(value, 4) + 0.0:.4f}"


def _several_sets(report: CompareReport, metric: str, *, legend: bool) -> list[str | Table]:
    """Return one metric: the figures, and where there is a summary, ranks and tests.

    Their legend if it is the first time.
    """
    shown: list[str | Table] = [*_figure_tables(report, metric)]
    summary = report.summaries.get(metric)
    if summary is not None:
        shown += _ranks(report, summary, metric)
        shown += [*_legend(report), ""] if legend else []
    for group in report.groups:
        if metric in group.summaries:
            shown += _ranks(report, group.summaries[metric], metric, group.name)
    return shown


def _figure_tables(report: CompareReport, metric: str) -> Iterator[Table]:
    """Yield a line per data set, a column per learner."""
    data, learners = report.trial.data, report.trial.learners
    spread = len(learners) <= _MOST_WITH_SPREAD
    columns = [
        TextColumn(name, [_cell(report.figure(one, name, metric), metric, spread) for one in data]) for name in learners
    ]
    yield from fitted_tables(metric_text(metric), TextColumn("data", data), columns, "further learners")


def _ranks(report: CompareReport, summary: Summary, metric: str, group: str = "") -> list[str | Table]:
    """Ranks and tests, and remarks below them."""
    remarks = _remarks(report, summary, metric)
    return [*_rank_tables(report, summary, metric, group), *remarks, *([""] if remarks else [])]


def _remarks(report: CompareReport, summary: Summary, metric: str) -> list[str | Table]:
    """Return the tests of all learners together, and who is not in them."""
    lines, test = [], summary.friedman
    if test is not None:
        lines += [
            f"Friedman: chi² {_statistic(test.chi_squared)}, p {_p(test.p)}; "
            f"Iman-Davenport: F {_statistic(test.f)}, p {_p(test.f_p)}",
            f"Nemenyi: ranks differ significantly when {summary.critical_difference:.2f} or more apart (5 %)",
        ]
    if summary.left_out:
        lines.append(f"Left out, for a learner has no figure there: {', '.join(summary.left_out)}")
    if summary.without_figures:
        why = f"parameters in closed form have no {metric_text(metric)}" if metric in COSTS else "they have no figures"
        lines.append(f"Left out, for {why}: {', '.join(summary.without_figures)}")
        if report.baseline in summary.without_figures:
            lines.append(f"The baseline, {report.baseline}, is among them; name another one with --baseline")
    return [*lines]


def _statistic(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:.2f}"


def _p(p: float | None) -> str:
    """Return four decimals; what would be rounded to 0 is told as a bound."""
    if p is None:
        return "-"
    return f"{p:.4f}" if p >= _LEAST_P else "<0.0001"


def _rank_tables(report: CompareReport, summary: Summary, metric: str, group: str) -> Iterator[Table]:
    """Yield the learners from the best average rank on, each beside the baseline."""
    against, n = shortened(report.baseline, page_width() // 3), len(summary.sets)
    over = f"{n} data set{'s' if n > 1 else ''}{f' of {group}' if group else ''}"
    title = f"{metric_text(metric)} over {over}, each learner against {against}"
    letters = _letters(summary)
    names = sorted(summary.average_ranks, key=lambda name: summary.average_ranks[name])
    cells = [_pair(summary, metric, name, report.baseline) | {"group": letters[name]} for name in names]
    columns = [
        TextColumn(heading, [one.get(heading, "") for one in cells], number=heading != "group")
        for heading in _headings(summary, metric)
    ]
    yield from fitted_tables(title, TextColumn("learner", names), columns, "further columns")


def _letters(summary: Summary) -> dict[str, str]:
    """Return a letter per group; learners that share one are not told apart."""
    letters = dict.fromkeys(summary.average_ranks, "")
    for i, group in enumerate(summary.groups):
        for name in group:
            letters[name] += _LETTERS[i % len(_LETTERS)]
    return letters


def _pair(summary: Summary, metric: str, name: str, baseline: str) -> dict[str, str]:
    """Return the rank, the mean, W-D-L, the ratio and the p-values of a learner, by heading."""
    cells = {"rank": f"{summary.average_ranks[name]:.2f}", "mean": _number(summary.geometric_means[name], metric)}
    pair = summary.against(name, baseline)
    if pair is None:
        return cells | {"W-D-L": "baseline" if name == baseline else "-"}
    ps = {"sign p": pair.sign_p, "Wilcoxon": pair.wilcoxon_p, "Holm p": pair.holm_p, "t p": pair.t_p}
    ratio = "-" if pair.ratio is None else f"{pair.ratio:.3f}"
    counts = f"{pair.wins}-{pair.draws}-{pair.losses}"
    return cells | {"W-D-L": counts, "ratio": ratio} | {heading: _p(p) for heading, p in ps.items()}


def _headings(summary: Summary, metric: str) -> list[str]:
    if metric in COSTS:
        return ["rank", "mean", "W-D-L", "ratio"]
    return [heading for heading, _ in _LEGEND if heading != "mean" and (summary.friedman or heading in _UNTESTED)]


def _legend(report: CompareReport) -> list[str]:
    """Return what the columns answer that some table has."""
    summaries = [report.summaries, *(group.summaries for group in report.groups)]
    headings = {heading for ones in summaries for metric, one in ones.items() for heading in _headings(one, metric)}
    return [f"{heading:<10}{answer}" for heading, answer in _LEGEND if heading in headings]


def _pace_tables(report: CompareReport) -> Iterator[Table]:
    against = shortened(report.baseline, page_width() // 3)
    title = f"Seconds a fold, of the processor; ratios are geometric means against {against}"
    columns: list[TextColumn] = []
    for stage in ("fit", "score"):
        columns.append(TextColumn(f"{stage} s", [f"{pace.seconds[stage]:.3f}" for pace in report.paces.values()]))
        columns.append(TextColumn("ratio", [_ratio(pace.ratio[stage]) for pace in report.paces.values()]))
    yield from fitted_tables(title, TextColumn("learner", list(report.paces)), columns, "further columns")


def _ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}"
