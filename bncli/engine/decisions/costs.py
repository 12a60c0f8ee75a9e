"""Costs of decisions: from what was typed to a matrix, costs[true][decision].

Conventions: a cost is a finite number of at least 0; a right decision costs 0 unless something else is said.
"""

from __future__ import annotations

from bncli.errors import UsageError
from bncli.option_kinds import label_numbers


def cost_matrix(text: str, labels: tuple[str, ...], class_name: str) -> tuple[tuple[float, ...], ...]:
    """The matrix (K, K) of `true:decision=cost,...`; UsageError for what is unknown, missing or negative."""
    found: dict[tuple[str, str], float] = {}
    for key, cost in label_numbers(text).items():
        true, decision = pair = _pair(key, labels, class_name)
        if pair in found:
            raise UsageError(f"--costs says twice what it costs to decide for {decision!r} where {true!r} is true")
        if cost < 0:
            what = f"--costs says {cost:g} for deciding {decision!r} where {true!r} is true"
            raise UsageError(what, hint="a cost is 0 or more: add the same to a whole row, and decisions stay")
        found[pair] = cost
    for true in labels:
        for decision in labels:
            if (true, decision) not in found and true != decision:
                what = f"--costs does not say what it costs to decide for {decision!r} where {true!r} is true"
                raise UsageError(what, hint=f"add {true}:{decision}=COST; only right decisions may be left out")
    matrix = tuple(tuple(found.get((true, decision), 0.0) for decision in labels) for true in labels)
    if not any(map(any, matrix)):
        raise UsageError("--costs says 0 for every decision", hint="with such costs nothing is to be decided")
    return matrix


def _pair(key: str, labels: tuple[str, ...], class_name: str) -> tuple[str, str]:
    """True label and decision; a label may hold a colon where there is one way to read it."""
    parts = key.split(":")
    pairs = [(":".join(parts[:i]).strip(), ":".join(parts[i:]).strip()) for i in range(1, len(parts))]
    fitting = [pair for pair in pairs if pair[0] in labels and pair[1] in labels]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise UsageError(f"--costs can be read in two ways at {key!r}", hint="rename labels that hold colons")
    known = ", ".join(labels[:10]) + (", ..." if len(labels) > 10 else "")
    if not pairs:
        raise UsageError(f"--costs says {key!r}, which is no TRUE:DECISION", hint="for example yes:no=5,no:yes=1")
    unknown = next((label for label in pairs[0] if label not in labels), key)
    what = f"--costs names the label {unknown!r}, which the class {class_name!r} does not have"
    raise UsageError(what, hint=f"it has {known}")
