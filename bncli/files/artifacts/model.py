"""The model file `.bnc`: one self-describing file with a checksum, without pickle, safe to open from any source.

It is a ZIP archive (`archive.py`) of these members:

    model.json                         the description, with sorted keys
    bias.npy, tables/<f>.npy           the arrays of the predictor, one table per family (`predictors.py`)
    tables.npy                         in place of tables/<f>.npy if very many families are binned: all tables stacked
    self_test/codes.npy                rows to verify the model with (attributes, rows), unsigned; optional
    self_test/probabilities.npy        the probabilities that the model gave them (labels, rows); optional
    intervals.npy                      the uncertainty of the tables (`ParameterUncertainty.entries`); optional
    edits/<e>/<f>.npy                  arrays that edits replaced, and edits/<e>/self_test.npy (`provenance`); optional

`unzip -p m.bnc model.json` shows the description, `numpy.load` reads the arrays, and `head -c -64 m.bnc | sha256sum`
verifies the checksum.

Equal models give equal bytes on every machine. Before a reader loads an array, it compares the array's size with the
cardinalities that `model.json` declares. It then compares the array's header with the only one that such an array can
have. An untrusted file therefore cannot claim arrays larger than itself, or make a reader guess their type. Files of
older versions can be read; a file of a newer version is refused. A file gets the lowest version whose readers
understand it.

`predictors.py` describes the keys `families`, `path` and `blend`, and `provenance.py` the keys `recipe`, `penalty_cv`,
`restarts` and `edits`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from bncli.engine.calibration import METHODS, Calibration, CalibrationMap, Isotonic, Knots, PerClass, Temperature
from bncli.engine.data.schema import Schema
from bncli.engine.data.splits import SPLIT_KINDS, SplitRecord
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import (
    QUANTILES,
    DecisionRule,
    Edit,
    Ensemble,
    HeldOutLoss,
    HeldOutScores,
    Model,
    ParameterUncertainty,
    Path,
    Pool,
    PredictionSets,
    SelfTest,
    Tables,
    Threshold,
    TrainingLogP,
    UncertaintyMethod,
)
from bncli.engine.structures.named_structure import name_structure
from bncli.engine.structures.structure import Dag, Family
from bncli.errors import BncliError, ModelError
from bncli.files.artifacts.archive import Archive, npy_array, npy_bytes, npy_header, open_archive, pack
from bncli.files.artifacts.cuts import SAMPLED_ROWS, attribute_json, check_columns, direction_json, read_attribute
from bncli.files.artifacts.predictors import (
    ENSEMBLE,
    PATH,
    PENALTY_CV,
    array_names,
    build_predictor,
    families_json,
    is_compact,
    predictor_arrays,
    predictor_json,
    read_families,
    read_predictor,
)
from bncli.files.artifacts.provenance import (
    EDITS,
    edit_arrays,
    edit_record,
    penalty_json,
    read_edits,
    read_option,
    read_penalty,
    read_recipe,
    read_restarts,
    recipe_json,
    restarts_json,
)
from bncli.files.atomic import write_bytes
from bncli.files.exports.structure_json import graph_json, read_graph
from bncli.files.json_documents import Node, parse_json

VERSION = 9
"""The newest format version; a new optional key need not raise it, because older readers refuse unknown keys."""
_WITHOUT_INTERVALS = 8
_WITHOUT_EDITS = 7
_WITHOUT_LABEL_FREQUENCIES = 6
_WITHOUT_SELF_TEST = 5
_LOWEST_VERSION = 4
"""The version of files that use no later feature, such as a self-test or a logarithmic pool."""
CALIBRATION, DECISIONS, TRAINING_LOG_P, HELD_OUT = "calibration", "decisions", "training_log_p", "held_out"
SPLIT, _LOSSES = "split", ("log_loss", "base_log_loss")
_RESTARTS, _CLASS_WEIGHTS, _PLAIN_FREQUENCIES = "restarts", "class_weights", "plain_frequencies"
_SELF_TEST = "self_test"
INTERVALS = "intervals"
OPTIONAL_KEYS = (
    PENALTY_CV,
    _RESTARTS,
    SAMPLED_ROWS,
    _SELF_TEST,
    _CLASS_WEIGHTS,
    _PLAIN_FREQUENCIES,
    CALIBRATION,
    DECISIONS,
    TRAINING_LOG_P,
    HELD_OUT,
    SPLIT,
    PATH,
    ENSEMBLE,
    EDITS,
    INTERVALS,
)
"""Optional keys of `model.json`."""
_LABEL_FREQUENCIES = "label_frequencies"
"""A key of the schema since version 7, and a key of a calibration."""
_MISSING_POLICY = "missing_policy"
"""The key of schemas that marginalize missing values, since version 3; without it, missing values are a level."""
_TOWARDS = "towards"
"""The key that names the label of the monotonicity constraints; without it, this is the second of two labels."""
OPTIONAL_SCHEMA_KEYS = (_MISSING_POLICY, _LABEL_FREQUENCIES, _TOWARDS)
_CALIBRATION_KEYS = {"temperature": ("temperature",), "per-class": ("scales", "shifts"), "isotonic": ("knots",)}
_DESCRIPTION, _ALL_TABLES = "model.json", "tables.npy"
INTERVALS_ARRAY = "intervals.npy"
_SELF_TEST_ARRAYS = ["self_test/codes.npy", "self_test/probabilities.npy"]


def write_model(path: str, model: Model) -> None:
    write_bytes(path, dump_model(model))


def dump_model(model: Model) -> bytes:
    """Return the bytes of the model file; equal models give equal bytes.

    Raises BncliError if the parameters are not finite.
    """
    predictor = model.predictor
    arrays = predictor_arrays(predictor)
    if not all(np.isfinite(array).all() for array in arrays):
        raise BncliError("the learned parameters are not finite numbers", hint="learn with a penalty above 0")
    text = json.dumps(_description_json(model), sort_keys=True, ensure_ascii=False, allow_nan=False)
    names = array_names(len(arrays) - 1)
    if is_compact(predictor.families):
        arrays, names = (arrays[0], np.concatenate(arrays[1:])), [names[0], _ALL_TABLES]
    members = [(_DESCRIPTION, f"{text}\n".encode()), *zip(names, map(npy_bytes, arrays), strict=True)]
    if model.self_test is not None:
        tested = (model.self_test.codes.astype(_self_test_type(model)), model.self_test.probabilities)
        members += zip(_SELF_TEST_ARRAYS, map(npy_bytes, tested), strict=True)
    if model.uncertainty is not None:
        members.append((INTERVALS_ARRAY, npy_bytes(model.uncertainty.entries)))
    members += [(name, npy_bytes(array)) for name, array in edit_arrays(model.edits)]
    return pack(members)


def _description_json(model: Model) -> dict[str, Any]:
    """Return the content of `model.json`."""
    content: dict[str, Any] = {
        "format": "bncli-model",
        "version": _version(model),
        "bncli_version": model.version,
        "rows": int(model.n_rows),
        "recipe": recipe_json(model.recipe),
        "schema": _schema_json(model.schema),
        "structure": graph_json(name_structure(model.structure, model.schema)),
        "families": families_json(model.predictor.families, model.schema),
        **predictor_json(model.predictor, model.schema),
    }
    if model.penalty_cv is not None:
        content[PENALTY_CV] = penalty_json(model.penalty_cv)
    if model.restarts is not None:
        content[_RESTARTS] = restarts_json(model.restarts)
    if model.sampled_rows is not None:
        content[SAMPLED_ROWS] = model.sampled_rows
    if model.self_test is not None:
        content[_SELF_TEST] = model.self_test.n_rows
    if model.class_weights is not None:
        content[_CLASS_WEIGHTS] = list(model.class_weights)
    if model.plain_frequencies is not None:
        names = [attribute.name for attribute in model.schema.attributes]
        content[_PLAIN_FREQUENCIES] = {names[i]: list(weights) for i, weights in model.plain_frequencies.items()}
    if model.rule is not None:
        content[DECISIONS] = rule_json(model.rule)
    if model.calibration is not None:
        content[CALIBRATION] = calibration_json(model.calibration)
    if model.log_p is not None:
        content[TRAINING_LOG_P] = training_log_p_json(model.log_p)
    if model.held_out is not None:
        content[HELD_OUT] = {name: getattr(model.held_out, name) for name in _LOSSES}
    if model.split is not None:
        content[SPLIT] = split_json(model.split)
    if model.edits:
        content[EDITS] = [edit_record(edit) for edit in model.edits]
    if model.uncertainty is not None:
        content[INTERVALS] = {"method": model.uncertainty.method.value, "rows": len(model.uncertainty.entries)}
    return content


def _version(model: Model) -> int:
    """Return the lowest format version whose readers understand the model."""
    predictor = model.predictor
    if model.uncertainty is not None:
        return VERSION
    if model.edits:
        return _WITHOUT_INTERVALS
    later = (model.class_weights, model.calibration, model.rule, model.log_p)
    if model.schema.label_frequencies or any(part is not None for part in later):
        return _WITHOUT_EDITS
    if model.self_test is not None:
        return _WITHOUT_LABEL_FREQUENCIES
    if is_compact(predictor.families) or (isinstance(predictor, Ensemble) and predictor.pool is Pool.LOGARITHMIC):
        return _WITHOUT_SELF_TEST
    return _LOWEST_VERSION


def format_version(path: str) -> int:
    """Return the format version of a model file; raise ModelError if it is damaged, not a model, or too new."""
    with open_archive(path) as archive:
        return _read_description(archive, path).members()["version"].integer(1)


def read_model(path: str) -> Model:
    """Load a model from a file.

    Raises ModelError (exit code 3) if the file is damaged, not a model, or written by a newer bncli.
    """
    with open_archive(path) as archive:
        required = ("format", "version", "bncli_version", "rows", "recipe", "schema", "structure", "families")
        fields = _read_description(archive, path).fields(required, OPTIONAL_KEYS)
        schema = _read_schema(fields["schema"])
        node = fields["structure"]
        try:
            structure = read_graph(node).resolve(schema)
        except BncliError as error:
            node.fail(error.what, hint=error.hint)
        if schema.marginalizes and not isinstance(structure, Dag):
            node.fail("missing values cannot be marginalized in a model of regions")
        families = read_families(fields["families"], schema, structure)
        if schema.marginalizes and families != structure.families(schema.cardinalities, all_factors=True):
            fields["families"].fail("there must be one table per node of the structure, with its parents")
        # The description gives the shape of every array; only then are the arrays read.
        description = read_predictor(fields, schema, structure, families)
        names = [name for name in archive.names if not name.startswith("edits/") and name != INTERVALS_ARRAY]
        members = names[: -len(_SELF_TEST_ARRAYS)] if _SELF_TEST in fields else names
        bias, *tables = _read_tables(archive, members, families, description.bias_shape)
        model = Model(
            schema,
            structure,
            build_predictor(description, families, bias, tuple(tables), archive.fail),
            read_recipe(fields["recipe"]),
            fields["rows"].integer(0),
            fields["bncli_version"].text(),
            **_read_optional_keys(fields, schema),
        )
        if SPLIT in fields:
            split = fields[SPLIT].fields(SplitRecord._fields)
            columns = tuple(name.text() for name in split["columns"].items())
            record = SplitRecord(split["kind"].choice(SPLIT_KINDS), columns, split["units"].integer(0))
            model = replace(model, split=record)
        if _SELF_TEST in fields:
            if names[-len(_SELF_TEST_ARRAYS) :] != _SELF_TEST_ARRAYS:
                archive.fail("its members are not those in its description")
            model = replace(model, self_test=_read_self_test(archive, model, fields[_SELF_TEST].integer(1)))
        if EDITS in fields:
            model = replace(model, edits=_read_edits(archive, fields[EDITS], model, description.bias_shape))
        if INTERVALS in fields:
            model = replace(model, uncertainty=_read_uncertainty(archive, fields[INTERVALS], model))
        added = [INTERVALS_ARRAY] if INTERVALS in fields else []
        if archive.names != [*names, *added, *(name for name, _ in edit_arrays(model.edits))]:
            archive.fail("its members are not those in its description")
        return model


def _read_description(archive: Archive, path: str) -> Node:
    archive.size(_DESCRIPTION)  # fails if the member is missing
    document = parse_json(archive.read(_DESCRIPTION), f"{path}, {_DESCRIPTION}", ModelError)
    document.check_format("model", VERSION)
    return document


def _read_self_test(archive: Archive, model: Model, n_rows: int) -> SelfTest:
    """Return the `n_rows` rows that the model is verified with, and the probabilities stored for them.

    A code equal to the cardinality of its attribute stands for an unknown value.
    """
    codes_name, probabilities_name = _SELF_TEST_ARRAYS
    cardinalities = [model.schema.cardinalities[i] for i in sorted(model.attributes)]
    shape, code_type = (len(cardinalities), n_rows), _self_test_type(model).newbyteorder("<")
    size = len(npy_header(shape, code_type.str)) + code_type.itemsize * math.prod(shape)
    if archive.size(codes_name) != size:
        archive.fail(f"{codes_name} does not have the size that the schema requires")
    codes = npy_array(archive.read(codes_name), shape, code_type.str)
    if codes is None or (codes > np.reshape(cardinalities, (-1, 1))).any():
        archive.fail(f"{codes_name} does not contain {n_rows} codes of each attribute")
    (probabilities,) = _read_arrays(archive, [probabilities_name], [(len(model.schema.labels), n_rows)])
    return SelfTest(codes.astype(np.intp), probabilities)


def _read_optional_keys(fields: Mapping[str, Node], schema: Schema) -> dict[str, Any]:
    """Parse the optional fields of `Model`, except split, self-test, edits and uncertainty; return them by name."""
    optional: dict[str, Any] = {}
    if PENALTY_CV in fields:
        optional["penalty_cv"] = read_penalty(fields[PENALTY_CV])
    if _RESTARTS in fields:
        optional["restarts"] = read_restarts(fields[_RESTARTS])
    if SAMPLED_ROWS in fields:
        optional["sampled_rows"] = fields[SAMPLED_ROWS].integer(1)
    if _CLASS_WEIGHTS in fields:
        weights = _read_label_weights(fields[_CLASS_WEIGHTS], schema.labels)
        if not schema.label_frequencies or min(weights) == 0:
            what = "class weights must be above 0 and need the key 'label_frequencies' of the schema"
            fields[_CLASS_WEIGHTS].fail(what)
        optional["class_weights"] = weights
    if _PLAIN_FREQUENCIES in fields:
        # Per attribute the weight of each value, and of rows without a value.
        frequencies, members = {}, fields[_PLAIN_FREQUENCIES].members()
        for i, attribute in enumerate(schema.attributes):
            if (listed := members.pop(attribute.name, None)) is not None:
                frequencies[i] = tuple(weight.number() for weight in listed.items())
                if len(frequencies[i]) != attribute.cardinality + 1 or min(frequencies[i]) < 0:
                    listed.fail(f"expected {attribute.cardinality + 1} numbers of at least 0")
        if members:
            fields[_PLAIN_FREQUENCIES].fail(f"there is no attribute {next(iter(members))!r}")
        optional["plain_frequencies"] = frequencies
    if DECISIONS in fields:
        optional["rule"] = read_rule(fields[DECISIONS], schema.labels)
    if CALIBRATION in fields:
        optional["calibration"] = read_calibration(fields[CALIBRATION], len(schema.labels))
    if TRAINING_LOG_P in fields:
        optional["log_p"] = read_training_log_p(fields[TRAINING_LOG_P])
    if HELD_OUT in fields:
        losses = fields[HELD_OUT].fields(_LOSSES)
        optional["held_out"] = HeldOutLoss(losses["log_loss"].number(), losses["base_log_loss"].number())
    return optional


def split_json(split: SplitRecord) -> dict[str, Any]:
    """Return the record of a train-test split as a JSON object."""
    return split._asdict() | {"columns": list(split.columns)}


def _read_tables(
    archive: Archive, members: list[str], families: tuple[Family, ...], bias_shape: tuple[int, ...]
) -> Iterator[Array]:
    """Yield the bias, whose last axis has one entry per label, then one table (cells, K) per family."""
    names = array_names(len(families))
    n_labels = bias_shape[-1]
    if members == [_DESCRIPTION, names[0], _ALL_TABLES]:
        ends = list(accumulate((family.n_cells for family in families), initial=0))
        bias, tables = _read_arrays(archive, [names[0], _ALL_TABLES], [bias_shape, (ends[-1], n_labels)])
        yield bias
        yield from (tables[start:stop] for start, stop in pairwise(ends))
        return
    if members != [_DESCRIPTION, *names]:
        archive.fail("its members are not those in its description")
    yield from _read_arrays(archive, names, [bias_shape, *((family.n_cells, n_labels) for family in families)])


def _read_arrays(archive: Archive, names: list[str], shapes: list[tuple[int, ...]]) -> Iterator[Array]:
    """Yield float64 arrays of these shapes; all sizes are checked before the first array is read."""
    for name, shape in zip(names, shapes, strict=True):
        if archive.size(name) != len(npy_header(shape)) + 8 * math.prod(shape):
            archive.fail(f"{name} does not have the size that the schema requires")
    for name, shape in zip(names, shapes, strict=True):
        array = npy_array(archive.read(name), shape)
        if array is None or not np.isfinite(array).all():
            archive.fail(f"{name} does not consist of finite float64 numbers of shape {shape}")
        yield array


def _read_uncertainty(archive: Archive, node: Node, model: Model) -> ParameterUncertainty:
    fields = node.fields(("method", "rows"))
    words = {method.value: method for method in UncertaintyMethod}
    if fields["method"].text() not in words:
        fields["method"].fail(f"unknown interval method {fields['method'].text()!r}")
    method, n_rows = words[fields["method"].text()], fields["rows"].integer(1)
    if not isinstance(model.predictor, Ensemble if method is UncertaintyMethod.SPREAD else Tables):
        node.fail(f"a model of this kind has no intervals of the method '{method.value}'")
    n_labels, n_cells = len(model.schema.labels), 1 + sum(family.n_cells for family in model.predictor.families)
    of_cell = 2 if model.schema.marginalizes else 1  # variances, and covariances
    shape = (n_rows, of_cell * n_cells) if method.is_diagonal else (n_rows, n_labels - 1, n_cells)
    if method.is_diagonal and n_rows != n_labels:
        fields["rows"].fail("there must be one row of variances per label")
    (entries,) = _read_arrays(archive, [INTERVALS_ARRAY], [shape])
    if method.is_diagonal and entries.min() < 0:
        archive.fail(f"{INTERVALS_ARRAY} contains a variance below 0")
    return ParameterUncertainty(method, entries)


def _read_edits(archive: Archive, node: Node, model: Model, bias_shape: tuple[int, ...]) -> tuple[Edit, ...]:
    """Return the edits with the arrays that they replaced."""
    if isinstance(model.predictor, Path):
        node.fail("the effects of an average of models cannot be edited")
    labels = model.schema.labels
    shapes = [bias_shape, *((family.n_cells, len(labels)) for family in model.predictor.families)]
    test_rows = 0 if model.self_test is None else model.self_test.n_rows

    def read(name: str, place: int | None) -> Array:
        shape = (len(labels), test_rows) if place is None else shapes[place]
        return next(_read_arrays(archive, [name], [shape]))

    return read_edits(node, labels, len(shapes), test_rows, read)


def _self_test_type(model: Model) -> np.dtype[Any]:
    """Return the narrowest unsigned type that holds every code of the attributes used, and the unknown value."""
    return np.min_scalar_type(max((model.schema.cardinalities[i] for i in model.attributes), default=0))


def _schema_json(schema: Schema) -> dict[str, Any]:
    """Return the content of `schema`: class, labels, attributes with weights per code, and missing-value policies."""
    content: dict[str, Any] = {
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
    }
    if schema.label_frequencies:
        content[_LABEL_FREQUENCIES] = list(schema.label_frequencies)
    if schema.towards is not None:
        content[_TOWARDS] = schema.towards
    if schema.marginalizes:
        content[_MISSING_POLICY] = schema.missing_policy
    return content


def _read_schema(node: Node) -> Schema:
    fields = node.fields(("class", "labels", "attributes", "missing_tokens", "unseen"), OPTIONAL_SCHEMA_KEYS)
    class_name = fields["class"].text()
    labels = fields["labels"].texts()
    if not labels:
        fields["labels"].fail("the class has no labels")
    attributes = tuple(read_attribute(item, in_model=True) for item in fields["attributes"].items())
    check_columns(fields["attributes"], class_name, attributes)
    tokens = fields["missing_tokens"]
    missing_tokens = None if tokens.value is None else tokens.texts()
    if fields["unseen"].text() not in ("average", "error"):
        fields["unseen"].fail("the treatment of values never seen in training must be 'average' or 'error'")
    schema = Schema(class_name, labels, attributes, missing_tokens, fields["unseen"].value)
    if _MISSING_POLICY in fields:
        policy = fields[_MISSING_POLICY]
        if policy.text() != "marginalize":
            policy.fail("the only allowed value is 'marginalize'; leave the key out if missing values are a level")
        for attribute in attributes:
            if attribute.missing:
                policy.fail(f"'{attribute.name}' has a level for missing values, so none can be marginalized")
        schema = replace(schema, missing_policy="marginalize")
    if _LABEL_FREQUENCIES in fields:
        schema = replace(schema, label_frequencies=_read_label_weights(fields[_LABEL_FREQUENCIES], labels))
    if _TOWARDS not in fields:
        if schema.directed and len(labels) != 2:
            node.fail(f"attributes have directions, so the key 'towards' must name one of the {len(labels)} labels")
        return schema
    label = fields[_TOWARDS]
    if label.text() not in labels:
        label.fail(f"the class has no label '{label.text()}'")
    if not schema.directed:
        label.fail("no attribute has a direction")
    return replace(schema, towards=label.text())


def _read_label_weights(node: Node, labels: tuple[str, ...]) -> tuple[float, ...]:
    numbers = tuple(item.number() for item in node.items())
    if len(numbers) != len(labels) or min(numbers) < 0:
        node.fail(f"expected {len(labels)} numbers of at least 0, one per label")
    return numbers


def calibration_json(calibration: Calibration) -> dict[str, Any]:
    """Return a calibration as JSON: method, parameters, and log-loss before and after it, in nats per row."""
    fitted = calibration.map
    numbers: dict[str, Any]
    if isinstance(fitted, Temperature):
        numbers = {"temperature": fitted.temperature}
    elif isinstance(fitted, PerClass):
        numbers = {"scales": list(fitted.scales), "shifts": list(fitted.shifts)}
    else:
        numbers = {"knots": [{"at": list(knots.at), "values": list(knots.values)} for knots in fitted.knots]}
    log_loss = {"before": calibration.before, "after": calibration.after}
    weights = {_LABEL_FREQUENCIES: list(calibration.frequencies)} if calibration.frequencies else {}
    return {"method": fitted.method, "rows": calibration.rows, "log_loss": log_loss, **weights, **numbers}


def read_calibration(node: Node, n_labels: int) -> Calibration:
    """Parse a calibration written by `calibration_json` for a model with this number of labels."""
    members = node.members()
    if "method" not in members:
        node.fail("the key 'method' is missing")
    method = members["method"].text()
    if method not in METHODS:
        members["method"].fail(f"there is no calibration {method!r}")
    optional = () if method == Temperature.method else (_LABEL_FREQUENCIES,)
    fields = node.fields(("method", "rows", "log_loss", *_CALIBRATION_KEYS[method]), optional)
    losses = fields["log_loss"].fields(("before", "after"))
    before, after = losses["before"].number(), losses["after"].number()
    frequencies: tuple[float, ...] = ()
    if _LABEL_FREQUENCIES in fields:
        frequencies = _read_numbers(fields[_LABEL_FREQUENCIES], n_labels)
        if frequencies and min(frequencies) <= 0:
            fields[_LABEL_FREQUENCIES].fail("the weight of a label must be above 0")
    fitted = _read_calibration_map(fields, method, n_labels)
    return Calibration(fitted, fields["rows"].integer(1), before, after, frequencies)


def _read_calibration_map(fields: Mapping[str, Node], method: str, n_labels: int) -> CalibrationMap:
    if method == Temperature.method:
        temperature = fields["temperature"].number()
        if temperature <= 0:
            fields["temperature"].fail("a temperature must be above 0")
        return Temperature(temperature)
    if method == PerClass.method:
        scales = _read_numbers(fields["scales"], n_labels)
        if min(scales) < 0:
            fields["scales"].fail("a scale must be at least 0")
        return PerClass(scales, _read_numbers(fields["shifts"], n_labels))
    items = fields["knots"].items()
    # With two labels, the map of the second determines that of the first.
    if len(items) != (1 if n_labels == 2 else n_labels):
        fields["knots"].fail("there must be one map per label")
    maps = []
    for item in items:
        knots = item.fields(("at", "values"))
        at = tuple(number.number() for number in knots["at"].items())
        values = _read_numbers(knots["values"], len(at))
        if not at or at[0] < 0 or at[-1] > 1 or any(b <= a for a, b in pairwise(at)):
            knots["at"].fail("knots must be probabilities in increasing order")
        if not values[0] > 0 or not values[-1] < 1 or any(b < a for a, b in pairwise(values)):
            knots["values"].fail("values must be between 0 and 1 and must not decrease")
        maps.append(Knots(at, values))
    return Isotonic(tuple(maps))


def _read_numbers(node: Node, length: int) -> tuple[float, ...]:
    numbers = tuple(item.number() for item in node.items())
    if len(numbers) != length:
        node.fail("expected one number per label")
    return numbers


def rule_json(rule: DecisionRule) -> dict[str, Any]:
    """Return the content of `decisions`: the rule and the held-out scores that determine its prediction sets."""
    scores = rule.held_out
    if scores is None:
        return rule_summary_json(rule)
    held_out: dict[str, Any] = {
        "split": scores.split,
        "probabilities": [list(numbers) for numbers in scores.probabilities],
    }
    if scores.weights is not None:
        held_out["weights"] = [list(numbers) for numbers in scores.weights]
    return rule_summary_json(rule) | {"held_out": held_out}


def rule_summary_json(rule: DecisionRule) -> dict[str, Any]:
    """Return the rule without its held-out scores; parts that are not set are left out.

    `costs[i][j]` is the cost of deciding label j when label i is true. `threshold` has the keys `value` and `chosen`,
    and `sets` has the keys `alpha` and `by` ("class" or "all").
    """
    content: dict[str, Any] = {}
    if rule.costs is not None:
        content["costs"] = [list(row) for row in rule.costs]
    if rule.threshold is not None:
        content["threshold"] = rule.threshold._asdict()
    if rule.abstain_below is not None:
        content["abstain_below"] = rule.abstain_below
    if rule.sets is not None:
        content["sets"] = {"alpha": rule.sets.alpha, "by": "class" if rule.sets.by_class else "all"}
    return content


def read_rule(node: Node, labels: tuple[str, ...]) -> DecisionRule:
    """Parse a rule written by `rule_json`, and check it against the labels."""
    fields = node.fields((), ("costs", "threshold", "abstain_below", "sets", "held_out"))
    if "threshold" in fields and ("costs" in fields or len(labels) != 2):
        fields["threshold"].fail("a threshold needs two labels and excludes costs")
    rule = DecisionRule()
    if "costs" in fields:
        costs = tuple(_read_non_negative(row) for row in fields["costs"].items())
        if [len(row) for row in costs] != [len(labels)] * len(labels):
            fields["costs"].fail(f"expected {len(labels)} rows of {len(labels)} costs")
        rule = replace(rule, costs=costs)
    if "threshold" in fields:
        threshold = fields["threshold"].fields(("value", "chosen"))
        chosen = threshold["chosen"].text() and read_option("threshold", threshold["chosen"])
        rule = replace(rule, threshold=Threshold(_read_share(threshold["value"]), chosen))
    if "abstain_below" in fields:
        rule = replace(rule, abstain_below=_read_share(fields["abstain_below"]))
    if "sets" in fields:
        sets = fields["sets"].fields(("alpha", "by"))
        alpha, by = _read_share(sets["alpha"]), sets["by"]
        if not 0 < alpha < 1 or by.text() not in ("all", "class"):
            fields["sets"].fail("prediction sets need an alpha between 0 and 1, by 'all' or 'class'")
        rule = replace(rule, sets=PredictionSets(alpha, by.value == "class"))
    if "held_out" in fields:
        held_out, n_labels = fields["held_out"], len(labels)
        stored = held_out.fields(("split", "probabilities"), ("weights",))
        probabilities = tuple(_read_non_negative(item) for item in stored["probabilities"].items())
        weights = tuple(_read_non_negative(item) for item in stored["weights"].items()) if "weights" in stored else None
        sizes = [len(numbers) for numbers in probabilities]
        if len(sizes) != n_labels or (weights is not None and [len(numbers) for numbers in weights] != sizes):
            held_out.fail(f"expected {n_labels} lists of probabilities, and as many weights")
        for numbers in probabilities:
            if any(a > b for a, b in pairwise(numbers)) or max(numbers, default=0.0) > 1:
                stored["probabilities"].fail("probabilities must be between 0 and 1, in increasing order")
        rule = replace(rule, held_out=HeldOutScores(probabilities, weights, stored["split"].flag()))
    return rule


def _read_non_negative(node: Node) -> tuple[float, ...]:
    numbers = tuple(item.number() for item in node.items())
    if min(numbers, default=0.0) < 0:
        node.fail("the number must be at least 0")
    return numbers


def _read_share(node: Node) -> float:
    number = node.number()
    if not 0 <= number <= 1:
        node.fail("the number must be between 0 and 1")
    return number


def training_log_p_json(log_p: TrainingLogP) -> dict[str, Any]:
    """Return the number of training rows, and the mean and quantiles of ln P(x) over them."""
    quantiles = {f"{q:g}": value for q, value in zip(QUANTILES, log_p.quantiles, strict=True)}
    return {"rows": log_p.rows, "mean": log_p.mean, "quantiles": quantiles}


def read_training_log_p(node: Node) -> TrainingLogP:
    """Parse a summary written by `training_log_p_json`."""
    fields = node.fields(("rows", "mean", "quantiles"))
    by_share = fields["quantiles"].fields([f"{q:g}" for q in QUANTILES])
    quantiles = tuple(by_share[f"{q:g}"].number() for q in QUANTILES)
    if any(b < a for a, b in pairwise(quantiles)):
        fields["quantiles"].fail("quantiles must not decrease")
    return TrainingLogP(fields["rows"].integer(1), fields["mean"].number(), quantiles)
