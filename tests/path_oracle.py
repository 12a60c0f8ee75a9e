"""Scoring by paths of regions, slow and obvious: one row, one region, one completion of the unknowns at a time."""

from __future__ import annotations

import itertools
import math

from bncli.engine.data.dataset import Dataset
from bncli.engine.model import Path
from tests.kikuchi_oracle import Region, region_graph

Row = dict[int, int]
"""Code by attribute; those that are not there are unknown."""


def log_submodel(data: Dataset, region: Region, row: Row, label: int, theta: float) -> float:
    """ln P of the label and what the row shows of the region, by adding up the probabilities of all completions."""
    cardinalities = data.schema.cardinalities
    n_cells = math.prod(cardinalities[i] for i in region) * data.n_labels
    total = 0.0
    for values in itertools.product(*([row[i]] if i in row else range(cardinalities[i]) for i in region)):
        total += _weight(data, dict(zip(region, values, strict=True)), label) + theta / n_cells
    return math.log(total / (data.total_weight + theta))


def _weight(data: Dataset, wanted: Row, label: int) -> float:
    """Of the rows with these codes and this label."""
    found = (
        t
        for t in range(data.n_rows)
        if data.labels[t] == label and all(data.codes[i][t] == v for i, v in wanted.items())
    )
    return math.fsum(1.0 if data.weights is None else float(data.weights[t]) for t in found)


def probabilities(data: Dataset, regions: tuple[Region, ...], row: Row, theta: float) -> list[float]:
    """P(y | what the row shows) of the model made of these regions."""
    numbers = region_graph(regions).items()
    scores = [
        math.fsum(c * log_submodel(data, tuple(sorted(r)), row, y, theta) for r, c in numbers)
        for y in range(data.n_labels)
    ]
    shares = [math.exp(s - max(scores)) for s in scores]
    return [share / math.fsum(shares) for share in shares]


def averaged(data: Dataset, path: Path, row: Row, theta: float) -> list[float]:
    """P(y | what the row shows), the models of all steps weighed as the path says."""
    regions = tuple(step.region for step in path.steps[1:])
    models = [probabilities(data, regions[:s], row, theta) for s in range(len(path.steps))]
    weights = [step.weight for step in path.steps]
    return [math.fsum(w * p[y] for w, p in zip(weights, models, strict=True)) for y in range(data.n_labels)]
