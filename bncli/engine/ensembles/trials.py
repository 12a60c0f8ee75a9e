"""Try the candidates of `--structure auto` one after the other on held-out rows, as long as they may help.

The tables of a candidate are chosen in every fold, and its penalty by the held-out rows. The losses of the candidates
tried so far decide which others are tried:

- Once a log-loss is below NO_LOSS, no further candidates are tried.
- Triples and quadruples are not built on a candidate whose log-loss exceeds the lowest by more than the fraction
  PRUNING_SLACK.
- With an effort that prunes, `lines`, `tree` and the sharp candidates are skipped if boosted trees have a log-loss
  lower than that of `singles` by at least the fraction DEEP_GAIN.
- With an effort that prunes, larger sets are skipped at first unless smaller ones have shown that attributes interact;
  they are tried later if there is time left.
- If the table has fewer rows than the effort requires for boosting, but at least PROBED_ROWS, trees are grown last, on
  the rows of the first fold. They are a candidate only if their log-loss on the rows held out there is lower than the
  loss of the best other candidate by more than STANDARD_ERRORS standard errors of the mean difference per row (with
  units of several rows, they are not tried). On most small tables they do not win, and the model is the same as without
  them. (`tests/published/probed_trees.md`: on six real tables that the limits were settled on, trees were kept in 1 of
  30 fits, with the mean log-loss within 0.1 % and 1.26 times the CPU time; on six other real tables in 4 of 30 fits,
  all of them on one table, with a mean log-loss 7 % lower and 1.55 times the CPU time. No table was worse by more than
  0.3 %. On 750 rows whose class is determined by an angle and a radius, the log-loss is 16 % lower.)

The budget limits the cost of a candidate. Candidates that are skipped because of their cost are listed in a note.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from bncli.engine.data.dataset import Dataset
from bncli.engine.ensembles.boosted_bag import (
    BOOSTED,
    BagPlan,
    bag_size,
    evaluate_boosted,
    member_rows,
    member_seconds,
)
from bncli.engine.ensembles.budget import (
    Effort,
    fit_seconds,
    least_path_seconds,
    memory_of,
    path_seconds,
    search_seconds,
)
from bncli.engine.ensembles.candidates import Candidate, CandidateFinder, candidate_names
from bncli.engine.ensembles.held_out_evaluation import (
    FIRST,
    GRID,
    MANY,
    HeldOutEvaluation,
    PenaltyPath,
    evaluate_candidate,
    held_out_weights,
)
from bncli.watch import Note, Progress, Watch

NO_LOSS = 5e-5
"""The log-loss in nats per row below which no more candidates are tried."""
PRUNING_SLACK = 0.05
"""Triples and quadruples are not built on a candidate whose log-loss exceeds the lowest by more than this fraction."""
INTERACTION_GAIN = 0.01
"""Attributes are taken to interact if larger tables lower the log-loss of single ones by at least this fraction."""
DEEP_GAIN = 0.1
"""If boosted trees lower the log-loss of `singles` by at least this fraction, an effort that prunes skips _SHALLOW."""
COST_GROWTH = 1.2
"""The cost of a candidate is at least this multiple of the cost of the candidate that it builds on."""
PROBED_ROWS = 500
"""With fewer rows, trees are boosted only by an effort that boosts trees from any number of rows: one fold is too small
to show that they win."""
STANDARD_ERRORS = 2.0
"""On few rows, trees must win on the first fold by more than this many standard errors of the paired difference."""
_SINGLE = ("singles", "lines", "sharp singles")
"""Candidates with tables over one attribute each."""
_SHALLOW = ("lines", "tree", "sharp singles", "sharp tree")


@dataclass(frozen=True)
class Fold:
    """The rows of a fold: the held-out rows, and the `others`.

    `finder` has the rows that candidates learn from, which are the others or a sample of them.
    """

    finder: CandidateFinder
    others: Dataset
    held_out: Dataset


class Trials:
    """Tries candidates, the most promising first, as long as the budget allows; the first one is always tried."""

    def __init__(
        self,
        data: Dataset,
        folds: list[Fold],
        metric: str,
        effort: Effort,
        bag: BagPlan,
        memory: int | None,
        watch: Watch,
    ) -> None:
        """Start without any candidate tried; `memory` is the limit in bytes, or None if it is not known."""
        self._data, self._folds, self._watch = data, folds, watch
        self._metric, self._effort, self._budget, self._bag, self._memory = metric, effort, bag.budget, bag, memory
        # the splits of trees cannot obey monotonicity constraints
        may_boost = data.n_rows >= self._effort.boosted_from and not data.schema.directed
        has_units = data.split_by is not None and data.split_by.units is not None
        self._probes = PROBED_ROWS <= data.n_rows < self._effort.boosted_from and not (
            data.schema.directed or has_units
        )
        self._names = [name for name in candidate_names(data) if name != BOOSTED or may_boost]
        self._builds_on = folds[0].finder.builds_on
        self._budget.begin_candidates(self._effort, data)
        self._costs: dict[str, float] = {}
        self._evaluations: list[HeldOutEvaluation] = []
        self._considered, self._without_time = set[str](), set[str]()
        self._too_costly: list[str] = []
        """Candidates skipped because of their cost or because the candidate they build on was skipped for its cost."""
        self._too_large: list[str] = []
        """Candidates skipped because they, or the candidate they build on, do not fit in memory."""

    def run(self) -> list[HeldOutEvaluation]:
        """Try the promising candidates, then the others if there is time left; return all evaluations."""
        if self._data.schema.directed and self._data.n_rows >= self._effort.boosted_from:
            self._report_skipped("they cannot obey monotone directions", [BOOSTED])
        self._try_all(self._effort.prunes)
        if self._effort.prunes:
            too_costly = list(self._too_costly)
            self._try_all(prunes=False)
            self._too_costly = too_costly  # the note does not list unpromising candidates
        if self._probes and self._is_worth_trying(BOOSTED, prunes=False) and self._wins_on_first_fold():
            self._try_boosted(len(self._considered))
        late = self._without_time
        self._report_skipped("the time limit was reached", [name for name in self._too_costly if name in late])
        self._report_skipped(
            "they take too long for the chosen --effort", [name for name in self._too_costly if name not in late]
        )
        self._report_skipped("they do not fit in memory", self._too_large)
        return self._evaluations

    def _report_skipped(self, reason: str, names: Sequence[str]) -> None:
        if names:
            self._watch(Note(f"candidates were not tried because {reason}: {', '.join(names)}"))

    def _try_all(self, prunes: bool) -> None:
        for name in self._names:
            if name not in self._considered and self._is_worth_trying(name, prunes):
                n_done = len(self._considered)
                self._watch(Progress(n_done, len(self._names), name))
                self._considered.add(name)
                if name == BOOSTED:
                    self._try_boosted(n_done)
                else:
                    self._try_candidate(n_done, name)

    def _is_worth_trying(self, name: str, prunes: bool) -> bool:
        if self._effort.prunes and is_outdone(name, self._evaluations):
            return False
        if has_lost_its_base(name, self._builds_on, self._evaluations, prunes, [*self._too_costly, *self._too_large]):
            base = self._builds_on.get(name)
            if base not in self._too_large:
                self._too_costly.append(name)
            elif name not in self._too_large:
                self._too_large.append(name)
            if base in self._without_time:
                self._without_time.add(name)
            return False
        if not may_improve(name, self._builds_on, self._evaluations, prunes):
            return False
        fits = self._memory is None or memory_of(name, self._data, self._effort) <= self._memory
        if not fits and name not in self._too_large:
            self._too_large.append(name)
        return fits

    def _try_candidate(self, n_done: int, name: str) -> None:
        first, n_folds = self._folds[0], len(self._folds)
        search = n_folds * search_seconds(name, len(self._data.schema.informative))
        least = COST_GROWTH * self._costs.get(self._builds_on.get(name, ""), 0.0)
        if self._exceeds_budget(name, max(search, least), 0.0):
            return
        # The first fold decides whether to continue, before any work on the other folds.
        candidate = first.finder.find(name)
        if any(
            evaluation.path is not None and candidate.is_same_model(evaluation.path.candidate)
            for evaluation in self._evaluations
        ):
            return
        rows = first.finder.data
        if self._exceeds_budget(name, search + n_folds * least_path_seconds(rows, candidate), 0.0):
            return
        paths = [PenaltyPath.of(candidate, rows, first.held_out)]
        cost = search + n_folds * path_seconds(paths[0].space.likelihood, candidate.coding)
        later = fit_seconds(paths[0].space.likelihood, self._data.n_rows)
        if self._exceeds_budget(name, cost, later):
            return
        paths += [PenaltyPath.of(f.finder.find(name), f.finder.data, f.held_out) for f in self._folds[1:]]
        evaluation = evaluate_candidate(
            name,
            paths,
            self._metric,
            partial(self._report_progress, n_done, name),
            self._first_penalty(candidate),
            self._budget.is_late,
        )
        self._evaluations.append(evaluation)
        self._budget.spend(cost, later)
        self._costs[name] = cost + later
        # Later candidates start from these fits and penalties.
        for fold, path in zip(self._folds, paths, strict=True):
            fold.finder.fits[name] = path.fit
            fold.finder.penalties[name] = evaluation.penalty
        if name == "all pairs" and improves_on_pairs(self._evaluations):
            for fold in self._folds:
                fold.finder.builds_on["triples"] = name

    def _try_boosted(self, n_done: int) -> None:
        """Try a bag of boosted trees if the time limit allows it, even if the effort does not (see `spend_on_trees`).

        Trees learn from all other rows of each fold or, if there is no time for that, from the sample of its finder.
        """
        n_folds = len(self._folds)
        all_rows = [(fold.others, fold.held_out) for fold in self._folds]
        for parts in (all_rows, [(fold.finder.data, fold.held_out) for fold in self._folds]):
            expected = n_folds * member_seconds(self._data, parts[0][0].n_rows)
            # half of the expected number of trees is worth trying
            if self._budget.has_time(expected / 2, 0.0):
                break
        else:
            self._too_costly.append(BOOSTED)
            self._without_time.add(BOOSTED)
            return
        weights = held_out_weights([held_out for _, held_out in parts])
        evaluation = evaluate_boosted(parts, weights, self._bag, partial(self._report_progress, n_done, BOOSTED))
        self._evaluations.append(evaluation)
        done = n_folds * member_seconds(self._data, parts[0][0].n_rows, evaluation.members)
        n_later = max(0, bag_size(self._effort, self._data.n_rows) - n_folds)
        later_rows = member_rows(self._data, self._bag.rows)
        later = n_later * member_seconds(self._data, later_rows, evaluation.members)
        self._budget.spend_on_trees(expected, later, done)

    def _wins_on_first_fold(self) -> bool:
        """Return whether trees clearly beat the best other candidate on the first fold; False if there is no time."""
        fold, labels = self._folds[0], self._folds[0].held_out.labels
        expected = member_seconds(self._data, fold.others.n_rows)
        if not self._budget.has_time(expected, expected * len(self._folds)):
            return False
        weights = held_out_weights([fold.held_out])
        report = partial(self._report_progress, len(self._considered), BOOSTED)
        trees = evaluate_boosted([(fold.others, fold.held_out)], weights, self._bag, report)
        best = min(self._evaluations, key=lambda evaluation: evaluation.losses.log_loss)
        rows = np.arange(len(labels))
        gains = trees.log_p[labels, rows] - best.log_p[labels, rows]
        if weights is not None:
            gains = gains * weights
        return bool(gains.mean() > STANDARD_ERRORS * gains.std(ddof=1) / math.sqrt(len(gains)))

    def _report_progress(self, n_done: int, name: str, fold: int, penalty: float | None = None) -> None:
        share = 0.0 if penalty is None else GRID.index(penalty) / len(GRID)
        of_path = "" if penalty is None else f"penalty {penalty:g}, "
        where = f"{name}, {of_path}fold {fold + 1} of {len(self._folds)}"
        self._watch(Progress(n_done + share, len(self._names), where))

    def _exceeds_budget(self, name: str, cost: float, later: float) -> bool:
        """Return whether the expected seconds of trial and final fit exceed the budget; False for the first candidate.

        If they do, the candidate is recorded as too costly.
        """
        if not self._evaluations or self._budget.allows(cost, later):
            return False
        if not self._budget.has_time(cost, later):
            self._without_time.add(name)
        self._too_costly.append(name)
        return True

    def _first_penalty(self, candidate: Candidate) -> float:
        """Return the penalty at which the path begins.

        It is one step above the best penalty of the candidate that this one builds on. If there is none, or if the
        penalty of interactions is multiplied by a factor, it is one step above the best penalty of the first candidate.
        With many held-out rows it is two steps above, because the path is then followed further down, and a loss that
        hardly changes should not end it at too low a penalty. The first candidate begins at FIRST.
        """
        if not self._evaluations:
            return FIRST
        best = {evaluation.name: evaluation.penalty for evaluation in self._evaluations}
        base = self._builds_on.get(candidate.name, "") if candidate.interaction_factor == 1 else ""
        above = 2 if sum(fold.held_out.n_rows for fold in self._folds) >= MANY else 1
        return GRID[max(0, GRID.index(best.get(base, self._evaluations[0].penalty)) - above)]


def may_improve(
    name: str, builds_on: Mapping[str, str], evaluations: Sequence[HeldOutEvaluation], prunes: bool
) -> bool:
    """Return whether a candidate may lower the log-loss.

    It may unless the log-loss is almost 0, or the candidate that it builds on, other than `singles`, was not tried or
    has a log-loss too far above the lowest. With `prunes`, larger sets also need evidence that attributes interact, if
    a candidate was tried that could show it.
    """
    if not evaluations:
        return True
    losses = {evaluation.name: evaluation.losses.log_loss for evaluation in evaluations}
    lowest = min(losses.values())
    if lowest < NO_LOSS:
        return False
    if prunes:
        # candidates whose gain over single attributes would show that attributes interact
        signs: tuple[str, ...] = ()
        if name == "pairs":
            signs = ("tree", "boosted")
        elif name == "all pairs":
            signs = ("pairs",)
        elif name in ("triples", "quadruples") and name in builds_on:
            signs = (builds_on[name],)
        of_single = min((loss for tried, loss in losses.items() if tried in _SINGLE), default=math.inf)
        of_signs = [losses[sign] for sign in signs if sign in losses]
        if of_signs and min(of_signs) > (1 - INTERACTION_GAIN) * of_single:
            return False
    base = builds_on.get(name)
    if base is None or base == "singles":
        return True
    return base in losses and losses[base] <= (1 + PRUNING_SLACK) * lowest


def is_outdone(name: str, evaluations: Sequence[HeldOutEvaluation]) -> bool:
    """Return whether this is a candidate with small tables, and boosted trees gain so much that it is useless."""
    losses = {evaluation.name: evaluation.losses.log_loss for evaluation in evaluations}
    return name in _SHALLOW and losses.get(BOOSTED, math.inf) <= (1 - DEEP_GAIN) * losses["singles"]


def has_lost_its_base(
    name: str,
    builds_on: Mapping[str, str],
    evaluations: Sequence[HeldOutEvaluation],
    prunes: bool,
    skipped: Collection[str],
) -> bool:
    """Return whether a candidate would be tried if the one that it builds on had not been skipped."""
    return builds_on.get(name) in skipped and may_improve(name, {}, evaluations, prunes)


def improves_on_pairs(evaluations: Sequence[HeldOutEvaluation]) -> bool:
    """Return whether "all pairs" has a lower log-loss than "pairs", or "pairs" was not tried."""
    losses = {evaluation.name: evaluation.losses.log_loss for evaluation in evaluations}
    return losses["all pairs"] < losses.get("pairs", math.inf)
