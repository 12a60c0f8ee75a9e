"""Quantiles of ln P(x) of training rows as JSON, in model files and in monitors."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from bncli.engine.data.log_p import QUANTILES, TrainingLogP
from bncli.files.documents import Node

TRAINING_LOG_P = "training_log_p"
"""The key."""


def training_log_p_json(found: TrainingLogP) -> dict[str, Any]:
    """The rows looked at, the mean, and the quantiles by their share."""
    quantiles = {f"{q:g}": value for q, value in zip(QUANTILES, found.quantiles, strict=True)}
    return {"rows": found.rows, "mean": found.mean, "quantiles": quantiles}


def read_training_log_p(node: Node) -> TrainingLogP:
    """What `training_log_p_json` wrote."""
    fields = node.fields(("rows", "mean", "quantiles"))
    by_share = fields["quantiles"].fields([f"{q:g}" for q in QUANTILES])
    quantiles = tuple(by_share[f"{q:g}"].number() for q in QUANTILES)
    if any(b < a for a, b in pairwise(quantiles)):
        fields["quantiles"].fail("quantiles do not fall")
    return TrainingLogP(fields["rows"].integer(1), fields["mean"].number(), quantiles)
