"""Drawings of networks and regions: the width of an arc shows its strength, and links lead to the tables.

Networks run from left to right. The depth of a node is its distance from the left, in layers; its breadth is its
distance from the top, in rows.

- Trees are laid out as by Reingold & Tilford (1981): subtrees are moved together until their outlines touch, a parent
  stands in the middle of its children, and equal subtrees look alike.
- Other graphs are laid out as by Sugiyama, Tagawa & Toda (1981): the layer of a node is the length of the longest path
  to it, arcs over several layers bend at extra points, and the order within the layers follows the mean position
  of the neighbours in alternating sweeps.

Regions are drawn as lines and areas between nodes on a circle.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from bncli.files.pictures.drawing import Drawing, shortened, text_width

_SWEEPS = 12
_ROW, _GAP, _MOST_WIDTH, _HEIGHT = 30.0, 70.0, 140.0, 22.0
"""In pixels: a unit of breadth, the gap between layers, and the maximum width and the height of a node."""
_EDGE = 12.0
_THICKEST = 6.0


class NetworkLayout(NamedTuple):
    """The layout of a network: (depth, breadth) of every node, and the points of every arc (parent, child)."""

    positions: dict[int, tuple[float, float]]
    arcs: dict[tuple[int, int], list[tuple[float, float]]]


class Node(NamedTuple):
    """A node: its name, its tip, the place in the page that it links to ("" for none), and whether it is the class."""

    name: str
    tip: str
    link: str = ""
    is_class: bool = False


class Region(NamedTuple):
    """The indices of nodes that share a table, the strength of their effect (0 to 1), a tip and a link."""

    nodes: tuple[int, ...]
    strength: float
    tip: str
    link: str


def tree_layout(parents: Mapping[int, int | None]) -> NetworkLayout:
    """Lay out a forest, with its trees one below the other; the parent of a root is None."""
    children: dict[int | None, list[int]] = {}
    for node, parent in parents.items():
        children.setdefault(parent, []).append(node)
    positions: dict[int, tuple[float, float]] = {}
    below = 0.0
    for root in children.get(None, []):
        breadths, upper, lower = _subtree_layout(root, children)
        shift = below - min(upper)
        for node, (depth, breadth) in breadths.items():
            positions[node] = (depth, breadth + shift)
        below = max(lower) + shift + 1
    arcs = {(p, n): [positions[p], positions[n]] for n, p in parents.items() if p is not None}
    return NetworkLayout(positions, arcs)


def _subtree_layout(
    root: int, children: Mapping[int | None, Sequence[int]]
) -> tuple[dict[int, tuple[int, float]], list[float], list[float]]:
    """Return (depth, breadth) of the nodes with the root at (0, 0), and the upper and lower breadth at each depth."""
    subtrees = [_subtree_layout(child, children) for child in children.get(root, ())]
    shifts: list[float] = []
    upper, lower = list[float](), list[float]()
    for _, top, bottom in subtrees:
        shift = max((low - high + 1 for low, high in zip(lower, top, strict=False)), default=0.0)
        shifts.append(shift)
        upper += [breadth + shift for breadth in top[len(upper) :]]
        lower = [breadth + shift for breadth in bottom] + lower[len(bottom) :]
    middle = (shifts[0] + shifts[-1]) / 2 if shifts else 0.0
    positions = {root: (0, 0.0)}
    for (inner, _, _), shift in zip(subtrees, shifts, strict=True):
        positions |= {node: (depth + 1, breadth + shift - middle) for node, (depth, breadth) in inner.items()}
    return positions, [0.0, *(b - middle for b in upper)], [0.0, *(b - middle for b in lower)]


def layered_layout(parents: Mapping[int, Sequence[int]]) -> NetworkLayout:
    """Lay out an acyclic graph, given the parents of every node."""
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
    depths = {node: depths[node] for node in parents}
    layers: list[list[int]] = [[] for _ in range(max(depths.values(), default=0) + 1)]
    for node, depth in depths.items():
        layers[depth].append(node)
    # an arc over several layers passes through a new node in each layer between
    before: dict[int, list[int]] = {node: [] for node in depths}
    chains: dict[tuple[int, int], list[int]] = {}
    unused = max(depths, default=0) + 1
    for node, node_parents in parents.items():
        for parent in node_parents:
            chain = [parent]
            for depth in range(depths[parent] + 1, depths[node]):
                layers[depth].append(unused)
                before[unused] = [chain[-1]]
                chain.append(unused)
                unused += 1
            before[node].append(chain[-1])
            chains[parent, node] = [*chain, node]
    breadths = _order_layers(layers, before)
    positions = {node: (float(depth), breadths[node]) for depth, layer in enumerate(layers) for node in layer}
    arcs = {ends: [positions[node] for node in chain] for ends, chain in chains.items()}
    return NetworkLayout({node: positions[node] for node in depths}, arcs)


def _order_layers(layers: list[list[int]], before: Mapping[int, Sequence[int]]) -> dict[int, float]:
    """Sort each layer in place, and return the breadth of every node, which is near the mean of its neighbours."""
    after: dict[int, list[int]] = {}
    for node, node_parents in before.items():
        for parent in node_parents:
            after.setdefault(parent, []).append(node)
    breadths = {node: float(i) for layer in layers for i, node in enumerate(layer)}
    for sweep in range(_SWEEPS):
        forward = sweep % 2 == 0
        neighbours: Mapping[int, Sequence[int]] = before if forward else after
        for layer in layers if forward else reversed(layers):
            targets = {}
            for node in layer:
                near = [breadths[neighbour] for neighbour in neighbours.get(node, ())]
                targets[node] = sum(near) / len(near) if near else breadths[node]
            layer.sort(key=lambda node: (targets[node], breadths[node]))
            # Nodes stay at least 1 apart, in this order. Nodes that would overlap form a block, which moves to the
            # mean of their targets.
            blocks: list[tuple[list[int], float]] = []
            for node in layer:
                block, start = [node], targets[node]
                while blocks and blocks[-1][1] + len(blocks[-1][0]) > start:
                    block = [*blocks.pop()[0], *block]
                    start = sum(targets[member] - i for i, member in enumerate(block)) / len(block)
                blocks.append((block, start))
            for block, start in blocks:
                for i, node in enumerate(block):
                    breadths[node] = start + i
    least = min(breadths.values(), default=0.0)
    return {node: breadth - least for node, breadth in breadths.items()}


def network_drawing(
    title: str, nodes: Sequence[Node], layout: NetworkLayout, strengths: dict[tuple[int, int], tuple[float, str]]
) -> Drawing:
    """Draw a network; `strengths` has (strength from 0 to 1, tip) per arc (parent, child), by default (0, "")."""
    widths = [min(_MOST_WIDTH, text_width(node.name, 12) + 14) for node in nodes]
    deepest = max((depth for depth, _ in layout.positions.values()), default=0.0)
    broadest = max((breadth for _, breadth in layout.positions.values()), default=0.0)
    step = max(widths, default=_MOST_WIDTH) + _GAP
    drawing = Drawing(2 * _EDGE + deepest * step + _MOST_WIDTH, 2 * _EDGE + broadest * _ROW + _HEIGHT, title)
    for (parent, child), positions in layout.arcs.items():
        points = [(_EDGE + depth * step, _EDGE + breadth * _ROW + _HEIGHT / 2) for depth, breadth in positions]
        points[0] = (points[0][0] + widths[parent], points[0][1])
        outline = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
        for (x0, y0), (x1, y1) in pairwise(points):
            middle = (x0 + x1) / 2
            outline += f"C{middle:.1f} {y0:.1f} {middle:.1f} {y1:.1f} {x1:.1f} {y1:.1f}"
        strength, tip = strengths.get((parent, child), (0.0, ""))
        drawing.path("arc", outline, width=1 + (_THICKEST - 1) * strength, tip=tip)
        x, y = points[-1]
        drawing.path("tip", f"M{x:.1f} {y:.1f}l-8 -4v8z")
    for number, node in enumerate(nodes):
        if number in layout.positions:
            depth, breadth = layout.positions[number]
            x, y = _EDGE + depth * step, _EDGE + breadth * _ROW + _HEIGHT / 2
            with drawing.link(node.link):
                kind = "root" if node.is_class else "node"
                drawing.bar(x, y - _HEIGHT / 2, widths[number], _HEIGHT, node.tip, kind=kind)
                drawing.text(x + 7, y + 4, shortened(node.name, widths[number] - 12, 12), size=12, tip=node.tip)
    return drawing


def region_drawing(title: str, nodes: Sequence[Node], regions: Sequence[Region]) -> Drawing:
    """Draw nodes on a circle; regions are lines between two nodes, or areas between more; single nodes have none."""
    radius, margin = max(120.0, 26.0 * len(nodes) / math.pi), 150.0
    drawing = Drawing(2 * (radius + margin), 2 * (radius + 30), title)
    angles = [2 * math.pi * (i + 0.5) / max(len(nodes), 1) - math.pi / 2 for i in range(len(nodes))]
    positions = [(radius + margin + radius * math.cos(a), radius + 30 + radius * math.sin(a)) for a in angles]
    for region in sorted(regions, key=lambda region: -len(region.nodes)):
        if len(region.nodes) > 1:
            outline = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in (positions[i] for i in sorted(region.nodes)))
            with drawing.link(region.link):
                if len(region.nodes) == 2:
                    drawing.path("arc", outline, width=1.5 + (_THICKEST - 1) * region.strength, tip=region.tip)
                else:
                    drawing.path("region", outline + "Z", tip=region.tip)
    for node, (x, y), angle in zip(nodes, positions, angles, strict=True):
        with drawing.link(node.link):
            drawing.dot(x, y, node.tip, radius=7, kind="node")
            is_right = math.cos(angle) >= 0
            drawing.text(
                x + (12 if is_right else -12),
                y + 4 + 8 * math.sin(angle),
                shortened(node.name, margin - 20, 12),
                anchor="start" if is_right else "end",
                size=12,
                tip=node.tip,
            )
    return drawing
