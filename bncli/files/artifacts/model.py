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

The calibration of a model as JSON: the method, its numbers, and what it was learnt from.

A rule for decisions as JSON, under the key `decisions` of a model (since version 7): only what is asked for.

`costs` [true][decision]; `threshold` {value, chosen}; `abstain_below`; `sets` {alpha, by}; `held_out` {split,
probabilities, weights}, a list a label.

The families of a model as JSON: which attributes each of its tables is over, and how it sees them.

    {"attributes": ["pulse", "age"], "child": "pulse", "merges": [null, [0, 0, 1, 1, 2]]}

The child, if there is one, is the first attribute, else null. `merges` is there only where a family joins codes: for
each attribute null or the coarse code of every code. Intervals are joined with their neighbours, levels with any, and a
missing level, the last code, with none.

A model of many such families (`are_many`) says the same in fewer numbers, under `groups` in place of `merges`: of
intervals the last code of every group but the last, of levels the coarse code of each; a missing level goes without
saying.

    {"attributes": ["pulse", "age", "colour"], "child": null, "groups": [null, [1], [0, 1, 0]]}

Quantiles of ln P(x) of training rows as JSON, in model files and in monitors.

The schema of a model as JSON: class, labels, attributes with the frequency of every code, reading policies.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from bncli.engine.calibration import METHODS, Calibration, CalibrationMap, Isotonic, Knots, PerClass, Temperature
from bncli.engine.data.schema import Attribute, MissingPolicy, NumericAttribute, Schema
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import (
    QUANTILES,
    DecisionRule,
    Ensemble,
    HeldOutScores,
    Model,
    Numbers,
    Pool,
    PredictionSets,
    SelfTest,
    Threshold,
    TrainingLogP,
)
from bncli.engine.structures.named_structure import name_structure
from bncli.engine.structures.structure import Dag, Family, Grouping, Structure
from bncli.errors import BncliError, ModelError
from bncli.files.artifacts.archive import Archive, npy_array, npy_bytes, npy_header, open_archive, pack
from bncli.files.artifacts.attributes import attribute_json, check_unique_names, direction_json, read_attribute
from bncli.files.artifacts.cuts import SAMPLED
from bncli.files.artifacts.penalties import penalty_json, read_penalty, read_restarts, restarts_json
from bncli.files.artifacts.predictors import (
    CHOSEN,
    KEYS,
    RESTARTS,
    PredictorHeader,
    array_names,
    predictor_arrays,
    predictor_json,
    read_predictor,
)
from bncli.files.artifacts.recipes import read_recipe, recipe_json
from bncli.files.atomic import write_bytes
from bncli.files.documents import Node, parse_json
from bncli.files.exports.structure_json import graph_json, read_graph

CALIBRATION = "calibration"
"""The key in a model file."""
_CALIBRATIONS_FREQUENCIES = "label_frequencies"
_KEYS = {"temperature": ("temperature",), "per-class": ("scales", "shifts"), "isotonic": ("knots",)}
DECISIONS = "decisions"
MANY = 256
"""Families that join codes, from which on files have `groups`, and all tables in one array."""
MOST_CODES = 1 << 24
"""Of all groupings of a file: a few numbers of it may stand for many codes."""
_MERGES = "merges"
"""A key of families that join codes, since version 4."""
_GROUPS = "groups"
"""The key of many families that join codes, since version 5."""
TRAINING_LOG_P = "training_log_p"
"""The key."""
_SCHEMAS_FREQUENCIES = "label_frequencies"
"""A key since version 7."""
_POLICY = "missing_policy"
"""A key of models that marginalize missing values, since version 3; no key: missing is a level."""
_TOWARDS = "towards"
"""A key of models whose directions are about a label that was named; no key: about the second of two."""
SCHEMAS_OPTIONAL_KEYS = (_POLICY, _SCHEMAS_FREQUENCIES, _TOWARDS)
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
    """Write the model file, whole or not at all."""
    write_bytes(path, dump_model(model))


