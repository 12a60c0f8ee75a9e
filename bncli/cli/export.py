"""`bncli export`: write a model as a network, a graph, or a program that works without bncli."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.options import FilePath, flag, integer, output_flag, real, without_settings
from bncli.errors import UsageError
from bncli.files.exports import EXPORTS, ProgramFormat, StructureFormat, export_format, export_formats, find_format
from bncli.files.exports.sql_layers import DIALECTS

if TYPE_CHECKING:
    from bncli.steps.export import ExportReport

EXAMPLES = """\
bncli export data.bnc -o data.bif                       the network, for other programs
bncli export data.bnc --to xmlbif > data.xml
bncli export data.bnc --to dot | dot -Tsvg > data.svg   a drawing, by Graphviz
bncli export data.bnc -o data.py                        a module that scores rows by itself
bncli export data.bnc -o data.onnx                      the same for ONNX runtimes
bncli export data.bnc --to scorecard -o card.csv        points for every value
bncli export data.bnc -o data.sql --key customer        a view that scores the rows of a table
bncli export data.bnc -o data.sql --key customer --dialect postgres   the same for PostgreSQL
"""
_sql_flag = partial(flag, group="SQL")

MODEL = click.argument("model", metavar="MODEL", cls=FilePath)
TO = output_flag(
    "--to",
    "form",
    type=click.Choice(EXPORTS),
    default_text="by the extension of FILE",
    words=[(form.word, form.summary) for form in export_formats()],
    help="The format.",
)
CONTRIBUTIONS = output_flag(
    "--contributions",
    everyday=False,
    is_flag=True,
    help="ONNX: add an output with the contribution of every set of attributes to the log-odds of every label.",
)
PDO = output_flag(
    "--pdo",
    everyday=False,
    type=real,
    default_text="20, or that of the card",
    help="Scorecard: number of points that double the odds.",
)
BASE = output_flag(
    "--base", everyday=False, type=real, default_text="600, or those of the card", help="Scorecard: points at --odds."
)
ODDS = output_flag(
    "--odds", everyday=False, type=real, default_text="50", help="Scorecard: odds, N to 1, at --base points."
)
DIGITS = output_flag(
    "--digits",
    everyday=False,
    type=integer(0, 15),
    default_text="0",
    help="Scorecard: number of decimals of the points.",
)

DIALECT = _sql_flag("--dialect", type=click.Choice(DIALECTS), default_text=DIALECTS[0], help="The SQL dialect.")
TABLE = _sql_flag(
    "--input",
    metavar="TABLE",
    default_text="input",
    help="The table or view with the rows to score, in the current schema of the database.",
)
KEY = _sql_flag(
    "--key",
    metavar="NAME",
    default_text="id, if the training table had such a column",
    help="The column that identifies the rows; the view of scores contains it too.",
)
MIN_ROWS = output_flag(
    "--min-rows",
    type=integer(1),
    help="Pool levels and intervals with fewer than N training rows, so that the file does not reveal them.",
)

OPTIONS = {
    "sql": ("dialect", "input", "key"),
    "onnx": ("contributions",),
    "scorecard": ("pdo", "base", "odds", "digits"),
}
"""The options of each format, by their names in Python."""


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
        MIN_ROWS,
        options.POSITIVE,
        options.output("The file to write [standard output]."),
        options.JSON,
        options.QUIET,
    ),
    (options.SEED, options.CONFIG, options.DEBUG),
    more="Parameters that are not probabilities (weighted, discriminative, lr-roos, lr) are first turned into a "
    "network with the same P(class | attributes), which needs a perfect graph. A network is read back and compared "
    "with the model on 10,000 random rows before it is written. Programs (python, javascript, sql), ONNX graphs "
    "(extra `onnx`; needs -o) and scorecards before rounding are run and compared with the model on at least 10,000 "
    "rows, with every level, both sides of every cut, missing values and unseen values. A scorecard is JSON if FILE "
    "ends in .json. Attributes without information about the class are left out. --json needs -o.",
)
def command(**typed: Any) -> None:
    """Write the model in another format and print how closely it agrees with the model."""
    form = typed["form"]
    if form is None:
        formats = export_formats()
        form = find_format(typed["output"], formats)
        if form is None:
            endings = " ".join(record.endings[0] for record in formats)
            hint = f"add --to {'|'.join(EXPORTS)}, or give FILE one of the extensions {endings}"
            raise UsageError("the format cannot be determined", hint=hint)
    if typed["as_json"] and typed["output"] in (None, "-"):
        hint = "the standard output cannot take both the export and the JSON report"
        raise UsageError("--json needs -o FILE", hint=hint)
    idle = [word for owner, words in OPTIONS.items() if owner != form for word in words]
    format_options = _format_options(form, without_settings(typed, *idle))
    from bncli.steps.export import export

    console = Console(quiet=typed["quiet"], as_json=typed["as_json"])
    output = options.output_path(typed["output"])
    report = export(
        typed["model"],
        form,
        output=output,
        options=format_options,
        seed=typed["seed"],
        positive=typed["positive"],
        min_rows=typed["min_rows"],
        watch=console.watch,
    )
    dialect = format_options.get("dialect", DIALECTS[0]) if form == "sql" else None
    console.finish(report, summary_lines(report, dialect))
    if not console.as_json and output is None and isinstance(report.text, str):
        console.text(report.text)


def _format_options(form: str, typed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the format that were given, and whether the output is JSON.

    Raises UsageError for options of other formats, for invalid values, and for a binary format without a file.
    """
    for owner, words in OPTIONS.items():
        idle = next((word for word in words if owner != form and typed[word] not in (None, False)), None)
        if idle is not None:
            raise UsageError(f"--{idle} has no effect with --to {form}", hint=f"use it with --to {owner}")
    record = export_format(form)
    if typed["min_rows"] is not None and isinstance(record, StructureFormat):
        raise UsageError(f"--min-rows has no effect with --to {form}, which has no counts of rows", hint="leave it out")
    if isinstance(record, ProgramFormat) and not record.is_text and typed["output"] is None:
        raise UsageError(f"--to {form} writes a binary file", hint="add -o FILE")
    values = {word: typed[word] for word in OPTIONS.get(form, ()) if typed[word] is not None}
    for word in ("pdo", "odds"):
        if values.get(word) == 0:
            raise UsageError(f"--{word} must be above 0")
    return values | {"json": str(typed["output"]).lower().endswith(".json")}


