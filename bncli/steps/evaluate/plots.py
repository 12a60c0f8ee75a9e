"""The curves of an evaluation as pictures in a folder: ROC, precision-recall and reliability, a panel a label.

Where rows were sampled to learn from, a learning curve too: error and log-loss by the rows learnt from.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from bncli.engine.evaluation.curves import LabelCurves
from bncli.errors import BncliError, UsageError
from bncli.files.atomic import write_bytes
from bncli.files.paths import check_target
from bncli.files.pictures.curve_plots import CurvePanel, MetricPanel, curve_plots, learning_curve_plot
from bncli.steps.evaluate.report import CurvePoint, EvaluateReport

MOST_PANELS = 24
"""Of more labels those with the most rows are drawn."""
_FILES = ("roc.svg", "precision_recall.svg", "reliability.svg")
_LEARNING_CURVE = "learning_curve.svg"
_Drawn = list[tuple[str, float, LabelCurves]]
"""The label, its share of the weight, its curves."""


def check_folder(path: str, *, curve: bool = False) -> tuple[str, ...]:
    """Return the files that will be written there if the folder is there already.

    An error where it can neither be nor become.

    The folder is made when there is something to put into it. curve: a learning curve is drawn too.
    """
    if path == "-":
        raise UsageError("--svg draws several pictures, which the standard output cannot take", hint="name a folder")
    if os.path.isdir(path):
        return tuple(os.path.join(path, name) for name in (*_FILES, *[_LEARNING_CURVE] * curve))
    if os.path.lexists(path):
        raise UsageError(f"--svg needs a folder for its pictures, and {path!r} is none", hint="name another one")
    check_target(path.rstrip("/"))
    return ()


def write_pictures(report: EvaluateReport, folder: str) -> None:
    """Write them, each whole or not at all."""
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise BncliError(f"cannot make the folder: {(error.strerror or str(error)).lower()}", where=folder) from error
    # The labels with the most rows, in their order.
    supports = [figures.support for figures in report.per_label]
    most = sorted(range(len(supports)), key=lambda c: -supports[c])[:MOST_PANELS]
    drawn = [(report.labels[c], supports[c] / sum(supports), report.curves[c]) for c in sorted(most)]
    pictures = (
        curve_plots(_title("ROC curves", report), "false positive rate", "true positive rate", _roc(drawn)),
        curve_plots(_title("Precision and recall", report), "recall", "precision", _precision_recall(drawn)),
        curve_plots(_title("Reliability", report), "mean probability", "share of rows", _reliability(drawn)),
    )
    for name, text in zip(_FILES, pictures, strict=True):
        write_bytes(os.path.join(folder, name), text.source().encode())
    if report.learning_curve:
        write_bytes(
            os.path.join(folder, _LEARNING_CURVE),
            learning_curve_plot(*learning_curve_panels(report.learning_curve)).source().encode(),
        )


def _title(what: str, report: EvaluateReport) -> str:
    n = len(report.labels)
    labels = f"each of {n} labels" if n <= MOST_PANELS else f"each of the {MOST_PANELS} commonest of {n} labels"
    return f"{what}, {labels} against all others"


def _roc(drawn: _Drawn) -> list[CurvePanel]:
    diagonal = ((0.0, 0.0), (1.0, 1.0))
    return [
        CurvePanel(label, "no rows", (), diagonal)
        if (curve := curves.roc) is None
        else CurvePanel(label, f"AUC {curve.area:.3f}", tuple(zip(curve.x, curve.y, strict=True)), diagonal)
        for label, _, curves in drawn
    ]


def _precision_recall(drawn: _Drawn) -> list[CurvePanel]:
    return [
        CurvePanel(label, "no rows", (), ())
        if (curve := curves.precision_recall) is None
        else CurvePanel(
            label,
            f"AP {curve.area:.3f}",
            tuple(zip(curve.x, curve.y, strict=True)),
            ((0.0, share), (1.0, share)),
        )
        for label, share, curves in drawn
    ]


def _reliability(drawn: _Drawn) -> list[CurvePanel]:
    panels: list[CurvePanel] = []
    for label, _, curves in drawn:
        predicted, observed, support = curves.reliability
        points = tuple(zip(predicted, observed, strict=True))
        tips = tuple(
            f"{label}: probability {p:.4g}, share {share:.4g}, {rows:,.10g} rows"
            for p, share, rows in zip(predicted, observed, support, strict=True)
        )
        panels.append(CurvePanel(label, "", points, ((0.0, 0.0), (1.0, 1.0)), tips))
    return panels


def learning_curve_panels(curve: Sequence[CurvePoint]) -> tuple[str, list[MetricPanel]]:
    """Return a title; error and log-loss, a panel each."""
    outcomes = len(curve[0].outcomes)
    spread = f", with the standard deviation over {outcomes} samples a size" if outcomes > 1 else ""
    panels = [
        MetricPanel(told, [(point.rows, point.metrics[name], point.std[name]) for point in curve])
        for name, told in (("error", "error"), ("log_loss", "log-loss"))
    ]
    return f"Learning curve: figures by the rows learnt from{spread}", panels
