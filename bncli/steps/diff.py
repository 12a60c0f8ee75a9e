"""Compare two models: schema, cuts, arcs, tables, options, calibration, decision rule, and predictions for a table.

Columns, labels and values are compared by name. Two tables are compared if they cover the same attributes, with the
same values, and if the models have the same labels. For an ensemble these are the tables of the sum of its components.
If an ensemble has no such sum, or if a model averages over steps, the tables of its leading component or step are
compared. Probabilities are compared label by label; a label that a model does not have has probability 0.

Any other difference is reported by its key in the model file, so that no part of a model can differ unnoticed:

    KEY               a key of `model.json`
    schema.KEY        a key inside its `schema`, and likewise structure.KEY
    attributes.KEY    a key that differs in at least one attribute that both models have
    tables, self_test the arrays of the tables, and those of the self-test

The version of the file follows from its content and is not compared.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from bncli.engine.calibration import Calibration
from bncli.engine.data.dataset import encode_attributes
from bncli.engine.data.schema import Attribute, CategoricalAttribute, NumericAttribute
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.model import DecisionRule, Edit, Ensemble, Model, Pool, Tables, TrainingLogP
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities
from bncli.engine.structures.named_structure import NamedDag, NamedStructure, name_structure
from bncli.errors import UsageError
from bncli.files.artifacts.model import (
    INTERVALS,
    INTERVALS_ARRAY,
    calibration_json,
    dump_model,
    read_model,
    rule_summary_json,
    training_log_p_json,
)
from bncli.files.artifacts.provenance import edit_json, edit_record
from bncli.files.exports.score_layout import most_probable
from bncli.files.reading.rows_by_schema import Batches
from bncli.files.reading.source import Source
from bncli.steps.run import with_memory_limit
from bncli.watch import Run

_CODES = ("types_changed", "cuts_changed", "levels_changed")
_GRAPH = ("arcs_added", "arcs_removed", "regions_added", "regions_removed")
FIELDS_OF_KEY: dict[str, tuple[str, ...]] = {
    "recipe": ("options_changed",),
    "rows": ("rows_learnt_from",),
    "schema.class": ("class_name",),
    "structure.class": ("class_name",),
    "schema.labels": ("label_order",),
    "schema.label_frequencies": ("label_order", "rows_learnt_from", "class_weights"),
    "schema.missing_policy": ("options_changed",),
    "schema.missing_tokens": ("options_changed",),
    "schema.unseen": ("options_changed",),
    "schema.towards": ("towards",),
    "structure.parents": _GRAPH,
    "structure.regions": _GRAPH,
    "structure.method": ("options_changed", *_GRAPH),
    "structure.options": ("options_changed", *_GRAPH),
    "attributes.type": _CODES,
    "attributes.form": _CODES,
    "attributes.cuts": _CODES,
    "attributes.levels": _CODES,
    "attributes.groups": _CODES,
    "attributes.missing": _CODES,
    "attributes.frequencies": (*_CODES, "rows_learnt_from", "class_weights"),
    "attributes.direction": ("directions_changed",),
    "families": ("tables",),
    "tables": ("tables",),
    "self_test": ("tables", *_CODES, "attributes_added", "attributes_removed", "calibration", "options_changed"),
    "class_weights": ("class_weights", "label_order"),
    "plain_frequencies": ("class_weights",),
    "calibration": ("calibration", "label_order"),
    "decisions": ("rule",),
    "training_log_p": ("training_log_p",),
    "edits": ("edits",),
}
"""For each key of the model file, the fields of a report that describe or imply a difference in it."""
_DESCRIPTION = "model.json"
_T = TypeVar("_T")
_NUMBERS_PER_BLOCK = 1 << 21


class PredictionChanges(NamedTuple):
    """The number of rows, the fraction whose most probable label changes, and the largest |dP| over rows and labels."""

    rows: int
    changed: float
    max_dp: float


class TableChanges(NamedTuple):
    """The tables that differ; each is given by the names of its attributes.

    recut: tables that cannot be compared, because the values of an attribute or the labels of the class differ. same:
    number of equal tables. largest: the largest change of an entry in nats, or None if no tables can be compared.
    """

    added: tuple[tuple[str, ...], ...]
    removed: tuple[tuple[str, ...], ...]
    changed: tuple[tuple[str, ...], ...]
    recut: tuple[tuple[str, ...], ...]
    same: int
    largest: float | None

    def __bool__(self) -> bool:
        """Return whether any table differs."""
        return bool(self.added or self.removed or self.changed or self.recut)


@dataclass(frozen=True)
class DiffReport:
    """The differences between model A and model B; pairs are (value in A, value in B).

    The fields `..._added` list what only B has, and the fields `..._removed` what only A has. labels: the labels of A.
    class_name, label_order, towards, class_weights (by label), calibration, rule, training_log_p, rows_learnt_from,
    edits: None if they are equal. other_keys: keys of the model file that differ and that no other field describes.
    predictions: the comparison of predictions, or None without a table to predict.
    """

    a: str
    b: str
    same_bytes: bool
    labels: tuple[str, ...]
    class_name: tuple[str, str] | None
    label_order: tuple[tuple[str, ...], tuple[str, ...]] | None
    attributes_added: tuple[str, ...]
    attributes_removed: tuple[str, ...]
    types_changed: tuple[str, ...]
    cuts_changed: tuple[str, ...]
    levels_changed: tuple[str, ...]
    directions_changed: tuple[str, ...]
    towards: tuple[str | None, str | None] | None
    arcs_added: tuple[tuple[str, str], ...]
    arcs_removed: tuple[tuple[str, str], ...]
    regions_added: tuple[tuple[str, ...], ...]
    regions_removed: tuple[tuple[str, ...], ...]
    options_changed: Mapping[str, tuple[Any, Any]]
    class_weights: tuple[dict[str, float] | None, dict[str, float] | None] | None
    calibration: tuple[Calibration | None, Calibration | None] | None
    rule: tuple[DecisionRule | None, DecisionRule | None] | None
    training_log_p: tuple[TrainingLogP | None, TrainingLogP | None] | None
    rows_learnt_from: tuple[int, int] | None
    tables: TableChanges
    other_keys: tuple[str, ...]
    predictions: PredictionChanges | None
    edits: tuple[tuple[Edit, ...], tuple[Edit, ...]] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the fields by name, without `labels`, and with `class_name` as `class`.

        The predictions become `rows`, `changed_decisions` and `max_abs_dp`.
        """
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        report = {"class" if name == "class_name" else name: value for name, value in values.items()}
        del report["predictions"], report["labels"]
        report["options_changed"] = {name: list(pair) for name, pair in self.options_changed.items()}
        records: dict[str, tuple[tuple[Any, Any] | None, Callable[[Any], dict[str, Any]]]] = {
            "calibration": (self.calibration, calibration_json),
            "rule": (self.rule, rule_summary_json),
            "training_log_p": (self.training_log_p, training_log_p_json),
        }
        for name, (pair, as_json) in records.items():
            report[name] = None if pair is None else [None if value is None else as_json(value) for value in pair]
        report["edits"] = (
            None if self.edits is None else [[edit_json(edit, self.labels) for edit in edits] for edits in self.edits]
        )
        report["tables"] = self.tables._asdict()
        rows, changed, max_dp = (None, None, None) if self.predictions is None else self.predictions
        return report | {"rows": rows, "changed_decisions": changed, "max_abs_dp": max_dp}


