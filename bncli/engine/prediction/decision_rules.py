"""Rules for decisions from what is typed: in learning, and instead of those of a model when it scores.

Costs of decisions: from what was typed to a matrix, costs[true][decision].

Conventions: a cost is a finite number of at least 0; a right decision costs 0 unless something else is said.

Thresholds on the probability p of the second of two labels: decide for it where p >= t.

On rows held out, with a step at every p that occurs, in falling order, and sums over the rows above each step

    TP(t) = weight of rows of the second label with p >= t,   FP(t) = that of the others,   P, N = all of either
    recall = TP / P,  precision = TP / (TP + FP),  f1 = 2 TP / (P + TP + FP),  balanced accuracy = (TP/P + 1 - FP/N)
    / 2
    mcc = (TP (N - FP) - FP (P - TP)) / sqrt((TP + FP)(P + N - TP - FP) P N)

`best:NAME` takes the step with the highest figure, the highest of equal ones; `recall=R` the highest step that reaches
R; `precision=R` the lowest that does; `top=X%` the lowest above which lie at most X per cent of the rows.

Conventions: figures 0 / 0 count as 0. Differences in the last digits (1e-12) do not make a figure higher.

Split conformal prediction sets: sets of labels that hold the true one as often as was asked for.

A row that was held out has the conformity P(y_t | x_t) of its own label. With n such rows, weights w and W their sum,
the set of a new row holds every label whose probability reaches the bar b,

    b = the highest conformity above or at which lie rows of weight (W + 1)(1 - alpha) or more,    w = 1: n = W

that is, the ceil((n + 1)(1 - alpha))-th largest. Where the rows held out and the new one are exchangeable, the set
misses the true label with a probability of at most alpha (Vovk, Gammerman & Shafer 2005; the score of Sadinle, Lei &
Wasserman 2019, JASA 114). By class each label has a bar of its own, from the rows of that label, and the promise holds
for the rows of each.

Conventions: a set may be empty, where no label reaches the bar. A row of whole weight w counts as w rows.

From probabilities to decisions, by a rule; the probabilities stay what they are.

costs d_t = argmin over d of sum over y of P(y | x_t) costs[y][d], the expected cost; the first of equals threshold of
two labels the second where P(second | x_t) >= threshold neither the most probable label, the first of equals abstain no
decision where max over y of P(y | x_t) < abstain_below, whatever the costs or the threshold sets every label that
reaches its bar (`conformal.py`)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from bncli.catalogue.option_kinds import parse_decimal, parse_label_numbers
from bncli.engine.kernels.arrays import Array, Index, Mask
from bncli.engine.model import DecisionRule, HeldOutScores, PredictionSets, Threshold
from bncli.errors import BncliError, UsageError

MOST_LINES = 101
_SAME = 1e-12


class Steps(NamedTuple):
    """thresholds (S,), falling; weights of the rows of the second label and of the others at or above each, (S,)."""

    thresholds: Array
    true_positives: Array
    false_positives: Array
    positives: float
    negatives: float


class DecisionOptions(NamedTuple):
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
        return self.sets is not None or (self.threshold is not None and parse_decimal(self.threshold) is None)


_ROUNDING = 1e-9
"""Of a number of rows: (n + 1)(1 - alpha) is whole more often than its floating-point number."""
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

    rule: DecisionRule
    costs: Array | None
    bars: Array | None

    @staticmethod
    def of(rule: DecisionRule, labels: tuple[str, ...]) -> Decider:
        """Raise BncliError where the rule asks for sets and there are no rows held out, or too few."""
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
        """Return how far P(y | x_t), shape (K, N), lies from where the decision changes, (N,).

        Costs over the largest.
        """
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


def cost_matrix(text: str, labels: tuple[str, ...], class_name: str) -> tuple[tuple[float, ...], ...]:
    """Return the matrix (K, K) of `true:decision=cost,...`; UsageError for what is unknown, missing or negative."""
    found: dict[tuple[str, str], float] = {}
    for key, cost in parse_label_numbers(text).items():
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
    """Return true label and decision; a label may hold a colon where there is one way to read it."""
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


def steps_of(p: Array, positive: Mask, weights: Array | None = None) -> Steps:
    """From p (N,), whether rows are of the second label, and their weights (None: 1)."""
    weights = np.ones(len(p)) if weights is None else weights
    values, place = np.unique(-p, return_inverse=True)
    hits = np.bincount(place, weights * positive, len(values))
    misses = np.bincount(place, weights * ~positive, len(values))
    return Steps(-values, hits.cumsum(), misses.cumsum(), float(hits.sum()), float(misses.sum()))


def steps_held_out(scores: HeldOutScores) -> Steps:
    """Return those of rows held out, whose own label's probability is kept."""
    others, own = (np.array(one) for one in scores.probabilities)
    p = np.concatenate([1 - others, own])
    weights = None if scores.weights is None else np.concatenate([np.array(one) for one in scores.weights])
    return steps_of(p, np.arange(len(p)) >= len(others), weights)


