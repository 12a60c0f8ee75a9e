"""Rules for decisions from what is typed: in learning, and instead of those of a model when it scores."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from bncli.engine.data.decision_rule import HeldOutScores, Rule, Sets, Threshold
from bncli.engine.decisions.costs import cost_matrix
from bncli.engine.decisions.thresholds import choose, steps_held_out
from bncli.errors import BncliError, UsageError
from bncli.option_kinds import decimal


class Wanted(NamedTuple):
    """What was typed about decisions; None: nothing.

    costs: `true:decision=cost,...`; threshold: a number or a criterion; sets: alpha.
    """

    costs: str | None = None
    threshold: str | None = None
    abstain_below: float | None = None
    sets: float | None = None
    sets_by: str | None = None

    @property
    def learns(self) -> bool:
        """Whether rows have to be held out for it."""
        return self.sets is not None or (self.threshold is not None and decimal(self.threshold) is None)


def rule_of(wanted: Wanted, labels: tuple[str, ...], class_name: str, stored: Rule | None = None) -> Rule | None:
    """The rule stored (None: there is none) with what is wanted instead; what takes rows comes from those kept with it.

    None where nothing is to be decided. UsageError for what these labels do not have, BncliError where no row reaches
    what is asked for.
    """
    if wanted == Wanted():
        return stored
    rule = stored or Rule()
    if wanted.costs is not None:
        rule = replace(rule, costs=cost_matrix(wanted.costs, labels, class_name), threshold=None)
    if wanted.threshold is not None:
        _refuse_many(labels, class_name)
        rule = replace(rule, threshold=_threshold(wanted.threshold, rule.held_out), costs=None)
    if wanted.abstain_below is not None:
        rule = replace(rule, abstain_below=wanted.abstain_below)
    if wanted.sets is not None:
        by = wanted.sets_by or ("class" if rule.sets is not None and rule.sets.by_class else "all")
        rule = replace(rule, sets=Sets(wanted.sets, by == "class"))
    elif wanted.sets_by is not None and rule.sets is not None:
        rule = replace(rule, sets=rule.sets._replace(by_class=wanted.sets_by == "class"))
    return rule


def without_held_out(rule: Rule) -> Rule | None:
    """What is left of a rule for other probabilities: all that does not rest on rows held out; None for nothing."""
    chosen = rule.threshold is not None and bool(rule.threshold.chosen)
    left = replace(rule, threshold=None if chosen else rule.threshold, sets=None, held_out=None)
    return None if left == Rule() else left


def check(wanted: Wanted, labels: tuple[str, ...], class_name: str) -> None:
    """What can be refused before anything is learnt."""
    if wanted.costs is not None:
        cost_matrix(wanted.costs, labels, class_name)
    if wanted.threshold is not None:
        _refuse_many(labels, class_name)


def _refuse_many(labels: tuple[str, ...], class_name: str) -> None:
    if len(labels) != 2:
        what = f"--threshold takes two classes, and {class_name!r} has {len(labels)}"
        raise UsageError(what, hint="say --costs, which decides between any number")


def _threshold(text: str, held_out: HeldOutScores | None) -> Threshold:
    number = decimal(text)
    if number is not None:
        return Threshold(number)
    if held_out is None:
        what = f"the model keeps no rows held out to choose a threshold {text} by"
        raise BncliError(what, hint=f"bncli fit --threshold {text} holds some out, or say a number")
    return choose(text, steps_held_out(held_out))
