"""Plots of curves: points lie where the ticks say, error bars have the right length, and no text overlaps."""

from __future__ import annotations

import math
from itertools import combinations
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.files.pictures.curve_plots import (
    METRIC_PANELS,
    PANELS,
    CurvePanel,
    MetricPanel,
    curve_plots,
    learning_curve_plot,
)
from bncli.files.pictures.drawing import text_width

SVG = "{http://www.w3.org/2000/svg}"
DIAGONAL = ((0.0, 0.0), (1.0, 1.0))
POINTS = ((0.0, 0.0), (0.2, 0.6), (1.0, 1.0))


def drawn(panels: list[CurvePanel], title: str = "title") -> ElementTree.Element:
    return ElementTree.fromstring(curve_plots(title, "across", "upwards", panels).source())


def corners(element: ElementTree.Element) -> list[tuple[float, ...]]:
    return [tuple(map(float, point.split(","))) for point in element.get("points", "").split()]


def lines(root: ElementTree.Element, kind: str) -> list[list[tuple[float, ...]]]:
    return [corners(e) for e in root.iter(f"{SVG}polyline") if e.get("class") == kind]


def boxes(root: ElementTree.Element) -> list[tuple[float, float, float, float]]:
    """Return left, top, right and bottom of every text, with its maximal width."""
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
            assert apart((left, top, right, bottom), (x, y, x + PANELS.width, y + PANELS.height))
    if len(names) <= 6:
        assert all(apart(a, b) for a, b in combinations(words, 2))


def test_names_out_of_files_do_not_become_markup() -> None:
    name = "</title><script>alert(1)</script>&\x1b"
    root = drawn([CurvePanel(name, "", (), (), ())], name)
    assert root.find(f".//{SVG}script") is None
    assert root.find(f"{SVG}title") is not None
    assert not lines(root, "curve")
    assert not lines(root, "dashed")


SIZES = ((10, 0.5, 0.1), (40, 0.3, 0.05), (160, 0.2, 0.3))


def learning_curves(*panels: MetricPanel) -> ElementTree.Element:
    return ElementTree.fromstring(learning_curve_plot("title", panels).source())


def numbers(root: ElementTree.Element, anchor: str, place: str) -> dict[float, float]:
    """Return the position of each number along an axis."""
    texts = [e for e in root.iter(f"{SVG}text") if e.get("text-anchor") == anchor and e.get("font-size") == "10"]
    return {float((e.text or "").replace(",", "")): float(e.get(place, 0)) for e in texts}


def test_dots_of_a_learning_curve_lie_where_the_numbers_say() -> None:
    root = learning_curves(MetricPanel("error", SIZES))
    across, upwards = numbers(root, "middle", "x"), numbers(root, "end", "y")
    assert list(across) == [10, 40, 160]
    # equal factors are equally far apart
    assert across[40] - across[10] == pytest.approx(across[160] - across[40], abs=0.02)
    dots = [(float(e.get("cx", 0)), float(e.get("cy", 0))) for e in root.iter(f"{SVG}circle")]
    assert [x for x, _ in dots] == pytest.approx(list(across.values()))
    (low, at_low), *_, (high, at_high) = sorted(upwards.items())
    told = [low + (high - low) * (y + 3.5 - at_low) / (at_high - at_low) for _, y in dots]
    assert told == pytest.approx([0.5, 0.3, 0.2], abs=2e-3)
    (curve,) = lines(root, "curve")
    assert curve == dots
    bars = [line for line in lines(root, "ink") if line[0][0] == line[1][0]]
    scale = (high - low) / (at_low - at_high)
    assert [(a - b) * scale for (_, a), (_, b) in bars] == pytest.approx(
        [0.2, 0.1, 0.5], abs=2e-3
    )  # the last ends at 0
    tips = [e.text for e in root.iter(f"{SVG}title")][1:]
    spreads = {10: (0.5, 0.1), 40: (0.3, 0.05), 160: (0.2, 0.3)}
    assert tips == [f"{n} rows: error {mean} (standard deviation {std})" for n, (mean, std) in spreads.items()]


@given(
    st.lists(st.integers(1, 10**7), unique=True, min_size=1, max_size=30).map(sorted),
    st.lists(st.none() | st.floats(0, 1e3) | st.just(math.inf), min_size=30, max_size=30),
    st.booleans(),
)
def test_no_word_of_a_learning_curve_lies_over_a_frame_or_another_word(
    sizes: list[int], values: list[float | None], spread: bool
) -> None:
    points = [(n, value, value if spread else None) for n, value in zip(sizes, values, strict=False)]
    root = learning_curves(MetricPanel("error", points), MetricPanel("log-loss", [(n, 0.5, 0.0) for n in sizes]))
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    frames = [line for line in lines(root, "faint") if len(line) == 5]
    assert len(frames) == 2
    words = boxes(root)
    for left, top, right, bottom in words:
        assert left >= 0
        assert top >= 0
        assert right <= width
        assert bottom <= height
        assert all(
            apart((left, top, right, bottom), (x, y, x + METRIC_PANELS.width, y + METRIC_PANELS.height))
            for (x, y), *_ in frames
        )
    assert all(apart(a, b) for a, b in combinations(words, 2))
    there = [value for _, value, _ in points if value is not None and math.isfinite(value)]
    assert len(list(root.iter(f"{SVG}circle"))) == len(there) + len(sizes)


def test_the_largest_size_has_its_number() -> None:
    sizes = range(1000, 1040)
    assert 1039 in numbers(learning_curves(MetricPanel("error", [(n, 0.1, None) for n in sizes])), "middle", "x")
