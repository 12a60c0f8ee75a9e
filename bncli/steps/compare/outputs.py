"""The files of a comparison besides its report: outcomes as CSV, tables for a paper as LaTeX, drawings as SVG.

The drawings show the first requested metric.

The LaTeX tables are in the style of the package booktabs; without the package its rules become plain lines. The file is
a fragment, to be pasted or read by \\input between \\begin{document} and \\end{document}. Non-ASCII characters are not
escaped, since UTF-8 is LaTeX's default encoding (since 2018).
"""

from __future__ import annotations

import csv as csv_format
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bncli.engine.evaluation.significance import win_draw_loss
from bncli.errors import BncliError, UsageError, printable
from bncli.files.atomic import write_bytes
from bncli.files.paths import refuse_ending
from bncli.files.pictures.comparison_plots import ScatterPanel, critical_difference_diagram, scatter_plots
from bncli.files.pictures.drawing import Drawing
from bncli.steps.compare.analysis import HIGHER_IS_BETTER, CompareReport, MetricMean, Summary, metric_text
from bncli.steps.compare.trials import COSTS, COUNTS

NOT_DRAWN = (".png", ".pdf", ".jpg", ".jpeg", ".gif", ".eps", ".ps", ".html", ".tex")
"""The extensions of file formats in which drawings cannot be written."""
_MOST_WITH_STD = 5
"""The maximum number of learners for which a page has room for standard deviations."""
_SMALLEST_P = 0.0005
"""Smaller p-values are shown as a bound, since they would be rounded to 0."""
_LATEX_HEAD = r"""% Tables by bncli compare. In the preamble: \usepackage{booktabs}
\providecommand{\toprule}{\hline}
\providecommand{\midrule}{\hline}
\providecommand{\bottomrule}{\hline}
"""
_LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "`": r"\textasciigrave{}",
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def check_drawings(
    n_learners: int, n_data_sets: int, metric: str, *, diagram: str | None = None, scatter: str | None = None
) -> None:
    """Raise UsageError, before any work, for a drawing that is not SVG or that cannot be drawn.

    Drawings need at least two learners. The diagram also needs two data sets and a metric that is not a cost.
    """
    for path in (diagram, scatter):
        refuse_ending(path, NOT_DRAWN, "drawings can be written only as SVG")
    if n_learners < 2 and (diagram or scatter):
        option = "--diagram" if diagram else "--scatter"
        raise UsageError(
            f"{option} draws differences between learners, but there is only one learner", hint="add another --learner"
        )
    if n_data_sets < 2 and diagram:
        raise UsageError("--diagram needs several data sets, but there is only one", hint="give more DATA")
    if metric in COSTS and diagram:
        what = (
            f"--diagram draws the results of a test, but costs such as {metric_text(metric)} are not tested "
            "for differences"
        )
        raise UsageError(what, hint="use --scatter for costs")


def write_outputs(
    report: CompareReport,
    *,
    csv: str | None = None,
    latex: str | None = None,
    diagram: str | None = None,
    scatter: str | None = None,
) -> None:
    """Write the files that have a path, each completely or not at all.

    Raises BncliError for a drawing that the outcomes do not allow.
    """
    metric = report.metrics[0]
    if csv:
        outcomes = report.results.outcomes
        metrics = list(dict.fromkeys(name for outcome in outcomes for name in outcome.metrics))
        stages = list(dict.fromkeys(stage for outcome in outcomes for stage in outcome.seconds))
        costs = list(dict.fromkeys(name for outcome in outcomes for name in outcome.costs))
        fields = ["data", "learner", "repeat", "fold", "rows"]
        text = io.StringIO()
        columns = [*fields, *metrics, *(f"{stage}_seconds" for stage in stages), *costs]
        writer = csv_format.DictWriter(text, columns, lineterminator="\n")
        writer.writeheader()
        for outcome in outcomes:
            seconds = {f"{stage}_seconds": value for stage, value in outcome.seconds.items()}
            writer.writerow(
                {name: getattr(outcome, name) for name in fields} | outcome.metrics | seconds | outcome.costs
            )
        # a name that the command line could not decode must not end a long run
        write_bytes(csv, text.getvalue().encode("utf-8", "backslashreplace"))
    if latex:
        write_tables(latex, paper_tables(report))
    if diagram:
        drawing = rank_diagram(report, metric)
        if drawing is None:
            what = f"average ranks need the {metric_text(metric)} of at least two learners on at least two data sets"
            raise BncliError(what, where=diagram)
        write_bytes(diagram, drawing.source().encode())
    if scatter:
        panels = scatter_panels(report, metric)
        if metric in COSTS and not panels:
            what = f"no data set has {metric_text(metric)} for both {report.baseline} and another learner"
            hint = "parameters in closed form have none; choose another --baseline"
            raise BncliError(what, where=scatter, hint=hint)
        write_bytes(scatter, scatter_drawing(report, metric, panels).source().encode())


