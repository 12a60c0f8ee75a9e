"""Selective k-dependence classifier (SKDB): KDB with the numbers of parents and attributes chosen by leave-one-out.

KDB (Sahami 1996) with at most k parents orders the attributes by falling I(X_i; Y) and lists each one's parents by
falling I(X_i; X_j | Y). Here both lists are cut short: of all k' <= k and all prefixes of the attribute order, 0 to n
attributes, those with the lowest leave-one-out loss on the rows are taken (Martinez, Webb, Chen & Zaidi 2016, Journal
of Machine Learning Research 17). With p_t = P(y_t | x_t) from the network without row t, the losses are

    rmse = sqrt( mean of (1 - p_t)^2 ),    error = mean of [y_t is not predicted],    log-loss = mean of -ln p_t

Conventions: ties (at 12 significant digits) go to fewer parents, then to fewer attributes. The choice may be no
attribute at all if none is informative about the class. Networks whose tables with parents have more than 2^27 entries
(1 GiB) together are no candidates. Under `--missing-policy marginalize`, the choice takes a missing value for one more
level (`Counts.with_missing_levels`). Cost: KDB's counting pass over all pairs, then a few passes for each attribute and
k'.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.engine.counting.counts import Counts
from bncli.engine.counting.fused_codes import JointCodes, extend, no_attributes
from bncli.engine.counting.table_batches import MAX_ENTRIES
from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.data.schema import Schema
from bncli.engine.kernels.arrays import Array, Index, Integers
from bncli.engine.kernels.cells import add_counts
from bncli.engine.kernels.information import rounded
from bncli.engine.structure_learners.dependence import k_dependence_parents
from bncli.engine.structures.arc_constraints import ArcConstraints
from bncli.engine.structures.structure import Dag
from bncli.watch import Note, Progress, Watch, silent

RowLoss = Callable[[Array, Integers], Array]
TIE = 1e-10
"""Classes at most this far (nats) below the highest score are tied with it; the first of them is predicted."""
MOST_SCORES = 1 << 26
"""Running scores held at a time (512 MiB); more values of k take another round each."""


def learn(
    counts: Counts, *, k: int, loss: str, constraints: ArcConstraints | None = None, watch: Watch = silent
) -> Dag:
    """Return the network of lowest leave-one-out loss; attributes that are not chosen stay outside it.

    With constraints, only networks with all required arcs are candidates.
    """
    counts = counts.with_missing_levels("skdb", watch)
    data = counts.data
    order, k_parents = k_dependence_parents(counts, k, watch, constraints)
    attributes = [(i, k_parents[i]) for i in order]
    n_k = _feasible_k(data.schema, attributes, min(k, max(len(attributes) - 1, 0)))
    losses = nested_losses(data, attributes, n_k, loss, watch)
    if constraints is not None:
        n_required = constraints.required.sum(axis=0)
        losses[: int(n_required.max(initial=0))] = np.inf
        with_arcs = [place for place, i in enumerate(order) if n_required[i]]
        losses[:, : max(with_arcs, default=-1) + 1] = np.inf
    # infinite losses compare as the largest number: their digits cannot be rounded
    compared = rounded(np.where(np.isinf(losses), np.finfo(float).max, losses))
    # argmin takes the first of equals: fewer parents, then fewer attributes
    best_k, n_chosen = divmod(int(compared.argmin()), losses.shape[1])
    chosen = order[:n_chosen]
    parents: list[tuple[int, ...]] = [()] * len(data.schema.attributes)
    for i in chosen:
        parents[i] = k_parents[i][:best_k]
    what = f"the first {n_chosen} of {len(attributes)} attributes and k = {best_k}"
    limit = ""
    if n_k and n_k[-1] != n_k[0]:
        limit = f" (k above {n_k[-1] - 1} was tried with fewer attributes only: larger tables do not fit)"
    watch(Note(f"skdb chose {what}: leave-one-out {loss} {losses[best_k, n_chosen]:.6g}{limit}"))
    return Dag(tuple(parents), tuple(sorted(chosen)), method="skdb", options={"k": k, "loss": loss})


def _feasible_k(schema: Schema, attributes: Sequence[tuple[int, Sequence[int]]], k: int) -> list[int]:
    """Return, for each prefix of the order, 1 + the highest k' <= k whose tables fit together; at least 1."""
    limits, totals = [], [0] * (k + 1)
    for i, parents in attributes:
        entries = len(schema.labels) * schema.cardinalities[i]
        for n_parents in range(len(totals)):
            if 1 <= n_parents <= len(parents):
                entries *= schema.cardinalities[parents[n_parents - 1]]
            totals[n_parents] += entries
        totals = totals[: max(1, sum(total <= MAX_ENTRIES for total in totals))]
        limits.append(len(totals))
    return limits


