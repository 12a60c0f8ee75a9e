"""`bncli fit`: from a table to a model file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bncli.cli import learning, options
from bncli.cli.command import declare, flag
from bncli.cli.console import Console

if TYPE_CHECKING:
    from bncli.steps.fit import FitReport

EXAMPLES = """\
bncli fit data.csv --structure tan --param weighted       writes data.bnc
bncli fit train.csv.gz --structure kdb --k 2 --param map -o small.bnc
bncli fit train.csv --cuts cuts.json --structure tan.json -o m.bnc
zcat train.csv.gz | bncli fit - --class diagnosis --ignore id -o m.bnc --json
"""

TRACE = flag("--trace", group="Output", metavar="FILE", help="Write a CSV row for each iteration of the optimizer.")


@declare(
    "fit",
    EXAMPLES,
    (options.data,),
    learning.ALL,
    options.TABLE,
    options.UNSEEN,
    (options.output("The model file [NAME.bnc beside DATA]."), TRACE),
    options.RUNNING,
    more="The defaults stand in brackets.",
)
def command(**typed: Any) -> None:
    """Learns a model and says what came of it."""
    chosen = learning.learning(typed)
    source = options.source(typed, typed["data"])
    from bncli.steps.fit import fit

    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        report = fit(
            source,
            chosen.recipe,
            output=options.output_path(typed),
            cuts=chosen.cuts,
            structure=chosen.structure,
            trace=typed["trace"],
            unseen=typed["unseen"] or "average",
            threads=options.threads(typed),
            watch=console.watch,
        )
        console.summary(summary(report))
        if console.as_json:
            console.json(report)


def summary(report: FitReport) -> list[str]:
    """The end of a fit in a few lines."""
    left_out = report.uninformative
    names = ", ".join(left_out[:8]) + (", ..." if len(left_out) > 8 else "")
    used = f"attributes  {report.used} used of {report.attributes}"
    seconds = "  ".join(f"{stage} {value:.2f}" for stage, value in report.seconds.items())
    return [
        f"rows        {report.rows:,}, {report.classes} classes",
        used + (f"; without a cut or with one value, so left out: {names}" if left_out else ""),
        f"cuts        {report.cuts}",
        f"structure   {report.structure}",
        f"parameters  {report.parameters:,} ({report.param})",
        f"CLL         {report.cll_start:.6g} -> {report.cll:.6g} (log-loss {report.log_loss:.4g} a row)",
        f"stopped     after {report.iterations} iterations: {report.stopped_by.value}",
        f"seconds     {seconds}",
        f"model       {report.model}",
    ]
