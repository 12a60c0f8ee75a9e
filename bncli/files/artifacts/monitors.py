"""The monitor file: what `score --monitor` counted in a stream of rows, and what that says of drift.

    {"format": "bncli-monitor", "version": 1, "model": {"fingerprint": "...", "class": ..., "labels": [...], ...},
     "rows": 5000, "drift": true, "drifted": ["age"], "predictions": {"no": 0.7, "yes": 0.3}, "mean_log_p": -12.1, ...,
     "attributes": [{"name": "age", "psi": 0.31, "p": 1e-9, "missing": 0.0, "unseen": 0.0, ...}, ...], "counts": {...}}

All but `counts` is for people and scripts; a reader takes what it was counted from, `model` and `counts`, and works
out the rest again, so that what is said agrees with what was counted.
"""

from __future__ import annotations

import hashlib
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
    Drift,
    LogProbabilitySketch,
    Moments,
    Monitor,
    MonitorCounts,
    MonitoredModel,
)
from bncli.files.artifacts.model import TRAINING_LOG_P, dump_model, read_training_log_p, training_log_p_json
from bncli.files.artifacts.recognition import read_document
from bncli.files.atomic import write_bytes
from bncli.files.documents import Node, dump_json

VERSION = 1
_TOLD = ("rows", "drift", "drifted", "attributes", "predictions", "mean_confidence", "mean_log_p", "no_log_p")
_TOLD_TOO = (
    "log_p_quantiles",
    "log_loss",
    "labelled_rows",
    "class_shares",
    "held_out_log_loss",
    "limits",
    "reference",
    "below_training",
)
_MOMENTS = ("confidence", "log_p", "log_loss")


def monitored(model: Model) -> MonitoredModel:
    """Return the model as a monitor names it; its fingerprint is of the bytes of the model file."""
    fingerprint = hashlib.sha256(dump_model(model)).hexdigest()[:32]
    held_out = None if model.penalty_cv is None else model.penalty_cv.log_loss
    said = (fingerprint, model.schema.class_name, model.schema.labels, model.n_rows, held_out)
    return MonitoredModel(*said, model.log_p)


def monitor_json(monitor: Monitor) -> dict[str, Any]:
    """Return the content of a monitor file."""
    tally, model = monitor.tally, monitor.model
    below = {} if monitor.below_training is None else {"below_training": monitor.below_training}
    return below | {
        "format": "bncli-monitor",
        "version": VERSION,
        "rows": tally.rows,
        "drift": bool(monitor.drifted),
        "drifted": list(monitor.drifted),
        "attributes": [_attribute(*pair, tally.rows) for pair in zip(tally.attributes, monitor.drifts, strict=True)],
        "predictions": dict(monitor.predictions()),
        "mean_confidence": tally.confidence.mean,
        "mean_log_p": tally.log_p.mean,
        "no_log_p": monitor.no_log_p or None,
        "log_p_quantiles": {f"{q:g}": tally.sketch.quantile(q) for q in QUANTILES} if tally.log_p.n else None,
        "log_loss": tally.log_loss.mean,
        "labelled_rows": tally.log_loss.n,
        "class_shares": dict(zip(model.labels, (tally.classes / tally.classes.sum()).tolist(), strict=True))
        if tally.log_loss.n
        else None,
        "held_out_log_loss": model.held_out_log_loss,
        "limits": {"alpha": ALPHA, "tests": monitor.n_tests, "psi": LEAST_PSI, "unknown": LEAST_UNKNOWN},
        "model": _model_json(model),
        "counts": _counts_json(tally),
    }


def _attribute(tally: AttributeCounts, drift: Drift, rows: int) -> dict[str, Any]:
    share = 1 / max(rows, 1)
    return {
        "name": tally.name,
        "psi": drift.psi,
        "p": drift.p,
        "missing": tally.missing * share,
        "unseen": tally.unseen * share,
        "drift": drift.drifted,
        "psi_expected": drift.psi_expected,
        "psi_limit": drift.psi_limit,
        "unknown_p": drift.unknown_p,
    }


def _model_json(model: MonitoredModel) -> dict[str, Any]:
    return {
        "fingerprint": model.fingerprint,
        "class": model.class_name,
        "labels": list(model.labels),
        "rows": model.rows,
        "held_out_log_loss": model.held_out_log_loss,
        **({} if model.log_p is None else {TRAINING_LOG_P: training_log_p_json(model.log_p)}),
    }


