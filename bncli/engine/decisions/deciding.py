"""From probabilities to decisions, by a rule; the probabilities stay what they are.

costs        d_t = argmin over d of sum over y of P(y | x_t) costs[y][d], the expected cost; the first of equals
threshold    of two labels the second where P(second | x_t) >= threshold
neither      the most probable label, the first of equals
abstain      no decision where max over y of P(y | x_t) < abstain_below, whatever the costs or the threshold
sets         every label that reaches its bar (`conformal.py`)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bncli.engine.data.decision_rule import Rule
from bncli.engine.decisions.conformal import bars
from bncli.engine.kernels.arrays import Array, Index, Mask
from bncli.errors import BncliError

ABSTAINED = -1


@dataclass(frozen=True)
class Decided:
    """Rows decided: labels (N,), ABSTAINED for none; expected costs (N,) and members of the sets (K, N) where asked.

    The expected cost of a row without a decision is that of the decision that it would have been.
    """

    codes: Index
    expected_costs: Array | None = None
    members: Mask | None = None


@dataclass(frozen=True)
class Decider:
    """A rule made ready for rows: costs[true][decision] (K, K), bars (K,)."""

    rule: Rule
    costs: Array | None
    bars: Array | None

    @staticmethod
    def of(rule: Rule, labels: tuple[str, ...]) -> Decider:
        """BncliError where the rule asks for sets and there are no rows held out, or too few."""
        costs = None if rule.costs is None else np.array(rule.costs)
        if rule.sets is None:
            return Decider(rule, costs, None)
        if rule.held_out is None or not rule.held_out.split:
            what = "there are no rows held out to make prediction sets by"
            raise BncliError(what, hint="bncli fit --sets ALPHA holds them out, and models keep what sets need")
        if wrong := [label for label in labels if "|" in label]:
            what = f"the label {wrong[0]!r} holds a '|', by which the labels of a set are told apart"
            raise BncliError(what, hint="rename it in the data")
        return Decider(rule, costs, bars(rule.sets, rule.held_out, labels))

    def decide(self, log_probabilities: Array) -> Decided:
        """From ln P(y | x_t), shape (K, N)."""
        p = np.exp(log_probabilities)
        expected = None
        if self.costs is not None:
            all_costs = self.costs.T @ p
            codes = all_costs.argmin(axis=0)
            expected = np.take_along_axis(all_costs, codes[np.newaxis], axis=0)[0]
        elif self.rule.threshold is not None:
            codes = (p[1] >= self.rule.threshold.value).astype(np.intp)
        else:
            codes = p.argmax(axis=0)
        if self.rule.abstain_below is not None:
            codes = np.where(p.max(axis=0) < self.rule.abstain_below, ABSTAINED, codes)
        members = None if self.bars is None else p >= self.bars[:, np.newaxis]
        return Decided(codes, expected, members)

    def disagreements(self, p: Array, found: Sequence[str | None], labels: tuple[str, ...], tolerance: float) -> int:
        """Rows of P(y | x_t), (K, N), that are found decided otherwise, but for those as near to another decision."""
        least = np.finfo(np.float64).tiny
        expected = np.array([*labels, None], dtype=object)[self.decide(np.log(np.maximum(p, least))).codes]
        others = (expected != np.array(found, dtype=object)) & (self.margins(np.maximum(p, least)) > tolerance)
        return int(others.sum())

    def margins(self, p: Array) -> Array:
        """How far P(y | x_t), shape (K, N), lies from where the decision changes, (N,); costs over the largest."""
        if self.costs is not None:
            ascending = np.sort(self.costs.T @ p, axis=0) / self.costs.max()
            found = ascending[1] - ascending[0]
        elif self.rule.threshold is not None:
            found = np.abs(p[1] - self.rule.threshold.value)
        else:
            ascending = np.sort(p, axis=0)
            found = ascending[-1] - ascending[-2]
        if self.rule.abstain_below is not None:
            found = np.minimum(found, np.abs(p.max(axis=0) - self.rule.abstain_below))
        margins: Array = found
        return margins
