"""Monitors of one model side by side, in the order given, which is that of time; and all their rows together.

Or the rows of a table beside those that a model was learnt from, counted as scoring would count them.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bncli.engine.data.schema import Unseen
from bncli.engine.prediction.monitoring import LEAST_PSI, Drift, Monitor
from bncli.errors import ModelError
from bncli.files.artifacts.model import read_model
from bncli.files.artifacts.monitors import monitor_json, monitored_model, read_monitor, write_monitor
from bncli.files.atomic import write_bytes
from bncli.files.paths import check_outputs
from bncli.files.pictures.convergence_plots import CurvesPanel, convergence_plots
from bncli.files.reading.rows_by_schema import Batches
from bncli.files.reading.source import Source
from bncli.steps.run import with_memory_limit
from bncli.steps.score_rows import ScoredRows
from bncli.watch import Run

_DRAWN = 12
"""Attributes whose curves are told apart at a glance."""
_LIMIT = f"limit {LEAST_PSI:g}"
_ALL = ("rows", "drift", "drifted", "predictions", "mean_confidence", "mean_log_p", "log_p_quantiles", "log_loss")


@dataclass(frozen=True)
class MonitorReport:
    """The monitors by the files that they were read from."""

    files: tuple[str, ...]
    monitors: tuple[Monitor, ...]

    @cached_property
    def whole(self) -> Monitor:
        """The monitor of all rows together."""
        first, *others = self.monitors
        tally = copy.deepcopy(first.tally)
        for other in others:
            tally.merge(other.tally)
        return Monitor(first.model, tally, first.no_log_p)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The attributes, those that drifted in any monitor first, the farthest of them in front."""
        farthest = {
            one.name: min((not m.drifts[i].drifted, -m.drifts[i].severity) for m in self.monitors)
            for i, one in enumerate(self.whole.tally.attributes)
        }
        return tuple(sorted(farthest, key=lambda name: farthest[name]))

    @cached_property
    def short_names(self) -> list[str]:
        """The files without their folders, where that leaves them apart."""
        names = [os.path.basename(path) for path in self.files]
        return names if len(set(names)) == len(names) else list(self.files)

    def drifts(self, name: str) -> list[Drift]:
        """Of one attribute, monitor by monitor."""
        i = next(i for i, one in enumerate(self.whole.tally.attributes) if one.name == name)
        return [monitor.drifts[i] for monitor in self.monitors]

    def as_json(self) -> dict[str, Any]:
        """Return all rows together, each monitor, and each attribute over the monitors."""
        single = [monitor_json(monitor) for monitor in self.monitors]
        together = monitor_json(self.whole)
        series = {one["name"]: [each["attributes"][i] for each in single] for i, one in _numbered(together)}
        over = ("psi", "p", "missing", "unseen", "drift")
        return {
            "model": together["model"],
            **_figures(together),
            "attributes": [
                one | {"series": {key: [each[key] for each in series[one["name"]]] for key in over}}
                for _, one in _numbered(together)
            ],
            "monitors": [{"file": file} | _figures(one) for file, one in zip(self.files, single, strict=True)],
        }


def monitor(paths: Sequence[str], svg: str | None = None) -> MonitorReport:
    """Join monitor files, and draws the PSI of the attributes over them to the file `svg`."""
    check_outputs((svg,), paths)
    monitors = [read_monitor(path) for path in paths]
    for path, one in zip(paths, monitors, strict=True):
        _check_same(monitors[0], one, paths[0], path)
    report = MonitorReport(tuple(paths), tuple(monitors))
    if svg is not None:
        write_bytes(svg, _picture(report).encode())
    return report


def monitor_rows(
    model_path: str,
    source: Source,
    *,
    output: str | None = None,
    svg: str | None = None,
    unseen: Unseen | None = None,
    run: Run = Run(),
) -> MonitorReport:
    """Count the rows of a table beside those that the model was learnt from, as `score` would; no score is written.

    output: the file that `score --monitor` would write, which may be joined with others.
    """
    check_outputs((output, svg), (*source.paths, model_path))
    model = read_model(model_path)
    rows = ScoredRows(model, (unseen or model.schema.unseen) == "error")
    rows.watch(model)
    with Batches(source, model.schema, rows.needed, texts=rows.texts_wanted(), run=with_memory_limit(run)) as batches:
        rows.absent = batches.absent
        for batch in batches:
            if rows.strict:
                rows.refuse_unseen(batch, batches.kept_names)
            for _ in rows.score(batch):
                pass
    watcher = rows.watcher
    assert watcher is not None
    found = Monitor(monitored_model(model), watcher.tally, watcher.no_log_p)
    if output is not None:
        write_monitor(output, found)
    report = MonitorReport(("stdin" if source.paths == ("-",) else source.paths[0],), (found,))
    if svg is not None:
        write_bytes(svg, _picture(report).encode())
    return report


def _check_same(first: Monitor, other: Monitor, first_path: str, path: str) -> None:
    """Raise ModelError where they are not of one model."""
    if other.model.fingerprint != first.model.fingerprint:
        what = f"the monitor is of another model than that of {first_path}"
        raise ModelError(what, where=path, hint="join monitors of one model file")
    shapes = [[(one.name, *one.training.tolist()) for one in each.tally.attributes] for each in (first, other)]
    if other.model != first.model or shapes[0] != shapes[1]:
        what = f"the monitor tells of the model otherwise than {first_path} does, whose fingerprint is the same"
        raise ModelError(what, where=path, hint="score the rows again")


def _picture(report: MonitorReport) -> str:
    """Return a curve an attribute, those that went highest, and the limit below which nobody needs to act."""
    drawn = report.names[:_DRAWN]
    curves = {
        name: [(t, drift.psi) for t, drift in enumerate(report.drifts(name), 1) if drift.psi is not None]
        for name in drawn
    }
    limit = next(name for name in (_LIMIT, f"{_LIMIT} of PSI") if name not in curves)
    curves[limit] = [(1, LEAST_PSI), (max(len(report.files), 2), LEAST_PSI)]
    panel = CurvesPanel("PSI", {name: [(t, round(psi, 6)) for t, psi in points] for name, points in curves.items()})
    title = f"Drift of {report.whole.model.class_name} over {len(report.files)} monitors"
    return convergence_plots(title, "monitor", "PSI", list(curves), [panel])


def _figures(content: dict[str, Any]) -> dict[str, Any]:
    """Of a monitor, what is not about single attributes."""
    return {key: content[key] for key in (*_ALL, "below_training") if key in content}


def _numbered(content: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    return list(enumerate(content["attributes"]))
