"""How a model was fitted, as JSON: its recipe, the penalties tried by cross-validation, random starts, manual edits.

Recipe: one key per option of `fit`, read and written according to the option's kind in the catalogue.

Penalty chosen by cross-validation: `{"chosen": 3.0, "tried": [{"lambda": 10.0, "log_loss": 0.7}, ...]}`. Three keys are
present only if something else was chosen on the same held-out rows:

- `arcs`, the sets of arcs that were compared, from few arcs to many:
  `[{"arcs": "none", "n_arcs": 0, "lambda": 3.0, "log_loss": 0.6}, ...]`
- `structures`, the structures that were compared:
  `[{"structure": "tan", "lambda": 3.0, "log_loss": 0.6}, ...]`
- `shrunk`, the factor by which the log-odds of the tables were multiplied to shrink them towards the class frequencies:
  `{"factor": 0.4, "log_loss": 0.6}`

Random starts: `{"objectives": [-67.33, -67.32], "kept": 1, "best": -67.32, "spread": 0.01, "rows": "training"}`. The
usual start comes first; `kept` is the index of the best start.

Edits: for each edit the model file keeps the record below, the arrays of the predictor that the edit replaced, and the
self-test probabilities before the edit, so that it can be undone exactly:

    {"effect": ["age"], "action": "set", "cells": [">80"], "values": [[-0.9, 0.9]], "before": [[-1.4, 1.4]],
     "label": "yes", "temperature": 1.0, "why": "...", "by": "", "when": "", "arrays": [3], "added": false}

`values` and `before` (cells, labels) are log-odds of each label against the geometric mean of the others. The arrays
are the members edits/<edit>/<array>.npy, where array 0 is the bias, and edits/<edit>/self_test.npy. `added` is true if
the edit added a table, which is then the last one of the model. If the model was refitted after the edit, the record
also has `refit`: the number of rows, and the held-out log-loss after and before the edit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bncli.catalogue import DISCRETIZERS, KEYS, LEARNING, OMITTED_IF_NONE, STRUCTURES
from bncli.catalogue.choices import Choice, Option, key_of
from bncli.catalogue.option_kinds import ColumnNames, Integer, NumberChoice, Real, Switch
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import (
    ARC_SETS,
    EDIT_ACTIONS,
    ChosenPenalty,
    Edit,
    RefitLoss,
    Restarts,
    Shrinkage,
    TriedArcs,
    TriedPenalty,
    TriedStructure,
)
from bncli.files.json_documents import Node
from bncli.recipe import Recipe

_ALWAYS_PRESENT = ("discretize", "structure", "param")
"""Keys that the recipe of every version has."""
_ENTRIES: dict[str, Choice | Option] = {key_of(entry.flag): entry for entry in LEARNING}
_ROWS = ("training", "held-out")
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


def recipe_json(recipe: Recipe) -> dict[str, Any]:
    """Return the options of a recipe, keyed by name.

    Options in OMITTED_IF_NONE are left out if they are None. An option that takes floats is always written as a float,
    even if its value is an integer, so that equal recipes give equal JSON.
    """
    written: dict[str, Any] = {}
    for key, value in recipe.as_dict().items():
        if value is None and key in OMITTED_IF_NONE:
            continue
        if isinstance(value, tuple):
            written[key] = list(value)
        elif isinstance(value, int | float) and not isinstance(value, bool) and _takes_floats(key):
            written[key] = float(value)
        else:
            written[key] = value
    return written


def _takes_floats(key: str) -> bool:
    kind = getattr(_ENTRIES.get(key), "kind", None)
    return isinstance(kind, Real) or (isinstance(kind, NumberChoice) and kind.type is float)


def read_recipe(node: Node) -> Recipe:
    """Parse the recipe of a model; an option that did not exist when the model was written is None."""
    members = node.fields(_ALWAYS_PRESENT, [key for key in KEYS if key not in _ALWAYS_PRESENT])
    return Recipe.recorded(
        {
            key: None if member.value is None and key not in _ALWAYS_PRESENT else read_option(key, member)
            for key, member in members.items()
        }
    )


def read_option(key: str, node: Node) -> Any:
    """Parse the value of the option `key` according to its kind; an unknown option must be an integer."""
    entry = _ENTRIES.get(key)
    if isinstance(entry, Choice):
        word = node.text()
        if entry.method(word.split(":")[0]) is None and entry not in (DISCRETIZERS, STRUCTURES):
            node.fail(f"{word!r} is not one of {', '.join(map(repr, entry.words))}")
        return word
    kind = Integer() if entry is None else entry.kind
    value: Any
    if isinstance(kind, Real | Integer) and node.value in kind.words:
        value = node.value
    elif _takes_floats(key):
        value = node.number()
    elif isinstance(kind, Integer | NumberChoice):
        value = node.integer()
    elif isinstance(kind, ColumnNames):
        value = node.texts()
    else:
        value = node.flag() if isinstance(kind, Switch) else node.text()
    try:
        kind.parse(value)
    except ValueError as error:
        node.fail(str(error))
    return value


def penalty_json(penalty: ChosenPenalty) -> dict[str, Any]:
    """Return the chosen penalty, and every alternative that was compared on the held-out rows, in the order tried."""
    arcs = {"arcs": arcs_json(penalty)} if penalty.arcs else {}
    shrunk = {} if penalty.shrinkage is None else {"shrunk": shrinkage_json(penalty)}
    structures = {"structures": structures_json(penalty)} if penalty.structures else {}
    return {"chosen": penalty.penalty, "tried": tried_json(penalty), **arcs, **structures, **shrunk}


def tried_json(penalty: ChosenPenalty) -> list[dict[str, float]]:
    """Return each penalty tried with its held-out log-loss in nats per row."""
    return [{"lambda": trial.penalty, "log_loss": trial.log_loss} for trial in penalty.tried]


def arcs_json(penalty: ChosenPenalty | None) -> list[dict[str, Any]]:
    """Return the sets of arcs that were compared on held-out rows; the list is empty if none were compared."""
    arcs = () if penalty is None else penalty.arcs
    return [{"arcs": a.arcs, "n_arcs": a.n_arcs, "lambda": a.penalty, "log_loss": a.log_loss} for a in arcs]


def structures_json(penalty: ChosenPenalty | None) -> list[dict[str, Any]]:
    """Return the structures that were compared on held-out rows; the list is empty if none were compared."""
    structures = () if penalty is None else penalty.structures
    return [{"structure": s.structure, "lambda": s.penalty, "log_loss": s.log_loss} for s in structures]


def shrinkage_json(penalty: ChosenPenalty | None) -> dict[str, float] | None:
    """Return the shrinkage factor and its held-out log-loss, or None if the tables were not shrunk."""
    return None if penalty is None or penalty.shrinkage is None else penalty.shrinkage._asdict()


def read_penalty(node: Node) -> ChosenPenalty:
    """Parse a chosen penalty written by `penalty_json`."""
    fields = node.fields(("chosen", "tried"), ("arcs", "structures", "shrunk"))
    tried = []
    for item in fields["tried"].items():
        trial = item.fields(("lambda", "log_loss"))
        tried.append(TriedPenalty(_positive_penalty(trial["lambda"]), trial["log_loss"].number()))
    arcs = []
    for item in fields["arcs"].items() if "arcs" in fields else []:
        choice = item.fields(("arcs", "n_arcs", "lambda", "log_loss"))
        log_loss = choice["log_loss"].number()
        word, n_arcs = choice["arcs"].choice(ARC_SETS), choice["n_arcs"].integer(0)
        arcs.append(TriedArcs(word, n_arcs, _positive_penalty(choice["lambda"]), log_loss))
    structures = []
    for item in fields["structures"].items() if "structures" in fields else []:
        tried_structure = item.fields(("structure", "lambda", "log_loss"))
        log_loss = tried_structure["log_loss"].number()
        word = tried_structure["structure"].choice(STRUCTURES.words)
        structures.append(TriedStructure(word, _positive_penalty(tried_structure["lambda"]), log_loss))
    shrinkage = None
    if "shrunk" in fields:
        shrunk = fields["shrunk"].fields(("factor", "log_loss"))
        factor = shrunk["factor"].number()
        if not 0 < factor < 1:
            shrunk["factor"].fail("a shrinkage factor must be between 0 and 1")
        shrinkage = Shrinkage(factor, shrunk["log_loss"].number())
    return ChosenPenalty(_positive_penalty(fields["chosen"]), tuple(tried), tuple(arcs), shrinkage, tuple(structures))


def _positive_penalty(node: Node) -> float:
    number = node.number()
    if number <= 0:
        node.fail("a penalty must be above 0")
    return number


def restarts_json(restarts: Restarts) -> dict[str, Any]:
    """Return the objective that each start of the optimizer reached, in nats, and the index of the best start."""
    return {
        "objectives": list(restarts.objectives),
        "kept": restarts.best_start,
        "best": restarts.objectives[restarts.best_start],
        "spread": max(restarts.objectives) - min(restarts.objectives),
        "rows": _ROWS[restarts.held_out],
    }


def read_restarts(node: Node) -> Restarts:
    """Parse random starts written by `restarts_json`; fail if the derived values disagree with the objectives."""
    fields = node.fields(("objectives", "kept", "best", "spread", "rows"))
    objectives = tuple(item.number() for item in fields["objectives"].items())
    if len(objectives) < 2:
        fields["objectives"].fail("expected at least two starts")
    rows = fields["rows"].text()
    if rows not in _ROWS:
        fields["rows"].fail(f"the rows of objectives must be {' or '.join(_ROWS)}")
    restarts = Restarts(objectives, rows == _ROWS[True])
    if restarts_json(restarts) != {key: field.value for key, field in fields.items()}:
        node.fail("the best objective or the spread disagrees with the objectives")
    return restarts


def edit_json(edit: Edit, labels: Sequence[str]) -> dict[str, Any]:
    """Return an edit in readable form, with the log-odds per value: of the second of two labels, or of every label."""

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
    """Parse the edits in a model file.

    n_arrays: number of arrays of the predictor. test_rows: number of rows of the self-test, 0 without one.
    `read(name, i)` reads a member that has the shape of array i, or of the self-test probabilities if i is None.
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
