"""Nomograms: the probability read off a nomogram is that of the model."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.files.pictures.drawing import Drawing
from bncli.files.pictures.effect_plots import Scale, interval_edges, nomogram, nomogram_points

LOG_ODDS = st.floats(-3, 3).map(lambda value: round(value, 3))
SCALES = st.lists(st.lists(LOG_ODDS, min_size=2, max_size=4, unique=True), min_size=1, max_size=5)


def ticks(drawing: Drawing) -> dict[int, list[tuple[str, float]]]:
    """Return (text, x) of the texts above and below every line, by the position of the line from the top."""
    found: dict[int, list[tuple[str, float]]] = {}
    for x, y, word in re.findall(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*middle">([^<]*)<', drawing.source()):
        found.setdefault(round((float(y) - 26) / 38), []).append((word, float(x)))
    return found


@given(SCALES, st.floats(-4, 4))
def test_the_probability_under_a_sum_of_points_is_that_of_the_log_odds(values: list[list[float]], base: float) -> None:
    scales = [Scale(f"a{i}", [(f"v{j}", v) for j, v in enumerate(one)]) for i, one in enumerate(values)]
    found = ticks(nomogram(nomogram_points(scales, base), "yes"))
    unit = 100 / max(max(one) - min(one) for one in values)
    sums = [(float(word), x) for word, x in found[len(values) + 1]]
    if len(sums) < 2:
        return
    (low, left), (high, right) = sums[0], sums[-1]
    for word, x in found.get(len(values) + 2, ()):
        points = low + (x - left) / (right - left) * (high - low)
        log_odds = base + sum(map(min, values)) + points / unit
        assert 1 / (1 + math.exp(-log_odds)) == pytest.approx(float(word), abs=0.01)


def test_sums_are_drawn_as_far_as_they_move_the_probability() -> None:
    scales = [Scale(name, [("no", -30.0), ("yes", 30.0)]) for name in ("a", "b", "c")]
    found = ticks(nomogram(nomogram_points(scales, 0.0), "yes"))
    sums = [float(word) for word, _ in found[4]]
    assert 130 < min(sums) < 150 < max(sums) < 170
    assert {"0.01", "0.5", "0.99"} <= {word for word, _ in found[5]}


def test_where_the_probability_hardly_moves_all_sums_are_drawn() -> None:
    found = ticks(nomogram(nomogram_points([Scale("a", [("no", 0.0), ("yes", 1.0)])], 20.0), "yes"))
    assert ([float(word) for word, _ in found[2]][-1], 3 in found) == (100, False)


@pytest.mark.parametrize(
    ("cuts", "n_values", "inner"),
    [
        ([-1.0, 0.0, 2.0], 4, [1 / 4, 1 / 4 + 1 / 6, 3 / 4]),
        ([1.0, 10.0, 100.0, 1000.0], 5, [1 / 5, 2 / 5, 3 / 5, 4 / 5]),
        ([-5.0, 0.0, 0.001], 4, [1 / 4, 2 / 4, 3 / 4]),
        ([0.0, 1.0, 3.0], 5, [1 / 5, 1 / 5 + 2 / 15, 3 / 5, 4 / 5]),
    ],
    ids=["linear", "logarithmic", "too narrow", "with missing values"],
)
def test_intervals_are_to_scale_where_that_can_be_read(cuts: list[float], n_values: int, inner: list[float]) -> None:
    assert interval_edges(cuts, n_values) == pytest.approx([0.0, *inner, 1.0])