def figures(steps: Steps) -> dict[str, Array]:
    """Return every figure by its name, (S,)."""
    tp, fp, p, n = steps.true_positives, steps.false_positives, steps.positives, steps.negatives
    told = tp + fp
    return {
        "selected": _ratio(told, p + n),
        "precision": _ratio(tp, told),
        "recall": _ratio(tp, p),
        "false_positive_rate": _ratio(fp, n),
        "f1": _ratio(2 * tp, p + told),
        "mcc": _ratio(tp * (n - fp) - fp * (p - tp), np.sqrt(np.maximum(told * (p + n - told) * p * n, 0))),
        "balanced_accuracy": (_ratio(tp, p) + 1 - _ratio(fp, n)) / 2,
    }


def _ratio(part: Array, whole: Array | float) -> Array:
    whole = np.broadcast_to(whole, part.shape)
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)


def choose(criterion: str, steps: Steps) -> Threshold:
    """Return the threshold by `best:NAME`, `recall=R`, `precision=R` or `top=X%`.

    BncliError where no row reaches it.
    """
    found = figures(steps)
    if not steps.positives or not steps.negatives:
        what = f"--threshold {criterion} needs rows of both labels among those held out"
        raise BncliError(what, hint="there are too few rows of one of them")
    if criterion.startswith("best:"):
        figure = found[criterion.removeprefix("best:").replace("-", "_")]
        return _at(steps, int(np.argmax(figure >= figure.max() - _SAME)), criterion)
    name, _, number = criterion.partition("=")
    if name == "top":
        share = float(number.removesuffix("%")) / 100
        fitting = np.flatnonzero(found["selected"] <= share + _SAME)
        reached = f"the highest probability is that of {100 * float(found['selected'][0]):.3g} % of the rows"
    else:
        fitting = np.flatnonzero(found[name] >= float(number) - _SAME)
        reached = f"the highest {name} is {float(found[name].max()):.4g}"
    if not len(fitting):
        raise BncliError(f"no threshold has {criterion} on the rows held out: {reached}", hint="ask for less")
    return _at(steps, int(fitting[0] if name == "recall" else fitting[-1]), criterion)


def _at(steps: Steps, step: int, criterion: str) -> Threshold:
    """Return half way to the next lower probability that occurs, so that no rounding takes a row away."""
    lower = steps.thresholds[step + 1] if step + 1 < len(steps.thresholds) else 0.0
    return Threshold(float(steps.thresholds[step] + lower) / 2, criterion)


def table(p: Array, positive: Mask, weights: Array | None, costs: Any = None) -> list[dict[str, float]]:
    """Return a line a threshold 0, 0.01, ..., 1: its figures, with costs[true][decision] the mean cost a row too."""
    steps = steps_of(p, positive, weights)
    grid = np.arange(MOST_LINES) / (MOST_LINES - 1)
    last = np.searchsorted(-steps.thresholds, -grid, side="right")
    tp, fp = (np.append(0.0, one)[last] for one in (steps.true_positives, steps.false_positives))
    lines = figures(steps._replace(thresholds=grid, true_positives=tp, false_positives=fp))
    if costs is not None:
        (right_no, false_yes), (false_no, right_yes) = costs
        n, m = steps.negatives, steps.positives
        total = false_yes * fp + right_no * (n - fp) + right_yes * tp + false_no * (m - tp)
        lines["cost"] = _ratio(total, n + m)
    columns = {"threshold": grid, **lines}
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, values, strict=True)) for values in rows]


