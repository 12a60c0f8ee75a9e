"""Selective k-dependence classifier: KDB with the number of parents and of attributes chosen by leave-one-out.

KDB (Sahami 1996) with at most k parents orders the attributes by falling I(X_i; Y) and lists each one's parents by
falling I(X_i; X_j | Y). Here both lists are cut short: of all k' <= k and all prefixes of the attribute order, 0
to n attributes, those with the lowest loss on the rows, each left out in its turn, are taken (Martinez, Webb, Chen &
Zaidi 2016, Journal of Machine Learning Research 17). Losses, with p_t = P(y_t | x_t) without row t:

    rmse = sqrt( mean of (1 - p_t)^2 ),    error = mean of [y_t is not predicted],    log-loss = mean of -ln p_t

Conventions: ties (at 12 significant digits) go to fewer parents, then to fewer attributes. No attribute at all may
win: then none tells of the class. Networks with parents whose tables come to more than 2^27 entries (1 GiB) are not
candidates. Under `--missing-policy marginalize`, the choice takes a missing value for one more level (see
`Counts.with_missing_levels`). Cost: KDB's counting pass over all pairs, then a few passes for each
attribute and k'.

The leave-one-out loss of many nested networks in one go.

Attributes come in an order, each with a list of parents among those before it. The network (k, p) has the first p
attributes, each with the class and the first k of its parents as parents; the networks of all k and p differ by one
factor each:

    ln P(y, x_1..x_p; k) = ln P(y) + sum over i <= p of ln theta_i(x_i | first k parents of i, y)

A row is left out by taking it off the counts it is in, which touches its own class y_t alone. Smoothed by an m-estimate
of strength 1, for a row of weight w with d = min(w, 1),

    theta_i(k | j, y) = (N_ijky - d [y = y_t] + 1/|X_i|) / (N_ijy - d [y = y_t] + 1)

and likewise for the class (Martinez, Webb, Chen & Zaidi 2016, Journal of Machine Learning Research 17).

The loss of a row follows from how far every class is ahead of the true one, d[y] = ln P(y | x) - ln P(true class | x).
With p = P(true class | x) = 1 / sum_y e^d[y],

    rmse        the squared error (1 - p)^2
    error       1 if the first class of the highest d is not the true one, else 0
    log-loss    -ln p

Conventions: a weight is so many rows alike, of which one is left out, and all of them count in the loss; a row of less
than weight 1 is left out whole. Cost: for each attribute and k three passes over rows and K N exponentials; K + 1
numbers a row for each k held at a time, so many as fit STATE_BUDGET, and for tables only the joint values that occur.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bncli.engine.counting.counts import Counts
from bncli.engine.counting.fused_codes import JointCodes, extend, no_attributes
from bncli.engine.counting.table_batches import MAX_ENTRIES
from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.kernels.arrays import Array, Index, Integers
from bncli.engine.kernels.cells import add_counts
from bncli.engine.kernels.information import rounded
from bncli.engine.structure_learners.dependence import k_dependence_parents
from bncli.engine.structures.structure import Dag
from bncli.watch import Note, Progress, Watch, silent

RowLoss = Callable[[Array, Integers], Array]

TIE = 1e-10
"""Classes no further than this (nats) behind the highest are as likely as it; the first of them is predicted."""
STATE_BUDGET = 1 << 26
"""Running scores held at a time (512 MiB); more values of k take another round each."""


def nested_losses(
    data: Dataset,
    attributes: Sequence[tuple[int, Sequence[int]]],
    n_k: Sequence[int],
    loss: str,
    watch: Watch = silent,
) -> Array:
    """Return the loss (a mean over rows; rmse: its root) of network (k, p), shape (most of n_k, 1 + attributes).

    attributes[p]: an attribute and its parents in order. n_k[p]: k runs from 0 below it in networks with attribute p
    in them; never rising with p. Networks that are not asked for have loss infinity.
    """
    ks = max(n_k, default=1)
    sums = np.full((ks, 1 + len(attributes)), np.inf)
    step = max(1, STATE_BUDGET // max(1, data.n_rows * (data.n_labels + 1)))
    total, done = sum(n_k), 0
    for start in range(0, ks, step):
        for k, p, summed in _round(data, attributes, n_k, range(start, min(start + step, ks)), loss):
            sums[k, p] = summed
            done += p > 0
            watch(Progress(done, total, "networks"))
    means = sums / max(data.total_weight, np.finfo(float).tiny)
    return np.sqrt(means) if loss == "rmse" else means


def _round(
    data: Dataset, attributes: Sequence[tuple[int, Sequence[int]]], n_k: Sequence[int], ks: range, loss: str
) -> Iterator[tuple[int, int, float]]:
    """Yield (k, p, summed loss) of every network with k in `ks`."""
    states = data.map(_class_scores, _count(data, no_attributes(data))[:, 0])
    summed = sum(data.map(_sum_losses, loss, states=states))
    yield from ((k, 0, summed) for k in ks)
    running = {k: [scores.copy() for scores in states] for k in ks}
    for p, ((child, parents), limit) in enumerate(zip(attributes, n_k, strict=True), start=1):
        admitted = range(ks.start, min(ks.stop, limit))
        for k, family in _families(data, child, parents, admitted):
            running[k], summed = _advance(data, running[k], family, loss)
            yield k, p, summed


@dataclass(frozen=True)
class _Family:
    """One factor by the joint values that occur: cells says which each row shows.

    counts (K, cells): N_ijky; totals (K, cells): N_ijy; prior = 1/|X_i|.
    """

    cells: JointCodes
    counts: Array
    totals: Array
    prior: float


def _families(data: Dataset, child: int, parents: Sequence[int], ks: range) -> Iterator[tuple[int, _Family]]:
    """Yield the child's factor with its first k parents, for k in `ks`; counted once where k makes no difference."""
    configurations, family = no_attributes(data), None
    for k in range(ks.stop):
        if 1 <= k <= len(parents):
            configurations, family = extend(data, configurations, parents[k - 1])[0], None
        if k in ks:
            family = family or _count_family(data, configurations, child)
            yield k, family


