"""What a model records of how to decide: costs, a threshold, when to abstain, prediction sets. Never its probabilities.

All of it is read by `engine/decisions`, which has the formulas.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

Numbers = tuple[float, ...]


class Threshold(NamedTuple):
    """The second of two labels is decided for from this probability on; `chosen` by what, "" where it was typed."""

    value: float
    chosen: str = ""


class Sets(NamedTuple):
    """Prediction sets that miss the true label in a share alpha of the rows, or (`by_class`) of the rows of each."""

    alpha: float
    by_class: bool = False


@dataclass(frozen=True)
class HeldOutScores:
    """What rows that were held out got for their own label: by label P(y_t | x_t), ascending, and the rows' weights.

    `split`: the model has seen none of these rows; else each was predicted by a model of a fold that had not. Of very
    many rows a sample is kept.
    """

    probabilities: tuple[Numbers, ...]
    weights: tuple[Numbers, ...] | None
    split: bool


@dataclass(frozen=True)
class Rule:
    """How to decide; what is None is not asked for. costs[true][decision]."""

    costs: tuple[Numbers, ...] | None = None
    threshold: Threshold | None = None
    abstain_below: float | None = None
    sets: Sets | None = None
    held_out: HeldOutScores | None = None

    @property
    def decides(self) -> bool:
        """Whether it says more than the most probable label; sets are no decision."""
        return (self.costs, self.threshold, self.abstain_below) != (None, None, None)
