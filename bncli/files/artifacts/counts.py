"""The counts file `.counts`: contingency tables of attributes and class, which can be added up without the rows.

It is a ZIP archive of `counts.json`, with sorted keys, and `tables.npy`, one array that holds all tables one after the
other. The array is int64, or float64 after a merge with a decay. The comment of the archive is a checksum
(`archive.py`). `unzip -p x.counts counts.json` shows the description, and `numpy.load` reads the array.

    {"format": "bncli-counts", "version": 1, "labels": ["no", "yes"], "rows": 683, "missing": [0, 16],
     "cuts": {the content of a cuts file}, "missing_tokens": null, "tables": "pairs", "decayed": false,
     "parts": [{"fingerprint": "9f86d0...", "rows": 683}]}

`tables` lists the sets of attributes that were counted with the class, in addition to each single attribute; "pairs"
means all pairs. The tables come in the order of `bncli.engine.counting.counted_rows`. Each has one axis per attribute,
with the codes in the order of the cuts (missing values last, if the attribute has `missing`), and a last axis for the
labels. `missing` lists the number of rows in which each attribute is missing. A part whose rows were weighted down in a
merge has a `weight` below 1.

Equal counts give equal bytes on every machine. A reader compares the size of the array with what `counts.json` declares
before it reads the array, and checks that all tables count the same rows.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from bncli.engine.counting.counted_rows import LARGEST_COUNT, CountedRows, CountsLayout, CountsPart, RequestedSets
from bncli.engine.data.schema import Cuts
from bncli.files.artifacts.archive import COUNTS, FLOATS, INTEGERS, npy_array, npy_bytes, npy_header, open_archive, pack
from bncli.files.artifacts.cuts import VERSION as CUTS_VERSION
from bncli.files.artifacts.cuts import cuts_json, parse_cuts
from bncli.files.atomic import write_bytes
from bncli.files.json_documents import Node, parse_json

VERSION = 1
_DESCRIPTION, _TABLES = "counts.json", "tables.npy"
_PAIRS = "pairs"


def write_counts(path: str, counts: CountedRows) -> None:
    write_bytes(path, dump_counts(counts))


def dump_counts(counts: CountedRows) -> bytes:
    """Return the bytes of the counts file; equal counts give equal bytes."""
    text = json.dumps(counts_json(counts), sort_keys=True, ensure_ascii=False, allow_nan=False)
    return pack([(_DESCRIPTION, f"{text}\n".encode()), (_TABLES, npy_bytes(counts.numbers))])


def counts_json(counts: CountedRows) -> dict[str, Any]:
    """Return the content of `counts.json`."""
    return {
        "format": "bncli-counts",
        "version": VERSION,
        "labels": list(counts.labels),
        "rows": counts.n_rows,
        "missing": list(counts.n_missing),
        "cuts": cuts_json(counts.cuts),
        "missing_tokens": None if counts.missing_tokens is None else list(counts.missing_tokens),
        "tables": tables_json(counts),
        "decayed": counts.is_decayed,
        "parts": [
            {"fingerprint": part.fingerprint, "rows": part.n_rows}
            | ({} if part.weight == 1 else {"weight": part.weight})
            for part in counts.parts
        ],
    }


def tables_json(counts: CountedRows) -> str | list[list[str]]:
    """Return the sets of attributes that were counted, as lists of names, or "pairs"."""
    if counts.requested is None:
        return _PAIRS
    return [[counts.cuts.attributes[i].name for i in attributes] for attributes in counts.requested]


def counts_summary(counts: CountedRows) -> dict[str, Any]:
    """Return the class, the labels and the main statistics of the counts for a report."""
    weight = counts.class_counts.sum().item()
    return {
        "class": counts.cuts.class_name,
        "labels": list(counts.labels),
        "rows": counts.n_rows,
        "weight": float(weight),
        "attributes": len(counts.cuts.attributes),
        "missing": sum(counts.n_missing),
        "tables": tables_json(counts),
        "entries": len(counts.numbers),
        "parts": len(counts.parts),
        "decayed": counts.is_decayed,
    }


def read_counts(path: str) -> CountedRows:
    """Load counts from a file.

    Raises BncliError if the file is damaged, not a counts file, or written by a newer bncli.
    """
    with open_archive(path, COUNTS) as archive:
        if archive.names != [_DESCRIPTION, _TABLES]:
            archive.fail(f"its members are not {_DESCRIPTION} and {_TABLES}")
        document = parse_json(archive.read(_DESCRIPTION), f"{path}, {_DESCRIPTION}")
        document.check_format("counts", VERSION)
        keys = ("labels", "rows", "missing", "cuts", "missing_tokens", "tables", "decayed", "parts")
        fields = document.fields(("format", "version", *keys))
        fields["cuts"].check_format("cuts", CUTS_VERSION)
        cuts, labels = parse_cuts(fields["cuts"]), fields["labels"].texts()
        attribute_sets = _read_attribute_sets(fields["tables"], cuts)
        layout = CountsLayout(tuple(a.cardinality for a in cuts.attributes), len(labels), attribute_sets)
        # Check the size before any number is read, then the numbers, then that all tables count the same rows.
        decayed = fields["decayed"].flag()
        descr = FLOATS if decayed else INTEGERS
        shape = (layout.n_entries,)
        if archive.size(_TABLES) != len(npy_header(shape, descr)) + 8 * shape[0]:
            archive.fail(f"{_TABLES} does not have the size that its cuts, labels and tables require")
        numbers = npy_array(archive.read(_TABLES), shape, descr)
        if numbers is None or not np.isfinite(numbers).all() or (numbers < 0).any():
            archive.fail(f"{_TABLES} does not consist of {'numbers' if decayed else 'whole numbers'} of at least 0")
        class_counts = layout.table(numbers, ())
        if sum(map(float, class_counts.tolist())) > LARGEST_COUNT:
            archive.fail(f"it counts more than {LARGEST_COUNT:,} rows")
        tolerance = 1e-9 * (1 + float(class_counts.sum())) if decayed else 0
        for attributes in layout.sets:
            table = layout.table(numbers, attributes)
            if (np.abs(table.sum(axis=tuple(range(len(attributes)))) - class_counts) > tolerance).any():
                archive.fail("its tables were not counted from the same rows")
        tokens = fields["missing_tokens"]
        node, n_missing = fields["missing"], tuple(item.integer(0) for item in fields["missing"].items())
        if len(n_missing) != len(cuts.attributes):
            node.fail(f"{len(n_missing)} numbers for {len(cuts.attributes)} attributes")
        for n, attribute in zip(n_missing, cuts.attributes, strict=True):
            if n and not attribute.missing:
                node.fail(f"'{attribute.name}' has missing values but no code for them")
        parts = []
        for item in fields["parts"].items():
            part = item.fields(("fingerprint", "rows"), ("weight",))
            fingerprint = part["fingerprint"].text()
            if not re.fullmatch("[0-9a-f]{64}", fingerprint):
                part["fingerprint"].fail("a fingerprint must have 64 hexadecimal digits")
            weight = part["weight"].number() if "weight" in part else 1.0
            if not 0 <= weight <= 1:  # 0 is possible: repeated decay underflows
                part["weight"].fail("the weight of a part must be between 0 and 1")
            parts.append(CountsPart(fingerprint, part["rows"].integer(0), weight))
        return CountedRows(
            cuts,
            labels,
            attribute_sets,
            fields["rows"].integer(0),
            n_missing,
            numbers,
            None if tokens.value is None else tokens.texts(),
            tuple(parts),
        )


def _read_attribute_sets(node: Node, cuts: Cuts) -> RequestedSets:
    """Parse the sets of attributes that were counted, as tuples of indices; return None for all pairs."""
    if node.value == _PAIRS:
        return None
    index = {attribute.name: i for i, attribute in enumerate(cuts.attributes)}
    attribute_sets = []
    for item in node.items():
        names = item.texts()
        for name in names:
            if name not in index:
                item.fail(f"'{name}' is not an attribute of the cuts")
        attribute_sets.append(tuple(index[name] for name in names))
    if attribute_sets != sorted(set(attribute_sets)) or any(list(s) != sorted(s) for s in attribute_sets):
        node.fail("the tables must be in the order of the attributes, each exactly once")
    return tuple(attribute_sets)
