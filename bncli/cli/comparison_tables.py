"""What a person sees of a comparison: the figures on every data set, then who wins over all of them, and how fast.

With one data set there is one table, a line a learner. With more there are two a metric: the figures, a line a data
set, and the ranks and tests, a line a learner. Marks stand behind the figures, since colour does not survive a pipe;
the seconds, which no two runs share, come last.
"""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from bncli.cli.tables import add_row, plain_table
from bncli.steps.comparing.report import CompareReport, Figure, Pair, Summary, told

if TYPE_CHECKING:
    from rich.table import Table

_MOST_WITH_SPREAD = 6
"""Learners up to which means stand with their standard deviations: a line has no room for more."""
_PAGE = 160
_GAP = 3
"""Blanks between two columns."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_LEAST_P = 0.0001
_BEST, _NOT_WORSE = "*", "="
_MARKS = f"{_BEST} best   {_NOT_WORSE} not significantly worse than the best (corrected resampled t-test, 5 %)"
_TESTS = (
    "p-values: sign and Wilcoxon two-sided; Holm: Wilcoxon's, for so many comparisons with one baseline; t one-sided, "
    "that the learner is better than the baseline. ratio: geometric mean of figures over the baseline's"
)


def tables(report: CompareReport) -> list[str | Table]:
    """Tables and lines, in the order in which they are read."""
    trial = report.trial
    shown: list[str | Table] = [_heading(report)]
    if len(trial.data) == 1:
        shown.append(_one_set(report))
    else:
        for metric in report.metrics:
            shown += _several_sets(report, metric)
    if report.gaps:
        shown.append(_gap_table(report))
    if len(trial.learners) > 1:
        shown.append(_MARKS)
    if report.summaries:
        shown.append(_TESTS)
    return [*shown, "", _pace_table(report)]


def _heading(report: CompareReport) -> str:
    trial = report.trial
    rows = sum(trial.sizes[name] for name in trial.data)
    sets = f"{len(trial.data)} data sets, " if len(trial.data) > 1 else ""
    return f"{sets}{rows:,} rows; {trial.protocol}"


def _one_set(report: CompareReport) -> Table:
    """All metrics of all learners."""
    (data,) = report.trial.data
    metrics = [told(metric) for metric in report.metrics]
    table = plain_table(data, "learner", *metrics, numbers=range(1, len(metrics) + 1))
    for name in report.trial.learners:
        add_row(table, name, *(_cell(report.figure(data, name, metric), spread=True) for metric in report.metrics))
    return table


def _several_sets(report: CompareReport, metric: str) -> list[str | Table]:
    """One metric: the figures, and where there is a summary, ranks and tests."""
    shown: list[str | Table] = [*_figure_tables(report, metric)]
    summary = report.summaries.get(metric)
    if summary is not None:
        shown += [_ranks(report, summary, metric), *_remarks(summary), ""]
    return shown


def _figure_tables(report: CompareReport, metric: str) -> Iterator[Table]:
    """A line a data set, a column a learner; as many learners a table as the page is wide."""
    data, learners = report.trial.data, report.trial.learners
    spread = len(learners) <= _MOST_WITH_SPREAD
    columns = {name: [_cell(report.figure(one, name, metric), spread) for one in data] for name in learners}
    title = told(metric)
    for block in _blocks(columns, _page() - max(map(len, (*data, "data")))):
        table = plain_table(title, "data", *block, numbers=range(1, len(block) + 1))
        for i, one in enumerate(data):
            add_row(table, one, *(columns[name][i] for name in block))
        yield table
        title = f"{told(metric)}, further learners"


def _page() -> int:
    """How many letters a line holds: those of the terminal, or of a page that goes to a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else _PAGE


def _blocks(columns: Mapping[str, Sequence[str]], room: int) -> list[list[str]]:
    """The names of the columns in runs that fit into the room, at least one a run."""
    blocks: list[list[str]] = []
    left = 0
    for name, cells in columns.items():
        width = max(map(len, (name, *cells))) + _GAP
        if not blocks or width > left:
            blocks.append([])
            left = room - _GAP
        blocks[-1].append(name)
        left -= width
    return blocks


def _cell(figure: Figure | None, spread: bool) -> str:
    """The mean, its mark, and the standard deviation."""
    if figure is None:
        return "-"
    mark = _BEST if figure.best else _NOT_WORSE if figure.not_worse else " "
    std = f" ±{_number(figure.std)}" if spread and figure.std is not None else ""
    return f"{_number(figure.mean)}{std} {mark}"


def _ranks(report: CompareReport, summary: Summary, metric: str) -> Table:
    """The learners from the best average rank on, each beside the baseline."""
    title = f"{told(metric)} over {len(summary.sets)} data sets, each learner against {report.baseline}"
    heads = ("learner", "rank", "group", "W-D-L", "sign p", "Wilcoxon", "Holm p", "t p", "ratio")
    table = plain_table(title, *heads, numbers=(1, 3, 4, 5, 6, 7, 8))
    letters = _letters(summary)
    for name in sorted(summary.average_ranks, key=lambda name: summary.average_ranks[name]):
        pair = summary.against(name, report.baseline)
        rest = _pair(pair) if pair else ["baseline" if name == report.baseline else "-"]
        add_row(table, name, f"{summary.average_ranks[name]:.2f}", letters[name], *rest)
    return table


def _letters(summary: Summary) -> dict[str, str]:
    """A letter a group; learners that share one are not told apart."""
    letters = dict.fromkeys(summary.average_ranks, "")
    for i, group in enumerate(summary.groups):
        for name in group:
            letters[name] += _LETTERS[i % len(_LETTERS)]
    return letters


def _pair(pair: Pair) -> list[str]:
    counts = f"{pair.wins}-{pair.draws}-{pair.losses}"
    ps = (pair.sign_p, pair.wilcoxon_p, pair.holm_p, pair.t_p)
    return [counts, *map(_p, ps), "-" if pair.ratio is None else f"{pair.ratio:.3f}"]


def _remarks(summary: Summary) -> list[str | Table]:
    """The tests of all learners together, and who is not in them."""
    test = summary.friedman
    lines = [
        f"Friedman: chi² {_statistic(test.chi_squared)}, p {_p(test.p)}; "
        f"Iman-Davenport: F {_statistic(test.f)}, p {_p(test.f_p)}",
        f"Nemenyi: ranks differ significantly when {summary.critical_difference:.2f} or more apart (5 %)"
        + ("; learners with a letter in common do not" if summary.groups else ""),
    ]
    if summary.left_out:
        lines.append(f"Left out, for a learner has no figure there: {', '.join(summary.left_out)}")
    if summary.without_figures:
        lines.append(f"Left out, for they have no figures: {', '.join(summary.without_figures)}")
    return [*lines]


def _pace_table(report: CompareReport) -> Table:
    title = f"Seconds a fold; ratios are geometric means against {report.baseline}"
    table = plain_table(title, "learner", "fit s", "ratio", "score s", "ratio", numbers=(1, 2, 3, 4))
    for name, pace in report.paces.items():
        cells: list[str] = []
        for stage, seconds in pace.seconds.items():
            ratio = pace.ratio[stage]
            cells += [f"{seconds:.3f}", "-" if ratio is None else f"{ratio:.2f}"]
        add_row(table, name, *cells)
    return table


def _gap_table(report: CompareReport) -> Table:
    table = plain_table("Could not be tried", "data", "learner", "reason")
    for (data, name), reason in report.gaps.items():
        add_row(table, data, name, reason)
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
