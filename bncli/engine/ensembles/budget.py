"""How much the choice among candidates may cost: what an effort allows, and the clock where there is a limit.

An effort, 1 to 5, says how many seconds the candidates may be expected to take, the fits on all rows included, and how
many rows are held out; both follow from the numbers of rows, attributes and classes alone, so that the same rows give
the same model on every machine, and neither jumps at any number of rows:

    share * (SECONDS + SECONDS_A_VALUE * rows^ROWS_POWER * attributes^(1/4) * classes / 2)

which grows about as the least time of boosting does. Candidates are tried, the likely best first; one that is expected
to take more than what is left is left out. Every row is held out once, in FOLDS folds, where there are no more rows
than the effort holds out; of more, fewer of these folds are tried, and of more than `most_rows` so many rows are drawn
by class. Boosted trees, which gain most by more rows, learn from all of up to `member_rows` that are not held out.

Conventions: with a limit in seconds and no effort the clock decides which candidates are tried, all of them if there is
time, and the folds are those of the highest effort whose seconds are within the limit. How long a candidate will take
is told by the seconds that those before it took for what they were expected to.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import NumericAttribute
from bncli.engine.ensembles.candidates import Candidate, capacity
from bncli.engine.ensembles.joint_fit import ENTRY, MOST
from bncli.engine.parameters.likelihood import ConditionalLikelihood
from bncli.engine.parameters.memory_estimate import BYTES, MATRICES, QUASI_NEWTON
from bncli.watch import Clock

FOLDS = 5
SECONDS, SECONDS_A_VALUE, ROWS_POWER = 0.5, 3e-3, 0.6
PASSES_OF_PATH, PASSES_OF_FIT = 200.0, 40.0
"""Evaluations, roughly, of all penalties in one fold, and of a fit with one; preconditioners included."""
GRANTED = 0.85
"""Seconds of choosing boosted trees that are not taken off what an effort allows for all else."""
TREES, MANY_ROWS = 150, 10_000
"""That are grown, roughly, of at most so many rows."""
SECONDS_A_SET = 4e-5
"""Roughly, of a set of attributes whose gain is looked at."""
BYTES_A_VALUE = 12
"""Of a row and an attribute: the codes of all rows, of the folds and of the pass in hand."""
ROW_VECTORS = 8
"""Numbers of a row and a class that boosting has at a time."""
OF_A_FOLD = 5
"""Vectors of parameters that a path keeps from one penalty to the next."""
LINE = 0.2
"""Of that, roughly, where there are no more parameters than lines: so few are soon found."""
SHARP = 40
"""Intervals, at the most, that the rule of Fayyad & Irani is expected to leave of a number."""
CELL = 30.0
"""Nanoseconds, roughly, that an evaluation takes for an entry of a table."""


@dataclass(frozen=True)
class Effort:
    """What one of the efforts allows.

    share: of the seconds of the default; held_out: rows; most_rows: that are drawn of more; prunes: whether candidates
    that are unlikely to help are tried last, or not at all; boosted_from: rows from which trees are boosted; members:
    of their bag, at the least; member_rows: that are drawn for one of more; trees: that it has, at the most.
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
        """Return what all candidates together may be expected to take."""
        grown = float(n_rows**ROWS_POWER) * math.sqrt(math.sqrt(n_attributes)) * max(n_labels, 2) / 2
        return self.share * (SECONDS + SECONDS_A_VALUE * grown)

    def folds(self, n_rows: int) -> int:
        """Of FOLDS folds, how many are held out in turn; all of them where there are hardly any rows."""
        return max(1, min(FOLDS, round(min(FOLDS, self.held_out * FOLDS / max(n_rows, 1)))))


EFFORTS = {
    1: Effort(0.25, 1_000, 10_000, True, 2_000, 2, 100_000, 500),
    2: Effort(0.5, 1_500, 15_000, True, 1_000, 3, 100_000, 1_000),
    3: Effort(1.0, 2_500, 25_000, True, 1_000, 3, 100_000, 2_000),
    4: Effort(4.0, 10_000, 50_000, False, 0, 5, 300_000, 4_000),
    5: Effort(math.inf, math.inf, 10**18, False, 0, 10, 10**18, 10_000),
}
DEFAULT = 3


