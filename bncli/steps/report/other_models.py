"""Other models on the same rows: their figures beside those of the model, and how far apart their log-losses lie.

The difference of two mean log-losses is that of the losses row by row, so that its standard error is that of pairs:
far smaller than what the two alone would say.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bncli.engine.kernels.arrays import Array
from bncli.errors import ModelError, UsageError
from bncli.files.artifacts.model import read_model
from bncli.files.reading.source import Source
from bncli.steps.evaluate.evaluate import read_test_rows, report_on_rows
from bncli.steps.evaluate.report import EvaluateReport
from bncli.watch import Run


class ComparedModel(NamedTuple):
    """A model, by a name of its own, and what came of it on the rows."""

    name: str
    report: EvaluateReport


def check_other_models(beside: Sequence[str], data: Sequence[str]) -> None:
    """Raise UsageError where the data cannot be read once a model."""
    if beside and "-" in data:
        raise UsageError("--beside reads the data once a model, which the standard input cannot be", hint="name a file")


def score_other_models(
    paths: Sequence[str], class_name: str | None, labels: Sequence[str], source: Source, run: Run
) -> list[ComparedModel]:
    """Return each model on the rows of a table, which is read anew for each: every model knows values of its own.

    class_name: None, as it may be. Raises ModelError where a model tells another class.
    """
    if source.bad_rows_file is not None:
        source = replace(source, on_bad_row="skip")  # they are in that file already
    found = []
    # The names of the files, or their paths where these are not told apart.
    names = [os.path.basename(path).removesuffix(".bnc") for path in paths]
    for name, path in zip((names if len(set(names)) == len(names) else list(paths)), paths, strict=True):
        model = read_model(path)
        schema = model.schema
        if class_name not in (None, schema.class_name) or set(schema.labels) != set(labels):
            what = f"a model beside has to tell {class_name or 'the class'} ({', '.join(labels)})"
            raise ModelError(f"{what}; this one tells {schema.class_name} ({', '.join(schema.labels)})", where=path)
        found.append(ComparedModel(name, report_on_rows(model, read_test_rows([model], source, run), source, "", run)))
    return found


def comparison_sentence(report: EvaluateReport, other: ComparedModel) -> str:
    """Whose log-loss is lower, by how much, and whether so many rows can tell."""
    ours, theirs = _losses(report), _losses(other.report)
    weights = report.predictions.weights
    weights = np.ones(len(ours)) if weights is None else weights
    gaps = theirs - ours
    mean = float(np.average(gaps, weights=weights))
    error = 2 * math.sqrt(float((weights**2 * (gaps - mean) ** 2).sum())) / float(weights.sum())
    told = f"that of {other.name} by {abs(mean):.4f} nats a row (± {error:.4f}, twice the standard error)"
    if abs(mean) <= error:
        return f"Its log-loss differs from {told}: so many rows do not tell which is better."
    return f"Its log-loss is {'below' if mean > 0 else 'above'} {told}."


def _losses(report: EvaluateReport) -> Array:
    """Return -ln P of the true class of every row."""
    log_p, codes, _ = report.predictions
    return np.asarray(-log_p[codes, np.arange(len(codes))])
