"""The model file `.bnc`: one file, self-describing, checksummed, no pickle, safe to open from an untrusted source.

It is a ZIP archive of `model.json` (sorted keys), `bias.npy` and `tables/<f>.npy`, one array a family in the order of
the key `families`, or, where very many families join codes (`families.are_many`), `tables.npy`, the same arrays one
below the other, and last the self-test of the model (`engine/prediction/verification.py`): `self_test/codes.npy`
(attributes, rows), unsigned, and `self_test/probabilities.npy` (labels, rows), whose number of rows is the key
`self_test`; its comment is a checksum (see `archive.py`). So `unzip -p m.bnc model.json` shows what it is,
numpy.load reads the arrays, and `head -c -64 m.bnc | sha256sum` proves them. What the arrays hold depends on the kind
of predictor (`predictors.py`).

Conventions: equal content is equal bytes, on any machine. A reader compares the size of each array with the
cardinalities that `model.json` declares before it reads it, and its header with the only one such an array can have:
nothing is parsed, guessed at or allocated on the word of an untrusted file. Older versions stay readable; a newer one
is refused.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from bncli.engine.data.schema import Schema
from bncli.engine.data.self_test import SelfTest
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Ensemble, Model, Pool
from bncli.engine.structures.named_structure import name_structure
from bncli.engine.structures.structure import Dag, Family, Structure
from bncli.errors import BncliError, ModelError
from bncli.files.archive import Archive, npy_array, npy_bytes, npy_header, open_archive, pack
from bncli.files.atomic import write_bytes
from bncli.files.calibrations import CALIBRATION, calibration_json, read_calibration
from bncli.files.cuts import SAMPLED
from bncli.files.decision_rules import DECISIONS, read_rule, rule_json
from bncli.files.documents import Node, parse
from bncli.files.families import are_many, families_json, read_families
from bncli.files.graphs import graph_json, read_graph
from bncli.files.log_p import TRAINING_LOG_P, read_training_log_p, training_log_p_json
from bncli.files.penalties import penalty_json, read_penalty, read_restarts, restarts_json
from bncli.files.predictors import (
    CHOSEN,
    KEYS,
    RESTARTS,
    Frame,
    array_names,
    predictor_arrays,
    predictor_json,
    read_predictor,
)
from bncli.files.recipes import read_recipe, recipe_json
from bncli.files.schemas import label_numbers, read_schema, schema_json

VERSION = 7
"""Raised whenever a file may hold what older readers would not know, were it one more key."""
_WITHOUT_LABEL_FREQUENCIES = 6
_WITHOUT_SELF_TEST = 5
_LAST = 4
"""Of files that have neither a self-test nor very many families nor a logarithmic pool: older readers know them."""
_DESCRIPTION = "model.json"
_ALL_TABLES = "tables.npy"
_SELF_TEST = "self_test"
_CLASS_WEIGHTS = "class_weights"
_PLAIN = "plain_frequencies"
_SELF_TEST_ARRAYS = ("self_test/codes.npy", "self_test/probabilities.npy")

OPTIONAL_KEYS = (
    CHOSEN,
    RESTARTS,
    SAMPLED,
    _SELF_TEST,
    _CLASS_WEIGHTS,
    _PLAIN,
    CALIBRATION,
    DECISIONS,
    TRAINING_LOG_P,
    *KEYS,
)
"""Keys that only some models have."""


def write_model(path: str, model: Model) -> None:
    """Writes the model file, whole or not at all."""
    write_bytes(path, dump_model(model))


def dump_model(model: Model) -> bytes:
    """The bytes of the model file; equal models have equal bytes."""
    arrays = predictor_arrays(model.predictor)
    if not all(np.isfinite(array).all() for array in arrays):
        raise BncliError("the learnt parameters are not finite numbers", hint="learn with a penalty above 0")
    text = json.dumps(_describe(model), sort_keys=True, ensure_ascii=False, allow_nan=False)
    names = array_names(len(arrays) - 1)
    if are_many(model.predictor.families):
        arrays, names = (arrays[0], np.concatenate(arrays[1:])), [names[0], _ALL_TABLES]
    members = [(_DESCRIPTION, f"{text}\n".encode()), *zip(names, map(npy_bytes, arrays), strict=True)]
    return pack([*members, *_self_test_members(model)])


def _self_test_members(model: Model) -> Iterator[tuple[str, bytes]]:
    if model.self_test is not None:
        codes = model.self_test.codes.astype(_code_type(model))
        yield from zip(_SELF_TEST_ARRAYS, map(npy_bytes, (codes, model.self_test.probabilities)), strict=True)


def _code_type(model: Model) -> np.dtype[Any]:
    """The narrowest that holds every code, "unknown" included."""
    return np.min_scalar_type(max((model.schema.cardinalities[i] for i in model.attributes), default=0))


def _describe(model: Model) -> dict[str, Any]:
    chosen = {} if model.penalty_cv is None else {CHOSEN: penalty_json(model.penalty_cv)}
    restarts = {} if model.restarts is None else {RESTARTS: restarts_json(model.restarts)}
    sampled = {} if model.sampled_rows is None else {SAMPLED: model.sampled_rows}
    self_test = {} if model.self_test is None else {_SELF_TEST: model.self_test.n_rows}
    class_weights: dict[str, Any] = {} if model.class_weights is None else {_CLASS_WEIGHTS: list(model.class_weights)}
    if model.plain_frequencies is not None:
        names = {i: model.schema.attributes[i].name for i in model.plain_frequencies}
        class_weights[_PLAIN] = {names[i]: list(weights) for i, weights in model.plain_frequencies.items()}
    calibration = {} if model.calibration is None else {CALIBRATION: calibration_json(model.calibration)}
    log_p = {} if model.log_p is None else {TRAINING_LOG_P: training_log_p_json(model.log_p)}
    return (
        chosen
        | restarts
        | sampled
        | self_test
        | class_weights
        | ({} if model.rule is None else {DECISIONS: rule_json(model.rule)})
        | calibration
        | log_p
        | {
            "format": "bncli-model",
            "version": _version(model),
            "bncli_version": model.version,
            "rows": int(model.n_rows),
            "recipe": recipe_json(model.recipe),
            "schema": schema_json(model.schema),
            "structure": graph_json(name_structure(model.structure, model.schema)),
            "families": families_json(model.predictor.families, model.schema),
            **predictor_json(model.predictor, model.schema),
        }
    )


def read_model(path: str) -> Model:
    """The model in a file, checked; ModelError (exit code 3) if it is damaged, newer than this bncli, or no model."""
    with open_archive(path) as archive:
        document = _description(archive, path)
        keys = ("format", "version", "bncli_version", "rows", "recipe", "schema", "structure", "families")
        fields = document.fields(keys, OPTIONAL_KEYS)
        schema = read_schema(fields["schema"])
        structure = _read_structure(fields["structure"], schema)
        families = read_families(fields["families"], schema, structure)
        if schema.marginalizes and families != structure.families(schema.cardinalities, whole=True):
            fields["families"].fail("these are not the tables of the nodes of its structure, all of which are needed")
        pending = read_predictor(fields, Frame(schema, structure, families))
        parts = archive.names[: -len(_SELF_TEST_ARRAYS)] if _SELF_TEST in fields else archive.names
        bias, *weights = _read_all(archive, parts, families, pending.bias_shape)
        model = Model(
            schema,
            structure,
            pending.build(bias, tuple(weights), archive.fail),
            read_recipe(fields["recipe"]),
            fields["rows"].integer(0),
            fields["bncli_version"].text(),
            read_penalty(fields[CHOSEN]) if CHOSEN in fields else None,
            read_restarts(fields[RESTARTS]) if RESTARTS in fields else None,
            fields[SAMPLED].integer(1) if SAMPLED in fields else None,
        )
        model = _with_later_keys(model, fields)
        if _SELF_TEST not in fields:
            return model
        return replace(model, self_test=_read_self_test(archive, model, fields[_SELF_TEST].integer(1)))


def _with_later_keys(model: Model, fields: dict[str, Node]) -> Model:
    """With what files of the first versions never had."""
    schema, found = model.schema, dict[str, Any]()
    if _CLASS_WEIGHTS in fields:
        found["class_weights"] = _read_class_weights(fields[_CLASS_WEIGHTS], schema)
    if _PLAIN in fields:
        found["plain_frequencies"] = _read_plain(fields[_PLAIN], schema)
    if DECISIONS in fields:
        found["rule"] = read_rule(fields[DECISIONS], schema.labels)
    if CALIBRATION in fields:
        found["calibration"] = read_calibration(fields[CALIBRATION], len(schema.labels))
    if TRAINING_LOG_P in fields:
        found["log_p"] = read_training_log_p(fields[TRAINING_LOG_P])
    return replace(model, **found)


def _read_class_weights(node: Node, schema: Schema) -> tuple[float, ...]:
    weights = label_numbers(node, schema.labels)
    if not schema.label_frequencies or min(weights) == 0:
        node.fail("class weights are above 0, and go with the key 'label_frequencies' of the schema")
    return weights


def _read_plain(node: Node, schema: Schema) -> dict[int, tuple[float, ...]]:
    """Weights of the values of attributes and of none, by the attribute's index."""
    found, members = {}, node.members()
    for i, attribute in enumerate(schema.attributes):
        if (weights := members.pop(attribute.name, None)) is not None:
            found[i] = tuple(weight.number() for weight in weights.items())
            if len(found[i]) != attribute.cardinality + 1 or min(found[i]) < 0:
                weights.fail(f"expected {attribute.cardinality + 1} numbers of at least 0")
    if members:
        node.fail(f"there is no attribute {next(iter(members))!r}")
    return found


