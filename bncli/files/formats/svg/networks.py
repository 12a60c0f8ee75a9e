"""A network, or regions, as a drawing: arcs as thick as what they tell, and a link from each to the table behind it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from bncli.files.formats.svg.drawing import Drawing, shortened, text_width
from bncli.files.formats.svg.layouts import Layout

_ROW, _GAP, _BOX, _HIGH = 30.0, 70.0, 140.0, 22.0
_EDGE = 12.0
_THICKEST = 6.0


@dataclass(frozen=True)
class Node:
    """A name, what is told of it, the place in the page that it leads to ("": none), and whether it is the class."""

    name: str
    tip: str
    link: str = ""
    is_class: bool = False


@dataclass(frozen=True)
class Hyperedge:
    """Nodes by number that are looked up together, how much that tells (0 to 1), words, and the place it leads to."""

    nodes: tuple[int, ...]
    strength: float
    tip: str
    link: str = ""


def network_drawing(
    title: str, nodes: Sequence[Node], layout: Layout, strengths: dict[tuple[int, int], tuple[float, str]]
) -> Drawing:
    """Arcs by strength (0 to 1) and words; depth of the layout runs from left to right."""
    widths = [min(_BOX, text_width(node.name, 12) + 14) for node in nodes]
    deepest = max((depth for depth, _ in layout.places.values()), default=0.0)
    broadest = max((breadth for _, breadth in layout.places.values()), default=0.0)
    step = max(widths, default=_BOX) + _GAP
    drawing = Drawing(2 * _EDGE + deepest * step + _BOX, 2 * _EDGE + broadest * _ROW + _HIGH, title)

    def spot(place: tuple[float, float]) -> tuple[float, float]:
        return _EDGE + place[0] * step, _EDGE + place[1] * _ROW + _HIGH / 2

    for (parent, child), points in layout.arcs.items():
        strength, tip = strengths.get((parent, child), (0.0, ""))
        x, y = spot(points[0])
        _draw_arc(drawing, [(x + widths[parent], y), *map(spot, points[1:])], strength, tip)
    for number, node in enumerate(nodes):
        if number in layout.places:
            _draw_node(drawing, node, *spot(layout.places[number]), widths[number])
    return drawing


def _draw_arc(drawing: Drawing, points: Sequence[tuple[float, float]], strength: float, tip: str) -> None:
    """A curve through the points, with a tip at its end."""
    outline = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (x0 + x1) / 2
        outline += f"C{middle:.1f} {y0:.1f} {middle:.1f} {y1:.1f} {x1:.1f} {y1:.1f}"
    drawing.path("arc", outline, width=1 + (_THICKEST - 1) * strength, tip=tip)
    x, y = points[-1]
    drawing.path("tip", f"M{x:.1f} {y:.1f}l-8 -4v8z")


def _draw_node(drawing: Drawing, node: Node, x: float, y: float, width: float) -> None:
    if node.link:
        drawing.begin(link=node.link)
    drawing.bar(x, y - _HIGH / 2, width, _HIGH, node.tip, kind="root" if node.is_class else "node")
    drawing.text(x + 7, y + 4, shortened(node.name, width - 12, 12), size=12, tip=node.tip)
    if node.link:
        drawing.end(link=True)


def region_drawing(title: str, nodes: Sequence[Node], regions: Sequence[Hyperedge]) -> Drawing:
    """Nodes on a circle; two that are looked up together are joined by a line, more of them by an area."""
    radius = max(120.0, 26.0 * len(nodes) / math.pi)
    margin = 150.0
    drawing = Drawing(2 * (radius + margin), 2 * (radius + 30), title)
    angles = [2 * math.pi * (i + 0.5) / max(len(nodes), 1) - math.pi / 2 for i in range(len(nodes))]
    spots = [(radius + margin + radius * math.cos(a), radius + 30 + radius * math.sin(a)) for a in angles]
    for region in sorted(regions, key=lambda one: -len(one.nodes)):
        if len(region.nodes) > 1:
            _draw_region(drawing, region, [spots[i] for i in sorted(region.nodes)])
    for node, (x, y), angle in zip(nodes, spots, angles, strict=True):
        if node.link:
            drawing.begin(link=node.link)
        drawing.dot(x, y, node.tip, radius=7, kind="node")
        right = math.cos(angle) >= 0
        away = 12 if right else -12
        words = shortened(node.name, margin - 20, 12)
        drawing.text(
            x + away, y + 4 + 8 * math.sin(angle), words, anchor="start" if right else "end", size=12, tip=node.tip
        )
        if node.link:
            drawing.end(link=True)
    return drawing


def _draw_region(drawing: Drawing, region: Hyperedge, corners: Sequence[tuple[float, float]]) -> None:
    outline = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in corners)
    if region.link:
        drawing.begin(link=region.link)
    if len(corners) == 2:
        drawing.path("arc", outline, width=1.5 + (_THICKEST - 1) * region.strength, tip=region.tip)
    else:
        drawing.path("region", outline + "Z", tip=region.tip)
    if region.link:
        drawing.end(link=True)
