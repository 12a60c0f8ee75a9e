"""The curves of an evaluation as SVG files in a folder: ROC, precision-recall and reliability, one panel per label.

An evaluation with samples of training rows also has a learning curve: error and log-loss over the number of rows.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from bncli.errors import BncliError, UsageError
from bncli.files.atomic import write_bytes
from bncli.files.paths import check_target, reason_of
from bncli.files.pictures.curve_plots import CurvePanel, MetricPanel, curve_plots, learning_curve_plot, series_plot
from bncli.files.pictures.drawing import Drawing
from bncli.steps.evaluate.report import BlockReport, CurvePoint, EvaluateReport

MOST_PANELS = 24
"""With more labels, those with the most rows are drawn."""
CURVE_FILES = ("roc.svg", "precision_recall.svg", "reliability.svg")
LEARNING_CURVE_FILE = "learning_curve.svg"
BLOCKS_FILE = "blocks.svg"


def check_folder(path: str, names: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the paths of files with these names in the folder of pictures, or () if the folder does not exist yet.

    Raises an error if the folder neither exists nor can be created.
    """
    if path == "-":
        raise UsageError(
            "--svg writes several pictures, so it cannot write to the standard output", hint="give the path of a folder"
        )
    if os.path.isdir(path):
        return tuple(os.path.join(path, name) for name in names)
    if os.path.lexists(path):
        raise UsageError(
            f"--svg needs a folder for its pictures, but {path!r} is not one", hint="give the path of a folder"
        )
    check_target(path.rstrip("/"))
    return ()


def write_drawings(folder: str, drawings: Mapping[str, Drawing]) -> None:
    """Write the drawings by file name, each completely or not at all."""
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise BncliError(f"cannot make the folder: {reason_of(error)}", where=folder) from error
    for name, drawing in drawings.items():
        write_bytes(os.path.join(folder, name), drawing.source().encode())


def draw_curves(report: EvaluateReport) -> dict[str, Drawing]:
    """Draw the curves of an evaluation; return the drawings by file name."""
    n, supports = len(report.labels), [metrics.support for metrics in report.per_label]
    shown = sorted(sorted(range(n), key=lambda c: -supports[c])[:MOST_PANELS])
    labels = f"each of {n} labels" if n <= MOST_PANELS else f"each of the {MOST_PANELS} most frequent of {n} labels"
    panels: dict[str, list[CurvePanel]] = {name: [] for name in CURVE_FILES}
    diagonal = ((0.0, 0.0), (1.0, 1.0))
    for c in shown:
        label, curves, share = report.labels[c], report.curves[c], supports[c] / sum(supports)
        roc, ranked = CurvePanel(label, "no rows", (), diagonal), CurvePanel(label, "no rows", (), ())
        if (curve := curves.roc) is not None:
            roc = CurvePanel(label, f"AUC {curve.area:.3f}", tuple(zip(curve.x, curve.y, strict=True)), diagonal)
        if (curve := curves.precision_recall) is not None:
            points = tuple(zip(curve.x, curve.y, strict=True))
            ranked = CurvePanel(label, f"AP {curve.area:.3f}", points, ((0.0, share), (1.0, share)))
        points = tuple(zip(curves.reliability.predicted, curves.reliability.observed, strict=True))
        tips = tuple(
            f"{label}: probability {p:.4g}, observed {observed:.4g}, {rows:,.10g} rows"
            for p, observed, rows in zip(*curves.reliability, strict=True)
        )
        reliable = CurvePanel(label, "", points, diagonal, tips)
        for name, panel in zip(CURVE_FILES, (roc, ranked, reliable), strict=True):
            panels[name].append(panel)
    titles = ("ROC curves", "Precision and recall", "Reliability")
    axes = (
        ("false positive rate", "true positive rate"),
        ("recall", "precision"),
        ("mean predicted probability", "observed frequency"),
    )
    drawings = {
        name: curve_plots(f"{title}, {labels} against all others", across, upwards, panels[name])
        for name, title, (across, upwards) in zip(CURVE_FILES, titles, axes, strict=True)
    }
    if report.learning_curve:
        drawings[LEARNING_CURVE_FILE] = draw_learning_curve(report.learning_curve)
    if report.blocks:
        drawings[BLOCKS_FILE] = draw_blocks(report.blocks)
    return drawings


def draw_blocks(blocks: Sequence[BlockReport]) -> Drawing:
    """Draw the log-loss of each block of rows in time order, with its 95 % interval, and that of class frequencies."""
    losses = [block.metrics["log_loss"] for block in blocks]
    names = [f"{block.start} to {block.end}, {block.rows:,} rows" for block in blocks]
    intervals = [block.intervals["log_loss"] for block in blocks]
    title = "Log-loss of each block in time order; dashed: the class frequencies"
    base = [block.baseline.log_loss for block in blocks]
    return series_plot(title, "log-loss (nats per row), 95 %", losses, base, names, across="block", intervals=intervals)


def draw_learning_curve(curve: Sequence[CurvePoint]) -> Drawing:
    """Draw error and log-loss over the number of training rows, one panel each."""
    n_fits = len(curve[0].fits)
    spread = f", with the standard deviation over {n_fits} samples" if n_fits > 1 else ""
    panels = [
        MetricPanel(label, [(point.rows, point.metrics[name], point.std[name]) for point in curve])
        for name, label in (("error", "error rate"), ("log_loss", "log-loss (nats per row)"))
    ]
    return learning_curve_plot(f"Learning curve{spread}", panels)