def rule_of(
    wanted: DecisionOptions, labels: tuple[str, ...], class_name: str, stored: DecisionRule | None = None
) -> DecisionRule | None:
    """Return the rule stored (None: there is none) with what is wanted instead.

    What takes rows comes from those kept with it.

    None where nothing is to be decided. UsageError for what these labels do not have, BncliError where no row reaches
    what is asked for.
    """
    if wanted == DecisionOptions():
        return stored
    rule = stored or DecisionRule()
    if wanted.costs is not None:
        rule = replace(rule, costs=cost_matrix(wanted.costs, labels, class_name), threshold=None)
    if wanted.threshold is not None:
        _refuse_many(labels, class_name)
        rule = replace(rule, threshold=_threshold(wanted.threshold, rule.held_out), costs=None)
    if wanted.abstain_below is not None:
        rule = replace(rule, abstain_below=wanted.abstain_below)
    if wanted.sets is not None:
        by = wanted.sets_by or ("class" if rule.sets is not None and rule.sets.by_class else "all")
        rule = replace(rule, sets=PredictionSets(wanted.sets, by == "class"))
    elif wanted.sets_by is not None and rule.sets is not None:
        rule = replace(rule, sets=rule.sets._replace(by_class=wanted.sets_by == "class"))
    return rule


def _refuse_many(labels: tuple[str, ...], class_name: str) -> None:
    if len(labels) != 2:
        what = f"--threshold takes two classes, and {class_name!r} has {len(labels)}"
        raise UsageError(what, hint="say --costs, which decides between any number")


def _threshold(text: str, held_out: HeldOutScores | None) -> Threshold:
    number = parse_decimal(text)
    if number is not None:
        return Threshold(number)
    if held_out is None:
        what = f"the model keeps no rows held out to choose a threshold {text} by"
        raise BncliError(what, hint=f"bncli fit --threshold {text} holds some out, or say a number")
    return choose(text, steps_held_out(held_out))


def without_held_out(rule: DecisionRule) -> DecisionRule | None:
    """Return what is left of a rule for other probabilities: all that does not rest on rows held out.

    None for nothing.
    """
    chosen = rule.threshold is not None and bool(rule.threshold.chosen)
    left = replace(rule, threshold=None if chosen else rule.threshold, sets=None, held_out=None)
    return None if left == DecisionRule() else left


def check(wanted: DecisionOptions, labels: tuple[str, ...], class_name: str) -> None:
    """Raise UsageError for what can be refused before anything is learned."""
    if wanted.costs is not None:
        cost_matrix(wanted.costs, labels, class_name)
    if wanted.threshold is not None:
        _refuse_many(labels, class_name)


def bars(sets: PredictionSets, scores: HeldOutScores, labels: tuple[str, ...]) -> Array:
    """Return the probability that a label must reach to be in the set, (K,); BncliError for too few rows held out."""
    if not sets.by_class:
        together = tuple(p for one in scores.probabilities for p in one)
        weights = None if scores.weights is None else tuple(w for one in scores.weights for w in one)
        return np.full(len(labels), _bar(sets.alpha, together, weights, ""))
    weighing = scores.weights or (None,) * len(labels)
    rows = zip(scores.probabilities, weighing, labels, strict=True)
    return np.array([_bar(sets.alpha, p, w, f" of the label {label!r}") for p, w, label in rows])


def _bar(alpha: float, probabilities: tuple[float, ...], weights: tuple[float, ...] | None, whose: str) -> float:
    order = np.argsort(-np.array(probabilities), kind="stable")
    falling = np.array(probabilities)[order]
    above = np.arange(1.0, len(falling) + 1) if weights is None else np.array(weights)[order].cumsum()
    total = float(above[-1]) if len(above) else 0.0
    needed = (total + 1) * (1 - alpha)
    reached = np.flatnonzero(above >= needed - _ROUNDING)
    if not len(reached):
        least = int(np.ceil(1 / alpha - 1 - _ROUNDING))
        what = f"sets with alpha {alpha:g} need {least:,} rows held out{whose}, and there are {total:,.6g}"
        raise BncliError(what, hint="ask for a larger alpha, or learn from more rows")
    return float(falling[reached[0]])
