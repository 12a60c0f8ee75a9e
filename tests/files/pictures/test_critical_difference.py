"""Critical-difference diagrams by their geometry: ranks as the axis has them, bars over groups, room for all words."""

from __future__ import annotations

import itertools
from typing import NamedTuple
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.engine.evaluation.ranking import cliques
from bncli.files.pictures.drawing import text_width
from bncli.files.pictures.rank_diagram import critical_difference_diagram

SVG = "{http://www.w3.org/2000/svg}"
Points = list[tuple[float, float]]


class Drawn(NamedTuple):
    width: float
    height: float
    texts: list[tuple[str, float, float, str, float]]
    lines: list[Points]
    bars: list[Points]


def drawn(ranks: dict[str, float], difference: float) -> Drawn:
    """The diagram read back: texts (words, left, feet, anchor, right), thin lines, thick bars."""
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
    """Where the numbers along the axis put a rank."""
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


@settings(max_examples=60, deadline=None)
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