def nested_losses(
    data: Dataset,
    attributes: Sequence[tuple[int, Sequence[int]]],
    n_k: Sequence[int],
    loss: str,
    watch: Watch = silent,
) -> Array:
    """Return the leave-one-out loss of many nested networks, shape (largest of n_k, 1 + attributes).

    attributes[p] is an attribute and its parents, in order, among the earlier ones. The network (k, p) has the first p
    attributes, each with the class and the first k of its parents as parents. Networks with attribute p are computed
    for k below n_k[p], which never rises with p; the others have an infinite loss. Loss is a mean over rows (rmse: its
    root). The networks of all k and p differ by one factor each:

        ln P(y, x_1..x_p; k) = ln P(y) + sum over i <= p of ln theta_i(x_i | first k parents of i, y)

    A row is left out by subtracting it from its counts, which affects its own class y_t alone. Smoothed by an
    m-estimate of strength 1, for a row of weight w with d = min(w, 1),

        theta_i(k | j, y) = (N_ijky - d [y = y_t] + 1/|X_i|) / (N_ijy - d [y = y_t] + 1)

    and likewise for the class (Martinez, Webb, Chen & Zaidi 2016). A weight counts as that many equal rows, of which
    one is left out, and all of them count in the loss; a row of weight below 1 is left out whole.

    Cost: for each attribute and k three passes over rows and K N exponentials; K + 1 numbers per row for each k that is
    held at a time, as many as fit MOST_SCORES, and for tables only the joint values that occur.
    """
    ks = max(n_k, default=1)
    sums = np.full((ks, 1 + len(attributes)), np.inf)
    step = max(1, MOST_SCORES // max(1, data.n_rows * (data.n_labels + 1)))
    total, done = sum(n_k), 0
    for start in range(0, ks, step):
        for k, p, summed in _nested_sums(data, attributes, n_k, range(start, min(start + step, ks)), loss):
            sums[k, p] = summed
            done += p > 0
            watch(Progress(done, total, "networks"))
    means = sums / max(data.total_weight, np.finfo(float).tiny)
    return np.sqrt(means) if loss == "rmse" else means


def _nested_sums(
    data: Dataset, attributes: Sequence[tuple[int, Sequence[int]]], n_k: Sequence[int], ks: range, loss: str
) -> Iterator[tuple[int, int, float]]:
    """Yield (k, p, summed loss) of every network with k in `ks`."""
    initial = data.map(_class_scores, _count_by_class(data, no_attributes(data))[:, 0])
    summed = sum(data.map(_sum_losses, loss, states=initial))
    yield from ((k, 0, summed) for k in ks)
    running = {k: [scores.copy() for scores in initial] for k in ks}
    for p, ((child, parents), limit) in enumerate(zip(attributes, n_k, strict=True), start=1):
        configurations, factor = no_attributes(data), None
        for k in range(min(ks.stop, limit)):
            if 1 <= k <= len(parents):
                configurations, factor = extend(data, configurations, parents[k - 1])[0], None
            if k not in ks:
                continue
            # with no further parent to add, the factor of the last k is still valid
            if factor is None:
                cells, configuration = extend(data, configurations, child)
                counts = _count_by_class(data, cells)
                sums = [np.bincount(configuration, row, configurations.size) for row in counts]
                totals = np.stack(sums).astype(np.float64, copy=False)
                factor = _Factor(cells, counts, totals[:, configuration], 1.0 / data.schema.cardinalities[child])
            states = list(zip(running[k], factor.cells.codes, strict=True))
            log_theta = np.log((factor.counts + factor.prior) / (factor.totals + 1.0))
            added = data.map(_add_factor, log_theta, factor.counts, factor.totals, factor.prior, loss, states=states)
            running[k] = [scores for scores, _ in added]
            yield k, p, sum(summed for _, summed in added)


class _Factor(NamedTuple):
    """One factor by the joint values that occur: `cells` says which one each row has.

    counts (K, cells): N_ijky; totals (K, cells): N_ijy; prior = 1/|X_i|.
    """

    cells: JointCodes
    counts: Array
    totals: Array
    prior: float


def _count_by_class(data: Dataset, cells: JointCodes) -> Array:
    """Return the weight of each class in each cell, shape (K, cells)."""
    counted: NDArray[np.generic] = data.reduce(_count_cells, cells.size, data.n_labels, states=cells.codes)
    return counted.astype(np.float64).reshape(data.n_labels, cells.size)


def _count_cells(block: RowBlock, size: int, n_labels: int) -> NDArray[np.generic]:
    total: NDArray[np.generic] = np.zeros(n_labels * size, np.int64 if block.weights is None else np.float64)
    for rows in block.slices():
        weights = None if block.weights is None else block.weights[rows]
        add_counts(total, _own_cells(block, block.state, rows, size), weights)
    return total


def _own_cells(block: RowBlock, cells: NDArray[np.uint32], rows: slice, size: int) -> Index:
    """Return the position of every row's class and cell in a flat table of shape (K, size)."""
    numbers = block.labels[rows].astype(np.intp)
    numbers *= size
    numbers += cells[rows]
    return numbers


def _class_scores(block: RowBlock, counts: Array) -> Array:
    """Return scores (K + 1, rows) before any attribute: ln(N_y + 1/K), then that of each row's own class without it.

    The total over all classes falls by the same d for each class, so it is left out.
    """
    scores = np.empty((len(counts) + 1, block.n_rows))
    scores[:-1] = np.log(counts + 1.0 / len(counts))[:, np.newaxis]
    left_out = 1.0 if block.weights is None else np.minimum(block.weights, 1.0)
    scores[-1] = np.log(counts[block.labels] - left_out + 1.0 / len(counts))
    return scores


def _add_factor(
    block: RowBlock, log_theta: Array, counts: Array, totals: Array, prior: float, loss: str
) -> tuple[Array, float]:
    """Add a factor to the scores of a block, in place, and return them with the summed loss.

    State: scores (K + 1, rows) as in `_class_scores`, and the factor's cell of each row.
    """
    scores, cells = block.state
    summed = 0.0
    for rows in block.slices():
        here = scores[:, rows]
        here[:-1] += np.take(log_theta, cells[rows].astype(np.intp), axis=1)
        own = _own_cells(block, cells, rows, counts.shape[1])
        left_out = 1.0 if block.weights is None else np.minimum(block.weights[rows], 1.0)
        here[-1] += np.log((counts.take(own) - left_out + prior) / (totals.take(own) - left_out + 1.0))
        summed += _sum_slice(block, rows, here, loss)
    return scores, summed


def _sum_losses(block: RowBlock, loss: str) -> float:
    return sum(_sum_slice(block, rows, block.state[:, rows], loss) for rows in block.slices())


def _sum_slice(block: RowBlock, rows: slice, scores: Array, loss: str) -> float:
    margins = scores[:-1] - scores[-1]
    # the true class is compared with itself, without the row on either side
    margins[block.labels[rows], np.arange(margins.shape[1])] = 0.0
    losses = ROW_LOSSES[loss](margins, block.labels[rows])
    return float(losses.sum() if block.weights is None else losses @ block.weights[rows])


def squared_errors(margins: Array, labels: Integers) -> Array:
    """Return (1 - p)^2 of every row, p being the probability of its true class.

    `margins` d[y] = ln P(y | x) - ln P(true class | x), shape (K, rows); labels (rows,). p = 1 / sum over y of e^d[y].
    1 - p is summed over the other classes, not subtracted from 1: it keeps its digits if p is close to 1.

    >>> margins = np.log([[1.0, 0.25], [3.0, 1.0]])  # class 1 is three times as likely as the true 0; then 4 to 1 right
    >>> squared_errors(margins, np.array([0, 1])).round(12).tolist()
    [0.5625, 0.04]
    """
    _, own, others = _shares(margins, labels)
    error: Array = np.square(others / (own + others))
    return error


def errors(margins: Array, labels: Integers) -> Array:
    """Return 1 for every row whose predicted class is wrong, else 0; arguments as for `squared_errors`."""
    # argmax takes the first of tied classes: the lower label, as everywhere
    predicted = (margins >= margins.max(axis=0) - TIE).argmax(axis=0)
    wrong: Array = np.not_equal(predicted, labels).astype(np.float64)
    return wrong


def log_losses(margins: Array, labels: Integers) -> Array:
    """Return -ln p of every row, in nats; arguments as for `squared_errors`."""
    top, own, others = _shares(margins, labels)
    # if the true class leads, own - 1 is exactly 0, and the sum keeps its digits
    loss: Array = top + np.log1p((own - 1.0) + others)
    return loss


def _shares(margins: Array, labels: Integers) -> tuple[Array, Array, Array]:
    """Return the highest d, then e^(d - highest) of the true class, and its sum over the other classes."""
    top = margins.max(axis=0)
    shares = np.exp(margins - top)
    rows = np.arange(len(labels))
    own = shares[labels, rows]
    shares[labels, rows] = 0.0
    return top, own, shares.sum(axis=0)


ROW_LOSSES: dict[str, RowLoss] = {"rmse": squared_errors, "error": errors, "log-loss": log_losses}
"""The loss of a row by the name of the loss; rmse is the root of the mean."""
