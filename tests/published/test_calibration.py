"""The page on calibration is what its figures give, and what is claimed of it holds in the figures."""

from __future__ import annotations

import os

import pytest

from tests.published.calibration import PAGE, change, complete, measured, page, recorded


def test_the_page_is_made_from_the_figures() -> None:
    assert page(recorded()) == PAGE.read_text()


def test_the_temperature_helps_what_is_bold_and_discriminative_models_need_it_little() -> None:
    figures = complete(recorded())
    generative = change(figures, "map", "temperature", "log_loss")
    assert generative < 0.97
    for learner in ("weighted", "auto"):
        assert abs(change(figures, learner, "temperature", "log_loss") - 1) < 0.5 * (1 - generative), learner


@pytest.mark.slow
@pytest.mark.skipif("BNCLI_DATA" not in os.environ, reason="the tables are not in the repository")
def test_a_table_measured_again_gives_the_figures() -> None:
    known = {figure.method: figure for figure in recorded() if (figure.set, figure.learner) == ("heart_statlog", "map")}
    for figure in measured("heart_statlog", "map"):
        assert figure[4:] == pytest.approx(known[figure.method][4:], rel=1e-4)
