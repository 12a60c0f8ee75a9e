"""The structure file: what depends on what. `learn-structure` writes it, `--structure FILE` reads it.

    {"format": "bncli-structure", "version": 1, "class": "diagnosis", "method": "tan", "options": {},
     "parents": {"age": ["diagnosis"], "pulse": ["diagnosis", "age"]}}

A key is a column, its list holds the columns it depends on; the class may have parents of its own, and an attribute
need not have the class as a parent. Columns that are not named are not used. `method`, `options` and `arcs` (see
`bncli.files.exports.structure_json`) may be left out.
In place of `parents` there may be `regions`, lists of attributes that are looked up together with the class, as
Kikuchi-Bayes has them:

     "regions": [["age"], ["pulse"], ["age", "pulse"]]

with what the search says of every step, where there was one (see `bncli.files.exports.structure_json`).

The structure of a network that other programs wrote (the formats of EXPORTS that can be read: BIF, XMLBIF, DOT) is read
as well; the content tells which it is, not the name of the file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bncli.engine.structures.named_structure import NamedStructure
from bncli.errors import BncliError
from bncli.files.artifacts.recognition import HEAD, FileKind, recognise
from bncli.files.atomic import write_bytes
from bncli.files.exports import EXPORTS, NetworkFormat, export_format, export_formats
from bncli.files.exports.structure_json import dump_structure, parse_structure
from bncli.files.paths import cannot_read


def read_structure(path: str) -> NamedStructure:
    """Return the structure in a file, checked for itself; its `resolve` checks it against a schema."""
    try:
        with open(path, "rb") as file:
            head = file.read(HEAD)
            found = recognise(head)
            reader = _reader(found)
            if reader is None:
                what = f"this is {found.description}, not a structure file"
                raise BncliError(
                    what, where=path, hint=f"learn-structure writes one; {_foreign_formats()} are read too"
                )
            data = head + file.read()
    except OSError as error:
        raise cannot_read(path, error) from error
    return replace(reader(data, path), where=path)


def _reader(found: FileKind) -> Callable[[bytes, str], NamedStructure] | None:
    """Return what reads a file of this kind; None where it holds no structure."""
    if found.kind in ("structure", "json"):
        return parse_structure
    form = export_format(found.kind) if found.kind in EXPORTS else None
    if isinstance(form, NetworkFormat):
        read = form.read
        return None if read is None else lambda data, path: read(data, path).dag
    return form.read if form is not None else None


def _foreign_formats() -> str:
    """Return the formats of other programs that are read: BIF, XMLBIF and DOT."""
    names = [form.word.upper() for form in export_formats() if form.read is not None and form.signature is not None]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def write_structure(path: str, structure: NamedStructure) -> None:
    """Write the structure file."""
    write_bytes(path, dump_structure(structure).encode())
