"""`bncli import`: make a model from a network that was written by an expert or another program."""

from __future__ import annotations

from typing import Any

import click

from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.options import FilePath, flag

EXAMPLES = """\
bncli import asthma.bif -o asthma.bnc
bncli import asthma.bif -o asthma.bnc --class Attack
"""
NETWORK = click.argument("network", metavar="NET", cls=FilePath)
CLASS = flag(
    "--class",
    "class_name",
    group="Network",
    metavar="NODE",
    setting=False,
    default_text="the node marked in the file, else 'class', else the last one",
    help="The node to predict.",
)


@declare(
    "import",
    EXAMPLES,
    (NETWORK,),
    (CLASS,),
    (options.output("The model file [beside NET, with the extension .bnc]."),),
    (options.JSON, options.QUIET, options.CONFIG, options.DEBUG),
    more="NET is a BIF or XMLBIF file. The model predicts one node from any of the others; values that are missing are "
    "marginalized by exact inference. If the states of a node are intervals, such as (2.5,4], it becomes a numeric "
    "attribute with these cuts.",
)
def command(**typed: Any) -> None:
    """Make a model from a network with its probabilities, write it, and print a summary."""
    from bncli.steps.import_network import import_network

    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        output = options.output_path(typed["output"])
        report = import_network(typed["network"], output, typed["class_name"], watch=console.watch)
        into = f", and {report.class_parents} into the class" if report.class_parents else ""
        numeric = f", of which {len(report.numeric)} with intervals" if report.numeric else ""
        missing = "marginalized" if report.missing_policy == "marginalize" else "a separate level"
        labels = ", ".join(report.labels[:8]) + ", ..." * (len(report.labels) > 8)
        console.finish(
            report,
            [
                f"class       {report.class_name} ({labels})",
                f"attributes  {report.attributes:,}{numeric}",
                f"arcs        {report.arcs:,} between attributes{into}; {report.probabilities:,} probabilities",
                f"missing     values are {missing}",
                f"model       {report.output}",
            ],
        )
