"""The candidate "boosted": a bag of boosted oblivious trees (`bncli.engine.boosting`), one sum of tables.

Each member learns from all rows but those of one fold, which say when to stop; the members differ in rows, in the edges
of bins and in the draws of boosting. Where the rows held out gain by it, the leaves of all trees of a member are fitted
jointly, to them too in the end (`bncli.engine.boosting.joint_fit`). The members' scores, log-odds, are averaged. What
the bag says of a row held out is what the one member says that has not learnt from it (it only said when to stop): a
little less than the bag will.

Conventions: an attribute has at least BINS bins, and one for every BIN_ROWS rows as far as it has codes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from bncli.engine.auto.budget import FOLDS, MEMBER_ROWS, Effort, boosted_seconds
from bncli.engine.auto.choice import Judged, losses_of
from bncli.engine.boosting.boosting import Boosted, Settings, boost, log_probabilities
from bncli.engine.boosting.joint_fit import jointly_fitted
from bncli.engine.chosen_penalty import Tried
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.folds import stratified_folds, stratified_sample
from bncli.engine.kernels.arrays import Array, Mask

NAME = "boosted"
BINS, BIN_ROWS = 64, 64
MOST_MEMBERS = 20
"""However much time there is: more of them change next to nothing."""
Part = tuple[Dataset, Dataset]
"""Rows to learn from, rows that say when to stop."""


def judge_boosted(parts: Sequence[Part], weights: Array | None, seed: int, tell: Callable[[int], None]) -> Judged:
    """A member for each part, and what it says of its rows held out; `weights` of these rows, None: 1 each."""
    members, said = list[Boosted](), []
    for fold, part in enumerate(parts):
        tell(fold)
        members.append(_member(part, seed, fold))
        said.append(log_probabilities(members[-1].held_out).T)
    logs, labels = np.concatenate(said, axis=1), np.concatenate([held_out.labels for _, held_out in parts])
    losses = losses_of(logs, labels, weights)
    tried = (Tried(Settings.penalty, losses.log_loss),)
    return Judged(NAME, Settings.penalty, losses, logs, tried, None, tuple(members))


class Bag(NamedTuple):
    """How many members it is to have, the seed they are drawn by, and, with a limit, whether there is time for one."""

    wanted: int
    seed: int
    has_time: Callable[[Dataset], bool] | None = None


def member_seconds(data: Dataset) -> float:
    """What one member is expected to take on these rows."""
    return boosted_seconds(min(data.n_rows, MEMBER_ROWS), len(data.schema.informative))


def bagged(data: Dataset, judged: Sequence[Boosted], bag: Bag) -> tuple[Boosted, ...]:
    """Members on these rows: of the first folds those that were judged, then others, as far as there is time."""
    n_folds = min(FOLDS, data.n_rows)
    found = list(judged)
    while len(found) < bag.wanted and (bag.has_time is None or bag.has_time(data)):
        drawn = data.take(stratified_sample(data.labels, MEMBER_ROWS, (bag.seed, len(found))))
        fold_of = stratified_folds(drawn.labels, n_folds, bag.seed)
        found.append(_member(_part_of(drawn, fold_of == len(found) % n_folds), bag.seed, len(found)))
    return tuple(found)


def wanted_members(effort: Effort, n_rows: int) -> int:
    """Of more rows than an effort draws for other candidates one fewer: a member of many rows varies less."""
    return effort.members - (n_rows > effort.most_rows)


def _part_of(data: Dataset, held_out: Mask) -> Part:
    """The rows that are not held out, and those that are."""
    return data.take(np.flatnonzero(~held_out)), data.take(np.flatnonzero(held_out))


def _member(part: Part, seed: int, number: int) -> Boosted:
    bins = max(BINS, part[0].n_rows // BIN_ROWS)
    return jointly_fitted(boost(*part, Settings(bins=bins), np.random.default_rng((seed, number))), *part)