@dataclass
class ComputeBudget:
    """What may be spent and has been: seconds as expected, and where there is a limit those of the clock."""

    limit: float | None
    clock: Clock | None
    seconds: float = math.inf
    began: float = 0.0
    expected: float = 0.0
    later: float = 0.0
    """Of the fits on all rows."""
    done: float = 0.0
    """Of what was tried: as expected, but for trees as many as were grown."""
    before_candidates: float = 0.0
    taken: float = 0.0
    """Seconds that what was spent took."""

    @classmethod
    def of(cls, limit: float | None, clock: Clock | None) -> ComputeBudget:
        """Begin now."""
        return cls(limit, clock, began=0.0 if clock is None else clock())

    def begin_candidates(self, effort: Effort, data: Dataset) -> None:
        """Start the first candidate."""
        self.seconds = effort.seconds(*_size(data))
        self.before_candidates = self._elapsed()

    def allows(self, expected: float, later: float) -> bool:
        """Return whether a candidate of this cost, and of so much later, may still be tried."""
        return self.expected + expected + self.later + later <= self.seconds and self.has_time(expected, later)

    def has_time(self, expected: float, later: float) -> bool:
        """Return whether the limit, if there is one, will not be passed."""
        if self.limit is None or self.clock is None:
            return True
        return self._elapsed() + self._rate * (expected + self.later + later) <= self.limit

    def part_of_time(self, n: float) -> Callable[[], bool]:
        """Return whether the n-th part of the time that is left now will be over when asked; never without a limit."""
        if self.limit is None or self.clock is None:
            return lambda: False
        begin = self._elapsed()
        end = begin + max(0.0, self.limit - self._rate * self.later - begin) / n
        return lambda: self._elapsed() >= end

    def spend(self, expected: float, later: float, did: float | None = None) -> None:
        """Record a candidate of this cost; `did` is its true cost where that is known to differ."""
        self.expected += expected
        self.done += expected if did is None else did
        self.later += later
        self.taken = self._elapsed() - self.before_candidates

    def grant(self, expected: float, later: float, did: float) -> None:
        """So much is spent; of what the effort allows it takes what the choice took beyond GRANTED seconds."""
        self.seconds += min(expected, GRANTED) + later
        self.spend(expected, later, did)

    @property
    def is_over(self) -> bool:
        """Whether the limit is reached, what is still to be fitted on all rows included."""
        return not self.allows(0.0, 0.0)

    @property
    def _rate(self) -> float:
        """Seconds of the clock for one that was expected."""
        return self.taken / self.done if self.done else 1.0

    def _elapsed(self) -> float:
        return 0.0 if self.clock is None else self.clock() - self.began


def effort_of(effort: int | None, limit: float | None, data: Dataset) -> Effort:
    """Return the one that was asked for; else, with a limit, the folds of what fits in it and all candidates."""
    if effort is not None or limit is None:
        return EFFORTS[DEFAULT if effort is None else effort]
    folds = next((one for one in reversed(EFFORTS.values()) if _seconds(one, data) <= limit), EFFORTS[1])
    return replace(folds, share=math.inf, prunes=False, trees=EFFORTS[5].trees)


def _seconds(effort: Effort, data: Dataset) -> float:
    """Of all candidates, the boosted trees of every fold included."""
    n_rows = min(data.n_rows, max(effort.most_rows, effort.member_rows))
    # the more rows, the more trees
    seconds = boosted_seconds(n_rows, len(data.schema.informative)) * max(1.0, n_rows / MANY_ROWS)
    trees = seconds if n_rows >= effort.boosted_from else 0.0
    return effort.seconds(*_size(data)) + effort.folds(data.n_rows) * trees


