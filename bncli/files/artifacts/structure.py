"""The structure file: which column depends on which. `learn-structure` writes it, `--structure FILE` reads it.

    {"format": "bncli-structure", "version": 1, "class": "diagnosis", "method": "tan", "options": {},
     "parents": {"age": ["diagnosis"], "pulse": ["diagnosis", "age"]}}

`parents` maps each column to the list of columns that it depends on. The class may have parents, and an attribute
need not have the class as a parent. A column that is not named is not used. In place of `parents` a file may have
`regions`, the lists of attributes that a Kikuchi-Bayes classifier looks up together with the class:

     "regions": [["age"], ["pulse"], ["age", "pulse"]]

`bncli.files.exports.structure_json` describes the optional keys. Networks written by other programs are read as well,
in any export format that has a reader (BIF, XMLBIF, DOT). The content of a file, not its name, determines its format.
"""

from __future__ import annotations

from dataclasses import replace

from bncli.engine.structures.named_structure import NamedStructure
from bncli.errors import BncliError
from bncli.files.artifacts.file_kinds import HEAD_BYTES, recognise
from bncli.files.atomic import write_bytes
from bncli.files.exports import EXPORTS, export_format, export_formats
from bncli.files.exports.structure_json import dump_structure, parse_structure
from bncli.files.paths import cannot_read


def read_structure(path: str) -> NamedStructure:
    """Load a structure from a file; `NamedStructure.resolve` checks it against a schema.

    Raises BncliError if the file cannot be read or contains no valid structure.
    """
    try:
        with open(path, "rb") as file:
            head = file.read(HEAD_BYTES)
            file_kind = recognise(head)
            form = export_format(file_kind.kind) if file_kind.kind in EXPORTS else None
            is_own = file_kind.kind in ("structure", "json")
            if not is_own and (form is None or form.read is None):
                known = [f.word.upper() for f in export_formats() if f.read is not None and f.signature is not None]
                what = f"this is {file_kind.description}, not a structure file"
                hint = f"learn-structure writes one; bncli also reads {', '.join(known[:-1])} and {known[-1]}"
                raise BncliError(what, where=path, hint=hint)
            data = head + file.read()
    except OSError as error:
        raise cannot_read(path, error) from error
    if form is None or form.read is None:
        return replace(parse_structure(data, path), where=path)
    network = form.read(data, path)
    return replace(network if isinstance(network, NamedStructure) else network.dag, where=path)


def write_structure(path: str, structure: NamedStructure) -> None:
    write_bytes(path, dump_structure(structure).encode())
