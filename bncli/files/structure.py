"""The structure file: who is whose parent. `learn-structure` writes it, `--structure FILE` reads it.

    {"format": "bncli-structure", "version": 1, "class": "diagnosis", "method": "tan", "options": {},
     "parents": {"age": ["diagnosis"], "pulse": ["diagnosis", "age"]}}

A key is a column, its list holds the columns it depends on; the class may have parents of its own, and an attribute
need not have the class as a parent. Columns that are not named are not used. `method` and `options` may be left out.
"""

from __future__ import annotations

from typing import Any

from bncli.engine.structure import NamedDag
from bncli.files.atomic import write_bytes
from bncli.files.documents import dump, read_document
from bncli.files.graphs import graph_json, read_graph

VERSION = 1


def read_structure(path: str) -> NamedDag:
    """The structure in a file, checked for itself; `NamedDag.resolve` checks it against a schema."""
    return read_graph(read_document(path, "structure", VERSION), besides=("format", "version"))


def dump_structure(dag: NamedDag) -> str:
    """The text of the structure file."""
    return dump(structure_json(dag))


def structure_json(dag: NamedDag) -> dict[str, Any]:
    """The content of the structure file."""
    return {"format": "bncli-structure", "version": VERSION, **graph_json(dag)}


def write_structure(path: str, dag: NamedDag) -> None:
    """Writes the structure file."""
    write_bytes(path, dump_structure(dag).encode())
