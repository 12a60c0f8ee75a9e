"""Selective k-dependence classifier (SKDB): KDB whose numbers of parents and attributes are chosen by held-out loss.

KDB (Sahami 1996) with at most k parents orders the attributes by decreasing I(X_i; Y) and lists the parents of each by
decreasing I(X_i; X_j | Y). SKDB truncates both lists: among all k' <= k and all prefixes of the attribute order, 0 to n
attributes, it takes those with the lowest leave-one-out loss on the rows (Martinez, Webb, Chen & Zaidi 2016, Journal of
Machine Learning Research 17). With p_t = P(y_t | x_t) from the network learned without row t, the losses are

    rmse = sqrt( mean of (1 - p_t)^2 ),    error = mean of [y_t is not predicted],    log-loss = mean of -ln p_t

If rows belong together in units, the network is learned without all rows of the row's unit. If rows have times, the
latest rows are held out once, and the losses are computed on them with the network of the earlier rows
(`bncli.engine.data.splits`). In both cases, cuts and groups of levels that depend on the labels must not use the rows
left out. So if the raw rows are available, cuts, the order of the attributes and their parents are learned again in
each of 5 folds of units (or without the latest rows). The chosen k' and number of attributes are those with the lowest
loss on the held-out rows.

Conventions: ties (at 12 significant digits) go to fewer parents, then to fewer attributes. No attribute at all is
chosen if none lowers the loss. With k' > 0, networks whose tables have more than 2^27 entries (1 GiB) in total are not
candidates. Under `--missing-policy marginalize`, the choice treats missing values as one more level
(`Counts.with_missing_levels`). Cost: KDB's counting pass over all pairs, then a few passes for each attribute and k'.
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
from bncli.engine.data.splits import inner_splits, units_of_several_rows
from bncli.engine.kernels.arrays import Array, Index, Integers, add_counts
from bncli.engine.kernels.information import rounded
from bncli.engine.structure_learners.dependence import k_dependence_parents
from bncli.engine.structures.arc_constraints import ArcConstraints
from bncli.engine.structures.structure import Dag
from bncli.watch import Note, Progress, Watch, silent

TIE = 1e-10
"""Classes whose scores are at most TIE nats below the highest are tied with it; the first of them is predicted."""
LATEST_PART = 5
"""If rows have times, about the last 1 / LATEST_PART of the rows is held out."""
MOST_SCORES = 1 << 26
"""The maximum number of scores in memory at a time (512 MiB); values of k that do not fit take further rounds."""


def learn(
    counts: Counts, *, k: int, loss: str, constraints: ArcConstraints | None = None, watch: Watch = silent
) -> Dag:
    """Return the network with the lowest leave-one-out or held-out loss, without the attributes that are not chosen.

    With constraints, only networks with all required arcs are candidates, and UsageError is raised as by
    `k_dependence_parents`.
    """
    counts = counts.with_missing_levels("skdb", watch)
    data = counts.data
    order, k_parents = k_dependence_parents(counts, k, watch, constraints)
    attributes = [(i, k_parents[i]) for i in order]
    n_k = _feasible_k(data.schema, attributes, min(k, max(len(attributes) - 1, 0)))
    held_out = find_held_out(data)
    method = "leave-one-out" if held_out is None else held_out.method
    if data.recut:
        losses = _losses_with_own_cuts(data, k, loss, constraints, (max(n_k, default=1), 1 + len(attributes)))
        method = "cross-validated" if len(data.recut) > 1 else "held-out"
    else:
        losses = nested_losses(data, attributes, n_k, loss, watch, held_out)
    if constraints is not None:
        n_required = constraints.required.sum(axis=0)
        # fewer parents than required, or a prefix that ends before an attribute with required arcs
        losses[: int(n_required.max(initial=0))] = np.inf
        with_arcs = [place for place, i in enumerate(order) if n_required[i]]
        losses[:, : max(with_arcs, default=-1) + 1] = np.inf
    # infinite losses cannot be rounded, so they are replaced by the largest number
    compared = rounded(np.where(np.isinf(losses), np.finfo(float).max, losses))
    # argmin takes the first of equals: fewer parents, then fewer attributes
    best_k, n_chosen = divmod(int(compared.argmin()), losses.shape[1])
    chosen = order[:n_chosen]
    parents: list[tuple[int, ...]] = [()] * len(data.schema.attributes)
    for i in chosen:
        parents[i] = k_parents[i][:best_k]
    what = f"{n_chosen} of {len(attributes)} attributes and k = {best_k}"
    limit = ""
    if n_k and n_k[-1] != n_k[0]:
        limit = (
            f" (k above {n_k[-1] - 1} was tried only with fewer attributes, because larger tables do not fit in memory)"
        )
    watch(Note(f"skdb chose {what}: {method} {loss} {losses[best_k, n_chosen]:.6g}{limit}"))
    return Dag(tuple(parents), tuple(sorted(chosen)), method="skdb", options={"k": k, "loss": loss})


def _losses_with_own_cuts(
    data: Dataset, k: int, loss: str, constraints: ArcConstraints | None, shape: tuple[int, int]
) -> Array:
    """Return losses as `nested_losses` does, on the held-out rows of all splits; each has its own cuts and networks.

    `shape` is the shape of the result. If a split has fewer attributes or parents to choose from, its loss with all of
    them is used for larger numbers too.
    """
    sums, total = np.zeros(shape), 0.0
    for recut, (others, rows) in data.recut:
        coded = Counts(recut).with_missing_levels("skdb", silent).data
        order, k_parents = k_dependence_parents(Counts(coded.take(others)), k, silent, constraints)
        attributes = [(i, k_parents[i]) for i in order]
        n_k = _feasible_k(coded.schema, attributes, min(k, max(len(attributes) - 1, 0)))
        losses = nested_losses(coded, attributes, n_k, loss, silent, _leave_out(coded, others, rows))
        # rows and columns beyond the split's own repeat its last one
        own = losses[np.minimum(np.arange(shape[0]), losses.shape[0] - 1)]
        own = own[:, np.minimum(np.arange(shape[1]), losses.shape[1] - 1)]
        weight = float(len(rows) if coded.weights is None else coded.weights[rows].sum())
        # mean squares are averaged, not roots
        sums += weight * (np.square(own) if loss == "rmse" else own)
        total += weight
    return np.sqrt(sums / total) if loss == "rmse" else sums / total


class HeldOut(NamedTuple):
    """Sets of rows that are left out together, instead of single rows.

    `sets` has the number of each row's set, and `weights` the weight of each row in the loss, both per row block;
    `method` names this kind of evaluation in the note about the choice.
    """

    method: str
    sets: JointCodes
    weights: list[Array]


def find_held_out(data: Dataset) -> HeldOut | None:
    """Return the sets of rows that are left out together, or None if rows are left out one by one.

    If rows have times, the earlier rows, which are learned from, form one set and all others a second one; otherwise
    each unit is a set.
    """
    by = data.split_by
    if by is not None and by.times is not None:
        for others, rows in inner_splits(data.labels, LATEST_PART, 0, by):
            return _leave_out(data, others, rows)
    units = units_of_several_rows(by)
    if units is None:
        return None
    weights = np.ones(data.n_rows) if data.weights is None else data.weights
    return _held_out_sets(data, "leave-one-group-out", units, weights)


def _leave_out(data: Dataset, others: Index, rows: Index) -> HeldOut:
    """Return sets of rows such that all rows but `others` are left out together, and only `rows` count in the loss."""
    sets = np.ones(data.n_rows, np.intp)
    sets[others] = 0
    weights = np.zeros(data.n_rows)
    weights[rows] = 1.0 if data.weights is None else data.weights[rows]
    return _held_out_sets(data, "held-out", sets, weights)


def _held_out_sets(data: Dataset, method: str, sets: Index, weights: Array) -> HeldOut:
    bounds = data.bounds()
    codes = JointCodes([sets[a:b].astype(np.uint32) for a, b in bounds], int(sets.max()) + 1)
    return HeldOut(method, codes, [weights[a:b] for a, b in bounds])


def _feasible_k(schema: Schema, attributes: Sequence[tuple[int, Sequence[int]]], k: int) -> list[int]:
    """Return 1 + the highest k' <= k whose tables fit in MAX_ENTRIES, or 1 if none do, for each prefix of the order.

    The empty prefix is left out.
    """
    limits, totals = [], [0] * (k + 1)
    for i, parents in attributes:
        entries = len(schema.labels) * schema.cardinalities[i]
        # entries grow by one parent at a time; totals[k'] sums the tables with at most k' parents
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
    held_out: HeldOut | None = None,
) -> Array:
    """Return the leave-one-out or held-out loss of nested networks, shape (largest of n_k, 1 + attributes).

    attributes[p] is an attribute and its parents, in order, among the earlier ones. The network (k, p) has the first p
    attributes, each with the class and the first k of its parents as parents. Networks with attribute p are computed
    for k below n_k[p], which never rises with p; the others have an infinite loss. Losses are weighted means over rows
    (rmse: the root of a mean). The networks (k, p - 1) and (k, p) differ by one factor:

        ln P(y, x_1..x_p; k) = ln P(y) + sum over i <= p of ln theta_i(x_i | first k parents of i, y)

    A row is left out by subtracting it from its counts, which affects its own class y_t alone. Smoothed by an
    m-estimate of strength 1, for a row of weight w with d = min(w, 1),

        theta_i(k | j, y) = (N_ijky - d [y = y_t] + 1/|X_i|) / (N_ijy - d [y = y_t] + 1)

    and likewise for the class (Martinez, Webb, Chen & Zaidi 2016). A row of weight w counts as w equal rows, of which
    one is left out, and all of them count in the loss; a row of weight below 1 is left out entirely. If sets of rows
    are left out together, the counts of the row's set are subtracted in every class, with their full weight.

    Cost: for each attribute and k, three passes over rows and K N exponentials. Memory: K + 1 values per row for each k
    that is processed at a time, up to MOST_SCORES in total; tables have only the joint values that occur.
    """
    ks = max(n_k, default=1)
    sums = np.full((ks, 1 + len(attributes)), np.inf)
    step = max(1, MOST_SCORES // max(1, data.n_rows * (data.n_labels + 1)))
    total, done = sum(n_k), 0
    for start in range(0, ks, step):
        for k, p, summed in _nested_sums(data, attributes, n_k, range(start, min(start + step, ks)), loss, held_out):
            sums[k, p] = summed
            done += p > 0
            watch(Progress(done, total, "networks"))
    weight = data.total_weight if held_out is None else float(sum(part.sum() for part in held_out.weights))
    means = sums / max(weight, np.finfo(float).tiny)
    return np.sqrt(means) if loss == "rmse" else means


def _nested_sums(
    data: Dataset,
    attributes: Sequence[tuple[int, Sequence[int]]],
    n_k: Sequence[int],
    ks: range,
    loss: str,
    held_out: HeldOut | None,
) -> Iterator[tuple[int, int, float]]:
    """Yield (k, p, weighted sum of losses) of every feasible network with k in `ks`."""
    none = no_attributes(data)
    # joint codes of no attributes: the class counts, (K, 1)
    by_class = _count_by_class(data, none)
    if held_out is None:
        initial = data.map(_class_scores, by_class[:, 0])
    else:
        left_out = _count_by_class(data, held_out.sets)
        initial = data.map(_class_scores_without_sets, by_class, left_out, states=held_out.sets.codes)
    loss_weights = [None] * len(initial) if held_out is None else held_out.weights
    summed = sum(data.map(_sum_losses, loss, states=list(zip(initial, loss_weights, strict=True))))
    yield from ((k, 0, summed) for k in ks)
    # scores so far of the network with k parents, changed in place by each factor
    running = {k: [scores.copy() for scores in initial] for k in ks}
    for p, ((child, parents), limit) in enumerate(zip(attributes, n_k, strict=True), start=1):
        configurations, sets, factor = none, None if held_out is None else held_out.sets, None
        for k in range(min(ks.stop, limit)):
            if 1 <= k <= len(parents):
                # joint values of the first k parents
                configurations, factor = extend(data, configurations, parents[k - 1])[0], None
                sets = None if sets is None else extend(data, sets, parents[k - 1])[0]
            if k not in ks:
                continue
            # with no further parent to add, the factor of the last k is still valid
            if factor is None:
                factor = _make_factor(data, configurations, sets, child)
            if factor.left_out is None:
                states: list[tuple[object, ...]] = list(zip(running[k], factor.cells.codes, strict=True))
                # nothing is left out: right for all classes but a row's own, which `_add_factor` keeps in the last row
                log_theta = np.log((factor.counts + factor.prior) / (factor.totals + 1.0))
                added = data.map(
                    _add_factor, log_theta, factor.counts, factor.totals, factor.prior, loss, states=states
                )
            else:
                left, codes = factor.left_out, (factor.cells.codes, factor.left_out.cells.codes)
                states = list(zip(running[k], *codes, loss_weights, strict=True))
                both = (factor.counts, factor.totals, left.counts, left.totals)
                added = data.map(_add_factor_without_sets, both, factor.prior, loss, states=states)
            running[k] = [scores for scores, _ in added]
            yield k, p, sum(summed for _, summed in added)


class _Factor(NamedTuple):
    """One factor of the network, over the joint values (cells) of an attribute and its parents that occur.

    cells: the joint value of each row; counts (K, cells): N_ijky; totals (K, cells): N_ijy; prior = 1/|X_i|. If sets of
    rows are left out together, `left_out` has the counts within each set; its cells combine joint value and set number.
    """

    cells: JointCodes
    counts: Array
    totals: Array
    prior: float
    left_out: _Factor | None = None


def _make_factor(data: Dataset, configurations: JointCodes, sets: JointCodes | None, child: int) -> _Factor:
    """Count the child's values in each configuration of its parents, and with `sets` also within each set of rows."""
    cells, configuration = extend(data, configurations, child)
    counts = _count_by_class(data, cells)
    # N_ijy: sums over the child's values in each configuration, then repeated for every cell
    sums = [np.bincount(configuration, row, configurations.size) for row in counts]
    totals = np.stack(sums).astype(np.float64, copy=False)
    left_out = None if sets is None else _make_factor(data, sets, None, child)
    return _Factor(cells, counts, totals[:, configuration], 1.0 / data.schema.cardinalities[child], left_out)


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
    """Return the position of every row's class and cell in a flattened table of shape (K, size)."""
    numbers = block.labels[rows].astype(np.intp)
    numbers *= size
    numbers += cells[rows]
    return numbers


