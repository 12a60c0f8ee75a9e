"""How two models differ: schema, cuts, arcs, tables, options, calibration, rule, and what they say of a table.

Everything is compared by name: columns, labels, values. Table entries are compared where both models have a table over
the same attributes with the same values; of an ensemble these are those of its sum, or where there is none (and of an
average over steps) those of its leading model. Probabilities are compared label by label; a label that one model does
not know has probability 0 there. Whatever else two models hold of which nothing is said is named by its key in the
model file.

Conventions: the rows are read once for each model, each as that model reads them, in step.

Which keys of two model files differ, one by one: so no part of a model can be another in silence.

A key is one of `model.json`; `schema.KEY` and `structure.KEY` are those inside these two, `attributes.KEY` stands for
all attributes that both models have, `tables` and `self_test` for arrays. The version of the file follows from the rest
and is left out.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from bncli.engine.calibration import Calibration
from bncli.engine.data.encoding import encode_attributes
from bncli.engine.data.schema import Attribute, CategoricalAttribute, NumericAttribute, Schema
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.model import DecisionRule, Ensemble, Model, Pool, Tables, TrainingLogP
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities
from bncli.engine.structures.named_structure import NamedDag, NamedStructure, name_structure
from bncli.errors import UsageError
from bncli.files.artifacts.model import calibration_json, dump_model, read_model, rule_summary_json, training_log_p_json
from bncli.files.exports.score_layout import most_probable
from bncli.files.reading.rows_by_schema import Batches
from bncli.files.reading.source import Source
from bncli.steps.run import with_memory_limit
from bncli.watch import Run

_CODES = ("types_changed", "cuts_changed", "levels_changed")
_GRAPH = ("arcs_added", "arcs_removed", "regions_added", "regions_removed")
FIELDS: dict[str, tuple[str, ...]] = {
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
}
"""The fields of a report that speak of a key, or of what brings it with it."""
_DESCRIPTION = "model.json"
_SPREAD = ("schema", "structure")
_T = TypeVar("_T")
_NUMBERS_PER_BLOCK = 1 << 21


class Decisions(NamedTuple):
    """On so many rows: the share whose most probable label is another, and the largest |dP| over all labels."""

    rows: int
    changed: float
    max_dp: float


class TableChanges(NamedTuple):
    """Tables by the names of their attributes. `recut` are over attributes whose values differ: not to be compared.

    largest: the largest change of an entry, in nats, of the tables that can be compared; None where there are none.
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
    """What B has and A lacks is added, what A has and B lacks removed; pairs are (of A, of B).

    labels: those of A. class_name, label_order, towards, class_weights (by label), calibration, rule, training_log_p,
    rows_learnt_from: None where they agree. other_keys: those of the model files that differ, and of which no other
    field says anything. decisions: None without a table.
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
    decisions: Decisions | None

    def as_json(self) -> dict[str, Any]:
        """Return every field by name; of the decisions `rows`, `changed_decisions` and `max_abs_dp`."""
        told = {field.name: getattr(self, field.name) for field in fields(self)}
        found = {"class" if name == "class_name" else name: value for name, value in told.items()}
        del found["decisions"], found["labels"]
        rows, changed, max_dp = (None, None, None) if self.decisions is None else self.decisions
        found["options_changed"] = {name: list(pair) for name, pair in self.options_changed.items()}
        found["calibration"] = _pair_json(self.calibration, calibration_json)
        found["rule"] = _pair_json(self.rule, rule_summary_json)
        found["training_log_p"] = _pair_json(self.training_log_p, training_log_p_json)
        found["tables"] = self.tables._asdict()
        return found | {"rows": rows, "changed_decisions": changed, "max_abs_dp": max_dp}


Key = tuple[tuple[str, ...], bool, tuple[Any, ...]]
"""The attributes of a table by name, whether the first is a child, and how they are regrouped."""
Scored = tuple[Index, Array]
"""Of consecutive rows: where the most probable label stands among all labels (rows,), and P(y | x_t) (rows, labels)."""


def diff(a: str, b: str, source: Source | None = None, *, run: Run = Run()) -> DiffReport:
    """Compare the models in two files, on the rows of `source` too."""
    if source is not None and "-" in source.paths:
        raise UsageError("the rows are read twice, which the standard input cannot be", hint="name a file with --data")
    one, other = read_model(a), read_model(b)
    ours, theirs = one.schema, other.schema
    names, others = _by_name(ours), _by_name(theirs)
    changes = {name: _change(names[name], others[name]) for name in names if name in others}
    content = dump_model(one), dump_model(other)
    report = DiffReport(
        a=a,
        b=b,
        labels=ours.labels,
        same_bytes=content[0] == content[1],
        class_name=_pair(ours.class_name, theirs.class_name),
        label_order=_pair(ours.labels, theirs.labels),
        attributes_added=_more(others, names),
        attributes_removed=_more(names, others),
        types_changed=tuple(name for name, change in changes.items() if change == "type"),
        cuts_changed=tuple(name for name, change in changes.items() if change == "cuts"),
        levels_changed=tuple(name for name, change in changes.items() if change == "levels"),
        directions_changed=tuple(name for name in changes if _direction(names[name]) != _direction(others[name])),
        towards=_pair(ours.towards, theirs.towards),
        **_graphs(name_structure(one.structure, ours), name_structure(other.structure, theirs)),
        options_changed=_options(one, other),
        class_weights=_pair(_class_weights(one), _class_weights(other)),
        calibration=_pair(one.calibration, other.calibration),
        rule=_pair(one.rule, other.rule),
        training_log_p=_pair(one.log_p, other.log_p),
        rows_learnt_from=_pair(one.n_rows, other.n_rows),
        tables=_tables(one, other, {name for name, change in changes.items() if change is not None}),
        other_keys=(),
        decisions=None if source is None else _decisions(one, other, source, run),
    )
    return replace(report, other_keys=undescribed_keys(report, differing_keys(*content)))


def _by_name(schema: Schema) -> dict[str, Attribute]:
    return {attribute.name: attribute for attribute in schema.attributes}


def _change(one: Attribute, other: Attribute) -> str | None:
    """Return what differs between an attribute's values: type (also of a date part), cuts, or levels."""
    if isinstance(one, NumericAttribute) and isinstance(other, NumericAttribute):
        if one.form != other.form:
            return "type"
        return "cuts" if one.cuts != other.cuts else "levels" if one.missing != other.missing else None
    if isinstance(one, CategoricalAttribute) and isinstance(other, CategoricalAttribute):
        values = [(attribute.levels, attribute.groups, attribute.missing) for attribute in (one, other)]
        return None if values[0] == values[1] else "levels"
    return "type"


