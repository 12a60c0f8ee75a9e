"""`bncli monitor`: what `score --monitor` wrote, week after week, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.options import Paths, flag
from bncli.cli.pages import REPORT, check_page, write_page

if TYPE_CHECKING:
    from rich.table import Table

    from bncli.engine.prediction.monitoring import Monitor
    from bncli.files.pictures.page import Page
    from bncli.steps.monitor import MonitorReport

EXAMPLES = """\
bncli monitor week1.json week2.json week3.json
bncli monitor weeks/*.json --svg drift.svg --json > drift.json
bncli monitor weeks/*.json --report weeks.html            one page to look at
"""

MONITORS = click.argument("monitors", nargs=-1, required=True, metavar="MONITOR.json...", cls=Paths)
SVG = flag(
    "--svg",
    group="Output",
    metavar="FILE.svg",
    setting=False,
    help="Draw the PSI of the attributes that drifted farthest, a curve each.",
)
_BARS = "▁▂▃▄▅▆▇█"
_FULL = 0.25
"""The PSI from which on a bar is full; that is called a large change."""


@declare(
    "monitor",
    EXAMPLES,
    (MONITORS,),
    (SVG, REPORT, options.JSON, options.QUIET),
    (options.CONFIG, options.DEBUG),
    more="The files are of one model, and their order is that of time. The exit code is 0 whether anything has drifted "
    "or not.",
)
def command(**typed: Any) -> None:
    """Join monitors, and shows each attribute over them."""
    from bncli.steps.monitor import monitor

    check_page(typed, *typed["monitors"], typed["svg"])
    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        report = monitor(typed["monitors"], typed["svg"])
        write_page(typed, lambda: _page(report))
        if console.as_json:
            console.json(report)
        else:
            # A line per file, and one for all of them.
            from bncli.cli.tables import add_row, plain_table

            headings = ("monitor", "rows", "confidence", "ln P(x)", "log-loss", "drifted")
            table = plain_table(_title(report), *headings, numbers=(1, 2, 3, 4))
            for name, one in zip(report.short_names, report.monitors, strict=True):
                add_row(table, name, *_figures(one))
            if len(report.files) > 1:
                add_row(table, "all", *_figures(report.whole))
            console.tables(table, _attributes(report))


def _page(report: MonitorReport) -> Page:
    from bncli.steps.report.monitor_page import monitoring_page

    return monitoring_page(report)


def _title(report: MonitorReport) -> str:
    model = report.whole.model
    return f"{model.class_name} ({', '.join(model.labels)}), a model of {model.rows:,} rows"


def _figures(one: Monitor) -> tuple[str, ...]:
    tally = one.tally
    numbers = (tally.confidence.mean, tally.log_p.mean, tally.log_loss.mean)
    shown = ("" if number is None else f"{number:.3f}" for number in numbers)
    return f"{tally.rows:,}", *shown, ", ".join(one.drifted[:3]) + (", ..." if len(one.drifted) > 3 else "")


def _attributes(report: MonitorReport) -> Table:
    """Return a line an attribute: a bar per monitor, the last and the highest PSI, and how often it drifted."""
    from bncli.cli.tables import add_row, plain_table

    headings = ("attribute", "PSI", "last", "highest", "missing", "unseen", "drifted")
    table = plain_table(f"bars full at PSI {_FULL:g}", *headings, numbers=(2, 3, 4, 5, 6))
    tallies = {one.name: one for one in report.whole.tally.attributes}
    rows = max(report.whole.tally.rows, 1)
    for name in report.names:
        drifts, tally = report.drifts(name), tallies[name]
        known = [drift.psi for drift in drifts if drift.psi is not None]
        figures = [f"{psi:.3f}" for psi in (known[-1], max(known))] if known else ["", ""]
        shares = (f"{count / rows:.1%}" for count in (tally.missing, tally.unseen))
        times = sum(drift.drifted for drift in drifts)
        add_row(table, name, "".join(_bar(drift.psi) for drift in drifts), *figures, *shares, f"{times:,}")
    return table


def _bar(psi: float | None) -> str:
    """Return a letter as high as the index; a blank for none."""
    if psi is None:
        return " "
    return _BARS[min(int(psi / _FULL * len(_BARS)), len(_BARS) - 1)]
