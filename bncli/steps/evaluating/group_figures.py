"""The figures of groups as a report, and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bncli.engine.evaluation.groups import Fairness, Gap, Group, Rate


@dataclass(frozen=True)
class GroupsReport:
    """The groups of every column, in the order of its values, and the gaps of the rates over them."""

    groups: tuple[Group, ...]
    fairness: tuple[Fairness, ...]

    def as_json(self) -> dict[str, Any]:
        """The keys `groups` and `fairness`."""
        return {"groups": list(map(_group_json, self.groups)), "fairness": list(map(_fairness_json, self.fairness))}


def _group_json(group: Group) -> dict[str, Any]:
    intervals = {name: None if bounds is None else list(bounds) for name, bounds in group.intervals.items()}
    rates = [
        {"label": label, **{name: _rate_json(rate) for name, rate in told.items()}}
        for label, told in group.rates.items()
    ]
    head = {"by": group.by, "value": group.value, "rows": group.rows, "weight": group.weight}
    return head | group.figures | group.decided | {"interval95": intervals, "rates": rates}


def _rate_json(rate: Rate | None) -> dict[str, Any] | None:
    return None if rate is None else {"share": rate.share, "interval95": list(rate.interval)}


def _fairness_json(fairness: Fairness) -> dict[str, Any]:
    gaps = {**fairness.gaps, "equalized_odds": fairness.equalized_odds}
    return {"by": fairness.by, "label": fairness.label} | {name: _gap_json(gap) for name, gap in gaps.items()}


def _gap_json(gap: Gap | None) -> dict[str, Any] | None:
    return None if gap is None else gap._asdict()
