"""Decisions by predicted probabilities: costs, thresholds, abstention, and prediction sets.

A rule maps probabilities to decisions and does not change the probabilities:

    costs       d_t = argmin over d of sum over y of P(y | x_t) costs[y][d], the expected cost; ties go to the first
    threshold   the second of two labels if P(second | x_t) >= threshold, the first otherwise
    neither     the most probable label; ties go to the first
    abstain     no decision if max over y of P(y | x_t) < abstain_below, regardless of the costs or the threshold
    sets        every label whose probability reaches its threshold for prediction sets

Costs are finite and at least 0. A correct decision costs 0 unless its cost is given.

Thresholds. The candidates t are the probabilities p of the second label that occur among held-out rows, in descending
order. With row weights,

    TP(t), FP(t) = weights of the rows of the second and first label with p >= t,   P, N = total weights of both labels
    recall = TP / P,  precision = TP / (TP + FP),  f1 = 2 TP / (P + TP + FP)
    balanced accuracy = (TP/P + 1 - FP/N) / 2
    mcc = (TP (N - FP) - FP (P - TP)) / sqrt((TP + FP)(P + N - TP - FP) P N)

`best:NAME` chooses the candidate with the highest value of a metric, the highest candidate if there are ties.
`recall=R` chooses the highest candidate whose recall is at least R, and `precision=R` the lowest whose precision is at
least R. `top=X%` chooses the lowest candidate that at most X per cent of the rows reach. The threshold is halfway
between this candidate and the next lower one, or between the lowest candidate and 0. 0 / 0 counts as 0, and differences
below 1e-12 do not count.

Prediction sets (split conformal prediction). A held-out row has the conformity P(y_t | x_t) of its own label. With n
such rows, weights w and their sum W, the set of a new row holds every label whose probability reaches

    the highest conformity such that rows of weight (W + 1)(1 - alpha) or more have at least this conformity,

which with unit weights (W = n) is the ceil((n + 1)(1 - alpha))-th largest conformity. If the held-out rows and the new
one are exchangeable, the set misses the true label with a probability of at most alpha (Vovk, Gammerman & Shafer 2005;
the score of Sadinle, Lei & Wasserman 2019, JASA 114). With sets by class, each label has a threshold from its own rows,
and the guarantee holds within each class. A set may be empty. A row of integer weight w counts as w rows.
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

ABSTAINED = -1
TABLE_LINES = 101
_SAME = 1e-12
_ROUNDING = 1e-9
"""The tolerance for alpha, in rows: (n + 1)(1 - alpha) may be an integer although its floating-point value is not."""


class DecisionOptions(NamedTuple):
    """The command-line options about decisions, each None if not given.

    costs: `true:decision=cost,...`. threshold: a number or a criterion, as a string. sets: alpha, the allowed error
    rate of prediction sets. sets_by: "all" or "class".
    """

    costs: str | None = None
    threshold: str | None = None
    abstain_below: float | None = None
    sets: float | None = None
    sets_by: str | None = None

    @property
    def need_held_out_rows(self) -> bool:
        """Whether prediction sets are requested, or a threshold that must be chosen on held-out rows."""
        return self.sets is not None or (self.threshold is not None and parse_decimal(self.threshold) is None)


def make_rule(
    options: DecisionOptions, labels: tuple[str, ...], class_name: str, stored: DecisionRule | None = None
) -> DecisionRule | None:
    """Return the stored rule with the parts given by the options replaced, or None without both rule and options.

    Costs replace a stored threshold, and a threshold replaces stored costs. A criterion chooses the threshold on the
    held-out rows of the stored rule. Raises UsageError for options that do not fit these labels, and BncliError if
    there are no such rows, or if no threshold meets the criterion.
    """
    if options == DecisionOptions():
        return stored
    rule = stored or DecisionRule()
    if options.costs is not None:
        rule = replace(rule, costs=cost_matrix(options.costs, labels, class_name), threshold=None)
    if options.threshold is not None:
        _refuse_many_labels(labels, class_name)
        number = parse_decimal(options.threshold)
        if number is not None:
            threshold = Threshold(number)
        elif rule.held_out is None:
            what = f"the model has no held-out rows from which to choose the threshold {options.threshold}"
            raise BncliError(what, hint=f"fit it with --threshold {options.threshold}, or give a number")
        else:
            threshold = choose_threshold(options.threshold, held_out_steps(rule.held_out))
        rule = replace(rule, threshold=threshold, costs=None)
    if options.abstain_below is not None:
        rule = replace(rule, abstain_below=options.abstain_below)
    if options.sets is not None:
        by = options.sets_by or ("class" if rule.sets is not None and rule.sets.by_class else "all")
        rule = replace(rule, sets=PredictionSets(options.sets, by == "class"))
    elif options.sets_by is not None and rule.sets is not None:
        rule = replace(rule, sets=rule.sets._replace(by_class=options.sets_by == "class"))
    return rule


def check_options(options: DecisionOptions, labels: tuple[str, ...], class_name: str) -> None:
    """Raise UsageError if `costs` or `threshold` do not fit the labels, before anything is learned."""
    if options.costs is not None:
        cost_matrix(options.costs, labels, class_name)
    if options.threshold is not None:
        _refuse_many_labels(labels, class_name)


def _refuse_many_labels(labels: tuple[str, ...], class_name: str) -> None:
    if len(labels) != 2:
        what = f"--threshold needs a class with two labels, but {class_name!r} has {len(labels)}"
        raise UsageError(what, hint="use --costs, which works for any number of labels")


def cost_matrix(text: str, labels: tuple[str, ...], class_name: str) -> tuple[tuple[float, ...], ...]:
    """Parse `true:decision=cost,...` into the matrix costs[true][decision].

    Costs of correct decisions may be left out and are then 0. Raises UsageError for ambiguous or malformed keys,
    unknown labels, repeated pairs, wrong decisions without a cost, negative costs, and costs that are all 0.
    """
    costs: dict[tuple[str, str], float] = {}
    for key, cost in parse_label_numbers(text).items():
        # labels may contain colons if one reading of TRUE:DECISION fits
        parts = key.split(":")
        pairs = [(":".join(parts[:i]).strip(), ":".join(parts[i:]).strip()) for i in range(1, len(parts))]
        matching = [pair for pair in pairs if pair[0] in labels and pair[1] in labels]
        if len(matching) > 1:
            raise UsageError(f"--costs can be read in two ways at {key!r}", hint="rename labels that contain colons")
        if not pairs:
            what = f"--costs has the key {key!r}, which is not of the form TRUE:DECISION"
            raise UsageError(what, hint="for example yes:no=5,no:yes=1")
        if not matching:
            unknown = next((label for label in pairs[0] if label not in labels), key)
            what = f"--costs names {unknown!r}, which is not a label of the class {class_name!r}"
            listed = ", ".join(labels[:10]) + (", ..." if len(labels) > 10 else "")
            raise UsageError(what, hint=f"its labels are {listed}")
        true, decision = pair = matching[0]
        if pair in costs:
            what = f"--costs gives two costs for deciding {decision!r} when {true!r} is true"
            raise UsageError(what, hint="give each pair once")
        if cost < 0:
            what = f"--costs has the cost {cost:g} for deciding {decision!r} when {true!r} is true"
            hint = "a cost must be 0 or more; adding the same number to all costs of a true label changes no decision"
            raise UsageError(what, hint=hint)
        costs[pair] = cost
    for true in labels:
        for decision in labels:
            if (true, decision) not in costs and true != decision:
                what = f"--costs does not give the cost of deciding {decision!r} when {true!r} is true"
                raise UsageError(
                    what, hint=f"add {true}:{decision}=COST; only costs of correct decisions may be left out"
                )
    matrix = tuple(tuple(costs.get((true, decision), 0.0) for decision in labels) for true in labels)
    if not any(map(any, matrix)):
        raise UsageError("all costs in --costs are 0", hint="give at least one cost above 0")
    return matrix


def without_held_out(rule: DecisionRule) -> DecisionRule | None:
    """Return the parts of a rule that do not depend on held-out rows, or None if there are none."""
    is_chosen = rule.threshold is not None and bool(rule.threshold.chosen)
    rest = replace(rule, threshold=None if is_chosen else rule.threshold, sets=None, held_out=None)
    return None if rest == DecisionRule() else rest


@dataclass(frozen=True)
class DecidedRows:
    """The decisions for N rows.

    codes (N,): the indices of the labels, ABSTAINED where there is no decision. expected_costs (N,): the expected cost
    of each decision, also where the rule abstains from it; None without costs. members (K, N): whether a label is in
    the row's prediction set; None without sets.
    """

    codes: Index
    expected_costs: Array | None = None
    members: Mask | None = None


@dataclass(frozen=True)
class Decider:
    """A rule prepared for deciding rows.

    costs[true][decision] (K, K) and set_thresholds (K,) are None if the rule has no costs or no prediction sets,
    respectively.
    """

    rule: DecisionRule
    costs: Array | None
    set_thresholds: Array | None

    @classmethod
    def of(cls, rule: DecisionRule, labels: tuple[str, ...]) -> Decider:
        """Prepare a rule for deciding rows.

        Raises BncliError for a rule with prediction sets if there are no held-out rows or too few, if the model was
        learned from these rows too, or if a label contains "|".
        """
        costs = None if rule.costs is None else np.array(rule.costs)
        if rule.sets is None:
            return cls(rule, costs, None)
        if rule.held_out is None or not rule.held_out.split:
            what = "the model has no held-out rows for prediction sets"
            raise BncliError(what, hint="fit it with --sets ALPHA, which holds out rows")
        if ambiguous := [label for label in labels if "|" in label]:
            what = f"the label {ambiguous[0]!r} contains a '|', which separates the labels of a set"
            raise BncliError(what, hint="rename it in the data")
        return cls(rule, costs, set_thresholds(rule.sets, rule.held_out, labels))

    def decide(self, log_probabilities: Array) -> DecidedRows:
        """Return the decisions for rows with these ln P(y | x_t), shape (K, N)."""
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
        members = None if self.set_thresholds is None else p >= self.set_thresholds[:, np.newaxis]
        return DecidedRows(codes, expected, members)

    def count_disagreements(
        self, p: Array, decided: Sequence[str | None], labels: tuple[str, ...], tolerance: float
    ) -> int:
        """Return how many of the decisions `decided` differ from this rule's decisions for P(y | x_t) (K, N).

        decided: labels, or None for abstentions. Rows whose margin is at most `tolerance` do not count.
        """
        positive = np.maximum(p, np.finfo(np.float64).tiny)
        expected = np.array([*labels, None], dtype=object)[self.decide(np.log(positive)).codes]
        differs = (expected != np.array(decided, dtype=object)) & (self.margins(positive) > tolerance)
        return int(differs.sum())

    def margins(self, p: Array) -> Array:
        """Return the margin (N,) of each decision: how far P(y | x_t), shape (K, N), is from another decision.

        It is a difference of probabilities, or with costs the difference between the two lowest expected costs, divided
        by the largest cost. If the rule abstains below a probability, the margin is at most the distance between this
        probability and the highest one in the row.
        """
        if self.costs is not None:
            ascending = np.sort(self.costs.T @ p, axis=0) / self.costs.max()
            margins = ascending[1] - ascending[0]
        elif self.rule.threshold is not None:
            margins = np.abs(p[1] - self.rule.threshold.value)
        else:
            ascending = np.sort(p, axis=0)
            margins = ascending[-1] - ascending[-2]
        if self.rule.abstain_below is not None:
            margins = np.minimum(margins, np.abs(p.max(axis=0) - self.rule.abstain_below))
        return np.asarray(margins)


def decide_labels(rule: DecisionRule | None, labels: tuple[str, ...], log_p: Array) -> Index:
    """Return the decisions (N,) for ln P(y | x_t) (K, N): by the rule, or the most probable labels if there is none.

    A decision is the index of a label, or ABSTAINED.
    """
    if rule is None or not rule.decides:
        return np.asarray(log_p[1] > log_p[0], np.intp) if len(log_p) == 2 else log_p.argmax(axis=0)
    return Decider.of(replace(rule, sets=None), labels).decide(log_p).codes


def set_thresholds(sets: PredictionSets, scores: HeldOutScores, labels: tuple[str, ...]) -> Array:
    """Return for each label the lowest probability, (K,), with which a prediction set includes it.

    The thresholds come from the conformity of held-out rows. Raises BncliError if these are too few for this alpha.
    """
    if not sets.by_class:
        together = tuple(p for of_label in scores.probabilities for p in of_label)
        weights = None if scores.weights is None else tuple(w for of_label in scores.weights for w in of_label)
        return np.full(len(labels), _conformal_threshold(sets.alpha, together, weights, ""))
    weights_of_labels = scores.weights or (None,) * len(labels)
    rows = zip(scores.probabilities, weights_of_labels, labels, strict=True)
    return np.array([_conformal_threshold(sets.alpha, p, w, f" of the label {label!r}") for p, w, label in rows])


def _conformal_threshold(
    alpha: float, probabilities: tuple[float, ...], weights: tuple[float, ...] | None, whose: str
) -> float:
    order = np.argsort(-np.array(probabilities), kind="stable")
    falling = np.array(probabilities)[order]
    # weight of the rows with this conformity or a higher one
    above = np.arange(1.0, len(falling) + 1) if weights is None else np.array(weights)[order].cumsum()
    total = float(above[-1]) if len(above) else 0.0
    # the first position at which it reaches the rank of the module's docstring
    reached = np.flatnonzero(above >= (total + 1) * (1 - alpha) - _ROUNDING)
    if not len(reached):
        least = int(np.ceil(1 / alpha - 1 - _ROUNDING))
        what = f"sets with alpha {alpha:g} need {least:,} held-out rows{whose}, but there are {total:,.6g}"
        raise BncliError(what, hint="use a larger alpha, or learn from more rows")
    return float(falling[reached[0]])


class ThresholdSteps(NamedTuple):
    """The descending thresholds (S,), and the weights of the rows whose probability reaches each of them.

    true_positives, false_positives (S,): the weights of such rows of the second and of the first label. positives,
    negatives: the total weights of the two labels.
    """

    thresholds: Array
    true_positives: Array
    false_positives: Array
    positives: float
    negatives: float

    @classmethod
    def of(cls, p: Array, positive: Mask, weights: Array | None = None) -> ThresholdSteps:
        """Return the steps at the distinct values of p (N,), the probability of the second label.

        positive (N,): whether a row has this label. weights (N,), or None if every row has weight 1.
        """
        row_weights = np.ones(len(p)) if weights is None else weights
        # ascending in -p, so thresholds fall
        values, place = np.unique(-p, return_inverse=True)
        hits = np.bincount(place, row_weights * positive, len(values))
        misses = np.bincount(place, row_weights * ~positive, len(values))
        return cls(-values, hits.cumsum(), misses.cumsum(), float(hits.sum()), float(misses.sum()))


def held_out_steps(scores: HeldOutScores) -> ThresholdSteps:
    """Return the steps of held-out rows from the stored probabilities of their true labels."""
    # probabilities of the true labels are stored: 1 - p for rows of the first label
    others, own = (np.array(of_label) for of_label in scores.probabilities)
    p = np.concatenate([1 - others, own])
    weights = None if scores.weights is None else np.concatenate([np.array(of_label) for of_label in scores.weights])
    return ThresholdSteps.of(p, np.arange(len(p)) >= len(others), weights)


def threshold_metrics(steps: ThresholdSteps) -> dict[str, Array]:
    """Return the metrics at every step, (S,) each, keyed by name."""
    tp, fp, p, n = steps.true_positives, steps.false_positives, steps.positives, steps.negatives
    selected = tp + fp
    return {
        "selected": _ratio(selected, p + n),
        "precision": _ratio(tp, selected),
        "recall": _ratio(tp, p),
        "false_positive_rate": _ratio(fp, n),
        "f1": _ratio(2 * tp, p + selected),
        "mcc": _ratio(tp * (n - fp) - fp * (p - tp), np.sqrt(np.maximum(selected * (p + n - selected) * p * n, 0))),
        "balanced_accuracy": (_ratio(tp, p) + 1 - _ratio(fp, n)) / 2,
    }


def _ratio(part: Array, whole: Array | float) -> Array:
    """Return part / whole, or 0 where `whole` is 0."""
    whole = np.broadcast_to(whole, part.shape)
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)


def choose_threshold(criterion: str, steps: ThresholdSteps) -> Threshold:
    """Return the threshold chosen by `best:NAME`, `recall=R`, `precision=R` or `top=X%`.

    Raises BncliError if no threshold meets the criterion, or if one of the labels has no row of positive weight.
    """
    metrics = threshold_metrics(steps)
    if not steps.positives or not steps.negatives:
        what = f"--threshold {criterion} needs held-out rows of both labels"
        raise BncliError(what, hint="learn from more rows, or give the threshold as a number")
    name, _, number = criterion.partition("=")
    if criterion.startswith("best:"):
        metric = metrics[criterion.removeprefix("best:").replace("-", "_")]
        reached, shortfall = np.flatnonzero(metric >= metric.max() - _SAME), ""
    elif name == "top":
        share = float(number.removesuffix("%")) / 100
        reached = np.flatnonzero(metrics["selected"] <= share + _SAME)
        shortfall = f"{100 * float(metrics['selected'][0]):.3g} % of the rows have the highest probability"
    else:
        reached = np.flatnonzero(metrics[name] >= float(number) - _SAME)
        shortfall = f"the highest {name} is {float(metrics[name].max()):.4g}"
    if not len(reached):
        what = f"no threshold reaches {criterion} on the held-out rows: {shortfall}"
        raise BncliError(what, hint="give an attainable value")
    # thresholds fall: the last is the lowest
    step = int(reached[-1] if name in ("top", "precision") else reached[0])
    # halfway to the next lower probability, so that rounding moves no row to the other side
    lower = steps.thresholds[step + 1] if step + 1 < len(steps.thresholds) else 0.0
    return Threshold(float(steps.thresholds[step] + lower) / 2, criterion)


def threshold_table(p: Array, positive: Mask, weights: Array | None, costs: Any = None) -> list[dict[str, float]]:
    """Return the metrics at each of the thresholds 0, 0.01, ..., 1, keyed by name.

    p (N,): the probability of the second label. positive (N,): whether a row has it. With costs[true][decision], the
    mean cost per row is included.
    """
    steps = ThresholdSteps.of(p, positive, weights)
    grid = np.arange(TABLE_LINES) / (TABLE_LINES - 1)
    # the number of thresholds at or above each point of the grid, as an index into the counts with a 0 in front
    last = np.searchsorted(-steps.thresholds, -grid, side="right")
    tp, fp = (np.append(0.0, counts)[last] for counts in (steps.true_positives, steps.false_positives))
    metrics = threshold_metrics(steps._replace(thresholds=grid, true_positives=tp, false_positives=fp))
    if costs is not None:
        (true_no, false_yes), (false_no, true_yes) = costs
        n, m = steps.negatives, steps.positives
        total = false_yes * fp + true_no * (n - fp) + true_yes * tp + false_no * (m - tp)
        metrics["cost"] = _ratio(total, n + m)
    columns = {"threshold": grid, **metrics}
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, values, strict=True)) for values in rows]
