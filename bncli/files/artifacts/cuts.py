"""The cuts file: how every column becomes codes. `discretize` writes it, `--cuts FILE` reads it.

    {"format": "bncli-cuts", "version": 1, "class": "diagnosis", "method": "mdl", "options": {},
     "attributes": [{"name": "age", "type": "numeric", "cuts": [27.5, 41.0]},
                    {"name": "colour", "type": "categorical", "levels": ["blue", "red"]}]}

Intervals are closed on the right: a cut belongs to the interval below it. `method` and `options` may be left out.
`sampled_rows` says of how many rows the cuts were learnt, and is there only where these were a sample of the table. An
attribute whose values were pooled has `groups` (`bncli.files.artifacts.attributes`). One that had missing values has
`"missing": true`: whatever rows it codes, it has a level for them. Without the key it has one where they need it.
"""

from __future__ import annotations

from typing import Any

from bncli.catalogue import DISCRETIZERS
from bncli.catalogue.choices import flag_of
from bncli.engine.data.schema import Cuts
from bncli.files.artifacts.attributes import attribute_json, check_unique_names, read_attribute
from bncli.files.artifacts.recipes import read_value
from bncli.files.artifacts.recognition import read_document
from bncli.files.atomic import write_bytes
from bncli.files.documents import Node, dump_json

VERSION = 1
SAMPLED = "sampled_rows"
"""The key of models and cuts that were learnt of a sample; there only then."""


def read_cuts(path: str) -> Cuts:
    """Return the cuts in a file, checked."""
    return cuts_of_document(read_document(path, "cuts", VERSION))


def write_cuts(path: str, cuts: Cuts) -> None:
    """Write the cuts file."""
    write_bytes(path, dump_cuts(cuts).encode())


def cuts_of_document(document: Node) -> Cuts:
    """Return the cuts in the content of a cuts file."""
    fields = document.fields(("format", "version", "class", "attributes"), ("method", "options", SAMPLED))
    class_name = fields["class"].text()
    attributes = tuple(read_attribute(item, counted=False) for item in fields["attributes"].items())
    check_unique_names(fields["attributes"], class_name, attributes)
    method = fields["method"].text() if "method" in fields else "file"
    options = fields["options"].members() if "options" in fields else {}
    taken = {
        name: (read_value(name, option) if flag_of(name) in DISCRETIZERS.method_options else option.integer())
        for name, option in options.items()
    }
    return Cuts(class_name, attributes, method, taken, fields[SAMPLED].integer(1) if SAMPLED in fields else None)


def dump_cuts(cuts: Cuts) -> str:
    """Return the text of the cuts file."""
    return dump_json(cuts_json(cuts))


def cuts_json(cuts: Cuts) -> dict[str, Any]:
    """Return the content of the cuts file."""
    sampled = {} if cuts.sampled_rows is None else {SAMPLED: cuts.sampled_rows}
    return sampled | {
        "format": "bncli-cuts",
        "version": VERSION,
        "class": cuts.class_name,
        "method": cuts.method,
        "options": dict(sorted(cuts.options.items())),
        "attributes": [attribute_json(a) | ({"missing": True} if a.missing else {}) for a in cuts.attributes],
    }
