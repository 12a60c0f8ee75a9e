"""The page says what the measured coverages are, and these lie where 95 % intervals should."""

from __future__ import annotations

from tests.published.intervals import LEARNERS, METRICS, MODELS, PAGE, TRIALS, page, recorded


def test_the_page_shows_the_figures() -> None:
    assert PAGE.read_text() == page(recorded())


def test_the_intervals_cover_the_truth() -> None:
    coverages = recorded()
    assert [(each.model, each.rows) for each in coverages] == [
        (model, rows) for model in (*MODELS, *LEARNERS) for rows in TRIALS
    ]
    for each in coverages:
        for name in METRICS:
            assert 0.93 <= getattr(each, name) / each.trials <= 0.97, (each.model, each.rows, name)
