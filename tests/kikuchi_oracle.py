"""Kikuchi-Bayes the slow way: explicit region graphs, every model rebuilt from nothing, one row at a time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.dataset import Dataset
from tests import oracles

Region = tuple[int, ...]
Array = NDArray[np.float64]


def region_graph(initial: Iterable[Region]) -> dict[frozenset[int], int]:
    """Counting numbers as the algorithm is printed: redundant regions away, intersections in, from large to small.

    The class, which all regions have, is left out of them; numbers that are 0 are left out as well.
    """
    sets = {frozenset(region) for region in initial} or {frozenset()}
    regions = {r for r in sets if not any(r < other for other in sets)}
    while True:
        more = {a & b for a, b in itertools.combinations(regions, 2)} - regions
        if not more:
            break
        regions |= more
    numbers: dict[frozenset[int], int] = {}
    for region in sorted(regions, key=len, reverse=True):
        numbers[region] = 1 - sum(number for other, number in numbers.items() if region < other)
    return {region: number for region, number in numbers.items() if number}


def degrees_of_freedom(regions: Iterable[Region], cardinalities: Sequence[int], n_labels: int) -> int:
    """sum of c_R (cells with the class - cells without it)."""
    cells = {r: math.prod(cardinalities[i] for i in r) for r in region_graph(regions)}
    return sum(number * (cells[r] * n_labels - cells[r]) for r, number in region_graph(regions).items())


def degrees_of_kind(data: Dataset, regions: Iterable[Region], kind: str) -> int:
    """The same as the paper's equations 7 and 5 and its section 6.3 have it; at least those of the class alone."""
    total = 0
    for members, number in region_graph(regions).items():
        region = tuple(sorted(members))
        every = list(itertools.product(*(range(data.schema.cardinalities[i]) for i in region)))
        with_class = [(*cell, label) for cell in every for label in range(data.n_labels)]
        if kind == "structural-zeros":
            rows = [tuple(int(data.codes[i][t]) for i in region) for t in range(data.n_rows)]
            seen = {(*row, int(label)) for row, label in zip(rows, data.labels, strict=True)}
            every, with_class = sorted(set(rows)), sorted(seen)
        total += number * (len(with_class) - (1 if kind == "joint" else len(every)))
    return max(total, data.n_labels - 1)


class Slow:
    """Models of one data set."""

    def __init__(self, data: Dataset, theta: float, kind: str = "conditional") -> None:
        self.data, self.theta, self.kind = data, theta, kind
        self.weights = oracles.weights_of(data)
        self.total = math.fsum(self.weights)
        self.submodel = cache(self._submodel)

    def _submodel(self, region: Region) -> Array:
        table = oracles.count(self.data, region)
        return np.asarray((table + self.theta / table.size) / (self.total + self.theta))

    def log_probabilities(self, regions: Iterable[Region], rows: Dataset | None = None) -> list[list[float]]:
        """ln P(y | x_t) of every row learned from, or of others."""
        numbers, asked = region_graph(regions), self.data if rows is None else rows
        return [oracles.log_posterior(self._scores(numbers, asked, t)) for t in range(asked.n_rows)]

    def _scores(self, numbers: dict[frozenset[int], int], rows: Dataset, t: int) -> list[float]:
        scores = [0.0] * self.data.n_labels
        for members, number in numbers.items():
            region = tuple(sorted(members))
            of_row = self.submodel(region)[tuple(int(rows.codes[i][t]) for i in region)]
            scores = [score + number * math.log(p) for score, p in zip(scores, of_row, strict=True)]
        return scores

    def log_likelihood(self, regions: Iterable[Region]) -> float:
        rows = zip(self.weights, self.data.labels.tolist(), self.log_probabilities(regions), strict=True)
        return math.fsum(w * logs[label] for w, label, logs in rows)

    def step(self, regions: Iterable[Region]) -> Step:
        listed = list(regions)
        df = degrees_of_kind(self.data, listed, self.kind)
        prior = -self.total * df / (self.total - df - 1) if df < self.total - 1 else -math.inf
        log_likelihood = self.log_likelihood(listed)
        return Step(df, log_likelihood, log_likelihood + prior)


class Step(NamedTuple):
    df: int
    log_likelihood: float
    log_posterior: float


def search(data: Dataset, max_order: int, theta: float, kind: str = "conditional") -> tuple[list[Region], list[Step]]:
    """The regions in the order found, and the steps, the class alone first."""
    slow = Slow(data, theta, kind)
    regions: list[Region] = []
    steps = [slow.step([])]
    largest = min(max_order - 1, len(data.schema.informative))
    for size in range(1, largest + 1):
        ways = ["up", "down"] if size == largest else ["up"]
        for way in ways:
            while (found := best(slow, regions, size)) is not None:
                region, step = found
                up = step.log_posterior - steps[-1].log_posterior > 1e-9
                near = step.log_posterior > max(s.log_posterior for s in steps) - 40
                rises = step.log_likelihood - steps[-1].log_likelihood > 1e-9
                if not (up if way == "up" else near and rises):
                    break
                regions.append(region)
                steps.append(step)
    return regions, steps


def best(slow: Slow, regions: list[Region], size: int) -> tuple[Region, Step] | None:
    """The first in lexicographic order of the candidates of highest posterior."""
    candidates = itertools.combinations(slow.data.schema.informative, size)
    free = [a for a in candidates if not any(set(a) <= set(b) for b in regions)]
    tried = [(a, slow.step([*regions, a])) for a in free]
    top = max((step.log_posterior for _, step in tried), default=-math.inf)
    return next(((a, step) for a, step in tried if step.log_posterior >= top - 1e-9), None)
