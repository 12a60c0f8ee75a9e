"""The section on reliability: missing and unseen values, drift, groups of rows with a high error, and rare values.

Drift is computed by `bncli.engine.prediction.monitoring`: a stability index, and a test of whether chance explains it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bncli.engine.data.columns import Columns
from bncli.engine.data.dataset import EncodedAttributes, encode_attributes
from bncli.engine.model import Model
from bncli.engine.prediction.contributions import value_names
from bncli.engine.prediction.monitoring import drift_of
from bncli.engine.prediction.scoring import compile_scorer
from bncli.files.pictures.page import Block, Cards, Grid, Paragraph, Section, count, figure, listed, percent
from bncli.steps.evaluate.report import EvaluateReport

TITLE = "Reliability checks"
MOST_COLUMNS = 40
MOST_GROUPS = 12
"""The maximum number of groups listed; those with the highest log-loss are listed."""
MOST_ASKED = 500
"""The maximum number of columns whose values are compared as groups of rows."""
FEW = 5
"""A value that occurs in fewer training rows than this is rare."""
_MOST_REQUESTED_GROUPS = 40
"""The maximum number of groups shown per column of --by."""
_LEAST = 30
"""Groups with fewer rows than this are not reported as the worst, unless a column of --by has no larger group."""


@dataclass(frozen=True)
class ScoredTable:
    """A scored table: the indices of the attributes used by the model, their codes, and the evaluation."""

    used: Sequence[int]
    encoded: EncodedAttributes
    report: EvaluateReport

    @classmethod
    def of(cls, model: Model, rows: Columns, report: EvaluateReport, *, allow_missing: bool) -> ScoredTable:
        """Encode the columns of `rows` that the model uses, and combine them with the evaluation."""
        used = compile_scorer(model).used
        return cls(used, encode_attributes(rows, model.schema, used, allow_missing=allow_missing), report)


def reliability_section(model: Model, scored: ScoredTable | None, warnings: Sequence[str] = ()) -> Section:
    """Return the section with the warnings of `fit`, the rare values and, if rows were scored, drift and groups."""
    blocks: list[Block] = [Paragraph(text, "warning") for text in warnings]
    rare = []
    for i in sorted(model.attributes):
        attribute = model.schema.attributes[i]
        for name, rows in zip(value_names(attribute), attribute.frequencies, strict=False):
            if 0 < rows < FEW:
                rare.append(f"{attribute.name} {name}")
    if rare:
        values, them = count(len(rare), "value"), "its" if len(rare) == 1 else "their"
        text = f"{values} had fewer than {FEW} training rows, so {them} effects are uncertain: {listed(rare)}."
    else:
        text = f"Every value had at least {FEW} training rows."
    blocks.append(Paragraph(text))
    if scored is None:
        blocks.append(
            Paragraph(
                "Missing and unseen values, drift and groups need rows with known classes: add --data TEST.", "gap"
            )
        )
    else:
        checks = [*_drift_blocks(model, scored), *_worst_groups(model, scored)]
        tables = [block for block in checks if isinstance(block, Grid)]
        blocks += [*(block for block in checks if not isinstance(block, Grid)), Cards(tables)]
        blocks += group_blocks(scored.report)
    return Section("rely", TITLE, tuple(blocks))


def _drift_blocks(model: Model, scored: ScoredTable) -> Iterator[Block]:
    """Yield the drifted columns, and a table of missing values, unseen values and drift.

    The table has the MOST_COLUMNS columns with the highest stability index (PSI), in descending order.
    """
    # for each used column, the drift and three fractions of rows: missing in training, missing here, and unseen
    n, weights = max(scored.report.rows, 1), scored.report.predictions.weights
    lines = []
    for place, i in enumerate(scored.used):
        attribute = model.schema.attributes[i]
        training = np.array(attribute.frequencies, np.float64)
        counts = np.bincount(scored.encoded.codes[place], weights, attribute.cardinality + 1).astype(np.float64)
        unseen, missing = scored.encoded.unseen[place], scored.encoded.missing[place]
        drift = drift_of(counts[: attribute.cardinality], training, unseen, 2 * len(scored.used))
        total = float(training.sum()) + attribute.missing_weight
        before = attribute.missing_weight + (float(training[-1]) if attribute.missing else 0.0)
        lines.append((attribute.name, (drift, (before / total if total else 0.0, missing / n, unseen / n))))
    lines.sort(key=lambda line: -(line[1][0].psi or 0.0))
    drifted = [name for name, (drift, _) in lines if drift.drifted]
    if drifted:
        yield Paragraph(f"These columns have drifted from the training data: {listed(drifted)}.", "warning")
    elif lines:
        farthest, (drift, _) = lines[0]
        text = f"the highest stability index (PSI) is {figure(drift.psi)} ({farthest})"
        yield Paragraph(f"No column has drifted from the training data; {text}.")
    rows = []
    for name, (drift, shares) in lines[:MOST_COLUMNS]:
        verdict = "yes" if drift.drifted else "no"
        rows.append((name, *map(percent, shares), figure(drift.psi), figure(drift.psi_expected), verdict))
    titles = ("missing in training", "missing in data", "unseen in training")
    headings = ("column", *titles, "PSI", "PSI by chance", "drifted")
    yield Grid("Columns compared with the training data", headings, rows, (1, 2, 3, 4, 5))
    if len(lines) > MOST_COLUMNS:
        yield Paragraph(f"{count(len(lines) - MOST_COLUMNS, 'column')} with a lower PSI not shown.", "gap")


def _worst_groups(model: Model, scored: ScoredTable) -> Iterator[Block]:
    """Yield the MOST_GROUPS groups of rows with the highest log-loss; the rows of a group have one value of one column.

    The columns are the first MOST_ASKED that the model uses. Groups whose total weight is below _LEAST, or below 1 % of
    the weight of all rows, are left out.
    """
    log_p, labels, weights = scored.report.predictions
    weights = np.ones(len(labels)) if weights is None else weights
    losses = -log_p[labels, np.arange(len(labels))]
    wrong = log_p.argmax(axis=0) != labels
    least = max(_LEAST, 0.01 * float(weights.sum()))
    groups = []
    for place, i in enumerate(scored.used[:MOST_ASKED]):
        attribute, codes = model.schema.attributes[i], scored.encoded.codes[place]
        masses, loss, errors = (
            np.bincount(codes, weights * per_row, attribute.cardinality + 1)
            for per_row in (np.ones(len(codes)), losses, wrong)
        )
        names = value_names(attribute)
        for code in np.flatnonzero(masses >= least).tolist():
            mass = masses[code]
            groups.append((loss[code] / mass, errors[code] / mass, mass, attribute.name, names[code]))
    if not groups:
        return
    groups.sort(key=lambda group: (-group[0], group[3], group[4]))
    mean, error = float(np.average(losses, weights=weights)), float(np.average(wrong, weights=weights))
    highest, wrongs, mass, name, value = groups[0]
    yield Paragraph(
        f"The highest log-loss is {figure(highest)} for {name} {value} (all rows: {figure(mean)}); "
        f"error rate {percent(wrongs)} on {count(round(mass), 'row')} (all rows: {percent(error)})."
    )
    rows = [
        (name, value, f"{mass:,.10g}", percent(wrongs), f"{loss:.4f}")
        for loss, wrongs, mass, name, value in groups[:MOST_GROUPS]
    ]
    rows.append(("all rows", "", f"{float(weights.sum()):,.10g}", percent(error), f"{mean:.4f}"))
    yield Grid(
        "Groups of rows with the highest log-loss",
        ("column", "value", "rows", "error rate", "log-loss"),
        rows,
        (2, 3, 4),
    )


def group_blocks(report: EvaluateReport) -> Iterator[Block]:
    """Yield a sentence and a table for each column of --by.

    The table has the _MOST_REQUESTED_GROUPS groups with the highest error rate, in descending order.
    """
    groups = () if report.groups is None else report.groups.groups
    error = report.metrics["error"] or 0.0
    event = report.labels[1] if len(report.labels) == 2 else None
    for by in dict.fromkeys(group.by for group in groups):
        own = sorted((g for g in groups if g.by == by), key=lambda g: -(g.metrics["error"] or 0.0))
        rows = []
        for group in own[:_MOST_REQUESTED_GROUPS]:
            bounds = group.intervals.get("error")
            interval = "–" if bounds is None else " to ".join(map(percent, bounds))
            wrong = percent(group.metrics["error"] or 0.0)
            name = "missing" if group.value is None else group.value
            row = [name, f"{group.rows:,}", wrong, interval, figure(group.metrics["log_loss"])]
            row.append(figure(group.metrics["auc"]))
            if group.decisions:
                accuracy = group.decisions["decided_accuracy"]
                row.append("–" if accuracy is None else percent(1 - accuracy))
            if event is not None:
                row += ["–" if rate is None else percent(rate.share) for rate in group.rates[event].values()]
            rows.append(row)
        worst = next((group for group in own if group.rows >= _LEAST), own[0])
        name = "missing" if worst.value is None else worst.value
        wrong = f"{percent(worst.metrics['error'] or 0.0)} on {count(worst.rows, 'row')}"
        yield Paragraph(f"By {by}, the highest error rate is that of {name}: {wrong} (all rows: {percent(error)}).")
        headings = [by, "rows", "error rate", "95 % interval", "log-loss", "AUC"]
        if worst.decisions:
            headings.append("error rate of the rule")
        if event is not None:
            verb = "decided" if worst.decisions else "predicted"
            headings += [f"{verb} {event}", "true positive rate", "false positive rate"]
        yield Grid(f"Groups by {by}, highest error rate first", headings, rows, tuple(range(1, len(headings))))
        if len(own) > _MOST_REQUESTED_GROUPS:
            yield Paragraph(
                f"{count(len(own) - _MOST_REQUESTED_GROUPS, 'group')} with a lower error rate not shown.", "gap"
            )