def _class_scores(block: RowBlock, counts: Array) -> Array:
    """Return the scores (K + 1, rows) of the network without attributes: ln(N_y + 1/K) for each of the K classes.

    The last row of scores is the score of each row's own class y with the row left out, ln(N_y - d + 1/K), where
    d = min(w, 1) for a row of weight w. The normalising total is the same for all classes, so it is omitted.
    """
    scores = np.empty((len(counts) + 1, block.n_rows))
    scores[:-1] = np.log(counts + 1.0 / len(counts))[:, np.newaxis]
    left_out = 1.0 if block.weights is None else np.minimum(block.weights, 1.0)
    scores[-1] = np.log(counts[block.labels] - left_out + 1.0 / len(counts))
    return scores


def _class_scores_without_sets(block: RowBlock, counts: Array, left_out: Array) -> Array:
    """Return scores as `_class_scores` does, but with each row's set of rows left out of the counts of all classes.

    counts (K, 1); left_out (K, sets); the state of the block is the set of each row.
    """
    scores = np.empty((len(counts) + 1, block.n_rows))
    scores[:-1] = np.log(np.maximum(counts - left_out, 0.0) + 1.0 / len(counts))[:, block.state]
    scores[-1] = scores[block.labels, np.arange(block.n_rows)]
    return scores


