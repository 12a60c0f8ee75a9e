"""The page about the default line is what its figures give, and what is claimed of it holds in them."""

from __future__ import annotations

from tests.published import default_choice
from tests.published.default_choice import summary, tables

FOUND = tables(default_choice.recorded())


def test_the_page_is_made_from_the_figures() -> None:
    assert default_choice.page(default_choice.recorded()) == default_choice.PAGE.read_text()


def test_the_picture_is_made_from_the_figures() -> None:
    assert default_choice.picture(default_choice.recorded()) == default_choice.PICTURE.read_text()


def test_the_choice_lowers_the_loss_on_both_halves_at_less_than_twice_the_time() -> None:
    for _, n_tables, _, log_loss, _, beside_tree, beside_before in summary(FOUND):
        assert int(n_tables) >= 8
        assert float(log_loss) < 0.95
        assert float(beside_before) < 2
        assert float(beside_tree) < 2.5


def test_no_table_is_worse_by_more_than_two_percent_and_two_standard_errors() -> None:
    for one in FOUND:
        assert one.ratio("default") < 1.02 or one.errors < 2 or one.folds < 5, one.name
