"""`bncli monitor`: compare rows with the training rows of a model, or combine monitor files of several periods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.options import Paths, output_flag, settings_of_run
from bncli.cli.terminal_tables import filled_table
from bncli.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from bncli.steps.monitor import MonitorReport

EXAMPLES = """\
bncli monitor data.bnc new.csv                            have these rows drifted since training?
bncli monitor data.bnc week1.csv -o week1.json --fail-on-drift
bncli monitor week1.json week2.json week3.json
bncli monitor weeks/*.json --svg drift.svg --json > drift.json
bncli monitor weeks/*.json --report weeks.html            one page to look at
"""

FILES = click.argument("files", nargs=-1, required=True, metavar="MODEL [DATA...]|MONITOR.json...", cls=Paths)
SVG = output_flag(
    "--svg",
    metavar="FILE.svg",
    setting=False,
    help="Draw the PSI of the attributes that drifted most, one curve each.",
)
ROWS = (
    *options.MISSING,
    *options.UNSEEN,
    *options.MISSING_COLUMNS,
    *options.FORMAT,
    *options.BAD_ROWS,
)
FAIL = output_flag("--fail-on-drift", is_flag=True, help="Exit with code 4 if an attribute has drifted.")
_BARS = "▁▂▃▄▅▆▇█"
_FULL_BAR = 0.25
"""The population stability index (PSI) at the end of the scale of the bars, by convention already a large change."""


@declare(
    "monitor",
    EXAMPLES,
    (FILES,),
    ROWS,
    (options.output("Write the counts to this monitor file, which can be combined with other monitor files."), FAIL),
    (SVG, options.REPORT, options.JSON, options.QUIET),
    (options.THREADS, options.CONFIG, options.DEBUG),
    more="After a MODEL, give rows as DATA or on the standard input: their counts are compared with those of "
    "training, and no scores are written. MONITOR.json files contain such counts; give those of one model, in "
    "time order. The exit code is 0 whether "
    "or not anything has drifted, unless --fail-on-drift is typed.",
)
def command(**typed: Any) -> None:
    """Count rows and compare them with the training rows, or combine such counts; print a line per attribute."""
    first, *data = typed["files"]
    if first == "-":
        options.refuse_standard_input("a model or monitor")
    from bncli.files.artifacts.file_kinds import HEAD_BYTES, recognise

    try:
        with open(first, "rb") as file:
            has_rows = recognise(file.read(HEAD_BYTES)).kind == "model"
    except OSError:
        has_rows = not first.endswith(".json")  # a file that cannot be read counts as a model
    if has_rows:
        options.refuse_terminal(data)
    else:
        about_rows = (
            "missing",
            "unseen",
            "allow_missing_columns",
            "format",
            "delimiter",
            "encoding",
            "names",
            "output",
        )
        hint = "give a MODEL and rows: bncli monitor MODEL DATA"
        for word in (*about_rows, *["on_bad_row"] * (typed["on_bad_row"] != "fail")):
            if typed[word] and word not in settings_of_run():
                what = f"--{word.replace('_', '-')} has no effect on monitors: they contain counts, not rows"
                raise UsageError(what, hint=hint)
        if typed["fail_on_drift"]:
            raise UsageError("--fail-on-drift needs rows, not monitors", hint=hint)
    options.check_page(typed, *typed["files"], typed["svg"], typed["output"])
    from bncli.steps.monitor import monitor, monitor_rows
    from bncli.watch import Note, Run

    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        if has_rows:
            report = monitor_rows(
                first,
                options.source(typed, tuple(data) or ("-",)),
                output=options.output_path(typed["output"]),
                svg=typed["svg"],
                unseen=typed["unseen"],
                run=Run(options.threads(typed), watch=console.watch),
            )
        else:
            report = monitor(typed["files"], typed["svg"])
        if typed["report"]:
            from bncli.steps.report.command_pages import monitoring_page
            from bncli.steps.report.report import write_page

            write_page(typed["report"], monitoring_page(report))
        for note in report.notes:
            console.watch(Note(note))
        if console.as_json:
            console.json(report)
        else:
            console.tables(*_tables(report))
        if has_rows:
            from bncli.steps.score import MonitorSummary

            summary = MonitorSummary(report.files[0], report.overall)
            if typed["fail_on_drift"]:
                summary.refuse_drift()
            console.summary([summary.sentence()])


def _tables(report: MonitorReport) -> Iterator[Table]:
    """Yield a table of the files, a table of the metrics of each file, and a table of the attributes.

    The metrics are those expected from the probabilities and, if any rows have labels, the measured ones. If there are
    several files, the first two tables also have a row for all files together.
    """
    rows = []
    for name, monitor in report.named_monitors:
        tally, drifted = monitor.tally, monitor.drifted
        means = (tally.confidence.mean, tally.log_p.mean, tally.log_loss.mean)
        figures = ("" if mean is None else f"{mean:.3f}" for mean in means)
        attributes = ", ".join(drifted[:3]) + (", ..." if len(drifted) > 3 else "")
        rows.append((name, f"{tally.rows:,}", *figures, attributes))
    model = report.overall.model
    title = f"{model.class_name} ({', '.join(model.labels)}), a model fitted to {model.rows:,} rows"
    headings = ("monitor", "rows", "confidence", "ln P(x)", "log-loss", "drifted")
    yield filled_table(title, headings, rows, numbers=(1, 2, 3, 4))

    # The metrics expected from the probabilities and, if rows have labels, the measured metrics.
    expected_rows = []
    has_labels = any(monitor.tally.log_loss.n for monitor in report.monitors)
    for name, monitor in report.named_monitors:
        measured = {"accuracy": monitor.accuracy, "log_loss": monitor.tally.log_loss.mean, "auc": monitor.auc}
        cells = []
        for metric, figure in monitor.expected.items():
            low_high = "" if figure.interval is None else " [{:.3f}, {:.3f}]".format(*figure.interval)
            cells.append("" if figure.value is None else f"{figure.value:.3f}{low_high}")
            if has_labels:
                own = measured[metric]
                cells.append("" if own is None else f"{own:.3f}")
        expected_rows.append((name, *cells))
    names = ("accuracy", "log-loss", "AUC")[: 3 if len(report.overall.model.labels) == 2 else 2]
    figure_names = [part for name in names for part in ((name, "measured") if has_labels else (name,))]
    title = "expected from the probabilities, with 95 % intervals"
    yield filled_table(title, ("monitor", *figure_names), [row[: len(figure_names) + 1] for row in expected_rows])

    # A line per attribute: a bar per file, the last and the highest PSI, and how often it drifted.
    tallies = {attribute.name: attribute for attribute in report.overall.tally.attributes}
    n_rows = max(report.overall.tally.rows, 1)
    attribute_rows = []
    for name in report.names:
        drifts, counts = report.drifts(name), tallies[name]
        known = [drift.psi for drift in drifts if drift.psi is not None]
        extremes = [f"{psi:.3f}" for psi in (known[-1], max(known))] if known else ["", ""]
        shares = (f"{count / n_rows:.1%}" for count in (counts.missing, counts.unseen))
        times = sum(drift.drifted for drift in drifts)
        bars = (
            " " if drift.psi is None else _BARS[int(min(drift.psi / _FULL_BAR, 1.0) * (len(_BARS) - 1))]
            for drift in drifts
        )
        attribute_rows.append((name, "".join(bars), *extremes, *shares, f"{times:,}"))
    columns = ("attribute", "PSI", "last", "highest", "missing", "unseen", "drifted")
    title = f"PSI of each attribute, a bar per file (a full bar is {_FULL_BAR:g} or more)"
    yield filled_table(title, columns, attribute_rows, numbers=(2, 3, 4, 5, 6))
