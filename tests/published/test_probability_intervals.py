"""Check that the page shows the recorded coverage, and that a small simulation still covers."""

from __future__ import annotations

import numpy as np

from tests.published.probability_intervals import PAGE, coverage, page, recorded


def test_the_page_shows_the_recorded_figures() -> None:
    figures = recorded()
    assert PAGE.read_text() == page(figures)
    assert all(0.86 <= figure.coverage <= 0.945 for figure in figures if figure.param != "auto")


def test_a_small_simulation_covers() -> None:
    found = [coverage("nb", "map", 1, 2, 200, seed)[0].mean() for seed in range(4)]
    assert 0.8 < np.mean(found) < 0.99
