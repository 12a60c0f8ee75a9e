"""What a scoring run adds for a monitor: its file, and what it says of drift."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bncli.engine.data.log_p import QUANTILES
from bncli.engine.model import Model
from bncli.engine.monitoring.monitor import Monitor
from bncli.engine.monitoring.tallies import Watcher
from bncli.errors import DriftError
from bncli.files.monitors import monitored, write_monitor
from bncli.watch import Note, Watch

_NAMED = 5


@dataclass(frozen=True)
class Monitored:
    """A monitor as it was written to `file`."""

    file: str
    monitor: Monitor

    def as_json(self) -> dict[str, Any]:
        """The file, and what it says in short."""
        return {"file": self.file, "drift": bool(self.monitor.drifted), "drifted": list(self.monitor.drifted)}

    def sentence(self) -> str:
        """Whether anything has drifted, and what, the farthest first."""
        total, drifted = len(self.monitor.tally.attributes), self.monitor.drifted
        if not self.monitor.tally.rows:
            return "no rows, no drift"
        if not drifted:
            return f"no drift in {total:,} attribute{'' if total == 1 else 's'}{self._improbable()}"
        return f"drift in {len(drifted):,} of {total:,} attributes: {self._named()}{self._improbable()}"

    def _improbable(self) -> str:
        """How many rows are less probable than nearly all of training were, where the model knows."""
        share = self.monitor.below_training
        lowest = f"{100 * QUANTILES[0]:g} % quantile of ln P(x) in training"
        return "" if share is None else f"; {100 * share:.3g} % of the rows below the {lowest}"

    def _named(self) -> str:
        names, drifted = {one.name: one for one in self.monitor.tally.attributes}, self.monitor.drifted
        by_name = dict(zip(names, self.monitor.drifts, strict=True))
        told = [f"{name} ({_size(by_name[name].psi)})" for name in drifted[:_NAMED]]
        return ", ".join(told) + (", ..." if len(drifted) > _NAMED else "")

    def refuse_drift(self) -> None:
        """DriftError where anything has drifted."""
        if self.monitor.drifted:
            raise DriftError(self.sentence(), where=self.file, hint="look at what changed, or fit again")


def _size(psi: float | None) -> str:
    return "no value of training" if psi is None else f"PSI {psi:.2f}"


def write_found(path: str, model: Model, watcher: Watcher | None, watch: Watch) -> Monitored:
    """Writes what was counted, and notes what it lacks."""
    assert watcher is not None
    if model.class_weights is not None and model.plain_frequencies is None:
        watch(Note("drift is told against training rows that weigh as --class-weights said in fit"))
    if watcher.no_log_p:
        watch(Note(f"no ln P(x): {watcher.no_log_p}"))
    monitor = Monitor(monitored(model), watcher.tally, watcher.no_log_p)
    write_monitor(path, monitor)
    return Monitored(path, monitor)