def paper_tables(report: CompareReport) -> list[LatexTable]:
    """Return, for each metric, a table of all data sets and a table of pairs per summary; then a table of seconds."""
    tables: list[LatexTable] = []
    for metric in report.metrics:
        tables.append(_data_set_table(report, metric))
        tables += [_pair_table(suffix, summary, metric) for suffix, summary in _summaries(report, metric)]
    rows = [
        [
            escape(name),
            *(_number(seconds, 3) for seconds in times.seconds.values()),
            *(_number(ratio, 2) for ratio in times.ratio.values()),
        ]
        for name, times in report.times.items()
    ]
    against = escape(report.baseline)
    caption = f"CPU seconds per fold, means over the data sets, and geometric means of ratios to {against}."
    return [*tables, LatexTable(caption, ["", "fit", "score", "ratio, fit", "ratio, score"], [rows])]


def _summaries(report: CompareReport, metric: str) -> list[tuple[str, Summary]]:
    """Return the summary over all data sets, if any, then one per group, each with a suffix that names the group."""
    summaries = [("", report.summaries.get(metric))]
    summaries += [(f", {escape(group.name)}", group.summaries.get(metric)) for group in report.groups]
    return [(suffix, summary) for suffix, summary in summaries if summary is not None]


def _data_set_table(report: CompareReport, metric: str) -> LatexTable:
    """Return the table of a metric on every data set, with ranks and comparisons with the baseline below."""
    learners, against = report.results.learners, f"against {escape(report.baseline)}"
    with_std = len(learners) <= _MOST_WITH_STD
    rows = [
        [escape(data), *(_cell(report.metric_mean(data, name, metric), metric, with_std) for name in learners)]
        for data in report.results.data
    ]
    below = []
    for suffix, summary in _summaries(report, metric):
        ranks, pairs = summary.average_ranks, [summary.against(name, report.baseline) for name in learners]
        counts = [f"{pair.wins}/{pair.draws}/{pair.losses}" if pair else "" for pair in pairs]
        ratios = [f"{pair.ratio:.3f}" if pair and pair.ratio is not None else "" for pair in pairs]
        below += [
            [f"average rank{suffix}", *(f"{ranks[name]:.2f}" if name in ranks else "--" for name in learners)],
            [f"W/D/L {against}{suffix}", *counts],
            [f"ratio {against}{suffix}", *ratios],
        ]
    what = "Mean and standard deviation" if with_std else "Mean"
    caption = f"{what} of the {escape(metric_text(metric))}, {escape(str(report.results.protocol))}. Bold: the best"
    if metric not in COSTS:
        caption += "; italic: not significantly worse than the best (corrected resampled $t$-test, 5\\,\\%)"
    caption += "."
    overall = report.summaries.get(metric)
    if overall is not None and (test := overall.friedman) is not None:
        k, n = len(overall.average_ranks), len(overall.sets)
        caption += rf" Friedman: $\chi^2_{{{k - 1}}} = {test.chi_squared:.2f}$, "
        if test.exact_p is not None:
            caption += f"exact ${_equal_p(test.exact_p)}$"
        else:
            caption += f"${_equal_p(test.p)}$; Iman--Davenport: "
            caption += rf"$F_{{{k - 1},{(k - 1) * (n - 1)}}} = {test.f:.2f}$, ${_equal_p(test.f_p)}$"
        caption += rf"; Nemenyi's critical difference at 5\,\%: {overall.critical_difference:.3f}."
        caption += f" {escape(overall.caution)}".rstrip()
    return LatexTable(caption, ["", *map(escape, learners)], [rows, below])


def _cell(mean: MetricMean | None, metric: str, with_std: bool) -> str:
    if mean is None:
        return "--"
    digits = 1 if metric in COUNTS else 4
    text = _number(mean.mean, digits)
    text = rf"\textbf{{{text}}}" if mean.best else rf"\textit{{{text}}}" if mean.not_worse else text
    std = rf" {{\scriptsize$\pm$ {_number(mean.std, digits)}}}" if with_std and mean.std is not None else ""
    return text + std


def _number(value: float | None, digits: int) -> str:
    if value is None:
        return "--"
    if math.isinf(value):
        return r"$\infty$" if value > 0 else r"$-\infty$"
    return f"{round(value, digits) + 0.0:.{digits}f}" if abs(value) < 1000 else f"{value:.1f}"


def _equal_p(p: float) -> str:
    return f"p = {_p_text(p)}" if p >= _SMALLEST_P else f"p {_p_text(p)}"


