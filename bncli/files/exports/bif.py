"""BIF, the Interchange Format for Bayesian networks (version 0.15; Cozman 1998): a network as text.

    network asia { }
    variable lung { type discrete [ 2 ] { yes, no }; }
    probability ( lung | smoke ) { (yes) 0.1, 0.9; (no) 0.01, 0.99; }

Read are the three ways to give a table: a row per combination of the parents' states, a `default` row for those that
have none, and `table` with all numbers, where the state of the child changes slowest and that of the last parent
fastest. Commas may be left out, names may stand in double quotes, comments are those of C and C++. Written are
`table` for a node without parents, else rows; numbers with all their digits.

Conventions: what other readers (pgmpy, pyAgrum, bnlearn) trip over is not written. Names are ASCII identifiers,
states may be whole numbers too; no name is a keyword, and no two differ in case alone. The originals stand in
properties (`name_escaping`).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from bncli.files.exports import BLANK, NAME, NetworkFormat, Signature
from bncli.files.exports.legal_names import identifier

if TYPE_CHECKING:
    from bncli.engine.networks.named_network import NamedNetwork
    from bncli.files.exports.names import EscapedNode


_KEYWORDS = ("network", "variable", "probability", "property", "type", "discrete", "table", "default")


def read_bif(text: str, where: str) -> NamedNetwork:
    """Return the network in a BIF text; errors name `where`, line and column."""
    from bncli.files.exports.bif_parser import parse_bif
    from bncli.files.exports.names import restore_names

    return restore_names(parse_bif(text, where), where)


def write_bif(network: NamedNetwork) -> str:
    """Return the text of the BIF file, ASCII."""
    from bncli.files.exports.names import NameRules, escape_names

    name, nodes, properties = escape_names(network, NameRules(_network_name, _name, _state, str.lower))
    states = {node.name: node.states for node in nodes}
    lines = [f"network {name} {{", *_properties(properties), "}"]
    for node in nodes:
        lines += _variable(node)
    for node in nodes:
        lines += [f"probability ( {_heading(node)} ) {{", *_rows(node, states), "}"]
    return "\n".join(lines) + "\n"


def _network_name(text: str) -> str:
    """Free of the words by which pgmpy finds the blocks, even as parts."""
    return re.sub("(variabl|probabilit)(e|y)", r"\1_", _name(text))


def _name(text: str) -> str:
    word = identifier(text)
    if word.lower() in _KEYWORDS:
        return f"{word}_"
    # To pgmpy, `table1` in a heading is a table with the number 1.
    return re.sub("(table|default)(?=[0-9eE])", r"\1_", word)


def _state(text: str) -> str:
    if re.fullmatch("-?[0-9]+", text):
        return text
    word = identifier(text)
    return f"{word}_" if word.lower() in _KEYWORDS else word


def _properties(properties: Mapping[str, str]) -> list[str]:
    return [f"  property {name} = {value} ;" for name, value in properties.items()]


def _variable(node: EscapedNode) -> list[str]:
    kind = f"  type discrete [ {len(node.states)} ] {{ {', '.join(node.states)} }};"
    return [f"variable {node.name} {{", kind, *_properties(node.properties), "}"]


def _heading(node: EscapedNode) -> str:
    return f"{node.name} | {', '.join(node.parents)}" if node.parents else node.name


def _rows(node: EscapedNode, states: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Yield a line per combination of the parents' states."""
    rows = node.probabilities.reshape(-1, len(node.states)).tolist()
    combinations = itertools.product(*(states[parent] for parent in node.parents))
    for combination, row in zip(combinations, rows, strict=True):
        head = f"({', '.join(combination)})" if combination else "table"
        yield f"  {head} {', '.join(map(repr, row))};"


def _read(data: bytes, where: str) -> NamedNetwork:
    from bncli.files.documents import decode_utf8

    return read_bif(decode_utf8(data, where), where)


FORMAT = NetworkFormat(
    "bif",
    "the network with its probabilities, in the Bayesian Interchange Format",
    (".bif",),
    write_bif,
    _read,
    Signature(BLANK + rb"(?:network(?:\s+" + NAME + rb")?|variable\s+" + NAME + rb")\s*\{", "a BIF network"),
)
