"""DOT, the language of Graphviz, for structures without probabilities.

    digraph "tan" { "diagnosis" [shape=doublecircle, bncli_role="class"]; "diagnosis" -> "age"; "pulse" -> "age" }
    graph { "region 1" [shape=box]; "region 1" -- "diagnosis"; "region 1" -- "age"; "region 1" -- "pulse" }

An arc runs from parent to child, and the order of the arcs is the order of a node's parents. A list of regions is
written as an undirected graph, which cannot be read back.

The whole language for directed graphs is read: chains `a -> b -> c`, groups `a -> {b c}`, subgraphs, ports, comments,
HTML labels, and attributes, of which only those of bncli have an effect.

Names are written in quotes. A name with quotes, backslashes, invisible characters, or leading, trailing or repeated
blanks is changed, and the attribute `bncli_name` holds the original, as in the other formats.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bncli.errors import BncliError
from bncli.files.exports import BLANK, NAME, Signature, StructureFormat
from bncli.files.exports.network_text import (
    Tokens,
    find_class,
    legal_names,
    origin_properties,
    original_name,
    percent_encode,
    quoted_token,
    read_origin,
    to_visible_line,
)

if TYPE_CHECKING:
    from bncli.engine.structures.named_structure import NamedDag, NamedStructure

MAX_DEPTH = 64
"""The maximum depth of nested subgraphs."""
MAX_ARCS = 2_000_000
"""The maximum number of arcs; `{a b ...} -> {c d ...}` in a short file can describe more than fit in memory."""


def dot_text(structure: NamedStructure) -> str:
    """Format a structure as DOT, to be encoded as UTF-8."""
    from bncli.engine.structures.named_structure import NamedRegions

    if isinstance(structure, NamedRegions):
        chosen = structure.chosen
        names = [structure.class_name, *dict.fromkeys(name for region in chosen for name in region)]
        legal = dict(zip(names, legal_names(names, _legal_name), strict=True))
        word = "region"
        while any(name.startswith(word) for name in legal.values()):
            word += "_"
        lines = ["graph structure {", *(_node_line(name, legal[name], structure.class_name) for name in names)]
        for number, region in enumerate(chosen, 1):
            box = f"{word} {number}"
            lines.append(f'  "{box}" [shape=box, label="", width=0.15, height=0.15];')
            lines += [f'  "{box}" -- "{legal[name]}";' for name in (structure.class_name, *region)]
        return "\n".join([*lines, "}"]) + "\n"
    nodes = dict.fromkeys(structure.parents)
    for parents in structure.parents.values():
        nodes |= dict.fromkeys(parents)
    if structure.class_name is not None:
        nodes = dict.fromkeys([structure.class_name, *nodes])
    legal = dict(zip(nodes, legal_names(list(nodes), _legal_name), strict=True))
    origin = origin_properties(structure.method, structure.options)
    lines = ["digraph structure {", *(f'  {name}="{value}";' for name, value in origin.items())]
    lines += [_node_line(name, legal[name], structure.class_name) for name in nodes]
    for child, parents in structure.parents.items():
        lines += [f'  "{legal[parent]}" -> "{legal[child]}";' for parent in parents]
    return "\n".join([*lines, "}"]) + "\n"


def _legal_name(text: str) -> str:
    return to_visible_line(re.sub(r"[\\\"]", "_", text))


def _node_line(name: str, legal: str, class_name: str | None) -> str:
    attributes = ["shape=doublecircle", 'bncli_role="class"'] if name == class_name else []
    attributes += [f'bncli_name="{percent_encode(name)}"'] if name != legal else []
    return f'  "{legal}" [{", ".join(attributes)}];' if attributes else f'  "{legal}";'


class _Graph:
    """A graph as read so far: its nodes in the order of their first mention, with parents, and all attributes.

    The parents are the keys of a dict, to keep their order. `n_arcs` counts an arc each time it is written.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, dict[str, str]] = {}
        self.parents: dict[str, dict[str, None]] = {}
        self.attributes: dict[str, str] = {}
        self.n_arcs = 0


def read_dot(data: bytes, where: str) -> NamedDag:
    """Parse a DOT file as a structure; if it is not valid, raise BncliError with `where` and any known position."""
    from bncli.engine.structures.named_structure import NamedDag
    from bncli.files.json_documents import decode_utf8

    grammar = re.compile(
        r"""(?P<skip>\s+ | //[^\n]* | /\*.*?\*/ | ^\#[^\n]*)
          | (?P<mark>->|--|[{}\[\];,=:+])
          | "(?P<quoted>(?:[^"\\]|\\.)*+)"
          | (?P<html><)
          | (?P<word>-?(?:\.\d+|\d+\.?\d*)|[^\W\d]\w*)""",
        re.VERBOSE | re.DOTALL | re.MULTILINE,
    )
    tokens = Tokens(decode_utf8(data, where), where, grammar)
    tokens.take_if("strict")
    if tokens.at("graph"):
        tokens.fail("the graph is not directed", hint="write digraph, and -> for --")
    tokens.expect("digraph")
    graph = _Graph()
    if not tokens.at("{"):
        _read_identifier(tokens)
    _read_block(tokens, graph, 0)
    if tokens.next.kind != "end":
        tokens.fail(
            f"expected the end of the file after the graph, found {quoted_token(tokens.next)}",
            hint="write one graph per file",
        )
    try:
        names = {node: original_name(attributes, node) for node, attributes in graph.nodes.items()}
        if len(set(names.values())) < len(names):
            raise BncliError(
                "two nodes have the same bncli_name", hint="remove bncli_name, or export the network again"
            )
        class_name = find_class((names[node], attributes) for node, attributes in graph.nodes.items())
        parents = {names[node]: tuple(names[parent] for parent in graph.parents[node]) for node in graph.nodes}
        method, options = read_origin(graph.attributes, where)
        return NamedDag(class_name, parents, method, options)
    except BncliError as error:
        raise BncliError(error.what, where=error.where or where, hint=error.hint) from error


