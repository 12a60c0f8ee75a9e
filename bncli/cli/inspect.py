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
    from rich.tree import Tree

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


def _tables(report: step.ModelReport | step.CutsReport | step.StructureReport) -> list[str | Table | Tree]:
    from bncli.cli.tables import attribute_table, structure_trees
    from bncli.steps.inspect import CutsReport, StructureReport

    if isinstance(report, CutsReport):
        return [f"Cuts for the class {report.cuts.class_name}", attribute_table(report.cuts.attributes, of_rows=False)]
    if isinstance(report, StructureReport):
        return [*_structure_lines(report), "", *structure_trees(report.structure.class_name, report.structure.parents)]
    return _model_tables(report)


def _structure_lines(report: step.StructureReport) -> list[str]:
    dag = report.structure
    source = f"made by {dag.method}" if report.format == "structure" else f"read from {report.format}"
    if dag.class_name is None:
        return [f"Structure {source}, which does not say which node is the class"]
    return [f"Structure for the class {dag.class_name}, {source}", f"Perfect graph: {_perfection(dag)}"]


def _tokens(missing: tuple[str, ...] | None) -> str:
    """The texts that mean a hole besides the empty field."""
    return "as by default" if missing is None else ", ".join(["the empty field", *missing])


def _perfection(dag: NamedDag) -> str:
    """Yes, or two parents that would have to be joined."""
    found = dag.unmarried
    return "yes" if found is None else f"no, nothing joins {found.one} and {found.other}, parents of {found.child}"


def _model_tables(report: step.ModelReport) -> list[str | Table | Tree]:
    from dataclasses import fields

    from bncli.cli.tables import attribute_table, fact_table, structure_trees

    facts = {
        "format": f"{report.format} {report.version}, written by bncli {report.bncli_version}",
        "class": report.class_name,
        "labels": ", ".join(report.labels),
        "rows learnt from": f"{report.rows:,}",
        "table entries": f"{report.parameters:,}",
        "values never seen": _UNSEEN[report.unseen],
        "missing values": _tokens(report.missing_tokens) + ("; summed out" if report.marginalizes else ""),
        "perfect graph": _perfection(report.structure),
    }
    if report.penalty_cv is not None:
        facts["penalty"] = chosen_text(report.penalty_cv)
    recipe = {f.name.replace("_", "-"): getattr(report.recipe, f.name) for f in fields(report.recipe)}
    return [
        fact_table("Model", facts),
        attribute_table(report.attributes),
        *structure_trees(report.class_name, report.structure.parents),
        "",
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
