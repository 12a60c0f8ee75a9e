"""`bncli monitor`: a table beside the training rows of a model; what was counted so, week after week, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.options import Paths, flag
from bncli.cli.pages import REPORT, check_page, write_page
from bncli.cli.score import refuse_terminal
from bncli.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from bncli.engine.prediction.monitoring import Monitor
    from bncli.files.pictures.page import Page
    from bncli.steps.monitor import MonitorReport

EXAMPLES = """\
bncli monitor data.bnc new.csv                            have these rows drifted from those of training?
bncli monitor data.bnc week1.csv -o week1.json --fail-on-drift
bncli monitor week1.json week2.json week3.json
bncli monitor weeks/*.json --svg drift.svg --json > drift.json
bncli monitor weeks/*.json --report weeks.html            one page to look at
"""

FILES = click.argument("files", nargs=-1, required=True, metavar="MODEL [DATA...]|MONITOR.json...", cls=Paths)
SVG = flag(
    "--svg",
    group="Output",
    metavar="FILE.svg",
    setting=False,
    help="Draw the PSI of the attributes that drifted farthest, a curve each.",
)
ROWS = (
    *options.MISSING,
    *options.UNSEEN,
    *options.MISSING_COLUMNS,
    *options.FORMAT,
    *options.BAD_ROWS,
)
FAIL = flag(
    "--fail-on-drift",
    group="Output",
    is_flag=True,
    help="Exit with code 4 where values have drifted from those of training.",
)
_BARS = "▁▂▃▄▅▆▇█"
_FULL = 0.25
"""The PSI from which on a bar is full; that is called a large change."""


@declare(
    "monitor",
    EXAMPLES,
    (FILES,),
    ROWS,
    (options.output("Where what was counted goes, to be joined with that of other rows."), FAIL),
    (SVG, REPORT, options.JSON, options.QUIET),
    (options.THREADS, options.CONFIG, options.DEBUG),
    more="After a MODEL come rows (or the standard input), which are counted beside those of training; no score is "
    "written. MONITOR.json are such counts, of one model, and their order is that of time. The exit code is 0 whether "
    "anything has drifted or not, unless --fail-on-drift is typed.",
)
def command(**typed: Any) -> None:
    """Count rows beside those of training, or join what was counted; show each attribute."""
    first, *data = typed["files"]
    of_rows = is_model(first)
    _refuse_idle(typed, of_rows)
    check_page(typed, *typed["files"], typed["svg"], typed["output"])
    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        if of_rows:
            from bncli.steps.monitor import monitor_rows
            from bncli.watch import Run

            report = monitor_rows(
                first,
                options.source(typed, tuple(data) or ("-",)),
                output=options.output_path(typed),
                svg=typed["svg"],
                unseen=typed["unseen"],
                run=Run(options.threads(typed), watch=console.watch),
            )
        else:
            from bncli.steps.monitor import monitor

            report = monitor(typed["files"], typed["svg"])
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
        if of_rows:
            from bncli.cli.score_tables import monitor_lines
            from bncli.steps.score import MonitorSummary

            summary = MonitorSummary(report.files[0], report.whole)
            console.summary(monitor_lines(summary, typed["fail_on_drift"]))
            if typed["fail_on_drift"]:
                summary.refuse_drift()


def is_model(path: str) -> bool:
    """Return whether a file is a model, and no monitor; a file that cannot be read is neither."""
    from bncli.files.artifacts.file_kinds import HEAD_BYTES, recognise

    try:
        with open(path, "rb") as file:
            return recognise(file.read(HEAD_BYTES)).kind == "model"
    except OSError:
        return False


def _refuse_idle(typed: Mapping[str, Any], of_rows: bool) -> None:
    """Raise UsageError for what has no effect on monitors, and where there are no rows to count."""
    if of_rows:
        refuse_terminal(typed["files"][1:])
        return
    for word in ("missing", "unseen", "allow_missing_columns", "format", "delimiter", "encoding", "names", "output"):
        if typed[word]:
            what = f"--{word.replace('_', '-')} has no effect on monitors: they hold counts, and no rows"
            raise UsageError(what, hint="name a MODEL and rows: bncli monitor MODEL DATA")
    if typed["fail_on_drift"]:
        raise UsageError("--fail-on-drift goes with rows, not with monitors", hint="bncli monitor MODEL DATA")


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
