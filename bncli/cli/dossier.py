"""`bncli dossier`: fill in validation checklists from a model and labelled rows; write an HTML page and a JSON file."""

from __future__ import annotations

from typing import Any

import click

from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.options import FilePath, data_flag, output_flag
from bncli.errors import UsageError

EXAMPLES = """\
bncli dossier --template > about.toml                               a form for facts that bncli cannot know
bncli dossier data.bnc --data test.csv --about about.toml -o dossier
bncli dossier data.bnc --data test.csv --time month --by sex -o dossier
bncli dossier data.bnc --data test.csv --beside old.bnc -o dossier  beside a challenger
"""
MODEL = click.argument("model", required=False, metavar="MODEL", cls=FilePath)
DATA = data_flag(
    "--data",
    multiple=True,
    metavar="FILE",
    setting=False,
    help="Labelled rows that the model has not seen. May be repeated. Rows without a class are counted separately.",
)
TIME = data_flag(
    "--time",
    metavar="COLUMN",
    setting=False,
    help="Also report every figure for each period of this column, which contains dates, times or numbers.",
)
ABOUT = output_flag(
    "--about",
    metavar="FILE.toml",
    setting=False,
    help="A file with facts that bncli cannot know, such as the intended use; see --template.",
)
TEMPLATE = output_flag("--template", is_flag=True, setting=False, help="Print an empty ABOUT.toml and exit.")
OUTPUT = output_flag("-o", "--output", metavar="DIR", help="Folder for dossier.html and dossier.json.")


@declare(
    "dossier",
    EXAMPLES,
    (MODEL,),
    (DATA, TIME, *options.MISSING, *options.FORMAT, *options.BAD_ROWS),
    options.MISSING_COLUMNS,
    (options.BY,),
    (options.BESIDE, ABOUT, TEMPLATE),
    (OUTPUT,),
    (options.JSON, options.QUIET, options.THREADS, options.CONFIG, options.DEBUG),
    more="The checklists are TRIPOD+AI, model validation as in SR 26-2, and Annex IV of the EU AI Act. Unanswered "
    "items are reported as not provided. Refuted properties of ABOUT.toml are reported, but are not errors.",
)
def command(**typed: Any) -> None:
    """Write the dossier for a validator, or print the form for --about if --template was given."""
    if typed["template"]:
        names = ("model", "data", "time", "by", "beside", "about", "output", "as_json")
        if idle := next((name for name in names if typed[name]), None):
            word = {"model": "MODEL", "output": "-o", "as_json": "--json"}.get(idle, f"--{idle}")
            raise UsageError(f"{word} has no effect with --template", hint="leave it out")
        from bncli.steps.dossier.checklists import template

        Console().text(template())
        return
    if typed["model"] is None:
        raise UsageError("the model is missing", hint="give its path: bncli dossier MODEL --data TEST -o DIR")
    if not typed["data"]:
        raise UsageError("a dossier needs labelled rows", hint="add --data TEST")
    if typed["output"] is None:
        raise UsageError("the folder of the dossier is missing", hint="add -o DIR")
    from bncli.steps.dossier.dossier import dossier
    from bncli.steps.dossier.findings import DossierSources
    from bncli.watch import Run

    sources = DossierSources(options.source(typed, typed["data"]), typed["by"], typed["about"], typed["beside"])
    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        run = Run(options.threads(typed), watch=console.watch)
        report = dossier(typed["model"], sources, output=typed["output"], run=run)
        lines = []
        for word, counts in report.items.items():
            numbers = ", ".join(f"{n} {status.replace('_', ' ')}" for status, n in counts.items())
            lines.append(f"{word:<18}{sum(counts.values())} items: {numbers}")
        if report.unlabelled_rows:
            lines.append(f"{'without a class':<18}{report.unlabelled_rows:,} rows, not included in the figures")
        if report.properties_refuted:
            lines.append(f"{'refuted':<18}{report.properties_refuted:,} of the properties")
        console.finish(report, [*lines, f"{'written':<18}{report.page}, {report.json}"])
