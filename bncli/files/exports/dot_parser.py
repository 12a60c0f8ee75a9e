"""The reader of DOT (`bncli.files.exports.dot`): the whole language for directed graphs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from bncli.engine.structures.named_structure import NamedDag
from bncli.errors import BncliError
from bncli.files.exports.names import class_among, origin, original
from bncli.files.exports.tokens import Tokens, describe

MAX_DEPTH = 64
"""So deep may subgraphs be nested."""
MAX_ARCS = 2_000_000
"""So many arcs may there be: `{a b ...} -> {c d ...}` says in a short file more than any memory holds."""
_GRAMMAR = re.compile(
    r"""(?P<skip>\s+ | //[^\n]* | /\*.*?\*/ | ^\#[^\n]*)
      | (?P<mark>->|--|[{}\[\];,=:+])
      | "(?P<quoted>(?:[^"\\]|\\.)*+)"
      | (?P<html><)
      | (?P<word>-?(?:\.\d+|\d+\.?\d*)|[^\W\d]\w*)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_HTML = re.compile(r"<[^<>]*(?:<[^<>]*>[^<>]*)*+>")


@dataclass
class _Graph:
    """Every node with its attributes, in the order of their first mention, and with its parents (as keys, in order).

    `arcs` counts them as written, those written twice twice.
    """

    nodes: dict[str, dict[str, str]] = field(default_factory=dict)
    parents: dict[str, dict[str, None]] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    arcs: int = 0

    def add(self, name: str) -> None:
        self.nodes.setdefault(name, {})
        self.parents.setdefault(name, {})

    def join(self, tails: list[str], head: str) -> None:
        self.parents[head] |= dict.fromkeys(tails)


def parse_dot(text: str, where: str) -> NamedDag:
    """Return the structure in a DOT text; errors name `where`, and the line and column of what is not DOT."""
    tokens = Tokens(text, where, _GRAMMAR)
    tokens.take_if("strict")
    if tokens.at("graph"):
        tokens.fail("the graph is not directed", hint="write digraph, and -> for --")
    tokens.expect("digraph")
    graph = _Graph()
    if not tokens.at("{"):
        _identifier(tokens)
    _statements(tokens, graph, 0)
    if tokens.next.kind != "end":
        tokens.fail(f"after the graph comes {describe(tokens.next)}", hint="give one graph a file")
    return _named(graph, where)


def _identifier(tokens: Tokens) -> str:
    """Return a word, a number, an HTML text, or quoted texts joined by `+`."""
    if tokens.next.kind == "html":
        return tokens.take_raw(_HTML) or tokens.fail("the HTML text does not end")
    if tokens.next.kind not in ("word", "quoted"):
        tokens.fail(f"expected a name, found {describe(tokens.next)}")
    first = tokens.take()
    if first.kind == "word":
        return first.text
    texts = [first.text]
    while tokens.take_if("+"):
        if tokens.next.kind != "quoted":
            tokens.fail(f"expected a text in quotes, found {describe(tokens.next)}")
        texts.append(tokens.take().text)
    return "".join(texts).replace("\\\n", "").replace('\\"', '"')


def _statements(tokens: Tokens, graph: _Graph, depth: int) -> list[str]:
    """Return a block in braces; the nodes that it names."""
    if depth > MAX_DEPTH:
        tokens.fail(f"subgraphs are nested more than {MAX_DEPTH} deep")
    tokens.expect("{")
    members: dict[str, None] = {}
    while not tokens.take_if("}"):
        members |= dict.fromkeys(_statement(tokens, graph, depth))
        while tokens.take_if(";", ","):
            pass
    return list(members)


def _statement(tokens: Tokens, graph: _Graph, depth: int) -> list[str]:
    """Return a node, a chain of arcs, a subgraph or attributes; the nodes that it names."""
    if tokens.take_if("node", "edge"):
        _attributes(tokens)
        return []
    if tokens.take_if("graph"):
        attributes = _attributes(tokens)
        graph.attributes |= attributes if depth == 0 else {}
        return []
    if tokens.at("{", "subgraph"):
        return _chain(tokens, graph, depth, _group(tokens, graph, depth))
    name = _identifier(tokens)
    if tokens.take_if("="):
        value = _identifier(tokens)
        graph.attributes |= {name: value} if depth == 0 else {}
        return []
    members = _chain(tokens, graph, depth, [_add(tokens, graph, name)])
    attributes = _attributes(tokens)
    if members == [name]:
        graph.nodes[name] |= attributes
    return members


def _attributes(tokens: Tokens) -> dict[str, str]:
    """List in brackets, if any."""
    found: dict[str, str] = {}
    while tokens.take_if("["):
        while not tokens.take_if("]"):
            name = _identifier(tokens)
            found[name] = _identifier(tokens) if tokens.take_if("=") else "true"
            tokens.take_if(",", ";")
    return found


def _chain(tokens: Tokens, graph: _Graph, depth: int, tails: list[str]) -> list[str]:
    """Return what follows the first end of a chain, if anything does; all nodes on it."""
    members = list(tails)
    while tokens.at("->", "--"):
        if tokens.at("--"):
            tokens.fail("'--' has no direction", hint="write -> from parent to child")
        tokens.take()
        if tokens.at("{", "subgraph"):
            heads = _group(tokens, graph, depth)
        else:
            heads = [_add(tokens, graph, _identifier(tokens))]
        graph.arcs += len(tails) * len(heads)
        if graph.arcs > MAX_ARCS:
            tokens.fail(f"the graph has more than {MAX_ARCS:,} arcs")
        for head in heads:
            graph.join(tails, head)
        members += heads
        tails = heads
    return members


def _group(tokens: Tokens, graph: _Graph, depth: int) -> list[str]:
    if tokens.take_if("subgraph") and not tokens.at("{"):
        _identifier(tokens)
    return _statements(tokens, graph, depth + 1)


def _add(tokens: Tokens, graph: _Graph, name: str) -> str:
    """Return the node `name`, whose port, if it has one, is passed over."""
    while tokens.take_if(":"):
        _identifier(tokens)
    graph.add(name)
    return name


def _named(graph: _Graph, where: str) -> NamedDag:
    """Return the structure by its own names."""
    try:
        names = {node: original(attributes, node) for node, attributes in graph.nodes.items()}
        if len(set(names.values())) < len(names):
            raise BncliError("two nodes have the same bncli_name", hint="leave these attributes out, or export again")
        class_name = class_among((names[node], attributes) for node, attributes in graph.nodes.items())
        parents = {names[node]: tuple(names[parent] for parent in graph.parents[node]) for node in graph.nodes}
        method, options = origin(graph.attributes, where)
        return NamedDag(class_name, parents, method, options)
    except BncliError as error:
        raise BncliError(error.what, where=error.where or where, hint=error.hint) from error
