"""`bncli count`: count the rows of a table, and write a counts file, which can be merged with others."""

from __future__ import annotations

from typing import Any

from bncli import catalogue
from bncli.cli import learning_options as learning
from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.model_text import counts_lines, seconds_text
from bncli.cli.options import flag
from bncli.errors import UsageError

EXAMPLES = """\
bncli count part-07.csv --cuts cuts.json                   writes part-07.counts: all pairs, as nb, tan and kdb need
bncli count jan.parquet --cuts cuts.json --structure kdb.json -o jan.counts
"""

STRUCTURE = flag(
    "--structure",
    group=catalogue.STRUCTURE,
    metavar="pairs|FILE",
    default_text="pairs",
    setting=False,
    help="Count the tables of this structure, or of all pairs of attributes (pairs).",
)
_PAIRS = "pairs"


@declare(
    "count",
    EXAMPLES,
    (options.data,),
    (learning.CUTS_FILE, STRUCTURE),
    options.TABLE,
    (options.output("The counts file [NAME.counts beside DATA]."),),
    options.RUNNING,
)
def command(**typed: Any) -> None:
    """Count a table and write the counts file."""
    from bncli.files.reading.column_roles import is_codes_table

    coded = is_codes_table(typed["data"])
    if coded and typed["cuts"] is not None:
        what = f"--cuts has no effect on {typed['data'][0]}, whose rows are codes"
        raise UsageError(what, hint="leave --cuts out")
    if not coded and typed["cuts"] is None:
        what = "--cuts FILE is missing: counts can be merged only if all parts have the same cuts"
        raise UsageError(what, hint="to write one, type bncli discretize SAMPLE --cuts-out cuts.json")
    source = options.source(typed, typed["data"])
    from bncli.steps.count import count
    from bncli.steps.learning_inputs import read_supplied
    from bncli.watch import Run

    structure = typed["structure"]
    supplied = read_supplied(typed["cuts"], None if structure in (None, _PAIRS) else structure)
    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        run = Run(options.threads(typed), watch=console.watch)
        report = count(source, supplied, output=options.output_path(typed["output"]), run=run)
        lines = [
            *counts_lines(report.counted),
            f"seconds     {seconds_text(report.seconds)}",
            f"counts      {report.counts}",
        ]
        console.finish(report, lines)
