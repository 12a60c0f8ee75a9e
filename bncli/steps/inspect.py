"""Describes a model, a cuts file, a structure file or a network of another program; the content tells which it is.

A report holds the engine's own records, which a command shows as tables; `as_json()` is the same as JSON: for
a cuts or structure file its content, for a model how it reads a row, what it looks up and how it was made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.engine.model import ChosenPenalty, Model
from bncli.engine.schema import Attribute, Cuts
from bncli.engine.structure import NamedDag, name_dag
from bncli.errors import ModelError
from bncli.files.attributes import attribute_json
from bncli.files.cuts import cuts_json, read_cuts
from bncli.files.graphs import graph_json
from bncli.files.model import format_version, read_model
from bncli.files.penalties import tried_json
from bncli.files.recipes import recipe_json
from bncli.files.recognition import HEAD, recognise
from bncli.files.structure import read_structure, structure_json
from bncli.recipe import Recipe


class Table(NamedTuple):
    """A table of the scorer: values[x_1, x_2, ..., y], natural logs; no attributes: the class alone."""

    attributes: tuple[str, ...]
    values: NDArray[np.float64]


@dataclass(frozen=True)
class ModelReport:
    """A model; `parameters` counts the entries of all its tables, `rows` the rows that it was learnt from.

    missing_tokens: None = those that mean a hole by default. `penalty` is None for parameters in closed form;
    penalty_cv says how it was chosen, if it was.
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
    structure: NamedDag
    param: str
    recipe: Recipe
    penalty: float | None
    penalty_cv: ChosenPenalty | None
    rows: int
    parameters: int
    tables: tuple[Table, ...] | None

    @property
    def marginalizes(self) -> bool:
        """Whether holes are summed out."""
        return self.missing_policy == "marginalize"

    def as_json(self) -> dict[str, Any]:
        """The report as JSON values; `tables` only where they were asked for."""
        report: dict[str, Any] = {
            "format": self.format,
            "version": self.version,
            "bncli_version": self.bncli_version,
            "class": self.class_name,
            "labels": list(self.labels),
            "attributes": [attribute_json(a) | ({"missing": True} if a.missing else {}) for a in self.attributes],
            "unseen": self.unseen,
            "missing_policy": self.missing_policy,
            "missing_tokens": None if self.missing_tokens is None else list(self.missing_tokens),
            "structure": graph_json(self.structure),
            "perfect": self.structure.unmarried is None,
            "param": self.param,
            "recipe": recipe_json(self.recipe),
            "penalty": self.penalty,
            "penalty_cv": None if self.penalty_cv is None else tried_json(self.penalty_cv),
            "rows": self.rows,
            "parameters": self.parameters,
        }
        if self.tables is not None:
            report["tables"] = [
                {"attributes": list(t.attributes), "shape": list(t.values.shape), "values": t.values.tolist()}
                for t in self.tables
            ]
        return report


@dataclass(frozen=True)
class CutsReport:
    """A cuts file."""

    cuts: Cuts

    def as_json(self) -> dict[str, Any]:
        """The content of the file."""
        return cuts_json(self.cuts)


@dataclass(frozen=True)
class StructureReport:
    """A structure file, or the structure in a file of another program: `format` is its kind (bif, xmlbif, dot)."""

    structure: NamedDag
    format: str = "structure"

    def as_json(self) -> dict[str, Any]:
        """The content of the file, and whether the graph is perfect; None where it does not say which is the class."""
        content = structure_json(self.structure)
        if self.format != "structure":
            content = {"format": self.format, **graph_json(self.structure)}
        perfect = None if self.structure.class_name is None else self.structure.unmarried is None
        return {**content, "perfect": perfect}


def inspect(path: str, *, tables: bool = False) -> ModelReport | CutsReport | StructureReport:
    """What is in the file at `path`; with `tables` all numbers of a model as well."""
    found = recognise(_head(path))
    if found.kind == "cuts":
        return CutsReport(read_cuts(path))
    if found.kind in ("structure", "bif", "xmlbif", "dot"):
        return StructureReport(read_structure(path), found.kind)
    if found.kind != "model":
        what = f"this is {found.description}, not a model, a cuts file or a structure file"
        raise ModelError(what, where=path)
    return _report(read_model(path), format_version(path), tables)


def _head(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            if not file.seekable():
                raise ModelError("cannot inspect a pipe", where=path, hint="save it to a file first")
            return file.read(HEAD)
    except OSError as error:
        raise ModelError(f"cannot read: {(error.strerror or str(error)).lower()}", where=path) from error


def _report(model: Model, version: int, tables: bool) -> ModelReport:
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
        structure=name_dag(model.structure, model.schema),
        param=model.recipe.param,
        recipe=model.recipe,
        penalty=model.penalty,
        penalty_cv=model.penalty_cv,
        rows=model.n_rows,
        parameters=model.tables.n_parameters,
        tables=_tables(model) if tables else None,
    )


def _tables(model: Model) -> tuple[Table, ...]:
    names = [attribute.name for attribute in model.schema.attributes]
    families = zip(model.tables.families, model.tables.weights, strict=True)
    return (
        Table((), model.tables.bias),
        *(Table(tuple(names[i] for i in f.attributes), w.reshape(*f.shape, -1)) for f, w in families),
    )
