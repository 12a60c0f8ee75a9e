"""`bncli learn-structure`: a structure file."""

from __future__ import annotations

from typing import Any

from bncli.cli import learning, options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.moves import move_lines

EXAMPLES = """\
bncli learn-structure data.csv --structure tan -o tan.json    a file for --structure
bncli learn-structure train.csv --cuts cuts.json --structure kdb --k 2
"""


@declare(
    "learn-structure",
    EXAMPLES,
    (options.data,),
    (*learning.STRUCTURE, *learning.CUTTING, *learning.CUTS_FILE),
    options.TABLE,
    (options.output("The structure file [standard output]."),),
    options.RUNNING,
)
def command(**typed: Any) -> None:
    """Learns the structure; prints its file when no other place is named."""
    chosen = learning.learning(typed)
    if chosen.structure is not None:
        learning.refuse_structure_file(chosen.structure)
    source = options.source(typed, typed["data"])
    from bncli.steps.learn_structure import learn_structure

    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        report = learn_structure(
            source,
            chosen.recipe,
            output=options.output_path(typed),
            cuts=chosen.cuts,
            threads=options.threads(typed),
            watch=console.watch,
        )
        size = f"{report.arcs:,} arcs over {report.used:,} of {report.attributes:,} attributes and the class"
        written = [f"written     {report.structure_file}"] if report.structure_file else []
        learnt = [f"rows        {report.rows:,}", f"structure   {report.structure.method}, {size}"]
        console.summary([*learnt, *move_lines(report.moves), *written])
        if console.as_json:
            console.json(report)
        elif not written:
            console.text(report.text())
