"""Which keys of two model files differ, one by one: so no part of a model can be another in silence.

A key is one of `model.json`; `schema.KEY` and `structure.KEY` are those inside these two, `attributes.KEY` stands for
all attributes that both models have, `tables` and `self_test` for arrays. The version of the file follows from the
rest and is left out.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

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


def differing_keys(one: bytes, other: bytes) -> tuple[str, ...]:
    """The keys of which two model files hold other values, in the order of the alphabet; bytes of `dump_model`."""
    (ours, our_attributes), (theirs, their_attributes) = _parts(one), _parts(other)
    pairs = [(ours, theirs, "")]
    pairs += [
        (our_attributes[name], their_attributes[name], "attributes.")
        for name in our_attributes.keys() & their_attributes
    ]
    return tuple(sorted({f"{prefix}{key}" for a, b, prefix in pairs for key in _other(a, b)}))


def _other(one: dict[str, Any], other: dict[str, Any]) -> Iterator[str]:
    """A key that is not there is as one of null."""
    return (key for key in one.keys() | other.keys() if one.get(key) != other.get(key))


def _parts(content: bytes) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The values of all keys but those of attributes, and these by the attribute's name."""
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


def untold(report: object, keys: Sequence[str]) -> tuple[str, ...]:
    """The keys that no field of a report speaks of; those that say nothing are false."""
    return tuple(key for key in keys if not any(getattr(report, field) for field in FIELDS.get(key, ())))