def _counts_json(tally: MonitorCounts) -> dict[str, Any]:
    moments = {
        name: [one.n, float(one.total), float(one.squares)]
        for name, one in {name: getattr(tally, name) for name in _MOMENTS}.items()
    }
    return moments | {
        "predictions": _whole(tally.predictions),
        "classes": _whole(tally.classes),
        "surprise": [list(pair) for pair in sorted(tally.sketch.counts.items())],
        "attributes": [
            {
                "name": one.name,
                "counts": _whole(one.counts),
                "training": one.training.tolist(),
                "missing_counts": one.missing_counts,
                "missing": one.missing,
                "unseen": one.unseen,
            }
            for one in tally.attributes
        ],
    }


def _whole(counts: Array) -> list[int]:
    return [int(count) for count in counts]


def write_monitor(path: str, monitor: Monitor) -> None:
    """Write the monitor file, whole or not at all."""
    write_bytes(path, dump_json(monitor_json(monitor)).encode())


def read_monitor(path: str) -> Monitor:
    """Return the monitor in a file, checked."""
    fields = read_document(path, "monitor", VERSION).fields(
        ("format", "version", "model", "counts"), (*_TOLD, *_TOLD_TOO)
    )
    model = _read_model(fields["model"])
    tally = _read_counts(fields["counts"], len(model.labels))
    told = fields.get("no_log_p")
    no_log_p = told.text() if told is not None and told.value is not None else ""
    return Monitor(model, tally, no_log_p)


def _read_model(node: Node) -> MonitoredModel:
    fields = node.fields(("fingerprint", "class", "labels", "rows", "held_out_log_loss"), (TRAINING_LOG_P,))
    held_out = fields["held_out_log_loss"]
    return MonitoredModel(
        fields["fingerprint"].text(),
        fields["class"].text(),
        fields["labels"].texts(),
        fields["rows"].integer(0),
        None if held_out.value is None else held_out.number(),
        read_training_log_p(fields[TRAINING_LOG_P]) if TRAINING_LOG_P in fields else None,
    )


def _read_counts(node: Node, n_labels: int) -> MonitorCounts:
    fields = node.fields((*_MOMENTS, "predictions", "classes", "surprise", "attributes"))
    predictions = _read_array(fields["predictions"], n_labels)
    attributes = [_read_attribute(item) for item in fields["attributes"].items()]
    sketch = dict(_read_interval(item) for item in fields["surprise"].items())
    moments = [_read_moments(fields[name]) for name in _MOMENTS]
    classes = _read_array(fields["classes"], n_labels)
    rows = int(predictions.sum())
    for item, one in zip(fields["attributes"].items(), attributes, strict=True):
        if one.counts.sum() + one.unknown > rows:
            item.fail(f"there are more values than rows, {rows}")
    return MonitorCounts(
        attributes, predictions, rows, moments[0], moments[1], LogProbabilitySketch(sketch), moments[2], classes
    )


def _read_array(node: Node, length: int) -> Array:
    counts = np.array([item.integer(0) for item in node.items()], np.float64)
    if len(counts) != length:
        node.fail(f"expected {length} counts, found {len(counts)}")
    return counts


def _read_attribute(node: Node) -> AttributeCounts:
    fields = node.fields(("name", "counts", "training", "missing_counts", "missing", "unseen"))
    training = np.array([item.number() for item in fields["training"].items()], np.float64)
    if (training < 0).any():
        fields["training"].fail("a weight of training rows cannot be negative")
    return AttributeCounts(
        fields["name"].text(),
        training,
        fields["missing_counts"].flag(),
        _read_array(fields["counts"], len(training)),
        fields["missing"].integer(0),
        fields["unseen"].integer(0),
    )


def _read_interval(node: Node) -> tuple[int, int]:
    pair = node.items()
    if len(pair) != 2:
        node.fail("expected an interval and its count")
    return pair[0].integer(), pair[1].integer(0)


def _read_moments(node: Node) -> Moments:
    items = node.items()
    if len(items) != 3:
        node.fail("expected a number of rows, a sum and a sum of squares")
    return Moments(items[0].integer(0), Fraction(items[1].number()), Fraction(items[2].number()))
