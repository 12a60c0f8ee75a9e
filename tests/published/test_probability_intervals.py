"""Check that the page shows the recorded coverage, that the truth is right, and that a small simulation covers."""

from __future__ import annotations

import itertools

import numpy as np

from tests.published.probability_intervals import (
    BOUNDS,
    CLASSES,
    MODELS,
    PAGE,
    REPEATS,
    ROWS,
    coverage,
    draw_network,
    page,
    recorded,
)


def test_the_page_shows_the_recorded_figures() -> None:
    figures = recorded()
    assert PAGE.read_text() == page(figures)
    assert len(figures) == len(MODELS) * len(CLASSES) * len(ROWS)
    assert all(figure.repeats >= REPEATS for figure in figures if figure.param != "auto")
    outside = [figure for figure in figures if not BOUNDS[0] <= figure.coverage <= BOUNDS[1]]
    assert {(f.structure, f.c, f.missing, f.classes, f.rows) for f in outside if f.param != "auto"} == {
        ("tan", 4, 0.25, 5, 200)
    }
    assert PAGE.read_text().count("\n- ") == len(outside)


def test_the_truth_is_the_sum_over_all_completions() -> None:
    rng = np.random.default_rng(3)
    network = draw_network("tan", 3, 1.0, rng)
    _, values = network.draw(4, rng)
    known = [rng.random(4) < 0.6 for _ in values]
    found = network.probabilities(values, known)
    for t in range(4):
        total = np.zeros(3)
        choices = [
            [int(column[t])] if is_known[t] else range(table.shape[2])
            for column, is_known, table in zip(values, known, network.conditional, strict=True)
        ]
        for row in itertools.product(*choices):
            p = network.prior.copy()
            for i, (parent, table) in enumerate(zip(network.parents, network.conditional, strict=True)):
                p *= table[:, 0 if parent is None else row[parent], row[i]]
            total += p
        np.testing.assert_allclose(found[t], total / total.sum())


def test_a_small_simulation_covers() -> None:
    found = [coverage("nb", "map", 1, 0.0, 2, 200, seed)[0].mean() for seed in range(4)]
    found += [coverage("tan", "map", 1, 0.25, 2, 200, seed)[0].mean() for seed in range(4)]
    assert 0.8 < np.mean(found) < 0.99
