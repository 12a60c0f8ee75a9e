"""The page of monotone effects is what its figures say; one of them is measured again."""

from __future__ import annotations

import pytest

from tests.published.monotone import LEARNERS, PAGE, TABLES, cases, page, recorded


def test_the_page_shows_the_figures() -> None:
    assert PAGE.read_text() == page(recorded())


def test_every_figure_is_of_a_known_table_with_and_without_directions() -> None:
    found = [case[:3] for case in recorded()]
    assert len(set(found)) == len(found)
    for name, learner, how in found:
        assert name in TABLES
        assert learner in LEARNERS
        assert (name, learner, {"free": "directed", "directed": "free"}[how]) in found


@pytest.mark.slow
def test_the_figures_are_those_of_this_program() -> None:
    told = {case[:3]: case for case in recorded()}
    for case in cases("hepatitis", "tan weighted"):
        assert case[3:5] == pytest.approx(told[case[:3]][3:5], abs=2e-6)
        assert case.passes == told[case[:3]].passes
