"""The structure file: what depends on what. `learn-structure` writes it, `--structure FILE` reads it.

    {"format": "bncli-structure", "version": 1, "class": "diagnosis", "method": "tan", "options": {},
     "parents": {"age": ["diagnosis"], "pulse": ["diagnosis", "age"]}}

A key is a column, its list holds the columns it depends on; the class may have parents of its own, and an attribute
need not have the class as a parent. Columns that are not named are not used. `method` and `options` may be left out.
In place of `parents` there may be `regions`, lists of attributes that are looked up together with the class, as
Kikuchi-Bayes has them:

     "regions": [["age"], ["pulse"], ["age", "pulse"]]

with what the search says of every step, where there was one (see `graphs`).

The structure of a network that other programs wrote (BIF, XMLBIF, DOT) is read as well; the content tells which it is,
not the name of the file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from bncli.engine.structures.named_structure import NamedDag, NamedStructure
from bncli.errors import BncliError
from bncli.files.atomic import write_bytes
from bncli.files.documents import decode, dump, parse
from bncli.files.graphs import graph_json, read_graph
from bncli.files.recognition import HEAD, recognise

VERSION = 1


def read_structure(path: str) -> NamedStructure:
    """The structure in a file, checked for itself; its `resolve` checks it against a schema."""
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
    read: Callable[[bytes, str], NamedStructure] = _READERS.get(found.kind, _read_json)
    return replace(read(data, path), where=path)


def _read_json(data: bytes, path: str) -> NamedStructure:
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


_READERS: dict[str, Callable[[bytes, str], NamedDag]] = {"bif": _read_bif, "xmlbif": _read_xmlbif, "dot": _read_dot}


def dump_structure(structure: NamedStructure) -> str:
    """The text of the structure file."""
    return dump(structure_json(structure))


def structure_json(structure: NamedStructure) -> dict[str, Any]:
    """The content of the structure file."""
    return {"format": "bncli-structure", "version": VERSION, **graph_json(structure)}


def write_structure(path: str, structure: NamedStructure) -> None:
    """Writes the structure file."""
    write_bytes(path, dump_structure(structure).encode())
