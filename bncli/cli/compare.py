"""`bncli compare`: which learner serves which data, and which differences are real."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import click

from bncli.catalogue.option_kinds import Integer
from bncli.cli import options, pages, settings
from bncli.cli import presets as learner_words
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.options import flag, whole
from bncli.cli.presets import PRESETS
from bncli.errors import BncliError, UsageError

if TYPE_CHECKING:
    from bncli.files.pictures.page import Page
    from bncli.steps.compare.analysis import CompareReport

EXAMPLES = """\
bncli compare data.csv                                      a few good learners on one table
bncli compare sets/*.csv --preset zaidi --repeats 5 --folds 2 --groups rows:10000 --resume zaidi.jsonl
bncli compare sets/*.csv --preset papers --metric log-loss --metric fit-seconds --resume papers.jsonl
bncli compare a.csv b.csv c.csv --learner "--structure tan" \\
    --learner "best=--structure kdb --k 2 --param map --smoothing hdp" --metric log-loss --json
"""
_LEARNERS, _PROTOCOL, _CONCLUSIONS, _OUTPUT = "Learners", "Protocol", "Conclusions", "Output"
WHO = (
    flag(
        "--learner",
        group=_LEARNERS,
        metavar="[NAME=]OPTIONS",
        multiple=True,
        help="A learner: its options (below) in quotes, with a name in front if you like; may be repeated.",
    ),
    flag(
        "--preset",
        group=_LEARNERS,
        metavar="NAME",
        type=click.Choice(list(PRESETS)),
        multiple=True,
        default_text="fast, without --learner",
        words=tuple((word, what) for word, (what, _) in PRESETS.items()),
        help="Learners that are compared together often; they come after those typed.",
    ),
)
PROTOCOL = (
    flag(
        "--folds",
        group=_PROTOCOL,
        metavar="N",
        type=whole(2),
        default_text="5",
        help="Number of folds, stratified.",
    ),
    flag(
        "--repeats",
        group=_PROTOCOL,
        metavar="N",
        type=whole(1),
        default_text="1",
        help="Do it so often, with new random folds; from 2 on bias and variance are told apart.",
    ),
    flag(
        "--resume",
        group=_PROTOCOL,
        metavar="FILE",
        help="Keep every outcome in FILE as soon as it is there; where FILE is of a run like this one, go on from it.",
    ),
)
CONCLUSIONS = (
    flag(
        "--metric",
        group=_CONCLUSIONS,
        metavar="NAME",
        multiple=True,
        default_text="error log-loss rmse",
        help="What is compared: accuracy, error, log-loss, rmse, brier, auc, ece, cll, balanced-accuracy, mcc; or what "
        "learning in a fold costs: fit-seconds (of the processor), iterations, passes over the rows; may be repeated.",
    ),
    flag(
        "--groups",
        group=_CONCLUSIONS,
        metavar="rows:N[,N]",
        multiple=True,
        help="Sum up the tables with fewer than N rows, and those with N or more, apart too.",
    ),
    flag(
        "--baseline",
        group=_CONCLUSIONS,
        metavar="NAME",
        default_text="the first learner",
        help="Whom the others are compared with.",
    ),
)
OUTPUT = (
    flag("--csv", group=_OUTPUT, metavar="FILE", help="Write every outcome, a line a fold."),
    flag("--latex", group=_OUTPUT, metavar="FILE", help="Write the tables for LaTeX."),
    flag(
        "--diagram",
        group=_OUTPUT,
        metavar="FILE.svg",
        help="Draw average ranks by the first metric, and who cannot be told apart.",
    ),
    flag(
        "--scatter",
        group=_OUTPUT,
        metavar="FILE.svg",
        help="Plot every learner against the baseline, a dot a data set.",
    ),
    pages.REPORT,
    options.JSON,
    options.QUIET,
)
JOBS = flag(
    "--jobs",
    group="Other",
    metavar="N",
    type=whole(1),
    default_text="all cores",
    help="Processes; never change a result.",
)
_ROWS = Integer(1)


@declare(
    "compare",
    EXAMPLES,
    (options.data,),
    WHO,
    PROTOCOL,
    CONCLUSIONS,
    options.TABLE,
    options.UNSEEN,
    OUTPUT,
    (options.SEED, JOBS, options.CLUSTER, options.CONFIG, options.DEBUG),
    more="Every DATA is a data set of its own; the files of a folder are one. The options of tables hold for all of "
    "them. All learners see the same folds, and cuts and structure are learnt anew inside every fold.",
    notes=("Options of a learner", learner_words.help_rows(everything=False), learner_words.help_rows(everything=True)),
)
def command(**typed: Any) -> None:
    """Run, and shows the tables."""
    if typed["resume"] == "-":
        raise UsageError("--resume needs a file that can be read again", hint="name one")
    if typed["jobs"]:
        settings.refuse_cluster(typed, "--jobs: workers have as many threads as they were started with")
    who = learner_words.learners(typed["learner"], typed["preset"], typed["seed"])
    sources = [options.source(typed, (path,)) for path in typed["data"]]
    pages.check_page(typed, *(typed[name] for name in ("csv", "latex", "diagram", "scatter")))
    from bncli.engine.evaluation.cross_validation import Protocol
    from bncli.steps.compare.compare import DEFAULT_METRICS, CompareOutputs, ComparisonSettings, compare
    from bncli.watch import Run

    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        console.notes(learner_words.idle_notes(who, sources))
        report = compare(
            sources,
            who,
            Protocol(typed["folds"] or 5, typed["repeats"] or 1, typed["seed"]),
            question=ComparisonSettings(
                [name.replace("-", "_") for name in typed["metric"]] or DEFAULT_METRICS,
                typed["baseline"],
                _bounds(typed["groups"]),
            ),
            unseen=typed["unseen"] or "average",
            outputs=CompareOutputs(
                csv=options.named(typed["csv"]),
                latex=options.named(typed["latex"]),
                diagram=options.named(typed["diagram"]),
                scatter=options.named(typed["scatter"]),
                resume=typed["resume"],
                show=lambda report: _show(console, report),
            ),
            run=Run(options.threads({"threads": typed["jobs"]}), watch=console.watch, cluster=typed["cluster"]),
        )
    pages.write_page(typed, lambda: _page(report))
    # A BncliError where a learner could not be tried: scripts must not take a gap for a result.
    if report.gaps:
        (data, learner), reason = next(iter(report.gaps.items()))
        more = f" (and {len(report.gaps) - 1} more)" if len(report.gaps) > 1 else ""
        raise BncliError(f"{learner} failed on {data}{more}: {reason}")


def _bounds(texts: Sequence[str]) -> tuple[int, ...]:
    """Return numbers of rows out of rows:N,N; UsageError for what is no such list, or does not rise."""
    bounds: list[int] = []
    for text in texts:
        key, _, numbers = text.partition(":")
        if key != "rows" or not numbers:
            raise UsageError(
                f"--groups {text} names no groups", hint="tables go by their rows, as in --groups rows:10000"
            )
        for number in numbers.split(","):
            try:
                bounds.append(int(_ROWS.parse(number)))
            except ValueError as error:
                raise UsageError(f"in --groups {text}, {error}") from error
    if any(b <= a for a, b in pairwise(bounds)):
        raise UsageError(f"the numbers of rows in --groups do not rise: {', '.join(map(str, bounds))}")
    return tuple(bounds)


def _show(console: Console, report: CompareReport) -> None:
    if console.as_json:
        console.json(report)
        return
    from bncli.cli.comparison_tables import tables

    console.tables(*tables(report))


def _page(report: CompareReport) -> Page:
    from bncli.steps.report.table_pages import comparison_page

    return comparison_page(report)