def _read_identifier(tokens: Tokens) -> str:
    """Read and return a word, a number, an HTML string, or the concatenation of quoted strings joined by `+`."""
    if tokens.next.kind == "html":
        html = tokens.take_raw(re.compile(r"<[^<>]*(?:<[^<>]*>[^<>]*)*+>"))
        return html or tokens.fail("the HTML text is not closed")
    if tokens.next.kind not in ("word", "quoted"):
        tokens.fail(f"expected a name, found {quoted_token(tokens.next)}")
    first = tokens.take()
    if first.kind == "word":
        return first.text
    texts = [first.text]
    while tokens.take_if("+"):
        if tokens.next.kind != "quoted":
            tokens.fail(f"expected a string in quotes, found {quoted_token(tokens.next)}")
        texts.append(tokens.take().text)
    return "".join(texts).replace("\\\n", "").replace('\\"', '"')


def _read_block(tokens: Tokens, graph: _Graph, depth: int) -> list[str]:
    """Read statements in braces; return the nodes that they name."""
    if depth > MAX_DEPTH:
        tokens.fail(f"subgraphs are nested more than {MAX_DEPTH} deep")
    tokens.expect("{")
    nodes: dict[str, None] = {}
    while not tokens.take_if("}"):
        nodes |= dict.fromkeys(_read_statement(tokens, graph, depth))
        while tokens.take_if(";", ","):
            pass
    return list(nodes)


def _read_statement(tokens: Tokens, graph: _Graph, depth: int) -> list[str]:
    """Read a node, a chain of arcs, a subgraph or attributes; return the nodes that it names."""
    if tokens.take_if("node", "edge"):
        _read_attributes(tokens)
        return []
    if tokens.take_if("graph"):
        attributes = _read_attributes(tokens)
        graph.attributes |= attributes if depth == 0 else {}
        return []
    if tokens.at("{", "subgraph"):
        return _read_chain(tokens, graph, depth, _read_ends(tokens, graph, depth))
    name = _read_identifier(tokens)
    if tokens.take_if("="):
        value = _read_identifier(tokens)
        graph.attributes |= {name: value} if depth == 0 else {}
        return []
    nodes = _read_chain(tokens, graph, depth, [_add_node(tokens, graph, name)])
    attributes = _read_attributes(tokens)
    if nodes == [name]:
        graph.nodes[name] |= attributes
    return nodes


def _read_attributes(tokens: Tokens) -> dict[str, str]:
    """Read lists of attributes in brackets, if there are any, and return the values, keyed by name."""
    attributes: dict[str, str] = {}
    while tokens.take_if("["):
        while not tokens.take_if("]"):
            name = _read_identifier(tokens)
            attributes[name] = _read_identifier(tokens) if tokens.take_if("=") else "true"
            tokens.take_if(",", ";")
    return attributes


def _read_chain(tokens: Tokens, graph: _Graph, depth: int, tails: list[str]) -> list[str]:
    """Read the arcs that start at the nodes `tails`, if there are any; return all nodes of the chain."""
    nodes = list(tails)
    while tokens.at("->", "--"):
        if tokens.at("--"):
            tokens.fail("'--' has no direction", hint="write -> from parent to child")
        tokens.take()
        heads = _read_ends(tokens, graph, depth)
        graph.n_arcs += len(tails) * len(heads)
        if graph.n_arcs > MAX_ARCS:
            tokens.fail(f"the graph has more than {MAX_ARCS:,} arcs")
        for head in heads:
            graph.parents[head] |= dict.fromkeys(tails)
        nodes += heads
        tails = heads
    return nodes


def _read_ends(tokens: Tokens, graph: _Graph, depth: int) -> list[str]:
    """Read one end of an arc, and return its nodes: a single node, or all nodes of a subgraph."""
    if not tokens.at("{", "subgraph"):
        return [_add_node(tokens, graph, _read_identifier(tokens))]
    if tokens.take_if("subgraph") and not tokens.at("{"):
        _read_identifier(tokens)
    return _read_block(tokens, graph, depth + 1)


def _add_node(tokens: Tokens, graph: _Graph, name: str) -> str:
    """Skip the port of the node `name`, add the node if it is new, and return its name."""
    while tokens.take_if(":"):
        _read_identifier(tokens)
    graph.nodes.setdefault(name, {})
    graph.parents.setdefault(name, {})
    return name


FORMAT = StructureFormat(
    "dot",
    "the graph alone, for Graphviz",
    (".dot", ".gv"),
    dot_text,
    read_dot,
    Signature(BLANK + rb"(?:strict\s+)?(?:di)?graph\b\s*(?:" + NAME + rb")?\s*\{", "a DOT graph"),
)
