"""DOT, the language of Graphviz: a structure as a drawing.

    digraph "tan" { "diagnosis" [shape=doublecircle, bncli_role="class"]; "diagnosis" -> "age"; "pulse" -> "age" }
    graph { "region 1" [shape=box]; "region 1" -- "diagnosis"; "region 1" -- "age"; "region 1" -- "pulse" }

An arc runs from parent to child; a node's parents are in the order in which its arcs are. Read is the whole language
for directed graphs: chains `a -> b -> c`, groups `a -> {b c}`, subgraphs, ports, attributes (skipped but for our own),
comments, HTML labels. Tables of probabilities have no place in DOT. A list of regions is drawn as an undirected graph,
which is not read back.

Conventions: names are written as they are, in quotes; those with quotes, backslashes or invisible characters are
changed, and the originals stand in the attribute `bncli_name`, as in the other formats.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bncli.files.exports import BLANK, NAME, Signature, StructureFormat
from bncli.files.exports.legal_names import distinct, encoded, printed

if TYPE_CHECKING:
    from bncli.engine.structures.named_structure import NamedDag, NamedRegions, NamedStructure


def read_dot(text: str, where: str) -> NamedDag:
    """Return the structure in a DOT text; errors name `where`, and the line and column of what is not DOT."""
    from bncli.files.exports.dot_parser import parse_dot

    return parse_dot(text, where)


def write_dot(structure: NamedStructure) -> str:
    """Return the text of the DOT file, to be stored as UTF-8: a graph, or the regions of the best step as boxes."""
    from bncli.engine.structures.named_structure import NamedDag

    return _write_graph(structure) if isinstance(structure, NamedDag) else _write_regions(structure)


def _write_graph(dag: NamedDag) -> str:
    from bncli.files.exports.names import origin_marks

    nodes = dict.fromkeys(dag.parents)
    for parents in dag.parents.values():
        nodes |= dict.fromkeys(parents)
    if dag.class_name is not None:
        nodes = dict.fromkeys([dag.class_name, *nodes])
    legal = dict(zip(nodes, distinct(list(nodes), _legal), strict=True))
    marks = [f'  {name}="{value}";' for name, value in origin_marks(dag.method, dag.options).items()]
    lines = ["digraph structure {", *marks, *(_node(name, legal[name], dag.class_name) for name in nodes)]
    for child, parents in dag.parents.items():
        lines += [f'  "{legal[parent]}" -> "{legal[child]}";' for parent in parents]
    return "\n".join([*lines, "}"]) + "\n"


def _legal(text: str) -> str:
    return printed(re.sub(r"[\\\"]", "_", text))


def _node(name: str, legal: str, class_name: str | None) -> str:
    attributes = ["shape=doublecircle", 'bncli_role="class"'] if name == class_name else []
    attributes += [f'bncli_name="{encoded(name)}"'] if name != legal else []
    return f'  "{legal}" [{", ".join(attributes)}];' if attributes else f'  "{legal}";'


def _write_regions(regions: NamedRegions) -> str:
    """Return an undirected factor graph: a box is joined to the attributes that it looks up together with the class."""
    chosen = regions.chosen
    names = [regions.class_name, *dict.fromkeys(name for region in chosen for name in region)]
    nodes = dict(zip(names, distinct(names, _legal), strict=True))
    word = "region"
    while any(name.startswith(word) for name in nodes.values()):
        word += "_"
    lines = ["graph structure {", *(_node(name, nodes[name], regions.class_name) for name in names)]
    for number, region in enumerate(chosen, 1):
        box = f"{word} {number}"
        lines.append(f'  "{box}" [shape=box, label="", width=0.15, height=0.15];')
        lines += [f'  "{box}" -- "{nodes[name]}";' for name in (regions.class_name, *region)]
    return "\n".join([*lines, "}"]) + "\n"


def _read(data: bytes, where: str) -> NamedDag:
    from bncli.files.documents import decode_utf8

    return read_dot(decode_utf8(data, where), where)


FORMAT = StructureFormat(
    "dot",
    "the graph alone, for Graphviz",
    (".dot", ".gv"),
    write_dot,
    _read,
    Signature(BLANK + rb"(?:strict\s+)?(?:di)?graph\b\s*(?:" + NAME + rb")?\s*\{", "a DOT graph"),
)
