"""Decisions as columns: `decision` (missing where there is none), `expected_cost`, `set` (labels joined by `|`).

Only those that the rule asks for: `decision` with costs, a threshold or a bound to abstain below, `expected_cost` with
costs, `set` with prediction sets.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bncli.engine.data.decision_rule import Rule
from bncli.engine.decisions.deciding import ABSTAINED, Decided
from bncli.engine.kernels.arrays import Mask


def decided_names(rule: Rule | None) -> tuple[str, ...]:
    """The columns that a rule asks for."""
    if rule is None:
        return ()
    asked = (("decision", rule.decides), ("expected_cost", rule.costs is not None), ("set", rule.sets is not None))
    return tuple(name for name, is_asked in asked if is_asked)


def decided_columns(decided: Decided, labels: tuple[str, ...], names: tuple[str, ...]) -> tuple[pa.Array, ...]:
    """These columns: texts, and numbers as float64."""
    made = {
        "decision": lambda: _decisions(decided, labels),
        "expected_cost": lambda: pa.array(decided.expected_costs),
        "set": lambda: _sets(decided.members, labels),
    }
    return tuple(made[name]() for name in names)


def _decisions(decided: Decided, labels: tuple[str, ...]) -> pa.Array:
    return pa.array(labels, pa.string()).take(pa.array(decided.codes, mask=decided.codes == ABSTAINED))


def _sets(members: Mask | None, labels: tuple[str, ...]) -> pa.Array:
    assert members is not None
    distinct, place = np.unique(members, axis=1, return_inverse=True)
    texts = ["|".join(label for label, is_in in zip(labels, one, strict=True) if is_in) for one in distinct.T]
    return pa.array(texts, pa.string()).take(pa.array(place.ravel()))
