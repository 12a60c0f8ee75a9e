"""The leaves of all trees of a member fitted jointly, where rows held out ask for it.

Boosting fits one tree after the other and never looks back at those before. With the questions of all trees as they
are, the scores are linear in the values v of their leaves, and

    minimise over v   sum over rows t of -w_t ln P_v(y_t | x_t)  +  lambda / 2 * |v - u|^2

is convex, u being the values that were grown (the totally corrective step of boosting: Warmuth, Liao & Ratsch 2006,
ICML; Johnson & Zhang 2014, IEEE PAMI 36: regularized greedy forest). It is solved by L-BFGS for falling lambda, from
the last optimum on, while rows held out gain a share of WORTH. Where they gain, all rows are fitted once more at the
best lambda: which questions are asked, and how much is believed of the answers, was settled on rows apart. What is said
of the rows held out is what was said before they were learnt from.

Where classes overlap much, trees that were stopped in time leave nothing to gain: beyond DOUBT of the log-loss of the
class frequencies nobody looks (it would be nothing on real tables, up to 5 % where the class is a tree of depth 7),
below it a first look after LOOK steps tells. Where they hardly do, boosting stops short of what its trees can say.
(Measured, a bag's log-loss in units of that without: 0.37 on tic_tac_toe, 0.78 on soybean_large, 0.50 on a simulated
table without noise, 0.95 on one whose class is a tree of depth 7, and 1 on tables with noise. The look takes a tenth to
a third of the time in which trees are grown, a fit at the most as long as that.) So where classes hardly overlap,
ENOUGH trees are grown, if leaves of so many can be fitted jointly. (Of the classes of a school by their teachers, 500
trees lost 0.234, 350 0.258, 750 0.253, and 1,126, where rows held out had enough, 0.255.)

Conventions: as many nonzero entries as rows times trees, at most MOST of them, ENTRY bytes each (96 MiB), which exist
once: for the last fit they are made again. Beyond it, or beyond MOST_WORK entries times classes, nothing is refitted.
Cost: for each lambda at most ITERATIONS passes over these entries, classes each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array

from bncli.engine.data.dataset import Dataset
from bncli.engine.ensembles.boosted_trees import Boosted, Tree, log_loss, log_probabilities, probabilities
from bncli.engine.kernels.arrays import Array

PENALTIES = (100.0, 10.0, 1.0)
WORTH = 2e-3
MOST, ENTRY = 1 << 23, 12
MOST_WORK = 6 * MOST
"""Entries times classes (1 of two)."""
DOUBT = 0.4
"""Of the log-loss of the class frequencies, that is left to rows held out."""
ENOUGH = 500
"""Trees to be fitted jointly."""
ITERATIONS, LOOK = 8, 3
"""For each penalty, and for a first look at whether rows held out gain at all."""


@dataclass(frozen=True)
class _Rows:
    """Rows as the trees see them: leaves (rows, leaves of all trees), 1 where a row lies in a leaf.

    own (rows, scores): 1 where the class is the row's; weights (rows, 1).
    """

    leaves: csr_array
    own: Array
    weights: Array
    prior: Array

    @classmethod
    def of(cls, parts: Sequence[Dataset], trees: Sequence[Tree], prior: Array) -> _Rows:
        """Return the rows of all parts, one part after the other."""
        first = np.cumsum([0, *(len(tree.values) for tree in trees)])
        ends = np.cumsum([0, *(part.n_rows for part in parts)])
        columns = np.empty((len(trees), int(ends[-1])), np.int32)
        for start, end, part in zip(ends, ends[1:], parts, strict=False):
            for k, tree in enumerate(trees):
                np.add(tree.leaf(part), first[k], out=columns[k, start:end], casting="same_kind")
        indptr = np.arange(0, columns.size + 1, len(trees), dtype=np.int32)
        of_rows = (np.ones(columns.size), columns.T.ravel(), indptr)
        leaves = csr_array(of_rows, shape=(int(ends[-1]), int(first[-1])))
        labels = np.concatenate([part.labels for part in parts]).astype(np.intp)
        own = (labels == 1)[:, np.newaxis] if len(prior) == 1 else np.eye(len(prior), dtype=bool)[labels]
        weights = [np.ones(part.n_rows) if part.weights is None else part.weights for part in parts]
        return cls(leaves, own, np.concatenate(weights)[:, np.newaxis], prior)

    def loss(self, scores: Array) -> float:
        """Return the sum of -w ln P(y | x), nats."""
        if scores.shape[1] == 1:
            own = np.where(self.own, -scores, scores)
            return float((self.weights * np.logaddexp(0.0, own)).sum())
        return -float((self.weights * self.own * log_probabilities(scores)).sum())

    def scores(self, values: Array) -> Array:
        """Return (rows, scores) by the values (leaves, scores)."""
        return np.asarray(self.prior + self.leaves @ values)


def jointly_fitted(member: Boosted, data: Dataset, held_out: Dataset) -> Boosted:
    """Return the member with leaves fitted jointly on both, as far as that lowers the log-loss of the rows held out."""
    n_trees = len(member.trees)
    if (
        not n_trees
        or n_trees > most_trees(data, held_out)
        or (member.log_loss > DOUBT * log_loss(np.tile(member.prior, (held_out.n_rows, 1)), held_out))
    ):
        return member
    grown = np.concatenate([tree.values for tree in member.trees])
    inside, outside = (_Rows.of([rows], member.trees, member.prior) for rows in (data, held_out))
    values = _optimum(inside, grown, PENALTIES[0], grown, LOOK)
    if log_loss(outside.scores(values), held_out) >= member.log_loss:
        return member
    best, found = member, PENALTIES[0]
    for penalty in PENALTIES:
        fitted = _optimum(inside, grown, penalty, values, ITERATIONS)
        said = outside.scores(fitted)
        loss = log_loss(said, held_out)
        if loss >= (1.0 - WORTH) * best.log_loss:
            break
        best, values, found = replace(member, held_out=said, log_loss=loss), fitted, penalty
    if best is member:
        return member
    del inside, outside
    values = _optimum(_Rows.of([data, held_out], member.trees, member.prior), grown, found, values, ITERATIONS)
    return replace(best, trees=_with_values(member.trees, values))


def _optimum(rows: _Rows, grown: Array, penalty: float, start: Array, iterations: int) -> Array:
    """Return the values (leaves, scores) of the least penalised loss, nearly."""
    shape, to_leaves = grown.shape, rows.leaves.T

    def objective(point: Array) -> tuple[float, Array]:
        values = point.reshape(shape)
        scores, away = rows.scores(values), values - grown
        gradient = to_leaves @ (rows.weights * (probabilities(scores) - rows.own)) + penalty * away
        return rows.loss(scores) + 0.5 * penalty * float((away * away).sum()), gradient.ravel()

    first: Array = start.ravel()
    found = minimize(objective, first, jac=True, method="L-BFGS-B", options={"maxiter": iterations})
    return np.asarray(found.x.reshape(shape))


def _with_values(trees: Sequence[Tree], values: Array) -> tuple[Tree, ...]:
    ends = np.cumsum([len(tree.values) for tree in trees])[:-1]
    return tuple(replace(tree, values=part) for tree, part in zip(trees, np.split(values, ends), strict=True))


def most_trees(data: Dataset, held_out: Dataset) -> int:
    """Return that can be fitted jointly to these rows."""
    scores = 1 if data.n_labels == 2 else data.n_labels
    return min(MOST, MOST_WORK // scores) // max(1, data.n_rows + held_out.n_rows)


def are_enough(data: Dataset, held_out: Dataset) -> Callable[[int, float, float], bool]:
    """Of a number of trees, their log-loss and that of the class frequencies: whether to try the joint fit now."""
    most = most_trees(data, held_out)
    return lambda n_trees, loss, first: ENOUGH <= n_trees <= most and loss <= DOUBT * first
