"""The computing time that the trials of candidates may take: what an effort allows, and the clock with a time limit.

An effort from 1 to 5 determines the expected seconds that all candidates together may take, including the final fits,
and the number of held-out rows. Both depend only on the numbers of rows, attributes and classes, so that the same rows
give the same model on every machine. The seconds change smoothly with the number of rows:

    share * (SECONDS + SECONDS_PER_SIZE * rows^ROWS_POWER * attributes^(1/4) * classes / 2)

with the factor `share` of the effort. The most promising candidates are tried first; a candidate that is expected to
take more time than is left is skipped. If there are no more rows than the effort holds out, every row is held out once,
in FOLDS folds. With more rows, fewer of these folds are tried, and with more than `most_rows` a stratified sample of
that size is used. Boosted trees gain most from more rows, so they learn from a larger sample, of up to `member_rows`
rows including those that are held out.

With a time limit and no effort, the clock decides which candidates are tried (all of them if there is time), and the
folds are those of the highest effort whose expected seconds are within the limit. The expected seconds are
corrected by the ratio of the actual to the expected time of the candidates tried so far.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import NumericAttribute
from bncli.engine.ensembles.candidates import Candidate, capacity_for
from bncli.engine.parameters.costs import BYTES, MATRICES, QUASI_NEWTON
from bncli.engine.parameters.likelihood import ConditionalLikelihood
from bncli.watch import Clock

FOLDS = 5
SECONDS, SECONDS_PER_SIZE, ROWS_POWER = 0.5, 3e-3, 0.6
PASSES_PER_PATH, PASSES_PER_FIT = 200.0, 40.0
"""Approximate numbers of evaluations for all penalties in one fold, and for one fit, including preconditioners."""
LINEAR_SHARE = 0.2
"""The fraction of PASSES_PER_PATH that linear coding needs, since it has few parameters."""
NANOSECONDS_PER_CELL = 30.0
"""Approximate time of an evaluation per table entry and class."""
SECONDS_PER_SET = 4e-5
"""Approximate time to compute the gain of a set of attributes."""
FREE_SECONDS = 0.85
"""Up to this many of the expected seconds of trying boosted trees are not charged to the effort."""
TREES, MANY_ROWS = 150, 10_000
"""Approximate number of trees that are grown with up to MANY_ROWS rows; with more rows there are more trees."""
BYTES_PER_VALUE = 12
"""Bytes per row and attribute: the codes of all rows, of the folds, and of the current pass."""
ROW_VECTORS = 8
"""The number of values per row and class that boosting holds in memory at a time."""
VECTORS_PER_FOLD = 5
"""The number of parameter vectors that a path keeps from one penalty to the next."""
SHARP_INTERVALS = 40
"""The maximum number of intervals per numeric attribute expected from the method of Fayyad & Irani."""
LEAF_ENTRIES, BYTES_PER_LEAF_ENTRY = 1 << 23, 12
"""The maximum number of nonzero entries (rows times trees) of a joint fit of leaves, and the bytes of each.