def _count_family(data: Dataset, configurations: JointCodes, child: int) -> _Family:
    cells, configuration = extend(data, configurations, child)
    counts = _count(data, cells)
    totals = np.stack([np.bincount(configuration, row, configurations.size) for row in counts]).astype(
        np.float64, copy=False
    )
    return _Family(cells, counts, totals[:, configuration], 1.0 / data.schema.cardinalities[child])


def _count(data: Dataset, cells: JointCodes) -> Array:
    """Return weight of each class in each cell, shape (K, cells)."""
    counted: NDArray[np.generic] = data.reduce(_count_cells, cells.size, data.n_labels, states=cells.codes)
    return counted.astype(np.float64).reshape(data.n_labels, cells.size)


def _count_cells(block: RowBlock, size: int, n_labels: int) -> NDArray[np.generic]:
    total: NDArray[np.generic] = np.zeros(n_labels * size, np.int64 if block.weights is None else np.float64)
    for rows in block.slices():
        weights = None if block.weights is None else block.weights[rows]
        add_counts(total, _by_class(block, block.state, rows, size), weights)
    return total


def _by_class(block: RowBlock, cells: NDArray[np.uint32], rows: slice, size: int) -> Index:
    """Position of every row's cell in a flat table of shape (K, size)."""
    numbers = block.labels[rows].astype(np.intp)
    numbers *= size
    numbers += cells[rows]
    return numbers


def _class_scores(block: RowBlock, counts: Array) -> Array:
    """Return scores (K + 1, rows) before any attribute: ln(N_y + 1/K), last of each row's own class without the row.

    The total of all classes falls by the same d for each of them, so that it may be left away.
    """
    scores = np.empty((len(counts) + 1, block.n_rows))
    scores[:-1] = np.log(counts + 1.0 / len(counts))[:, np.newaxis]
    scores[-1] = np.log(counts[block.labels] - _leave_one_out_left_out(block, slice(None)) + 1.0 / len(counts))
    return scores


def _sum_losses(block: RowBlock, loss: str) -> float:
    return sum(_sum_block(block, rows, block.state[:, rows], loss) for rows in block.slices())


def _sum_block(block: RowBlock, rows: slice, scores: Array, loss: str) -> float:
    ahead = scores[:-1] - scores[-1]
    # its own class compares with itself, without the row on either side
    ahead[block.labels[rows], np.arange(ahead.shape[1])] = 0.0
    losses = ROW_LOSSES[loss](ahead, block.labels[rows])
    return float(losses.sum() if block.weights is None else losses @ block.weights[rows])


def _leave_one_out_left_out(block: RowBlock, rows: slice) -> Array | float:
    """Return d = min(w, 1) of the rows."""
    return 1.0 if block.weights is None else np.minimum(block.weights[rows], 1.0)


def _advance(data: Dataset, states: list[Array], family: _Family, loss: str) -> tuple[list[Array], float]:
    """Return the running scores with one factor more, changed in place, and the summed loss."""
    joined = list(zip(states, family.cells.codes, strict=True))
    log_theta = np.log((family.counts + family.prior) / (family.totals + 1.0))
    results = data.map(_add_factor, log_theta, family.counts, family.totals, family.prior, loss, states=joined)
    return [scores for scores, _ in results], sum(summed for _, summed in results)


