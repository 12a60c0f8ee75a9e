"""Leave-one-out by its definition: a network is fitted again without each row, or each unit of rows, by loops."""

from __future__ import annotations

import math

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.structure_learners.dependence import k_dependence_parents
from bncli.engine.structure_learners.skdb import ROW_LOSSES
from tests.oracles import log_posterior, weights_of

Members = list[tuple[int, tuple[int, ...]]]
LOSSES = sorted(ROW_LOSSES)


def members_of(data: Dataset, k: int) -> Members:
    order, parents = k_dependence_parents(Counts(data), k)
    return [(i, parents[i]) for i in order]


def m_estimate(data: Dataset, weights: list[float], row: int, child: int | None, given: tuple[int, ...]) -> list[float]:
    """ln P(value of `child` in `row` | the row's values of `given`, y) for every y; child None: ln P(y)."""
    columns, labels = [data.codes[i] for i in given], data.labels
    alike = [t for t in range(data.n_rows) if all(c[t] == c[row] for c in columns)]
    found = []
    for y in range(data.n_labels):
        among = alike if child is None else [t for t in alike if labels[t] == y]
        hits = [
            t for t in among if (labels[t] == y if child is None else data.codes[child][t] == data.codes[child][row])
        ]
        n_values = data.n_labels if child is None else data.schema.cardinalities[child]
        total = math.fsum(weights[t] for t in among)
        found.append(math.log((math.fsum(weights[t] for t in hits) + 1 / n_values) / (total + 1)))
    return found


def slow_loss(
    data: Dataset, members: Members, k: int, p: int, loss: str, rest_of: list[list[float]] | None = None
) -> float:
    """Every row is scored by the network fitted to the weights with one copy of it taken away.

    rest_of: the weights to fit to, for each row that is scored; [] if it is not.
    """
    weights, terms, scored = weights_of(data), [], []
    for t, w in enumerate(weights):
        rest = [*weights[:t], w - min(w, 1.0), *weights[t + 1 :]] if rest_of is None else rest_of[t]
        if not rest:
            continue
        scored.append(w)
        factors = [m_estimate(data, rest, t, None, ())]
        factors += [m_estimate(data, rest, t, child, parents[:k]) for child, parents in members[:p]]
        log_p = log_posterior([math.fsum(column) for column in zip(*factors, strict=True)])
        truth = int(data.labels[t])
        predicted = next(y for y, value in enumerate(log_p) if value >= max(log_p) - 1e-10)
        by_loss = {"rmse": (1 - math.exp(log_p[truth])) ** 2, "error": float(predicted != truth)}
        terms.append(w * by_loss.get(loss, -log_p[truth]))
    mean = math.fsum(terms) / math.fsum(scored)
    return math.sqrt(mean) if loss == "rmse" else mean
