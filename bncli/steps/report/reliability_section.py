"""Can I rely on it? Missing and unseen values, drift, groups of rows that fare badly, values with few rows behind them.

Drift is that of a monitor (`bncli.engine.prediction.monitoring`): the stability index, and whether chance can tell.

The groups of rows that were asked for: how well the model does for each, against all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bncli.engine.data.columns import Columns
from bncli.engine.data.encoding import EncodedAttributes, encode_attributes
from bncli.engine.model import Model
from bncli.engine.prediction.contributions import value_names
from bncli.engine.prediction.monitoring import Drift, drift_of
from bncli.engine.prediction.scoring import compile_scorer
from bncli.files.pictures.page import Block, Grid, Paragraph, Section
from bncli.steps.evaluate.report import EvaluateReport
from bncli.steps.report.page_text import count, figure, listed, percent

GROUPS_MOST_GROUPS = 40
_LEAST = 30
"""Rows of a group that is called the worst."""
QUESTION = "Can I rely on it?"
MOST_COLUMNS = 40
MOST_GROUPS = 12
MOST_ASKED = 500
"""Columns whose values are looked at as groups of rows."""
FEW = 5
"""Rows that say little of a value."""
_LEAST_GROUP = 30


@dataclass(frozen=True)
class ScoredTable:
    """A table that was scored: codes of the attributes `used`, with its report."""

    used: Sequence[int]
    encoded: EncodedAttributes
    report: EvaluateReport

    @classmethod
    def of(cls, model: Model, rows: Columns, report: EvaluateReport, *, allow_missing: bool) -> ScoredTable:
        """Return codes all columns that the model looks at."""
        used = compile_scorer(model).used
        return cls(used, encode_attributes(rows, model.schema, used, allow_missing=allow_missing), report)


class _Column(NamedTuple):
    """A column: shares of rows in which it was missing in training, is missing, has a value never seen; its drift."""

    name: str
    shares: tuple[float, float, float]
    drift: Drift

    @property
    def verdict(self) -> str:
        return "drifted" if self.drift.drifted else "as in training"


def group_blocks(report: EvaluateReport) -> Iterator[Block]:
    """Yield a sentence and a table per column, the groups with the highest error first.

    Nothing where none were asked for.
    """
    groups = () if report.groups is None else report.groups.groups
    error = report.metrics["error"] or 0.0
    for by in dict.fromkeys(group.by for group in groups):
        own = sorted((g for g in groups if g.by == by), key=lambda g: -(g.metrics["error"] or 0.0))
        rows = []
        for group in own[:GROUPS_MOST_GROUPS]:
            bounds = group.intervals.get("error")
            between = "–" if bounds is None else " to ".join(map(percent, bounds))
            told = (percent(group.metrics["error"] or 0.0), between, figure(group.metrics["log_loss"]))
            right = [group.decisions["decided_accuracy"]] if group.decisions else []
            by_rule = ("–" if share is None else percent(1 - share) for share in right)
            rows.append((_named(group.value), f"{group.rows:,}", *told, figure(group.metrics["auc"]), *by_rule))
        worst = next((group for group in own if group.rows >= _LEAST), own[0])
        how = "predicted" if worst.decisions else "decided"
        wrong = f"{percent(worst.metrics['error'] or 0.0)} of {count(worst.rows, 'row')} are {how} wrong"
        yield Paragraph(f"By {by} it fares worst for {_named(worst.value)}: {wrong}, of all rows {percent(error)}.")
        headings = (
            by,
            "rows",
            "wrong",
            "95 % interval",
            "log-loss",
            "AUC",
            *["wrong by the rule"] * bool(worst.decisions),
        )
        yield Grid(f"By {by}, the highest error first", headings, rows, tuple(range(1, len(headings))))
        if len(own) > GROUPS_MOST_GROUPS:
            yield Paragraph(f"{count(len(own) - GROUPS_MOST_GROUPS, 'group')} more have a lower error.", "gap")


def _named(value: str | None) -> str:
    return "missing" if value is None else value


def reliance_section(model: Model, scored: ScoredTable | None, warnings: Sequence[str] = ()) -> Section:
    """Return the section on a model, on data if there are any, and with what `fit` warned of."""
    blocks: list[Block] = [Paragraph(text, "warning") for text in warnings]
    blocks += _rare(model)
    if scored is None:
        blocks.append(
            Paragraph("Missing and unseen values, drift and groups of rows need data: add --data TEST.", "gap")
        )
    else:
        blocks += [*_columns(model, scored), *_groups(model, scored), *group_blocks(scored.report)]
    return Section("rely", QUESTION, tuple(blocks))


def _rare(model: Model) -> Iterator[Block]:
    found = []
    for i in sorted(model.attributes):
        attribute = model.schema.attributes[i]
        for name, rows in zip(value_names(attribute), attribute.frequencies, strict=False):
            if 0 < rows < FEW:
                found.append(f"{attribute.name} {name}")
    if found:
        values, them = count(len(found), "value"), "it" if len(found) == 1 else "them"
        yield Paragraph(
            f"{values} had fewer than {FEW} training rows, so that little is known of {them}: {listed(found)}."
        )
    else:
        yield Paragraph(f"Every value that the model knows had {FEW} training rows or more.")


def _columns(model: Model, scored: ScoredTable) -> Iterator[Block]:
    """Missing, unseen and drift of the columns, the farthest first."""
    lines = [_column(model, scored, place) for place in range(len(scored.used))]
    lines.sort(key=lambda line: -(line.drift.psi or 0.0))
    drifted = [line.name for line in lines if line.drift.drifted]
    if drifted:
        yield Paragraph(f"Farther from training than chance takes them: {listed(drifted)}.", "warning")
    elif lines:
        told = f"the farthest, {lines[0].name}, has an index of {figure(lines[0].drift.psi)}"
        yield Paragraph(f"No column has drifted from training; {told}.")
    rows = [
        (line.name, *map(percent, line.shares), figure(line.drift.psi), figure(line.drift.psi_expected), line.verdict)
        for line in lines[:MOST_COLUMNS]
    ]
    shares = ("missing in training", "missing in data", "never seen in training")
    headings = ("column", *shares, "drift (PSI)", "by chance", "verdict")
    yield Grid("Columns: data against training", headings, rows, (1, 2, 3, 4, 5))
    if len(lines) > MOST_COLUMNS:
        yield Paragraph(f"{count(len(lines) - MOST_COLUMNS, 'column')} more drifted less.", "gap")


def _column(model: Model, scored: ScoredTable, place: int) -> _Column:
    attribute, n = model.schema.attributes[scored.used[place]], max(scored.report.rows, 1)
    training = np.array(attribute.frequencies, np.float64)
    weights = scored.report.predictions.weights
    counts = np.bincount(scored.encoded.codes[place], weights, attribute.cardinality + 1).astype(np.float64)
    unseen, missing = scored.encoded.unseen[place], scored.encoded.missing[place]
    drift = drift_of(counts[: attribute.cardinality], training, unseen, 2 * len(scored.used))
    total = float(training.sum()) + attribute.missing_weight
    before = attribute.missing_weight + (float(training[-1]) if attribute.missing else 0.0)
    return _Column(attribute.name, (before / total if total else 0.0, missing / n, unseen / n), drift)


def _groups(model: Model, scored: ScoredTable) -> Iterator[Block]:
    """Yield rows with one value of a column, where the loss is highest."""
    log_p, labels, weights = scored.report.predictions
    weights = np.ones(len(labels)) if weights is None else weights
    losses = -log_p[labels, np.arange(len(labels))]
    wrong = log_p.argmax(axis=0) != labels
    least = max(_LEAST_GROUP, 0.01 * float(weights.sum()))
    found = []
    for place, i in enumerate(scored.used[:MOST_ASKED]):
        attribute, codes = model.schema.attributes[i], scored.encoded.codes[place]
        masses, loss, errors = (
            np.bincount(codes, weights * one, attribute.cardinality + 1) for one in (np.ones(len(codes)), losses, wrong)
        )
        names = value_names(attribute)
        for code in np.flatnonzero(masses >= least).tolist():
            mass = masses[code]
            found.append((loss[code] / mass, errors[code] / mass, mass, attribute.name, names[code]))
    if not found:
        return
    found.sort(key=lambda one: (-one[0], one[3], one[4]))
    mean, error = float(np.average(losses, weights=weights)), float(np.average(wrong, weights=weights))
    worst = found[0]
    yield Paragraph(
        f"It fares worst where {worst[3]} is {worst[4]}: {percent(worst[1])} of {count(round(worst[2]), 'row')} are "
        f"decided wrong, of all rows {percent(error)}; log-loss {figure(worst[0])}, of all rows {figure(mean)}."
    )
    rows = [
        (name, value, f"{mass:,.10g}", percent(wrongs), f"{loss:.4f}")
        for loss, wrongs, mass, name, value in found[:MOST_GROUPS]
    ]
    rows.append(("all rows", "", f"{float(weights.sum()):,.10g}", percent(error), f"{mean:.4f}"))
    yield Grid(
        "Groups of rows with the highest log-loss", ("column", "value", "rows", "wrong", "log-loss"), rows, (2, 3, 4)
    )


def seems_trained_on(model: Model, scored: ScoredTable) -> bool:
    """Return whether the rows are as many as those of training, and have every value of every column as often."""
    lines = [_column(model, scored, place).drift for place in range(len(scored.used))]
    return scored.report.rows == model.n_rows and bool(lines) and all(one.psi == 0.0 for one in lines)
