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


def test_choosing_arcs_costs_no_table_more_than_two_percent_or_what_folds_differ_by() -> None:
    found = by_set(default_line.recorded())
    assert len(found) >= 45
    ratios = {name: ratio(lines["default"], lines["before"]) for name, lines in found.items()}
    assert np.exp(np.mean(np.log([*ratios.values()]))) < 0.95
    for name, value in ratios.items():
        default, before = found[name]["default"], found[name]["before"]
        # the standard error of a mean over five folds; losses of a thousandth of a nat are no losses
        assert value < 1.02 or default.log_loss - before.log_loss < max(default.std / 5**0.5, 1e-3), name


def test_the_default_line_is_not_worse_than_naive_bayes_or_the_class_frequencies() -> None:
    for name, lines in by_set(default_line.recorded()).items():
        default, nb = lines["default"], lines["nb"]
        assert ratio(default, nb) < 1.02 or default.log_loss - nb.log_loss < default.std, name
        # of 169 rows of monks2 the folds learn something that is not there
        assert default.log_loss < (1.05 if name == "monks2_train" else 1.003) * default.base_log_loss, name


@pytest.mark.parametrize("name", TABLES)
def test_office_tables(name: str) -> None:
    by = {figure.learner: figure for figure in office_tables.recorded() if figure.table == name}
    assert tuple(by) == LEARNERS
    assert by["default"].log_loss < by["default"].base_log_loss
    assert by["default"].auc > 0.6
    assert by["default"].log_loss < by["nb"].log_loss * 1.02
    assert by[BOOSTING].base_log_loss == pytest.approx(by["default"].base_log_loss, rel=0.02)