def diff(a: str, b: str, source: Source | None = None, *, run: Run = Run()) -> DiffReport:
    """Compare the models in two files and, if `source` is given, their predictions for its rows.

    Raises UsageError if the rows come from the standard input, because they are read once per model.
    """
    if source is not None and "-" in source.paths:
        raise UsageError(
            "the rows are read twice, but the standard input can be read only once", hint="give a file with --data"
        )
    model_a, model_b = read_model(a), read_model(b)
    schema_a, schema_b = model_a.schema, model_b.schema
    attributes_a, attributes_b = ({x.name: x for x in schema.attributes} for schema in (schema_a, schema_b))
    changes = {
        name: _attribute_difference(attributes_a[name], attributes_b[name])
        for name in attributes_a
        if name in attributes_b
    }
    directions_a, directions_b = (
        {name: a.direction if isinstance(a, NumericAttribute) else 0 for name, a in attributes.items()}
        for attributes in (attributes_a, attributes_b)
    )
    weights_a, weights_b = (
        None if model.class_weights is None else dict(zip(model.schema.labels, model.class_weights, strict=True))
        for model in (model_a, model_b)
    )
    structure_a, structure_b = name_structure(model_a.structure, schema_a), name_structure(model_b.structure, schema_b)
    arcs_a, arcs_b = _arcs(structure_a), _arcs(structure_b)
    regions_a, regions_b = (
        () if isinstance(structure, NamedDag) else structure.chosen for structure in (structure_a, structure_b)
    )
    content_a, content_b = dump_model(model_a), dump_model(model_b)
    records_a, records_b = ([edit_record(edit) for edit in model.edits] for model in (model_a, model_b))
    options_a, options_b = (
        model.recipe.as_dict() | {"missing": model.schema.missing_tokens, "unseen": model.schema.unseen}
        for model in (model_a, model_b)
    )
    # The options and reading policies that differ, by the words that users type.
    changed = {}
    for option in dict.fromkeys((*options_a, *options_b)):
        pair = options_a.get(option), options_b.get(option)
        if pair[0] != pair[1]:
            shown_a, shown_b = (", ".join(value) if isinstance(value, tuple) else value for value in pair)
            changed[option.replace("_", "-")] = shown_a, shown_b
    report = DiffReport(
        a=a,
        b=b,
        labels=schema_a.labels,
        same_bytes=content_a == content_b,
        class_name=_pair_if_different(schema_a.class_name, schema_b.class_name),
        label_order=_pair_if_different(schema_a.labels, schema_b.labels),
        attributes_added=_not_in(attributes_a, attributes_b),
        attributes_removed=_not_in(attributes_b, attributes_a),
        types_changed=tuple(name for name, change in changes.items() if change == "type"),
        cuts_changed=tuple(name for name, change in changes.items() if change == "cuts"),
        levels_changed=tuple(name for name, change in changes.items() if change == "levels"),
        directions_changed=tuple(name for name in changes if directions_a[name] != directions_b[name]),
        towards=_pair_if_different(schema_a.towards, schema_b.towards),
        arcs_added=_not_in(arcs_a, arcs_b),
        arcs_removed=_not_in(arcs_b, arcs_a),
        regions_added=_not_in(regions_a, regions_b),
        regions_removed=_not_in(regions_b, regions_a),
        options_changed=changed,
        class_weights=_pair_if_different(weights_a, weights_b),
        calibration=_pair_if_different(model_a.calibration, model_b.calibration),
        rule=_pair_if_different(model_a.rule, model_b.rule),
        training_log_p=_pair_if_different(model_a.log_p, model_b.log_p),
        rows_learnt_from=_pair_if_different(model_a.n_rows, model_b.n_rows),
        tables=_compare_tables(model_a, model_b, {name for name, change in changes.items() if change is not None}),
        other_keys=(),
        edits=(model_a.edits, model_b.edits) if records_a != records_b else None,
        predictions=None if source is None else _compare_predictions(model_a, model_b, source, run),
    )
    undescribed = tuple(
        key
        for key in differing_keys(content_a, content_b)
        if not any(getattr(report, field) for field in FIELDS_OF_KEY.get(key, ()))
    )
    return replace(report, other_keys=undescribed)


