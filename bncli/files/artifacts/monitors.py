"""The monitor file: what `score --monitor` counted in a stream of rows, and the drift computed from the counts.

    {"format": "bncli-monitor", "version": 1, "model": {"fingerprint": "...", "class": ..., "labels": [...], ...},
     "rows": 5000, "drift": true, "drifted": ["age"], "predictions": {"no": 0.7, "yes": 0.3}, "mean_log_p": -12.1, ...,
     "attributes": [{"name": "age", "psi": 0.31, "p": 1e-9, "missing": 0.0, "unseen": 0.0, ...}, ...], "counts": {...}}

A reader uses `model`, `counts` and `no_log_p`, the reason why ln P(x) is not computed (null if it is). It computes
everything else from the counts; the other keys are for people and scripts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from bncli.engine.kernels.arrays import Array
from bncli.engine.model import QUANTILES, Model
from bncli.engine.prediction.monitoring import (
    ALPHA,
    LEAST_PSI,
    LEAST_UNKNOWN,
    AttributeCounts,
    ExpectedFigure,
    LogOddsCounts,
    LogProbabilitySketch,
    Moments,
    Monitor,
    MonitorCounts,
    MonitoredModel,
)
from bncli.files.artifacts.file_kinds import read_document
from bncli.files.artifacts.model import TRAINING_LOG_P, dump_model, read_training_log_p, training_log_p_json
from bncli.files.atomic import write_bytes
from bncli.files.json_documents import Node, dump_json

VERSION = 1
_DERIVED_KEYS = (
    "rows",
    "on_training_rows",
    "drift",
    "drifted",
    "attributes",
    "predictions",
    "mean_confidence",
    "mean_log_p",
    "no_log_p",
    "log_p_quantiles",
    "log_loss",
    "accuracy",
    "auc",
    "expected",
    "labelled_rows",
    "class_shares",
    "held_out_log_loss",
    "limits",
    "reference",
    "below_training",
)
_MOMENTS = ("confidence", "log_p", "log_loss")
_LATER_MOMENTS = ("entropy", "loss_variance", "correct")
"""Moments that files written by earlier versions lack."""


def monitored_model(model: Model) -> MonitoredModel:
    """Return the description of a model that a monitor stores; the fingerprint is a digest of the model file."""
    return MonitoredModel(
        hashlib.sha256(dump_model(model)).hexdigest()[:32],
        model.schema.class_name,
        model.schema.labels,
        model.n_rows,
        model.held_out_log_loss,
        model.log_p,
    )


def write_monitor(path: str, monitor: Monitor) -> None:
    write_bytes(path, dump_json(monitor_json(monitor)).encode())


def monitor_json(monitor: Monitor) -> dict[str, Any]:
    """Return the content of the monitor file."""
    tally, model = monitor.tally, monitor.model
    below = {} if monitor.below_training is None else {"below_training": monitor.below_training}
    per_row = 1 / max(tally.rows, 1)
    attributes = [
        {
            "name": counts.name,
            "psi": drift.psi,
            "p": drift.p,
            "missing": counts.missing * per_row,
            "unseen": counts.unseen * per_row,
            "drift": drift.drifted,
            "psi_expected": drift.psi_expected,
            "psi_limit": drift.psi_limit,
            "unknown_p": drift.unknown_p,
        }
        for counts, drift in zip(tally.attributes, monitor.drifts, strict=True)
    ]
    class_shares = None
    if tally.log_loss.n:
        class_shares = dict(zip(model.labels, (tally.classes / tally.classes.sum()).tolist(), strict=True))
    log_p = {} if model.log_p is None else {TRAINING_LOG_P: training_log_p_json(model.log_p)}
    counts: dict[str, Any] = {}
    for name in (*_MOMENTS, *_LATER_MOMENTS):
        moments: Moments = getattr(tally, name)
        counts[name] = [moments.n, float(moments.total), float(moments.squares)]
    return below | {
        "format": "bncli-monitor",
        "version": VERSION,
        "rows": tally.rows,
        "on_training_rows": monitor.on_training_rows,
        "drift": bool(monitor.drifted),
        "drifted": list(monitor.drifted),
        "attributes": attributes,
        "predictions": dict(monitor.predictions()),
        "mean_confidence": tally.confidence.mean,
        "mean_log_p": tally.log_p.mean,
        "no_log_p": monitor.no_log_p or None,
        "log_p_quantiles": {f"{q:g}": tally.sketch.quantile(q) for q in QUANTILES} if tally.log_p.n else None,
        "log_loss": tally.log_loss.mean,
        "accuracy": monitor.accuracy,
        "auc": monitor.auc,
        "expected": expected_json(monitor.expected),
        "labelled_rows": tally.log_loss.n,
        "class_shares": class_shares,
        "held_out_log_loss": model.held_out_log_loss,
        "limits": {"alpha": ALPHA, "tests": monitor.n_tests, "psi": LEAST_PSI, "unknown": LEAST_UNKNOWN},
        "model": {
            "fingerprint": model.fingerprint,
            "class": model.class_name,
            "labels": list(model.labels),
            "rows": model.rows,
            "held_out_log_loss": model.held_out_log_loss,
            **log_p,
        },
        "counts": {
            **counts,
            "predictions": tally.predictions.astype(int).tolist(),
            "classes": tally.classes.astype(int).tolist(),
            "surprise": [list(pair) for pair in sorted(tally.sketch.counts.items())],
            "log_odds": [list(line) for line in tally.log_odds],
            "attributes": [
                {
                    "name": attribute.name,
                    "counts": attribute.counts.astype(int).tolist(),
                    "training": attribute.training.tolist(),
                    "missing_counts": attribute.missing_counts,
                    "missing": attribute.missing,
                    "unseen": attribute.unseen,
                }
                for attribute in tally.attributes
            ],
        },
    }


def expected_json(expected: Mapping[str, ExpectedFigure]) -> dict[str, Any]:
    """Return the expected metrics, which need no labels, with their 95 % intervals (or None) under the key "ci"."""
    intervals = {name: each.interval and list(each.interval) for name, each in expected.items()}
    return {name: each.value for name, each in expected.items()} | {"ci": intervals}


def read_monitor(path: str) -> Monitor:
    """Load a monitor from a file; raise BncliError if it is not a valid monitor file."""
    document = read_document(path, "monitor", VERSION)
    fields = document.fields(("format", "version", "model", "counts"), _DERIVED_KEYS)
    described = fields["model"].fields(
        ("fingerprint", "class", "labels", "rows", "held_out_log_loss"), (TRAINING_LOG_P,)
    )
    held_out = described["held_out_log_loss"]
    model = MonitoredModel(
        described["fingerprint"].text(),
        described["class"].text(),
        described["labels"].texts(),
        described["rows"].integer(0),
        None if held_out.value is None else held_out.number(),
        read_training_log_p(described[TRAINING_LOG_P]) if TRAINING_LOG_P in described else None,
    )
    counts = _read_counts(fields["counts"], len(model.labels))
    has_reason = "no_log_p" in fields and fields["no_log_p"].value is not None
    return Monitor(model, counts, fields["no_log_p"].text() if has_reason else "")


def _read_counts(node: Node, n_labels: int) -> MonitorCounts:
    later = (*_LATER_MOMENTS, "log_odds")
    fields = node.fields((*_MOMENTS, "predictions", "classes", "surprise", "attributes"), later)
    predictions = _read_array(fields["predictions"], n_labels)
    n_rows = int(predictions.sum())
    attributes = []
    for item in fields["attributes"].items():
        stored = item.fields(("name", "counts", "training", "missing_counts", "missing", "unseen"))
        training = np.array([weight.number() for weight in stored["training"].items()], np.float64)
        if (training < 0).any():
            stored["training"].fail("a weight of training rows cannot be negative")
        attributes.append(
            AttributeCounts(
                stored["name"].text(),
                training,
                stored["missing_counts"].flag(),
                _read_array(stored["counts"], len(training)),
                stored["missing"].integer(0),
                stored["unseen"].integer(0),
            )
        )
    sketch = {}
    for item in fields["surprise"].items():
        pair = item.items()
        if len(pair) != 2:
            item.fail("expected an interval and its count")
        sketch[pair[0].integer()] = pair[1].integer(0)
    log_odds = LogOddsCounts()
    for item in fields["log_odds"].items() if "log_odds" in fields else ():
        line = item.items()
        if len(line) != 4:
            item.fail("expected an interval, its rows, and those of the first and of the second label")
        place, (rows, others, events) = line[0].integer(), (number.integer(0) for number in line[1:])
        if others + events > rows:
            item.fail(f"there are more labelled rows than rows, {rows}")
        log_odds.rows[place], log_odds.others[place], log_odds.events[place] = rows, others, events
    moments = []
    for name in (*_MOMENTS, *_LATER_MOMENTS):
        if name not in fields:
            moments.append(Moments())
            continue
        numbers = fields[name].items()
        if len(numbers) != 3:
            fields[name].fail("expected a number of rows, a sum and a sum of squares")
        total, squares = Fraction(numbers[1].number()), Fraction(numbers[2].number())
        moments.append(Moments(numbers[0].integer(0), total, squares))
    classes = _read_array(fields["classes"], n_labels)
    for item, attribute in zip(fields["attributes"].items(), attributes, strict=True):
        if attribute.counts.sum() + attribute.unknown > n_rows:
            item.fail(f"there are more values than rows, {n_rows}")
    confidence, log_p, log_loss, entropy, loss_variance, correct = moments
    return MonitorCounts(
        attributes,
        predictions,
        n_rows,
        confidence,
        log_p,
        LogProbabilitySketch(sketch),
        log_loss,
        classes,
        entropy,
        loss_variance,
        correct,
        log_odds,
    )


def _read_array(node: Node, length: int) -> Array:
    """Parse a list of `length` non-negative integers as a float64 array; fail for any other content."""
    counts = np.array([item.integer(0) for item in node.items()], np.float64)
    if len(counts) != length:
        node.fail(f"expected {length} counts, found {len(counts)}")
    return counts
