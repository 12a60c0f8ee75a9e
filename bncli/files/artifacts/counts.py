"""The counts file `.counts`: contingency tables of attributes with the class, which can be added up without the rows.

It is a ZIP archive of `counts.json` (sorted keys) and `tables.npy`, all tables one after the other as one array, int64
(float64 after a merge with a decay); its comment is a checksum (see `archive.py`). So `unzip -p x.counts counts.json`
shows what it is, and numpy.load reads the array.

    {"format": "bncli-counts", "version": 1, "labels": ["no", "yes"], "rows": 683, "missing": [0, 16],
     "cuts": {the content of a cuts file}, "missing_tokens": null, "tables": "pairs",
     "parts": [{"fingerprint": "9f86d0...", "rows": 683}]}

`tables` is "pairs", or a list of lists of attributes: what was counted with the class beside each attribute alone. The
tables come in the order of `bncli.engine.counting.counted_rows`; each has an axis for every attribute, its codes in the
order of the cuts (the last for missing values where the attribute has `missing`), and a last one for the labels.
`missing` counts the rows in which each attribute is missing. A part that counts for less has a `weight`.

Conventions: equal content is equal bytes, on any machine. The size of the array is compared with what `counts.json`
declares before it is read; every table must be of the same rows.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from bncli.engine.counting.counted_rows import MOST, CountedRows, CountsLayout, CountsPart, Wanted
from bncli.engine.data.schema import Cuts
from bncli.files.artifacts.archive import (
    COUNTS,
    FLOATS,
    INTEGERS,
    npy_array,
    npy_bytes,
    npy_header,
    open_archive,
    pack,
)
from bncli.files.artifacts.cuts import VERSION as CUTS_VERSION
from bncli.files.artifacts.cuts import cuts_json, cuts_of_document
from bncli.files.atomic import write_bytes
from bncli.files.documents import Node, parse_json

VERSION = 1
_DESCRIPTION, _TABLES = "counts.json", "tables.npy"
_PAIRS = "pairs"


def write_counts(path: str, counted: CountedRows) -> None:
    """Write the counts file, whole or not at all."""
    write_bytes(path, dump_counts(counted))


def read_counts(path: str) -> CountedRows:
    """Return the counts in a file, checked; BncliError if it is damaged, newer than this bncli, or no counts file."""
    with open_archive(path, COUNTS) as archive:
        if archive.names != [_DESCRIPTION, _TABLES]:
            archive.fail(f"its members are not {_DESCRIPTION} and {_TABLES}")
        document = parse_json(archive.read(_DESCRIPTION), f"{path}, {_DESCRIPTION}")
        document.check_format("counts", VERSION)
        keys = ("labels", "rows", "missing", "cuts", "missing_tokens", "tables", "decayed", "parts")
        fields = document.fields(("format", "version", *keys))
        fields["cuts"].check_format("cuts", CUTS_VERSION)
        cuts, labels = cuts_of_document(fields["cuts"]), fields["labels"].texts()
        wanted = _read_wanted(fields["tables"], cuts)
        layout = CountsLayout(tuple(a.cardinality for a in cuts.attributes), len(labels), wanted)
        # No byte is read before the size is right; then every table is checked to be of the same rows.
        decayed = fields["decayed"].flag()
        descr = FLOATS if decayed else INTEGERS
        shape = (layout.n_entries,)
        if archive.size(_TABLES) != len(npy_header(shape, descr)) + 8 * shape[0]:
            archive.fail(f"{_TABLES} has not the size that its cuts, labels and tables ask for")
        numbers = npy_array(archive.read(_TABLES), shape, descr)
        if numbers is None or not np.isfinite(numbers).all() or (numbers < 0).any():
            archive.fail(f"{_TABLES} does not hold {'numbers' if decayed else 'whole numbers'} of at least 0")
        classes = layout.table(numbers, ())
        if sum(map(float, classes.tolist())) > MOST:
            archive.fail(f"it counts more than {MOST:,} rows")
        tolerance = 1e-9 * (1 + float(classes.sum())) if decayed else 0
        for s in layout.sets:
            table = layout.table(numbers, s)
            if (np.abs(table.sum(axis=tuple(range(len(s)))) - classes) > tolerance).any():
                archive.fail("its tables are not of the same rows")
        tokens = fields["missing_tokens"]
        return CountedRows(
            cuts,
            labels,
            wanted,
            fields["rows"].integer(0),
            _read_missing(fields["missing"], cuts),
            numbers,
            None if tokens.value is None else tokens.texts(),
            tuple(_read_part(item) for item in fields["parts"].items()),
        )


def _read_wanted(node: Node, cuts: Cuts) -> Wanted:
    if node.value == _PAIRS:
        return None
    index = {attribute.name: i for i, attribute in enumerate(cuts.attributes)}
    wanted = []
    for item in node.items():
        names = item.texts()
        for name in names:
            if name not in index:
                item.fail(f"'{name}' is no attribute of the cuts")
        wanted.append(tuple(index[name] for name in names))
    if wanted != sorted(set(wanted)) or any(list(s) != sorted(s) for s in wanted):
        node.fail("the tables are not in the order of the attributes, each once")
    return tuple(wanted)


def _read_missing(node: Node, cuts: Cuts) -> tuple[int, ...]:
    counted = tuple(item.integer(0) for item in node.items())
    if len(counted) != len(cuts.attributes):
        node.fail(f"{len(counted)} numbers for {len(cuts.attributes)} attributes")
    for n, attribute in zip(counted, cuts.attributes, strict=True):
        if n and not attribute.missing:
            node.fail(f"'{attribute.name}' has missing values and no code for them")
    return counted


def _read_part(node: Node) -> CountsPart:
    fields = node.fields(("fingerprint", "rows"), ("weight",))
    fingerprint = fields["fingerprint"].text()
    if not re.fullmatch("[0-9a-f]{64}", fingerprint):
        fields["fingerprint"].fail("a fingerprint has 64 hexadecimal digits")
    weight = fields["weight"].number() if "weight" in fields else 1.0
    if not 0 <= weight <= 1:  # what has decayed often enough is 0
        fields["weight"].fail("the weight of a part is between 0 and 1")
    return CountsPart(fingerprint, fields["rows"].integer(0), weight)


def dump_counts(counted: CountedRows) -> bytes:
    """Return the bytes of the counts file; equal counts have equal bytes."""
    text = json.dumps(counts_json(counted), sort_keys=True, ensure_ascii=False, allow_nan=False)
    return pack([(_DESCRIPTION, f"{text}\n".encode()), (_TABLES, npy_bytes(counted.numbers))])


def counts_json(counted: CountedRows) -> dict[str, Any]:
    """Return the content of `counts.json`."""
    return {
        "format": "bncli-counts",
        "version": VERSION,
        "labels": list(counted.labels),
        "rows": counted.n_rows,
        "missing": list(counted.n_missing),
        "cuts": cuts_json(counted.cuts),
        "missing_tokens": None if counted.missing_tokens is None else list(counted.missing_tokens),
        "tables": tables_json(counted),
        "decayed": counted.is_decayed,
        "parts": [_part_json(part) for part in counted.parts],
    }


def _part_json(part: CountsPart) -> dict[str, Any]:
    weight = {} if part.weight == 1 else {"weight": part.weight}
    return {"fingerprint": part.fingerprint, "rows": part.n_rows} | weight


def tables_json(counted: CountedRows) -> str | list[list[str]]:
    """Return which tables were asked for, by the names of their attributes."""
    if counted.wanted is None:
        return _PAIRS
    return [[counted.cuts.attributes[i].name for i in s] for s in counted.wanted]


def figures(counted: CountedRows) -> dict[str, Any]:
    """Return what counts are of, in a few numbers."""
    weight = counted.class_counts.sum().item()
    return {
        "class": counted.cuts.class_name,
        "labels": list(counted.labels),
        "rows": counted.n_rows,
        "weight": float(weight),
        "attributes": len(counted.cuts.attributes),
        "missing": sum(counted.n_missing),
        "tables": tables_json(counted),
        "entries": len(counted.numbers),
        "parts": len(counted.parts),
        "decayed": counted.is_decayed,
    }
