"""Sensitivities against all permutations of a column of a few rows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from bncli.engine.data.columns import CategoricalColumn, Columns
from bncli.engine.data.encoding import encode_attributes
from bncli.engine.learn import learn
from bncli.engine.model import DecisionRule, Threshold
from bncli.engine.prediction.decision_rules import Decider
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities
from bncli.engine.prediction.sensitivity import measure_sensitivities
from bncli.recipe import Recipe


@pytest.mark.parametrize("n_labels", [2, 3])
def test_it_is_the_mean_over_all_permutations(n_labels: int) -> None:
    rng = np.random.default_rng(n_labels)
    labels = np.arange(60) % n_labels
    values = {"a": (labels + (rng.random(60) < 0.3)) % 3, "b": rng.integers(0, 2, 60)}
    columns = Columns(
        60,
        {name: CategoricalColumn(codes.astype(np.int32), ("x", "y", "z")) for name, codes in values.items()},
        "class",
        CategoricalColumn(labels.astype(np.int32), tuple("pqr"[:n_labels])),
    )
    model = learn(columns, Recipe.of(structure="tan", param="map")).model
    scorer = compile_scorer(model)
    few = columns.take(np.arange(5))
    codes, true = encode_attributes(few, model.schema, scorer.used).codes, labels[:5]
    found = measure_sensitivities(scorer, codes, true)
    log_p = log_probabilities(scorer, codes)
    loss = -log_p[true, np.arange(5)].mean()
    for j, own in enumerate(found):
        increases, changes, changed = [], [], np.zeros(5, np.bool_)
        for order in itertools.permutations(range(5)):
            new = log_probabilities(scorer, [c[list(order)] if i == j else c for i, c in enumerate(codes)])
            increases.append(-new[true, np.arange(5)].mean() - loss)
            changes.append(np.abs(np.exp(new) - np.exp(log_p)).max(axis=0).mean())
            changed |= new.argmax(axis=0) != log_p.argmax(axis=0)
        assert own.log_loss_increase == pytest.approx(np.mean(increases), abs=1e-12)
        assert own.mean_change == pytest.approx(np.mean(changes), abs=1e-12)
        assert own.changed == pytest.approx(changed.mean())


def test_a_decision_rule_says_what_has_changed() -> None:
    labels = np.array([0] * 9 + [1])
    values = CategoricalColumn(np.array([0, 1] * 4 + [1, 1], np.int32), ("x", "y"))
    columns = Columns(10, {"a": values}, "class", CategoricalColumn(labels.astype(np.int32), ("p", "q")))
    model = learn(columns, Recipe.of(structure="nb", param="map")).model
    scorer = compile_scorer(model)
    codes = encode_attributes(columns, model.schema, scorer.used).codes
    # p is most probable for both values; the probability of q is above a threshold between its two probabilities for y
    low, high = sorted(set(np.exp(log_probabilities(scorer, codes)[1]).tolist()))
    assert high < 0.5
    rule = Decider.of(DecisionRule(threshold=Threshold((low + high) / 2)), model.schema.labels)
    assert measure_sensitivities(scorer, codes, labels)[0].changed == 0.0
    assert measure_sensitivities(scorer, codes, labels, None, lambda p: rule.decide(p).codes)[
        0
    ].changed == pytest.approx(1)


def test_weights_are_repeated_rows() -> None:
    labels = np.arange(40) % 2
    columns = Columns(
        40,
        {"a": CategoricalColumn((np.arange(40) // 3 % 2).astype(np.int32), ("x", "y"))},
        "class",
        CategoricalColumn(labels.astype(np.int32), ("p", "q")),
    )
    model = learn(columns, Recipe.of(structure="nb", param="map")).model
    scorer = compile_scorer(model)
    codes = encode_attributes(columns, model.schema, scorer.used).codes
    weights = np.arange(40) % 3
    repeated = np.repeat(np.arange(40), weights)
    weighted = measure_sensitivities(scorer, codes, labels, weights.astype(np.float64))
    plain = measure_sensitivities(scorer, [c[repeated] for c in codes], labels[repeated])
    assert np.array(weighted) == pytest.approx(np.array(plain), abs=1e-12)