def read_model(path: str) -> Model:
    """Return the model in a file, checked.

    ModelError (exit code 3) if it is damaged, newer than this bncli, or no model.
    """
    with open_archive(path) as archive:
        document = _description(archive, path)
        keys = ("format", "version", "bncli_version", "rows", "recipe", "schema", "structure", "families")
        fields = document.fields(keys, OPTIONAL_KEYS)
        schema = read_schema(fields["schema"])
        node = fields["structure"]
        try:
            structure = read_graph(node).resolve(schema)
        except BncliError as error:
            node.fail(error.what)
        if schema.marginalizes and not isinstance(structure, Dag):
            node.fail("with regions missing values cannot be marginalized")
        families = read_families(fields["families"], schema, structure)
        if schema.marginalizes and families != structure.families(schema.cardinalities, whole=True):
            fields["families"].fail("these are not the tables of the nodes of its structure, all of which are needed")
        pending = read_predictor(fields, PredictorHeader(schema, structure, families))
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
        # The codes, none beyond "unknown", and the probabilities of so many rows.
        n_rows = fields[_SELF_TEST].integer(1)
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
        return replace(model, self_test=SelfTest(codes.astype(np.intp), probabilities))


def _description(archive: Archive, path: str) -> Node:
    archive.size(_DESCRIPTION)
    document = parse_json(archive.read(_DESCRIPTION), f"{path}, {_DESCRIPTION}", ModelError)
    document.check_format("model", VERSION)
    return document


def _read_all(
    archive: Archive, parts: list[str], families: tuple[Family, ...], bias: tuple[int, ...]
) -> Iterator[Array]:
    """Return the bias, of that shape, whose last entry is K, and the tables, in these members."""
    names = array_names(len(families))
    if parts == [_DESCRIPTION, names[0], _ALL_TABLES]:
        return _read_joint(archive, families, bias)
    if parts != [_DESCRIPTION, *names]:
        archive.fail("its members are not those that it describes")
    return _read_arrays(archive, names, [bias, *((family.n_cells, bias[-1]) for family in families)])


def _read_joint(archive: Archive, families: tuple[Family, ...], bias: tuple[int, ...]) -> Iterator[Array]:
    """Yield the bias, and the tables as parts of one array."""
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


def _with_later_keys(model: Model, fields: dict[str, Node]) -> Model:
    """With what files of the first versions never had."""
    schema, found = model.schema, dict[str, Any]()
    if _CLASS_WEIGHTS in fields:
        node = fields[_CLASS_WEIGHTS]
        weights = label_numbers(node, schema.labels)
        if not schema.label_frequencies or min(weights) == 0:
            node.fail("class weights are above 0, and go with the key 'label_frequencies' of the schema")
        found["class_weights"] = weights
    if _PLAIN in fields:
        found["plain_frequencies"] = _read_plain(fields[_PLAIN], schema)
    if DECISIONS in fields:
        found["rule"] = read_rule(fields[DECISIONS], schema.labels)
    if CALIBRATION in fields:
        found["calibration"] = read_calibration(fields[CALIBRATION], len(schema.labels))
    if TRAINING_LOG_P in fields:
        found["log_p"] = read_training_log_p(fields[TRAINING_LOG_P])
    return replace(model, **found)


def _read_plain(node: Node, schema: Schema) -> dict[int, tuple[float, ...]]:
    """Return weights of the values of attributes and of none, by the attribute's index."""
    found, members = {}, node.members()
    for i, attribute in enumerate(schema.attributes):
        if (weights := members.pop(attribute.name, None)) is not None:
            found[i] = tuple(weight.number() for weight in weights.items())
            if len(found[i]) != attribute.cardinality + 1 or min(found[i]) < 0:
                weights.fail(f"expected {attribute.cardinality + 1} numbers of at least 0")
    if members:
        node.fail(f"there is no attribute {next(iter(members))!r}")
    return found


def _code_type(model: Model) -> np.dtype[Any]:
    """Return the narrowest that holds every code, "unknown" included."""
    return np.min_scalar_type(max((model.schema.cardinalities[i] for i in model.attributes), default=0))


def calibration_json(calibration: Calibration) -> dict[str, Any]:
    """Return `log_loss` is that of the calibration rows, before and after, in nats a row."""
    numbers = _calibrations_numbers(calibration.map)
    log_loss = {"before": calibration.before, "after": calibration.after}
    counted = {_CALIBRATIONS_FREQUENCIES: list(calibration.frequencies)} if calibration.frequencies else {}
    return {"method": calibration.map.method, "rows": calibration.rows, "log_loss": log_loss, **counted, **numbers}


def _calibrations_numbers(found: CalibrationMap) -> dict[str, Any]:
    if isinstance(found, Temperature):
        return {"temperature": found.temperature}
    if isinstance(found, PerClass):
        return {"scales": list(found.scales), "shifts": list(found.shifts)}
    return {"knots": [{"at": list(one.at), "values": list(one.values)} for one in found.knots]}


