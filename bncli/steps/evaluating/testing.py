"""A model on a test table: its rows as read, what it says of them, and the report of that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bncli.engine.data.columns import Columns
from bncli.engine.data.encoding import label_codes
from bncli.engine.evaluation.baseline import measure_baseline
from bncli.engine.evaluation.confusion import per_label
from bncli.engine.evaluation.validate import Examined, examine
from bncli.engine.kernels.arrays import Array, Integers
from bncli.engine.model import Model
from bncli.engine.prediction.scoring import compile_scorer
from bncli.files.table import Source, read_labelled
from bncli.steps.evaluating.decisions import decision_report
from bncli.steps.evaluating.report import EvaluateReport, Pooled
from bncli.steps.run import limited
from bncli.watch import Run, Stage


class Tested(NamedTuple):
    """The rows of a test set: their labels as positions in `labels`, their weights, and what a model says of them."""

    labels: tuple[str, ...]
    codes: Integers
    weights: Array | None
    examined: Examined


def read_test(models: Sequence[Model], source: Source, run: Run) -> Columns:
    """The rows of a test table, with all columns that the models use; the first model knows the values of all."""
    run.watch(Stage("read"))
    used = dict.fromkeys(m.schema.attributes[i].name for m in models for i in compile_scorer(m).used)
    memory = limited(run).memory
    return read_labelled(source, models[0].schema, list(used), threads=run.threads, watch=run.watch, memory=memory)


def tested_rows(model: Model, rows: Columns, source: Source, run: Run) -> Tested:
    """Has the model predict the rows of a table."""
    run.watch(Stage("score"))
    examined = examine(model, rows, allow_missing=source.allow_missing_columns)
    return Tested(model.schema.labels, label_codes(rows, model.schema), rows.weights, examined)


def single_report(
    protocol: str, tested: Tested, frequencies: Array, seconds: Mapping[str, float | None]
) -> EvaluateReport:
    """The report of one test set."""
    labels, codes, weights, examined = tested
    confusion = examined.metrics.confusion
    pooled = Pooled(examined.log_probabilities, codes, weights)
    return EvaluateReport(
        rows=len(codes),
        protocol=protocol,
        metrics=examined.metrics.figures(),
        base=measure_baseline(frequencies, codes, weights),
        seconds=dict(seconds),
        labels=labels,
        confusion=confusion.tolist(),
        per_label=per_label(confusion),
        pooled=pooled,
        decisions=decision_report([examined.decided], pooled),
    )
