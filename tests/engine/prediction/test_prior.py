"""Another prior against Bayes' rule by hand and against learning under it."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.calibration import Calibration, PerClass
from bncli.engine.data.schema import Schema
from bncli.engine.model import Model, Tables
from bncli.engine.prediction.prior import prior_shift, shift_log_probabilities
from bncli.engine.structures.structure import Dag
from bncli.errors import BncliError, ModelError, UsageError
from bncli.recipe import Recipe

LABELS = ("a", "b", "c")
PRIOR = {"a": 0.2, "b": 0.3, "c": 0.5}


def model(frequencies: tuple[float, ...] = (6.0, 3.0, 1.0), weights: tuple[float, ...] | None = None) -> Model:
    schema = Schema("class", LABELS, (), label_frequencies=frequencies)
    tables = Tables(np.zeros(3), (), ())
    return Model(schema, Dag((), ()), tables, Recipe(), 10, "1", class_weights=weights)


positive = st.floats(1e-3, 1e3)


@given(st.lists(positive, min_size=3, max_size=3), st.lists(positive, min_size=3, max_size=3))
def test_bayes_rule_by_hand(said: list[float], wanted: list[float]) -> None:
    p = np.array(said) / sum(said)
    prior = np.array(wanted) / sum(wanted)
    ratios = [p[k] * prior[k] / own for k, own in enumerate((0.6, 0.3, 0.1))]
    shift = prior_shift(model(), dict(zip(LABELS, prior.tolist(), strict=True)))
    found = np.exp(shift_log_probabilities(np.log(p)[:, np.newaxis], shift))[:, 0]
    np.testing.assert_allclose(found, np.array(ratios) / sum(ratios), rtol=1e-12)


def test_training_undoes_class_weights_and_nothing_else() -> None:
    p = np.log([[0.5], [0.25], [0.25]])
    assert np.array_equal(shift_log_probabilities(p, None), p)
    np.testing.assert_allclose(shift_log_probabilities(p, prior_shift(model(), "training")), p, rtol=1e-15)
    weighted = model((6.0, 6.0, 6.0), (1.0, 2.0, 6.0))
    undone = np.exp(shift_log_probabilities(p, prior_shift(weighted, "training")))[:, 0]
    np.testing.assert_allclose(undone, np.array([12, 3, 1]) / 16, rtol=1e-14)
    same = {"a": 0.6, "b": 0.3, "c": 0.1}  # the frequencies of the data, in numbers
    np.testing.assert_allclose(
        np.exp(shift_log_probabilities(p, prior_shift(weighted, same)))[:, 0], undone, rtol=1e-14
    )


def test_maps_per_class_have_the_frequencies_of_the_calibration_rows() -> None:
    there, wanted = np.array([0.2, 0.2, 0.6]), np.array([0.5, 0.3, 0.2])
    calibration = Calibration(PerClass((1.0,) * 3, (0.0,) * 3), 5, 1.0, 1.0, tuple((5 * there).tolist()))
    p = np.log(there)[:, np.newaxis]  # of a row that tells nothing
    for one in (model(), model((6.0, 6.0, 6.0), (1.0, 2.0, 6.0))):
        found = replace(one, calibration=calibration)
        said = np.exp(shift_log_probabilities(p, prior_shift(found, dict(zip(LABELS, wanted.tolist(), strict=True)))))[
            :, 0
        ]
        np.testing.assert_allclose(said, wanted, rtol=1e-12)
        undone = np.exp(shift_log_probabilities(p, prior_shift(found, "training")))[:, 0]
        np.testing.assert_allclose(undone, (0.6, 0.3, 0.1), rtol=1e-12)
    with pytest.raises(ModelError, match="does not record its class frequencies"):
        prior_shift(replace(model(()), calibration=calibration), "training")


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (PRIOR | {"d": 0.1}, "names 'd', which is not a label of the class 'class'; its labels are a, b, c"),
        ({"a": 0.5, "b": 0.5}, "no probability for the label 'c'"),
        (PRIOR | {"a": 0.3}, "sum to 1.1; they must sum to 1"),
        (PRIOR | {"a": 0.0}, "gives 'a' the probability 0; every label needs a probability above 0"),
        (PRIOR | {"a": -0.2}, "gives 'a' the probability -0.2"),
        ("test", "'test' is not a prior"),
    ],
)
def test_wrong_priors_are_errors(prior: dict[str, float] | str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        prior_shift(model(), prior)


def test_a_model_without_class_frequencies_has_no_prior() -> None:
    with pytest.raises(ModelError, match=r"class frequencies.*fit the model again"):
        prior_shift(model(()), PRIOR)
    assert not prior_shift(model(()), "training").any()


def test_a_sum_that_rounds_to_one_is_accepted() -> None:
    thirds = dict.fromkeys(LABELS, 0.3333333)
    uniform = prior_shift(model(), thirds)
    np.testing.assert_allclose(uniform, prior_shift(model(), dict.fromkeys(LABELS, 1 / 3)), rtol=1e-12)
    with pytest.raises(BncliError):
        prior_shift(replace(model()), dict.fromkeys(LABELS, 0.333))