def _size(data: Dataset) -> tuple[int, int, int]:
    return data.n_rows, len(data.schema.informative), data.n_labels


def search_seconds(name: str, n_attributes: int) -> float:
    """Return what finding the sets of a candidate is expected to take in a fold, by the sets that are looked at."""
    pairs = n_attributes * (n_attributes - 1) / 2
    looked_at = {"tree": 1.0, "sharp tree": 1.0, "pairs": 1.0, "triples": 6.0, "quadruples": 8.0}.get(name, 0.0)
    return SECONDS_A_SET * looked_at * pairs


def memory_of(name: str, data: Dataset, effort: Effort) -> int:
    """Return bytes that a candidate is expected to take at the most: the codes of rows, the folds' tables, and a fit.

    The boosted trees count their questions for every bin of a block of attributes, which is less than the codes; of a
    row and a class they have scores, gradients and curvatures, and of a row and tree an entry for the joint fit.
    """
    cardinalities = [data.schema.cardinalities[i] for i in data.schema.informative]
    size, n = capacity(data.n_rows), len(cardinalities)
    numeric = [isinstance(data.schema.attributes[i], NumericAttribute) for i in data.schema.informative]
    sharp = [min(c, SHARP) if number else c for c, number in zip(cardinalities, numeric, strict=True)]
    bins = [of_size or 1 for of_size in (*size.bins, size.bins[-1])]
    cells = 1 + sum(cardinalities)
    if name in ("pairs", "triples", "quadruples"):
        cells += (size.pairs * bins[1] ** 2 + size.triples * bins[2] ** 3 * (name != "pairs")) * n
        cells += size.quadruples * bins[3] ** 4 * n * (name == "quadruples")
    elif name == "all pairs":
        cells += n * (n - 1) // 2 * bins[1] ** 2
    elif name in ("tree", "sharp tree"):
        cells += n * (bins[1] ** 2 if name == "tree" else max(sharp, default=1) ** 2)
    matrices = 0 if name in ("singles", "lines", "sharp singles", "boosted") else MATRICES * BYTES * n * n
    tables = (QUASI_NEWTON + OF_A_FOLD * effort.folds(data.n_rows)) * BYTES * data.n_labels * cells
    boosts = name == "boosted"
    grown = min(data.n_rows, effort.member_rows)
    leaves = boosts * (ENTRY * min(MOST, grown * effort.trees) + ROW_VECTORS * BYTES * data.n_labels * grown)
    return BYTES_A_VALUE * data.n_rows * n + matrices + tables + leaves


def boosted_seconds(n_rows: int, n_attributes: int) -> float:
    """Return what boosting trees on so many rows is expected to take, TREES of them: roughly, as measured."""
    return TREES * 1e-3 * (0.6 + 0.06 * n_attributes + 4e-5 * n_rows * n_attributes)


def path_seconds(likelihood: ConditionalLikelihood, coding: str = "thermometer") -> float:
    """Return what a path over these rows is expected to take, for parameters in this coding."""
    return PASSES_OF_PATH * (LINE if coding == "linear" else 1.0) * pass_seconds(likelihood)


def least_path_seconds(data: Dataset, found: Candidate) -> float:
    """Return what is known of it before the rows are fused: a pass takes no less than its cells do."""
    n_cells = 1 + sum(family.n_cells for family in found.families)
    pass_ = 1e-9 * CELL * data.n_labels * n_cells
    return PASSES_OF_PATH * (LINE if found.coding == "linear" else 1.0) * pass_


def fit_seconds(likelihood: ConditionalLikelihood, n_rows: int) -> float:
    """Return what a fit of the same tables on so many rows is expected to take."""
    return PASSES_OF_FIT * pass_seconds(likelihood) * max(1.0, n_rows / max(likelihood.data.n_rows, 1))


def pass_seconds(likelihood: ConditionalLikelihood) -> float:
    """Return one evaluation, with the change of coordinates."""
    return 1e-9 * (likelihood.pass_work + CELL * likelihood.data.n_labels * likelihood.n_cells)
