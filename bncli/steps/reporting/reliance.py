"""Can I rely on it? Missing and unseen values, drift, groups of rows that fare badly, values with few rows behind them.

Drift of a column is the population stability index, sum over its values of (a - e) ln(a / e), a the shares in the data
and e those in training; a share of 0 counts as half a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bncli.engine.data.columns import Columns
from bncli.engine.data.encoding import Encoded, encode_attributes
from bncli.engine.data.schema import Attribute
from bncli.engine.explanation.wording import value_names
from bncli.engine.kernels.arrays import Array, Integers
from bncli.engine.model import Model
from bncli.engine.prediction.scoring import compile_scorer
from bncli.files.formats.report.blocks import Block, Grid, Prose, Section
from bncli.steps.evaluating.report import EvaluateReport
from bncli.steps.reporting.words import count, listed, percent

QUESTION = "Can I rely on it?"
MOST_COLUMNS = 40
MOST_GROUPS = 12
MOST_ASKED = 500
"""Columns whose values are looked at as groups of rows."""
FEW = 5
"""Rows that say little of a value."""
_LEAST_GROUP = 30
_SOME, _LARGE = 0.1, 0.25
"""Customary bounds of the index."""


@dataclass(frozen=True)
class Scored:
    """A table that was scored: codes of the attributes `used`, with its report."""

    used: Sequence[int]
    encoded: Encoded
    report: EvaluateReport

    @classmethod
    def of(cls, model: Model, rows: Columns, report: EvaluateReport, *, allow_missing: bool) -> Scored:
        """Codes all columns that the model looks at."""
        used = compile_scorer(model).used
        return cls(used, encode_attributes(rows, model.schema, used, allow_missing=allow_missing), report)


def reliance_section(model: Model, scored: Scored | None, warnings: Sequence[str] = ()) -> Section:
    """The section on a model, on data if there are any, and with what `fit` warned of."""
    blocks: list[Block] = [Prose(text, "warning") for text in warnings]
    blocks += _rare(model)
    if scored is None:
        blocks.append(Prose("Missing and unseen values, drift and groups of rows need data: add --data TEST.", "gap"))
    else:
        blocks += [*_columns(model, scored), *_groups(model, scored)]
    return Section("rely", QUESTION, tuple(blocks))


def _rare(model: Model) -> Iterator[Block]:
    found = []
    for i in sorted(model.attributes):
        attribute = model.schema.attributes[i]
        for name, rows in zip(value_names(attribute), attribute.frequencies, strict=False):
            if 0 < rows < FEW:
                found.append(f"{attribute.name} {name}")
    if found:
        values = count(len(found), "value")
        yield Prose(f"{values} had fewer than {FEW} training rows, so that little is known of them: {listed(found)}.")
    else:
        yield Prose(f"Every value that the model knows had {FEW} training rows or more.")


def _columns(model: Model, scored: Scored) -> Iterator[Block]:
    """Missing, unseen and drift of the columns, the farthest first."""
    lines = []
    report = scored.report
    weights = report.pooled.weights
    n = max(report.rows, 1)
    for place, i in enumerate(scored.used):
        attribute = model.schema.attributes[i]
        drift = stability_index(attribute, scored.encoded.codes[place], weights)
        total = sum(attribute.frequencies) + attribute.missing_weight
        before = attribute.missing_weight + (attribute.frequencies[-1] if attribute.missing else 0.0)
        shares = (before / total if total else 0.0, scored.encoded.missing[place] / n, scored.encoded.unseen[place] / n)
        lines.append((drift, attribute.name, shares))
    lines.sort(key=lambda line: -line[0])
    large = [name for drift, name, _ in lines if drift > _LARGE]
    if large:
        yield Prose(f"These columns are no longer what they were in training: {listed(large)}.", "warning")
    elif lines:
        yield Prose(
            f"No column has drifted far from training; the farthest, {lines[0][1]}, has an index of {lines[0][0]:.3f}."
        )
    rows = [
        (name, *map(percent, shares), f"{drift:.3f}", _verdict(drift)) for drift, name, shares in lines[:MOST_COLUMNS]
    ]
    headings = ("column", "missing in training", "missing in data", "never seen in training", "drift (PSI)", "verdict")
    yield Grid("Columns: data against training", headings, rows, (1, 2, 3, 4))
    if len(lines) > MOST_COLUMNS:
        yield Prose(f"{count(len(lines) - MOST_COLUMNS, 'column')} more drifted less.", "gap")


def _verdict(drift: float) -> str:
    return "large" if drift > _LARGE else "some" if drift > _SOME else "none"


def stability_index(attribute: Attribute, codes: Integers, weights: Array | None) -> float:
    """The index of one column over the values of training; unknown values are not counted."""
    expected = np.array(attribute.frequencies, np.float64)
    actual = np.bincount(codes, weights, attribute.cardinality + 1)[: attribute.cardinality].astype(np.float64)
    if not expected.sum() > 0 or not actual.sum() > 0:
        return 0.0
    e, a = (np.maximum(one, 0.5) / np.maximum(one, 0.5).sum() for one in (expected, actual))
    return float(((a - e) * np.log(a / e)).sum())


def _groups(model: Model, scored: Scored) -> Iterator[Block]:
    """Rows with one value of a column, where the loss is highest."""
    log_p, labels, weights = scored.report.pooled
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
    yield Prose(
        f"It fares worst where {worst[3]} is {worst[4]}: {percent(worst[1])} of {count(round(worst[2]), 'row')} are "
        f"decided wrong, of all rows {percent(error)}."
    )
    rows = [
        (name, value, f"{mass:,.10g}", percent(wrongs), f"{loss:.4f}")
        for loss, wrongs, mass, name, value in found[:MOST_GROUPS]
    ]
    rows.append(("all rows", "", f"{float(weights.sum()):,.10g}", percent(error), f"{mean:.4f}"))
    yield Grid(
        "Groups of rows with the highest log-loss", ("column", "value", "rows", "wrong", "log-loss"), rows, (2, 3, 4)
    )
