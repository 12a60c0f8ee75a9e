"""Which candidates are still worth trying, from the losses of those that were tried.

Of few rows all of them are, but for sets that grow from sets that lost too much. Of many rows, where each costs much,
they are not once candidates have been tried in vain.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from bncli.engine.auto.candidates import Rows
from bncli.engine.auto.choice import Judged
from bncli.engine.data.dataset import Dataset

NOTHING = 5e-5
"""A log-loss a row, in nats, below which no more candidates are tried."""
CERTAIN = 0.01
"""A loss below this share of the entropy of the class halves the budget of many rows: little is left to be learnt."""
IN_VAIN, GAIN = 2, 0.01
"""Of many rows, no more candidates are tried after so many that have not lowered the loss by such a share."""
SLACK = 0.05
"""Sets that lose by a larger share of the log-loss are not built upon."""


def may_improve(name: str, builds_on: Mapping[str, str], judged: Sequence[Judged], many: bool) -> bool:
    """Whether there is something left to gain, and what the candidate builds on did not lose by more than SLACK."""
    if not judged:
        return True
    losses = {one.name: one.losses.log_loss for one in judged}
    least = min(losses.values())
    if least < NOTHING:
        return False
    if many and _are_in_vain(judged):
        return False
    if name == "sharp tree" and many:
        return losses.get("sharp singles", 0.0) <= (1 + SLACK) * least
    if name == "tree" and many:
        return losses.get("pairs", math.inf) > losses["singles"]
    below = builds_on.get(name)
    if below is None or below == "singles":
        return True
    return below in losses and losses[below] <= (1 + SLACK) * least


def has_lost_its_base(
    name: str, builds_on: Mapping[str, str], judged: Sequence[Judged], many: bool, left_out: Collection[str]
) -> bool:
    """Whether nothing speaks against the candidate but that the one it builds on was left out."""
    return builds_on.get(name) in left_out and may_improve(name, {}, judged, many)


def _are_in_vain(judged: Sequence[Judged]) -> bool:
    """Whether the last IN_VAIN candidates have not lowered the loss by a share of GAIN."""
    losses = [one.losses.log_loss for one in judged]
    before = losses[:-IN_VAIN]
    return bool(before) and min(losses[-IN_VAIN:]) > (1 - GAIN) * min(before)


def is_better(name: str, other: str, judged: Sequence[Judged]) -> bool:
    """Whether one candidate lost less than the other, or the other was not tried."""
    losses = {one.name: one.losses.log_loss for one in judged}
    return losses[name] < losses.get(other, math.inf)


def comes_later(name: str, wanted: Sequence[str], rows: Rows) -> bool:
    """Where pairs have to be penalised more than single attributes, all pairs are worth more than larger sets."""
    return name == "triples" and rows.beyond > 1 and "all pairs" in wanted


def is_almost_certain(judged: Judged, data: Dataset) -> bool:
    """Whether the candidate has lost next to nothing."""
    return judged.losses.log_loss < CERTAIN * _entropy(data)


def _entropy(data: Dataset) -> float:
    """Of the class, in nats."""
    shares = data.class_counts / data.total_weight
    return float(-(shares[shares > 0] * np.log(shares[shares > 0])).sum())
