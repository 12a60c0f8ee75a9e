"""Kikuchi-Bayes: from the class alone, region by region up the hill of the posterior and a way down its other side.

A region is a set of attributes that is looked up together with the class. At every step all candidates of one size are
tried, and the one whose model has the highest posterior joins:

    log posterior = log-likelihood of the classes given the attributes  -  N df / (N - df - 1)

First single attributes, then pairs, up to max_order - 1 attributes (the class counts). A step must gain more than 1e-9.
When the largest size gains no more, the walk goes on downhill with that size, as long as the log-likelihood strictly
rises and the posterior stays within 40 nats of the best. The path is the result: its best step is a classifier, its
average a better one (Jakulin & Rish 2006, IBM Research Report: Kikuchi-Bayes).

Conventions: what is below the 12th digit of the log-likelihood of the class alone is rounding; among candidates whose
posteriors differ by less the first in lexicographic order wins. df are conditional degrees of freedom unless others are
asked for (`bncli.engine.kikuchi.search_trace`). No log-likelihood exceeds 0, so candidates whose prior
alone is no better than what must be beaten are not tried. Where there are more than `max_candidates` of a size, those
made of the attributes with the best regions of their own are kept. Under `--missing-policy marginalize`, the search
takes a missing value for one more level (`Counts.with_missing_levels`). Cost: one look-up per row,
candidate, class and step; where most values are usual ones, only of the candidates that may be the best
(`bncli.engine.kikuchi.candidate_gains`).
"""

from __future__ import annotations

import math

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.kikuchi.candidate_gains import CandidateGains, Candidates, all_sets, strongest_sets
from bncli.engine.kikuchi.search_trace import GrowingModel
from bncli.engine.structures.structure import Regions
from bncli.watch import Note, Progress, TimeLimit, Watch, silent

LEAST_GAIN = 1e-9
"""A step gains more than so many nats."""
WITHIN = 40.0
"""So many nats below the best posterior the walk downhill ends: lighter steps weigh nothing."""
ROUNDING = 1e-12


def learn(
    counts: Counts,
    *,
    max_order: int,
    theta: float,
    max_candidates: int,
    degrees_of_freedom: str = "conditional",
    max_seconds: TimeLimit | None = None,
    watch: Watch = silent,
) -> Regions:
    """Return the path of regions over the informative attributes; the path so far when `max_seconds` have gone."""
    counts = counts.with_missing_levels("kikuchi", watch)
    growing = GrowingModel(counts, theta, degrees_of_freedom=degrees_of_freedom)
    search = _Search(growing, max_candidates, _Deadline(max_seconds), watch)
    if counts.data.n_labels > 1:
        search.run(min(max_order - 1, len(counts.data.schema.informative)))
    options: dict[str, int | float | str | bool] = {
        "max_order": max_order,
        "theta": theta,
        "max_candidates": max_candidates,
    }
    if max_seconds is not None:
        options["max_seconds"] = max_seconds.seconds
    if degrees_of_freedom != "conditional":
        options["degrees_of_freedom"] = degrees_of_freedom
    return Regions(tuple(search.growing.regions), search.growing.trace(), method="kikuchi", options=options)


class _Deadline:
    """Whether the time is over; never without a limit and a clock."""

    def __init__(self, limit: TimeLimit | None) -> None:
        self._clock = None if limit is None else limit.clock
        self._end = math.inf if limit is None or limit.clock is None else limit.clock() + limit.seconds

    @property
    def over(self) -> bool:
        return self._clock is not None and self._end < math.inf and self._clock() >= self._end


class _Search:
    """The model on its way."""

    def __init__(self, growing: GrowingModel, max_candidates: int, deadline: _Deadline, watch: Watch) -> None:
        self.growing = growing
        self._max_candidates, self._deadline, self._watch = max_candidates, deadline, watch
        # differences below the rounding of the log-likelihood are ties, not gains
        self._noise = max(LEAST_GAIN, ROUNDING * abs(self.growing.log_likelihood[0]))
        self._strongest = list(growing.data.schema.informative)  # in schema order until they are scored
        self._in_time = True

    def run(self, largest: int) -> None:
        """Up with regions of one attribute, then of more, and downhill with the largest."""
        for size in range(1, largest + 1):
            look = CandidateGains(self.growing, self._candidates(size))
            if size == 1:
                self._rank(look)
            while self._step(look, self.growing.log_posterior[-1] + self._noise, -math.inf):
                pass
            while size == largest and self._step(look, max(self.growing.log_posterior) - WITHIN, self._noise):
                pass
            if not self._in_time:
                self._watch(Note(f"the time was over: the search stopped among {_regions(size)} (--max-seconds)"))
                return

    def _candidates(self, size: int) -> Candidates:
        schema = self.growing.data.schema
        total = math.comb(len(schema.informative), size)
        if total <= self._max_candidates:
            members = all_sets(schema.informative, size)
        else:
            members = strongest_sets(self._strongest, size, self._max_candidates)
            left_out = f"{total - len(members):,} of {total:,}"
            self._watch(Note(f"{left_out} {_regions(size)} were not tried (--max-candidates)"))
        return Candidates(members, self.growing.rule.of_subsets(members))

    def _rank(self, look: CandidateGains) -> None:
        """Orders the attributes by what their own regions gain over the class alone."""
        single = look.candidates.sets[:, 0]
        gains = look.gains(np.arange(len(single)), self._proceed)
        if gains is not None:
            order = np.argsort(-gains.round(-math.floor(math.log10(self._noise)) - 1), kind="stable")
            self._strongest = single[order].tolist()

    def _step(self, look: CandidateGains, least_posterior: float, least_gain: float) -> bool:
        """Add the candidate of highest posterior if that and its gain in log-likelihood are above these limits."""
        growing, candidates = self.growing, look.candidates
        priors = growing.log_priors(candidates.added_df())
        wanted = np.flatnonzero(~candidates.present & (priors > least_posterior))
        gains = look.highest(wanted, priors[wanted], self._noise, self._proceed)
        if gains is None or not len(gains):
            return False
        posteriors = growing.log_likelihood[-1] + gains + priors[wanted]
        best = int(np.argmax(posteriors >= posteriors.max() - self._noise))  # the first of equals
        if posteriors[best] <= least_posterior or gains[best] <= least_gain:
            return False
        look.cover(growing.add(tuple(candidates.sets[wanted[best]].tolist())))
        return True

    def _proceed(self, done: int, total: int) -> bool:
        """Tell how far a step is; whether there is time to go on."""
        self._watch(Progress(done, total, f"candidates of step {len(self.growing.df)}"))
        self._in_time = not self._deadline.over
        return self._in_time


def _regions(size: int) -> str:
    return "single attributes" if size == 1 else f"regions of {size} attributes"
