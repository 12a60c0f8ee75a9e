"""The nomogram of a model of two classes: its effects of single attributes as points that are added up by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bncli.files.formats.report.blocks import Picture
from bncli.files.formats.svg.nomogram import Points, Scale, nomogram, points_of
from bncli.steps.effects import EffectsReport, NamedEffect
from bncli.steps.reporting.words import percent

MOST_SCALES = 15
_LEAST_POINTS = 0.5
"""Of 100: what moves the sum by less is left out."""
_MOST_VALUES = 40


def nomogram_scales(report: EffectsReport) -> list[NamedEffect]:
    """The effects of single attributes that are worth points, the first few."""
    single = [one for one in report.effects if len(one.attributes) == 1 and one.share > 0][:MOST_SCALES]
    ranges = [float(np.ptp(one.values[:, 1])) for one in single]
    least = _LEAST_POINTS / 100 * max(ranges, default=0.0)
    return [one for one, range_ in zip(single, ranges, strict=True) if range_ >= least]


def nomogram_points(report: EffectsReport, single: Sequence[NamedEffect]) -> Points:
    """Of a model of two classes: the points of each value; of very many values those that move most."""
    scales = []
    for one in single:
        named = zip(one.names[0], one.values[:, 1].tolist(), strict=True)
        scales.append(Scale(one.attributes[0], sorted(named, key=lambda pair: -abs(pair[1]))[:_MOST_VALUES]))
    return points_of(scales, float(report.base[1]))


def nomogram_picture(report: EffectsReport, labels: tuple[str, ...]) -> Picture | None:
    """None where no single attribute has an effect."""
    single = nomogram_scales(report)
    if not single:
        return None
    drawing = nomogram("Nomogram", nomogram_points(report, single), labels[1])
    share = sum(one.share for one in single)
    widest = max(single, key=lambda one: float(np.ptp(one.values[:, 1]))).attributes[0]
    sentence = f"Add up the points of a row and read P({labels[1]}) under the sum; {widest} can move it most."
    if share < 1 - 1e-9:
        sentence += (
            f" {percent(1 - share)} of the score's variance is left out: sets of columns, and the least columns."
        )
    return Picture("nomogram", "Nomogram.", sentence, drawing, wide=True)
