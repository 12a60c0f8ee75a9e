"""The tables of a comparison: figures on every data set, ranks and tests over all of them, and seconds.

With one data set there is one table with a line per learner. With several there are two tables per metric: the figures
with a line per data set, and the ranks and tests with a line per learner; each group of data sets adds a table of ranks
and tests. The differences between learners follow the figures. A legend is printed below the first table of ranks.
Marks follow the figures, because colours do not survive a pipe. The seconds come last, because they differ from run to
run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bncli.cli.console import page_width
from bncli.cli.terminal_tables import TextColumn, add_row, fitted_tables, plain_table, shortened
from bncli.steps.compare.analysis import CompareReport, MetricMean, Summary, metric_text
from bncli.steps.compare.trials import COSTS, COUNTS

if TYPE_CHECKING:
    from rich.table import Table

_MOST_WITH_STD = 6
"""The largest number of learners whose means are printed with standard deviations; more do not fit in a line."""
_MOST_IN_PAIRS = 4
"""The most learners for which all pairs are compared; more learners are compared with the baseline only."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_BEST, _NOT_WORSE = "*", "="
_MARKS_LEGEND = (
    f"{_BEST} best; {_NOT_WORSE} marks learners that are not significantly worse (corrected resampled t-test, 5 %)"
)
_COLUMN_LEGEND = (
    ("rank", "average rank over the data sets; 1 is the best everywhere"),
    ("mean", "geometric mean over the data sets (costs only)"),
    ("group", "learners sharing a letter do not differ significantly (Nemenyi, 5 %)"),
    ("W-D-L", "number of data sets with a win, draw or loss against the baseline"),
    ("ratio", "geometric mean of the ratios to the baseline's figures"),
    ("sign p", "p-value of the sign test against the baseline (two-sided)"),
    ("Wilcoxon", "p-value of Wilcoxon's signed-rank test (two-sided)"),
    ("Holm p", "Wilcoxon's p-value, adjusted for all comparisons (Holm)"),
    ("t p", "p-value of the paired t-test against the baseline (one-sided)"),
)
"""The columns of ranks and tests in their order, and what they mean; a line has at most 80 characters."""
_WITHOUT_TESTS = ("rank", "W-D-L", "ratio")
"""Columns of ranks if there are too few data sets for tests."""


def comparison_tables(report: CompareReport) -> list[str | Table]:
    """Return tables and lines in the order in which they are printed."""
    trial = report.results
    n_rows = sum(trial.sizes[name] for name in trial.data)
    sets = f"{len(trial.data)} data sets, " if len(trial.data) > 1 else ""
    shown: list[str | Table] = [f"{sets}{n_rows:,} rows; {trial.protocol}"]
    if len(trial.data) == 1:
        (data,) = trial.data
        columns = [
            TextColumn(
                metric_text(metric),
                [_cell(report.metric_mean(data, name, metric), metric, with_std=True) for name in trial.learners],
            )
            for metric in report.metrics
        ]
        shown += fitted_tables(data, TextColumn("learner", trial.learners), columns, "further figures")
        shown += _difference_tables(report, report.metrics)
    else:
        for metric in report.metrics:
            shown += _tables_of_metric(report, metric)
    if report.gaps:
        table, most = plain_table("Failed", "data", "learner", "reason"), page_width() // 4
        for column in table.columns[:2]:
            column.no_wrap = True
        for (data, name), reason in report.gaps.items():
            add_row(table, shortened(data, most), shortened(name, most), reason)
        shown.append(table)
    if len(trial.learners) > 1:
        shown.append(_MARKS_LEGEND if set(report.metrics) - set(COSTS) else f"{_BEST} best")
        if report.differences:
            shown.append("±: 95 % interval of a difference, corrected for overlapping training sets")
    return [*shown, "", *_seconds_tables(report)]