def read_calibration(node: Node, n_labels: int) -> Calibration:
    """Return what `calibration_json` wrote, for a model of so many labels."""
    members = node.members()
    if "method" not in members:
        node.fail("the key 'method' is missing")
    method = members["method"].text()
    if method not in METHODS:
        members["method"].fail(f"no calibration is called {method!r}")
    counted = () if method == Temperature.method else (_CALIBRATIONS_FREQUENCIES,)
    fields = node.fields(("method", "rows", "log_loss", *_KEYS[method]), counted)
    losses = fields["log_loss"].fields(("before", "after"))
    before, after = losses["before"].number(), losses["after"].number()
    frequencies = _row(fields[_CALIBRATIONS_FREQUENCIES], n_labels) if _CALIBRATIONS_FREQUENCIES in fields else ()
    if frequencies and min(frequencies) <= 0:
        fields[_CALIBRATIONS_FREQUENCIES].fail("the weight of a label is above 0")
    return Calibration(_map(fields, method, n_labels), fields["rows"].integer(1), before, after, frequencies)


def _row(node: Node, length: int) -> tuple[float, ...]:
    numbers = tuple(item.number() for item in node.items())
    if len(numbers) != length:
        node.fail("there is a number for each label")
    return numbers


def _map(fields: dict[str, Node], method: str, n_labels: int) -> CalibrationMap:
    if method == Temperature.method:
        temperature = fields["temperature"].number()
        if temperature <= 0:
            fields["temperature"].fail("a temperature is above 0")
        return Temperature(temperature)
    if method == PerClass.method:
        scales = _row(fields["scales"], n_labels)
        if min(scales) < 0:
            fields["scales"].fail("no scale is below 0")
        return PerClass(scales, _row(fields["shifts"], n_labels))
    knots = fields["knots"].items()
    if len(knots) != (1 if n_labels == 2 else n_labels):
        fields["knots"].fail("these are not the maps of the labels")
    return Isotonic(tuple(map(_knots, knots)))


def _knots(node: Node) -> Knots:
    fields = node.fields(("at", "values"))
    at = tuple(item.number() for item in fields["at"].items())
    values = _row(fields["values"], len(at))
    if not at or at[0] < 0 or at[-1] > 1 or any(b <= a for a, b in pairwise(at)):
        fields["at"].fail("knots are probabilities, each above the one before")
    if not values[0] > 0 or not values[-1] < 1 or any(b < a for a, b in pairwise(values)):
        fields["values"].fail("values are between 0 and 1 and never fall")
    return Knots(at, values)


def rule_json(rule: DecisionRule) -> dict[str, Any]:
    """Return what `read_rule` reads."""
    kept, held_out = rule.held_out, {}
    if kept is not None:
        held_out = {"split": kept.split, "probabilities": [list(one) for one in kept.probabilities]}
        held_out |= {} if kept.weights is None else {"weights": [list(one) for one in kept.weights]}
    found = summary_json(rule)
    return found | ({"held_out": held_out} if kept is not None else {})


def summary_json(rule: DecisionRule) -> dict[str, Any]:
    """Return the rule without the rows that it was made by."""
    sets = rule.sets
    found: dict[str, Any] = {
        "costs": None if rule.costs is None else [list(row) for row in rule.costs],
        "threshold": None if rule.threshold is None else rule.threshold._asdict(),
        "abstain_below": rule.abstain_below,
        "sets": None if sets is None else {"alpha": sets.alpha, "by": "class" if sets.by_class else "all"},
    }
    return {key: value for key, value in found.items() if value is not None}


def read_rule(node: Node, labels: tuple[str, ...]) -> DecisionRule:
    """Return the rule, checked against the labels."""
    fields = node.fields((), ("costs", "threshold", "abstain_below", "sets", "held_out"))
    if "threshold" in fields and ("costs" in fields or len(labels) != 2):
        fields["threshold"].fail("a threshold decides between two labels, and goes without costs")
    return DecisionRule(
        _read_costs(fields["costs"], len(labels)) if "costs" in fields else None,
        _read_threshold(fields["threshold"]) if "threshold" in fields else None,
        _share(fields["abstain_below"]) if "abstain_below" in fields else None,
        _read_sets(fields["sets"]) if "sets" in fields else None,
        _read_held_out(fields["held_out"], len(labels)) if "held_out" in fields else None,
    )


