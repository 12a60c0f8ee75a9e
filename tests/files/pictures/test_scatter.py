"""Scatter plots: points where the ticks of the axes put them, the better half below the diagonal, words with room."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.files.pictures.curve_plots import SIDE, ScatterPanel, scatter_plots
from bncli.files.pictures.drawing import axis_of

SVG = "{http://www.w3.org/2000/svg}"


def plots(panels: list[ScatterPanel], *, lower_is_better: bool = True) -> ElementTree.Element:
    return ElementTree.fromstring(scatter_plots("title", "base", panels, lower_is_better=lower_is_better).source())


def words(root: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def test_points_lie_where_the_ticks_say() -> None:
    root = plots([ScatterPanel("a", [("s", 0.01, 0.1), ("t", 0.1, 0.01), ("u", 1.0, 1.0)], 1, 1, 1)])
    below = [e for e in root.iter(f"{SVG}text") if e.get("text-anchor") == "middle"]
    across = {e.text: float(e.get("x", 0)) for e in below}
    dots = [(float(e.get("cx", 0)), float(e.get("cy", 0))) for e in root.iter(f"{SVG}circle")]
    assert [x for x, _ in dots] == pytest.approx([across["0.01"], across["0.1"], across["1"]], abs=0.02)
    (diagonal,) = [e for e in root.iter(f"{SVG}polyline") if e.get("class") == "dashed"]
    (x0, y0), (x1, y1) = (map(float, point.split(",")) for point in diagonal.get("points", "").split())
    above = [(y0 + (x - x0) / (x1 - x0) * (y1 - y0)) - y for x, y in dots]
    assert above[0] > 10
    assert above[1] < -10
    assert above[2] == pytest.approx(0, abs=0.05)
    assert "u: 1 (base: 1)" in [e.text for e in root.iter(f"{SVG}title")]


def test_the_counts_stand_over_the_frame_on_their_side_of_the_diagonal() -> None:
    for lower in (True, False):
        root = plots([ScatterPanel("a", [("s", 1.0, 2.0)], 3, 2, 5)], lower_is_better=lower)
        places = {e.text: (float(e.get("x", 0)), float(e.get("y", 0))) for e in root.iter(f"{SVG}text")}
        frame = next(e for e in root.iter(f"{SVG}polyline") if e.get("class") == "faint")
        top = min(float(corner.split(",")[1]) for corner in frame.get("points", "").split())
        left, right = ("↖ worse 5", "better 3 ↘") if lower else ("↖ better 3", "worse 5 ↘")
        assert places[left][0] < places["equal 2"][0] < places[right][0]
        assert all(places[word][1] < top for word in (left, "equal 2", right))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), max_size=8))
def test_axes(values: list[float]) -> None:
    axis = axis_of(values)
    shares = [axis.share(value) for value in sorted(values)]
    assert all(0 <= share <= 1 for share in shares)
    assert shares == sorted(shares)
    assert axis.logarithmic == (bool(values) and min(values) > 0 and max(values) > 4 * min(values))
    assert 1 <= len(axis.ticks) <= 6
    assert all(0 <= axis.share(tick) <= 1 for tick in axis.ticks)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(1e-9, 1e6), min_size=1, max_size=8))
def test_logarithmic_axes_where_asked_for(values: list[float]) -> None:
    axis = axis_of(values, logarithmic=True)
    assert axis.logarithmic
    assert all(0 <= axis.share(value) <= 1 for value in values)
    assert 1 <= len(axis.ticks) <= 6
    assert axis.share(math.sqrt(axis.low * axis.high)) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0.02, 0.5], (0.02, 0.05, 0.1, 0.2, 0.5)),
        ([0.02, 2.0], (0.03, 0.1, 0.3, 1.0)),
        ([0.05, 0.4], (0.05, 0.1, 0.2)),
        ([1e-6, 1.0], (1e-6, 1e-4, 1e-2, 1.0)),
        ([0.0, 1.0], (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)),
        ([0.62, 0.99], (0.7, 0.8, 0.9)),
        ([3.1, 3.1], (2.8, 3.0, 3.2, 3.4)),
    ],
)
def test_ticks_are_round(values: list[float], ticks: tuple[float, ...]) -> None:
    assert axis_of(values).ticks == pytest.approx(ticks)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 19])
def test_a_panel_for_every_learner_on_one_sheet(n: int) -> None:
    panels = [ScatterPanel(f"learner with a rather long name {i}", [("s", 0.1, 0.2)], 0, 0, 1) for i in range(n)]
    root = plots(panels)
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    frames = [e.get("points", "").split() for e in root.iter(f"{SVG}polyline") if len(e.get("points", "").split()) == 5]
    corners = [tuple(map(float, frame[0].split(","))) for frame in frames]
    assert len(set(corners)) == n
    assert all(x > 0 and x + SIDE < width and y > 0 and y + SIDE < height for x, y in corners)
    assert sum(text.startswith("learner with") and text.endswith("…") for text in words(root)) == n


def test_no_points_at_all() -> None:
    root = plots([ScatterPanel("a", [], 0, 0, 0)])
    assert not list(root.iter(f"{SVG}circle"))


def test_points_of_all_panels_share_the_axes() -> None:
    root = plots([ScatterPanel("a", [("s", 1.0, 2.0)], 0, 0, 1), ScatterPanel("b", [("s", 1.0, 100.0)], 0, 0, 1)])
    xs = [float(e.get("cx", 0)) for e in root.iter(f"{SVG}circle")]
    ys = [float(e.get("cy", 0)) for e in root.iter(f"{SVG}circle")]
    assert math.isclose(xs[0] % 1000, xs[0])
    assert ys[0] > ys[1] + 50
