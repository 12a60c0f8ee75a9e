"""The page about columns of many levels is what its figures give, and what is claimed of it holds in them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.published import level_draws, levels

FIGURES, DRAWS = levels.recorded(), level_draws.recorded()


def test_the_page_is_made_from_the_figures() -> None:
    assert levels.page(FIGURES, DRAWS) == levels.PAGE.read_text()


@pytest.mark.parametrize("line", levels.LINES)
def test_shrinking_lowers_the_loss_on_average(line: str) -> None:
    beside_merged = levels.ratios(FIGURES, line, "before")
    assert np.log(list(beside_merged.values())).mean() < np.log(0.99)
    assert np.log(list(levels.ratios(FIGURES, line, "off").values())).mean() < np.log(0.99)


@pytest.mark.parametrize("line", levels.LINES)
def test_no_table_of_known_truth_is_worse(line: str) -> None:
    made = {name: ratio for name, ratio in levels.ratios(FIGURES, line, "before").items() if name not in levels.GIVEN}
    assert len(made) == len(levels.SIZES) * len(levels.KINDS)
    assert max(made.values()) < 1.001


def test_the_truth_has_the_least_loss() -> None:
    for figure in FIGURES:
        truth = next((f.log_loss for f in FIGURES if (f.table, f.line) == (figure.table, "truth")), 0.0)
        assert figure.log_loss >= truth


@pytest.mark.parametrize("line", level_draws.LINES)
@pytest.mark.parametrize("name", level_draws.DRAWS)
def test_a_table_drawn_many_times_is_not_worse_by_one_percent(name: str, line: str) -> None:
    found = level_draws.difference(DRAWS, name, line, "shrunk")
    assert found.draws >= 20
    assert found.error_of_ratio < 0.003
    assert found.ratio + 2 * found.error_of_ratio < 1.01