def _read_costs(node: Node, n_labels: int) -> tuple[Numbers, ...]:
    rows = tuple(_decision_rules_numbers(row) for row in node.items())
    if [len(row) for row in rows] != [n_labels] * n_labels:
        node.fail(f"expected {n_labels} rows of {n_labels} costs")
    return rows


def _decision_rules_numbers(node: Node) -> Numbers:
    """Return a list of numbers of at least 0."""
    numbers = tuple(item.number() for item in node.items())
    if min(numbers, default=0.0) < 0:
        node.fail("a number here is at least 0")
    return numbers


def _read_threshold(node: Node) -> Threshold:
    fields = node.fields(("value", "chosen"))
    return Threshold(_share(fields["value"]), fields["chosen"].text())


def _share(node: Node) -> float:
    number = node.number()
    if not 0 <= number <= 1:
        node.fail("the number lies between 0 and 1")
    return number


def _read_sets(node: Node) -> PredictionSets:
    fields = node.fields(("alpha", "by"))
    alpha = _share(fields["alpha"])
    if not 0 < alpha < 1 or fields["by"].text() not in ("all", "class"):
        node.fail("sets have an alpha between 0 and 1, by 'all' or 'class'")
    return PredictionSets(alpha, fields["by"].value == "class")


def _read_held_out(node: Node, n_labels: int) -> HeldOutScores:
    fields = node.fields(("split", "probabilities"), ("weights",))
    probabilities = tuple(_decision_rules_numbers(one) for one in fields["probabilities"].items())
    weights = tuple(_decision_rules_numbers(one) for one in fields["weights"].items()) if "weights" in fields else None
    sizes = [len(one) for one in probabilities]
    if len(sizes) != n_labels or (weights is not None and [len(one) for one in weights] != sizes):
        node.fail(f"expected {n_labels} lists of probabilities, and as many weights")
    for own in probabilities:
        if any(a > b for a, b in itertools.pairwise(own)) or max(own, default=0.0) > 1:
            fields["probabilities"].fail("probabilities rise from 0 to 1 at most")
    return HeldOutScores(probabilities, weights, fields["split"].flag())


def are_many(families: Iterable[Family]) -> bool:
    """Return whether a file has them in the compact form; families as they were cut are short without."""
    return sum(1 for family in families if family.groupings) >= MANY


def families_json(families: Sequence[Family], schema: Schema) -> list[dict[str, Any]]:
    """Return what `read_families` reads."""
    names = [attribute.name for attribute in schema.attributes]
    joined = _groups_json if are_many(families) else _merges_json
    return [
        {"attributes": [names[i] for i in f.attributes], "child": None if f.child is None else names[f.child]}
        | (joined(f, schema) if f.groupings else {})
        for f in families
    ]


def _groups_json(family: Family, schema: Schema) -> dict[str, Any]:
    seen = ((schema.attributes[a], grouping) for a, grouping in family.binned_attributes)
    return {_GROUPS: [None if grouping is None else _groups(attribute, grouping) for attribute, grouping in seen]}


def _groups(attribute: Attribute, grouping: Grouping) -> list[int]:
    values = [int(code) for code in grouping[: attribute.n_values]]
    if not isinstance(attribute, NumericAttribute):
        return values
    return [code for code, (left, right) in enumerate(pairwise(values)) if left != right]


def _merges_json(family: Family, _: Schema) -> dict[str, Any]:
    return {_MERGES: [None if m is None else [int(code) for code in m] for m in family.groupings]}


def read_families(node: Node, schema: Schema, structure: Structure) -> tuple[Family, ...]:
    """Return the families, checked against the schema.

    In a model that marginalizes missing values, a child that is not below the class in the structure has a table
    without the class.
    """
    index = {attribute.name: i for i, attribute in enumerate(schema.attributes)}
    graph = structure if schema.marginalizes and isinstance(structure, Dag) else None
    families, codes = [], 0
    for item in node.items():
        fields = item.fields(("attributes", "child"), (_MERGES, _GROUPS))
        names = fields["attributes"].texts()
        if not names or not all(name in index and schema.cardinalities[index[name]] for name in names):
            fields["attributes"].fail("a table needs attributes of the schema that have values")
        if fields["child"].value not in (None, names[0]):
            fields["child"].fail("the child of a table is its first attribute or null")
        attributes = tuple(index[name] for name in names)
        child = None if fields["child"].value is None else attributes[0]
        by_class = child is None or graph is None or child in graph.class_children
        groupings = _read_groupings(fields, [schema.attributes[i] for i in attributes])
        codes += sum(len(grouping) for grouping in groupings if grouping)
        if codes > MOST_CODES:
            item.fail(f"all groupings together have more than {MOST_CODES:,} codes")
        families.append(Family.over(attributes, schema.cardinalities, child, by_class, groupings))
    return tuple(families)


