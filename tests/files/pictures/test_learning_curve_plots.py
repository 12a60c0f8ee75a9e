"""Plots of learning curves: dots where the numbers along the axes put them, bars of the right length, words apart."""

from __future__ import annotations

import math
from itertools import combinations
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.files.pictures.curve_plots import HIGH, WIDE, FigurePanel, learning_curve_plots
from tests.files.pictures.test_curve_plots import SVG, apart, boxes, lines

POINTS = ((10, 0.5, 0.1), (40, 0.3, 0.05), (160, 0.2, 0.3))


def drawn(*panels: FigurePanel) -> ElementTree.Element:
    return ElementTree.fromstring(learning_curve_plots("title", panels))


def numbers(root: ElementTree.Element, anchor: str, place: str) -> dict[float, float]:
    """Along an axis: each number, and where it stands."""
    texts = [e for e in root.iter(f"{SVG}text") if e.get("text-anchor") == anchor and e.get("font-size") == "10"]
    return {float((e.text or "").replace(",", "")): float(e.get(place, 0)) for e in texts}


def test_dots_lie_where_the_numbers_say() -> None:
    root = drawn(FigurePanel("error", POINTS))
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
    assert tips == ["10 rows: error 0.5 ± 0.1", "40 rows: error 0.3 ± 0.05", "160 rows: error 0.2 ± 0.3"]


@given(
    st.lists(st.integers(1, 10**7), unique=True, min_size=1, max_size=30).map(sorted),
    st.lists(st.none() | st.floats(0, 1e3) | st.just(math.inf), min_size=30, max_size=30),
    st.booleans(),
)
def test_no_word_lies_over_a_frame_or_another_word(sizes: list[int], values: list[float | None], spread: bool) -> None:
    points = [(n, value, value if spread else None) for n, value in zip(sizes, values, strict=False)]
    root = drawn(FigurePanel("error", points), FigurePanel("log-loss", [(n, 0.5, 0.0) for n in sizes]))
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    frames = [line for line in lines(root, "faint") if len(line) == 5]
    assert len(frames) == 2
    words = boxes(root)
    for left, top, right, bottom in words:
        assert left >= 0
        assert top >= 0
        assert right <= width
        assert bottom <= height
        assert all(apart((left, top, right, bottom), (x, y, x + WIDE, y + HIGH)) for (x, y), *_ in frames)
    assert all(apart(a, b) for a, b in combinations(words, 2))
    there = [value for _, value, _ in points if value is not None and math.isfinite(value)]
    assert len(list(root.iter(f"{SVG}circle"))) == len(there) + len(sizes)


def test_the_largest_size_has_its_number() -> None:
    sizes = range(1000, 1040)
    assert 1039 in numbers(drawn(FigurePanel("error", [(n, 0.1, None) for n in sizes])), "middle", "x")
