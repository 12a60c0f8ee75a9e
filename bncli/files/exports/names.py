"""A network as a file format writes it, and the way back: legal names, and the originals in properties.

Formats for networks know neither which node is the class nor how the structure was learnt, and not all hold every
name. What they lack goes into properties, which other programs skip (`NAME = VALUE`, values percent-encoded):

    of the network    bncli_name, bncli_method, bncli_options (a JSON object)
    of a node         bncli_role = class, bncli_name, bncli_states (one after the other, with blanks between)

Each is written only where there is something to keep. `restore_names(escape_names(network, ...))` is the network.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from bncli.engine.kernels.arrays import Array
from bncli.engine.networks.named_network import NamedNetwork, Node
from bncli.errors import BncliError
from bncli.files.documents import parse

# Names in place of those that a file format cannot hold, and a plain writing for the ones that were replaced.
#
# `distinct` gives every text a legal one, no two the same: what is legal keeps its text, whatever stands before it in
# the list; the others are changed as little as the format asks, and numbered where they would collide. `encoded` writes
# any text with letters, digits and `%_.-~` alone, so that a property can keep it through every parser.


Legal = Callable[[str], str]
"""A text that the format can hold in place of any text; a text that it can hold is its own."""


def distinct(texts: Sequence[str], legal: Legal, fold: Callable[[str], str] = str) -> tuple[str, ...]:
    """Legal texts for distinct `texts`, in their order, all distinct after `fold`."""
    kept: dict[str, str] = {}
    for text in texts:
        if legal(text) == text:
            kept.setdefault(fold(text), text)
    chosen = {text: text for text in kept.values()}
    taken = set(kept)
    numbers: dict[str, int] = {}
    for text in texts:
        if text not in chosen:
            chosen[text] = _numbered(legal(text), taken, numbers, fold)
    return tuple(chosen[text] for text in texts)


def _numbered(text: str, taken: set[str], numbers: dict[str, int], fold: Callable[[str], str]) -> str:
    """`text`, or `text_2`, `text_3`, ...: the first that is not taken, which then is."""
    candidate = text
    while fold(candidate) in taken:
        numbers[text] = numbers.get(text, 1) + 1
        candidate = f"{text}_{numbers[text]}"
    taken.add(fold(candidate))
    return candidate


def identifier(text: str) -> str:
    """ASCII letters, digits and underscores, the first no digit: accents dropped, `(-1, 2.5]` as `minus_1_2_5`."""
    if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", text):
        return text
    signed = re.sub(r"(?<![\w.])-(?=[\d.]|inf)", "minus_", text)
    plain = unicodedata.normalize("NFKD", signed)
    ascii_only = "".join(c if c.isascii() else "" if unicodedata.combining(c) else "_" for c in plain)
    word = re.sub("[^A-Za-z0-9]+", "_", ascii_only).strip("_")
    return word if word[:1].isalpha() else f"_{word}"


def printed(text: str) -> str:
    """One line of visible text with single blanks inside, in which everything else has become `_`."""
    if text and text.isprintable() and text == " ".join(text.split()):
        return text
    visible = "".join(c if c.isprintable() else " " if c.isspace() else "_" for c in text)
    return " ".join(visible.split()) or "_"


def encoded(text: str) -> str:
    """The text in percent-encoding (RFC 3986); the empty one as `%`, which no other text is written as.

    The words by which simple parsers of BIF find their way are broken up.
    """
    from urllib.parse import quote

    written = quote(text, safe="") or "%"
    return re.sub("(v)(?=ariable)|(p)(?=roper|robab)", lambda found: f"%{ord(found[0]):x}", written)


def decoded(text: str) -> str:
    """What `encoded` was given. Raises ValueError for bytes that are not UTF-8."""
    from urllib.parse import unquote

    return "" if text == "%" else unquote(text, errors="strict")


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
    """The network by legal names, with everything that `restore_names` needs."""
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
    """A structure's method and options as properties; none for the method `file` without options."""
    marks = {} if method == "file" else {"bncli_method": encoded(method)}
    if options:
        text = json.dumps(dict(sorted(options.items())), ensure_ascii=False, separators=(",", ":"))
        marks["bncli_options"] = encoded(text)
    return marks


def restore_names(escaped: EscapedNetwork, where: str) -> NamedNetwork:
    """The network by its own names. Whatever is wrong with it is an error that names `where`."""
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


def original(properties: Mapping[str, str], name: str) -> str:
    """The name that the writer found, which stands as `name` in the file."""
    return _decode(properties["bncli_name"]) if "bncli_name" in properties else name


def class_among(nodes: Iterable[tuple[str, Mapping[str, str]]]) -> str | None:
    """The node that its properties mark as the class; None where none is marked."""
    marked = [name for name, properties in nodes if properties.get("bncli_role") == "class"]
    if len(marked) > 1:
        raise BncliError(f"both '{marked[0]}' and '{marked[1]}' are marked as the class", hint="mark one node")
    return marked[0] if marked else None


def origin(properties: Mapping[str, str], where: str) -> tuple[str, dict[str, int | float | str | bool]]:
    """A structure's method and options; `file` and none where the properties do not tell."""
    method = _decode(properties["bncli_method"]) if "bncli_method" in properties else "file"
    if "bncli_options" not in properties:
        return method, {}
    document = parse(_decode(properties["bncli_options"]).encode(), f"{where}, property bncli_options")
    return method, {name: option.scalar() for name, option in document.members().items()}


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


def parse_property(text: str) -> tuple[str, str]:
    """Name and value of a property; a text without `=` has no value."""
    name, _, value = text.partition("=")
    return name.strip(), value.strip()