def _add_factor(
    block: RowBlock, log_theta: Array, counts: Array, totals: Array, prior: float, loss: str
) -> tuple[Array, float]:
    """Add a factor to the scores of a block, in place; return the scores and the summed loss.

    The block's state is the scores (K + 1, rows) as in `_class_scores`, and the factor's cell of each row.
    """
    scores, cells = block.state
    summed = 0.0
    for rows in block.slices():
        here = scores[:, rows]
        here[:-1] += np.take(log_theta, cells[rows].astype(np.intp), axis=1)
        own = _own_cells(block, cells, rows, counts.shape[1])
        left_out = 1.0 if block.weights is None else np.minimum(block.weights[rows], 1.0)
        here[-1] += np.log((counts.take(own) - left_out + prior) / (totals.take(own) - left_out + 1.0))
        summed += _sum_slice(block, rows, here, loss, block.weights)
    return scores, summed


def _add_factor_without_sets(
    block: RowBlock, tables: tuple[Array, Array, Array, Array], prior: float, loss: str
) -> tuple[Array, float]:
    """Add a factor as `_add_factor` does, but with each row's set of rows left out of the counts of all classes.

    tables: counts and totals (K, cells), then counts and totals within the sets (K, cells of the sets). The block's
    state has the scores (K + 1, rows), each row's cell, its cell within the sets, and its weight in the loss.
    """
    counts, totals, set_counts, set_totals = tables
    scores, cells, set_cells, weights = block.state
    summed = 0.0
    for rows in block.slices():
        here, cell, set_cell = scores[:, rows], cells[rows].astype(np.intp), set_cells[rows].astype(np.intp)
        # differences of sums of weights may fall below 0 by rounding
        own = np.maximum(np.take(counts, cell, axis=1) - np.take(set_counts, set_cell, axis=1), 0.0)
        total = np.maximum(np.take(totals, cell, axis=1) - np.take(set_totals, set_cell, axis=1), 0.0)
        here[:-1] += np.log((own + prior) / (total + 1.0))
        here[-1] = here[block.labels[rows], np.arange(here.shape[1])]
        summed += _sum_slice(block, rows, here, loss, weights)
    return scores, summed