def _add_factor(
    block: RowBlock, log_theta: Array, counts: Array, totals: Array, prior: float, loss: str
) -> tuple[Array, float]:
    """State: scores (K + 1, rows) as `_class_scores` lays them out, and the factor's cell of each row."""
    scores, cells = block.state
    summed = 0.0
    for rows in block.slices():
        here = scores[:, rows]
        here[:-1] += np.take(log_theta, cells[rows].astype(np.intp), axis=1)
        own = _by_class(block, cells, rows, counts.shape[1])
        left_out = _leave_one_out_left_out(block, rows)
        here[-1] += np.log((counts.take(own) - left_out + prior) / (totals.take(own) - left_out + 1.0))
        summed += _sum_block(block, rows, here, loss)
    return scores, summed


def squared_errors(ahead: Array, labels: Integers) -> Array:
    """Return (1 - p)^2 of every row; ahead = d, shape (K, rows), labels (rows,).

    1 - p is summed up from the other classes, not subtracted from 1: it keeps its digits where p is next to 1.

    >>> ahead = np.log([[1.0, 0.25], [3.0, 1.0]])  # class 1 is three times as likely as the true 0; then 4 to 1 right
    >>> squared_errors(ahead, np.array([0, 1])).round(12).tolist()
    [0.5625, 0.04]
    """
    _, own, others = _shares(ahead, labels)
    error: Array = np.square(others / (own + others))
    return error


def errors(ahead: Array, labels: Integers) -> Array:
    """Return 1 for every row that is given a wrong class, else 0; arguments as for `squared_errors`."""
    # argmax takes the first that ties: the lower label, as everywhere
    predicted = (ahead >= ahead.max(axis=0) - TIE).argmax(axis=0)
    wrong: Array = np.not_equal(predicted, labels).astype(np.float64)
    return wrong


def log_losses(ahead: Array, labels: Integers) -> Array:
    """Return -ln p of every row, nats; arguments as for `squared_errors`."""
    top, own, others = _shares(ahead, labels)
    # own is 1 where the true class leads: own - 1 is exactly 0 then, and the sum keeps its digits
    loss: Array = top + np.log1p((own - 1.0) + others)
    return loss


def _shares(ahead: Array, labels: Integers) -> tuple[Array, Array, Array]:
    """Return the highest d, then e^(d - highest) of the true class, and its sum over the other classes."""
    top = ahead.max(axis=0)
    shares = np.exp(ahead - top)
    rows = np.arange(len(labels))
    own = shares[labels, rows]
    shares[labels, rows] = 0.0
    return top, own, shares.sum(axis=0)


ROW_LOSSES: dict[str, RowLoss] = {"rmse": squared_errors, "error": errors, "log-loss": log_losses}
"""What is summed over rows for each loss by name."""


def learn(counts: Counts, *, k: int, loss: str, watch: Watch = silent) -> Dag:
    """Return the network of lowest leave-one-out loss; attributes that are not chosen stay outside it."""
    counts = counts.with_missing_levels("skdb", watch)
    data = counts.data
    order, k_parents = k_dependence_parents(counts, k, watch)
    members = [(i, k_parents[i]) for i in order]
    n_k = _candidates(counts, members, min(k, max(len(members) - 1, 0)))
    losses = nested_losses(data, members, n_k, loss, watch)
    # infinite losses compare as the largest number: their digits cannot be rounded
    compared = rounded(np.where(np.isinf(losses), np.finfo(float).max, losses))
    # argmin takes the first of equals: fewer parents, then fewer attributes
    best_k, n_chosen = divmod(int(compared.argmin()), losses.shape[1])
    chosen = order[:n_chosen]
    parents: list[tuple[int, ...]] = [()] * len(data.schema.attributes)
    for i in chosen:
        parents[i] = k_parents[i][:best_k]
    found = f"the first {n_chosen} of {len(members)} attributes and k = {best_k}"
    watch(Note(f"skdb chose {found}: leave-one-out {loss} {losses[best_k, n_chosen]:.6g}{_skdb_left_out(n_k)}"))
    return Dag(tuple(parents), tuple(sorted(chosen)), method="skdb", options={"k": k, "loss": loss})


def _candidates(counts: Counts, members: Sequence[tuple[int, Sequence[int]]], k: int) -> list[int]:
    """For each prefix of the order, one more than the highest k' up to k whose tables fit together; at least 1."""
    schema = counts.data.schema
    limits, totals = [], [0] * (k + 1)
    for i, parents in members:
        entries = len(schema.labels) * schema.cardinalities[i]
        for n_parents in range(len(totals)):
            if 1 <= n_parents <= len(parents):
                entries *= schema.cardinalities[parents[n_parents - 1]]
            totals[n_parents] += entries
        totals = totals[: max(1, sum(total <= MAX_ENTRIES for total in totals))]
        limits.append(len(totals))
    return limits


def _skdb_left_out(n_k: list[int]) -> str:
    """Return what the choice did not run over, in words."""
    if not n_k or n_k[-1] == n_k[0]:
        return ""
    return f" (k above {n_k[-1] - 1} was tried with fewer attributes only: larger tables do not fit)"
