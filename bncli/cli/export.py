"""`bncli export`: a model as a network or a graph that other programs read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.options import Paths, flag, real, whole
from bncli.errors import UsageError
from bncli.files.exports import EXPORTS, ProgramFormat, by_ending, export_format, export_formats
from bncli.files.exports.sql_dialects import DIALECTS

if TYPE_CHECKING:
    from bncli.steps.export import ExportReport

EXAMPLES = """\
bncli export data.bnc -o data.bif                       the network, for other programs
bncli export data.bnc --to xmlbif > data.xml
bncli export data.bnc --to dot | dot -Tsvg > data.svg   a drawing, by Graphviz
bncli export data.bnc -o data.py                        a module that scores rows by itself
bncli export data.bnc -o data.onnx                      the same for runtimes of ONNX
bncli export data.bnc --to scorecard -o card.csv        points for every value
bncli export data.bnc -o data.sql --key customer        a view that scores the rows of a table
"""

MODEL = click.argument("model", metavar="MODEL", cls=Paths)
TO = flag(
    "--to",
    "form",
    group="Output",
    type=click.Choice(EXPORTS),
    default_text="by the ending of FILE",
    words=[(form.word, form.summary) for form in export_formats()],
    help="Format.",
)
CONTRIBUTIONS = flag(
    "--contributions",
    group="Output",
    is_flag=True,
    help="ONNX: one more output, what every set of attributes adds to the log-odds of every label.",
)
PDO = flag("--pdo", group="Output", type=real, default_text="20", help="Scorecard: points that double the odds.")
BASE = flag("--base", group="Output", type=real, default_text="600", help="Scorecard: points at --odds.")
ODDS = flag("--odds", group="Output", type=real, default_text="50", help="Scorecard: odds, N to 1, at --base points.")
DIGITS = flag(
    "--digits",
    group="Output",
    type=whole(0, 15),
    default_text="0",
    help="Scorecard: digits behind the point of points.",
)

DIALECT = flag(
    "--dialect",
    group="SQL",
    type=click.Choice(DIALECTS),
    default_text=DIALECTS[0],
    help="The database that the SQL is for.",
)
TABLE = flag(
    "--input",
    group="SQL",
    metavar="TABLE",
    default_text="input",
    help="The table or view of rows to be scored, in the schema that the database looks in.",
)
KEY = flag(
    "--key",
    group="SQL",
    metavar="NAME",
    default_text="id",
    help="The column of that table that the view of scores repeats, to tell rows apart.",
)

OPTIONS = {
    "sql": ("dialect", "input", "key"),
    "onnx": ("contributions",),
    "scorecard": ("pdo", "base", "odds", "digits"),
}
"""Of formats, by the words of flags."""


@declare(
    "export",
    EXAMPLES,
    (MODEL,),
    (
        TO,
        CONTRIBUTIONS,
        PDO,
        BASE,
        ODDS,
        DIGITS,
        DIALECT,
        TABLE,
        KEY,
        options.POSITIVE,
        options.output("Where the text goes [standard output]."),
        options.JSON,
        options.QUIET,
    ),
    (options.SEED, options.CONFIG, options.DEBUG),
    more="Parameters that are no probabilities (weighted, discriminative, lr-roos, lr) are first turned into a network "
    "with the same P(class | attributes), which needs a perfect graph. A network is read back and compared with the "
    "model on 10,000 random rows before it is written. A program (python, javascript, sql) is run, and compared on "
    "10,000 rows or more that show every level, both sides of every cut, missing values and unseen ones; so are ONNX "
    "graphs (extra `onnx`; needs -o) and, before points are rounded, scorecards (JSON where FILE ends in .json). "
    "Attributes that do not help to tell the class are left out. --json needs -o.",
)
def command(**typed: Any) -> None:
    """Write the model in another format and says how well it was kept."""
    form, output = _form(typed), options.output_path(typed)
    if typed["model"] == "-":
        raise UsageError("a model cannot be read from the standard input", hint="name its file")
    if typed["as_json"] and typed["output"] in (None, "-"):
        raise UsageError(
            "--json needs -o FILE", hint="the standard output cannot hold what is written and the report at once"
        )
    chosen = _chosen(form, typed)
    from bncli.steps.export import export

    console = Console(quiet=typed["quiet"], as_json=typed["as_json"])
    report = export(
        typed["model"],
        form,
        output=output,
        options=chosen,
        seed=typed["seed"],
        positive=typed["positive"],
        watch=console.watch,
    )
    console.summary(summary(report))
    if console.as_json:
        console.json(report)
    elif output is None and isinstance(report.text, str):
        console.text(report.text)


def _form(typed: Mapping[str, Any]) -> str:
    """Return the format typed, or that which the ending of the file stands for."""
    if typed["form"] is not None:
        return str(typed["form"])
    formats = export_formats()
    form = by_ending(typed["output"], formats)
    if form is None:
        endings = " ".join(one.endings[0] for one in formats)
        hint = f"say --to {'|'.join(EXPORTS)}, or end the name of FILE in one of {endings}"
        raise UsageError("the format is not clear", hint=hint)
    return form


def _chosen(form: str, typed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the format that were typed.

    UsageError for those of another, and for bytes without a file.
    """
    for owner, words in OPTIONS.items():
        idle = next((word for word in words if owner != form and typed[word] not in (None, False)), None)
        if idle is not None:
            raise UsageError(f"--{idle} has no effect with --to {form}", hint=f"it belongs to --to {owner}")
    record = export_format(form)
    if isinstance(record, ProgramFormat) and not record.is_text and typed["output"] is None:
        raise UsageError(f"--to {form} needs -o FILE", hint="what is written is no text")
    chosen = {word: typed[word] for word in OPTIONS.get(form, ()) if typed[word] is not None}
    for word in ("pdo", "odds"):
        if chosen.get(word) == 0:
            raise UsageError(f"--{word} must be above 0")
    return chosen | {"json": str(typed["output"]).lower().endswith(".json")}


def summary(report: ExportReport) -> list[str]:
    """Return the end of a run in a few lines."""
    kind = "probabilities" if report.arcs is not None else "table entries"
    numbers = "" if report.probabilities is None else f", {report.probabilities:,} {kind}"
    arcs = "" if report.arcs is None else f", {report.arcs:,} arcs"
    lines = [f"{report.format:<12}{report.nodes:,} nodes{arcs}{numbers}"]
    if report.rows is not None:
        rows = f"{report.rows:,} {'made-up' if report.arcs is None else 'random'} rows"
        lines.append(f"verified    on {rows}: max |dP| {report.max_dp:.1e}")
    if report.rounding is not None:
        loss = f"max |dP| {report.rounding.max_dp:.1e}, log-loss {report.rounding.log_loss:+.1e}"
        lines.append(f"rounding    costs on them: {loss}")
    return [*lines, *([f"written     {report.output}"] if report.output else [])]
