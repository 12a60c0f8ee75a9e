"""The structure file of bncli itself (`bncli.files.structure`), whose signature is its key `format`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bncli.files.formats import StructureFormat

if TYPE_CHECKING:
    from bncli.engine.structures.named_structure import NamedStructure


def _write(structure: NamedStructure) -> str:
    from bncli.files.structure import dump_structure

    return dump_structure(structure)


def _read(data: bytes, where: str) -> NamedStructure:
    from bncli.files.structure import parse_structure

    return parse_structure(data, where)


FORMAT = StructureFormat("json", "the structure file that --structure reads", (".json",), _write, _read)