def _p_text(p: float) -> str:
    return f"{p:.3f}" if p >= _SMALLEST_P else "<0.001"


def _pair_table(suffix: str, summary: Summary, metric: str) -> LatexTable:
    n = len(summary.sets)
    over = f"over {n} data set{'' if n == 1 else 's'}{suffix}"
    caption = (
        f"All pairs of learners by {escape(metric_text(metric))} {over}: wins, draws and losses of the first learner"
    )
    if summary.friedman is None:
        caption += ", and the geometric mean of ratios."
        header = ["first", "second", "W/D/L", "ratio"]
    else:
        caption += (
            " with the sign test, Wilcoxon's signed-rank test (Holm: adjusted over all pairs), the one-sided paired "
            "$t$-test of whether the first is better, and the geometric mean of ratios."
        )
        header = ["first", "second", "W/D/L", "sign $p$", "Wilcoxon $p$", "Holm $p$", "$t$ $p$", "ratio"]
    rows = []
    for pair in summary.pairs:
        cells = [escape(pair.first), escape(pair.second), f"{pair.wins}/{pair.draws}/{pair.losses}"]
        if summary.friedman is not None:
            ps = (pair.sign_p, pair.wilcoxon_p, pair.holm_all_p, pair.t_p)
            cells += [f"${_p_text(p)}$" if p is not None else "--" for p in ps]
        rows.append([*cells, _number(pair.ratio, 3)])
    return LatexTable(caption, header, [rows], names=2)


def rank_diagram(report: CompareReport, metric: str) -> Drawing | None:
    """Draw the critical-difference diagram of the average ranks; return None if nothing is tested."""
    summary = report.summaries.get(metric)
    if summary is None or summary.critical_difference is None:
        return None
    title = f"Average ranks by {metric_text(metric)} over {len(summary.sets)} data sets"
    return critical_difference_diagram(title, summary.average_ranks, summary.groups, summary.critical_difference)


def scatter_panels(report: CompareReport, metric: str) -> list[ScatterPanel]:
    """Return a panel for each learner other than the baseline, with the data sets on which both have finite values.

    Panels of costs without points are left out. Costs below a small positive value are raised to it, because their axes
    are logarithmic.
    """
    least = {"fit_seconds": 1e-9, "iterations": 0.5, "passes": 0.5}.get(metric, -math.inf)
    sign = 1 if metric in HIGHER_IS_BETTER else -1
    panels = []
    for learner in report.results.learners:
        if learner == report.baseline:
            continue
        points: list[tuple[str, float, float]] = []
        for data in report.results.data:
            across, upwards = (report.metric_mean(data, name, metric) for name in (report.baseline, learner))
            if across and upwards and math.isfinite(across.mean + upwards.mean):
                points.append((data, max(across.mean, least), max(upwards.mean, least)))
        if points or metric not in COSTS:
            counts = win_draw_loss([sign * y for _, _, y in points], [sign * x for _, x, _ in points])
            panels.append(ScatterPanel(learner, points, counts.wins, counts.draws, counts.losses))
    return panels


def scatter_drawing(report: CompareReport, metric: str, panels: Sequence[ScatterPanel]) -> Drawing:
    """Draw the scatter plots of a metric, with one point per data set."""
    title = f"{metric_text(metric)} on each data set: every learner against {report.baseline}"
    lower_is_better, logarithmic = metric not in HIGHER_IS_BETTER, True if metric in COSTS else None
    return scatter_plots(title, report.baseline, panels, lower_is_better=lower_is_better, logarithmic=logarithmic)


@dataclass(frozen=True)
class LatexTable:
    """A caption, column headings and blocks of rows, all as LaTeX code; the first `names` columns are left-aligned."""

    caption: str
    header: Sequence[str]
    blocks: Sequence[Sequence[Sequence[str]]]
    names: int = 1


def write_tables(path: str, tables: Iterable[LatexTable]) -> None:
    text = _LATEX_HEAD
    for table in tables:
        columns = "l" * table.names + "r" * (len(table.header) - table.names)
        lines = [
            r"\begin{table}",
            r"\centering",
            r"\footnotesize",
            rf"\caption{{{table.caption}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            _row(table.header),
        ]
        for block in table.blocks:
            if block:
                lines += [r"\midrule", *map(_row, block)]
        lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
        text += "\n" + "\n".join(lines) + "\n"
    write_bytes(path, text.encode("utf-8", "replace"))


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def escape(text: str) -> str:
    """Return LaTeX code that prints a string, after `printable`; `"` becomes `''`, and `--` does not become a dash."""
    return "".join(_LATEX_ESCAPES.get(letter, letter) for letter in printable(text)).replace("--", "-{}-{}")
