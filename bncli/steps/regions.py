"""Models of regions as a report tells them: the steps of a path by the names of columns, and the best of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from bncli.engine.data.schema import Schema
from bncli.engine.kikuchi.paths import posterior_weights
from bncli.engine.model import Model, Path
from bncli.engine.structures.named_structure import NamedRegions
from bncli.engine.structures.region_graph import maximal
from bncli.engine.structures.structure import Regions
from bncli.files.graphs import posterior_json


class NamedStep(NamedTuple):
    """One model of a path: the region that it adds to those before it (none in step 0, the class alone), its degrees
    of freedom, log-likelihood and log posterior in nats, and its share in the average over the path; where it was asked
    for, what the bootstrap says that it would lose on new rows, in nats."""

    region: tuple[str, ...]
    df: int
    log_likelihood: float
    log_posterior: float
    weight: float
    bootstrap_log_loss: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Every field by name, those that nobody asked for left out."""
        fields = self._asdict() | {"region": list(self.region), "log_posterior": posterior_json(self.log_posterior)}
        return {name: value for name, value in fields.items() if name != "bootstrap_log_loss" or value is not None}


def steps_of_path(path: Path, schema: Schema) -> tuple[NamedStep, ...]:
    """The steps of a model's path."""
    names = [attribute.name for attribute in schema.attributes]
    return tuple(
        NamedStep(tuple(names[i] for i in s.region), s.df, s.log_likelihood, s.log_posterior, s.weight)
        for s in path.steps
    )


def steps_of_search(regions: NamedRegions) -> tuple[NamedStep, ...] | None:
    """The steps of the search that found the regions, weighted by posterior; None where nothing is said of them."""
    trace = regions.trace
    if trace is None:
        return None
    weights = posterior_weights(trace.log_posterior)
    losses = trace.bootstrap_log_loss or (None,) * len(weights)
    steps = ((), *regions.regions)
    each = zip(steps, trace.df, trace.log_likelihood, trace.log_posterior, weights, losses, strict=True)
    return tuple(NamedStep(*values) for values in each)


@dataclass(frozen=True)
class RegionsReport:
    """The regions of the best model, counted by order, which is the number of their attributes and one for the class.

    Where the model has a path: how many steps it has besides the class alone, which of them is the best, and its share
    in the average; else None.
    """

    orders: dict[str, int]
    steps: int | None = None
    best_step: int | None = None
    weight: float | None = None


def regions_report(model: Model) -> RegionsReport | None:
    """What there is to tell of a model of regions; None for a network."""
    if not isinstance(model.structure, Regions):
        return None
    path = model.predictor
    if not isinstance(path, Path):
        return RegionsReport(_orders(model.structure.chosen))
    best = path.best
    chosen = maximal(step.region for step in path.steps[1 : best + 1])
    return RegionsReport(_orders(chosen), len(path.steps) - 1, best, path.steps[best].weight)


def report_of_search(regions: NamedRegions) -> RegionsReport:
    """The same of a structure that was found, before there is a model."""
    orders, steps = _orders(regions.chosen), steps_of_search(regions)
    if steps is None or regions.trace is None:
        return RegionsReport(orders)
    best = regions.trace.map_step
    return RegionsReport(orders, len(regions.regions), best, steps[best].weight)


def _orders(regions: Sequence[tuple[object, ...]]) -> dict[str, int]:
    counts = Counter(len(region) + 1 for region in regions)
    return {str(order): counts[order] for order in sorted(counts)}
