"""The structure file of bncli itself, as `learn-structure` writes it (`bncli.files.artifacts.structure`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bncli.files.exports import StructureFormat

if TYPE_CHECKING:
    from bncli.engine.structures.named_structure import NamedStructure


def _write(structure: NamedStructure) -> str:
    from bncli.files.exports.structure_json import dump_structure

    return dump_structure(structure)


def _read(data: bytes, where: str) -> NamedStructure:
    from bncli.files.exports.structure_json import parse_structure

    return parse_structure(data, where)


FORMAT = StructureFormat("json", "the structure file that --structure reads", (".json",), _write, _read)
