"""The edits of a model, as JSON for people and as the key `edits` of a model file.

For each edit the file keeps the record, and the arrays of the predictor that it replaced, with the probabilities of the
self-test before it, so that an edit can be taken back exactly:

    {"effect": ["age"], "action": "set", "cells": [">80"], "values": [[-0.9, 0.9]], "before": [[-1.4, 1.4]],
     "label": "yes", "temperature": 1.0, "why": "...", "by": "", "when": "", "arrays": [3], "added": false}

values, before (cells, labels) are log-odds of each label against the geometric mean of the others. The arrays are the
members edits/<edit>/<array>.npy, where array 0 is the bias, and edits/<edit>/self_test.npy. `added` is true if the
edit added a table, which is then the last one of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bncli.engine.kernels.arrays import Array
from bncli.engine.model import EDIT_ACTIONS, Edit, RefitLoss
from bncli.files.json_documents import Node

EDITS = "edits"
_KEYS = (
    "effect",
    "action",
    "cells",
    "values",
    "before",
    "label",
    "temperature",
    "why",
    "by",
    "when",
    "arrays",
    "added",
)
_REFIT = "refit"


def edit_json(edit: Edit, labels: Sequence[str]) -> dict[str, Any]:
    """Return an edit for people: log-odds by value, of the second of two labels, or of each of more labels."""

    def by_value(rows: Sequence[Sequence[float]]) -> dict[str, Any]:
        if len(labels) == 2:
            return {cell: row[1] for cell, row in zip(edit.cells, rows, strict=True)}
        return {cell: dict(zip(labels, row, strict=True)) for cell, row in zip(edit.cells, rows, strict=True)}

    refit = {} if edit.refit is None else {_REFIT: edit.refit._asdict()}
    return {
        "effect": " & ".join(edit.effect),
        "action": edit.action,
        "values": by_value(edit.values),
        "before": by_value(edit.before),
        "why": edit.why,
        "by": edit.by or None,
        "when": edit.when or None,
        **refit,
    }


def edit_record(edit: Edit) -> dict[str, Any]:
    """Return an edit as a model file stores it."""
    refit = {} if edit.refit is None else {_REFIT: edit.refit._asdict()}
    return {
        "effect": list(edit.effect),
        "action": edit.action,
        "cells": list(edit.cells),
        "values": [list(row) for row in edit.values],
        "before": [list(row) for row in edit.before],
        "label": edit.label,
        "temperature": edit.temperature,
        "why": edit.why,
        "by": edit.by,
        "when": edit.when,
        "arrays": list(edit.previous),
        "added": edit.added,
        **refit,
    }


def edit_arrays(edits: Sequence[Edit]) -> list[tuple[str, Array]]:
    """Return the members (name, array) that store the arrays and the self-test probabilities that edits replaced."""
    members = []
    for number, edit in enumerate(edits):
        members += [(f"edits/{number}/{place}.npy", array) for place, array in edit.previous.items()]
        if edit.previous_test is not None:
            members.append((f"edits/{number}/self_test.npy", edit.previous_test))
    return members


def read_edits(
    node: Node, labels: Sequence[str], n_arrays: int, test_rows: int, read: Callable[[str, int | None], Array]
) -> tuple[Edit, ...]:
    """Return the edits in a model file.

    n_arrays: number of arrays of the predictor. test_rows: number of rows of the self-test, 0 without one.
    read(name, i): the member of that name, which has the shape of array i, or of the self-test if i is None.
    """
    edits = []
    for number, item in enumerate(node.items()):
        fields = item.fields(_KEYS, (_REFIT,))
        cells = fields["cells"].texts()
        numbers = {}
        for key in ("values", "before"):
            rows = tuple(tuple(entry.number() for entry in row.items()) for row in fields[key].items())
            if len(rows) != len(cells) or any(len(row) != len(labels) for row in rows):
                fields[key].fail(f"expected {len(cells)} rows of {len(labels)} numbers")
            numbers[key] = rows
        array_numbers = [entry.integer(0) for entry in fields["arrays"].items()]
        if sorted(set(array_numbers)) != array_numbers or any(place >= n_arrays for place in array_numbers):
            fields["arrays"].fail(f"the arrays must be whole numbers below {n_arrays}, in increasing order")
        label = None if fields["label"].value is None else fields["label"].text()
        if label is not None and label not in labels:
            fields["label"].fail(f"the class has no label {label!r}")
        temperature = fields["temperature"].number()
        if temperature <= 0:
            fields["temperature"].fail("a temperature must be above 0")
        refit = None
        if _REFIT in fields:
            losses = fields[_REFIT].fields(RefitLoss._fields)
            refit = RefitLoss(
                losses["rows"].integer(1), losses["log_loss"].number(), losses["log_loss_before"].number()
            )
        edits.append(
            Edit(
                effect=fields["effect"].texts(),
                action=fields["action"].choice(EDIT_ACTIONS),
                label=label,
                cells=cells,
                values=numbers["values"],
                before=numbers["before"],
                temperature=temperature,
                why=fields["why"].text(),
                by=fields["by"].text(),
                when=fields["when"].text(),
                refit=refit,
                previous={place: read(f"edits/{number}/{place}.npy", place) for place in array_numbers},
                previous_test=read(f"edits/{number}/self_test.npy", None) if test_rows else None,
                added=fields["added"].flag(),
            )
        )
    return tuple(edits)