def _difference_tables(report: CompareReport, metrics: Sequence[str]) -> Iterator[str | Table]:
    """Yield the differences between all pairs of learners, or from the baseline if there are many learners.

    With one data set the columns are metrics; with several there is one metric, and the columns are pairs.
    """
    shown = [each for each in report.differences if each.metric in metrics]
    if len(report.results.learners) > _MOST_IN_PAIRS:
        shown = [each for each in shown if report.baseline in (each.a, each.b)]
    if not shown:
        return
    if max(len(f"{each.a} - {each.b}") for each in shown) > page_width() // 3:
        yield "Differences: see --json, or use shorter learner names"
        return
    names = [metric_text(metric) for metric in metrics if any(each.metric == metric for each in shown)]
    cells = dict[tuple[str, str], str]()
    for each in shown:
        pair = f"{each.a} - {each.b}"
        row, column = (pair, metric_text(each.metric)) if len(report.results.data) == 1 else (each.data, pair)
        text = "-" if each.mean is None else f"{round(each.mean, 4) + 0.0:+.4f}"
        if each.mean is not None and each.high is not None:
            text += f" ±{each.high - each.mean:.4f}"
        cells[row, column] = text
    rows, headings = (list(dict.fromkeys(key[i] for key in cells)) for i in (0, 1))
    columns = [TextColumn(heading, [cells.get((row, heading), "-") for row in rows]) for heading in headings]
    title = "Differences" if len(report.results.data) == 1 else f"Differences in {names[0]}"
    first = TextColumn("learners" if len(report.results.data) == 1 else "data", rows)
    yield from fitted_tables(f"{title}, with 95 % intervals", first, columns, "further columns")


def _cell(figure: MetricMean | None, metric: str, with_std: bool) -> str:
    """Return the mean, optionally the standard deviation, and the mark of a figure."""
    if figure is None:
        return "-"
    mark = _BEST if figure.best else _NOT_WORSE if figure.not_worse else " "
    std = f" ±{_number(figure.std, metric)}" if with_std and figure.std is not None else ""
    return f"{_number(figure.mean, metric)}{std} {mark}"


def _number(value: float | None, metric: str) -> str:
    """Format a figure: four decimals, or one for counts and if it is 100 or more; "-" for None and NaN, ∞ or -∞."""
    if value is None or math.isnan(value):
        return "-"
    if not math.isfinite(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.1f}" if abs(value) >= 100 or metric in COUNTS else f"{round(value, 4) + 0.0:.4f}"


def _tables_of_metric(report: CompareReport, metric: str) -> Iterator[str | Table]:
    """Yield the figures of a metric on every data set, the differences, and the ranks and tests, if there are any."""
    data, learners = report.results.data, report.results.learners
    with_std = len(learners) <= _MOST_WITH_STD
    columns = [
        TextColumn(name, [_cell(report.metric_mean(set_, name, metric), metric, with_std) for set_ in data])
        for name in learners
    ]
    yield from fitted_tables(metric_text(metric), TextColumn("data", data), columns, "further learners")

    yield from _difference_tables(report, (metric,))
    summary = report.summaries.get(metric)
    if summary is not None:
        yield from _rank_tables(report, summary, metric)
        if metric == next(iter(report.summaries)):
            # The legend explains the columns that at least one table has.
            summaries = [report.summaries, *(group.summaries for group in report.groups)]
            headings = {heading for by_metric in summaries for m, s in by_metric.items() for heading in _headings(s, m)}
            yield from (f"{heading:<10}{meaning}" for heading, meaning in _COLUMN_LEGEND if heading in headings)
            yield ""
    for group in report.groups:
        if metric in group.summaries:
            yield from _rank_tables(report, group.summaries[metric], metric, f" of {group.name}")