def _sum_losses(block: RowBlock, loss: str) -> float:
    scores, weights = block.state
    weights = block.weights if weights is None else weights
    return sum(_sum_slice(block, rows, scores[:, rows], loss, weights) for rows in block.slices())


def _sum_slice(block: RowBlock, rows: slice, scores: Array, loss: str, weights: Array | None) -> float:
    # ln P(y | x) - ln P(true class | x), where the row is left out of its own class
    margins = scores[:-1] - scores[-1]
    # the true class is compared with itself, both without the row
    margins[block.labels[rows], np.arange(margins.shape[1])] = 0.0
    losses = ROW_LOSSES[loss](margins, block.labels[rows])
    return float(losses.sum() if weights is None else losses @ weights[rows])


def squared_errors(margins: Array, labels: Integers) -> Array:
    """Return (1 - p)^2 of every row, where p is the probability of its true class.

    `margins` d[y] = ln P(y | x) - ln P(true class | x), shape (K, rows); labels (rows,). p = 1 / sum over y of e^d[y].
    1 - p is computed as a sum over the other classes, which keeps its digits if p is close to 1.

    >>> margins = np.log([[1.0, 0.25], [3.0, 1.0]])  # odds of the true class: 1 to 3 in row 0, 4 to 1 in row 1
    >>> squared_errors(margins, np.array([0, 1])).round(12).tolist()
    [0.5625, 0.04]
    """
    _, own, others = _class_shares(margins, labels)
    error: Array = np.square(others / (own + others))
    return error


