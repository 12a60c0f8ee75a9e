"""Explain a model by its effects, or the prediction for each row by the contributions of these effects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bncli.engine.data.schema import Unseen
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Model
from bncli.engine.prediction.contributions import Explanation
from bncli.engine.prediction.edits import with_positive_label
from bncli.errors import BncliError
from bncli.files.artifacts.model import read_model
from bncli.files.exports.score_layout import most_probable
from bncli.files.reading.source import Source
from bncli.steps.effects_and_regions import EffectsReport, effects_report
from bncli.steps.row_scoring import RowScorer
from bncli.steps.run import with_memory_limit
from bncli.watch import Run


class NamedContribution(NamedTuple):
    """The contribution of an effect to the log-odds of the prediction.

    If the effect has several attributes, their names and values are joined by `&`.
    """

    effect: str
    value: str
    log_odds: float


class ExplainedRow(NamedTuple):
    """The most probable label of a row, its probability p, and the contributions to its log-odds.

    row: the number of the row, counted from 1 without the header and malformed rows. log_odds: the log-odds of the
    prediction, in nats, which are base + the sum of the contributions + rest; a calibration other than a temperature is
    not included.
    """

    row: int
    prediction: str
    p: float
    log_odds: float
    base: float
    contributions: tuple[NamedContribution, ...]
    rest: float

    def as_json(self) -> dict[str, Any]:
        """Return every field by name."""
        return self._asdict() | {"contributions": [one._asdict() for one in self.contributions]}


@dataclass(frozen=True)
class ExplainReport:
    """Either the labels and effects of a model or the explanations of rows; the unused fields are None or empty."""

    model: str
    labels: tuple[str, ...] = ()
    effects: EffectsReport | None = None
    rows: tuple[ExplainedRow, ...] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the effects, with the same keys as `inspect`, or the explained rows."""
        if self.effects is not None:
            return {"model": self.model, "labels": list(self.labels)} | self.effects.as_json()
        return {"model": self.model, "rows": [row.as_json() for row in self.rows or ()]}


def explain_model(path: str, positive: str | None = None) -> ExplainReport:
    model = with_positive_label(read_model(path), positive)
    return ExplainReport(path, model.schema.labels, effects_report(model))


def explain_rows(
    path: str, source: Source, top: int, rows: tuple[int, int] | None = None, *, unseen: Unseen | None, run: Run = Run()
) -> Iterator[ExplainedRow]:
    """Yield the explained rows of a table, each with its `top` contributions of largest absolute value, or fewer.

    rows: the first and the last row to explain, counted from 1, or None for all rows. Raises the errors of scoring, and
    BncliError if the table ends before the first row to explain.
    """
    model = read_model(path)
    scorer = RowScorer(model, strict=(unseen or model.schema.unseen) == "error", explain=top)
    n_read = 0
    with scorer.open(source, with_memory_limit(run)) as batches:
        for batch in batches:
            first, last = (1, n_read + batch.columns.n_rows) if rows is None else rows
            start, stop = max(first - 1 - n_read, 0), min(last - n_read, batch.columns.n_rows)
            if start < stop:
                for block in scorer.score(batch.slice(start, stop)):
                    assert block.why is not None
                    yield from _explained_rows(model, block.log_p, block.why, n_read + start + block.rows.start + 1)
            n_read += batch.columns.n_rows
            if rows is not None and n_read >= last:
                break
    if rows is not None and n_read < rows[0]:
        what = f"there is no row {rows[0]:,}: the table has {n_read:,} row{'s' * (n_read != 1)}"
        raise BncliError(what, hint="rows are numbered from 1, without the header and malformed rows")


def _explained_rows(model: Model, log_p: Array, why: Explanation, first: int) -> Iterator[ExplainedRow]:
    """Yield the rows of a block; `first` is the number of the first one."""
    p = np.exp(log_p)
    for t, label in enumerate(most_probable(log_p).tolist()):
        contributions = tuple(
            NamedContribution(
                "&".join(why.terms[term].attributes), "&".join(why.terms[term].values), float(why.contributions[i, t])
            )
            for i, term in enumerate(why.term_of[:, t].tolist())
            if term >= 0
        )
        yield ExplainedRow(
            first + t,
            model.schema.labels[label],
            float(p[label, t]),
            float(why.log_odds[t]),
            float(why.base[t]),
            contributions,
            float(why.rest[t]),
        )