def _attribute_difference(a: Attribute, b: Attribute) -> str | None:
    """Return the first difference between two attributes ("type", "cuts" or "levels"), or None if there is none.

    Different parts of a date and different number formats count as "type", and a different treatment of missing values
    as "levels".
    """
    if isinstance(a, NumericAttribute) and isinstance(b, NumericAttribute):
        if a.form != b.form:
            return "type"
        return "cuts" if a.cuts != b.cuts else "levels" if a.missing != b.missing else None
    if isinstance(a, CategoricalAttribute) and isinstance(b, CategoricalAttribute):
        return None if (a.levels, a.groups, a.missing) == (b.levels, b.groups, b.missing) else "levels"
    return "type"


def _arcs(structure: NamedStructure) -> list[tuple[str, str]]:
    """Return the arcs (parent, child) of a network, or an empty list for a model of regions."""
    if not isinstance(structure, NamedDag):
        return []
    return [(parent, child) for child, parents in structure.parents.items() for parent in parents]


def _pair_if_different(a: _T, b: _T) -> tuple[_T, _T] | None:
    return None if a == b else (a, b)


def _not_in(a: Mapping[Any, Any] | Sequence[Any], b: Mapping[Any, Any] | Sequence[Any]) -> tuple[Any, ...]:
    """Return the items of B that are not in A, in the order of B."""
    known = set(a)
    return tuple(item for item in b if item not in known)


