"""`bncli discretize`: learn cut points; write a cuts file or the binned table, or show the cuts."""

from __future__ import annotations

from typing import Any

from bncli.cli import learning_options as learning
from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.options import output_flag
from bncli.cli.terminal_tables import attribute_table

EXAMPLES = """\
bncli discretize data.csv                                  show the cuts
bncli discretize train.csv --cuts-out cuts.json            a file for --cuts
bncli discretize data.csv --discretize equal-width --bins 5 -o binned.csv
"""

CUTS_OUT = output_flag("--cuts-out", metavar="FILE", help="Write the cuts file.")


@declare(
    "discretize",
    EXAMPLES,
    (options.data,),
    learning.CUTTING,
    options.TABLE,
    (
        options.output("The binned table as CSV: intervals in place of numbers, without rows of weight 0."),
        CUTS_OUT,
    ),
    options.RUNNING,
    more="Without -o and --cuts-out, the cuts are printed.",
)
def command(**typed: Any) -> None:
    """Learn the cuts and write them, or show them if no file was named."""
    resolved = learning.resolve_learning_options(typed)
    source = options.source(typed, typed["data"])
    from bncli.steps.discretize import discretize
    from bncli.watch import Run

    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        console.notes(resolved.notes)
        report = discretize(
            source,
            resolved.recipe,
            supplied=resolved.supplied,
            cuts_out=options.output_path(typed["cuts_out"]),
            output=options.output_path(typed["output"]),
            run=Run(options.threads(typed), watch=console.watch),
        )
        written = [f"written     {path}" for path in (report.cuts_file, report.table) if path]
        console.finish(report, [f"rows        {report.rows:,}", f"cuts        {report.n_cuts:,}", *written])
        if not console.as_json and not written:
            console.tables(attribute_table(report.attributes))
