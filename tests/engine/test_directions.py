"""Models that are learned with directions keep them in every row there can be, whatever learns them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bncli.engine.data.columns import CategoricalColumn, Columns, NumericColumn
from bncli.engine.learn import learn
from bncli.engine.model import Ensemble, Tables
from bncli.engine.parameters.monotone import check_directions, lowest_difference
from bncli.errors import BncliError
from bncli.recipe import Recipe
from tests.directions import worst_fall

LEARNERS: dict[str, dict[str, Any]] = {
    "tan": {"structure": "tan", "param": "weighted", "penalty": "0.1"},
    "kdb": {"structure": "kdb", "k": 2, "param": "discriminative", "coding": "thermometer", "penalty": "0.1"},
    "lr": {"structure": "tan", "param": "lr-roos", "penalty": "0.1"},
    "interactions": {"structure": "interactions", "penalty": "0.1"},
    "card": {"structure": "card", "points": 10, "pairs": 1},
    "auto": {"structure": "auto", "effort": 1},
}


def rows(n: int = 120, seed: int = 1) -> Columns:
    """Two numbers that speak for the second of three labels in the middle of their range, and a category.

    No label likes its numbers to go one way only; some values are missing.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    columns: dict[str, Any] = {}
    for name, centre in (("dose", (0.0, 1.5, -1.5)), ("age", (1.0, 0.0, -1.0))):
        values = np.round(np.array(centre)[labels] + rng.normal(size=n), 1)
        values[rng.random(n) < 0.1] = np.nan
        columns[name] = NumericColumn(values)
    site = np.where(rng.random(n) < 0.4, rng.integers(0, 2, n), labels % 2)
    columns["site"] = CategoricalColumn(np.where(rng.random(n) < 0.1, -1, site), ("a", "b"))
    return Columns(n, columns, "class", CategoricalColumn(labels, ("1", "2", "10")))


@pytest.mark.parametrize(
    ("learner", "towards"),
    [
        *((learner, "1") for learner in [*LEARNERS][:5]),
        pytest.param("tan", "10", marks=pytest.mark.slow),
        pytest.param("auto", "10", marks=pytest.mark.slow),
    ],
)
def test_no_row_goes_against_a_direction(learner: str, towards: str) -> None:
    binning = {} if learner == "auto" else {"discretize": "equal-frequency", "bins": 3}
    directions: dict[str, Any] = {"increasing": ("dose",), "decreasing": ("age",), "towards": towards}
    model = learn(rows(), Recipe.of(**LEARNERS[learner], **binning, **directions)).model
    if learner == "auto":  # it cuts finely: other rows than all there can be are enough
        assert isinstance(model.predictor, Ensemble)
        tables = model.predictor.combined
    else:
        free = learn(rows(), Recipe.of(**LEARNERS[learner], **binning)).model
        assert worst_fall(model) > -1e-9
        asked = replace(free, schema=replace(model.schema, attributes=model.schema.attributes))
        assert worst_fall(asked) < -0.01
        tables = model.tables
    assert lowest_difference(model, tables) > -1e-9
    check_directions(model)


def test_a_model_that_falls_towards_the_label_is_a_defect() -> None:
    """Tables turned round in one class: against that one the label's log-odds fall."""
    directions: dict[str, Any] = {"increasing": ("dose",), "towards": "2"}
    recipe = Recipe.of(structure="nb", param="discriminative", penalty="0.1", bins=3, discretize="equal-width")
    model = learn(rows(), recipe.replaced(**directions)).model
    check_directions(model)
    for label in (0, 2):
        weights = [w.copy() for w in model.tables.weights]
        for family, one in zip(model.tables.families, weights, strict=True):
            if family.attributes == (0,):
                one[:3, label] += [0.0, 5.0, 10.0]
        forged = replace(model, predictor=Tables(model.tables.bias, model.tables.families, tuple(weights)))
        assert lowest_difference(forged, forged.tables) < -1
        with pytest.raises(BncliError, match="violates the requested directions"):
            check_directions(forged)
