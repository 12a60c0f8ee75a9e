"""A rule for decisions as JSON, under the key `decisions` of a model (since version 7): only what is asked for.

`costs` [true][decision]; `threshold` {value, chosen}; `abstain_below`; `sets` {alpha, by}; `held_out` {split,
probabilities, weights}, a list a label.
"""

from __future__ import annotations

import itertools
from typing import Any

from bncli.engine.data.decision_rule import HeldOutScores, Numbers, Rule, Sets, Threshold
from bncli.files.documents import Node

DECISIONS = "decisions"


def rule_json(rule: Rule) -> dict[str, Any]:
    """What `read_rule` reads."""
    kept, held_out = rule.held_out, {}
    if kept is not None:
        held_out = {"split": kept.split, "probabilities": [list(one) for one in kept.probabilities]}
        held_out |= {} if kept.weights is None else {"weights": [list(one) for one in kept.weights]}
    found = summary_json(rule)
    return found | ({"held_out": held_out} if kept is not None else {})


def summary_json(rule: Rule) -> dict[str, Any]:
    """The rule without the rows that it was made by."""
    sets = rule.sets
    found: dict[str, Any] = {
        "costs": None if rule.costs is None else [list(row) for row in rule.costs],
        "threshold": None if rule.threshold is None else rule.threshold._asdict(),
        "abstain_below": rule.abstain_below,
        "sets": None if sets is None else {"alpha": sets.alpha, "by": "class" if sets.by_class else "all"},
    }
    return {key: value for key, value in found.items() if value is not None}


def read_rule(node: Node, labels: tuple[str, ...]) -> Rule:
    """The rule, checked against the labels."""
    fields = node.fields((), ("costs", "threshold", "abstain_below", "sets", "held_out"))
    if "threshold" in fields and ("costs" in fields or len(labels) != 2):
        fields["threshold"].fail("a threshold decides between two labels, and goes without costs")
    return Rule(
        _read_costs(fields["costs"], len(labels)) if "costs" in fields else None,
        _read_threshold(fields["threshold"]) if "threshold" in fields else None,
        _share(fields["abstain_below"]) if "abstain_below" in fields else None,
        _read_sets(fields["sets"]) if "sets" in fields else None,
        _read_held_out(fields["held_out"], len(labels)) if "held_out" in fields else None,
    )


def _read_costs(node: Node, n_labels: int) -> tuple[Numbers, ...]:
    rows = tuple(_numbers(row) for row in node.items())
    if [len(row) for row in rows] != [n_labels] * n_labels:
        node.fail(f"expected {n_labels} rows of {n_labels} costs")
    return rows


def _read_threshold(node: Node) -> Threshold:
    fields = node.fields(("value", "chosen"))
    return Threshold(_share(fields["value"]), fields["chosen"].text())


def _read_sets(node: Node) -> Sets:
    fields = node.fields(("alpha", "by"))
    alpha = _share(fields["alpha"])
    if not 0 < alpha < 1 or fields["by"].text() not in ("all", "class"):
        node.fail("sets have an alpha between 0 and 1, by 'all' or 'class'")
    return Sets(alpha, fields["by"].value == "class")


def _read_held_out(node: Node, n_labels: int) -> HeldOutScores:
    fields = node.fields(("split", "probabilities"), ("weights",))
    probabilities = tuple(_numbers(one) for one in fields["probabilities"].items())
    weights = tuple(_numbers(one) for one in fields["weights"].items()) if "weights" in fields else None
    sizes = [len(one) for one in probabilities]
    if len(sizes) != n_labels or (weights is not None and [len(one) for one in weights] != sizes):
        node.fail(f"expected {n_labels} lists of probabilities, and as many weights")
    for own in probabilities:
        if any(a > b for a, b in itertools.pairwise(own)) or max(own, default=0.0) > 1:
            fields["probabilities"].fail("probabilities rise from 0 to 1 at most")
    return HeldOutScores(probabilities, weights, fields["split"].flag())


def _numbers(node: Node) -> Numbers:
    """A list of numbers of at least 0."""
    numbers = tuple(item.number() for item in node.items())
    if min(numbers, default=0.0) < 0:
        node.fail("a number here is at least 0")
    return numbers


def _share(node: Node) -> float:
    number = node.number()
    if not 0 <= number <= 1:
        node.fail("the number lies between 0 and 1")
    return number
