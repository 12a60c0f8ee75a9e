"""`bncli compare`: cross-validate several learners on several data sets, with tests of their differences."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import click

from bncli.catalogue import STRUCTURES
from bncli.catalogue.option_kinds import Integer
from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.config import refuse_cluster
from bncli.cli.console import Console, page_width
from bncli.cli.learning_options import PRESETS, help_rows, notes_about_coded_tables, parse_learners
from bncli.cli.options import flag, integer, other_flag, output_flag, without_settings
from bncli.cli.terminal_tables import TextColumn, add_row, fitted_tables, plain_table, shortened
from bncli.errors import BncliError, UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from bncli.steps.compare.analysis import CompareReport, MetricMean, Summary

EXAMPLES = """\
bncli compare data.csv                                      a few good learners on one table
bncli compare sets/*.csv --preset zaidi --repeats 5 --folds 2 --groups rows:10000 --resume zaidi.jsonl
bncli compare sets/*.csv --preset papers --metric log-loss --metric fit-seconds --resume papers.jsonl
bncli compare a.csv b.csv c.csv --learner "--structure tan" \\
    --learner "best=--structure kdb --k 2 --param map --smoothing hdp" --metric log-loss --json
"""
_protocol_flag = partial(flag, group="Protocol")
_conclusion_flag = partial(flag, group="Conclusions")
_LEARNERS = "Learners"
LEARNERS = (
    flag(
        "--learner",
        group=_LEARNERS,
        metavar="[NAME=]OPTIONS",
        multiple=True,
        help="A learner: options of bncli fit in quotes, as in NAME='--structure tan'. May be repeated.",
    ),
    flag(
        "--preset",
        group=_LEARNERS,
        metavar="NAME",
        type=click.Choice(list(PRESETS)),
        multiple=True,
        default_text="fast, unless --learner is given",
        words=tuple((word, what) for word, (what, _) in PRESETS.items()),
        help="Add a list of learners that are often compared, after those of --learner.",
    ),
)
PROTOCOL = (
    _protocol_flag(
        "--folds", type=integer(2), default_text="5", help="Number of stratified folds; with --time, of blocks."
    ),
    _protocol_flag(
        "--repeats",
        type=integer(1),
        default_text="1",
        help="Repeat N times with new random folds; from 2 on, bias and variance are reported too.",
    ),
    _protocol_flag(
        "--resume",
        metavar="FILE",
        help="Save each result in FILE as soon as it is known, and continue an interrupted run from FILE.",
    ),
)
CONCLUSIONS = (
    _conclusion_flag(
        "--metric",
        metavar="NAME",
        multiple=True,
        default_text="error log-loss rmse",
        help="The metric to compare: accuracy, error, log-loss, rmse, brier, auc, ece, cll, balanced-accuracy, mcc, "
        "or the cost of learning a fold: fit-seconds (CPU time), iterations, or passes (over the rows). May be "
        "repeated.",
    ),
    _conclusion_flag(
        "--groups",
        everyday=False,
        metavar="rows:N[,N]",
        multiple=True,
        help="Also summarize the tables with fewer than N rows, and those with N or more, separately.",
    ),
    _conclusion_flag(
        "--baseline", metavar="NAME", default_text="the first learner", help="The learner to compare the others with."
    ),
)
OUTPUT = (
    output_flag("--csv", everyday=False, metavar="FILE", help="Write all results, one row per fold."),
    output_flag("--latex", everyday=False, metavar="FILE", help="Write the tables as LaTeX."),
    output_flag(
        "--diagram",
        everyday=False,
        metavar="FILE.svg",
        help="Draw the average ranks by the first metric; bars join learners that do not differ significantly.",
    ),
    output_flag(
        "--scatter",
        everyday=False,
        metavar="FILE.svg",
        help="Plot every learner against the baseline, one dot per table.",
    ),
    options.REPORT,
    options.JSON,
    options.QUIET,
)
JOBS = other_flag(
    "--jobs", type=integer(1), default_text="all cores", help="Number of processes; it never changes a result."
)


@declare(
    "compare",
    EXAMPLES,
    (options.data,),
    LEARNERS,
    PROTOCOL,
    CONCLUSIONS,
    (*options.TABLE, *options.SPLIT),
    options.UNSEEN,
    OUTPUT,
    (options.SEED, JOBS, options.CLUSTER, options.CONFIG, options.DEBUG),
    more="Each DATA is one data set; the files of a folder form one data set. The options about tables apply to all "
    "data sets. All learners see the same folds, and cuts and structure are learned anew inside every fold.",
    notes=("Options of a learner", help_rows()),
)
def command(**typed: Any) -> None:
    """Run the comparison and print its tables; a learner that failed on a data set is an error at the end."""
    if typed["resume"] == "-":
        raise UsageError(
            "--resume cannot use the standard output: it reads the file again", hint="give the path of a file"
        )
    if typed["jobs"]:
        refuse_cluster(typed, "--jobs: the number of threads of a cluster is set when its workers are started")
    learners = parse_learners(typed["learner"], typed["preset"], typed["seed"])
    typed = without_settings(typed, "repeats" if typed["time"] else "window")
    if typed["time"] and (typed["repeats"] or 1) > 1:
        hint = "leave one of them out"
        raise UsageError("--repeats has no effect with --time, because blocks are not drawn at random", hint=hint)
    if typed["window"] and not typed["time"]:
        raise UsageError("--window has no effect without --time", hint="add --time COLUMN")
    for word in typed["data"]:
        if word in STRUCTURES.words and not os.path.exists(word):
            hint = f'to compare this structure, type --learner "--structure {word}"'
            raise BncliError("no such file", where=word, hint=hint)
    # the protocol contains the window
    sources = [options.source(typed | {"window": None}, (path,)) for path in typed["data"]]
    options.check_page(typed, *(typed[name] for name in ("csv", "latex", "diagram", "scatter")))
    from bncli.engine.evaluation.cross_validation import Protocol
    from bncli.steps.compare.compare import DEFAULT_METRICS, CompareOutputs, ComparisonSettings, compare
    from bncli.watch import Run

    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        console.notes(notes_about_coded_tables(learners, sources))
        report = compare(
            sources,
            learners,
            Protocol(
                typed["folds"] or 5,
                typed["repeats"] or 1,
                typed["seed"],
                by_time=typed["time"] is not None,
                window=typed["window"],
            ),
            settings=ComparisonSettings(
                [name.replace("-", "_") for name in typed["metric"]] or DEFAULT_METRICS,
                typed["baseline"],
                _row_bounds(typed["groups"]),
            ),
            unseen=typed["unseen"] or "average",
            outputs=CompareOutputs(
                csv=options.output_path(typed["csv"]),
                latex=options.output_path(typed["latex"]),
                diagram=options.output_path(typed["diagram"]),
                scatter=options.output_path(typed["scatter"]),
                resume=typed["resume"],
                show=lambda report: (
                    console.json(report) if console.as_json else console.tables(*comparison_tables(report))
                ),
            ),
            run=Run(options.threads({"threads": typed["jobs"]}), watch=console.watch, cluster=typed["cluster"]),
        )
    if typed["report"]:
        from bncli.steps.report.command_pages import comparison_page
        from bncli.steps.report.report import write_page

        write_page(typed["report"], comparison_page(report))
    if report.gaps:
        # The exit code must show scripts that the tables have gaps.
        (data, learner), reason = next(iter(report.gaps.items()))
        more = f" (and {len(report.gaps) - 1} more)" if len(report.gaps) > 1 else ""
        raise BncliError(f"learner {learner!r} failed on {data}{more}: {reason}")


def _row_bounds(texts: Sequence[str]) -> tuple[int, ...]:
    """Parse strings such as `rows:1000,10000` into integers; raise UsageError unless they are valid and increasing."""
    bounds: list[int] = []
    for text in texts:
        key, _, numbers = text.partition(":")
        if key != "rows" or not numbers:
            hint = "give numbers of rows, as in --groups rows:10000"
            raise UsageError(f"--groups {text} does not define groups", hint=hint)
        for number in numbers.split(","):
            try:
                bounds.append(int(Integer(1).parse(number)))
            except ValueError as error:
                raise UsageError(f"in --groups {text}, {error}") from error
    if any(b <= a for a, b in pairwise(bounds)):
        raise UsageError(f"the numbers of rows in --groups are not increasing: {', '.join(map(str, bounds))}")
    return tuple(bounds)


_MOST_WITH_STD = 6
"""The maximum number of learners whose means are printed with standard deviations; more do not fit on a line."""
_MOST_IN_PAIRS = 4
"""The maximum number of learners for which all pairs are compared; more are compared only with the baseline."""
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
"""The columns of ranks and tests, in order, with their meaning; a line has at most 80 characters."""
_WITHOUT_TESTS = ("rank", "W-D-L", "ratio")
"""The columns that are shown if there are too few data sets for tests."""


def comparison_tables(report: CompareReport) -> list[str | Table]:
    """Return the tables and lines of a report in the order in which they are printed.

    With one data set there is one table with a row per learner. With several data sets there are two tables per metric:
    its means, with a row per data set, and the ranks and tests, with a row per learner; each group of data sets adds
    another table of ranks and tests. The differences between learners come after the means. A legend is printed below
    the first table of ranks. Marks are characters after the means, because colours do not survive a pipe. A table of
    failed learners follows, if there are any. The seconds come last, because they differ from run to run.
    """
    from bncli.steps.compare.trials import COSTS

    trial = report.results
    n_rows = sum(trial.sizes[name] for name in trial.data)
    sets = f"{len(trial.data)} data sets, " if len(trial.data) > 1 else ""
    shown: list[str | Table] = [f"{sets}{n_rows:,} rows; {trial.protocol}"]
    if len(trial.data) == 1:
        (data,) = trial.data
        columns = [
            TextColumn(
                metric.replace("_", "-"),
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
    baseline = shortened(report.baseline, page_width() // 3)
    title = f"CPU seconds per fold; ratios to {baseline} are geometric means"
    columns = []
    for stage in ("fit", "score"):
        ratios = [pace.ratio[stage] for pace in report.times.values()]
        columns.append(TextColumn(f"{stage} s", [f"{pace.seconds[stage]:.3f}" for pace in report.times.values()]))
        columns.append(TextColumn("ratio", ["-" if ratio is None else f"{ratio:.2f}" for ratio in ratios]))
    seconds = fitted_tables(title, TextColumn("learner", list(report.times)), columns, "further columns")
    return [*shown, "", *seconds]


def _difference_tables(report: CompareReport, metrics: Sequence[str]) -> Iterator[str | Table]:
    """Yield the differences between all pairs of learners, or only pairs with the baseline if there are many.

    With one data set the rows are pairs and the columns metrics. With several data sets there is one metric, the rows
    are data sets, and the columns pairs. If the names of a pair are too long for a table, one line refers to --json.
    """
    shown = [each for each in report.differences if each.metric in metrics]
    if len(report.results.learners) > _MOST_IN_PAIRS:
        shown = [each for each in shown if report.baseline in (each.a, each.b)]
    if not shown:
        return
    if max(len(f"{each.a} - {each.b}") for each in shown) > page_width() // 3:
        yield "Differences: see --json, or use shorter learner names"
        return
    names = [metric.replace("_", "-") for metric in metrics if any(each.metric == metric for each in shown)]
    cells = dict[tuple[str, str], str]()
    for each in shown:
        pair = f"{each.a} - {each.b}"
        row, column = (pair, each.metric.replace("_", "-")) if len(report.results.data) == 1 else (each.data, pair)
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
    """Format the mean of a metric, optionally with its standard deviation, and its mark; "-" for None."""
    if figure is None:
        return "-"
    mark = _BEST if figure.best else _NOT_WORSE if figure.not_worse else " "
    std = f" ±{_number(figure.std, metric)}" if with_std and figure.std is not None else ""
    return f"{_number(figure.mean, metric)}{std} {mark}"


def _number(value: float | None, metric: str) -> str:
    """Format a value with four decimals, or with one if it is a count or its absolute value is at least 100.

    None and NaN become "-", and infinite values "∞" or "-∞".
    """
    from bncli.steps.compare.trials import COUNTS

    if value is None or math.isnan(value):
        return "-"
    if not math.isfinite(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.1f}" if abs(value) >= 100 or metric in COUNTS else f"{round(value, 4) + 0.0:.4f}"


def _tables_of_metric(report: CompareReport, metric: str) -> Iterator[str | Table]:
    """Yield the means of a metric on every data set, the differences, and the ranks and tests, if there are any."""
    data, learners = report.results.data, report.results.learners
    with_std = len(learners) <= _MOST_WITH_STD
    columns = [
        TextColumn(name, [_cell(report.metric_mean(set_, name, metric), metric, with_std) for set_ in data])
        for name in learners
    ]
    yield from fitted_tables(metric.replace("_", "-"), TextColumn("data", data), columns, "further learners")

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
    """Yield a table of the learners, sorted by average rank and compared with the baseline, then remarks."""
    from bncli.steps.compare.trials import COSTS

    # Learners with a letter in common are not significantly different.
    letters = dict.fromkeys(summary.average_ranks, "")
    for i, names in enumerate(summary.groups):
        for name in names:
            letters[name] += _LETTERS[i % len(_LETTERS)]
    baseline, n = shortened(report.baseline, page_width() // 3), len(summary.sets)
    over = f"{n} data set{'s' if n > 1 else ''}{of_group}"
    title = f"{metric.replace('_', '-')} over {over}, each learner against {baseline}"
    ranked = sorted(summary.average_ranks, key=lambda name: summary.average_ranks[name])
    cells = []
    for name in ranked:
        pair = summary.against(name, report.baseline)
        mean = _number(summary.geometric_means[name], metric)
        own = {"rank": f"{summary.average_ranks[name]:.2f}", "mean": mean, "group": letters[name]}
        if pair is None:
            own["W-D-L"] = "baseline" if name == report.baseline else "-"
        else:
            own |= {
                "W-D-L": f"{pair.wins}-{pair.draws}-{pair.losses}",
                "ratio": "-" if pair.ratio is None else f"{pair.ratio:.3f}",
                "sign p": _p_value(pair.sign_p),
                "Wilcoxon": _p_value(pair.wilcoxon_p),
                "Holm p": _p_value(pair.holm_p),
                "t p": _p_value(pair.t_p),
            }
        cells.append(own)
    columns = [
        TextColumn(heading, [of_learner.get(heading, "") for of_learner in cells], is_number=heading != "group")
        for heading in _headings(summary, metric)
    ]
    yield from fitted_tables(title, TextColumn("learner", ranked), columns, "further columns")

    # The tests of all learners together, and which data sets and learners are left out.
    remarks, test = [], summary.friedman
    if test is not None:
        if test.exact_p is not None:
            p_values = f"exact p {_p_value(test.exact_p)}"
        else:
            p_values = f"p {_p_value(test.p)}; Iman-Davenport: F {test.f:.2f}, p {_p_value(test.f_p)}"
        remarks += [
            f"Friedman: chi² {test.chi_squared:.2f}, {p_values}",
            f"Nemenyi: ranks that are at least {summary.critical_difference:.2f} apart differ significantly (5 %)",
        ]
    if summary.caution:
        remarks.append(summary.caution)
    if summary.left_out:
        remarks.append(f"Data sets left out because a learner has no figure there: {', '.join(summary.left_out)}")
    if summary.without_figures:
        why = (
            f"parameters in closed form have no {metric.replace('_', '-')}"
            if metric in COSTS
            else "they have no results"
        )
        remarks.append(f"Learners left out because {why}: {', '.join(summary.without_figures)}")
        if report.baseline in summary.without_figures:
            remarks.append(f"The baseline {report.baseline} is one of them; choose another with --baseline")
    if remarks:
        yield from (*remarks, "")


def _headings(summary: Summary, metric: str) -> list[str]:
    """Return the headings of the columns of ranks and tests; costs are not tested."""
    from bncli.steps.compare.trials import COSTS

    if metric in COSTS:
        return ["rank", "mean", "W-D-L", "ratio"]
    return [
        heading
        for heading, _ in _COLUMN_LEGEND
        if heading != "mean" and (summary.friedman or heading in _WITHOUT_TESTS)
    ]


def _p_value(p: float | None) -> str:
    """Format a p-value with four decimals; values below 0.0001 become "<0.0001", and None becomes "-"."""
    if p is None:
        return "-"
    return f"{p:.4f}" if p >= 0.0001 else "<0.0001"
