"""`bncli merge`: add up counts files."""

from __future__ import annotations

from typing import Any

import click

from bncli.catalogue.option_kinds import Real
from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.model_text import counts_lines
from bncli.cli.options import KindType, Paths, flag
from bncli.errors import UsageError

EXAMPLES = """\
bncli merge part-*.counts -o all.counts                    the order does not matter
bncli merge 2025.counts january.counts -o now.counts --decay 0.9
"""

COUNTS = click.argument("counts", nargs=-1, required=True, metavar="COUNTS...", cls=Paths)
DECAY = flag(
    "--decay",
    group="Merging",
    metavar="F",
    type=KindType(Real(above=True, below=1)),
    default_text="1",
    setting=False,
    help="Multiply the sum so far by F before each further file is added; give the files in time order.",
)
ALLOW_REPEATED = flag(
    "--allow-repeated",
    group="Merging",
    is_flag=True,
    setting=False,
    help="Add a file even if its rows have already been counted, instead of stopping.",
)


@declare(
    "merge",
    EXAMPLES,
    (COUNTS,),
    (DECAY, ALLOW_REPEATED),
    (options.output("The counts file to write; required."),),
    (options.JSON, options.QUIET, options.CONFIG, options.DEBUG),
)
def command(**typed: Any) -> None:
    """Add up the files and write the sum."""
    output = options.output_path(typed["output"])
    if output is None:
        raise UsageError("-o FILE is missing", hint="add a file for the merged counts, for example -o all.counts")
    from bncli.steps.merge import merge
    from bncli.watch import Run

    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        run = Run(watch=console.watch)
        report = merge(typed["counts"], output, decay=typed["decay"], allow_repeated=typed["allow_repeated"], run=run)
        decay = report.decay
        decayed = "" if decay is None else f"; earlier counts multiplied by {decay:g} before each further file"
        lines = [
            f"files       {report.files:,}{decayed}",
            *counts_lines(report.counted),
            f"counts      {report.counts}",
        ]
        console.finish(report, lines)
