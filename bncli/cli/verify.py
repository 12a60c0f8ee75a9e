"""`bncli verify`: check that a model, or an export of it, still gives the probabilities it gave when it was made."""

from __future__ import annotations

from typing import Any

import click

from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.options import Paths, flag

EXAMPLES = """\
bncli verify data.bnc                        after an upgrade, or on another machine
bncli verify data.bnc --against data.py      an export as well; a program is run
"""

MODEL = click.argument("model", metavar="MODEL", cls=Paths)
AGAINST = flag(
    "--against",
    group="Verifying",
    metavar="FILE",
    setting=False,
    help="An export of the model, a network or a program, to be compared with it; its kind is told by its ending.",
)


@declare(
    "verify",
    EXAMPLES,
    (MODEL,),
    (AGAINST,),
    (options.JSON, options.QUIET),
    (options.SEED, options.CONFIG, options.DEBUG),
    more="A model carries some made-up rows with their probabilities; they are scored again. The exit code is 0 where "
    "no probability differs by more than 1e-9, nor any decision of a program that decides, else 3. A program is run: "
    "name none that you do not trust.",
)
def command(**typed: Any) -> None:
    """Score the rows stored in the model again and print by how much the probabilities differ."""
    from bncli.steps.verify import verify

    report = verify(typed["model"], typed["against"], seed=typed["seed"])
    console = Console(quiet=typed["quiet"], as_json=typed["as_json"])
    if console.as_json:
        console.json(report)
    if report.fault is not None:
        raise report.fault
    lines = [] if report.self_test is not None else ["self-test   none: an earlier version wrote the model"]
    for name, comparison in (("self-test", report.self_test), (report.format or "", report.export)):
        if comparison is not None:
            lines.append(f"{name:<12}{comparison.rows:,} made-up rows: max |dP| {comparison.max_dp:.1e}")
    if report.decisions is not None:
        lines.append(f"{'decisions':<12}{report.decisions.rows:,} made-up rows: all as the model decides")
    console.summary([*lines, "verified"])
