"""What a monitor says: a tally of scored rows, judged against the training rows of the model that scored them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from bncli.engine.data.log_p import TrainingLogP
from bncli.engine.monitoring.drift import Drift, drift_of
from bncli.engine.monitoring.tallies import Tally


class MonitoredModel(NamedTuple):
    """Which model scored the rows: a fingerprint of all that is in it, its class, labels and training rows.

    `held_out_log_loss` is that of rows that were held out when it was learnt; None where none were. log_p: that of
    training rows, None where the model does not keep it.
    """

    fingerprint: str
    class_name: str
    labels: tuple[str, ...]
    rows: int
    held_out_log_loss: float | None = None
    log_p: TrainingLogP | None = None


@dataclass(frozen=True)
class Monitor:
    """A tally and the model it is of. `no_log_p`: why there is no ln P(x), empty where there is."""

    model: MonitoredModel
    tally: Tally
    no_log_p: str = ""

    @cached_property
    def drifts(self) -> tuple[Drift, ...]:
        """Of each attribute."""
        return tuple(
            drift_of(one.counts, one.training, one.unknown, self.n_tests) if self.tally.rows else _NO_ROWS
            for one in self.tally.attributes
        )

    @property
    def below_training(self) -> float | None:
        """The share of rows less probable than the lowest quantile of training; None where either is not known."""
        if self.model.log_p is None or not self.tally.log_p.n:
            return None
        return self.tally.sketch.share_below(self.model.log_p.lowest)

    @property
    def n_tests(self) -> int:
        """Among which the allowed probability of an error is divided."""
        return max(2 * len(self.tally.attributes), 1)

    @property
    def drifted(self) -> tuple[str, ...]:
        """The attributes that have drifted, the farthest first."""
        pairs = zip(self.tally.attributes, self.drifts, strict=True)
        found = [(-(drift.psi or 0.0), one.name) for one, drift in pairs if drift.drifted]
        return tuple(name for _, name in sorted(found, key=lambda pair: pair[0]))

    def predictions(self) -> Iterator[tuple[str, float]]:
        """The share of the rows that each label was predicted for."""
        for label, count in zip(self.model.labels, self.tally.predictions.tolist(), strict=True):
            yield label, count / self.tally.rows if self.tally.rows else 0.0


_NO_ROWS = Drift(None, None, None, None, 1.0, False)
