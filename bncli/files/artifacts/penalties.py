"""What the search for parameters went through: penalties and random starts, in a model file and as JSON.

A penalty that cross-validation chose: `{"chosen": 3.0, "tried": [{"lambda": 10.0, "log_loss": 0.7}, ...]}`.

Where the arcs of a network were chosen with it there is one key more, the choices from few arcs to many:
`"arcs": [{"arcs": "none", "n_arcs": 0, "lambda": 3.0, "log_loss": 0.6}, ...]`.

Where the tables were shrunk towards the class frequencies there is another, what is left of their log-odds:
`"shrunk": {"factor": 0.4, "log_loss": 0.6}`.

Random starts: `{"objectives": [-67.33, -67.32], "kept": 1, "best": -67.32, "spread": 0.01, "rows": "training"}`, the
usual start first; `kept` is the place of the best.
"""

from __future__ import annotations

from typing import Any

from bncli.engine.model import ChosenPenalty, Restarts, Shrinkage, TriedArcs, TriedPenalty
from bncli.files.documents import Node

_ROWS = ("training", "held-out")


def penalty_json(penalty: ChosenPenalty) -> dict[str, Any]:
    """Return the penalty, and every one tried with its log-loss, in the order in which they were tried."""
    arcs = {"arcs": arcs_json(penalty)} if penalty.arcs else {}
    shrunk = {} if penalty.shrinkage is None else {"shrunk": shrinkage_json(penalty)}
    return {"chosen": penalty.penalty, "tried": tried_json(penalty), **arcs, **shrunk}


def tried_json(penalty: ChosenPenalty) -> list[dict[str, float]]:
    """Return only those tried."""
    return [{"lambda": one.penalty, "log_loss": one.log_loss} for one in penalty.tried]


def arcs_json(penalty: ChosenPenalty | None) -> list[dict[str, Any]]:
    """Return the choices of arcs; none where there was no choice."""
    arcs = () if penalty is None else penalty.arcs
    return [{"arcs": a.arcs, "n_arcs": a.n_arcs, "lambda": a.penalty, "log_loss": a.log_loss} for a in arcs]


def shrinkage_json(penalty: ChosenPenalty | None) -> dict[str, float] | None:
    """Return the factor and the log-loss; None where nothing was shrunk."""
    return None if penalty is None or penalty.shrinkage is None else penalty.shrinkage._asdict()


def read_penalty(node: Node) -> ChosenPenalty:
    """Return what `penalty_json` wrote."""
    fields = node.fields(("chosen", "tried"), ("arcs", "shrunk"))
    tried = tuple(_read_tried(item) for item in fields["tried"].items())
    arcs = tuple(_read_arcs(item) for item in fields["arcs"].items()) if "arcs" in fields else ()
    shrinkage = _read_shrinkage(fields["shrunk"]) if "shrunk" in fields else None
    return ChosenPenalty(_positive(fields["chosen"]), tried, arcs, shrinkage)


def _read_tried(node: Node) -> TriedPenalty:
    fields = node.fields(("lambda", "log_loss"))
    return TriedPenalty(_positive(fields["lambda"]), fields["log_loss"].number())


def _positive(node: Node) -> float:
    number = node.number()
    if number <= 0:
        node.fail("a penalty is above 0")
    return number


def _read_arcs(node: Node) -> TriedArcs:
    fields = node.fields(("arcs", "n_arcs", "lambda", "log_loss"))
    loss = fields["log_loss"].number()
    return TriedArcs(fields["arcs"].text(), fields["n_arcs"].integer(), _positive(fields["lambda"]), loss)


def _read_shrinkage(node: Node) -> Shrinkage:
    fields = node.fields(("factor", "log_loss"))
    factor = fields["factor"].number()
    if not 0 < factor < 1:
        fields["factor"].fail("a factor that shrinks lies between 0 and 1")
    return Shrinkage(factor, fields["log_loss"].number())


def restarts_json(restarts: Restarts) -> dict[str, Any]:
    """Where every start ended, and which one is kept."""
    return {
        "objectives": list(restarts.objectives),
        "kept": restarts.kept,
        "best": restarts.best,
        "spread": restarts.spread,
        "rows": _ROWS[restarts.held_out],
    }


def read_restarts(node: Node) -> Restarts:
    """Return what `restarts_json` wrote."""
    fields = node.fields(("objectives", "kept", "best", "spread", "rows"))
    objectives = tuple(item.number() for item in fields["objectives"].items())
    if len(objectives) < 2:
        fields["objectives"].fail("there are at least two starts")
    rows = fields["rows"].text()
    if rows not in _ROWS:
        fields["rows"].fail(f"objectives are those of rows that are {' or '.join(_ROWS)}")
    restarts = Restarts(objectives, rows == _ROWS[True])
    if restarts_json(restarts) != {key: field.value for key, field in fields.items()}:
        node.fail("the best of the objectives, or their spread, is another one")
    return restarts
