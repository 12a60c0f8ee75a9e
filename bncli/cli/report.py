"""`bncli report`: write an HTML page about a model and its predictions for a table."""

from __future__ import annotations

from typing import Any

import click

from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.options import FilePath, Paths, data_flag, output_flag
from bncli.errors import UsageError
from bncli.files.paths import default_output_path

EXAMPLES = """\
bncli report data.bnc --data test.csv -o report.html     all sections, in one file that opens in any browser
bncli report data.bnc -o report.html                     only the sections that need no data
bncli report data.bnc test.csv -o report.html --svg pictures
bncli report data.bnc test.csv --by sex -o report.html             with figures by group
bncli report data.bnc test.csv --beside nb.bnc -o report.html      beside another model
"""

MODEL = click.argument("model", metavar="MODEL", cls=FilePath)
TESTED = click.argument("tested", nargs=-1, metavar="[DATA...]", cls=Paths)
DATA = data_flag(
    "--data",
    multiple=True,
    metavar="FILE",
    setting=False,
    help="The same as DATA: labelled rows that the model has not seen. May be repeated.",
)
PICTURES = output_flag("--svg", metavar="DIR", help="Also write every picture as a file into this folder.")


@declare(
    "report",
    EXAMPLES,
    (MODEL, TESTED),
    (DATA, *options.MISSING, options.POSITIVE, *options.FORMAT, *options.BAD_ROWS),
    options.UNSEEN,
    options.MISSING_COLUMNS,
    (options.BY,),
    (options.BESIDE,),
    (options.output("The page [MODEL with the extension .html]."), PICTURES),
    (options.JSON, options.QUIET, options.THREADS, options.CONFIG, options.DEBUG),
    more="DATA are labelled rows that the model has not seen; without them the page has only the sections that "
    "need no data. It contains figures, curves and tables, but no rows; it opens without a network connection.",
)
def command(**typed: Any) -> None:
    """Write the page."""
    from bncli.steps.report.report import report
    from bncli.watch import Run

    data = (*typed["tested"], *typed["data"])
    for name in ("by", "beside"):
        if typed[name] and not data:
            hint = "give labelled rows: bncli report MODEL TEST.csv"
            raise UsageError(f"--{name} has no effect without labelled rows", hint=hint)
    output = options.output_path(typed["output"]) or default_output_path((typed["model"],), ".html")
    source = options.source(typed, data) if data else None
    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        page = report(
            typed["model"],
            source,
            output=output,
            svg=typed["svg"],
            unseen=typed["unseen"],
            positive=typed["positive"],
            by=typed["by"],
            other_paths=typed["beside"],
            run=Run(options.threads(typed), watch=console.watch),
        )
        rows = "no data" if page.rows is None else f"{page.rows:,} rows"
        pictures = [f"pictures    {len(page.pictures):,}"] if page.pictures else []
        lines = [
            f"page        {len(page.sections)} sections, {page.bytes:,} bytes, {rows}",
            *pictures,
            f"written     {page.output}",
        ]
        console.finish(page, lines)
