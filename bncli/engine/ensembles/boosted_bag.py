"""The candidate "boosted": a bag of boosted oblivious trees, as one sum of tables.

Each member learns from all rows except one fold, which decides when it stops. The members differ in their rows, in the
edges of their bins, and in the random draws of boosting; their scores (log-odds) are averaged. A held-out row is
predicted by the one member that has not learned from it (although the row helped to decide when that member stopped),
which is slightly worse than a prediction by the whole bag.

Bins and depth. A numeric attribute has at most BINS bins, or one per BIN_ROWS rows if that is more. Trees have at most
six levels, or seven if they learn from DEEPER rows or more. (Relative to 64 bins, the log-loss of one member was 0.995
on average over 28 tables of 1,000 to 22,000 rows, and 0.87 on a table in which schools are coded as numbers. Relative
to six levels, the log-loss with seven was 0.94 on 80,000 flights and 0.85 on 200,000 for predicting the airline, and
0.998 and 0.993 for predicting the delay, in the same time. On five tables of 30,000 to 40,000 rows it was 0.997 to
1.03.)

Joint fit. Boosting never changes earlier trees. With the splits of all trees fixed, the scores are linear in the values
v of their leaves, and the problem

    minimise over v   sum over rows t of -w_t ln P_v(y_t | x_t)  +  lambda / 2 * |v - u|^2

is convex, where u are the values that boosting found (the totally corrective step: Warmuth, Liao & Ratsch 2006, ICML;
Johnson & Zhang 2014, IEEE PAMI 36: regularized greedy forest). It is solved by L-BFGS for falling lambda, each time
from the last optimum, as long as the held-out log-loss falls by more than the fraction WORTH. If it fell, all rows are
fitted once more at the best lambda: the splits, and how far the leaves may move, were decided on separate rows. The
predictions for the held-out rows remain those from before that last fit.

If the classes overlap much, a joint fit gains nothing after early stopping. So there is none if the held-out log-loss
is above DOUBT times the loss of the class frequencies. (On real tables it would gain nothing there; on a simulated
table whose class is determined by a tree of depth 7, it would gain up to 5 %.) Below that limit, a trial of LOOK steps
decides. (The log-loss of a bag relative to one without joint fits was 0.37 on tic_tac_toe, 0.78 on soybean_large, 0.50
on a simulated table without noise, 0.95 on the one with the tree of depth 7, and 1 on tables with noise. The trial
takes a tenth to a third of the time of growing the trees, and a fit takes at most as long as growing them.)

Boosting ends as soon as there are ENOUGH trees and the held-out log-loss is at or below that limit, provided the leaves
of that many trees can be fitted jointly. The joint fit then replaces further trees. (On a table of school classes and
their teachers, the loss was 0.258 with 350 trees, 0.234 with 500, 0.253 with 750, and 0.255 with 1,126, at which the
held-out loss stopped falling.)

The sparse matrix of a joint fit has one nonzero entry per row and tree. It is freed before the last fit builds its own,
so that only one is in memory at a time. With more than LEAF_ENTRIES entries, or if their number times the number of
scores exceeds MOST_WORK, there is no joint fit. Cost per lambda and score: about ITERATIONS passes over the entries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array

from bncli.engine.data.dataset import Dataset
from bncli.engine.data.splits import inner_splits, stratified_sample
from bncli.engine.ensembles.boosted_trees import (
    Boosted,
    Settings,
    Tree,
    boost,
    log_loss,
    log_probabilities,
    probabilities,
)
from bncli.engine.ensembles.budget import FOLDS, LEAF_ENTRIES, TREES, ComputeBudget, Effort, boosted_seconds
from bncli.engine.ensembles.held_out_evaluation import HeldOutEvaluation, measure_losses
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import TriedPenalty

BOOSTED = "boosted"
BINS, BIN_ROWS = 128, 64
DEEPER = 50_000
MOST_MEMBERS = 20
"""The maximum number of members of a bag; more hardly change it."""
PENALTIES = (100.0, 10.0, 1.0)
WORTH = 2e-3
MOST_WORK = 6 * LEAF_ENTRIES
DOUBT = 0.4
ENOUGH = 500
ITERATIONS, LOOK = 8, 3
"""The maximum number of L-BFGS iterations per penalty, and in the trial that shows whether the held-out loss falls."""
Part = tuple[Dataset, Dataset]
"""Training rows, and held-out rows that decide when to stop."""


class BagPlan(NamedTuple):
    """The plan of a bag: the number of members, the maximum rows and trees per member, the seed, and the budget."""

    n_members: int
    rows: int
    trees: int
    seed: int
    budget: ComputeBudget


def evaluate_boosted(
    parts: Sequence[Part], weights: Array | None, plan: BagPlan, report: Callable[[int], None]
) -> HeldOutEvaluation:
    """Grow a member per part, and evaluate the members on their held-out rows, with row weights (None: all 1).

    `report` is called with the number of each part before its member is grown.
    """
    members, of_parts = list[Boosted](), []
    for fold, part in enumerate(parts):
        report(fold)
        # Half of the time per member is left for what comes after the bag.
        is_late = plan.budget.part_of_time(len(parts) - fold + 0.5)
        members.append(_grow_member(part, plan, fold, is_late))
        of_parts.append(log_probabilities(members[-1].held_out).T)
    log_p, labels = np.concatenate(of_parts, axis=1), np.concatenate([held_out.labels for _, held_out in parts])
    losses = measure_losses(log_p, labels, weights)
    tried = (TriedPenalty(Settings.penalty, losses.log_loss),)
    return HeldOutEvaluation(BOOSTED, Settings.penalty, losses, log_p, tried, None, tuple(members))


def complete_bag(data: Dataset, evaluated: Sequence[Boosted], plan: BagPlan) -> tuple[Boosted, ...]:
    """Return the members of the final bag: the evaluated ones, then new ones until there are `n_members` or time is up.

    If a limit of time or trees cut a member short, new members grow no more trees than the longest one did. A new
    member that the time limit cuts short is dropped. So are evaluated members that were cut short before their first
    tree, unless no member would be left.
    """
    members = [member for member in evaluated if member.trees or member.ended] or list(evaluated)
    while len(members) < plan.n_members:
        seconds = member_seconds(data, member_rows(data, plan.rows), members)
        if not plan.budget.has_time(0.0, seconds):
            break
        number = len(members)
        drawn = data.take(stratified_sample(data.labels, plan.rows, (plan.seed, number), data.split_by))
        splits = inner_splits(drawn.labels, FOLDS, plan.seed, drawn.split_by)
        if not splits:
            break
        # one fold after the other, so that the members differ in their held-out rows
        others, held_out = splits[number % len(splits)]
        part = drawn.take(others), drawn.take(held_out)
        trees = plan.trees if all(member.ended for member in members) else max(member.grown for member in members)
        member = _grow_member(part, plan._replace(trees=trees), number, plan.budget.part_of_time(1))
        if not member.ended and member.grown < trees:
            break
        members.append(member)
    return tuple(members)


def _grow_member(part: Part, plan: BagPlan, number: int, is_late: Callable[[], bool]) -> Boosted:
    n_rows = part[0].n_rows
    depth = Settings.depth + (n_rows >= DEEPER)
    settings = Settings(depth=depth, trees=plan.trees, bins=max(BINS, n_rows // BIN_ROWS))
    rng = np.random.default_rng((plan.seed, number))
    return fit_jointly(boost(*part, settings, rng, is_late, enough_for_joint_fit(*part)), *part)


def member_seconds(data: Dataset, n_rows: int, grown: Sequence[Boosted] = ()) -> float:
    """Return the expected seconds to grow a member on `n_rows` rows, with TREES trees or the mean number in `grown`."""
    n_trees = sum(member.grown for member in grown)
    expected = boosted_seconds(n_rows, len(data.schema.informative))
    return expected * (n_trees / (TREES * len(grown)) if grown else 1.0)


def member_rows(data: Dataset, most: int) -> int:
    """Return the number of rows that a member of the final bag learns from if at most `most` are drawn."""
    return min(data.n_rows, most) * (FOLDS - 1) // FOLDS


def bag_size(effort: Effort, n_rows: int) -> int:
    """Return the number of members of the bag.

    It is one fewer than the effort allows if other candidates use a sample, because members then vary less.
    """
    return effort.members - (n_rows > effort.most_rows)


def fit_jointly(member: Boosted, data: Dataset, held_out: Dataset) -> Boosted:
    """Fit the leaves of a member jointly to all rows if that lowers its held-out log-loss enough.

    It must fall by more than the fraction WORTH. Otherwise return the member unchanged, without trying if it has no
    trees, too many, or too high a held-out log-loss.
    """
    n_trees = len(member.trees)
    if not n_trees or n_trees > most_joint_trees(data, held_out):
        return member
    if member.log_loss > DOUBT * log_loss(np.tile(member.prior, (held_out.n_rows, 1)), held_out):
        return member
    grown = np.concatenate([tree.values for tree in member.trees])
    inside, outside = (_LeafRows.of([rows], member.trees, member.prior) for rows in (data, held_out))
    values = _fit_leaves(inside, grown, PENALTIES[0], grown, LOOK)
    if log_loss(outside.scores(values), held_out) >= member.log_loss:
        return member
    best, best_penalty = member, PENALTIES[0]
    for penalty in PENALTIES:
        fitted = _fit_leaves(inside, grown, penalty, values, ITERATIONS)
        scores = outside.scores(fitted)
        loss = log_loss(scores, held_out)
        # penalties fall: after one that does not help enough, smaller ones are not tried
        if loss >= (1.0 - WORTH) * best.log_loss:
            break
        best, values, best_penalty = replace(member, held_out=scores, log_loss=loss), fitted, penalty
    if best is member:
        return member
    del inside, outside  # so that the entries exist only once
    rows = _LeafRows.of([data, held_out], member.trees, member.prior)
    # refit to all rows, starting at the optimum of those that were learned from
    values = _fit_leaves(rows, grown, best_penalty, values, ITERATIONS)
    ends = np.cumsum([len(tree.values) for tree in member.trees])[:-1]
    of_trees = zip(member.trees, np.split(values, ends), strict=True)
    return replace(best, trees=tuple(replace(tree, values=own) for tree, own in of_trees))


def most_joint_trees(data: Dataset, held_out: Dataset) -> int:
    """Return the maximum number of trees whose leaves can be fitted jointly to these rows."""
    scores = 1 if data.n_labels == 2 else data.n_labels
    return min(LEAF_ENTRIES, MOST_WORK // scores) // max(1, data.n_rows + held_out.n_rows)


def enough_for_joint_fit(data: Dataset, held_out: Dataset) -> Callable[[int, float, float], bool]:
    """Return a function that decides whether boosting should end so that the leaves can be fitted jointly.

    Its arguments are the number of trees, the lowest held-out log-loss so far, and the held-out log-loss of the class
    frequencies.
    """
    most = most_joint_trees(data, held_out)
    return lambda n_trees, loss, first: ENOUGH <= n_trees <= most and loss <= DOUBT * first


@dataclass(frozen=True)
class _LeafRows:
    """Rows as leaf indicators: leaves (rows, leaves of all trees) is 1 where a row lies in a leaf.

    has_label (rows, scores) is True where the row has the class of the score, `weights` are (rows, 1), and `prior`
    (scores,) has the initial scores. There is one score for two classes (the second class), and one per class for more.
    """

    leaves: csr_array
    has_label: Array
    weights: Array
    prior: Array

    @classmethod
    def of(cls, parts: Sequence[Dataset], trees: Sequence[Tree], prior: Array) -> _LeafRows:
        """Return the rows of all parts, one part after the other."""
        # the leaves of all trees in one range of numbers
        first = np.cumsum([0, *(len(tree.values) for tree in trees)])
        ends = np.cumsum([0, *(part.n_rows for part in parts)])
        # (trees, rows), filled tree by tree; transposed, the entries of a row lie together, as CSR needs them
        columns = np.empty((len(trees), int(ends[-1])), np.int32)
        for start, end, part in zip(ends, ends[1:], parts, strict=False):
            for k, tree in enumerate(trees):
                np.add(tree.leaf(part), first[k], out=columns[k, start:end], casting="same_kind")
        indptr = np.arange(0, columns.size + 1, len(trees), dtype=np.int32)
        entries = (np.ones(columns.size), columns.T.ravel(), indptr)
        leaves = csr_array(entries, shape=(int(ends[-1]), int(first[-1])))
        labels = np.concatenate([part.labels for part in parts]).astype(np.intp)
        # one score for two classes, else one per class
        has_label = (labels == 1)[:, np.newaxis] if len(prior) == 1 else np.eye(len(prior), dtype=bool)[labels]
        weights = [np.ones(part.n_rows) if part.weights is None else part.weights for part in parts]
        return cls(leaves, has_label, np.concatenate(weights)[:, np.newaxis], prior)

    def scores(self, values: Array) -> Array:
        """Return the scores (rows, scores): the prior plus the values (leaves, scores) of each row's leaves."""
        return np.asarray(self.prior + self.leaves @ values)


def _fit_leaves(rows: _LeafRows, grown: Array, penalty: float, start: Array, iterations: int) -> Array:
    """Return leaf values (leaves, scores) near the minimum of the loss plus penalty / 2 * |values - grown|^2.

    L-BFGS starts at the values `start` and runs for at most `iterations` iterations.
    """
    shape, to_leaves = grown.shape, rows.leaves.T

    def objective(point: Array) -> tuple[float, Array]:
        values = point.reshape(shape)
        scores, change = rows.scores(values), values - grown
        # d loss / d score = w (P - 1[y]), summed over the rows of each leaf
        gradient = to_leaves @ (rows.weights * (probabilities(scores) - rows.has_label)) + penalty * change
        if scores.shape[1] == 1:
            loss = float((rows.weights * np.logaddexp(0.0, np.where(rows.has_label, -scores, scores))).sum())
        else:
            loss = -float((rows.weights * rows.has_label * log_probabilities(scores)).sum())
        return loss + 0.5 * penalty * float((change * change).sum()), gradient.ravel()

    first: Array = start.ravel()
    result = minimize(objective, first, jac=True, method="L-BFGS-B", options={"maxiter": iterations})
    return np.asarray(result.x.reshape(shape))