def _pair(one: _T, other: _T) -> tuple[_T, _T] | None:
    return None if one == other else (one, other)


def _more(one: Mapping[Any, Any] | Sequence[Any], other: Mapping[Any, Any] | Sequence[Any]) -> tuple[Any, ...]:
    """Return what the one has and the other lacks, in the order of the one."""
    known = set(other)
    return tuple(item for item in one if item not in known)


def _direction(attribute: Attribute) -> int:
    return attribute.direction if isinstance(attribute, NumericAttribute) else 0


def _graphs(one: NamedStructure, other: NamedStructure) -> dict[str, Any]:
    """Return arcs of networks (parent, child), regions of models of regions; one of each differs in all."""
    arcs, regions = (_arcs(one), _arcs(other)), (_regions(one), _regions(other))
    return {
        "arcs_added": _more(arcs[1], arcs[0]),
        "arcs_removed": _more(*arcs),
        "regions_added": _more(regions[1], regions[0]),
        "regions_removed": _more(*regions),
    }


def _arcs(structure: NamedStructure) -> list[tuple[str, str]]:
    if not isinstance(structure, NamedDag):
        return []
    return [(parent, child) for child, parents in structure.parents.items() for parent in parents]


def _regions(structure: NamedStructure) -> tuple[tuple[str, ...], ...]:
    return () if isinstance(structure, NamedDag) else structure.chosen


def _options(one: Model, other: Model) -> dict[str, tuple[Any, Any]]:
    """Return options of the recipe, by the words typed, and the policies of the schema."""
    ours, theirs = (
        model.recipe.as_dict() | {"missing": model.schema.missing_tokens, "unseen": model.schema.unseen}
        for model in (one, other)
    )
    return {
        name.replace("_", "-"): (_names_text(ours.get(name)), _names_text(theirs.get(name)))
        for name in dict.fromkeys((*ours, *theirs))
        if ours.get(name) != theirs.get(name)
    }


def _names_text(value: Any) -> Any:
    """Return names of columns as one text."""
    return ", ".join(value) if isinstance(value, tuple) else value


def _class_weights(model: Model) -> dict[str, float] | None:
    weights = model.class_weights
    return None if weights is None else dict(zip(model.schema.labels, weights, strict=True))