def _read_groupings(fields: Mapping[str, Node], attributes: Sequence[Attribute]) -> tuple[Grouping | None, ...]:
    """Return a grouping or None for each attribute; () where the family joins nothing."""
    key = _GROUPS if _GROUPS in fields else _MERGES
    if key not in fields:
        return ()
    node, read = fields[key], _read_groups if key == _GROUPS else _read_merge
    if _GROUPS in fields and _MERGES in fields:
        node.fail(f"a family has {_GROUPS} or {_MERGES}, not both")
    items = node.items()
    if len(items) != len(attributes):
        node.fail(f"{len(items)} {key} for {len(attributes)} attributes")
    joined = zip(items, attributes, strict=True)
    return tuple(None if item.value is None else read(item, attribute) for item, attribute in joined)


def _read_groups(node: Node, attribute: Attribute) -> Grouping:
    numbers = [item.integer(0) for item in node.items()]
    if isinstance(attribute, NumericAttribute):
        if any(right <= left for left, right in pairwise(numbers)) or any(n >= attribute.n_values - 1 for n in numbers):
            node.fail(f"the last codes of groups rise, below the last of the {attribute.n_values} intervals")
        ends = [*numbers, attribute.n_values - 1]
        values = [group for group, (left, right) in enumerate(pairwise([-1, *ends])) for _ in range(right - left)]
    else:
        values = numbers
        if len(values) != attribute.n_values:
            node.fail(f"{len(values)} coarse codes for the {attribute.n_values} levels of '{attribute.name}'")
        if set(values) != set(range(len(set(values)))):
            node.fail("coarse codes count from 0, each of them used")
    missing = [max(values, default=-1) + 1] * attribute.missing
    return (*values, *missing)


def _read_merge(node: Node, attribute: Attribute) -> Grouping:
    merge = tuple(item.integer(0) for item in node.items())
    if len(merge) != attribute.cardinality:
        node.fail(f"{len(merge)} coarse codes for the {attribute.cardinality} codes of '{attribute.name}'")
    values = merge[: attribute.n_values]
    if set(merge) != set(range(len(set(merge)))):
        node.fail("coarse codes count from 0, each of them used")
    if isinstance(attribute, NumericAttribute) and any(right < left for left, right in pairwise(values)):
        node.fail("the coarse codes of intervals do not fall")
    if attribute.missing and any(code >= merge[-1] for code in values):
        node.fail("the missing level has the last coarse code to itself")
    return merge


def training_log_p_json(found: TrainingLogP) -> dict[str, Any]:
    """Return the rows looked at, the mean, and the quantiles by their share."""
    quantiles = {f"{q:g}": value for q, value in zip(QUANTILES, found.quantiles, strict=True)}
    return {"rows": found.rows, "mean": found.mean, "quantiles": quantiles}


def read_training_log_p(node: Node) -> TrainingLogP:
    """Return what `training_log_p_json` wrote."""
    fields = node.fields(("rows", "mean", "quantiles"))
    by_share = fields["quantiles"].fields([f"{q:g}" for q in QUANTILES])
    quantiles = tuple(by_share[f"{q:g}"].number() for q in QUANTILES)
    if any(b < a for a, b in pairwise(quantiles)):
        fields["quantiles"].fail("quantiles do not fall")
    return TrainingLogP(fields["rows"].integer(1), fields["mean"].number(), quantiles)


def schema_json(schema: Schema) -> dict[str, Any]:
    """Return what `read_schema` reads."""
    counted = {_SCHEMAS_FREQUENCIES: list(schema.label_frequencies)} if schema.label_frequencies else {}
    return {
        "class": schema.class_name,
        "labels": list(schema.labels),
        "attributes": [
            {
                **attribute_json(a),
                "missing": bool(a.missing),
                "frequencies": [float(weight) for weight in a.frequencies],
                **direction_json(a),
                **({"holes": float(a.missing_weight)} if a.missing_weight else {}),
            }
            for a in schema.attributes
        ],
        "missing_tokens": None if schema.missing_tokens is None else list(schema.missing_tokens),
        "unseen": schema.unseen,
        **counted,
        **({} if schema.towards is None else {_TOWARDS: schema.towards}),
    } | ({_POLICY: schema.missing_policy} if schema.marginalizes else {})


