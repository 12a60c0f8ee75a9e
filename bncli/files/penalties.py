"""A penalty that cross-validation chose: `{"chosen": 3.0, "tried": [{"lambda": 10.0, "log_loss": 0.7}, ...]}`."""

from __future__ import annotations

from typing import Any

from bncli.engine.model import ChosenPenalty, Tried
from bncli.files.documents import Node


def penalty_json(penalty: ChosenPenalty) -> dict[str, Any]:
    """The penalty, and every one tried with its log-loss, in the order in which they were tried."""
    return {"chosen": penalty.penalty, "tried": tried_json(penalty)}


def tried_json(penalty: ChosenPenalty) -> list[dict[str, float]]:
    """Only those tried."""
    return [{"lambda": one.penalty, "log_loss": one.log_loss} for one in penalty.tried]


def read_penalty(node: Node) -> ChosenPenalty:
    """What `penalty_json` wrote."""
    fields = node.fields(("chosen", "tried"))
    return ChosenPenalty(_positive(fields["chosen"]), tuple(_read_tried(item) for item in fields["tried"].items()))


def _read_tried(node: Node) -> Tried:
    fields = node.fields(("lambda", "log_loss"))
    return Tried(_positive(fields["lambda"]), fields["log_loss"].number())


def _positive(node: Node) -> float:
    number = node.number()
    if number <= 0:
        node.fail("a penalty is above 0")
    return number
