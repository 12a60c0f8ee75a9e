"""`bncli discretize`: cut points as a file, a binned table, or a table to look at."""

from __future__ import annotations

from typing import Any

from bncli.cli import learning_options as learning
from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.options import flag

EXAMPLES = """\
bncli discretize data.csv                                  show the cuts
bncli discretize train.csv --cuts-out cuts.json            a file for --cuts
bncli discretize data.csv --discretize equal-width --bins 5 -o binned.csv
"""

CUTS_OUT = flag("--cuts-out", group="Output", metavar="FILE", help="The cuts file.")


@declare(
    "discretize",
    EXAMPLES,
    (options.data,),
    learning.CUTTING,
    options.TABLE,
    (
        options.output("The binned table, as CSV: intervals in place of numbers; rows of weight 0 are left out."),
        CUTS_OUT,
    ),
    options.RUNNING,
    more="Without -o and --cuts-out the cuts are shown.",
)
def command(**typed: Any) -> None:
    """Learn the cuts; shows them when no file is asked for."""
    chosen = learning.learning(typed)
    source = options.source(typed, typed["data"])
    from bncli.steps.discretize import discretize
    from bncli.watch import Run

    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        console.notes(chosen.notes)
        report = discretize(
            source,
            chosen.recipe,
            supplied=chosen.supplied,
            cuts_out=options.named(typed["cuts_out"]),
            output=options.output_path(typed),
            run=Run(options.threads(typed), watch=console.watch),
        )
        written = [f"written     {path}" for path in (report.cuts_file, report.table) if path]
        console.summary([f"rows        {report.rows:,}", f"cuts        {report.n_cuts:,}", *written])
        if console.as_json:
            console.json(report)
        elif not written:
            from bncli.cli.tables import attribute_table

            console.tables(attribute_table(report.attributes))
