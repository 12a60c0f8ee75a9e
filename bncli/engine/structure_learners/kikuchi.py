"""Kikuchi-Bayes: regions added one by one to the class alone, until well past the highest posterior.

A region is a set of attributes that share a table with the class. At every step all candidates of one size are tried,
and the one whose model has the highest posterior is added:

    log posterior = log-likelihood of the classes given the attributes  -  N df / (N - df - 1)

Single attributes come first, then pairs, up to max_order - 1 attributes (max_order counts the class). A step must gain
more than 1e-9. When the largest size gains no more, the search continues downhill with that size, as long as the
log-likelihood strictly rises and the posterior stays within 40 nats of the best. The result is the whole path. The
model of its best step is a classifier, and the average over the path is a better one (Jakulin & Rish 2006, IBM Research
Report: Kikuchi-Bayes).

Conventions: differences below the 12th digit of the log-likelihood of the class alone are rounding errors; among
candidates whose posteriors differ by less, the first in lexicographic order is added. df are conditional degrees of
freedom by default (`bncli.engine.kikuchi.search_trace.DegreesOfFreedom`). No log-likelihood exceeds 0, so a candidate
is not tried if its log-prior alone does not exceed the log posterior that a step needs. If there are more than
`max_candidates` of a size, those made of the attributes with the highest single gains are tried. Under
`--missing-policy marginalize`, the search treats missing values as one more level. Cost: one look-up per row,
candidate, class and step; if most rows have the most frequent values, only for candidates that may be the best
(`bncli.engine.kikuchi.candidate_gains`).
"""

from __future__ import annotations

import math

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.kikuchi.candidate_gains import CandidateGains, Candidates, all_sets, strongest_sets
from bncli.engine.kikuchi.search_trace import GrowingModel
from bncli.engine.structures.arc_constraints import ArcConstraints
from bncli.engine.structures.structure import Regions
from bncli.watch import Note, Progress, TimeLimit, Watch, silent

LEAST_GAIN = 1e-9
"""A step must gain more than this, in nats."""
DOWNHILL = 40.0
"""The downhill search ends this many nats below the best posterior, where steps have negligible weight."""
ROUNDING = 1e-12


def learn(
    counts: Counts,
    *,
    max_order: int,
    theta: float,
    max_candidates: int,
    degrees_of_freedom: str = "conditional",
    max_seconds: TimeLimit | None = None,
    constraints: ArcConstraints | None = None,
    watch: Watch = silent,
) -> Regions:
    """Return the path of regions over the informative attributes, or the path found within `max_seconds`.

    With constraints, only regions that obey them are candidates.
    """
    counts = counts.with_missing_levels("kikuchi", watch)
    model = GrowingModel(counts, theta, degrees_of_freedom=degrees_of_freedom)
    if counts.data.n_labels > 1:
        search = _Search(model, max_candidates, max_seconds, watch, constraints)
        search.run(min(max_order - 1, len(counts.schema.informative)))
    options: dict[str, int | float | str | bool] = {
        "max_order": max_order,
        "theta": theta,
        "max_candidates": max_candidates,
    }
    if max_seconds is not None:
        options["max_seconds"] = max_seconds.seconds
    if degrees_of_freedom != "conditional":
        options["degrees_of_freedom"] = degrees_of_freedom
    return Regions(tuple(model.regions), model.trace(), method="kikuchi", options=options)


class _Search:
    """A search that adds regions to a model."""

    def __init__(
        self,
        model: GrowingModel,
        max_candidates: int,
        limit: TimeLimit | None,
        watch: Watch,
        constraints: ArcConstraints | None,
    ) -> None:
        self.model, self._constraints = model, constraints
        self._max_candidates, self._watch = max_candidates, watch
        self._clock = None if limit is None else limit.clock
        self._deadline = math.inf if limit is None or limit.clock is None else limit.clock() + limit.seconds
        # differences below the rounding errors of the log-likelihood are ties, not gains
        self._noise = max(LEAST_GAIN, ROUNDING * abs(model.log_likelihood[0]))
        self._strongest = list(model.data.schema.informative)  # in schema order until they are scored
        self._in_time = True

    def run(self, largest: int) -> None:
        """Add regions of increasing size while the posterior rises; with the largest size, also steps that lower it."""
        informative = self.model.data.schema.informative
        for size in range(1, largest + 1):
            name = "single attributes" if size == 1 else f"regions of {size} attributes"
            n_sets = math.comb(len(informative), size)
            if n_sets <= self._max_candidates:
                sets = all_sets(informative, size)
            else:
                sets = strongest_sets(self._strongest, size, self._max_candidates)
                not_tried = f"{n_sets - len(sets):,} of {n_sets:,}"
                self._watch(Note(f"{not_tried} {name} were not tried (--max-candidates)"))
            if self._constraints is not None:
                sets = sets[[self._constraints.allows_region(members) for members in sets.tolist()]]
                if not len(sets):
                    return
            gains = CandidateGains(self.model, Candidates(sets, self.model.rule.of_subsets(sets)))
            if size == 1:
                # the attributes by the gain of their single regions over the class alone
                single_gains = gains.gains(np.arange(len(sets)), self._proceed)
                if single_gains is not None:
                    # rounded to one digit above the noise, so that ties stay in schema order
                    order = np.argsort(-single_gains.round(-math.floor(math.log10(self._noise)) - 1), kind="stable")
                    self._strongest = sets[:, 0][order].tolist()
            while self._step(gains, self.model.log_posterior[-1] + self._noise, -math.inf):
                pass
            while size == largest and self._step(gains, max(self.model.log_posterior) - DOWNHILL, self._noise):
                pass
            if not self._in_time:
                self._watch(Note(f"the time limit was reached: the search stopped at {name} (--max-seconds)"))
                return

    def _step(self, look: CandidateGains, least_posterior: float, least_gain: float) -> bool:
        """Add the candidate of highest posterior if it exceeds both limits; return whether it was added.

        The limits are `least_posterior` for the log posterior and `least_gain` for the gain in log-likelihood.
        """
        model, candidates = self.model, look.candidates
        # the log-likelihood is at most 0, so a posterior cannot exceed the prior
        priors = model.log_priors(candidates.added_df())
        promising = np.flatnonzero(~candidates.present & (priors > least_posterior))
        gains = look.highest(promising, priors[promising], self._noise, self._proceed)
        if gains is None or not len(gains):
            return False
        posteriors = model.log_likelihood[-1] + gains + priors[promising]
        best = int(np.argmax(posteriors >= posteriors.max() - self._noise))  # argmax takes the first of equals
        if posteriors[best] <= least_posterior or gains[best] <= least_gain:
            return False
        look.cover(model.add(tuple(candidates.sets[promising[best]].tolist())))
        return True

    def _proceed(self, done: int, total: int) -> bool:
        """Report the progress of a step, and return whether there is time left."""
        self._watch(Progress(done, total, f"candidates of step {len(self.model.df)}"))
        self._in_time = self._clock is None or self._deadline == math.inf or self._clock() < self._deadline
        return self._in_time
