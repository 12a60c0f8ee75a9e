"""Plots of curves: points where the ticks put them, words beside the frames and not over one another."""

from __future__ import annotations

from itertools import combinations
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.files.pictures.curve_plots import SIDE, CurvePanel, curve_plots
from bncli.files.pictures.drawing import text_width

SVG = "{http://www.w3.org/2000/svg}"
DIAGONAL = ((0.0, 0.0), (1.0, 1.0))
POINTS = ((0.0, 0.0), (0.2, 0.6), (1.0, 1.0))


def drawn(panels: list[CurvePanel], title: str = "title") -> ElementTree.Element:
    return ElementTree.fromstring(curve_plots(title, "across", "upwards", panels))


def corners(element: ElementTree.Element) -> list[tuple[float, ...]]:
    return [tuple(map(float, point.split(","))) for point in element.get("points", "").split()]


def lines(root: ElementTree.Element, kind: str) -> list[list[tuple[float, ...]]]:
    return [corners(e) for e in root.iter(f"{SVG}polyline") if e.get("class") == kind]


def boxes(root: ElementTree.Element) -> list[tuple[float, float, float, float]]:
    """Left, top, right and bottom of every text, as wide as it may become."""
    found = []
    for e in root.iter(f"{SVG}text"):
        size, x, y = (float(e.get(name, 0)) for name in ("font-size", "x", "y"))
        width = text_width(e.text or "", size)
        left = x - {"start": 0.0, "middle": width / 2, "end": width}[e.get("text-anchor", "start")]
        found.append((left, y - 0.8 * size, left + width, y + 0.2 * size))
    return found


def apart(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


def test_points_lie_where_the_ticks_say() -> None:
    root = drawn([CurvePanel("a", "", POINTS, DIAGONAL, ("first", "second", "third"))])
    ticks = [e for e in root.iter(f"{SVG}text") if e.get("text-anchor") == "middle"]
    across = {float(e.text or "nan"): float(e.get("x", 0)) for e in ticks}
    (curve,), (diagonal,) = lines(root, "curve"), lines(root, "dashed")
    assert [x for x, _ in curve] == pytest.approx([across[0], across[0.2], across[1]])
    (x0, y0), (x1, y1) = diagonal
    assert (x0, x1) == (across[0], across[1])
    assert [(y0 - y) / (y0 - y1) for _, y in curve] == pytest.approx([0, 0.6, 1])
    dots = [(float(e.get("cx", 0)), float(e.get("cy", 0))) for e in root.iter(f"{SVG}circle")]
    assert dots == curve
    assert [e.text for e in root.iter(f"{SVG}title")][-3:] == ["first", "second", "third"]


@given(st.lists(st.text(st.characters(codec=None), max_size=50), min_size=1, max_size=30))
def test_no_word_lies_over_a_mark_or_another_word(names: list[str]) -> None:
    root = drawn([CurvePanel(name, "AUC 0.987", POINTS, DIAGONAL) for name in names], "A title " * 10)
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    frames = [line for line in lines(root, "faint") if len(line) == 5]
    assert len({frame[0] for frame in frames}) == len(names) == len(lines(root, "curve"))
    words = boxes(root)
    for left, top, right, bottom in words:
        assert left >= 0
        assert top >= 0
        assert right <= width
        assert bottom <= height
        for (x, y), *_ in frames:
            assert apart((left, top, right, bottom), (x, y, x + SIDE, y + SIDE))
    if len(names) <= 6:
        assert all(apart(a, b) for a, b in combinations(words, 2))


def test_names_out_of_files_do_not_become_markup() -> None:
    name = "</title><script>alert(1)</script>&\x1b"
    root = drawn([CurvePanel(name, "", (), (), ())], name)
    assert root.find(f".//{SVG}script") is None
    assert root.find(f"{SVG}title") is not None
    assert not lines(root, "curve")
    assert not lines(root, "dashed")
