"""Describes a model, a cuts, structure or counts file or a network of another program; the content tells which it is.

A report holds the engine's own records, which a command shows as tables; `as_json()` is the same as JSON: for
a cuts or structure file its content, for a model how it reads a row, what it looks up and how it was made.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property, singledispatch
from typing import Any, NamedTuple

from bncli.engine.calibration import Calibration
from bncli.engine.counting.counted_rows import CountedRows
from bncli.engine.data.schema import Attribute, Cuts, Schema
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import (
    ChosenPenalty,
    DecisionRule,
    Ensemble,
    Path,
    Predictor,
    Restarts,
    Tables,
    TrainingLogP,
    TriedCandidate,
)
from bncli.engine.structures.named_structure import NamedDag, NamedRegions, NamedStructure, name_structure
from bncli.engine.structures.regrouping import regroup_attribute
from bncli.engine.structures.structure import Family
from bncli.errors import ModelError
from bncli.files.artifacts.counts import counts_json, read_counts
from bncli.files.artifacts.cuts import SAMPLED_ROWS, cuts_json, direction_json, read_cuts
from bncli.files.artifacts.file_kinds import HEAD_BYTES, recognise
from bncli.files.artifacts.model import (
    CALIBRATION,
    TRAINING_LOG_P,
    calibration_json,
    format_version,
    read_model,
    rule_summary_json,
    training_log_p_json,
)
from bncli.files.artifacts.predictors import trials_json
from bncli.files.artifacts.provenance import arcs_json, recipe_json, restarts_json, shrinkage_json, tried_json
from bncli.files.artifacts.structure import read_structure
from bncli.files.exports import EXPORTS
from bncli.files.exports.structure_json import graph_json, structure_json
from bncli.files.paths import cannot_read
from bncli.recipe import Recipe
from bncli.steps.effects_and_regions import (
    EffectsReport,
    NamedStep,
    attribute_with_missing,
    effects_report,
    path_steps,
    search_steps,
)


class Table(NamedTuple):
    """A table of the scorer: values[x_1, x_2, ..., y], natural logs; no attributes: the class alone.

    Where the table has attributes in coarser binnings than they were cut, `merged` has these, or None, for each.
    """

    attributes: tuple[str, ...]
    values: Array
    merged: tuple[Attribute | None, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the key `merges` is there only where an attribute is regrouped."""
        merges = (
            {"merges": [None if a is None else attribute_with_missing(a) for a in self.merged]} if self.merged else {}
        )
        return {
            "attributes": list(self.attributes),
            "shape": list(self.values.shape),
            **merges,
            "values": self.values.tolist(),
        }


class NamedComponent(NamedTuple):
    """One of the models of an ensemble; its tables only where they were asked for.

    sizes: how many tables it has over one attribute, two, and so on, by that number.
    """

    name: str
    weight: float
    tables: tuple[Table, ...] | None
    sizes: dict[int, int]

    def as_json(self) -> dict[str, Any]:
        """Return the key `tables` is there only where there are any."""
        tables = {} if self.tables is None else {"tables": [table.as_json() for table in self.tables]}
        return {"name": self.name, "weight": self.weight} | tables


