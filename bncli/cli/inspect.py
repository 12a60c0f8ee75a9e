"""`bncli inspect`: the content of a model, or of a cuts, structure or counts file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.model_text import (
    ARC_CHOICES,
    CANDIDATE_HEADINGS,
    calibration_facts,
    candidate_cells,
    counts_lines,
    edit_lines,
    intervals_text,
    penalty_text,
    rule_lines,
    shrinkage_text,
    split_text,
)
from bncli.cli.options import FilePath, output_flag
from bncli.cli.terminal_tables import attribute_table, effect_tables, fact_table, filled_table, structure_trees
from bncli.errors import ModelError, UsageError

if TYPE_CHECKING:
    from rich.table import Table
    from rich.tree import Tree

    from bncli.engine.data.schema import Schema
    from bncli.engine.structures.named_structure import NamedStructure
    from bncli.steps import inspect as step
    from bncli.steps.effects_and_regions import NamedStep

EXAMPLES = """\
bncli inspect data.bnc
bncli inspect data.bnc --effects
bncli inspect data.bnc --effects --csv > effects.csv
bncli inspect data.bnc --tables
bncli inspect cuts.json --json
"""
FILE = click.argument("file", metavar="FILE", cls=FilePath)
TABLES = output_flag("--tables", is_flag=True, help="Also print all numbers of a model.")
EFFECTS = output_flag(
    "--effects",
    is_flag=True,
    help="Print the effect of each attribute, and of each set of attributes that share a table, on the log-odds.",
)
CSV = output_flag(
    "--csv", "as_csv", is_flag=True, help="With --effects: print their tables as CSV, one row per value and label."
)
_MOST_REGIONS = 200
"""The maximum number of regions of a model that are listed; if there are more, they are only counted."""
_MOST_TABLES = 100
"""If a component has more tables than this, they are also counted by their number of attributes."""
_UNSEEN = {"average": "count as unknown", "error": "are an error"}
_CUTS_LEGEND = (
    "In parentheses: number of intervals of the attribute in this region; the cuts are those with the largest gain."
)
_GAINS_LEGEND = (
    "A gain estimates what a region adds to the log-likelihood of the classes, in nats, beyond the smaller regions."
)


@declare("inspect", EXAMPLES, (FILE,), (TABLES, EFFECTS, CSV, options.JSON), (options.DEBUG,))
def command(**typed: Any) -> None:
    """Show the file as tables, as JSON, or its effects as CSV."""
    from bncli.steps.inspect import CountsReport, CutsReport, ModelReport, StructureReport, inspect

    if typed["as_csv"] and (not typed["effects"] or typed["as_json"] or typed["tables"]):
        raise UsageError("--csv writes only effects", hint="use --effects --csv")
    report = inspect(typed["file"], tables=typed["tables"], effects=typed["effects"])
    console = Console(as_json=typed["as_json"])
    if typed["as_csv"]:
        if not isinstance(report, ModelReport) or report.effects is None:
            raise ModelError("only a model has effects", where=typed["file"])
        from bncli.steps.effects_and_regions import effects_csv

        console.text(effects_csv(report.effects, report.model.schema.labels))
    elif console.as_json:
        console.json(report)
    elif isinstance(report, CountsReport):
        cuts = report.counted.cuts
        console.tables(*counts_lines(report.counted), "", attribute_table(cuts.attributes, has_rows=False))
    elif isinstance(report, CutsReport):
        cuts = report.cuts
        sampled = [] if cuts.sampled_rows is None else [f"Learned from a sample of {cuts.sampled_rows:,} rows"]
        title = f"Cuts for the class {cuts.class_name}"
        console.tables(title, *sampled, attribute_table(cuts.attributes, has_rows=False))
    elif isinstance(report, StructureReport):
        structure = report.structure
        source = f"read from {report.format}"
        if report.format == "structure":
            source = "not learned by bncli" if structure.method == "file" else f"learned by {structure.method}"
        if structure.class_name is None:
            lines = [f"Structure {source}; no node is marked as the class"]
        else:
            perfection = _perfection(structure)
            lines = [f"Structure for the class {structure.class_name}, {source}"]
            lines += [] if perfection is None else [f"Perfect graph: {perfection}"]
        console.tables(*lines, "", *_structure_tables(report, None))
    else:
        console.tables(*_model_tables(report))


def _perfection(structure: NamedStructure) -> str | None:
    """Describe whether a graph is perfect, naming two non-adjacent parents if it is not; None for regions."""
    from bncli.engine.structures.named_structure import NamedRegions

    if isinstance(structure, NamedRegions):
        return None
    pair = structure.unmarried
    return "yes" if pair is None else f"no (no arc joins {pair.first} and {pair.second}, both parents of {pair.child})"


def _structure_tables(report: step.StructureReport | step.ModelReport, param: str | None) -> list[str | Table | Tree]:
    """Return a network as trees, or regions as the steps of a search, as a list, or as counts.

    param: the parameter learner of a model, or None for a structure file.
    """
    from bncli.engine.structures.named_structure import NamedRegions

    structure = report.structure
    if not isinstance(structure, NamedRegions):
        return [*structure_trees(structure.class_name, structure.parents)]
    bins = [bins_text(structure.bins)] if structure.bins else []
    if report.steps is not None and report.best_step is not None:
        use = {
            None: "kbma averages the models of all steps with these weights; kmap is the best step alone (marked *).",
            "kmap": "The model is that of the best step alone (marked *).",
        }.get(param, "The model is the average of the models of all steps with these weights; * marks the best step.")
        meaning = "Each step adds a region: attributes that share a table with the class."
        return [path_table(report.steps, report.best_step), *bins, meaning, use]
    if param is not None and len(structure.chosen) > _MOST_REGIONS:
        sizes = sorted(Counter(map(len, structure.chosen)).items())
        rows = ((str(size), f"{n:,}") for size, n in sizes)
        title = f"{len(structure.chosen):,} regions"
        return [filled_table(title, ("attributes", "regions"), rows, numbers=(0, 1)), *bins]
    legends = [*([_CUTS_LEGEND] if structure.cuts else []), *([_GAINS_LEGEND] if structure.gains else [])]
    # An attribute that has fewer intervals in a region than in general is followed by their number.
    region_rows = []
    for number, position in enumerate(
        range(len(structure.regions)) if param is None else structure.chosen_positions, 1
    ):
        region = structure.regions[position]
        cuts = structure.cuts[position] if structure.cuts else (None,) * len(region)
        members = [
            name if of_region is None else f"{name} ({len(of_region) + 1})"
            for name, of_region in zip(region, cuts, strict=True)
        ]
        gain = (f"{structure.gains[position]:.4f}",) if structure.gains else ()
        region_rows.append((str(number), ", ".join(members), *gain))
    headings = ("step", "region", "gain") if structure.gains else ("step", "region")
    return [filled_table("Regions", headings, region_rows, numbers=(0, 2)), *bins, *legends]


def path_table(steps: Sequence[NamedStep], best: int) -> Table:
    """Return a table of the steps of a search for regions, with a mark at the best one."""
    headings = ["step", "", "region", "df", "log-likelihood", "log posterior", "weight"]
    if any(step.bootstrap_log_loss is not None for step in steps):
        headings.append("bootstrap log-loss")
    rows = []
    for number, step in enumerate(steps):
        mark, region = "*" if number == best else "", ", ".join(step.region) or "the class alone"
        logs = (f"{step.log_likelihood:.4f}", f"{step.log_posterior:.4f}", f"{step.weight:.4f}")
        loss = () if step.bootstrap_log_loss is None else (f"{step.bootstrap_log_loss:.4f}",)
        rows.append((str(number), mark, region, f"{step.df:,}", *logs, *loss))
    return filled_table("Steps of the search for regions", headings, rows, numbers=(0, 3, 4, 5, 6, 7))


def bins_text(bins: Sequence[int | None]) -> str:
    """Describe the maximum number of intervals of an attribute by region size; the last entry holds for larger ones."""
    *smaller, rest = ["as cut" if most is None else f"at most {most:,}" for most in bins]
    kinds = [f"{kind} in regions of {size}" for size, kind in enumerate(smaller, 1)]
    return f"Intervals of an attribute: {', '.join([*kinds, f'{rest} in larger ones' if smaller else rest])}."


def _model_tables(report: step.ModelReport) -> list[str | Table | Tree]:
    """Return all tables and lines about a model in the order in which they are printed."""
    model, schema = report.model, report.model.schema
    recipe = {key.replace("_", "-"): value for key, value in model.recipe.as_dict().items() if value is not None}
    tables: list[str | Table | Tree] = [fact_table("Model", _model_facts(report)), attribute_table(schema.attributes)]
    if report.components is not None:
        # The component with the largest weight comes first; its structure is shown.
        for component in report.components:
            n_tables = sum(component.sizes.values())
            if n_tables > _MOST_TABLES:
                sizes = ", ".join(f"{n:,} over {size}" for size, n in component.sizes.items())
                tables.append(f"{component.name} is a sum of {n_tables:,} tables, by attributes: {sizes}")
        tables.append(f"Details of the component with the largest weight, {report.components[0].name}:")
    tables += [*_structure_tables(report, model.recipe.param), "", fact_table("Recipe", recipe)]

    if model.penalty_cv is not None:
        trials = ((f"{trial.penalty:g}", f"{trial.log_loss:.5f}") for trial in model.penalty_cv.tried)
        tables.append(filled_table("Penalties", ("penalty", "held-out log-loss"), trials, numbers=(0, 1)))
        if model.penalty_cv.structures:
            of_structures = ((s.structure, f"{s.penalty:g}", f"{s.log_loss:.5f}") for s in model.penalty_cv.structures)
            columns = ("structure", "penalty", "held-out log-loss")
            tables.append(filled_table("Structures", columns, of_structures, numbers=(1, 2)))
        if model.penalty_cv.arcs:
            choices = (
                (ARC_CHOICES[tried.arcs], f"{tried.n_arcs:,}", f"{tried.penalty:g}", f"{tried.log_loss:.5f}")
                for tried in model.penalty_cv.arcs
            )
            headings = ("choice", "arcs", "penalty", "held-out log-loss")
            tables.append(filled_table("Arcs", headings, choices, numbers=(1, 2, 3)))
    if model.edits:
        lines = [line for edit in model.edits for line in edit_lines(edit, schema.labels)]
        tables += ["Edits", "", *lines, ""]
    if report.trials:
        candidates = map(candidate_cells, report.trials)
        tables.append(filled_table("Candidates", CANDIDATE_HEADINGS, candidates, numbers=(1, 2, 3, 4)))

    if report.tables is not None and report.components is not None:
        for component in report.components:
            tables += ["", f"Component {component.name}, weight {component.weight:.4f}"]
            tables += _score_tables(schema, component.tables)
    else:
        tables += _score_tables(schema, report.tables)
    if report.effects is not None:
        tables += ["", *effect_tables(report.effects, schema.labels)]
    return tables


def _model_facts(report: step.ModelReport) -> dict[str, str]:
    """Return the facts about a model that are printed on one line each, keyed by their titles."""
    from bncli.files.artifacts.model import rule_summary_json

    model, schema = report.model, report.model.schema
    missing, tokens = "the default tokens", schema.missing_tokens
    if tokens is not None:
        # tokens that all begin with a plus are added to the default
        added = [token.removeprefix("+") for token in tokens if token.startswith("+")]
        is_addition = len(added) == len(tokens)
        missing = f"{missing}, and {', '.join(added)}" if is_addition else ", ".join(["the empty field", *tokens])
    marginalized = "; marginalized" if schema.missing_policy == "marginalize" else ""
    facts = {
        "format": f"bncli-model {report.version}, written by bncli {model.version}",
        "class": schema.class_name,
        "labels": ", ".join(schema.labels),
        "training rows": f"{model.n_rows:,}",
        "structure": model.structure_learned,
        "table entries": f"{model.predictor.n_parameters:,}",
        "values never seen": _UNSEEN[schema.unseen],
        "missing values": missing + marginalized,
    }
    if schema.towards is not None:
        facts["directions"] = f"of the log-odds of {schema.towards}"
    if model.split is not None:
        facts["split by"] = split_text(model.split)
    if model.sampled_rows is not None:
        facts["cuts learned from"] = f"a sample of {model.sampled_rows:,} rows"
    if report.components is None and (perfection := _perfection(report.structure)) is not None:
        facts["perfect graph"] = perfection
    if model.penalty_cv is not None:
        facts["penalty"] = penalty_text(model.penalty_cv)
        if model.penalty_cv.shrinkage is not None and model.predictor.n_parameters > len(schema.labels):
            facts["shrunk"] = shrinkage_text(model.penalty_cv.shrinkage)
    if model.restarts is not None:
        restarts = model.restarts
        what = "held-out likelihoods" if restarts.held_out else "objectives"
        which = f"random start {restarts.best_start}" if restarts.best_start else "the default start"
        ends = f"{what} from {min(restarts.objectives):.7g} to {restarts.objectives[restarts.best_start]:.7g} nats"
        facts["starts"] = f"{which} kept; the default and {len(restarts.objectives) - 1:,} random starts: {ends}"
    if model.class_weights is not None:
        weights = zip(schema.labels, model.class_weights, strict=True)
        facts["class weights"] = ", ".join(f"{label} {weight:.4g}" for label, weight in weights)
    if model.calibration is not None:
        facts |= calibration_facts(model.calibration, schema.labels)
    if model.uncertainty is not None:
        facts["intervals"] = intervals_text(model.uncertainty.summary())
    if model.log_p is not None:
        low, middle = model.log_p.quantiles[0], model.log_p.quantiles[3]
        quantiles = f"mean {model.log_p.mean:.4g}, 1 % quantile {low:.4g}, median {middle:.4g}"
        facts["ln P(x)"] = f"{quantiles} ({model.log_p.rows:,} training rows)"
    if model.rule is not None:
        facts["decides"] = "; ".join(rule_lines(rule_summary_json(model.rule), schema.labels))
    return facts


def _score_tables(schema: Schema, tables: Sequence[step.NamedTable] | None) -> list[Table]:
    """Return the tables of scores that the model adds up, each with a row per cell and a column per class."""
    import numpy as np

    from bncli.engine.data.schema import NumericAttribute

    attributes = {attribute.name: attribute for attribute in schema.attributes}
    shown = []
    for table in tables or ():
        regrouped = table.merged or (None,) * len(table.attributes)
        axes = []
        for name, coarser in zip(table.attributes, regrouped, strict=True):
            attribute = coarser or attributes[name]
            if isinstance(attribute, NumericAttribute):
                cuts = [f"{cut:.6g}" for cut in attribute.cuts]
                values = [f"<= {cut}" for cut in cuts] + [f"> {cuts[-1]}" if cuts else "any"]
            else:
                values = list(attribute.levels)
            axes.append([*values, "missing"])
        rows = (
            (*(axes[i][code] for i, code in enumerate(cell)), *(f"{score:.4f}" for score in table.values[cell]))
            for cell in np.ndindex(table.values.shape[:-1])
        )
        names = [(coarser or attributes[name]).name for name, coarser in zip(table.attributes, regrouped, strict=True)]
        title = f"Scores of {', '.join(names)}" if names else "Scores of the class alone"
        numbers = range(len(names), len(names) + len(schema.labels))
        shown.append(filled_table(title, (*names, *schema.labels), rows, numbers))
    return shown
