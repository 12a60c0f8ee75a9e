"""`bncli explain`: the effects of a model, or the largest contributions to the prediction of each row, as bars."""

from __future__ import annotations

from typing import Any

import click

from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.options import FilePath, Paths, integer, output_flag, settings_of_run
from bncli.cli.terminal_tables import bar, effect_tables, signed
from bncli.errors import UsageError

EXAMPLES = """\
bncli explain data.bnc
bncli explain data.bnc new.csv --rows 17
bncli explain data.bnc new.csv --rows 1-3 --top 8
bncli explain data.bnc new.csv --json | jq '.rows[0]'
"""
MODEL = click.argument("model", metavar="MODEL", cls=FilePath)
DATA = click.argument("data", nargs=-1, metavar="[DATA...]", cls=Paths)
_DEFAULT_TOP = 5


@declare(
    "explain",
    EXAMPLES,
    (MODEL, DATA),
    (
        output_flag(
            "--rows",
            metavar="N|A-B",
            setting=False,
            default_text="all",
            help="Explain only row N, or rows A to B; the first row below the header is 1.",
        ),
        output_flag(
            "--top",
            type=integer(1, 1000),
            default_text=f"{_DEFAULT_TOP}",
            help="Number of contributions per row, the largest first.",
        ),
    ),
    (*options.MISSING, *options.UNSEEN, *options.MISSING_COLUMNS, options.POSITIVE, *options.FORMAT, *options.BAD_ROWS),
    (options.JSON, options.QUIET, options.THREADS, options.CONFIG, options.DEBUG),
    more="Without DATA, the effects of the model are shown, as inspect --effects does. With DATA (- is the standard "
    "input), each row is shown with its most probable label and the largest contributions to its log-odds.",
)
def command(**typed: Any) -> None:
    """Show the effects of a model, or the contributions to the prediction of each row of a table."""
    from bncli.steps.explain import ExplainReport, explain_model, explain_rows
    from bncli.watch import Run

    if not typed["data"]:
        idle = ("rows", "top", "missing", "unseen", "allow_missing_columns", "format", "delimiter", "encoding", "names")
        for name in (*idle, *["on_bad_row"] * (typed["on_bad_row"] != "fail")):
            if typed[name] and name not in settings_of_run():
                raise UsageError(f"--{name.replace('_', '-')} has no effect without DATA", hint="add DATA")
        report = explain_model(typed["model"], typed["positive"])
        console = Console(as_json=typed["as_json"])
        if console.as_json or report.effects is None:
            console.json(report)
        else:
            console.tables(*effect_tables(report.effects, report.labels))
        return
    if typed["positive"] is not None:
        what = "--positive has no effect with DATA, because contributions refer to the predicted label"
        raise UsageError(what, hint="leave it out")
    wanted = options.parse_rows("--rows", typed["rows"])
    source = options.source(typed, typed["data"])
    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        run = Run(options.threads(typed), watch=console.watch)
        top = typed["top"] or _DEFAULT_TOP
        rows = explain_rows(typed["model"], source, top, wanted, unseen=typed["unseen"], run=run)
        if console.as_json:
            everything = tuple(rows)
            console.json(ExplainReport(typed["model"], rows=everything))
        else:
            for number, row in enumerate(rows):
                parts = [(f"{one.effect} = {one.value}", one.log_odds) for one in row.contributions]
                parts = [("average row", row.base), *parts, *([("all others", row.rest)] if row.rest else [])]
                total = f"log-odds of {row.prediction}"
                width = max(len(total), *(len(name) for name, _ in parts))
                largest = max(abs(value) for _, value in parts) or 1.0
                lines = [f"Row {row.row:,}: {row.prediction} with probability {row.p:.3f}"]
                lines += [f"  {name:{width}}  {signed(x):>8}  {bar(x / largest)}".rstrip() for name, x in parts]
                lines.append(f"  {total:{width}}  {signed(row.log_odds):>8}")
                console.text("\n" * (number > 0) + "\n".join(lines) + "\n")
