"""The line that tells of a chosen penalty."""

from __future__ import annotations

import pytest

from bncli.cli.penalties import chosen_text
from bncli.engine.model import ChosenPenalty, Tried

THREE = tuple(Tried(penalty, 0.5) for penalty in (300.0, 100.0, 0.01))


@pytest.mark.parametrize(
    ("penalty", "tried", "text"),
    [
        (100.0, THREE, "100, chosen by cross-validation between 0.01 and 300"),
        (0.01, THREE, "0.01, chosen by cross-validation, the smallest of those tried"),
        (300.0, THREE, "300, chosen by cross-validation, the largest of those tried"),
        (1.0, (), "1, for there are too few rows to choose it by cross-validation"),
    ],
)
def test_an_end_of_the_grid_is_named(penalty: float, tried: tuple[Tried, ...], text: str) -> None:
    assert chosen_text(ChosenPenalty(penalty, tried)) == text
