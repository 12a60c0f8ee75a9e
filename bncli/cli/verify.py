"""`bncli verify`: check that a model still gives the same probabilities, and an export the same as the model.

It also proves properties of a model, and lists what the model discloses about small groups of training rows.
"""

from __future__ import annotations

from typing import Any

import click

from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.options import FilePath, flag, integer, without_settings
from bncli.errors import UsageError

EXAMPLES = """\
bncli verify data.bnc                        after an upgrade, or on another machine
bncli verify data.bnc --against data.py      also check an export; a program is run
bncli verify data.bnc --disclosure --min-rows 20
bncli verify data.bnc --property 'the probability of yes is never above 0.9 where age = 17'
"""

MODEL = click.argument("model", metavar="MODEL", cls=FilePath)
AGAINST = flag(
    "--against",
    group="Verifying",
    metavar="FILE",
    setting=False,
    help="An export of the model to compare with it; its extension determines the format.",
)
PROPERTY = flag(
    "--property",
    group="Verifying",
    multiple=True,
    metavar="TEXT",
    setting=False,
    help="Prove or refute a statement about all inputs (bncli help properties). May be repeated.",
)
PROPERTY_SECONDS = flag(
    "--property-seconds",
    group="Verifying",
    type=options.real,
    metavar="SECONDS",
    default_text="60",
    help="Time limit for each property, after which it is reported as undecided.",
)
DISCLOSURE = flag(
    "--disclosure",
    group="Verifying",
    is_flag=True,
    help="List what the file reveals about small numbers of training rows: levels, intervals, labels, cells of tables.",
)
MIN_ROWS = flag(
    "--min-rows",
    group="Verifying",
    type=integer(1),
    default_text="10",
    help="With --disclosure: numbers of rows below N count as small.",
)


@declare(
    "verify",
    EXAMPLES,
    (MODEL,),
    (AGAINST, PROPERTY, PROPERTY_SECONDS, DISCLOSURE, MIN_ROWS),
    (options.JSON, options.QUIET),
    (options.SEED, options.CONFIG, options.DEBUG),
    more="A model file contains some synthetic rows with their probabilities; bncli scores them again. The exit code "
    "is 0 if no probability differs by more than 1e-9, no decision of an exported program differs, and every "
    "property is proven; else it is 3. Exported programs are run, so verify only those that you trust.",
)
def command(**typed: Any) -> None:
    """Score the rows stored in the model again, run the other checks that were requested, and print the results."""
    from bncli.steps.verify import PROPERTY_SECONDS as DEFAULT_SECONDS
    from bncli.steps.verify import verify

    if not typed["property"]:
        typed = without_settings(typed, "property_seconds")
    if not typed["disclosure"]:
        typed = without_settings(typed, "min_rows")
    seconds = typed["property_seconds"]
    if seconds is not None and not typed["property"]:
        raise UsageError("--property-seconds has no effect without --property", hint="add --property TEXT")
    if typed["min_rows"] is not None and not typed["disclosure"]:
        raise UsageError("--min-rows has no effect without --disclosure", hint="add --disclosure")
    report = verify(
        typed["model"],
        typed["against"],
        properties=typed["property"],
        property_seconds=DEFAULT_SECONDS if seconds is None else seconds,
        disclosure=(typed["min_rows"] or 10) if typed["disclosure"] else None,
        seed=typed["seed"],
    )
    console = Console(quiet=typed["quiet"], as_json=typed["as_json"])
    if console.as_json:
        console.json(report)
    proven = [one.line for one in report.properties or ()]
    if (found := report.disclosure) is not None:
        # The disclosures about small numbers of rows, one line per value and per table.
        few = f"fewer than {found.min_rows:,} training rows"
        n = len(found.values)
        proven.append(f"disclosure  {n:,} value{'s have' if n != 1 else ' has'} {few}")
        for v in found.values:
            rows = f"{v.rows:,.6g} row{'s' if v.rows != 1 else ''}"
            proven.append(f"            {v.attribute}={v.value}: {rows}, in {', '.join(v.where)}")
        for table in found.tables:
            if table.below or table.unknown:
                have = "has" if table.below == 1 else "have"
                cells = f"{table.below:,} of {table.cells:,} cells {have} {few}"
                cells += f"; {table.unknown:,} more may have fewer" if table.unknown else ""
                proven.append(f"            table {' & '.join(table.attributes)}: {cells}")
        if found.held_out:
            what = f"held-out probabilities of {found.held_out:,} single rows, for thresholds and sets"
            proven.append(f"            {what}")
    if report.fault is not None:
        console.summary(proven if not console.as_json else [])
        raise report.fault
    lines = [] if report.self_test is not None else ["self-test   none: an earlier version wrote the model"]
    for name, comparison in (("self-test", report.self_test), (report.format or "", report.export)):
        if comparison is not None:
            largest = f"largest difference in probability {comparison.max_dp:.1e}"
            lines.append(f"{name:<12}{comparison.rows:,} synthetic rows: {largest}")
    if report.decisions is not None:
        lines.append(f"{'decisions':<12}{report.decisions.rows:,} synthetic rows: all the same as those of the model")
    console.summary([*lines, *proven, "verified"])
