"""Compare rows with the training rows of a model: join monitors of several periods, or count the rows of a table.

A monitor holds counts of scored rows. Monitor files are written by `score --monitor` and `monitor -o`, usually one per
period. They are joined in the given order, which should be the order in time.
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
from bncli.errors import ModelError, UsageError
from bncli.files.artifacts.model import read_model
from bncli.files.artifacts.monitors import monitor_json, read_monitor, write_monitor
from bncli.files.atomic import write_bytes
from bncli.files.paths import check_outputs, repeated_path
from bncli.files.pictures.curve_plots import CurvesPanel, convergence_plots
from bncli.files.reading.source import Source
from bncli.steps.row_scoring import RowScorer
from bncli.steps.run import with_memory_limit
from bncli.watch import Note, Run

_MOST_CURVES = 12
"""The maximum number of attributes in a plot; more curves could not be distinguished at a glance."""
_LIMIT = f"limit {LEAST_PSI:g}"
_FIGURES = (
    "rows",
    "on_training_rows",
    "drift",
    "drifted",
    "predictions",
    "mean_confidence",
    "mean_log_p",
    "log_p_quantiles",
    "log_loss",
    "accuracy",
    "auc",
    "expected",
    "below_training",
)
"""The keys of a monitor's JSON that are reported for every monitor, apart from the statistics of each attribute."""
_SERIES = ("psi", "p", "missing", "unseen", "drift")
"""The keys of an attribute that are reported for every monitor."""


