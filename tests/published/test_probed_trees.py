"""The page about boosted trees on few rows matches its figures, and what is claimed of it holds in them."""

from __future__ import annotations

from tests.published import probed_trees
from tests.published.probed_trees import mean_ratios, tables

FOUND = tables(probed_trees.recorded())


def test_the_page_is_made_from_the_figures() -> None:
    assert probed_trees.page(probed_trees.recorded()) == probed_trees.PAGE.read_text()


def test_trees_do_not_raise_the_mean_loss_of_either_half() -> None:
    for title in ("choosing", "judging"):
        loss, cost = mean_ratios(FOUND, title)
        assert loss < 1.001
        assert cost < 1.6


def test_no_table_is_worse_by_more_than_one_percent() -> None:
    assert max(one.ratio for one in FOUND) < 1.01


def test_interactions_are_found_on_few_rows() -> None:
    made = [one for one in FOUND if one.half == "made"]
    assert len(made) == len(probed_trees.MADE)
    assert max(one.ratio for one in made) < 0.9
