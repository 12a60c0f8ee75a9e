"""Figures 2 and 3 of Feelders & Ivanovs (2006) as drawings: the structure fitted to pima, and nine curves there."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bncli.files.pictures.curve_plots import CurvePanel, curve_plots
from bncli.files.pictures.drawing import Drawing, text_width
from tests.published.feelders_ivanovs import ARCS, CURVES, PAGE, SHARES, WAYS
from tests.published.pages import read_csv

STRUCTURE, ITERATIONS, FLOPS = (
    PAGE.with_name(f"feelders_ivanovs_{name}.svg") for name in ("figure2", "figure3", "figure3_flops")
)
Point = tuple[float, float]
PIMA = ("preg", "plas", "pres", "skin", "insu", "mass", "pedi", "age")


def curves() -> dict[str, list[tuple[float, float, float]]]:
    """By way: iteration, CLL and flops, the start first."""
    lines = read_csv(CURVES)[1:]
    return {way: [(float(a), float(b), float(c)) for w, a, b, c in lines if w == way] for way in WAYS}


def threshold() -> float:
    """The CLL that is 5 % of the whole rise below the best."""
    found = [cll for each in curves().values() for _, cll, _ in each]
    return max(found) - SHARES[0] * (max(found) - min(each[0][1] for each in curves().values()))


def drawings() -> dict[str, str]:
    """The SVG text of each file, by its name."""
    return {
        STRUCTURE.name: _structure([(line[1], line[2]) for line in read_csv(ARCS)[1:] if line[0] == "pima"]),
        ITERATIONS.name: _convergence(0, 40.0, "iterations / 40"),
        FLOPS.name: _convergence(2, 2e7, "flops / 20 million"),
    }


def _convergence(axis: int, most: float, across: str) -> str:
    """Nine panels: how much of the whole rise of the CLL was made; dashed: the threshold of 5 %."""
    found = curves()
    start = found[WAYS[0]][0][1]
    rise = max(cll for each in found.values() for _, cll, _ in each) - start
    panels = []
    for way, each in found.items():
        points = [(moment[axis] / most, (moment[1] - start) / rise) for moment in each]
        arrived = next(moment for moment in each if moment[1] >= start + (1 - SHARES[0]) * rise)
        told = f"{arrived[0]:.0f} iterations" if axis == 0 else f"{arrived[2] / 1e6:.2f} million"
        panels.append(CurvePanel(way, told, _inside(points), ((0.0, 1 - SHARES[0]), (1.0, 1 - SHARES[0]))))
    return curve_plots("pima: share of the whole rise of the CLL", across, "share of the rise", panels).source()


def _inside(points: Sequence[Point]) -> list[Point]:
    """The points up to the right edge, the last one moved along its line onto it."""
    inside = [point for point in points if point[0] <= 1]
    if len(inside) < len(points):
        (x, y), (beyond, higher) = inside[-1], points[len(inside)]
        inside.append((1.0, y + (higher - y) * (1 - x) / (beyond - x)))
    return inside


def _structure(arcs: Sequence[tuple[str, str]]) -> str:
    """The class in the middle, a faint line to every attribute; arrows between attributes."""
    drawing = Drawing(460, 400, "pima: the structure fitted")
    centre, places = (230.0, 200.0), {}
    for i, name in enumerate(PIMA):
        angle = 2 * math.pi * i / len(PIMA) - math.pi / 2
        places[name] = (centre[0] + 165 * math.cos(angle), centre[1] + 150 * math.sin(angle))
        drawing.line("faint", *_arrow(centre, places[name]))
    for parent, child in arcs:
        drawing.line("curve", *_arrow(places[parent], places[child]))
    for name, (x, y) in {"class": centre, **places}.items():
        half = text_width(name) / 2 + 6
        corners = [(x + a * half, y + b * 12) for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1))]
        drawing.line("ink", *corners)
        drawing.text(x, y + 4.5, name, anchor="middle")
    return drawing.source()


def _arrow(tail: Point, head: Point) -> list[Point]:
    """From near one place to near the other, and the two strokes of the point."""
    length = math.dist(tail, head)
    x, y = (head[0] - tail[0]) / length, (head[1] - tail[1]) / length
    start, end = (tail[0] + 32 * x, tail[1] + 24 * y), (head[0] - 32 * x, head[1] - 24 * y)
    left, right = ((end[0] - 9 * x + s * 4 * y, end[1] - 9 * y - s * 4 * x) for s in (1, -1))
    return [start, end, left, end, right]