@dataclass(frozen=True)
class ModelReport:
    """A model; `parameters` counts the entries of all its tables, `rows` the rows that it was learnt from.

    Where it averages over the `steps` of a path, `tables` are those of the `best_step`, `parameters` those of all; in
    an ensemble, for which there were `trials`, `tables` and `structure` are those of the heaviest of its `components`.
    missing_tokens: None = those that mean a missing value by default. `penalty` is None for parameters in closed form;
    penalty_cv says how it was chosen, if it was, and `restarts` where random starts ended. label_frequencies,
    class_weights, rule and log_p as the model has them, towards as its schema.
    """

    format: str
    version: int
    bncli_version: str
    class_name: str
    labels: tuple[str, ...]
    attributes: tuple[Attribute, ...]
    unseen: str
    missing_policy: str
    missing_tokens: tuple[str, ...] | None
    structure: NamedStructure
    param: str
    recipe: Recipe
    penalty: float | None
    penalty_cv: ChosenPenalty | None
    rows: int
    parameters: int
    tables: tuple[Table, ...] | None
    restarts: Restarts | None = None
    steps: tuple[NamedStep, ...] | None = None
    best_step: int | None = None
    trials: tuple[TriedCandidate, ...] | None = None
    components: tuple[NamedComponent, ...] | None = None
    effects: EffectsReport | None = None
    sampled_rows: int | None = None
    label_frequencies: tuple[float, ...] = ()
    class_weights: tuple[float, ...] | None = None
    rule: DecisionRule | None = None
    calibration: Calibration | None = None
    log_p: TrainingLogP | None = None
    structure_learned: str = ""
    towards: str | None = None

    @property
    def marginalizes(self) -> bool:
        """Whether missing values are marginalized."""
        return self.missing_policy == "marginalize"

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON values.

        `tables` only where they were asked for, `steps` only where there is a path.
        """
        report: dict[str, Any] = {
            "format": self.format,
            "version": self.version,
            "bncli_version": self.bncli_version,
            "class": self.class_name,
            "labels": list(self.labels),
            "attributes": [attribute_with_missing(a) | direction_json(a) for a in self.attributes],
            "unseen": self.unseen,
            "missing_policy": self.missing_policy,
            "missing_tokens": None if self.missing_tokens is None else list(self.missing_tokens),
            "structure": graph_json(self.structure),
            "structure_learned": self.structure_learned,
            "perfect": _is_perfect(self.structure),
            "param": self.param,
            "recipe": recipe_json(self.recipe),
            "penalty": self.penalty,
            "penalty_cv": None if self.penalty_cv is None else tried_json(self.penalty_cv),
            "arcs_cv": arcs_json(self.penalty_cv),
            "rows": self.rows,
            "parameters": self.parameters,
        }
        return report | self._where_used()

    def _where_used(self) -> dict[str, Any]:
        """Return the keys that only some models have, or that were asked for."""
        report: dict[str, Any] = {}
        if (shrunk := shrinkage_json(self.penalty_cv)) is not None:
            report["shrunk"] = shrunk
        if self.towards is not None:
            report["towards"] = self.towards
        if self.restarts is not None:
            report["restarts"] = restarts_json(self.restarts)
        if self.sampled_rows is not None:
            report[SAMPLED_ROWS] = self.sampled_rows
        report |= self._decisions()
        if self.steps is not None:
            report |= {"steps": [step.as_json() for step in self.steps], "best_step": self.best_step}
        if self.trials is not None:
            report["trials"] = trials_json(self.trials)
        if self.components is not None:
            report["members"] = [component.as_json() for component in self.components]
        if self.tables is not None:
            report["tables"] = [table.as_json() for table in self.tables]
        if self.effects is not None:
            report |= self.effects.as_json()
        return report

    def _decisions(self) -> dict[str, Any]:
        """Frequencies and weights of the labels, calibration, and how to decide, as far as the model has them."""
        found: dict[str, Any] = {"label_frequencies": list(self.label_frequencies)} if self.label_frequencies else {}
        if self.class_weights is not None:
            found["class_weights"] = list(self.class_weights)
        if self.calibration is not None:
            found[CALIBRATION] = calibration_json(self.calibration)
        if self.log_p is not None:
            found[TRAINING_LOG_P] = training_log_p_json(self.log_p)
        return found if self.rule is None else found | {"decisions": rule_summary_json(self.rule)}


@dataclass(frozen=True)
class CutsReport:
    """A cuts file."""

    cuts: Cuts

    def as_json(self) -> dict[str, Any]:
        """Return the content of the file."""
        return cuts_json(self.cuts)


@dataclass(frozen=True)
class CountsReport:
    """A counts file."""

    counted: CountedRows

    def as_json(self) -> dict[str, Any]:
        """Return what the file says of its rows, without the numbers.

        `counted` are the tables beside those of attributes.
        """
        counted, content = self.counted, counts_json(self.counted)
        kept = {
            key: content[key] for key in ("format", "version", "labels", "rows", "missing_tokens", "decayed", "parts")
        }
        weight = float(counted.class_counts.sum())
        cuts = {"class": counted.cuts.class_name, "attributes": content["cuts"]["attributes"]}
        return kept | cuts | {"weight": weight, "counted": content["tables"]}


@dataclass(frozen=True)
class StructureReport:
    """A structure file, or the structure in a file of another program: `format` is its kind (bif, xmlbif, dot)."""

    structure: NamedStructure
    format: str = "structure"

    def as_json(self) -> dict[str, Any]:
        """Return the content of the file, and whether the graph is perfect.

        None where there is no graph, or no class.
        """
        content = structure_json(self.structure)
        if self.format != "structure":
            content = {"format": self.format, **graph_json(self.structure)}
        return {**content, "perfect": _is_perfect(self.structure)}

    @property
    def best_step(self) -> int | None:
        """The one of highest posterior, where there are steps."""
        trace = self.structure.trace if isinstance(self.structure, NamedRegions) else None
        return None if trace is None else trace.map_step

    @cached_property
    def steps(self) -> tuple[NamedStep, ...] | None:
        """Those of the search for regions; None for a graph, and where the file does not say anything of them."""
        return search_steps(self.structure) if isinstance(self.structure, NamedRegions) else None


def _is_perfect(structure: NamedStructure) -> bool | None:
    """Return None where the question has no meaning."""
    if not isinstance(structure, NamedDag) or structure.class_name is None:
        return None
    return structure.unmarried is None


Report = ModelReport | CutsReport | StructureReport | CountsReport


def inspect(path: str, *, tables: bool = False, effects: bool = False) -> Report:
    """Return what is in the file at `path`.

    With `tables` all numbers of a model as well, with `effects` what they mean.
    """
    found = recognise(_head(path))
    if found.kind == "cuts":
        return CutsReport(read_cuts(path))
    if found.kind == "counts":
        return CountsReport(read_counts(path))
    if found.kind == "structure" or found.kind in EXPORTS:
        return StructureReport(read_structure(path), found.kind)
    if found.kind != "model":
        what = f"this is {found.description}, not a model, or a cuts, structure or counts file"
        raise ModelError(what, where=path)
    model = read_model(path)
    version = format_version(path)
    return ModelReport(
        format="bncli-model",
        version=version,
        bncli_version=model.version,
        class_name=model.schema.class_name,
        labels=model.schema.labels,
        attributes=model.schema.attributes,
        unseen=model.schema.unseen,
        missing_policy=model.schema.missing_policy,
        missing_tokens=model.schema.missing_tokens,
        structure=name_structure(model.structure, model.schema),
        structure_learned=model.structure_learned,
        param=model.recipe.param,
        recipe=model.recipe,
        penalty=model.penalty,
        penalty_cv=model.penalty_cv,
        restarts=model.restarts,
        rows=model.n_rows,
        sampled_rows=model.sampled_rows,
        label_frequencies=model.schema.label_frequencies,
        class_weights=model.class_weights,
        rule=model.rule,
        calibration=model.calibration,
        log_p=model.log_p,
        towards=model.schema.towards,
        parameters=model.predictor.n_parameters,
        tables=_tables(model.tables, model.schema) if tables else None,
        effects=effects_report(model) if effects else None,
        **_of_kind(model.predictor, model.schema, tables),
    )


def _head(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            if not file.seekable():
                raise ModelError("cannot inspect a pipe", where=path, hint="save it to a file first")
            return file.read(HEAD_BYTES)
    except OSError as error:
        raise cannot_read(path, error, ModelError) from error


@singledispatch
def _of_kind(_: Predictor, schema: Schema, tables: bool) -> dict[str, Any]:
    """Return the fields of the report that only some kinds of predictors have: none."""
    return {}


@_of_kind.register
def _(path: Path, schema: Schema, tables: bool) -> dict[str, Any]:
    return {"steps": path_steps(path, schema), "best_step": path.best}


@_of_kind.register
def _(ensemble: Ensemble, schema: Schema, tables: bool) -> dict[str, Any]:
    named = (
        NamedComponent(
            c.name,
            c.weight,
            _tables(c.tables, schema) if tables else None,
            dict(sorted(Counter(len(family.attributes) for family in c.tables.families).items())),
        )
        for c in ensemble.components
    )
    return {"trials": ensemble.trials, "components": tuple(named)}


def _tables(tables: Tables, schema: Schema) -> tuple[Table, ...]:
    families = zip(tables.families, tables.weights, strict=True)
    return (Table((), tables.bias), *(_table(f, w, schema.attributes) for f, w in families))


def _table(family: Family, weights: Array, attributes: tuple[Attribute, ...]) -> Table:
    merged = tuple(
        None if merge is None else regroup_attribute(attributes[i], merge) for i, merge in family.binned_attributes
    )
    names = tuple(attributes[i].name for i in family.attributes)
    return Table(names, weights.reshape(*family.shape, -1), merged if family.groupings else ())