_TableKey = tuple[tuple[str, ...], bool, tuple[Any, ...]]
"""The key of a table: the names of its attributes, whether the first is a child, and the groupings of their values."""


def _compare_tables(model_a: Model, model_b: Model, recut: set[str]) -> TableChanges:
    """Compare the tables of two models; `recut` contains the names of attributes whose values differ."""
    tables_a, tables_b = _tables_with_bias(model_a), _tables_with_bias(model_b)
    added, removed = _not_in(tables_a, tables_b), _not_in(tables_b, tables_a)
    incomparable, changed, largest = [], [], []
    for key in tables_a:
        if key in tables_b:
            if recut & set(key[0]) or model_a.schema.labels != model_b.schema.labels:
                incomparable.append(key)
            else:
                largest.append(float(np.abs(tables_a[key] - tables_b[key]).max(initial=0.0)))
                if largest[-1] > 0:
                    changed.append(key)
    return TableChanges(
        added=tuple(names for names, *_ in added),
        removed=tuple(names for names, *_ in removed),
        changed=tuple(names for names, *_ in changed),
        recut=tuple(names for names, *_ in incomparable),
        same=len(largest) - len(changed),
        largest=max(largest, default=None),
    )


def _tables_with_bias(model: Model) -> dict[_TableKey, Array]:
    """Return the model's tables, including the bias, whose key has no attributes."""
    predictor = model.predictor
    combined = isinstance(predictor, Ensemble) and predictor.pool is Pool.LOGARITHMIC
    tables: Tables = predictor.combined if isinstance(predictor, Ensemble) and combined else predictor.leading
    by_key: dict[_TableKey, Array] = {((), False, ()): tables.bias[None, :]}
    for family, entries in zip(tables.families, tables.weights, strict=True):
        names = tuple(model.schema.attributes[i].name for i in family.attributes)
        by_key[names, family.child is not None, family.groupings] = entries
    return by_key


_Scored = tuple[Index, Array]
"""Predictions for consecutive rows: the positions of their most probable labels, and P(y | x_t) (rows, labels)."""


def _compare_predictions(model_a: Model, model_b: Model, source: Source, run: Run) -> PredictionChanges:
    """Compare the predictions of two models; each reads the rows with its own schema, in step with the other."""
    labels = tuple(dict.fromkeys((*model_a.schema.labels, *model_b.schema.labels)))
    rows, changed, max_dp = 0, 0, 0.0
    with (
        closing(_score_rows(model_a, labels, source, run)) as blocks_a,
        closing(_score_rows(model_b, labels, source, run)) as blocks_b,
    ):
        for (chosen_a, p_a), (chosen_b, p_b) in _align_blocks(blocks_a, blocks_b):
            rows += len(p_a)
            changed += int((chosen_a != chosen_b).sum())
            max_dp = max(max_dp, float(np.abs(p_a - p_b).max(initial=0.0)))
    return PredictionChanges(rows, changed / rows if rows else 0.0, max_dp)


