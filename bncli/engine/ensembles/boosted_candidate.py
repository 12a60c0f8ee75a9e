"""The candidate "boosted": a bag of boosted oblivious trees (`bncli.engine.ensembles`), one sum of tables.

Each member learns from all rows but those of one fold, which say when to stop; the members differ in rows, in the edges
of bins and in the draws of boosting. Where the rows held out gain by it, the leaves of all trees of a member are fitted
jointly, to them too in the end (`bncli.engine.ensembles.joint_fit`). The members' scores, log-odds, are averaged. What
the bag says of a row held out is what the one member says that has not learnt from it (it only said when to stop): a
little less than the bag will.

Conventions: an attribute has at least BINS bins, and one for every BIN_ROWS rows as far as it has codes. Trees have six
levels, seven where they learn from DEEPER rows or more. (Measured, one member's log-loss in units of that of 64 bins:
0.995 over 28 tables of 1,000 to 22,000 rows, 0.87 on one where a school is a number. In units of that of six levels:
0.94 and 0.998 on 80,000 flights, their airline and whether they are late, 0.85 and 0.993 on 200,000, in as many
seconds; 1.03, 0.997, 0.998, 1.000 and 1.003 on five tables of 30,000 to 40,000 rows.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from bncli.engine.data.dataset import Dataset
from bncli.engine.data.splits import stratified_folds, stratified_sample
from bncli.engine.ensembles.boosted_trees import Boosted, Settings, boost, log_probabilities
from bncli.engine.ensembles.budget import FOLDS, TREES, ComputeBudget, Effort, boosted_seconds
from bncli.engine.ensembles.candidate_selection import HeldOutEvaluation, losses_of
from bncli.engine.ensembles.joint_fit import are_enough, jointly_fitted
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import TriedPenalty

NAME = "boosted"
BINS, BIN_ROWS = 128, 64
DEEPER = 50_000
MOST_MEMBERS = 20
"""However much time there is: more of them change next to nothing."""
Part = tuple[Dataset, Dataset]
"""Rows to learn from, rows that say when to stop."""


class Bag(NamedTuple):
    """How many members it is to have, of how many rows and trees at the most, the seed they are drawn by; the clock."""

    wanted: int
    rows: int
    trees: int
    seed: int
    budget: ComputeBudget


def judge_boosted(
    parts: Sequence[Part], weights: Array | None, bag: Bag, tell: Callable[[int], None]
) -> HeldOutEvaluation:
    """Return a member for each part, and what it says of its rows held out; `weights` of these rows, None: 1 each."""
    members, said = list[Boosted](), []
    for fold, part in enumerate(parts):
        tell(fold)
        # of the time that is left half a part is for what comes after
        members.append(_member(part, bag, fold, bag.budget.part_of_time(len(parts) - fold + 0.5)))
        said.append(log_probabilities(members[-1].held_out).T)
    logs, labels = np.concatenate(said, axis=1), np.concatenate([held_out.labels for _, held_out in parts])
    losses = losses_of(logs, labels, weights)
    tried = (TriedPenalty(Settings.penalty, losses.log_loss),)
    return HeldOutEvaluation(NAME, Settings.penalty, losses, logs, tried, None, tuple(members))


def _member(part: Part, bag: Bag, number: int, is_late: Callable[[], bool]) -> Boosted:
    n_rows = part[0].n_rows
    depth = Settings.depth + (n_rows >= DEEPER)
    settings = Settings(depth=depth, trees=bag.trees, bins=max(BINS, n_rows // BIN_ROWS))
    rng = np.random.default_rng((bag.seed, number))
    return jointly_fitted(boost(*part, settings, rng, is_late, are_enough(*part)), *part)


def member_seconds(data: Dataset, n_rows: int, like: Sequence[Boosted] = ()) -> float:
    """Return what one member is expected to take that learns from so many rows, the mean over those that it is like."""
    grown = sum(member.grown for member in like)
    return boosted_seconds(n_rows, len(data.schema.informative)) * (grown / (TREES * len(like)) if like else 1.0)


def later_rows(data: Dataset, most: int) -> int:
    """Return that a member learns from which is drawn from all rows."""
    return min(data.n_rows, most) * (FOLDS - 1) // FOLDS


def bagged(data: Dataset, judged: Sequence[Boosted], bag: Bag) -> tuple[Boosted, ...]:
    """Members on these rows: of the first folds those that were judged, then others, as far as there is time.

    Where the end of its time cut one of them short, others grow no further; one that the end of all time cuts short is
    left out, and so is one without a tree.
    """
    n_folds = min(FOLDS, data.n_rows)
    found = [member for member in judged if member.trees or member.ended] or list(judged)
    while len(found) < bag.wanted:
        if not bag.budget.has_time(0.0, member_seconds(data, later_rows(data, bag.rows), found)):
            break
        drawn = data.take(stratified_sample(data.labels, bag.rows, (bag.seed, len(found))))
        # The rows that are not held out, and those that are.
        held_out = stratified_folds(drawn.labels, n_folds, bag.seed) == len(found) % n_folds
        part = drawn.take(np.flatnonzero(~held_out)), drawn.take(np.flatnonzero(held_out))
        trees = bag.trees if all(member.ended for member in found) else max(member.grown for member in found)
        member = _member(part, bag._replace(trees=trees), len(found), bag.budget.part_of_time(1))
        if not member.ended and member.grown < trees:
            break
        found.append(member)
    return tuple(found)


def n_members(effort: Effort, n_rows: int) -> int:
    """Of more rows than an effort draws for other candidates one fewer: a member of many rows varies less."""
    return effort.members - (n_rows > effort.most_rows)
