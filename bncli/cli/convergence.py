"""`bncli convergence`: compare how fast several fits converge, using their traces."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.options import Paths, flag, integer, output_flag, share, without_settings
from bncli.cli.terminal_tables import filled_table
from bncli.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from bncli.steps.convergence import ConvergenceReport

EXAMPLES = """\
bncli convergence weighted.csv discriminative.csv --svg curves.svg
bncli convergence plain=a.csv conditioned=b.csv --by passes
bncli convergence traces/*/*.csv --lag weighted --histogram lags.svg
"""
_curve_flag = partial(flag, group="Curves")

_UNITS = ("iterations", "passes", "flops")

TRACES = click.argument("traces", nargs=-1, required=True, metavar="[NAME=]TRACE.csv...", cls=Paths)
CURVES = (
    _curve_flag(
        "--by",
        type=click.Choice(_UNITS),
        default="iterations",
        help="The unit of effort: iterations, passes (evaluations of the likelihood or its gradient), or flops "
        "(traces of bfgs, cg and cgb only).",
    ),
    _curve_flag(
        "--of",
        type=click.Choice(["objective", "nll"]),
        default="objective",
        help="The curve: the penalized objective, or the negative conditional log-likelihood without the penalty "
        "(nll).",
    ),
    _curve_flag(
        "--within",
        metavar="SHARE",
        type=share,
        default="0.001",
        help="A trace has converged when it is within this relative distance of the lowest value in its folder.",
    ),
)
LAGS = (
    flag(
        "--lag",
        group="Lags",
        metavar="NAME",
        help="Report how many iterations the other traces lag behind the traces with this name.",
    ),
    flag("--at", group="Lags", type=integer(1), default_text="5", help="The iteration at which the lag is measured."),
)
OUTPUT = (
    output_flag("--svg", metavar="FILE.svg", help="Draw the curves, one panel per folder."),
    output_flag("--histogram", metavar="FILE.svg", help="Draw a histogram of the lags, one panel per name."),
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
    more="The traces in a folder belong to one table; each has the name of its file, or NAME if given as NAME=FILE.",
)
def command(**typed: Any) -> None:
    """Read the traces, draw the curves, and print the tables."""
    if typed["lag"] is None:
        typed = without_settings(typed, "at")
    if typed["at"] is not None and typed["lag"] is None:
        raise UsageError("--at has no effect without --lag", hint="add --lag NAME")
    from bncli.steps.convergence import ConvergenceSettings, TracePath, convergence

    settings = ConvergenceSettings(typed["by"], typed["of"], typed["within"], typed["lag"], typed["at"] or 5)
    svg, histogram = options.output_path(typed["svg"]), options.output_path(typed["histogram"])
    traces = []
    for text in typed["traces"]:
        # NAME=FILE, or FILE, whose own name may contain an equals sign
        name, equals, path = text.partition("=")
        if not equals or os.path.exists(text) or os.sep in name:
            traces.append(TracePath(text))
        elif not name or not path:
            raise UsageError(f"cannot read {text!r} as NAME=FILE", hint="for example plain=trace.csv")
        else:
            traces.append(TracePath(path, name))
    report = convergence(traces, settings, svg=svg, histogram=histogram)
    console = Console(as_json=typed["as_json"])
    if console.as_json:
        console.json(report)
    else:
        with_folder = len({trace.table for trace in report.traces}) > 1
        likelihood = report.traces[0].likelihood.upper()
        arrived = f"{report.settings.by} to {100 * report.settings.within:g}%"
        headings = ("trace", "iterations", "passes", f"first {likelihood}", f"last {likelihood}", arrived)
        rows = []
        for trace in report.traces:
            passes, effort = ("-" if n is None else f"{n:,.0f}" for n in (trace.passes, trace.arrived))
            cells = (trace.name, f"{trace.iterations:,}", passes, f"{trace.start:,.4f}", f"{trace.end:,.4f}", effort)
            rows.append((*([trace.table] if with_folder else []), *cells))
        first_number = 2 if with_folder else 1
        numbers = range(first_number, first_number + 5)
        console.tables(
            filled_table("", (*(["folder"] if with_folder else []), *headings), rows, numbers),
            *([_lag_table(report)] if report.lags else []),
        )


def _lag_table(report: ConvergenceReport) -> Table:
    """Return a table with a row per trace name, which summarizes its lags over all folders."""
    rows = []
    for lags in report.lags:
        values = lags.as_json()
        counts = [f"{values[key]:,}" for key in ("behind", "equal", "ahead")]
        missed = f"{sum(not lag.reached for lag in lags.tables):,}"
        rows.append((lags.name, f"{len(lags.tables):,}", f"{lags.mean:.1f}", f"{lags.median:g}", *counts, missed))
    headings = ("trace", "folders", "mean", "median", "behind", "equal", "ahead", "not reached")
    return filled_table(report.settings.heading_of_lags, headings, rows, range(1, len(headings)))
