"""`bncli learn-structure`: a structure file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bncli import catalogue
from bncli.cli import learning_options as learning
from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.model_tables import move_lines, regions_text, score_lines
from bncli.cli.options import flag, whole
from bncli.errors import UsageError

if TYPE_CHECKING:
    from bncli.steps.learn_structure import StructureReport
    from bncli.watch import Run

EXAMPLES = """\
bncli learn-structure data.csv --structure tan -o tan.json    a file for --structure
bncli learn-structure train.csv --cuts cuts.json --structure kdb --k 2
"""
BOOTSTRAP = flag(
    "--bootstrap",
    group=catalogue.STRUCTURE,
    everyday=False,
    metavar="N",
    type=whole(1, 1000),
    setting=False,
    help="Tell what each step of kikuchi would lose on new rows, by N bootstrap resamples.",
)


@declare(
    "learn-structure",
    EXAMPLES,
    (options.data_or_counts,),
    (*learning.STRUCTURE, BOOTSTRAP),
    (*options.TABLE, learning.FROM_COUNTS),
    (options.output("The structure file [standard output]."), options.SCORES),
    options.RUNNING,
)
def command(**typed: Any) -> None:
    """Learn the structure; prints its file when no other place is named."""
    learning.refuse_structure_file(typed["structure"])
    counts = learning.counts_file(typed)
    chosen = learning.learning(typed)
    learning.refuse_auto(chosen.recipe.structure)
    _refuse_bootstrap(typed["bootstrap"], chosen.recipe.structure)
    scores = typed["scores"]
    if counts is not None and scores:
        what = "--scores compares acll with the rows' own likelihood, and counts do not hold the rows"
        raise UsageError(what, hint="leave it out, or learn from the table itself")
    from bncli.watch import Run

    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        console.notes(chosen.notes)
        report = _learnt(typed, chosen, counts, Run(options.threads(typed), watch=console.watch))
        console.summary(summary(report))
        if console.as_json:
            console.json(report)
        elif report.structure_file is None:
            from bncli.files.exports.structure_json import dump_structure

            console.text(dump_structure(report.structure))


def _refuse_bootstrap(resamples: int | None, structure: str) -> None:
    if resamples is not None and structure != "kikuchi":
        what = f"--bootstrap has no effect with --structure {structure}"
        raise UsageError(what, hint="it goes with --structure kikuchi")


def _learnt(typed: dict[str, Any], chosen: learning.Learning, counts: str | None, run: Run) -> StructureReport:
    from bncli.engine.kikuchi.search_trace import Resampling
    from bncli.steps.learn_structure import learn_structure, learn_structure_from_counts

    output = options.output_path(typed)
    if counts is not None:
        return learn_structure_from_counts(counts, chosen.recipe, output=output, run=run)
    return learn_structure(
        options.source(typed, typed["data"]),
        chosen.recipe,
        output=output,
        supplied=chosen.supplied,
        check=None if typed["bootstrap"] is None else Resampling(typed["bootstrap"], typed["seed"]),
        scores=typed["scores"],
        run=run,
    )


def summary(report: StructureReport) -> list[str]:
    """Return the end of a search in a few lines."""
    regions = report.regions
    seconds = "  ".join(f"{stage} {value:.2f}" for stage, value in report.seconds.items())
    arcs = "" if report.arcs is None else f"{report.arcs:,} arcs "
    size = f"{arcs}over {report.used:,} of {report.attributes:,} attributes and the class"
    return [
        f"rows        {report.rows:,}",
        f"structure   {report.structure.method}, {size}",
        *move_lines(report.moves),
        *([] if report.scored is None else score_lines(report.scored)),
        *([] if regions is None else [f"regions     {regions_text(regions)}", f"seconds     {seconds}"]),
        *([] if report.structure_file is None else [f"written     {report.structure_file}"]),
    ]
