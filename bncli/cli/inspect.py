"""`bncli inspect`: what is in a model, a cuts file or a structure file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bncli.cli import options
from bncli.cli.command import declare, flag
from bncli.cli.console import Console
from bncli.cli.penalties import chosen_text, penalty_table

if TYPE_CHECKING:
    from rich.table import Table

    from bncli.engine.structure import NamedDag
    from bncli.steps import inspect as step

EXAMPLES = """\
bncli inspect data.bnc
bncli inspect data.bnc --tables
bncli inspect cuts.json --json
"""

FILE = click.argument("file", metavar="FILE")
TABLES = flag("--tables", group="Output", is_flag=True, help="All numbers of a model as well.")

_UNSEEN = {"average": "count as unknown", "error": "are an error"}


@declare("inspect", EXAMPLES, (FILE,), (TABLES, options.JSON), (options.DEBUG,))
def command(**typed: Any) -> None:
    """Shows the file as tables or as JSON."""
    from bncli.steps.inspect import inspect

    report = inspect(typed["file"], tables=typed["tables"])
    console = Console(as_json=typed["as_json"])
    if console.as_json:
        console.json(report)
    else:
        console.tables(*_tables(report))


def _tables(report: step.ModelReport | step.CutsReport | step.StructureReport) -> list[str | Table]:
    from bncli.cli.tables import attribute_table
    from bncli.steps.inspect import CutsReport, StructureReport

    if isinstance(report, CutsReport):
        return [f"Cuts for the class {report.cuts.class_name}", attribute_table(report.cuts.attributes, of_rows=False)]
    if isinstance(report, StructureReport):
        dag = report.structure
        head = f"Structure for the class {dag.class_name}, made by {dag.method}"
        return [head, f"Perfect graph: {_perfection(dag)}", _parents(dag)]
    return _model_tables(report)


def _tokens(missing: tuple[str, ...] | None) -> str:
    """The texts that mean a hole besides the empty field."""
    return "as by default" if missing is None else ", ".join(["the empty field", *missing])


def _parents(dag: Any) -> Table:
    from bncli.cli.tables import parent_table

    return parent_table(dag.class_name, dag.parents)


def _perfection(dag: NamedDag) -> str:
    """Yes, or two parents that would have to be joined."""
    found = dag.unmarried
    return "yes" if found is None else f"no, nothing joins {found.one} and {found.other}, parents of {found.child}"


def _model_tables(report: step.ModelReport) -> list[str | Table]:
    from dataclasses import fields

    from bncli.cli.tables import attribute_table, fact_table, parent_table

    facts = {
        "format": f"{report.format} {report.version}, written by bncli {report.bncli_version}",
        "class": report.class_name,
        "labels": ", ".join(report.labels),
        "rows learnt from": f"{report.rows:,}",
        "table entries": f"{report.parameters:,}",
        "values never seen": _UNSEEN[report.unseen],
        "missing values": _tokens(report.missing_tokens),
        "perfect graph": _perfection(report.structure),
    }
    if report.penalty_cv is not None:
        facts["penalty"] = chosen_text(report.penalty_cv)
    recipe = {f.name.replace("_", "-"): getattr(report.recipe, f.name) for f in fields(report.recipe)}
    return [
        fact_table("Model", facts),
        attribute_table(report.attributes),
        parent_table(report.class_name, report.structure.parents),
        fact_table("Recipe", {name: value for name, value in recipe.items() if value is not None}),
        *([] if report.penalty_cv is None else [penalty_table(report.penalty_cv)]),
        *_number_tables(report),
    ]


def _number_tables(report: step.ModelReport) -> list[Table]:
    """One table of numbers a family, a line a cell."""
    from bncli.cli.tables import number_table

    values = {attribute.name: attribute for attribute in report.attributes}
    return [
        number_table([values[name] for name in table.attributes], report.labels, table.values)
        for table in report.tables or ()
    ]