def summary_lines(report: ExportReport, dialect: str | None) -> list[str]:
    """Format the summary of an export as lines; `dialect` is the SQL dialect, or None for other formats."""
    kind = "probabilities" if report.arcs is not None else "table entries"
    numbers = "" if report.probabilities is None else f", {report.probabilities:,} {kind}"
    arcs = "" if report.arcs is None else f", {report.arcs:,} arcs"
    of_dialect = "" if dialect is None else f", dialect {dialect}"
    lines = [f"{report.format:<12}{report.nodes:,} nodes{arcs}{numbers}{of_dialect}"]
    for attribute, values, into in report.pooled or ():
        lines.append(f"pooled      {attribute}: {', '.join(values)} {'left out' if into is None else f'-> {into}'}")
    if report.rows is not None:
        rows = f"{report.rows:,} {'synthetic' if report.arcs is None else 'random'} rows"
        lines.append(f"verified    on {rows}: largest difference in probability {report.max_dp:.1e}")
    if report.rounding is not None:
        change = f"probabilities by up to {report.rounding.max_dp:.1e}, log-loss by {report.rounding.log_loss:+.1e}"
        lines.append(f"rounding    changes {change}")
    if report.totals:
        pairs = ", ".join(f"{total}: {p:.3f}" for total, p in report.totals)
        lines.append(f"totals      probability by score: {pairs}")
    return [*lines, *([f"written     {report.output}"] if report.output else [])]
