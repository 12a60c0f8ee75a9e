"""The model file `.bnc`: one file, self-describing, checksummed, no pickle, safe to open from a stranger.

It is a ZIP archive of `model.json` (sorted keys), `bias.npy` and `tables/<f>.npy`, one array a family in the order of
the key `families`; its comment is a checksum (see `archive.py`). So `unzip -p m.bnc model.json` shows what it is,
numpy.load reads the arrays, and `head -c -64 m.bnc | sha256sum` proves them. In a model with the key `path`, which says
how models were grown region by region, the arrays are the logarithms of the probabilities of the class and of each
region with the class, out of which scoring makes its tables. In a model with the key `blend` (`blends.py`) they are
those of all its members, one after the other.

Decided here: equal content is equal bytes, on any machine. A reader compares the size of each array with the
cardinalities that `model.json` declares before it reads it, and its header with the only one such an array can have:
nothing is parsed, guessed at or allocated on a stranger's word. Older versions stay readable; a newer one is refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from bncli.engine.data.schema import Schema
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Model, Path, PathStep, Tables
from bncli.engine.structures.named_structure import name_structure
from bncli.engine.structures.structure import Dag, Family, Structure
from bncli.errors import BncliError, ModelError
from bncli.files.archive import Archive, npy_array, npy_bytes, npy_header, open_archive, pack
from bncli.files.atomic import write_bytes
from bncli.files.documents import Node, parse
from bncli.files.ensembles import Blend, blend_json, read_blend
from bncli.files.families import families_json, read_families
from bncli.files.graphs import graph_json, read_graph
from bncli.files.penalties import penalty_json, read_penalty
from bncli.files.recipes import read_recipe, recipe_json
from bncli.files.schemas import read_schema, schema_json
from bncli.files.steps_json import read_steps, steps_json

VERSION = 4
"""Raised whenever a file may hold what older readers would not know, were it one more key."""
_DESCRIPTION = "model.json"
_BIAS = "bias.npy"
_CHOSEN = "penalty_cv"
"""A key of models whose penalty was chosen by cross-validation, since version 2."""
_PATH = "path"
"""A key of models that are made of regions and their submodels, since version 4."""
_BLEND = "blend"
"""A key of models that average over several, since version 4."""
_FAR, _ROUNDING = 1e4, 1e-6
"""No log probability of a submodel lies so far below 0; their sum may be so far from 1."""


def write_model(path: str, model: Model) -> None:
    """Writes the model file, whole or not at all."""
    write_bytes(path, dump_model(model))


def dump_model(model: Model) -> bytes:
    """The bytes of the model file; equal models have equal bytes."""
    arrays = _arrays(model)
    if not all(np.isfinite(array).all() for array in arrays):
        raise BncliError("the learnt parameters are not finite numbers", hint="learn with a penalty above 0")
    text = json.dumps(_describe(model), sort_keys=True, ensure_ascii=False, allow_nan=False)
    names = (_BIAS, *_table_names(len(arrays) - 1))
    return pack([(_DESCRIPTION, f"{text}\n".encode()), *zip(names, map(npy_bytes, arrays), strict=True)])


def _arrays(model: Model) -> tuple[Array, ...]:
    """Bias and tables, of one model or all members of a blend, or the submodels that they are made of."""
    if model.path is not None:
        return (model.path.class_logs, *model.path.logs)
    if model.blend is not None:
        biases = np.stack([member.tables.bias for member in model.blend])
        return (biases, *(table for member in model.blend for table in member.tables.weights))
    return (model.tables.bias, *model.tables.weights)


def _describe(model: Model) -> dict[str, Any]:
    chosen = {} if model.penalty_cv is None else {_CHOSEN: penalty_json(model.penalty_cv)}
    path = {} if model.path is None else {_PATH: steps_json(model.path.steps, model.schema)}
    blend = {} if model.blend is None else {_BLEND: blend_json(model)}
    return (
        chosen
        | path
        | blend
        | {
            "format": "bncli-model",
            "version": VERSION,
            "bncli_version": model.version,
            "rows": int(model.n_rows),
            "recipe": recipe_json(model.recipe),
            "schema": schema_json(model.schema),
            "structure": graph_json(name_structure(model.structure, model.schema)),
            "families": families_json(_families(model), model.schema),
        }
    )


def _families(model: Model) -> tuple[Family, ...]:
    """Those of the tables in the file, in their order."""
    if model.blend is not None:
        return tuple(family for member in model.blend for family in member.tables.families)
    return model.tables.families if model.path is None else model.path.families


def _table_names(n_tables: int) -> list[str]:
    return [f"tables/{f}.npy" for f in range(n_tables)]


def read_model(path: str) -> Model:
    """The model in a file, checked; ModelError (exit code 3) if it is damaged, newer than this bncli, or no model."""
    with open_archive(path) as archive:
        document = _description(archive, path)
        keys = ("format", "version", "bncli_version", "rows", "recipe", "schema", "structure", "families")
        fields = document.fields(keys, (_CHOSEN, _PATH, _BLEND))
        schema = read_schema(fields["schema"])
        structure = _read_structure(fields["structure"], schema)
        families = read_families(fields["families"], schema, structure)
        if schema.marginalizes and families != structure.families(schema.cardinalities, whole=True):
            fields["families"].fail("these are not the tables of the nodes of its structure, all of which are needed")
        steps = _read_path(fields[_PATH], schema, structure, families) if _PATH in fields else ()
        blend = _read_blend(fields, families)
        if blend is not None:
            return _blended(archive, fields, schema, structure, families, blend)
        tables = _read_tables(archive, families, len(schema.labels))
        grown = _grown(archive, tables, steps) if steps else None
        return Model(
            schema,
            structure,
            tables if grown is None else grown.tables(grown.best),
            read_recipe(fields["recipe"]),
            fields["rows"].integer(0),
            fields["bncli_version"].text(),
            read_penalty(fields[_CHOSEN]) if _CHOSEN in fields else None,
            grown,
        )


def _read_blend(fields: Mapping[str, Node], families: tuple[Family, ...]) -> Blend | None:
    """What there is to know of a blend before its tables are read."""
    if _BLEND not in fields:
        return None
    if _PATH in fields or _CHOSEN in fields:
        fields[_BLEND].fail("a blend has neither steps nor one penalty")
    return read_blend(fields[_BLEND], len(families))


def _blended(
    archive: Archive,
    fields: Mapping[str, Node],
    schema: Schema,
    structure: Structure,
    families: tuple[Family, ...],
    blend: Blend,
) -> Model:
    """The model whose tables are those of several."""
    if schema.marginalizes:
        fields[_BLEND].fail("with a blend nothing can be summed out")
    biases, *weights = _read_all(archive, families, (len(blend.shares), len(schema.labels)))
    members = blend.members(biases, families, weights)
    return Model(
        schema,
        structure,
        members[0].tables,
        read_recipe(fields["recipe"]),
        fields["rows"].integer(0),
        fields["bncli_version"].text(),
        blend=members,
        trials=blend.trials,
    )


def format_version(path: str) -> int:
    """The version of the format that a model file has; ModelError as in `read_model`."""
    with open_archive(path) as archive:
        return _description(archive, path).members()["version"].integer(1)


def _description(archive: Archive, path: str) -> Node:
    archive.size(_DESCRIPTION)
    document = parse(archive.read(_DESCRIPTION), f"{path}, {_DESCRIPTION}", ModelError)
    document.check_format("model", VERSION)
    return document


def _read_structure(node: Node, schema: Schema) -> Structure:
    try:
        structure = read_graph(node).resolve(schema)
    except BncliError as error:
        node.fail(error.what)
    if schema.marginalizes and not isinstance(structure, Dag):
        node.fail("with regions nothing can be summed out")
    return structure


def _read_path(node: Node, schema: Schema, structure: Structure, families: tuple[Family, ...]) -> tuple[PathStep, ...]:
    """The steps of a path; its families are regions, ascending like every region."""
    if isinstance(structure, Dag):
        node.fail("a Bayesian network does not grow region by region")
    if any(f.child is not None or f.merges or list(f.attributes) != sorted(f.attributes) for f in families):
        node.fail("the tables of a path are those of regions, their attributes as cut and in the order of the schema")
    return read_steps(node, schema, families)


def _grown(archive: Archive, tables: Tables, steps: tuple[PathStep, ...]) -> Path:
    """The path whose submodels were read as tables."""
    arrays = (tables.bias, *tables.weights)
    for name, array in zip([_BIAS, *_table_names(len(tables.weights))], arrays, strict=True):
        likely = array.min() >= -_FAR and array.max() <= _ROUNDING
        if not likely or abs(float(np.exp(array).sum()) - 1.0) > _ROUNDING:
            archive.fail(f"{name} does not hold the logarithms of probabilities that sum to 1")
    return Path(tables.bias, tables.families, tables.weights, steps)


def _read_tables(archive: Archive, families: tuple[Family, ...], n_labels: int) -> Tables:
    bias, *weights = _read_all(archive, families, (n_labels,))
    return Tables(bias, families, tuple(weights))


def _read_all(archive: Archive, families: tuple[Family, ...], bias: tuple[int, ...]) -> Iterator[Array]:
    """The bias, of that shape, whose last entry is K, and the tables."""
    names = [_BIAS, *_table_names(len(families))]
    if archive.names != [_DESCRIPTION, *names]:
        archive.fail("its members are not those that it describes")
    return _read_arrays(archive, names, [bias, *((family.n_cells, bias[-1]) for family in families)])


def _read_arrays(archive: Archive, names: list[str], shapes: list[tuple[int, ...]]) -> Iterator[Array]:
    """Float64 arrays of these shapes: no byte of one is read before the sizes of all are right."""
    for name, shape in zip(names, shapes, strict=True):
        if archive.size(name) != len(npy_header(shape)) + 8 * math.prod(shape):
            archive.fail(f"{name} has not the size that the schema asks for")
    for name, shape in zip(names, shapes, strict=True):
        array = npy_array(archive.read(name), shape)
        if array is None or not np.isfinite(array).all():
            archive.fail(f"{name} does not hold finite float64 numbers of shape {shape}")
        yield array
