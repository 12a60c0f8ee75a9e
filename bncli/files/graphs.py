"""A directed graph by column names as JSON, the same in structure files, models and reports."""

from __future__ import annotations

from typing import Any

from bncli.engine.structure import NamedDag
from bncli.errors import BncliError
from bncli.files.documents import Node


def graph_json(dag: NamedDag) -> dict[str, Any]:
    """Class, method, options and the parents of every column."""
    return {
        "class": dag.class_name,
        "method": dag.method,
        "options": dict(sorted(dag.options.items())),
        "parents": {child: list(parents) for child, parents in dag.parents.items()},
    }


def read_graph(node: Node, besides: tuple[str, ...] = ()) -> NamedDag:
    """The graph in an object that has the keys above and those `besides`; method and options may be left out."""
    fields = node.fields((*besides, "class", "parents"), ("method", "options"))
    method = fields["method"].text() if "method" in fields else "file"
    options = fields["options"].members() if "options" in fields else {}
    listed = fields["parents"].members()
    parents = {child: tuple(item.text() for item in names.items()) for child, names in listed.items()}
    scalars = {name: option.scalar() for name, option in options.items()}
    try:
        return NamedDag(fields["class"].text(), parents, method, scalars)
    except BncliError as error:
        node.fail(error.what, hint=error.hint)
