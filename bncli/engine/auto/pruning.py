"""Which candidates are still worth trying, from the losses of those that were tried.

Nothing is, once nothing is lost; sets do not grow from sets that lost too much. An effort that prunes tries
larger sets first where smaller ones have told that attributes act together, and the others of what is left to spend.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from bncli.engine.auto.choice import Judged

NOTHING = 5e-5
"""A log-loss a row, in nats, below which no more candidates are tried."""
GAIN = 0.01
"""Attributes act together where trees or pairs have lowered the loss by such a share."""
DEEP = 0.1
"""Trees that have lowered it by such a share find all that tables of one or two attributes find."""
SLACK = 0.05
"""Sets that lose by a larger share of the log-loss are not built upon."""
_ALONE = ("singles", "lines", "sharp singles")
"""Candidates whose tables are over one attribute each."""
_SHALLOW = ("lines", "tree", "sharp singles", "sharp tree")


def may_improve(name: str, builds_on: Mapping[str, str], judged: Sequence[Judged], prunes: bool) -> bool:
    """Whether there is something left to gain, and what the candidate builds on did not lose by more than SLACK."""
    if not judged:
        return True
    losses = {one.name: one.losses.log_loss for one in judged}
    least = min(losses.values())
    if least < NOTHING:
        return False
    if prunes and not _is_promising(name, builds_on, losses):
        return False
    below = builds_on.get(name)
    if below is None or below == "singles":
        return True
    return below in losses and losses[below] <= (1 + SLACK) * least


def _is_promising(name: str, builds_on: Mapping[str, str], losses: Mapping[str, float]) -> bool:
    """Whether smaller sets have gained, of those that were tried: a base that was left out tells nothing."""
    if name == "pairs":
        told = [losses[one] for one in ("tree", "boosted") if one in losses]
    elif name == "all pairs":
        told = [losses["pairs"]] if "pairs" in losses else []
    elif name in ("triples", "quadruples") and name in builds_on:
        told = [losses[one] for one in (builds_on[name],) if one in losses]
    else:
        return True
    alone = min((loss for one, loss in losses.items() if one in _ALONE), default=math.inf)
    return not told or min(told) <= (1 - GAIN) * alone


def is_outdone(name: str, judged: Sequence[Judged]) -> bool:
    """Whether boosted trees have lowered the loss so much that other cuts and slopes of few attributes help no more."""
    losses = {one.name: one.losses.log_loss for one in judged}
    return name in _SHALLOW and losses.get("boosted", math.inf) <= (1 - DEEP) * losses["singles"]


def has_lost_its_base(
    name: str, builds_on: Mapping[str, str], judged: Sequence[Judged], prunes: bool, left_out: Collection[str]
) -> bool:
    """Whether nothing speaks against the candidate but that the one it builds on was left out."""
    return builds_on.get(name) in left_out and may_improve(name, {}, judged, prunes)


def is_better(name: str, other: str, judged: Sequence[Judged]) -> bool:
    """Whether one candidate lost less than the other, or the other was not tried."""
    losses = {one.name: one.losses.log_loss for one in judged}
    return losses[name] < losses.get(other, math.inf)
