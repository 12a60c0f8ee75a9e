"""The other event: every kind of model says the same of each label, and decides the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given

from bncli.engine.learn import learn
from bncli.engine.model import DecisionRule, HeldOutScores, Model, PredictionSets, Threshold
from bncli.engine.prediction.decision_rules import Decider
from bncli.engine.prediction.positive_label import with_positive_label
from bncli.engine.prediction.verification import probe_rows
from bncli.errors import UsageError
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from bncli.recipe import Recipe
from tests.files.exports.test_programs_calibrated import calibrated_models
from tests.strategies import models

TABLE = str(Path(__file__).parents[3] / "sample_data" / "tumours.csv")


@given(calibrated_models())
def test_each_label_keeps_its_probability(model: Model) -> None:
    assume(len(model.schema.labels) == 2)
    first, second = model.schema.labels
    other = with_positive_label(model, first)
    assert other.schema.labels == (second, first)
    assert other.schema.label_frequencies == model.schema.label_frequencies[::-1]
    before, after = (probe_rows(one, 50, np.random.default_rng(0)) for one in (model, other))
    assert before.rows() == after.rows()
    assert np.allclose(after.probabilities, before.probabilities[::-1], rtol=1e-9, atol=1e-12)
    assert with_positive_label(model, second) is model
    assert with_positive_label(model, None) is model
    again = probe_rows(with_positive_label(other, second), 50, np.random.default_rng(0))
    assert np.allclose(again.probabilities, before.probabilities, rtol=1e-9, atol=1e-12)


def test_directions_stay_those_of_their_label() -> None:
    """With another event the log-odds of the former one still rise, so it has to be named."""
    columns = read_columns(Source((TABLE,)))
    model = learn(columns, Recipe.of(structure="nb", increasing=("radius",), penalty=1.0)).model
    assert (model.schema.labels, model.schema.towards) == (("benign", "malignant"), None)
    other = with_positive_label(model, "benign")
    assert (other.schema.labels, other.schema.towards) == (("malignant", "benign"), "malignant")
    assert with_positive_label(other, "malignant").schema.towards is None


def test_rules_decide_the_same() -> None:
    p = np.linspace(0.013, 0.987, 200)
    log_p = np.log([1 - p, p])
    rules = (
        DecisionRule(costs=((0.0, 5.0), (1.0, 0.0))),
        DecisionRule(threshold=Threshold(0.3, "f1")),
        DecisionRule(abstain_below=0.8),
        DecisionRule(
            sets=PredictionSets(0.1),
            held_out=HeldOutScores(((0.2, 0.9), (0.4, 0.5, 0.7)), ((1.0, 2.0), (1.0, 1.0, 3.0)), True),
        ),
    )

    @given(models(max_labels=2))
    def check(model: Model) -> None:
        labels = model.schema.labels
        for rule in rules:
            found = with_positive_label(Model(**{**vars(model), "rule": rule}), labels[0]).rule
            assert found is not None
            if rule.decides:
                before = np.array([*labels, None], object)[Decider.of(rule, labels).decide(log_p).codes]
                after = np.array([*labels[::-1], None], object)[
                    Decider.of(found, labels[::-1]).decide(log_p[::-1]).codes
                ]
                assert before.tolist() == after.tolist()
            if rule.held_out is not None:
                assert found.held_out is not None
                assert found.held_out.probabilities == rule.held_out.probabilities[::-1]
                assert found.held_out.weights == rule.held_out.weights[::-1]  # type: ignore[index]

    check()


@given(models(max_labels=4))
def test_other_numbers_of_labels_are_refused(model: Model) -> None:
    with pytest.raises(UsageError, match="has no such label"):
        with_positive_label(model, "no label")
    if len(model.schema.labels) != 2:
        with pytest.raises(UsageError, match="needs a class with two labels"):
            with_positive_label(model, model.schema.labels[0])
