"""What the steps of a path would lose on new rows, by the bootstrap: a check of the prior that owes nothing to it.

From the N training rows N are drawn with replacement; the submodels of every step are made of these, and the step's
log-loss is summed over the training rows, which are to the resample what new rows are to them:

    loss_s = mean over resamples D* of  - sum_t w_t ln P(y_t | x_t, M_s, D*)

Where the prior is right, -loss_s follows the log posterior of the steps (Jakulin & Rish 2006, section 6.3 and figure 1;
there the sum is over the rows of a resample: those of another one are, on average, the training rows). Rows with
weights are drawn in proportion to them, as many as the weights add up to, and counted: memory is that of the rows.
Cost: two passes over the rows a step and resample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.kernels.arrays import Array
from bncli.engine.kikuchi.model_paths import addition, changes_along
from bncli.engine.kikuchi.search_trace import look_up
from bncli.engine.structures.region_graph import Region
from bncli.engine.structures.structure import Regions
from bncli.watch import Progress, Watch, silent


class Resampling(NamedTuple):
    """How many resamples are drawn, and the seed of the draws."""

    resamples: int
    seed: int = 0

    def of(self, data: Dataset) -> Iterator[Dataset]:
        """Yield the resamples: as many rows as the data weigh, drawn with replacement.

        Of weighted rows each stands once.
        """
        for number in range(self.resamples):
            rng = np.random.default_rng((self.seed, number))
            if data.weights is None:
                yield data.take(rng.choice(data.n_rows, data.n_rows))
                continue
            n_drawn = max(round(data.total_weight), 1)
            counts = rng.multinomial(n_drawn, data.weights / data.weights.sum())
            rows = np.flatnonzero(counts)
            yield replace(data.take(rows), weights=np.asarray(counts[rows] * (data.total_weight / n_drawn), np.float64))


def with_log_losses(
    data: Dataset, regions: Regions, theta: float, resampling: Resampling, watch: Watch = silent
) -> Regions:
    """Return the regions whose search trace, which they must have, says loss_s of every step as well.

    No value is missing.
    """
    assert regions.trace is not None
    losses = bootstrap_log_losses(data, regions.regions, theta, resampling, watch)
    options = {**regions.options, "bootstrap": resampling.resamples, "seed": resampling.seed}
    return replace(regions, trace=replace(regions.trace, bootstrap_log_loss=losses), options=options)


def bootstrap_log_losses(
    data: Dataset, regions: Sequence[Region], theta: float, resampling: Resampling, watch: Watch = silent
) -> tuple[float, ...]:
    """loss_s of the class alone and of every step, in nats; no value is missing."""
    losses = np.zeros(len(regions) + 1)
    for number, learnt in enumerate(resampling.of(data)):
        watch(Progress(number, resampling.resamples, "resamples"))
        losses += _log_losses(data, learnt, regions, theta)
    return tuple((losses / resampling.resamples).tolist())


def _log_losses(data: Dataset, learnt: Dataset, regions: Sequence[Region], theta: float) -> Array:
    """Return the summed log-loss of `data` after every step, with the submodels of the rows `learnt`."""
    steps: list[Region] = [(), *regions]
    losses: list[float] = []
    states: list[Array] | None = None
    for region, table, changes in zip(steps, Counts(learnt).tables(steps), changes_along(regions), strict=True):
        added = addition(table, region, changes, learnt.total_weight, theta)
        grown = data.map(look_up, region, table.shape[:-1], np.ascontiguousarray(added.T), states=states)
        states = [scores for scores, _ in grown]
        losses.append(-sum(gained for _, gained in grown))
    return np.array(losses)