def _tables(one: Model, other: Model, recut: set[str]) -> TableChanges:
    ours, theirs = _entries(one), _entries(other)
    common = [key for key in ours if key in theirs]
    barred = [key for key in common if recut & set(key[0]) or one.schema.labels != other.schema.labels]
    compared = [key for key in common if key not in set(barred)]
    largest = {key: float(np.abs(ours[key] - theirs[key]).max(initial=0.0)) for key in compared}
    changed = [key for key in compared if largest[key] > 0]
    return TableChanges(
        added=_over(_more(theirs, ours)),
        removed=_over(_more(ours, theirs)),
        changed=_over(changed),
        recut=_over(barred),
        same=len(compared) - len(changed),
        largest=max(largest.values(), default=None),
    )


def _entries(model: Model) -> dict[Key, Array]:
    """Return every table by what it is over, and the bias, which is over no attribute."""
    predictor = model.predictor
    combined = isinstance(predictor, Ensemble) and predictor.pool is Pool.LOGARITHMIC
    tables: Tables = predictor.combined if isinstance(predictor, Ensemble) and combined else predictor.leading
    found: dict[Key, Array] = {((), False, ()): tables.bias[None, :]}
    for family, entries in zip(tables.families, tables.weights, strict=True):
        names = tuple(model.schema.attributes[i].name for i in family.attributes)
        found[names, family.child is not None, family.groupings] = entries
    return found


def _over(keys: Iterable[Key]) -> tuple[tuple[str, ...], ...]:
    return tuple(names for names, *_ in keys)


def _decisions(one: Model, other: Model, source: Source, run: Run) -> Decisions:
    """In one pass over the rows for each model, in step."""
    labels = tuple(dict.fromkeys((*one.schema.labels, *other.schema.labels)))
    rows, changed, max_dp = 0, 0, 0.0
    with (
        closing(_scored(one, labels, source, run)) as ours,
        closing(_scored(other, labels, source, run)) as theirs,
    ):
        for (chosen, p), (chosen_by_other, q) in _in_step(ours, theirs):
            rows += len(p)
            changed += int((chosen != chosen_by_other).sum())
            max_dp = max(max_dp, float(np.abs(p - q).max(initial=0.0)))
    return Decisions(rows, changed / rows if rows else 0.0, max_dp)


def _scored(model: Model, labels: Sequence[str], source: Source, run: Run) -> Generator[Scored, None, None]:
    """Yield all rows of the table, block by block."""
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


def _in_step(ours: Iterator[Scored], theirs: Iterator[Scored]) -> Iterator[tuple[Scored, Scored]]:
    """Yield both in blocks of the same rows."""
    one, other = next(ours, None), next(theirs, None)
    while one is not None and other is not None:
        n = min(len(one[0]), len(other[0]))
        yield (one[0][:n], one[1][:n]), (other[0][:n], other[1][:n])
        one = (one[0][n:], one[1][n:]) if n < len(one[0]) else next(ours, None)
        other = (other[0][n:], other[1][n:]) if n < len(other[0]) else next(theirs, None)


def differing_keys(one: bytes, other: bytes) -> tuple[str, ...]:
    """Return the keys of which two model files hold other values, in the order of the alphabet.

    Bytes of `dump_model`.
    """
    (ours, our_attributes), (theirs, their_attributes) = _parts(one), _parts(other)
    pairs = [(ours, theirs, "")]
    pairs += [
        (our_attributes[name], their_attributes[name], "attributes.")
        for name in our_attributes.keys() & their_attributes
    ]
    return tuple(
        sorted(
            {
                f"{prefix}{key}"
                for a, b, prefix in pairs
                for key in (key for key in a.keys() | b.keys() if a.get(key) != b.get(key))
            }
        )
    )


def _parts(content: bytes) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the values of all keys but those of attributes, and these by the attribute's name."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        arrays = {name: archive.read(name) for name in archive.namelist() if name != _DESCRIPTION}
        found = json.loads(archive.read(_DESCRIPTION))
    del found["version"]
    attributes = {attribute["name"]: attribute for attribute in found["schema"].pop("attributes")}
    for whole in _SPREAD:
        found |= {f"{whole}.{key}": value for key, value in found.pop(whole).items()}
    tested = {name for name in arrays if name.startswith("self_test/")}
    found["tables"] = {name: array for name, array in arrays.items() if name not in tested}
    found["self_test"] = {name: arrays[name] for name in tested}
    return found, attributes


def undescribed_keys(report: object, keys: Sequence[str]) -> tuple[str, ...]:
    """Return the keys that no field of a report speaks of; those that say nothing are false."""
    return tuple(key for key in keys if not any(getattr(report, field) for field in FIELDS.get(key, ())))


def _pair_json(pair: tuple[Any, Any] | None, as_json: Callable[[Any], dict[str, Any]]) -> list[Any] | None:
    return None if pair is None else [None if one is None else as_json(one) for one in pair]
