"""What a comparison writes beside its report: outcomes as CSV, tables as LaTeX, drawings as SVG.

Drawings are of the first metric asked for.
"""

from __future__ import annotations

import csv as csv_format
import io
import math
from collections.abc import Sequence

from bncli.engine.evaluation.significance import win_draw_loss
from bncli.errors import BncliError, UsageError
from bncli.files.atomic import write_bytes
from bncli.files.formats.svg.critical_difference import critical_difference_diagram
from bncli.files.formats.svg.drawing import Drawing
from bncli.files.formats.svg.scatter import Panel, scatter_plots
from bncli.files.latex import write_tables
from bncli.files.paths import refuse_ending
from bncli.steps.comparing.outcomes import COSTS
from bncli.steps.comparing.paper_tables import paper_tables
from bncli.steps.comparing.report import HIGHER_IS_BETTER, CompareReport, told

NOT_DRAWN = (".png", ".pdf", ".jpg", ".jpeg", ".gif", ".eps", ".ps", ".html", ".tex")
"""Endings of drawings in other formats."""


def refuse_idle_outputs(
    n_learners: int, n_sets: int, metric: str, *, diagram: str | None = None, scatter: str | None = None
) -> None:
    """Before any work: UsageError for a drawing in another format, or of what there will not be by this metric."""
    for path in (diagram, scatter):
        refuse_ending(path, NOT_DRAWN, "drawings are written as SVG")
    if n_learners < 2 and (diagram or scatter):
        flag = "--diagram" if diagram else "--scatter"
        raise UsageError(f"{flag} draws how learners differ, and there is one", hint="give another --learner")
    if n_sets < 2 and diagram:
        raise UsageError("--diagram draws average ranks over data sets, and there is one", hint="give more DATA")
    if metric in COSTS and diagram:
        what = f"--diagram draws who is not told apart by a test, and costs such as {told(metric)} are not tested"
        raise UsageError(what, hint="draw them with --scatter")


def write_outputs(
    report: CompareReport,
    *,
    csv: str | None = None,
    latex: str | None = None,
    diagram: str | None = None,
    scatter: str | None = None,
) -> None:
    """Writes those that have a path, each whole or not at all."""
    if csv:
        _write_csv(report, csv)
    if latex:
        write_tables(latex, paper_tables(report))
    if diagram:
        write_bytes(diagram, _diagram(report, diagram).encode())
    if scatter:
        write_bytes(scatter, _scatter(report, scatter).encode())


def _write_csv(report: CompareReport, path: str) -> None:
    """The figures of every fold, a line a fold; what is not defined is an empty field."""
    trial = report.trial
    metrics = list(dict.fromkeys(name for one in trial.outcomes for name in one.metrics))
    stages = list(dict.fromkeys(stage for one in trial.outcomes for stage in one.seconds))
    counts = list(dict.fromkeys(name for one in trial.outcomes for name in one.costs))
    names = ["data", "learner", "repeat", "fold", "rows", *metrics, *(f"{stage}_seconds" for stage in stages), *counts]
    rows = [
        {
            **{name: getattr(one, name) for name in names[:5]},
            **one.metrics,
            **{f"{stage}_seconds": value for stage, value in one.seconds.items()},
            **one.costs,
        }
        for one in trial.outcomes
    ]
    text = io.StringIO()
    writer = csv_format.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    # A name that the command line could not decode is told as it came, and does not end a long run.
    write_bytes(path, text.getvalue().encode("utf-8", "backslashreplace"))


def _diagram(report: CompareReport, path: str) -> str:
    metric = report.metrics[0]
    drawing = rank_diagram(report, metric)
    if drawing is None:
        what = f"there are not two learners with {told(metric)} on two data sets to draw average ranks of"
        raise BncliError(what, where=path)
    return drawing.source()


def rank_diagram(report: CompareReport, metric: str) -> Drawing | None:
    """Average ranks, and who is not told apart; None where nothing is tested."""
    summary = report.summaries.get(metric)
    if summary is None or summary.critical_difference is None:
        return None
    title = f"Average ranks by {told(metric)} over {len(summary.sets)} data sets"
    return critical_difference_diagram(title, summary.average_ranks, summary.groups, summary.critical_difference)


def _scatter(report: CompareReport, path: str) -> str:
    metric = report.metrics[0]
    panels = scatter_panels(report, metric)
    if metric in COSTS and not panels:
        what = f"no data set has {told(metric)} of {report.baseline} and of another learner to draw"
        raise BncliError(what, where=path, hint="parameters in closed form have none; name another --baseline")
    return scatter_drawing(report, metric, panels).source()


def scatter_panels(report: CompareReport, metric: str) -> list[Panel]:
    """Every learner against the baseline; of costs those that have any."""
    others = [name for name in report.trial.learners if name != report.baseline]
    panels = [_panel(report, name, metric) for name in others]
    return [panel for panel in panels if panel.points] if metric in COSTS else panels


def scatter_drawing(report: CompareReport, metric: str, panels: Sequence[Panel]) -> Drawing:
    """A panel a learner, a point a data set."""
    title = f"{told(metric)} on each data set: every learner against {report.baseline}"
    lower = metric not in HIGHER_IS_BETTER
    return scatter_plots(
        title, report.baseline, panels, lower_is_better=lower, logarithmic=True if metric in COSTS else None
    )


def _panel(report: CompareReport, learner: str, metric: str) -> Panel:
    """The data sets on which both have finite figures; a logarithm asks for costs above 0."""
    least = {"fit_seconds": 1e-9, "iterations": 0.5, "passes": 0.5}.get(metric, -math.inf)
    points: list[tuple[str, float, float]] = []
    for data in report.trial.data:
        across, upwards = (report.figure(data, name, metric) for name in (report.baseline, learner))
        if across and upwards and math.isfinite(across.mean + upwards.mean):
            points.append((data, max(across.mean, least), max(upwards.mean, least)))
    sign = 1 if metric in HIGHER_IS_BETTER else -1
    counts = win_draw_loss([sign * y for _, _, y in points], [sign * x for _, x, _ in points])
    return Panel(learner, points, counts.wins, counts.draws, counts.losses)
