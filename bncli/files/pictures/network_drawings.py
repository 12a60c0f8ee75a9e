"""A network, or regions, as a drawing: arcs as thick as what they tell, and a link from each to the table behind it.

Where the nodes of a graph lie: tidy trees, layers with few crossings. Depth runs across, breadth downwards.

Trees are laid out after Reingold & Tilford (1981): subtrees are moved together until their outlines touch, a parent
stands at the middle of its children, and equal subtrees look alike. Other graphs after Sugiyama, Tagawa & Toda (1981):
a node's layer is the longest way to it, arcs over several layers bend at points of their own, and the order within the
layers follows the mean place of the neighbours, to and fro. Units are nodes: one step across or down.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from bncli.files.pictures.drawing import Drawing, shortened, text_width

_SWEEPS = 12


class NetworkLayout(NamedTuple):
    """(depth, breadth) of every node by number, and the points that arcs pass from their first end to their last."""

    places: dict[int, tuple[float, float]]
    arcs: dict[tuple[int, int], list[tuple[float, float]]]


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


def tree_layout(parents: Mapping[int, int | None]) -> NetworkLayout:
    """Return a forest, its trees one below the other."""
    children: dict[int | None, list[int]] = {}
    for node, parent in parents.items():
        children.setdefault(parent, []).append(node)
    places: dict[int, tuple[float, float]] = {}
    below = 0.0
    for root in children.get(None, []):
        breadths, upper, lower = _subtree(root, children)
        shift = below - min(upper)
        for node, (depth, breadth) in breadths.items():
            places[node] = (depth, breadth + shift)
        below = max(lower) + shift + 1
    arcs = {(p, n): [places[p], places[n]] for n, p in parents.items() if p is not None}
    return NetworkLayout(places, arcs)


def _subtree(
    root: int, children: Mapping[int | None, Sequence[int]]
) -> tuple[dict[int, tuple[int, float]], list[float], list[float]]:
    """Return places with the root at (0, 0), and the upper and lower outline, a breadth a depth."""
    below = [_subtree(child, children) for child in children.get(root, ())]
    shifts: list[float] = []
    upper, lower = list[float](), list[float]()
    for _, top, bottom in below:
        shift = max((low - high + 1 for low, high in zip(lower, top, strict=False)), default=0.0)
        shifts.append(shift)
        upper += [breadth + shift for breadth in top[len(upper) :]]
        lower = [breadth + shift for breadth in bottom] + lower[len(bottom) :]
    middle = (shifts[0] + shifts[-1]) / 2 if shifts else 0.0
    places = {root: (0, 0.0)}
    for (inner, _, _), shift in zip(below, shifts, strict=True):
        places |= {node: (depth + 1, breadth + shift - middle) for node, (depth, breadth) in inner.items()}
    return places, [0.0, *(b - middle for b in upper)], [0.0, *(b - middle for b in lower)]


def layered_layout(parents: Mapping[int, Sequence[int]]) -> NetworkLayout:
    """Return a graph without cycles."""
    depths = _depths(parents)
    layers: list[list[int]] = [[] for _ in range(max(depths.values(), default=0) + 1)]
    for node, depth in depths.items():
        layers[depth].append(node)
    before: dict[int, list[int]] = {node: [] for node in depths}
    chains: dict[tuple[int, int], list[int]] = {}
    unused = max(depths, default=0) + 1
    for node, listed in parents.items():
        for parent in listed:
            chain = [parent]
            for depth in range(depths[parent] + 1, depths[node]):
                layers[depth].append(unused)
                before[unused] = [chain[-1]]
                chain.append(unused)
                unused += 1
            before[node].append(chain[-1])
            chains[parent, node] = [*chain, node]
    breadths = _ordered(layers, before)
    spots = {node: (float(depth), breadths[node]) for depth, layer in enumerate(layers) for node in layer}
    arcs = {ends: [spots[node] for node in chain] for ends, chain in chains.items()}
    return NetworkLayout({node: spots[node] for node in depths}, arcs)


def _depths(parents: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """Return the longest way to every node."""
    depths: dict[int, int] = {}
    pending = list(parents)
    while pending:
        node = pending[-1]
        missing = [parent for parent in parents[node] if parent not in depths]
        if node in depths or not missing:
            depths.setdefault(node, 1 + max((depths[parent] for parent in parents[node]), default=-1))
            pending.pop()
        else:
            pending += missing
    return {node: depths[node] for node in parents}


def _ordered(layers: list[list[int]], before: Mapping[int, Sequence[int]]) -> dict[int, float]:
    """Return the breadth of every node: orders by the mean of neighbours, then as near to that as there is room for."""
    after: dict[int, list[int]] = {}
    for node, listed in before.items():
        for parent in listed:
            after.setdefault(parent, []).append(node)
    breadths = {node: float(i) for layer in layers for i, node in enumerate(layer)}
    for sweep in range(_SWEEPS):
        forth = sweep % 2 == 0
        near: Mapping[int, Sequence[int]] = before if forth else after
        for layer in layers if forth else reversed(layers):
            wanted = {node: _mean([breadths[one] for one in near.get(node, ())], breadths[node]) for node in layer}
            layer.sort(key=lambda node: (wanted[node], breadths[node]))
            _spread(layer, wanted, breadths)
    least = min(breadths.values(), default=0.0)
    return {node: breadth - least for node, breadth in breadths.items()}


def _mean(numbers: Sequence[float], otherwise: float) -> float:
    return sum(numbers) / len(numbers) if numbers else otherwise


def _spread(layer: Sequence[int], wanted: Mapping[int, float], breadths: dict[int, float]) -> None:
    """At least 1 apart, in their order, as near to the places wanted as that allows: blocks move to their mean."""
    blocks: list[tuple[list[int], float]] = []
    for node in layer:
        block, start = [node], wanted[node]
        while blocks and blocks[-1][1] + len(blocks[-1][0]) > start:
            block = [*blocks.pop()[0], *block]
            start = _mean([wanted[one] - i for i, one in enumerate(block)], 0.0)
        blocks.append((block, start))
    for block, start in blocks:
        for i, node in enumerate(block):
            breadths[node] = start + i


def network_drawing(
    title: str, nodes: Sequence[Node], layout: NetworkLayout, strengths: dict[tuple[int, int], tuple[float, str]]
) -> Drawing:
    """Return arcs by strength (0 to 1) and words; depth of the layout runs from left to right."""
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
    """Draw a curve through the points, with a tip at its end."""
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
    """Return nodes on a circle; two that are looked up together are joined by a line, more of them by an area."""
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
