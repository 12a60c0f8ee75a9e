"""`bncli learn-structure`: learn a structure and write it to a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bncli import catalogue
from bncli.cli import learning_options as learning
from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.model_text import acll_error_text, move_lines, regions_text, seconds_text
from bncli.cli.options import flag, integer
from bncli.errors import UsageError

if TYPE_CHECKING:
    from bncli.steps.learn_structure import StructureReport

EXAMPLES = """\
bncli learn-structure data.csv --structure tan -o tan.json    a file for --structure
bncli learn-structure train.csv --cuts cuts.json --structure kdb --k 2
"""
BOOTSTRAP = flag(
    "--bootstrap",
    group=catalogue.STRUCTURE,
    everyday=False,
    type=integer(1, 1000),
    setting=False,
    help="kikuchi: estimate the log-loss on new rows after each step, with N bootstrap resamples.",
)


@declare(
    "learn-structure",
    EXAMPLES,
    (options.data_or_counts,),
    (*learning.STRUCTURE, BOOTSTRAP),
    (*options.TABLE, *options.SPLIT, learning.FROM_COUNTS),
    (options.output("The structure file [standard output]."), options.SCORES),
    options.RUNNING,
)
def command(**typed: Any) -> None:
    """Learn the structure and write it to a file, or print it if no file was named."""
    structure = typed["structure"]
    if structure is not None and learning.is_structure_file(structure):
        what = f"--structure {structure} is a file: there is nothing to learn"
        raise UsageError(what, hint="choose " + ", ".join(catalogue.STRUCTURES.words))
    counts = learning.counts_file(typed)
    resolved, strengths = learning.resolve_with_scores(typed)
    recipe = resolved.recipe
    if recipe.structure == "auto":
        raise UsageError(
            "--structure auto learns an ensemble of models, not a structure", hint="use bncli fit --structure auto"
        )
    if typed["bootstrap"] is not None and recipe.structure != "kikuchi":
        what = f"--bootstrap has no effect with --structure {recipe.structure}"
        raise UsageError(what, hint="use it with --structure kikuchi")
    if counts is not None and typed["scores"]:
        what = "--scores needs the rows, which counts do not contain"
        raise UsageError(what, hint="leave --scores out, or learn from the table itself")
    from bncli.engine.kikuchi.search_trace import Resampling
    from bncli.files.exports.structure_json import dump_structure
    from bncli.steps.learn_structure import learn_structure, learn_structure_from_counts
    from bncli.watch import Run

    output = options.output_path(typed["output"])
    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        console.notes(resolved.notes)
        run = Run(options.threads(typed), watch=console.watch)
        if counts is not None:
            report = learn_structure_from_counts(counts, recipe, output=output, run=run)
        else:
            report = learn_structure(
                options.source(typed, typed["data"]),
                recipe,
                output=output,
                supplied=resolved.supplied,
                check=None if typed["bootstrap"] is None else Resampling(typed["bootstrap"], typed["seed"]),
                scores=strengths,
                run=run,
            )
        console.finish(report, _summary(report))
        if not console.as_json and report.structure_file is None:
            console.text(dump_structure(report.structure))


def _summary(report: StructureReport) -> list[str]:
    """Format the summary of a run as lines: rows, structure, and any moves, scores, regions and file."""
    arcs = "" if report.arcs is None else f"{report.arcs:,} arcs "
    size = f"{arcs}over {report.used:,} of {report.attributes:,} attributes and the class"
    lines = [f"rows        {report.rows:,}", f"structure   {report.structure.method}, {size}"]
    lines += move_lines(report.moves)
    if report.scored is not None:
        scores = report.scored.scores._asdict().items()
        cells = [(name, "-" if value is None else f"{value:,.4f}") for name, value in scores]
        width = max(len(text) for _, text in cells)
        lines += [f"{'' if i else 'scores':<12}{name:<5}{text:>{width}}" for i, (name, text) in enumerate(cells)]
        if report.scored.acll_relative_error is not None:
            lines[-1] += f", {acll_error_text(report.scored.acll_relative_error)}"
    if report.regions is not None:
        lines += [f"regions     {regions_text(report.regions)}", f"seconds     {seconds_text(report.seconds)}"]
    if report.structure_file is not None:
        lines.append(f"written     {report.structure_file}")
    return lines
