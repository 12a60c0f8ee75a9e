"""The structure file: who is whose parent. `learn-structure` writes it, `--structure FILE` reads it.

    {"format": "bncli-structure", "version": 1, "class": "diagnosis", "method": "tan", "options": {},
     "parents": {"age": ["diagnosis"], "pulse": ["diagnosis", "age"]}}

A key is a column, its list holds the columns it depends on; the class may have parents of its own, and an attribute
need not have the class as a parent. Columns that are not named are not used. `method` and `options` may be left out.

The structure of a network that other programs wrote (BIF, XMLBIF, DOT) is read as well; the content tells which it is,
not the name of the file.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bncli.engine.structure import NamedDag
from bncli.errors import BncliError
from bncli.files.atomic import write_bytes
from bncli.files.documents import decode, dump, parse
from bncli.files.graphs import graph_json, read_graph
from bncli.files.recognition import HEAD, recognise

VERSION = 1


def read_structure(path: str) -> NamedDag:
    """The structure in a file, checked for itself; `NamedDag.resolve` checks it against a schema."""
    try:
        with open(path, "rb") as file:
            head = file.read(HEAD)
            found = recognise(head)
            if found.kind not in ("structure", "json", *_READERS):
                what = f"this is {found.description}, not a structure file"
                raise BncliError(what, where=path, hint="learn-structure writes one; BIF, XMLBIF and DOT are read too")
            data = head + file.read()
    except OSError as error:
        raise BncliError(f"cannot read: {(error.strerror or str(error)).lower()}", where=path) from error
    return replace(_READERS.get(found.kind, _read_json)(data, path), where=path)


def _read_json(data: bytes, path: str) -> NamedDag:
    document = parse(data, path)
    document.check_format("structure", VERSION)
    return read_graph(document, besides=("format", "version"))


def _read_bif(data: bytes, path: str) -> NamedDag:
    from bncli.files.bif import read_bif

    return read_bif(decode(data, path), path).dag


def _read_xmlbif(data: bytes, path: str) -> NamedDag:
    from bncli.files.xmlbif import read_xmlbif

    return read_xmlbif(data, path).dag


def _read_dot(data: bytes, path: str) -> NamedDag:
    from bncli.files.dot import read_dot

    return read_dot(decode(data, path), path)


_READERS = {"bif": _read_bif, "xmlbif": _read_xmlbif, "dot": _read_dot}


def dump_structure(dag: NamedDag) -> str:
    """The text of the structure file."""
    return dump(structure_json(dag))


def structure_json(dag: NamedDag) -> dict[str, Any]:
    """The content of the structure file."""
    return {"format": "bncli-structure", "version": VERSION, **graph_json(dag)}


def write_structure(path: str, dag: NamedDag) -> None:
    """Writes the structure file."""
    write_bytes(path, dump_structure(dag).encode())