def _rank_tables(report: CompareReport, summary: Summary, metric: str, of_group: str = "") -> Iterator[str | Table]:
    """Yield a table of the learners by average rank, compared with the baseline, then remarks on tests and gaps."""
    # Learners with a letter in common are not significantly different.
    letters = dict.fromkeys(summary.average_ranks, "")
    for i, names in enumerate(summary.groups):
        for name in names:
            letters[name] += _LETTERS[i % len(_LETTERS)]
    baseline, n = shortened(report.baseline, page_width() // 3), len(summary.sets)
    over = f"{n} data set{'s' if n > 1 else ''}{of_group}"
    title = f"{metric_text(metric)} over {over}, each learner against {baseline}"
    ranked = sorted(summary.average_ranks, key=lambda name: summary.average_ranks[name])
    cells = [_rank_cells(summary, metric, name, report.baseline) | {"group": letters[name]} for name in ranked]
    columns = [
        TextColumn(heading, [of_learner.get(heading, "") for of_learner in cells], is_number=heading != "group")
        for heading in _headings(summary, metric)
    ]
    yield from fitted_tables(title, TextColumn("learner", ranked), columns, "further columns")
    remarks = _remarks(report, summary, metric)
    yield from remarks
    if remarks:
        yield ""


def _headings(summary: Summary, metric: str) -> list[str]:
    """Return the columns of ranks and tests; costs are not tested."""
    if metric in COSTS:
        return ["rank", "mean", "W-D-L", "ratio"]
    return [
        heading
        for heading, _ in _COLUMN_LEGEND
        if heading != "mean" and (summary.friedman or heading in _WITHOUT_TESTS)
    ]


def _rank_cells(summary: Summary, metric: str, name: str, baseline: str) -> dict[str, str]:
    """Return the rank, the mean, W-D-L, the ratio and the p-values of a learner, by heading."""
    cells = {"rank": f"{summary.average_ranks[name]:.2f}", "mean": _number(summary.geometric_means[name], metric)}
    pair = summary.against(name, baseline)
    if pair is None:
        return cells | {"W-D-L": "baseline" if name == baseline else "-"}
    return cells | {
        "W-D-L": f"{pair.wins}-{pair.draws}-{pair.losses}",
        "ratio": "-" if pair.ratio is None else f"{pair.ratio:.3f}",
        "sign p": _p_value(pair.sign_p),
        "Wilcoxon": _p_value(pair.wilcoxon_p),
        "Holm p": _p_value(pair.holm_p),
        "t p": _p_value(pair.t_p),
    }


def _p_value(p: float | None) -> str:
    """Return a p-value with four decimals, or "<0.0001" if it is smaller; "-" for None."""
    if p is None:
        return "-"
    return f"{p:.4f}" if p >= 0.0001 else "<0.0001"


def _remarks(report: CompareReport, summary: Summary, metric: str) -> list[str]:
    """Return the tests of all learners together, and which data sets and learners are left out."""
    lines, test = [], summary.friedman
    if test is not None:
        if test.exact_p is not None:
            p_values = f"exact p {_p_value(test.exact_p)}"
        else:
            p_values = f"p {_p_value(test.p)}; Iman-Davenport: F {test.f:.2f}, p {_p_value(test.f_p)}"
        lines += [
            f"Friedman: chi² {test.chi_squared:.2f}, {p_values}",
            f"Nemenyi: ranks that are at least {summary.critical_difference:.2f} apart differ significantly (5 %)",
        ]
    if summary.caution:
        lines.append(summary.caution)
    if summary.left_out:
        lines.append(f"Data sets left out because a learner has no figure there: {', '.join(summary.left_out)}")
    if summary.without_figures:
        why = f"parameters in closed form have no {metric_text(metric)}" if metric in COSTS else "they have no results"
        lines.append(f"Learners left out because {why}: {', '.join(summary.without_figures)}")
        if report.baseline in summary.without_figures:
            lines.append(f"The baseline {report.baseline} is one of them; choose another with --baseline")
    return lines


def _seconds_tables(report: CompareReport) -> Iterator[Table]:
    """Yield the processor seconds per fold of each learner, with their ratios to the baseline."""
    baseline = shortened(report.baseline, page_width() // 3)
    title = f"CPU seconds per fold; ratios to {baseline} are geometric means"
    columns: list[TextColumn] = []
    for stage in ("fit", "score"):
        ratios = [pace.ratio[stage] for pace in report.times.values()]
        columns.append(TextColumn(f"{stage} s", [f"{pace.seconds[stage]:.3f}" for pace in report.times.values()]))
        columns.append(TextColumn("ratio", ["-" if ratio is None else f"{ratio:.2f}" for ratio in ratios]))
    yield from fitted_tables(title, TextColumn("learner", list(report.times)), columns, "further columns")
