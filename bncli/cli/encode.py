"""`bncli encode`: write a table as a `.codes` file, which learning commands accept in its place."""

from __future__ import annotations

from typing import Any

from bncli.cli import learning_options as learning
from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.config import cluster_for_files
from bncli.cli.console import Console

EXAMPLES = """\
bncli encode parts/ -o all.codes                           every file of the folder is a part of one table
bncli encode new.parquet --cuts cuts.json -o new.codes
bncli encode old.csv --class sick -o old.codes             then: bncli fit old.codes
"""


@declare(
    "encode",
    EXAMPLES,
    (options.data,),
    learning.CUTTING,
    options.TABLE,
    (options.output("The file of codes [NAME.codes beside DATA]."),),
    (*options.RUNNING, options.CLUSTER),
    more="The file is an Arrow file; fit maps it into memory.",
)
def command(**typed: Any) -> None:
    """Write the codes and print a summary of them."""
    resolved = learning.resolve_learning_options(typed)
    source = options.source(typed, typed["data"])
    from bncli.steps.encode import encode
    from bncli.watch import Run

    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        console.notes(resolved.notes)
        report = encode(
            source,
            resolved.recipe,
            output=options.output_path(typed["output"]),
            supplied=resolved.supplied,
            run=Run(options.threads(typed), watch=console.watch, cluster=cluster_for_files(typed, source)),
        )
        lines = [
            f"rows        {report.rows:,}, {report.classes:,} classes",
            f"attributes  {report.attributes:,}, {report.cuts:,} cuts",
            f"written     {report.codes} ({report.bytes:,} bytes)",
        ]
        console.finish(report, lines)
