"""`bncli report`: one page to look at, about a model and what it says of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bncli.cli import options, pages
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.options import Paths, flag
from bncli.errors import UsageError

if TYPE_CHECKING:
    from bncli.steps.report.report import ReportReport

EXAMPLES = """\
bncli report data.bnc --data test.csv -o report.html     all of it, in one file that opens in any browser
bncli report data.bnc -o report.html                     what needs no data
bncli report data.bnc test.csv -o report.html --svg pictures
bncli report data.bnc test.csv --by sex -o report.html             and for whom it is good
bncli report data.bnc test.csv --beside nb.bnc -o report.html      beside another model
"""

MODEL = click.argument("model", metavar="MODEL", cls=Paths)
TESTED = click.argument("tested", nargs=-1, metavar="[DATA...]", cls=Paths)
DATA = flag(
    "--data",
    group="Data",
    multiple=True,
    metavar="FILE",
    setting=False,
    help="The same as DATA, the labelled rows that the model has not seen; may be repeated.",
)
PICTURES = flag("--svg", group="Output", metavar="DIR", help="Every picture as a file of its own too, in this folder.")


@declare(
    "report",
    EXAMPLES,
    (MODEL, TESTED),
    (DATA, *options.MISSING, options.POSITIVE, *options.FORMAT, *options.BAD_ROWS),
    options.UNSEEN,
    options.MISSING_COLUMNS,
    (options.BY,),
    (pages.BESIDE,),
    (options.output("The page [MODEL with the ending .html]."), PICTURES),
    (options.JSON, options.QUIET, options.THREADS, options.CONFIG, options.DEBUG),
    more="DATA are labelled rows that the model has not seen; without them the page says what needs no data. It holds "
    "figures, curves and tables, never rows; it loads nothing and opens offline.",
)
def command(**typed: Any) -> None:
    """Gathers, writes, and says what was written."""
    if typed["model"] == "-":
        raise UsageError("a model cannot be read from the standard input", hint="name its file")
    from bncli.files.paths import default_output_path
    from bncli.steps.report.report import Comparisons, report
    from bncli.watch import Run

    data = (*typed["tested"], *typed["data"])
    idle = [name for name in ("--by", "--beside") if typed[name[2:]]] if not data else []
    if idle:
        raise UsageError(
            f"{idle[0]} has no effect without --data", hint="name labelled rows: bncli report MODEL TEST.csv"
        )
    output = options.output_path(typed) or default_output_path((typed["model"],), ".html")
    source = options.source(typed, data) if data else None
    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        run = Run(options.threads(typed), watch=console.watch)
        others = Comparisons(typed["by"], typed["beside"])
        found = report(
            typed["model"],
            source,
            output=output,
            svg=typed["svg"],
            unseen=typed["unseen"],
            positive=typed["positive"],
            others=others,
            run=run,
        )
        console.summary(summary(found))
        if console.as_json:
            console.json(found)


def summary(report: ReportReport) -> list[str]:
    """Return the end of a run in a few lines."""
    rows = "no data" if report.rows is None else f"{report.rows:,} rows"
    lines = [f"page        {len(report.sections)} sections, {report.bytes:,} bytes, {rows}"]
    if report.pictures:
        lines.append(f"pictures    {len(report.pictures):,}")
    return [*lines, f"written     {report.output}"]
