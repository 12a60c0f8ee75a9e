"""`bncli compare`: cross-validate several learners on several data sets, with tests of their differences."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import click

from bncli.catalogue import STRUCTURES
from bncli.catalogue.option_kinds import Integer
from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.learners import PRESETS, help_rows, notes_about_coded_tables, parse_learners
from bncli.cli.options import flag, integer, other_flag, output_flag
from bncli.cli.settings import refuse_cluster
from bncli.errors import BncliError, UsageError

if TYPE_CHECKING:
    from bncli.steps.compare.analysis import CompareReport

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
    notes=("Options of a learner", help_rows(show_all=False), help_rows(show_all=True)),
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
                show=partial(_print, console),
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
    """Return the ascending numbers in texts such as `rows:1000,10000`; raise UsageError for other texts."""
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


def _print(console: Console, report: CompareReport) -> None:
    if console.as_json:
        console.json(report)
    else:
        from bncli.cli.comparison_tables import comparison_tables

        console.tables(*comparison_tables(report))
