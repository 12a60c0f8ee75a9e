"""`bncli inspect`: what is in a model, or in a cuts, structure or counts file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.model_tables import (
    arcs_table,
    calibration_facts,
    chosen_text,
    penalty_table,
    restarts_text,
    rule_lines,
    shrinkage_text,
    trial_table,
)
from bncli.cli.options import Paths, flag
from bncli.errors import ModelError, UsageError

if TYPE_CHECKING:
    from rich.table import Table
    from rich.tree import Tree

    from bncli.engine.structures.named_structure import NamedStructure
    from bncli.steps import inspect as step

EXAMPLES = """\
bncli inspect data.bnc
bncli inspect data.bnc --effects
bncli inspect data.bnc --effects --csv > effects.csv
bncli inspect data.bnc --tables
bncli inspect cuts.json --json
"""
FILE = click.argument("file", metavar="FILE", cls=Paths)
TABLES = flag("--tables", group="Output", is_flag=True, help="All numbers of a model as well.")
EFFECTS = flag(
    "--effects",
    group="Output",
    is_flag=True,
    help="What each attribute, and each set of attributes that a model looks at together, does to the log-odds.",
)
CSV = flag(
    "--csv",
    "as_csv",
    group="Output",
    is_flag=True,
    help="With --effects: their tables as they are, a line a value and label.",
)
_MANY_TABLES = 100
"""A component of more is told by how many they are."""
_UNSEEN = {"average": "count as unknown", "error": "are an error"}


@declare("inspect", EXAMPLES, (FILE,), (TABLES, EFFECTS, CSV, options.JSON), (options.DEBUG,))
def command(**typed: Any) -> None:
    """Show the file as tables, as JSON, or its effects as CSV."""
    from bncli.steps.inspect import ModelReport, inspect

    if typed["as_csv"] and (not typed["effects"] or typed["as_json"] or typed["tables"]):
        raise UsageError("--csv writes effects and nothing else", hint="say --effects --csv")
    report = inspect(typed["file"], tables=typed["tables"], effects=typed["effects"])
    console = Console(as_json=typed["as_json"])
    if typed["as_csv"]:
        if not isinstance(report, ModelReport) or report.effects is None:
            raise ModelError("only a model has effects", where=typed["file"])
        from bncli.steps.effects_and_regions import effects_csv

        console.text(effects_csv(report.effects, report.labels))
    elif console.as_json:
        console.json(report)
    else:
        console.tables(*_tables(report))


def _tables(report: step.Report) -> list[str | Table | Tree]:
    from bncli.cli.model_tables import of_counts
    from bncli.cli.tables import attribute_table
    from bncli.steps.inspect import CountsReport, CutsReport, StructureReport

    if isinstance(report, CountsReport):
        counted = report.counted
        return [*of_counts(counted), "", attribute_table(counted.cuts.attributes, of_rows=False)]

    if isinstance(report, CutsReport):
        title = f"Cuts for the class {report.cuts.class_name}"
        sampled = [] if report.cuts.sampled_rows is None else [f"Learnt from {report.cuts.sampled_rows:,} sampled rows"]
        return [title, *sampled, attribute_table(report.cuts.attributes, of_rows=False)]
    if isinstance(report, StructureReport):
        return [*_structure_lines(report), "", *_structure_tables(report, None)]
    return _model_tables(report)


def _structure_lines(report: step.StructureReport) -> list[str]:
    structure = report.structure
    source = f"made by {structure.method}" if report.format == "structure" else f"read from {report.format}"
    if structure.class_name is None:
        return [f"Structure {source}, which does not say which node is the class"]
    perfection = _perfection(structure)
    title = f"Structure for the class {structure.class_name}, {source}"
    return [title] if perfection is None else [title, f"Perfect graph: {perfection}"]


def _perfection(structure: NamedStructure) -> str | None:
    """Yes, or two parents that would have to be joined; None for regions."""
    from bncli.engine.structures.named_structure import NamedRegions

    if isinstance(structure, NamedRegions):
        return None
    found = structure.unmarried
    return "yes" if found is None else f"no, nothing joins {found.first} and {found.second}, parents of {found.child}"


def _structure_tables(report: step.StructureReport | step.ModelReport, param: str | None) -> list[str | Table | Tree]:
    """Yield a graph as trees, and regions as a table of steps (those of a model, if `param`) or as a list."""
    from bncli.engine.structures.named_structure import NamedRegions

    structure = report.structure
    if not isinstance(structure, NamedRegions):
        from bncli.cli.tables import structure_trees

        return [*structure_trees(structure.class_name, structure.parents)]
    from bncli.cli.model_tables import (
        CUTS,
        GAINS,
        MOST_LISTED,
        bins_text,
        meaning,
        path_table,
        region_counts,
        region_table,
    )

    bins = [bins_text(structure.bins)] if structure.bins else []
    if report.steps is None or report.best_step is None:
        if param is not None and len(structure.chosen) > MOST_LISTED:
            return [region_counts(structure.chosen), *bins]
        cuts, gains = [CUTS] if structure.cuts else [], [GAINS] if structure.gains else []
        return [region_table(structure, chosen=param is not None), *bins, *cuts, *gains]
    return [path_table(report.steps, report.best_step), *bins, *meaning(param)]


def _model_tables(report: step.ModelReport) -> list[str | Table | Tree]:
    from bncli.cli.tables import attribute_table, fact_table

    recipe = {key.replace("_", "-"): value for key, value in report.recipe.as_dict().items()}
    marginalized = "; marginalized" if report.missing_policy == "marginalize" else ""
    # What is said of the model in a line each.
    facts = {
        "format": f"{report.format} {report.version}, written by bncli {report.bncli_version}",
        "class": report.class_name,
        "labels": ", ".join(report.labels),
        "rows learnt from": f"{report.rows:,}",
        "structure": report.structure_learned,
        "table entries": f"{report.parameters:,}",
        "values never seen": _UNSEEN[report.unseen],
        "missing values": _tokens(report.missing_tokens) + marginalized,
    }
    if report.towards is not None:
        facts["directions"] = f"of the log-odds of {report.towards}"
    if report.sampled_rows is not None:
        facts["cuts learnt from"] = f"a sample of {report.sampled_rows:,} rows"
    if report.components is None and (perfection := _perfection(report.structure)) is not None:
        facts["perfect graph"] = perfection
    if report.penalty_cv is not None:
        facts["penalty"] = chosen_text(report.penalty_cv)
        if report.penalty_cv.shrinkage is not None and report.parameters > len(report.labels):
            facts["shrunk"] = shrinkage_text(report.penalty_cv.shrinkage)
    if report.restarts is not None:
        facts["starts"] = restarts_text(report.restarts)
    facts |= _decisions(report)
    return [
        fact_table("Model", facts),
        attribute_table(report.attributes),
        *_of_heaviest_component(report),
        *_structure_tables(report, report.param),
        "",
        fact_table("Recipe", {name: value for name, value in recipe.items() if value is not None}),
        *([] if report.penalty_cv is None else [penalty_table(report.penalty_cv)]),
        *([arcs_table(report.penalty_cv.arcs)] if report.penalty_cv is not None and report.penalty_cv.arcs else []),
        *([trial_table(report.trials)] if report.trials else []),
        *_all_numbers(report),
        *_effect_tables(report),
    ]


def _tokens(missing: tuple[str, ...] | None) -> str:
    """Return the texts that mean a missing value besides the empty field; added ones have a plus."""
    if missing is None:
        return "as by default"
    added = [token.removeprefix("+") for token in missing if token.startswith("+")]
    if len(added) == len(missing):
        return f"as by default, and {', '.join(added)}"
    return ", ".join(["the empty field", *missing])


def _decisions(report: step.ModelReport) -> dict[str, str]:
    """Return what classes weighed, the calibration, and how to decide, where the model says so."""
    from bncli.files.artifacts.model import rule_summary_json

    found: dict[str, str] = {}
    if report.class_weights is not None:
        weighed = zip(report.labels, report.class_weights, strict=True)
        found["classes weigh"] = ", ".join(f"{label} {weight:.4g}" for label, weight in weighed)
    if report.calibration is not None:
        found |= calibration_facts(report.calibration, report.labels)
    if report.log_p is not None:
        low, middle = report.log_p.quantiles[0], report.log_p.quantiles[3]
        told = f"mean {report.log_p.mean:.4g}, 1 % below {low:.4g}, half below {middle:.4g}"
        found["ln P(x)"] = f"{told} ({report.log_p.rows:,} training rows)"
    if report.rule is not None:
        found["decides"] = "; ".join(rule_lines(rule_summary_json(report.rule), report.labels))
    return found


def _of_heaviest_component(report: step.ModelReport) -> list[str]:
    """Return the words that name the heaviest component of an ensemble, whose structure is shown."""
    if report.components is None:
        return []
    many = [_size_text(component) for component in report.components if sum(component.sizes.values()) > _MANY_TABLES]
    return [*many, f"Of the heaviest component of the ensemble, {report.components[0].name}:"]


def _size_text(component: step.NamedComponent) -> str:
    """Return how many tables it has, and over how many attributes."""
    sizes = ", ".join(f"{n:,} over {size}" for size, n in component.sizes.items())
    return f"{component.name} is a sum of {sum(component.sizes.values()):,} tables, by attributes: {sizes}"


def _all_numbers(report: step.ModelReport) -> list[str | Table]:
    """Return the tables of numbers, those of an ensemble under the names of its components."""
    if report.tables is None or report.components is None:
        return [*_number_tables(report, report.tables)]
    shown: list[str | Table] = []
    for component in report.components:
        shown += ["", f"Component {component.name}, weight {component.weight:.4f}"]
        shown += _number_tables(report, component.tables)
    return shown


def _number_tables(report: step.ModelReport, of_tables: Sequence[step.NamedTable] | None) -> list[Table]:
    """Return one table of numbers a family, a line per cell."""
    from bncli.cli.tables import number_table

    values = {attribute.name: attribute for attribute in report.attributes}
    tables = []
    for table in of_tables or ():
        coarser = table.merged or (None,) * len(table.attributes)
        seen = [regrouped or values[name] for name, regrouped in zip(table.attributes, coarser, strict=True)]
        tables.append(number_table(seen, report.labels, table.values))
    return tables


def _effect_tables(report: step.ModelReport) -> list[str | Table]:
    if report.effects is None:
        return []
    from bncli.cli.model_tables import effect_tables

    return ["", *effect_tables(report.effects, report.labels)]
