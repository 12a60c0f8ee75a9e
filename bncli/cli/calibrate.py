"""`bncli calibrate`: correct the probabilities of a model with rows that it was not learned from."""

from __future__ import annotations

from typing import Any

import click

from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.model_text import calibration_facts, split_text
from bncli.cli.options import FilePath, flag
from bncli.errors import UsageError

EXAMPLES = """\
bncli calibrate data.bnc held_out.csv -o calibrated.bnc
bncli calibrate data.bnc held_out.csv -o calibrated.bnc --method isotonic --json
bncli calibrate data.bnc visits.csv -o calibrated.bnc --group patient   split by patient for the held-out loss
"""

MODEL = click.argument("model", metavar="MODEL", cls=FilePath)
METHOD = flag(
    "--method",
    group="Calibration",
    type=click.Choice(["temperature", "isotonic", "per-class"]),
    default="temperature",
    help="The kind of calibration map.",
    words=(
        ("temperature", "divide all log-odds by one number; the most probable label stays the same"),
        ("isotonic", "a non-decreasing curve per label against all others; needs many rows"),
        ("per-class", "a scale and a shift per label (vector scaling; with two labels beta calibration)"),
    ),
)


@declare(
    "calibrate",
    EXAMPLES,
    (MODEL, options.data),
    (METHOD,),
    (
        *options.LABELLED_TABLE,
        *options.SPLIT,
        *options.MISSING,
        *options.MISSING_COLUMNS,
        *options.FORMAT,
        *options.BAD_ROWS,
    ),
    (options.output("The calibrated model to write; required."),),
    (options.JSON, options.QUIET, options.THREADS, options.CONFIG, options.DEBUG),
    more="DATA must be rows that the model was not learned from. The tables of the model do not change; the map is "
    "stored beside them and applied to every predicted probability. An existing calibration is replaced.",
)
def command(**typed: Any) -> None:
    """Learn the calibration map, write the calibrated model, and report the log-loss before and after."""
    output = options.output_path(typed["output"])
    if output is None:
        raise UsageError("-o FILE is missing: the file for the calibrated model", hint="for example -o c.bnc")
    source = options.source(typed, typed["data"])
    from bncli.steps.calibrate import calibrate
    from bncli.watch import Run

    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        run = Run(options.threads(typed), watch=console.watch)
        report = calibrate(typed["model"], source, output, typed["method"], run=run)
        facts = calibration_facts(report.calibration, report.labels)
        if report.split is not None:
            others = "earlier rows" if "time" in report.split.kind else "other groups"
            facts["held out"] = f"{report.held_out:.4f}, by calibration maps fitted to {others}"
            facts["split by"] = split_text(report.split)
        facts["written"] = report.output
        console.finish(report, [f"{name:<12}{text}" for name, text in facts.items()])
