"""The candidate "boosted": a bag of boosted oblivious trees (`bncli.engine.boosting`), one sum of tables.

Each member learns from all rows but those of one fold, which say when to stop; the members differ in rows, in the edges
of bins and in the draws of boosting. Where the rows held out gain by it, the leaves of all trees of a member are fitted
jointly, to them too in the end (`bncli.engine.boosting.joint_fit`). The members' scores, log-odds, are averaged. What
the bag says of a row held out is what the one member says that has not learnt from it (it only said when to stop): a
little less than the bag will.

Conventions: an attribute has at least BINS bins, and one for every BIN_ROWS rows as far as it has codes. Trees have six
levels, of DEEPER rows and more seven. (Measured, one member's log-loss in units of that of 64 bins: 0.995 over 28
tables of 1,000 to 22,000 rows, 0.87 on one where a school is a number. In units of that of six levels: 0.94 and 0.998
on 80,000 flights, their airline and whether they are late, 0.85 and 0.993 on 200,000, in as many seconds; 1.03, 0.997,
0.998, 1.000 and 1.003 on five tables of 30,000 to 40,000 rows.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from bncli.engine.auto.budget import FOLDS, TREES, Effort, boosted_seconds
from bncli.engine.auto.choice import Judged, losses_of
from bncli.engine.boosting.boosting import Boosted, Settings, boost, log_probabilities
from bncli.engine.boosting.joint_fit import are_enough, jointly_fitted
from bncli.engine.chosen_penalty import Tried
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.folds import stratified_folds, stratified_sample
from bncli.engine.kernels.arrays import Array, Mask

NAME = "boosted"
BINS, BIN_ROWS = 128, 64
DEEPER = 50_000
MOST_MEMBERS = 20
"""However much time there is: more of them change next to nothing."""
Part = tuple[Dataset, Dataset]
"""Rows to learn from, rows that say when to stop."""


def never(parts: int) -> Callable[[], bool]:
    """There is no limit in seconds: no part of the time is over."""
    return lambda: False


class Bag(NamedTuple):
    """How many members it is to have, the seed they are drawn by, and how many trees and rows each may
    have.

    With a limit in seconds: whether there is time for what is expected to take so many, and what says when one of n
    equal parts of the time that is left is over.
    """

    wanted: int
    seed: int
    trees: int = Settings.trees
    rows: int = 100_000
    has_time: Callable[[float], bool] = lambda seconds: True
    part_of_time: Callable[[int], Callable[[], bool]] = never


def judge_boosted(parts: Sequence[Part], weights: Array | None, bag: Bag, tell: Callable[[int], None]) -> Judged:
    """A member for each part, and what it says of its rows held out; `weights` of these rows, None: 1 each."""
    members, said = list[Boosted](), []
    for fold, part in enumerate(parts):
        tell(fold)
        # a part of the time is left for what comes after
        members.append(_member(part, bag, fold, bag.part_of_time(len(parts) - fold + 1)))
        said.append(log_probabilities(members[-1].held_out).T)
    logs, labels = np.concatenate(said, axis=1), np.concatenate([held_out.labels for _, held_out in parts])
    losses = losses_of(logs, labels, weights)
    tried = (Tried(Settings.penalty, losses.log_loss),)
    return Judged(NAME, Settings.penalty, losses, logs, tried, None, tuple(members))


def member_seconds(data: Dataset, most: float = math.inf, like: Sequence[Boosted] = ()) -> float:
    """What one member is expected to take on so many of these rows, the mean over those that it is like."""
    seconds = boosted_seconds(int(min(data.n_rows, most)), len(data.schema.informative))
    grown = sum(len(member.trees) for member in like)
    return seconds * (grown / (TREES * len(like)) if like else 1.0)


def bagged(data: Dataset, judged: Sequence[Boosted], bag: Bag) -> tuple[Boosted, ...]:
    """Members on these rows: of the first folds those that were judged, then others, as far as there is time.

    One that the end of the time cut short is not among them, unless it is the only one.
    """
    n_folds = min(FOLDS, data.n_rows)
    found = list(judged)
    while len(found) < bag.wanted and bag.has_time(member_seconds(data, bag.rows, found)):
        drawn = data.take(stratified_sample(data.labels, bag.rows, (bag.seed, len(found))))
        fold_of = stratified_folds(drawn.labels, n_folds, bag.seed)
        part, is_late = _part_of(drawn, fold_of == len(found) % n_folds), bag.part_of_time(1)
        member = _member(part, bag, len(found), is_late)
        if found and not member.ended and is_late():
            break
        found.append(member)
    return tuple(found)


def wanted_members(effort: Effort, n_rows: int) -> int:
    """Of more rows than an effort draws for other candidates one fewer: a member of many rows varies less."""
    return effort.members - (n_rows > effort.most_rows)


def _part_of(data: Dataset, held_out: Mask) -> Part:
    """The rows that are not held out, and those that are."""
    return data.take(np.flatnonzero(~held_out)), data.take(np.flatnonzero(held_out))


def _member(part: Part, bag: Bag, number: int, is_late: Callable[[], bool]) -> Boosted:
    n_rows = part[0].n_rows
    depth = Settings.depth + (n_rows >= DEEPER)
    settings = Settings(depth=depth, trees=bag.trees, bins=max(BINS, n_rows // BIN_ROWS))
    rng = np.random.default_rng((bag.seed, number))
    return jointly_fitted(boost(*part, settings, rng, is_late, are_enough(*part)), *part)
