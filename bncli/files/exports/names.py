"""A network as a file format writes it, and the way back: legal names, and the originals in properties.

Formats for networks know neither which node is the class nor how the structure was learnt, and not all hold every
name. What they lack goes into properties, which other programs skip (`NAME = VALUE`, values percent-encoded):

    of the network    bncli_name, bncli_method, bncli_options (a JSON object)
    of a node         bncli_role = class, bncli_name, bncli_states (one after the other, with blanks between)

Each is written only where there is something to keep. `restore_names(escape_names(network, ...))` is the network.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from bncli.engine.kernels.arrays import Array
from bncli.engine.networks.named_network import NamedNetwork, Node
from bncli.errors import BncliError
from bncli.files.documents import parse_json
from bncli.files.exports.legal_names import Legal, decoded, distinct, encoded


class EscapedNode(NamedTuple):
    """A node by the names in the file; probabilities[state of parent 1, ..., own state]."""

    name: str
    states: tuple[str, ...]
    parents: tuple[str, ...]
    probabilities: Array
    properties: Mapping[str, str]


class EscapedNetwork(NamedTuple):
    """A network by the names in the file."""

    name: str
    nodes: tuple[EscapedNode, ...]
    properties: Mapping[str, str]


class NameRules(NamedTuple):
    """What a format can hold; names that are the same after `fold` are the same to its readers."""

    network: Legal
    name: Legal
    state: Legal
    fold: Callable[[str], str]


def escape_names(network: NamedNetwork, rules: NameRules) -> EscapedNetwork:
    """Return the network by legal names, with everything that `restore_names` needs."""
    names = [node.name for node in network.nodes]
    legal = dict(zip(names, distinct(names, rules.name, rules.fold), strict=True))
    nodes = tuple(_escape_node(node, legal, network.class_name, rules) for node in network.nodes)
    name = rules.network(network.name)
    return EscapedNetwork(name, nodes, _named(name, network.name) | origin_marks(network.method, network.options))


def _escape_node(node: Node, legal: Mapping[str, str], class_name: str | None, rules: NameRules) -> EscapedNode:
    states = distinct(node.states, rules.state)
    properties = {"bncli_role": "class"} if node.name == class_name else {}
    properties |= _named(legal[node.name], node.name)
    if states != node.states:
        properties["bncli_states"] = " ".join(encoded(state) for state in node.states)
    parents = tuple(legal[parent] for parent in node.parents)
    return EscapedNode(legal[node.name], states, parents, node.probabilities, properties)


def _named(written: str, name: str) -> dict[str, str]:
    return {} if written == name else {"bncli_name": encoded(name)}


def origin_marks(method: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Return a structure's method and options as properties; none for the method `file` without options."""
    marks = {} if method == "file" else {"bncli_method": encoded(method)}
    if options:
        text = json.dumps(dict(sorted(options.items())), ensure_ascii=False, separators=(",", ":"))
        marks["bncli_options"] = encoded(text)
    return marks


def restore_names(escaped: EscapedNetwork, where: str) -> NamedNetwork:
    """Return the network by its own names. Whatever is wrong with it is an error that names `where`."""
    try:
        if not escaped.nodes:
            raise BncliError("the network has no variables")
        names = {node.name: original(node.properties, node.name) for node in escaped.nodes}
        method, options = origin(escaped.properties, where)
        nodes = tuple(_restore_node(node, names) for node in escaped.nodes)
        name = original(escaped.properties, escaped.name)
        marks = ((names[node.name], node.properties) for node in escaped.nodes)
        return NamedNetwork(name, class_among(marks), nodes, method, options)
    except BncliError as error:
        raise BncliError(error.what, where=error.where or where, hint=error.hint) from error


def _restore_node(node: EscapedNode, names: Mapping[str, str]) -> Node:
    states = node.states
    if "bncli_states" in node.properties:
        states = tuple(_decode(word) for word in node.properties["bncli_states"].split())
        if len(states) != len(node.states):
            what = f"'{node.name}' has {len(node.states)} states, but its property bncli_states names {len(states)}"
            raise BncliError(what, hint="leave the property out, or export again")
    parents = tuple(names.get(parent, parent) for parent in node.parents)
    return Node(names[node.name], states, parents, node.probabilities)


def _decode(text: str) -> str:
    try:
        return decoded(text)
    except ValueError as error:
        what = "a property does not hold a percent-encoded text"
        raise BncliError(what, hint="leave it out, or export again") from error


def original(properties: Mapping[str, str], name: str) -> str:
    """Return the name that the writer found, which stands as `name` in the file."""
    return _decode(properties["bncli_name"]) if "bncli_name" in properties else name


def class_among(nodes: Iterable[tuple[str, Mapping[str, str]]]) -> str | None:
    """Return the node that its properties mark as the class; None where none is marked."""
    marked = [name for name, properties in nodes if properties.get("bncli_role") == "class"]
    if len(marked) > 1:
        raise BncliError(f"both '{marked[0]}' and '{marked[1]}' are marked as the class", hint="mark one node")
    return marked[0] if marked else None


def origin(properties: Mapping[str, str], where: str) -> tuple[str, dict[str, int | float | str | bool]]:
    """Return a structure's method and options; `file` and none where the properties do not tell."""
    method = _decode(properties["bncli_method"]) if "bncli_method" in properties else "file"
    if "bncli_options" not in properties:
        return method, {}
    document = parse_json(_decode(properties["bncli_options"]).encode(), f"{where}, property bncli_options")
    return method, {name: option.scalar() for name, option in document.members().items()}


def parse_property(text: str) -> tuple[str, str]:
    """Name and value of a property; a text without `=` has no value."""
    name, _, value = text.partition("=")
    return name.strip(), value.strip()
