"""The model file `.bnc`: one file, self-describing, checksummed, no pickle, safe to open from a stranger.

It is a ZIP archive of `model.json` (sorted keys), `bias.npy` and `tables/<f>.npy`, one array a family in the order of
the key `families`; its comment is a checksum (see `archive.py`). So `unzip -p m.bnc model.json` shows what it is,
numpy.load reads the arrays, and `head -c -64 m.bnc | sha256sum` proves them.

Decided here: equal content is equal bytes, on any machine. A reader compares the size of each array with the
cardinalities that `model.json` declares before it reads it, and its header with the only one such an array can have:
nothing is parsed, guessed at or allocated on a stranger's word. Older versions stay readable; a newer one is refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bncli.engine.model import Model, Tables
from bncli.engine.schema import Schema
from bncli.engine.structure import Dag, Family, name_dag
from bncli.errors import BncliError, ModelError
from bncli.files.archive import Archive, open_archive, pack
from bncli.files.arrays import npy_array, npy_bytes, npy_header
from bncli.files.atomic import write_bytes
from bncli.files.documents import Node, parse
from bncli.files.graphs import graph_json, read_graph
from bncli.files.penalties import penalty_json, read_penalty
from bncli.files.recipes import read_recipe, recipe_json
from bncli.files.schemas import read_schema, schema_json

VERSION = 3
"""Raised whenever a file may hold what older readers would not know, were it one more key."""
_DESCRIPTION = "model.json"
_BIAS = "bias.npy"
_CHOSEN = "penalty_cv"
"""A key of models whose penalty was chosen by cross-validation, since version 2."""


def write_model(path: str, model: Model) -> None:
    """Writes the model file, whole or not at all."""
    write_bytes(path, dump_model(model))


def dump_model(model: Model) -> bytes:
    """The bytes of the model file; equal models have equal bytes."""
    arrays = (model.tables.bias, *model.tables.weights)
    if not all(np.isfinite(array).all() for array in arrays):
        raise BncliError("the learnt parameters are not finite numbers", hint="learn with a penalty above 0")
    text = json.dumps(_describe(model), sort_keys=True, ensure_ascii=False, allow_nan=False)
    names = (_BIAS, *_table_names(len(model.tables.families)))
    return pack([(_DESCRIPTION, f"{text}\n".encode()), *zip(names, map(npy_bytes, arrays), strict=True)])


def _describe(model: Model) -> dict[str, Any]:
    names = [attribute.name for attribute in model.schema.attributes]
    families = model.tables.families
    chosen = {} if model.penalty_cv is None else {_CHOSEN: penalty_json(model.penalty_cv)}
    return chosen | {
        "format": "bncli-model",
        "version": VERSION,
        "bncli_version": model.version,
        "rows": int(model.n_rows),
        "recipe": recipe_json(model.recipe),
        "schema": schema_json(model.schema),
        "structure": graph_json(name_dag(model.structure, model.schema)),
        "families": [
            {"attributes": [names[i] for i in f.attributes], "child": None if f.child is None else names[f.child]}
            for f in families
        ],
    }


def _table_names(n_tables: int) -> list[str]:
    return [f"tables/{f}.npy" for f in range(n_tables)]


def read_model(path: str) -> Model:
    """The model in a file, checked; ModelError (exit code 3) if it is damaged, newer than this bncli, or no model."""
    with open_archive(path) as archive:
        document = _description(archive, path)
        keys = ("format", "version", "bncli_version", "rows", "recipe", "schema", "structure", "families")
        fields = document.fields(keys, (_CHOSEN,))
        schema = read_schema(fields["schema"])
        structure = _read_structure(fields["structure"], schema)
        families = _read_families(fields["families"], schema, structure)
        if schema.marginalizes and families != structure.families(schema.cardinalities, whole=True):
            fields["families"].fail("these are not the tables of the nodes of its structure, all of which are needed")
        tables = _read_tables(archive, families, len(schema.labels))
        recipe = read_recipe(fields["recipe"])
        chosen = read_penalty(fields[_CHOSEN]) if _CHOSEN in fields else None
    return Model(schema, structure, tables, recipe, fields["rows"].integer(0), fields["bncli_version"].text(), chosen)


def format_version(path: str) -> int:
    """The version of the format that a model file has; ModelError as in `read_model`."""
    with open_archive(path) as archive:
        return _description(archive, path).members()["version"].integer(1)


def _description(archive: Archive, path: str) -> Node:
    archive.size(_DESCRIPTION)
    document = parse(archive.read(_DESCRIPTION), f"{path}, {_DESCRIPTION}", ModelError)
    document.check_format("model", VERSION)
    return document


def _read_structure(node: Node, schema: Schema) -> Dag:
    dag = read_graph(node)
    try:
        return dag.resolve(schema)
    except BncliError as error:
        node.fail(error.what)


def _read_families(node: Node, schema: Schema, structure: Dag) -> tuple[Family, ...]:
    """Which attributes each table is for; the child, if there is one, comes first.

    In a model that sums holes out, a child that the structure does not put below the class has a table without it.
    """
    index = {attribute.name: i for i, attribute in enumerate(schema.attributes)}
    cardinalities = schema.cardinalities
    families = []
    for item in node.items():
        fields = item.fields(("attributes", "child"))
        names = fields["attributes"].texts()
        if not names or not all(name in index and cardinalities[index[name]] for name in names):
            fields["attributes"].fail("a table needs attributes of the schema that have values")
        if fields["child"].value not in (None, names[0]):
            fields["child"].fail("the child of a table is its first attribute or null")
        members = tuple(index[name] for name in names)
        child = None if fields["child"].value is None else members[0]
        by_class = child is None or child in structure.class_children or not schema.marginalizes
        families.append(Family(members, tuple(cardinalities[i] for i in members), child, by_class))
    return tuple(families)


def _read_tables(archive: Archive, families: tuple[Family, ...], n_labels: int) -> Tables:
    names = _table_names(len(families))
    if archive.names != [_DESCRIPTION, _BIAS, *names]:
        archive.fail("its members are not those that it describes")
    shapes = [(n_labels,), *((family.n_cells, n_labels) for family in families)]
    bias, *weights = _read_arrays(archive, [_BIAS, *names], shapes)
    return Tables(bias, families, tuple(weights))


def _read_arrays(archive: Archive, names: list[str], shapes: list[tuple[int, ...]]) -> Iterator[NDArray[np.float64]]:
    """Float64 arrays of these shapes: no byte of one is read before the sizes of all are right."""
    for name, shape in zip(names, shapes, strict=True):
        if archive.size(name) != len(npy_header(shape)) + 8 * math.prod(shape):
            archive.fail(f"{name} has not the size that the schema asks for")
    for name, shape in zip(names, shapes, strict=True):
        array = npy_array(archive.read(name), shape)
        if array is None or not np.isfinite(array).all():
            archive.fail(f"{name} does not hold finite float64 numbers of shape {shape}")
        yield array