They take at most 96 MiB.
"""


@dataclass(frozen=True)
class Effort:
    """The limits that one of the efforts sets.

    - share: the expected seconds that are allowed, relative to the default effort
    - held_out: the approximate number of held-out rows; most_rows: the size of the sample drawn if there are more rows
    - prunes: whether candidates that are unlikely to help are tried last, or not at all
    - boosted_from: the minimum number of rows for boosting trees (see `trials` for smaller tables)
    - members: the number of members of the bag of boosted trees; member_rows: the maximum number of rows drawn for a
      member; trees: the maximum number of trees of a member
    """

    share: float
    held_out: float
    most_rows: int
    prunes: bool
    boosted_from: float
    members: int
    member_rows: int
    trees: int

    def seconds(self, n_rows: int, n_attributes: int, n_labels: int) -> float:
        """Return the maximum of the expected seconds of all candidates together."""
        size = float(n_rows**ROWS_POWER) * math.sqrt(math.sqrt(n_attributes)) * max(n_labels, 2) / 2
        return self.share * (SECONDS + SECONDS_PER_SIZE * size)

    def folds(self, n_rows: int) -> int:
        """Return the number of the FOLDS folds that are held out in turn: all of them for few rows, one for many."""
        return max(1, min(FOLDS, round(min(FOLDS, self.held_out * FOLDS / max(n_rows, 1)))))


EFFORTS = {
    1: Effort(0.25, 1_000, 10_000, True, 2_000, 2, 100_000, 500),
    2: Effort(0.5, 1_500, 15_000, True, 1_000, 3, 100_000, 1_000),
    3: Effort(1.0, 2_500, 25_000, True, 1_000, 3, 100_000, 2_000),
    4: Effort(4.0, 10_000, 50_000, False, 0, 5, 300_000, 4_000),
    5: Effort(math.inf, math.inf, 10**18, False, 0, 10, 10**18, 10_000),
}
DEFAULT = 3


def choose_effort(effort: int | None, limit: float | None, data: Dataset) -> Effort:
    """Return the limits of the requested effort, or of the default effort.

    With a time limit and no effort, return the limits of the highest effort whose expected seconds are within the time
    limit, or of effort 1 if none is. These limits are changed in three ways: the expected seconds are not limited,
    nothing is pruned, and a member may have as many trees as with effort 5.
    """
    if effort is not None or limit is None:
        return EFFORTS[DEFAULT if effort is None else effort]
    n_attributes = len(data.schema.informative)
    for candidate in reversed(EFFORTS.values()):
        n_rows = min(data.n_rows, max(candidate.most_rows, candidate.member_rows))
        seconds = candidate.seconds(data.n_rows, n_attributes, data.n_labels)
        if n_rows >= candidate.boosted_from:
            # the number of trees grows with the rows
            per_fold = boosted_seconds(n_rows, n_attributes) * max(1.0, n_rows / MANY_ROWS)
            seconds += candidate.folds(data.n_rows) * per_fold
        if seconds <= limit:
            break
    return replace(candidate, share=math.inf, prunes=False, trees=EFFORTS[5].trees)


@dataclass
class ComputeBudget:
    """The computing time allowed and used: in expected seconds and, with a time limit, in seconds of the clock.

    - limit: the time limit in seconds, or None; began: the time of the clock at the start
    - seconds: the expected seconds that the effort allows
    - expected: the expected seconds of the candidates tried so far; later: the expected seconds of their final fits
    - done: like `expected`, but for boosted trees according to the number of trees that were grown
    - before_candidates, taken: seconds of the clock before the first candidate, and for the candidates so far
    """

    limit: float | None
    clock: Clock | None
    seconds: float = math.inf
    began: float = 0.0
    expected: float = 0.0
    later: float = 0.0
    done: float = 0.0
    before_candidates: float = 0.0
    taken: float = 0.0

    @classmethod
    def start(cls, limit: float | None, clock: Clock | None) -> ComputeBudget:
        """Return a budget whose limit counts from now on."""
        return cls(limit, clock, began=0.0 if clock is None else clock())

    def begin_candidates(self, effort: Effort, data: Dataset) -> None:
        """Set the expected seconds that the effort allows, and note the time, right before the first candidate."""
        self.seconds = effort.seconds(data.n_rows, len(data.schema.informative), data.n_labels)
        self.before_candidates = self._elapsed()

    def allows(self, expected: float, later: float) -> bool:
        """Return whether there is room for a candidate of `expected` seconds, and `later` for its final fit."""
        return self.expected + expected + self.later + later <= self.seconds and self.has_time(expected, later)

    def has_time(self, expected: float, later: float) -> bool:
        """Return whether a candidate with these costs (see `allows`) fits the time limit; True without a limit."""
        if self.limit is None or self.clock is None:
            return True
        return self._elapsed() + self._clock_per_expected_second * (expected + self.later + later) <= self.limit

    def is_late(self) -> bool:
        """Return whether there is a time limit and the budget is used up, counting the final fits still to come."""
        return self.limit is not None and not self.allows(0.0, 0.0)

    def part_of_time(self, n: float) -> Callable[[], bool]:
        """Return a function that returns whether 1/n of the time left now has passed (always False without a limit).

        The time for the final fits of the candidates so far does not count as left.
        """
        if self.limit is None or self.clock is None:
            return lambda: False
        begin = self._elapsed()
        end = begin + max(0.0, self.limit - self._clock_per_expected_second * self.later - begin) / n
        return lambda: self._elapsed() >= end

    def spend(self, expected: float, later: float, done: float | None = None) -> None:
        """Record the expected cost of a candidate that was tried; `done` corrects it once the work is known."""
        self.expected += expected
        self.done += expected if done is None else done
        self.later += later
        self.taken = self._elapsed() - self.before_candidates

    def spend_on_trees(self, expected: float, later: float, done: float) -> None:
        """Record the cost of boosted trees; the effort is not charged for the first FREE_SECONDS and the final fit."""
        self.seconds += min(expected, FREE_SECONDS) + later
        self.spend(expected, later, done)

    @property
    def _clock_per_expected_second(self) -> float:
        """Seconds of the clock per expected second."""
        return self.taken / self.done if self.done else 1.0

    def _elapsed(self) -> float:
        return 0.0 if self.clock is None else self.clock() - self.began


def search_seconds(name: str, n_attributes: int) -> float:
    """Return the expected seconds to find the attribute sets of a candidate in one fold."""
    n_pairs = n_attributes * (n_attributes - 1) / 2
    sets_per_pair = {"tree": 1.0, "sharp tree": 1.0, "pairs": 1.0, "triples": 6.0, "quadruples": 8.0}.get(name, 0.0)
    return SECONDS_PER_SET * sets_per_pair * n_pairs


def path_seconds(likelihood: ConditionalLikelihood, coding: str = "thermometer") -> float:
    """Return the expected seconds of a path of penalties on the rows of the likelihood."""
    return PASSES_PER_PATH * (LINEAR_SHARE if coding == "linear" else 1.0) * pass_seconds(likelihood)


def least_path_seconds(data: Dataset, candidate: Candidate) -> float:
    """Return a lower bound of `path_seconds` from the number of table entries, before the likelihood is made."""
    n_cells = 1 + sum(family.n_cells for family in candidate.families)
    of_cells = 1e-9 * NANOSECONDS_PER_CELL * data.n_labels * n_cells
    return PASSES_PER_PATH * (LINEAR_SHARE if candidate.coding == "linear" else 1.0) * of_cells


def fit_seconds(likelihood: ConditionalLikelihood, n_rows: int) -> float:
    """Return the expected seconds to fit the same tables to `n_rows` rows."""
    return PASSES_PER_FIT * pass_seconds(likelihood) * max(1.0, n_rows / max(likelihood.data.n_rows, 1))


def pass_seconds(likelihood: ConditionalLikelihood) -> float:
    """Return the expected seconds of an evaluation, including the change of coordinates."""
    return 1e-9 * (likelihood.pass_work + NANOSECONDS_PER_CELL * likelihood.data.n_labels * likelihood.n_cells)


def boosted_seconds(n_rows: int, n_attributes: int) -> float:
    """Return the expected seconds to grow TREES trees on `n_rows` rows, by a formula fitted to timings."""
    return TREES * 1e-3 * (0.6 + 0.06 * n_attributes + 4e-5 * n_rows * n_attributes)


def memory_of(name: str, data: Dataset, effort: Effort) -> int:
    """Return an upper estimate of the bytes that a candidate needs: codes of rows, tables of the folds, and a fit.

    For boosted trees it includes scores, gradients and curvatures per row and class, and an entry of the joint fit per
    row and tree. Their histograms need less memory than the codes.
    """
    informative = data.schema.informative
    cardinalities = [data.schema.cardinalities[i] for i in informative]
    size, n = capacity_for(data.n_rows), len(cardinalities)
    bins = [of_size or 1 for of_size in (*size.bins, size.bins[-1])]
    cells = 1 + sum(cardinalities)
    if name in ("pairs", "triples", "quadruples"):
        # the maximum number of tables of each size, with the maximum number of intervals per attribute
        cells += (size.pairs * bins[1] ** 2 + size.triples * bins[2] ** 3 * (name != "pairs")) * n
        cells += size.quadruples * bins[3] ** 4 * n * (name == "quadruples")
    elif name == "all pairs":
        cells += n * (n - 1) // 2 * bins[1] ** 2
    elif name == "tree":
        cells += n * bins[1] ** 2
    elif name == "sharp tree":
        is_number = [isinstance(data.schema.attributes[i], NumericAttribute) for i in informative]
        sharp = [min(c, SHARP_INTERVALS) if number else c for c, number in zip(cardinalities, is_number, strict=True)]
        cells += n * max(sharp, default=1) ** 2
    matrices = 0 if name in ("singles", "lines", "sharp singles", "boosted") else MATRICES * BYTES * n * n
    tables = (QUASI_NEWTON + VECTORS_PER_FOLD * effort.folds(data.n_rows)) * BYTES * data.n_labels * cells
    trees = 0
    if name == "boosted":
        n_rows = min(data.n_rows, effort.member_rows)
        trees = BYTES_PER_LEAF_ENTRY * min(LEAF_ENTRIES, n_rows * effort.trees)
        trees += ROW_VECTORS * BYTES * data.n_labels * n_rows
    return BYTES_PER_VALUE * data.n_rows * n + matrices + tables + trees