@dataclass(frozen=True)
class MonitorReport:
    """Monitors, one per period, and the files from which they were read or counted."""

    files: tuple[str, ...]
    monitors: tuple[Monitor, ...]

    @cached_property
    def overall(self) -> Monitor:
        """The monitor of all rows of all files."""
        first, *others = self.monitors
        tally = copy.deepcopy(first.tally)
        for other in others:
            tally.merge(other.tally)
        return Monitor(first.model, tally, first.no_log_p)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the attributes, drifted ones first, and otherwise by decreasing severity of their drift.

        An attribute that drifted in any monitor counts as drifted; its severity is the highest in any monitor.
        """
        rank = {
            tally.name: min((not m.drifts[i].drifted, -m.drifts[i].severity) for m in self.monitors)
            for i, tally in enumerate(self.overall.tally.attributes)
        }
        return tuple(sorted(rank, key=lambda name: rank[name]))

    @cached_property
    def short_names(self) -> list[str]:
        """The file names without folders, or the full paths if two file names are equal."""
        names = [os.path.basename(path) for path in self.files]
        return names if len(set(names)) == len(names) else list(self.files)

    @property
    def named_monitors(self) -> list[tuple[str, Monitor]]:
        """The monitors with the short names of their files and, if there are several, the overall one as "all"."""
        monitors = list(zip(self.short_names, self.monitors, strict=True))
        return [*monitors, ("all", self.overall)] if len(monitors) > 1 else monitors

    @cached_property
    def notes(self) -> list[str]:
        """Notes about files without rows, without labels (if others have some), or with a single label."""
        named = list(zip(self.short_names, self.monitors, strict=True))
        empty = [name for name, monitor in named if not monitor.tally.rows]
        unlabelled = [name for name, monitor in named if monitor.tally.rows and not monitor.tally.log_loss.n]
        notes = [f"there are no rows in {', '.join(empty)}"] if empty else []
        if unlabelled and self.overall.tally.log_loss.n:
            notes.append(f"there are no labels in {', '.join(unlabelled)}, so only expected figures are available")
        for name, monitor in named:
            if monitor.only_label is not None:
                why = ": the AUC needs both labels" if len(monitor.model.labels) == 2 else ""
                notes.append(f"all labelled rows in {name} have the label {monitor.only_label!r}{why}")
        return notes

    def drifts(self, name: str) -> list[Drift]:
        """Return the drift of the attribute `name` in each monitor."""
        i = next(i for i, tally in enumerate(self.overall.tally.attributes) if tally.name == name)
        return [monitor.drifts[i] for monitor in self.monitors]

    def as_json(self) -> dict[str, Any]:
        """Return the model, and the metrics of all rows together, of each monitor, and of each attribute."""
        single = [monitor_json(monitor) for monitor in self.monitors]
        together = monitor_json(self.overall)
        attributes = []
        for i, attribute in enumerate(together["attributes"]):
            series = {key: [monitor["attributes"][i][key] for monitor in single] for key in _SERIES}
            attributes.append(attribute | {"series": series})
        monitors = []
        for file, monitor in zip(self.files, single, strict=True):
            monitors.append({"file": file} | {key: monitor[key] for key in _FIGURES if key in monitor})
        return {
            "model": together["model"],
            **{key: together[key] for key in _FIGURES if key in together},
            "attributes": attributes,
            "monitors": monitors,
        }


def monitor(paths: Sequence[str], svg: str | None = None) -> MonitorReport:
    """Join monitor files and, if `svg` is given, plot the PSI of the most drifted attributes over time to this file.

    At most 12 attributes are plotted. Raises UsageError if a file is given twice, and ModelError if the monitors belong
    to different models, or describe the same model differently.
    """
    check_outputs((svg,), paths)
    if (repeated := repeated_path(paths)) is not None:
        raise UsageError(f"{repeated} is given twice", hint="its rows would be counted twice")
    monitors = [read_monitor(path) for path in paths]
    first = monitors[0]
    for path, other in zip(paths, monitors, strict=True):
        if other.model.fingerprint != first.model.fingerprint:
            what = f"the monitor belongs to a different model from that of {paths[0]}"
            raise ModelError(what, where=path, hint="combine only monitors of the same model file")
        training = [
            [(tally.name, *tally.training.tolist()) for tally in each.tally.attributes] for each in (first, other)
        ]
        if other.model != first.model or training[0] != training[1]:
            what = f"the monitor describes the model differently from {paths[0]}, although both name the same model"
            raise ModelError(what, where=path, hint="score the rows again")
    report = MonitorReport(tuple(paths), tuple(monitors))
    if svg is not None:
        _draw_psi_curves(report, svg)
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
    """Count the rows of a table, as `score --monitor` does, without writing predictions.

    output: the monitor file to write, which can be joined with others. svg: a file for a plot of the PSI of at most 12
    attributes. unseen: how to treat unseen values, or None for the model's setting.
    """
    check_outputs((output, svg), (*source.paths, model_path))
    model = read_model(model_path)
    scorer = RowScorer(model, strict=(unseen or model.schema.unseen) == "error", monitored=True)
    with scorer.open(source, with_memory_limit(run)) as batches:
        for batch in batches:
            for _ in scorer.score(batch):
                pass
    for text in scorer.counts.notes:
        run.watch(Note(text, warning=True))
    counted = scorer.monitor()
    if output is not None:
        write_monitor(output, counted)
    report = MonitorReport(("stdin" if source.paths == ("-",) else source.paths[0],), (counted,))
    if svg is not None:
        _draw_psi_curves(report, svg)
    return report


def _draw_psi_curves(report: MonitorReport, path: str) -> None:
    """Plot the PSI of the first _MOST_CURVES attributes in `report.names`, and LEAST_PSI as a horizontal line."""
    curves = {}
    for name in report.names[:_MOST_CURVES]:
        drifts = enumerate(report.drifts(name), 1)
        curves[name] = [(t, drift.psi) for t, drift in drifts if drift.psi is not None]
    limit = next(name for name in (_LIMIT, f"{_LIMIT} of PSI") if name not in curves)
    curves[limit] = [(1, LEAST_PSI), (max(len(report.files), 2), LEAST_PSI)]
    rounded = {name: [(t, round(psi, 6)) for t, psi in points] for name, points in curves.items()}
    panel = CurvesPanel("Population stability index (PSI)", rounded)
    title = f"Drift of attributes since training (class {report.overall.model.class_name})"
    picture = convergence_plots(title, "monitor", "PSI", list(curves), [panel], is_numbered=True)
    write_bytes(path, picture.source().encode())