def read_schema(node: Node) -> Schema:
    """Return the schema in a model's `schema` object, checked."""
    fields = node.fields(("class", "labels", "attributes", "missing_tokens", "unseen"), SCHEMAS_OPTIONAL_KEYS)
    class_name = fields["class"].text()
    labels = fields["labels"].texts()
    if not labels:
        fields["labels"].fail("the class has no labels")
    attributes = tuple(read_attribute(item, counted=True) for item in fields["attributes"].items())
    check_unique_names(fields["attributes"], class_name, attributes)
    tokens = fields["missing_tokens"]
    missing_tokens = None if tokens.value is None else tokens.texts()
    if fields["unseen"].text() not in ("average", "error"):
        fields["unseen"].fail("a value never seen in training can be 'average' or 'error'")
    policy = _read_policy(fields[_POLICY], attributes) if _POLICY in fields else "level"
    counted = label_numbers(fields[_SCHEMAS_FREQUENCIES], labels) if _SCHEMAS_FREQUENCIES in fields else ()
    schema = Schema(class_name, labels, attributes, missing_tokens, fields["unseen"].value, policy, counted)
    # With the label that its directions are about.
    label = fields.get(_TOWARDS)
    if label is None:
        if schema.directed and len(schema.labels) != 2:
            node.fail(
                f"attributes have directions, and which of the {len(schema.labels)} labels they lead to is not said"
            )
        return schema
    if label.text() not in schema.labels:
        label.fail(f"the class has no label '{label.text()}'")
    if not schema.directed:
        label.fail("no attribute has a direction")
    return replace(schema, towards=label.text())


def _read_policy(node: Node, attributes: tuple[Attribute, ...]) -> MissingPolicy:
    if node.text() != "marginalize":
        node.fail("missing values can be 'marginalize'd; where they are a level, nothing is said")
    for attribute in attributes:
        if attribute.missing:
            node.fail(f"'{attribute.name}' has a missing level, which leaves nothing to marginalize")
    return "marginalize"


def label_numbers(node: Node, labels: tuple[str, ...]) -> tuple[float, ...]:
    """Return a number of at least 0 for each label."""
    numbers = tuple(item.number() for item in node.items())
    if len(numbers) != len(labels) or min(numbers) < 0:
        node.fail(f"expected {len(labels)} numbers of at least 0, one a label")
    return numbers


def dump_model(model: Model) -> bytes:
    """Return the bytes of the model file; equal models have equal bytes."""
    arrays = predictor_arrays(model.predictor)
    if not all(np.isfinite(array).all() for array in arrays):
        raise BncliError("the learnt parameters are not finite numbers", hint="learn with a penalty above 0")
    text = json.dumps(_describe(model), sort_keys=True, ensure_ascii=False, allow_nan=False)
    names = array_names(len(arrays) - 1)
    if are_many(model.predictor.families):
        arrays, names = (arrays[0], np.concatenate(arrays[1:])), [names[0], _ALL_TABLES]
    members = [(_DESCRIPTION, f"{text}\n".encode()), *zip(names, map(npy_bytes, arrays), strict=True)]
    return pack([*members, *_self_test_members(model)])


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


def _version(model: Model) -> int:
    """Return the lowest whose readers can read it."""
    predictor = model.predictor
    if model.schema.label_frequencies or model.class_weights is not None:
        return VERSION
    if model.calibration is not None or model.rule is not None or model.log_p is not None:
        return VERSION
    if model.self_test is not None:
        return _WITHOUT_LABEL_FREQUENCIES
    is_new = are_many(predictor.families) or (isinstance(predictor, Ensemble) and predictor.pool is Pool.LOGARITHMIC)
    return _WITHOUT_SELF_TEST if is_new else _LAST


def _self_test_members(model: Model) -> Iterator[tuple[str, bytes]]:
    if model.self_test is not None:
        codes = model.self_test.codes.astype(_code_type(model))
        yield from zip(_SELF_TEST_ARRAYS, map(npy_bytes, (codes, model.self_test.probabilities)), strict=True)


def format_version(path: str) -> int:
    """Return the version of the format that a model file has; ModelError as in `read_model`."""
    with open_archive(path) as archive:
        return _description(archive, path).members()["version"].integer(1)
