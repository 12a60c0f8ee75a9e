"""Describe a file: a model, cuts, a structure, counts, or a network of another program.

The kind of file is recognized by its content. A report contains records of the engine, which the command prints as
tables. `as_json()` returns the content of a cuts or structure file, and that of a counts file without the counts. For a
model it returns how rows are read, what the model contains, and how it was made.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from bncli.engine.counting.counted_rows import CountedRows
from bncli.engine.data.schema import Attribute, Cuts, Schema
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Ensemble, Model, Path, Tables, TriedCandidate
from bncli.engine.structures.named_structure import NamedDag, NamedRegions, NamedStructure, name_structure
from bncli.engine.structures.regrouping import regroup_attribute
from bncli.errors import ModelError
from bncli.files.artifacts.counts import counts_json, read_counts
from bncli.files.artifacts.cuts import SAMPLED_ROWS, cuts_json, direction_json, read_cuts
from bncli.files.artifacts.file_kinds import HEAD_BYTES, recognise
from bncli.files.artifacts.model import (
    CALIBRATION,
    SPLIT,
    TRAINING_LOG_P,
    calibration_json,
    format_version,
    read_model,
    rule_summary_json,
    split_json,
    training_log_p_json,
)
from bncli.files.artifacts.predictors import trials_json
from bncli.files.artifacts.provenance import (
    arcs_json,
    edit_json,
    recipe_json,
    restarts_json,
    shrinkage_json,
    structures_json,
    tried_json,
)
from bncli.files.artifacts.structure import read_structure
from bncli.files.exports import EXPORTS
from bncli.files.exports.structure_json import graph_json, structure_json
from bncli.files.paths import cannot_read
from bncli.steps.effects_and_regions import (
    EffectsReport,
    NamedStep,
    attribute_with_missing,
    effects_report,
    path_steps,
    search_steps,
)


class NamedTable(NamedTuple):
    """A table of the scorer: values[x_1, x_2, ..., y] are terms of the score of class y, in nats.

    attributes: their names; the table without attributes is the bias (K,) of the classes. merged: for each attribute
    its coarser binning, or None if it is used as it was cut; empty if no attribute is regrouped.
    """

    attributes: tuple[str, ...]
    values: Array
    merged: tuple[Attribute | None, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the table as JSON, with `merges` only if an attribute is regrouped."""
        merges = [None if attribute is None else attribute_with_missing(attribute) for attribute in self.merged]
        return {
            "attributes": list(self.attributes),
            "shape": list(self.values.shape),
            **({"merges": merges} if merges else {}),
            "values": self.values.tolist(),
        }


class NamedComponent(NamedTuple):
    """A component of an ensemble, with its weight.

    tables: None unless requested. sizes: how many of its tables, without the bias, have each number of attributes.
    """

    name: str
    weight: float
    tables: tuple[NamedTable, ...] | None
    sizes: dict[int, int]

    def as_json(self) -> dict[str, Any]:
        """Return the component as JSON without `sizes`, and with `tables` only if they were requested."""
        tables = {} if self.tables is None else {"tables": [table.as_json() for table in self.tables]}
        return {"name": self.name, "weight": self.weight} | tables


