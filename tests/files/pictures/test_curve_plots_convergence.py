"""Convergence plots and histograms: marks lie where the ticks say, each name has one look, nothing is cut off."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.files.pictures.curve_plots import CurvesPanel, HistogramPanel, convergence_plots, lag_histograms
from bncli.files.pictures.drawing import COLOURS, SERIES
from tests.sweeps import examples

SVG = "{http://www.w3.org/2000/svg}"


def curves(panels: list[CurvesPanel], names: list[str]) -> ElementTree.Element:
    return ElementTree.fromstring(convergence_plots("title", "iterations", "NLL", names, panels).source())


def lines(root: ElementTree.Element) -> list[tuple[str, str, list[tuple[float, float]]]]:
    """Return colour, dashes and corners of every line of a series, those of the legend first."""
    return [
        (e.get("stroke", ""), e.get("stroke-dasharray", ""), [corner(p) for p in e.get("points", "").split()])
        for e in root.iter(f"{SVG}polyline")
        if e.get("stroke")
    ]


def corner(text: str) -> tuple[float, float]:
    x, y = map(float, text.split(","))
    return x, y


def ticks(root: ElementTree.Element, anchor: str, axis: str) -> dict[str, float]:
    """Return the position of every number along an axis."""
    return {
        e.text or "": float(e.get(axis, 0))
        for e in root.iter(f"{SVG}text")
        if e.get("text-anchor") == anchor and e.get("font-size") == "10"
    }


def test_points_lie_where_the_ticks_say() -> None:
    root = curves([CurvesPanel("t", {"a": [(0, 300.0), (1, 100.0), (10, 20.0), (100, 10.0)]})], ["a"])
    across, upwards = ticks(root, "middle", "x"), ticks(root, "end", "y")
    *_, (_, _, points) = lines(root)
    assert [x for x, _ in points] == pytest.approx([across[told] for told in ("0", "1", "10", "100")], abs=0.02)
    assert [y + 3.5 for _, y in points[1:]] == pytest.approx([upwards[told] for told in ("100", "20", "10")], abs=0.02)


def test_few_iterations_are_on_a_linear_axis() -> None:
    root = curves([CurvesPanel("t", {"a": [(0, 3.0), (10, 2.5), (20, 2.0)]})], ["a"])
    across = ticks(root, "middle", "x")
    *_, (_, _, points) = lines(root)
    assert [x for x, _ in points] == pytest.approx([across["0"], across["10"], across["20"]], abs=0.02)
    assert points[1][0] - points[0][0] == pytest.approx(points[2][0] - points[1][0], abs=0.02)


@pytest.mark.parametrize(("n", "expected"), [(2, ["1", "2"]), (14, ["5", "10"]), (400, ["100", "200", "300", "400"])])
def test_numbered_things_have_whole_numbers_on_a_linear_axis(n: int, expected: list[str]) -> None:
    panel = CurvesPanel("t", {"a": [(i, 0.1 * i) for i in range(1, n + 1)]})
    plot = convergence_plots("title", "monitor", "PSI", ["a"], [panel], is_numbered=True)
    root = ElementTree.fromstring(plot.source())
    across = ticks(root, "middle", "x")
    assert list(across) == expected
    *_, (_, _, points) = lines(root)
    assert [points[int(number) - 1][0] for number in across] == pytest.approx(list(across.values()), abs=0.02)


def test_a_name_looks_the_same_everywhere_and_like_no_other() -> None:
    names = [f"name {i}" for i in range(SERIES)]
    panels = [CurvesPanel("t", {name: [(0, 2.0), (1, 1.0)] for name in names}), CurvesPanel("u", {names[7]: [(0, 1)]})]
    looks = [look[:2] for look in lines(curves(panels, names))]
    assert len(set(looks[:SERIES])) == SERIES
    assert looks[SERIES : 2 * SERIES] == looks[:SERIES]
    assert looks[2 * SERIES] == looks[7] == (COLOURS[1], "6 3")


@settings(max_examples=examples(13), deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 10**6), st.floats(0, 1e9)), min_size=1, max_size=5), min_size=1, max_size=7
    )
)
def test_everything_is_on_the_sheet(runs: list[list[tuple[int, float]]]) -> None:
    panels = [CurvesPanel(f"table {i}", {"a": sorted(run)}) for i, run in enumerate(runs)]
    root = curves(panels, ["a"])
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    corners = [point for _, _, points in lines(root) for point in points]
    assert all(0 <= x <= width and 0 <= y <= height for x, y in corners)
    assert all(0 <= float(e.get("y", 0)) <= height for e in root.iter(f"{SVG}text"))


def histogram(lags: list[int]) -> ElementTree.Element:
    return ElementTree.fromstring(lag_histograms("title", [HistogramPanel("d", "mean 1.0", lags)]).source())


def bars(root: ElementTree.Element) -> dict[str, tuple[float, float, float]]:
    """Return left end, width and height of the bars, by their tips."""
    return {
        e[0].text or "": (float(e.get("x", 0)), float(e.get("width", 0)), float(e.get("height", 0)))
        for e in root.iter(f"{SVG}rect")
        if e.get("class") == "dot"
    }


def test_bars_stand_over_the_lags_that_they_count() -> None:
    root = histogram([0, 2, 2, -1, 5])
    found, across = bars(root), ticks(root, "middle", "x")
    assert list(found) == ["-1: 1", "0: 1", "2: 2", "5: 1"]
    left, width, height = found["2: 2"]
    assert left + width / 2 == pytest.approx(across["2"], abs=0.02)
    assert height == pytest.approx(2 * found["0: 1"][2], abs=0.02)


@settings(max_examples=examples(20), deadline=None)
@given(st.lists(st.integers(-3000, 10**5), min_size=1, max_size=50))
def test_every_lag_is_counted_once(lags: list[int]) -> None:
    found = bars(histogram(lags))
    assert sum(int(told.rpartition(" ")[2]) for told in found) == len(lags)
    assert len(found) <= 42
    for told in found:
        first, _, last = told.rpartition(":")[0].partition(" to ")
        inside = [lag for lag in lags if int(first) <= lag <= int(last or first)]
        assert len(inside) == int(told.rpartition(" ")[2])
