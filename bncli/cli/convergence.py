"""`bncli convergence`: traces of several fits side by side, and who lags behind whom."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.options import Paths, flag, share, whole
from bncli.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from bncli.steps.convergence import ConvergenceReport, TracePath, TraceReport

EXAMPLES = """\
bncli convergence weighted.csv discriminative.csv --svg curves.svg
bncli convergence plain=a.csv conditioned=b.csv --by passes
bncli convergence traces/*/*.csv --lag weighted --histogram lags.svg
"""

_UNITS = ("iterations", "passes", "flops")

TRACES = click.argument("traces", nargs=-1, required=True, metavar="[NAME=]TRACE.csv...", cls=Paths)
CURVES = (
    flag(
        "--by",
        group="Curves",
        type=click.Choice(_UNITS),
        default="iterations",
        default_text="iterations",
        help="What effort is counted in: passes are evaluations of the likelihood or its gradient, flops are told of "
        "bfgs, cg and cgb.",
    ),
    flag(
        "--of",
        group="Curves",
        type=click.Choice(["objective", "nll"]),
        default="objective",
        default_text="objective",
        help="What is looked at: the negative conditional log-likelihood with the penalty, or without.",
    ),
    flag(
        "--within",
        group="Curves",
        metavar="SHARE",
        type=share,
        default="0.001",
        default_text="0.001",
        help="A trace has arrived when it is so near to the lowest of its folder.",
    ),
)
LAGS = (
    flag("--lag", group="Lags", metavar="NAME", help="By how many iterations the others lag behind these traces."),
    flag(
        "--at",
        group="Lags",
        metavar="N",
        type=whole(1),
        default_text="5",
        help="The iteration after which that is asked.",
    ),
)
OUTPUT = (
    flag("--svg", group="Output", metavar="FILE.svg", help="Draw the curves, a panel a folder."),
    flag("--histogram", group="Output", metavar="FILE.svg", help="Draw how often which lag occurs, a panel a name."),
    options.JSON,
)


@declare(
    "convergence",
    EXAMPLES,
    (TRACES,),
    CURVES,
    LAGS,
    OUTPUT,
    (options.CONFIG, options.DEBUG),
    more="The traces in a folder are those of one table; their names are those of the files, unless typed.",
)
def command(**typed: Any) -> None:
    """Read, draws, and shows the tables."""
    if typed["at"] is not None and typed["lag"] is None:
        raise UsageError("--at has no effect without --lag", hint="say --lag NAME")
    from bncli.steps.convergence import ConvergenceSettings, convergence

    settings = ConvergenceSettings(typed["by"], typed["of"], typed["within"], typed["lag"], typed["at"] or 5)
    svg, histogram = options.named(typed["svg"]), options.named(typed["histogram"])
    report = convergence([_path(text) for text in typed["traces"]], settings, svg=svg, histogram=histogram)
    console = Console(as_json=typed["as_json"])
    if console.as_json:
        console.json(report)
    else:
        # A line a trace; folders only where there are several.
        from bncli.cli.tables import add_row, plain_table

        several = len({trace.table for trace in report.traces}) > 1
        likelihood = report.traces[0].likelihood.upper()
        arrived = f"{report.settings.by} to {100 * report.settings.within:g}%"
        headings = ["trace", "iterations", "passes", f"first {likelihood}", f"last {likelihood}", arrived]
        first = 2 if several else 1
        table = plain_table("", *(["folder"] if several else []), *headings, numbers=range(first, first + 5))
        for trace in report.traces:
            add_row(table, *([trace.table] if several else []), *_cells(trace))
        tables: list[str | Table] = [table]
        console.tables(*([*tables, _lag_table(report)] if report.lags else tables))


def _path(text: str) -> TracePath:
    """NAME=FILE, or a file, whose own name may have an equals sign."""
    from bncli.steps.convergence import TracePath

    name, equals, path = text.partition("=")
    if not equals or os.path.exists(text) or os.sep in name:
        return TracePath(text)
    if not name or not path:
        raise UsageError(f"cannot read {text!r} as NAME=FILE", hint="for example plain=trace.csv")
    return TracePath(path, name)


def _cells(trace: TraceReport) -> list[str]:
    passes, arrived = ("-" if n is None else f"{n:,.0f}" for n in (trace.passes, trace.arrived))
    return [trace.name, f"{trace.iterations:,}", passes, f"{trace.start:,.4f}", f"{trace.end:,.4f}", arrived]


def _lag_table(report: ConvergenceReport) -> Table:
    """Return a line per name."""
    from bncli.cli.tables import add_row, plain_table

    headings = ("trace", "folders", "mean", "median", "behind", "equal", "ahead", "not reached")
    table = plain_table(report.settings.heading_of_lags, *headings, numbers=range(1, len(headings)))
    for each in report.lags:
        told = each.as_json()
        counts = [f"{told[key]:,}" for key in ("behind", "equal", "ahead")]
        missed = f"{sum(not lag.reached for lag in each.tables):,}"
        add_row(table, each.name, f"{len(each.tables):,}", f"{each.mean:.1f}", f"{each.median:g}", *counts, missed)
    return table
