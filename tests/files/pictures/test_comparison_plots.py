"""Critical-difference diagrams and scatter plots: marks lie where the ticks say, and no text overlaps."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.engine.evaluation.significance import cliques
from bncli.files.pictures.comparison_plots import (
    PANELS,
    ScatterPanel,
    critical_difference_diagram,
    scatter_plots,
)
from bncli.files.pictures.drawing import text_width
from tests.sweeps import examples

SVG = "{http://www.w3.org/2000/svg}"
Points = list[tuple[float, float]]


class Drawn(NamedTuple):
    width: float
    height: float
    texts: list[tuple[str, float, float, str, float]]
    lines: list[Points]
    bars: list[Points]


def drawn(ranks: dict[str, float], difference: float) -> Drawn:
    """Return the parts of the diagram: texts (text, left, baseline, anchor, right), thin lines and thick bars."""
    names = list(ranks)
    groups = [[names[j] for j in group] for group in cliques(list(ranks.values()), difference)]
    source = critical_difference_diagram("Average ranks", ranks, groups, difference).source()
    root = ElementTree.fromstring(source)
    texts = []
    for element in root.iter(f"{SVG}text"):
        words, anchor = element.text or "", element.get("text-anchor", "")
        wide = text_width(words, float(element.get("font-size", 0)))
        x = float(element.get("x", 0)) - {"start": 0, "middle": wide / 2, "end": wide}[anchor]
        texts.append((words, x, float(element.get("y", 0)), anchor, x + wide))
    lines = {kind: [] for kind in ("ink", "thick")}
    for element in root.iter(f"{SVG}polyline"):
        points = [tuple(map(float, point.split(","))) for point in element.get("points", "").split()]
        lines[element.get("class", "")].append(points)
    return Drawn(float(root.get("width", 0)), float(root.get("height", 0)), texts, lines["ink"], lines["thick"])


def place(seen: Drawn, rank: float) -> float:
    """Return the position of a rank according to the numbers along the axis."""
    ticks = {int(words): (left + right) / 2 for words, left, _, _, right in seen.texts if words.isdigit()}
    worst = max(ticks)
    return ticks[worst] + (worst - rank) / (worst - 1) * (ticks[1] - ticks[worst])


def test_as_demsar_draws_it() -> None:
    """Figure 1a of Demsar (2006): four variants of C4.5 over 14 data sets, CD 1.12 at 10 %; two groups overlap."""
    ranks = {"C4.5": 3.143, "C4.5+m": 2.000, "C4.5+cf": 2.893, "C4.5+m+cf": 1.964}
    seen = drawn(ranks, 1.12)
    words = [words for words, *_ in seen.texts]
    assert "CD = 1.12" in words
    assert {"C4.5 (3.14)", "C4.5+cf (2.89)", "(2.00) C4.5+m", "(1.96) C4.5+m+cf"} <= set(words)
    ends = sorted((round(points[0][0], 1), round(points[-1][0], 1)) for points in seen.bars)
    expected = [(3.143, 2.893), (2.893, 1.964)]
    assert ends == [(round(place(seen, worst), 1), round(place(seen, best), 1)) for worst, best in expected]
    assert place(seen, 1) > place(seen, 4)


def ranks_of(draw: st.DrawFn) -> dict[str, float]:
    n = draw(st.integers(2, 20))
    names = draw(st.lists(st.text(max_size=50), min_size=n, max_size=n, unique=True))
    values = draw(st.lists(st.floats(1, n), min_size=n, max_size=n))
    return dict(zip(names, values, strict=True))


@settings(max_examples=examples(20), deadline=None)
@given(st.composite(ranks_of)(), st.floats(0.05, 8))
def test_geometry(ranks: dict[str, float], difference: float) -> None:
    seen = drawn(ranks, difference)
    _labels_are_apart_and_inside(seen)
    _lines_come_from_the_ranks(seen, ranks)
    _bars_cover_the_groups(seen, ranks, difference)
    ruler = seen.lines[len(ranks) + 1]
    long = max(x for x, _ in ruler) - min(x for x, _ in ruler)
    assert long == pytest.approx(abs(place(seen, 1) - place(seen, 1 + difference)), abs=0.1)


def _labels_are_apart_and_inside(seen: Drawn) -> None:
    for _, left, feet, _, right in seen.texts:
        assert 0 <= left <= right <= seen.width
        assert 0 < feet < seen.height
    for one, two in itertools.combinations(seen.texts, 2):
        assert abs(one[2] - two[2]) >= 12 or one[4] <= two[1] or two[4] <= one[1], "words overlap"


def _lines_come_from_the_ranks(seen: Drawn, ranks: dict[str, float]) -> None:
    """The last lines are those of the learners: down from the axis, out to the words, which they do not touch."""
    lines = seen.lines[-len(ranks) :]
    starts = sorted(points[0][0] for points in lines)
    assert starts == pytest.approx(sorted(place(seen, rank) for rank in ranks.values()), abs=0.1)
    for start, corner, end in lines:
        assert start[0] == corner[0]
        assert corner[1] == end[1]
        beside = [
            one for one in seen.texts if abs(one[2] - 4 - end[1]) < 1 and (one[3] == "start") == (end[0] < start[0])
        ]
        assert len(beside) == 1
        assert end[0] >= beside[0][4] if beside[0][3] == "start" else end[0] <= beside[0][1]


def _bars_cover_the_groups(seen: Drawn, ranks: dict[str, float], difference: float) -> None:
    values = list(ranks.values())
    groups = cliques(values, difference)
    spans = sorted(
        (place(seen, max(values[j] for j in group)), place(seen, min(values[j] for j in group))) for group in groups
    )
    bars = sorted((points[0][0], points[1][0]) for points in seen.bars)
    assert len(bars) == len(spans)
    for (left, right), (first, last) in zip(bars, spans, strict=True):
        assert left == pytest.approx(first, abs=2.1 if last - first < 4 else 0.1)
        assert right == pytest.approx(last, abs=2.1 if last - first < 4 else 0.1)
    for one, two in itertools.combinations(seen.bars, 2):
        assert one[0][1] != two[0][1] or one[1][0] < two[0][0] + 4 or two[1][0] < one[0][0] + 4, "bars overlap"


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


@pytest.mark.parametrize("n", [1, 2, 3, 5, 19])
def test_a_panel_for_every_learner_on_one_sheet(n: int) -> None:
    panels = [ScatterPanel(f"learner with a rather long name {i}", [("s", 0.1, 0.2)], 0, 0, 1) for i in range(n)]
    root = plots(panels)
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    frames = [e.get("points", "").split() for e in root.iter(f"{SVG}polyline") if len(e.get("points", "").split()) == 5]
    corners = [tuple(map(float, frame[0].split(","))) for frame in frames]
    assert len(set(corners)) == n
    assert all(x > 0 and x + PANELS.width < width and y > 0 and y + PANELS.height < height for x, y in corners)
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
