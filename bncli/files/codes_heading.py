"""What a `.codes` file says of its rows before the first of them: as JSON under one key of the Arrow schema.

    {"format": "bncli-codes", "version": 1, "rows": 1000, "cuts": {the content of a cuts file}, "labels": ["no", "yes"],
     "missing": ["age"], "missing_tokens": null, "weights": null, "sampled_rows": null,
     "sources": {"files": 2, "bytes": 51200, "sha256": "..."}}

`missing` names the attributes with missing values, whose code is the number of values; `weights` is the column of
row weights; `sampled_rows` says of how many rows the cuts were learnt, null: of all.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from bncli.engine.data.dataset import code_dtype
from bncli.engine.data.schema import Cuts
from bncli.files.cuts import cuts_json, cuts_of_document
from bncli.files.documents import Node, parse

VERSION = 1
KEY = b"bncli"
PROOF = b"bncli.crc32"
"""The key of the CRC-32 of the heading."""
MARK = b'"format": "bncli-codes"'
"""Stands in every heading: by it a file is told from other Arrow files."""
_EDGE = 1 << 20


@dataclass(frozen=True)
class Fingerprint:
    """What was read: the number of files, their bytes together, and a digest of sizes, first and last megabytes."""

    files: int
    n_bytes: int
    sha256: str

    @staticmethod
    def of(paths: Sequence[str]) -> Fingerprint:
        """Of regular files, in this order; names and times play no part. OSError where one cannot be read."""
        digest, total = hashlib.sha256(), 0
        for path in paths:
            with open(path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                digest.update(f"{size}\n".encode() + file.read(_EDGE))
                file.seek(max(size - _EDGE, 0))
                digest.update(file.read(_EDGE))
            total += size
        return Fingerprint(len(paths), total, digest.hexdigest())


@dataclass(frozen=True)
class Heading:
    """What is known of coded rows; attributes of `cuts` have no frequencies."""

    cuts: Cuts
    labels: tuple[str, ...]
    rows: int
    missing: tuple[str, ...] = ()
    missing_tokens: tuple[str, ...] | None = None
    weights: str | None = None
    sources: Fingerprint | None = None

    @property
    def columns(self) -> list[tuple[str, str, int]]:
        """Name, Arrow type and number of codes of every column, in the file's order; of weights 0."""
        coded = [(a.name, a.n_values + (a.name in self.missing)) for a in self.cuts.attributes]
        coded.append((self.cuts.class_name, len(self.labels)))
        found = [(name, code_dtype(n).name, n) for name, n in coded]
        return found if self.weights is None else [*found, (self.weights, "float64", 0)]

    def dump(self) -> bytes:
        """The text that `read_heading` reads."""
        sources = self.sources
        content: dict[str, Any] = {
            "format": "bncli-codes",
            "version": VERSION,
            "rows": self.rows,
            "cuts": cuts_json(replace(self.cuts, sampled_rows=None)),
            "labels": list(self.labels),
            "missing": list(self.missing),
            "missing_tokens": None if self.missing_tokens is None else list(self.missing_tokens),
            "weights": self.weights,
            "sampled_rows": self.cuts.sampled_rows,
            "sources": None
            if sources is None
            else {"files": sources.files, "bytes": sources.n_bytes, "sha256": sources.sha256},
        }
        return json.dumps(content, ensure_ascii=False, allow_nan=False).encode()


_ABOUT_ROWS = ("labels", "missing", "missing_tokens", "weights", "sampled_rows", "sources")
_FIELDS = ("format", "version", "rows", "cuts", *_ABOUT_ROWS)


def read_heading(text: bytes, path: str) -> Heading:
    """The heading, checked; BncliError for a newer version or what is not well made."""
    document = parse(text, f"{path}, heading")
    document.check_format("codes", VERSION)
    fields = document.fields(_FIELDS)
    cuts = cuts_of_document(fields["cuts"])
    labels = fields["labels"].texts()
    if len(labels) < 2:
        fields["labels"].fail("a class has two labels or more")
    missing = fields["missing"].texts()
    for name in missing:
        if name not in {attribute.name for attribute in cuts.attributes}:
            fields["missing"].fail(f"there is no attribute '{name}'")
    weights = None if fields["weights"].value is None else fields["weights"].text()
    if weights is not None and weights in {cuts.class_name, *(attribute.name for attribute in cuts.attributes)}:
        fields["weights"].fail(f"the name '{weights}' is given twice")
    tokens = None if fields["missing_tokens"].value is None else fields["missing_tokens"].texts()
    sampled = None if fields["sampled_rows"].value is None else fields["sampled_rows"].integer(1)
    rows = fields["rows"].integer(1)
    cuts = replace(cuts, sampled_rows=sampled)
    return Heading(cuts, labels, rows, missing, tokens, weights, _read_sources(fields["sources"]))


def _read_sources(node: Node) -> Fingerprint | None:
    if node.value is None:
        return None
    fields = node.fields(("files", "bytes", "sha256"))
    return Fingerprint(fields["files"].integer(1), fields["bytes"].integer(0), fields["sha256"].text())