def _version(model: Model) -> int:
    """The lowest whose readers can read it."""
    predictor = model.predictor
    if model.schema.label_frequencies or model.class_weights is not None:
        return VERSION
    if model.calibration is not None or model.rule is not None or model.log_p is not None:
        return VERSION
    if model.self_test is not None:
        return _WITHOUT_LABEL_FREQUENCIES
    is_new = are_many(predictor.families) or (isinstance(predictor, Ensemble) and predictor.pool is Pool.LOGARITHMIC)
    return _WITHOUT_SELF_TEST if is_new else _LAST


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
        node.fail("with regions missing values cannot be marginalized")
    return structure


def _read_all(
    archive: Archive, parts: list[str], families: tuple[Family, ...], bias: tuple[int, ...]
) -> Iterator[Array]:
    """The bias, of that shape, whose last entry is K, and the tables, in these members."""
    names = array_names(len(families))
    if parts == [_DESCRIPTION, names[0], _ALL_TABLES]:
        return _read_joint(archive, families, bias)
    if parts != [_DESCRIPTION, *names]:
        archive.fail("its members are not those that it describes")
    return _read_arrays(archive, names, [bias, *((family.n_cells, bias[-1]) for family in families)])


def _read_joint(archive: Archive, families: tuple[Family, ...], bias: tuple[int, ...]) -> Iterator[Array]:
    """The bias, and the tables as parts of one array."""
    ends = list(itertools.accumulate((family.n_cells for family in families), initial=0))
    first, tables = _read_arrays(archive, [array_names(0)[0], _ALL_TABLES], [bias, (ends[-1], bias[-1])])
    yield first
    yield from (tables[start:stop] for start, stop in itertools.pairwise(ends))


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


def _read_self_test(archive: Archive, model: Model, n_rows: int) -> SelfTest:
    """The codes, none beyond "unknown", and the probabilities of so many rows."""
    names = list(_SELF_TEST_ARRAYS)
    if archive.names[-len(names) :] != names:
        archive.fail("its members are not those that it describes")
    limits = [model.schema.cardinalities[i] for i in sorted(model.attributes)]
    shape, code_type = (len(limits), n_rows), _code_type(model).newbyteorder("<").str
    if archive.size(names[0]) != len(npy_header(shape, code_type)) + _code_type(model).itemsize * math.prod(shape):
        archive.fail(f"{names[0]} has not the size that the schema asks for")
    codes = npy_array(archive.read(names[0]), shape, code_type)
    if codes is None or (codes > np.reshape(limits, (-1, 1))).any():
        archive.fail(f"{names[0]} does not hold codes of the attributes, {n_rows} of each")
    (probabilities,) = _read_arrays(archive, names[1:], [(len(model.schema.labels), n_rows)])
    return SelfTest(codes.astype(np.intp), probabilities)
