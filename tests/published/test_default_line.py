"""Pages about the default line are what their figures give, and what is claimed of it holds in the figures."""

from __future__ import annotations

import numpy as np
import pytest

from tests.office import TABLES
from tests.published import default_line, office_tables
from tests.published.default_line import by_set, ratio
from tests.published.office_tables import BOOSTING, LEARNERS


def test_the_pages_are_made_from_the_figures() -> None:
    assert default_line.page(default_line.recorded()) == default_line.PAGE.read_text()
    assert office_tables.page(office_tables.recorded()) == office_tables.PAGE.read_text()


def test_choosing_arcs_costs_no_table_more_than_two_percent_but_few_rows() -> None:
    found = by_set(default_line.recorded())
    assert len(found) >= 58
    ratios = {name: ratio(lines["default"], lines["before"]) for name, lines in found.items()}
    assert np.exp(np.mean(np.log([*ratios.values()]))) < 0.95
    lost = {name for name, value in ratios.items() if value > 1.02}
    # within a tenth of what the folds of so few rows differ by
    for name in lost:
        lines = found[name]
        assert lines["default"].log_loss - lines["before"].log_loss < 0.2 * lines["default"].std


def test_the_default_line_is_not_worse_than_naive_bayes_or_the_class_frequencies() -> None:
    for lines in by_set(default_line.recorded()).values():
        default, nb = lines["default"], lines["nb"]
        assert ratio(default, nb) < 1.02 or default.log_loss - nb.log_loss < default.std
        assert default.log_loss < default.base_log_loss * 1.02 or default.rows < 50


@pytest.mark.parametrize("name", TABLES)
def test_office_tables(name: str) -> None:
    by = {figure.learner: figure for figure in office_tables.recorded() if figure.table == name}
    assert tuple(by) == LEARNERS
    assert by["default"].log_loss < by["default"].base_log_loss
    assert by["default"].auc > 0.6
    assert by["default"].log_loss < by["nb"].log_loss * 1.02
    assert by[BOOSTING].base_log_loss == pytest.approx(by["default"].base_log_loss, rel=0.02)