@dataclass(frozen=True)
class ModelReport:
    """A model, with the version of its file format, and its structure with the names of attributes.

    tables, effects: None unless requested. For a model that averages over the `steps` of a path, the tables are those
    of `best_step`. For an ensemble, the tables and the structure are those of its heaviest component; `trials` are the
    candidates for its components.
    """

    model: Model
    version: int
    structure: NamedStructure
    tables: tuple[NamedTable, ...] | None
    effects: EffectsReport | None
    steps: tuple[NamedStep, ...] | None = None
    best_step: int | None = None
    trials: tuple[TriedCandidate, ...] | None = None
    components: tuple[NamedComponent, ...] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON values, without keys that do not apply to the model or were not requested."""
        model, schema = self.model, self.model.schema
        report = {
            "format": "bncli-model",
            "version": self.version,
            "bncli_version": model.version,
            "class": schema.class_name,
            "labels": list(schema.labels),
            "attributes": [attribute_with_missing(a) | direction_json(a) for a in schema.attributes],
            "unseen": schema.unseen,
            "missing_policy": schema.missing_policy,
            "missing_tokens": None if schema.missing_tokens is None else list(schema.missing_tokens),
            "structure": graph_json(self.structure),
            "structure_learned": model.structure_learned,
            "perfect": _is_perfect(self.structure),
            "param": model.recipe.param,
            "recipe": recipe_json(model.recipe),
            "penalty": model.penalty,
            "penalty_cv": None if model.penalty_cv is None else tried_json(model.penalty_cv),
            "arcs_cv": arcs_json(model.penalty_cv),
            "rows": model.n_rows,
            "parameters": model.predictor.n_parameters,
        }
        optional = {
            "structures_cv": structures_json(model.penalty_cv) or None,
            "shrunk": shrinkage_json(model.penalty_cv),
            "towards": schema.towards,
            "restarts": None if model.restarts is None else restarts_json(model.restarts),
            SAMPLED_ROWS: model.sampled_rows,
            SPLIT: None if model.split is None else split_json(model.split),
            "label_frequencies": list(schema.label_frequencies) or None,
            "class_weights": None if model.class_weights is None else list(model.class_weights),
            CALIBRATION: None if model.calibration is None else calibration_json(model.calibration),
            TRAINING_LOG_P: None if model.log_p is None else training_log_p_json(model.log_p),
            "decisions": None if model.rule is None else rule_summary_json(model.rule),
            "steps": None if self.steps is None else [step.as_json() for step in self.steps],
            "best_step": self.best_step,
            "trials": None if self.trials is None else trials_json(self.trials),
            "members": None if self.components is None else [component.as_json() for component in self.components],
            "tables": None if self.tables is None else [table.as_json() for table in self.tables],
            "edits": [edit_json(edit, schema.labels) for edit in model.edits] or None,
            "intervals": None if model.uncertainty is None else model.uncertainty.summary(),
        }
        effects = {} if self.effects is None else self.effects.as_json()
        return report | {key: value for key, value in optional.items() if value is not None} | effects


@dataclass(frozen=True)
class CutsReport:
    cuts: Cuts

    def as_json(self) -> dict[str, Any]:
        """Return the content of the file."""
        return cuts_json(self.cuts)


@dataclass(frozen=True)
class CountsReport:
    counted: CountedRows

    def as_json(self) -> dict[str, Any]:
        """Return the content of the file without the counts; `counted` lists the tables of attribute sets."""
        content = counts_json(self.counted)
        keys = ("format", "version", "labels", "rows", "missing_tokens", "decayed", "parts")
        return {
            **{key: content[key] for key in keys},
            "class": self.counted.cuts.class_name,
            "attributes": content["cuts"]["attributes"],
            "weight": float(self.counted.class_counts.sum()),
            "counted": content["tables"],
        }


@dataclass(frozen=True)
class StructureReport:
    """The structure in a structure file, or in a file of another program; format: structure, bif, xmlbif or dot."""

    structure: NamedStructure
    format: str = "structure"

    def as_json(self) -> dict[str, Any]:
        """Return the content of a structure file, or the format and the graph of a file of another program.

        The key `perfect` is added: whether the graph is perfect, or None for regions or without a class.
        """
        if self.format == "structure":
            content = structure_json(self.structure)
        else:
            content = {"format": self.format, **graph_json(self.structure)}
        return {**content, "perfect": _is_perfect(self.structure)}

    @property
    def best_step(self) -> int | None:
        """The step with the highest posterior, or None if the file contains no steps."""
        trace = self.structure.trace if isinstance(self.structure, NamedRegions) else None
        return None if trace is None else trace.map_step

    @cached_property
    def steps(self) -> tuple[NamedStep, ...] | None:
        """The steps of a search for regions; None for a graph, or if the file does not contain them."""
        return search_steps(self.structure) if isinstance(self.structure, NamedRegions) else None


def _is_perfect(structure: NamedStructure) -> bool | None:
    """Return whether a graph is perfect, or None for regions and for a graph without a class."""
    if not isinstance(structure, NamedDag) or structure.class_name is None:
        return None
    return structure.unmarried is None


Report = ModelReport | CutsReport | StructureReport | CountsReport


def inspect(path: str, *, tables: bool = False, effects: bool = False) -> Report:
    """Describe the file at `path`; `tables` and `effects` request the tables and effects of a model.

    Raises ModelError if the file cannot be opened, is of another kind, or is a pipe, and the errors of reading a
    damaged file.
    """
    try:
        with open(path, "rb") as file:
            if not file.seekable():
                raise ModelError("bncli inspect cannot read a pipe", where=path, hint="save the input to a file first")
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise cannot_read(path, error, ModelError) from error
    content = recognise(head)
    if content.kind == "cuts":
        return CutsReport(read_cuts(path))
    if content.kind == "counts":
        return CountsReport(read_counts(path))
    if content.kind == "structure" or content.kind in EXPORTS:
        return StructureReport(read_structure(path), content.kind)
    if content.kind != "model":
        what = f"this is {content.description}, not a model, cuts, structure or counts file"
        raise ModelError(what, where=path)
    model = read_model(path)
    schema, predictor = model.schema, model.predictor
    of_kind: dict[str, Any] = {}  # fields that only some kinds of predictors have
    if isinstance(predictor, Path):
        of_kind = {"steps": path_steps(predictor, schema), "best_step": predictor.best}
    elif isinstance(predictor, Ensemble):
        components = []
        for component in predictor.components:
            sizes = Counter(len(family.attributes) for family in component.tables.families)
            its_tables = _named_tables(component.tables, schema) if tables else None
            components.append(NamedComponent(component.name, component.weight, its_tables, dict(sorted(sizes.items()))))
        of_kind = {"trials": predictor.trials, "components": tuple(components)}
    return ModelReport(
        model,
        format_version(path),
        name_structure(model.structure, schema),
        _named_tables(model.tables, schema) if tables else None,
        effects_report(model) if effects else None,
        **of_kind,
    )


def _named_tables(tables: Tables, schema: Schema) -> tuple[NamedTable, ...]:
    attributes = schema.attributes
    named = [NamedTable((), tables.bias)]
    for family, weights in zip(tables.families, tables.weights, strict=True):
        names = tuple(attributes[i].name for i in family.attributes)
        merged: tuple[Attribute | None, ...] = ()
        if family.groupings:
            merged = tuple(
                None if grouping is None else regroup_attribute(attributes[i], grouping)
                for i, grouping in family.binned_attributes
            )
        named.append(NamedTable(names, weights.reshape(*family.shape, -1), merged))
    return tuple(named)
