"""What a person sees of a comparison: the figures on every data set, then who wins over all of them, and how fast.

With one data set there is one table, a line a learner. With more there are two a metric: the figures, a line a data
set, and the ranks and tests, a line a learner, with a legend below the first of these. A table that is wider than the
page goes on below; no word is broken. Marks stand behind the figures, since colour does not survive a pipe;
the seconds, which no two runs share, come last.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from bncli.cli.console import page_width
from bncli.cli.tables import TextColumn, add_row, fitted_tables, plain_table, shortened
from bncli.steps.comparing.report import CompareReport, Figure, Summary, told

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
    ("group", "with a letter in common: not told apart (Nemenyi, 5 %)"),
    ("W-D-L", "on how many data sets it wins, draws, loses against the baseline"),
    ("ratio", "geometric mean of its figures over the baseline's"),
    ("sign p", "p-value: are wins and losses equally likely? (two-sided)"),
    ("Wilcoxon", "the same of the sizes of the differences too (signed ranks, two-sided)"),
    ("Holm p", "Wilcoxon's, raised for as many comparisons as there are learners"),
    ("t p", "p-value: is its mean better than the baseline's? (paired t, one-sided)"),
)
"""What each column of the ranks answers; a line has at most 80 letters."""


def tables(report: CompareReport) -> list[str | Table]:
    """Tables and lines, in the order in which they are read."""
    trial = report.trial
    shown: list[str | Table] = [_heading(report)]
    if len(trial.data) == 1:
        shown += _one_set(report)
    else:
        for metric in report.metrics:
            shown += _several_sets(report, metric, legend=metric == next(iter(report.summaries), None))
    if report.gaps:
        shown.append(_gap_table(report))
    if len(trial.learners) > 1:
        shown.append(_MARKS)
    return [*shown, "", *_pace_tables(report)]


def _heading(report: CompareReport) -> str:
    trial = report.trial
    rows = sum(trial.sizes[name] for name in trial.data)
    sets = f"{len(trial.data)} data sets, " if len(trial.data) > 1 else ""
    return f"{sets}{rows:,} rows; {trial.protocol}"


def _one_set(report: CompareReport) -> Iterator[Table]:
    """All metrics of all learners."""
    (data,), learners = report.trial.data, report.trial.learners
    columns = [
        TextColumn(told(metric), [_cell(report.figure(data, name, metric), spread=True) for name in learners])
        for metric in report.metrics
    ]
    yield from fitted_tables(data, TextColumn("learner", learners), columns, "further figures")


def _several_sets(report: CompareReport, metric: str, *, legend: bool) -> list[str | Table]:
    """One metric: the figures, and where there is a summary, ranks and tests; their legend if it is the first time."""
    shown: list[str | Table] = [*_figure_tables(report, metric)]
    summary = report.summaries.get(metric)
    if summary is not None:
        shown += [*_rank_tables(report, summary, metric), *_remarks(summary), ""]
        shown += [*(f"{heading:<10}{answer}" for heading, answer in _LEGEND), ""] if legend else []
    return shown


def _figure_tables(report: CompareReport, metric: str) -> Iterator[Table]:
    """A line a data set, a column a learner."""
    data, learners = report.trial.data, report.trial.learners
    spread = len(learners) <= _MOST_WITH_SPREAD
    columns = [TextColumn(name, [_cell(report.figure(one, name, metric), spread) for one in data]) for name in learners]
    yield from fitted_tables(told(metric), TextColumn("data", data), columns, "further learners")


def _cell(figure: Figure | None, spread: bool) -> str:
    """The mean, its mark, and the standard deviation."""
    if figure is None:
        return "-"
    mark = _BEST if figure.best else _NOT_WORSE if figure.not_worse else " "
    std = f" ±{_number(figure.std)}" if spread and figure.std is not None else ""
    return f"{_number(figure.mean)}{std} {mark}"


def _rank_tables(report: CompareReport, summary: Summary, metric: str) -> Iterator[Table]:
    """The learners from the best average rank on, each beside the baseline."""
    against = shortened(report.baseline, page_width() // 3)
    title = f"{told(metric)} over {len(summary.sets)} data sets, each learner against {against}"
    letters = _letters(summary)
    names = sorted(summary.average_ranks, key=lambda name: summary.average_ranks[name])
    rows = [
        (f"{summary.average_ranks[name]:.2f}", letters[name], *_pair(summary, name, report.baseline)) for name in names
    ]
    columns = [
        TextColumn(heading, cells, number=heading != "group")
        for (heading, _), cells in zip(_LEGEND, zip(*rows, strict=True), strict=True)
    ]
    yield from fitted_tables(title, TextColumn("learner", names), columns, "further columns")


def _letters(summary: Summary) -> dict[str, str]:
    """A letter a group; learners that share one are not told apart."""
    letters = dict.fromkeys(summary.average_ranks, "")
    for i, group in enumerate(summary.groups):
        for name in group:
            letters[name] += _LETTERS[i % len(_LETTERS)]
    return letters


def _pair(summary: Summary, name: str, baseline: str) -> list[str]:
    """W-D-L, the ratio and the p-values of a learner."""
    pair = summary.against(name, baseline)
    if pair is None:
        return ["baseline" if name == baseline else "-", "", "", "", "", ""]
    ps = (pair.sign_p, pair.wilcoxon_p, pair.holm_p, pair.t_p)
    ratio = "-" if pair.ratio is None else f"{pair.ratio:.3f}"
    return [f"{pair.wins}-{pair.draws}-{pair.losses}", ratio, *map(_p, ps)]


def _remarks(summary: Summary) -> list[str | Table]:
    """The tests of all learners together, and who is not in them."""
    test = summary.friedman
    lines = [
        f"Friedman: chi² {_statistic(test.chi_squared)}, p {_p(test.p)}; "
        f"Iman-Davenport: F {_statistic(test.f)}, p {_p(test.f_p)}",
        f"Nemenyi: ranks differ significantly when {summary.critical_difference:.2f} or more apart (5 %)",
    ]
    if summary.left_out:
        lines.append(f"Left out, for a learner has no figure there: {', '.join(summary.left_out)}")
    if summary.without_figures:
        lines.append(f"Left out, for they have no figures: {', '.join(summary.without_figures)}")
    return [*lines]


def _pace_tables(report: CompareReport) -> Iterator[Table]:
    against = shortened(report.baseline, page_width() // 3)
    title = f"Seconds a fold; ratios are geometric means against {against}"
    columns: list[TextColumn] = []
    for stage in ("fit", "score"):
        columns.append(TextColumn(f"{stage} s", [f"{pace.seconds[stage]:.3f}" for pace in report.paces.values()]))
        columns.append(TextColumn("ratio", [_ratio(pace.ratio[stage]) for pace in report.paces.values()]))
    yield from fitted_tables(title, TextColumn("learner", list(report.paces)), columns, "further columns")


def _ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}"


def _gap_table(report: CompareReport) -> Table:
    table, most = plain_table("Could not be tried", "data", "learner", "reason"), page_width() // 4
    for column in table.columns[:2]:
        column.no_wrap = True
    for (data, name), reason in report.gaps.items():
        add_row(table, shortened(data, most), shortened(name, most), reason)
    return table


def _number(value: float | None) -> str:
    """Four decimals, fewer for large numbers."""
    if value is None:
        return "-"
    if not math.isfinite(value):
        return "∞" if value > 0 else "-∞"
    return f"{round(value, 4) + 0.0:.4f}" if abs(value) < 100 else f"{value:.1f}"


def _statistic(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:.2f}"


def _p(p: float | None) -> str:
    """Four decimals; what would be rounded to 0 is told as a bound."""
    if p is None:
        return "-"
    return f"{p:.4f}" if p >= _LEAST_P else "<0.0001"