def errors(margins: Array, labels: Integers) -> Array:
    """Return 1 for each misclassified row and 0 for every other row; arguments as for `squared_errors`."""
    # argmax takes the first of tied classes, as all predictions do
    predicted = (margins >= margins.max(axis=0) - TIE).argmax(axis=0)
    wrong: Array = np.not_equal(predicted, labels).astype(np.float64)
    return wrong


def log_losses(margins: Array, labels: Integers) -> Array:
    """Return -ln p of every row, in nats; arguments as for `squared_errors`."""
    top, own, others = _class_shares(margins, labels)
    # if the true class leads, own - 1 is exactly 0, and the sum keeps its digits
    loss: Array = top + np.log1p((own - 1.0) + others)
    return loss


def _class_shares(margins: Array, labels: Integers) -> tuple[Array, Array, Array]:
    """Return per row the highest d, exp(d - highest) of the true class, and its sum over the other classes."""
    top = margins.max(axis=0)
    shares = np.exp(margins - top)
    rows = np.arange(len(labels))
    own = shares[labels, rows]
    # the others without the own class, summed by themselves, so that 1 - p keeps its digits
    shares[labels, rows] = 0.0
    return top, own, shares.sum(axis=0)


ROW_LOSSES: dict[str, Callable[[Array, Integers], Array]] = {
    "rmse": squared_errors,
    "error": errors,
    "log-loss": log_losses,
}
"""The function that computes each loss per row, keyed by the name of the loss; rmse is the root of the mean."""