def _score_rows(model: Model, labels: Sequence[str], source: Source, run: Run) -> Generator[_Scored, None, None]:
    """Yield the predictions for all rows of the table, block by block; columns are in the order of `labels`."""
    scorer, schema = compile_scorer(model), model.schema
    needed = [schema.attributes[i].name for i in scorer.used]
    columns = np.array([labels.index(label) for label in schema.labels])
    step = max(1, _NUMBERS_PER_BLOCK // len(labels))
    with Batches(source, schema, needed, run=with_memory_limit(run)) as batches:
        for batch in batches:
            n = batch.columns.n_rows
            codes = encode_attributes(batch.columns, schema, scorer.used, allow_missing=bool(batches.absent)).codes
            for start in range(0, n, step):
                stop = min(start + step, n)
                log_p = log_probabilities(scorer, [column[start:stop] for column in codes], stop - start)
                probabilities = np.zeros((stop - start, len(labels)))
                probabilities[:, columns] = np.exp(log_p).T
                yield columns[most_probable(log_p)], probabilities


def _align_blocks(blocks_a: Iterator[_Scored], blocks_b: Iterator[_Scored]) -> Iterator[tuple[_Scored, _Scored]]:
    """Yield pairs of blocks that cover the same rows, from two sequences whose blocks may differ in size."""
    a, b = next(blocks_a, None), next(blocks_b, None)
    while a is not None and b is not None:
        n = min(len(a[0]), len(b[0]))
        yield (a[0][:n], a[1][:n]), (b[0][:n], b[1][:n])
        a = (a[0][n:], a[1][n:]) if n < len(a[0]) else next(blocks_a, None)
        b = (b[0][n:], b[1][n:]) if n < len(b[0]) else next(blocks_b, None)


def differing_keys(content_a: bytes, content_b: bytes) -> tuple[str, ...]:
    """Return, in alphabetical order, the keys whose values differ between two model files written by `dump_model`.

    The key `version` is ignored. Keys of attributes, such as `attributes.cuts`, are compared only for attributes that
    both models have.
    """
    (keys_a, attributes_a), (keys_b, attributes_b) = _keys(content_a), _keys(content_b)
    pairs = [(keys_a, keys_b, "")]
    pairs += [(attributes_a[name], attributes_b[name], "attributes.") for name in attributes_a.keys() & attributes_b]
    differing = set()
    for a, b, prefix in pairs:
        differing |= {f"{prefix}{key}" for key in a.keys() | b.keys() if a.get(key) != b.get(key)}
    return tuple(sorted(differing))


def _keys(content: bytes) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the values to compare outside the attributes, by key, and the description of each attribute, by name.

    The format version is left out. Keys of the schema and the structure get the prefix `schema.` or `structure.`;
    arrays are under `tables`, `self_test` and the key of the intervals.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        arrays = {name: archive.read(name) for name in archive.namelist() if name != _DESCRIPTION}
        values = json.loads(archive.read(_DESCRIPTION))
    del values["version"]
    attributes = {attribute["name"]: attribute for attribute in values["schema"].pop("attributes")}
    for whole in ("schema", "structure"):
        values |= {f"{whole}.{key}": value for key, value in values.pop(whole).items()}
    tested = {name for name in arrays if name.startswith("self_test/")}
    uncertainty = {name: arrays.pop(name) for name in [INTERVALS_ARRAY] if name in arrays}
    if uncertainty:
        values[INTERVALS]["array"] = uncertainty
    values["tables"] = {name: array for name, array in arrays.items() if name not in tested}
    values["self_test"] = {name: arrays[name] for name in tested}
    return values, attributes
