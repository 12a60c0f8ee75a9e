"""`bncli calibrate`: a model's probabilities, corrected by rows that it was not learnt from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.flags import Paths, flag
from bncli.errors import UsageError

if TYPE_CHECKING:
    from bncli.engine.calibration.maps import Calibration
    from bncli.steps.calibrate import CalibrateReport

EXAMPLES = """\
bncli calibrate data.bnc held_out.csv -o calibrated.bnc
bncli calibrate data.bnc held_out.csv -o calibrated.bnc --method isotonic --json
"""

MODEL = click.argument("model", metavar="MODEL", cls=Paths)
METHOD = flag(
    "--method",
    group="Calibration",
    type=click.Choice(["temperature", "isotonic", "per-class"]),
    default="temperature",
    stands_for="temperature",
    help="The kind of map.",
    words=(
        ("temperature", "one number divides all scores; the most probable label stays"),
        ("isotonic", "a rising line a label, against all others; it takes many rows"),
        ("per-class", "a scale and a shift a label (vector scaling; of two labels beta calibration)"),
    ),
)


@declare(
    "calibrate",
    EXAMPLES,
    (MODEL, options.data),
    (METHOD,),
    (
        *options.OF_LABELLED,
        *options.MISSING,
        *options.MISSING_COLUMNS,
        *options.FORMAT,
        *options.BAD_ROWS,
    ),
    (options.output("The calibrated model; it must be named."),),
    (options.JSON, options.QUIET, options.THREADS, options.CONFIG, options.DEBUG),
    more="The rows should be none that the model was learnt from. The tables of the model stay; the map is stored "
    "beside them and applied by whatever says probabilities. A calibration that is there is replaced.",
)
def command(**typed: Any) -> None:
    """Learns the map, and says what it does to the log-loss of the rows."""
    output = options.output_path(typed)
    if output is None:
        raise UsageError("-o FILE is missing: where the calibrated model is to be written", hint="for example -o c.bnc")
    source = options.source(typed, typed["data"])
    from bncli.steps.calibrate import calibrate
    from bncli.watch import Run

    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        run = Run(options.threads(typed), watch=console.watch)
        report = calibrate(typed["model"], source, output, typed["method"], run=run)
        console.summary(summary(report))
        if console.as_json:
            console.json(report)


def summary(report: CalibrateReport) -> list[str]:
    """The map, what it does, and where it is."""
    return [f"{name:<12}{text}" for name, text in facts(report.calibration, report.labels).items()] + [
        f"{'wrote':<12}{report.output}"
    ]


def facts(calibration: Calibration, labels: tuple[str, ...]) -> dict[str, str]:
    """The calibration in two lines, by what they are about."""
    from bncli.engine.calibration.maps import Isotonic, Temperature

    found, rows = calibration.map, f"{calibration.rows:,} row{'s' * (calibration.rows != 1)}"
    if isinstance(found, Temperature):
        told = f"temperature {found.temperature:.4g}"
    elif isinstance(found, Isotonic):
        names = labels if len(found.knots) > 1 else labels[1:]
        counts = zip(names, found.knots, strict=True)
        told = "isotonic, " + _listed([f"{label} by {len(one.at):,} knots" for label, one in counts])
    else:
        pairs = zip(labels, found.scales, found.shifts, strict=True)
        told = "per-class, " + _listed([f"{label} x {a:.4g} {b:+.4g}" for label, a, b in pairs])
    change = f"{calibration.before:.4f} before, {calibration.after:.4f} after, on the {rows} it was learnt from"
    return {"calibration": told, "log-loss": change}


def _listed(texts: list[str]) -> str:
    more = f" and {len(texts) - 5:,} more labels" if len(texts) > 5 else ""
    return ", ".join(texts[:5]) + more
