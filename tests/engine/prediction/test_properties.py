"""Properties beside their definitions, over all inputs of small models."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.engine.calibration import Calibration, Isotonic, Knots, PerClass, Temperature
from bncli.engine.data.schema import NumericAttribute, Schema
from bncli.engine.model import Component, DecisionRule, Ensemble, Model, Tables, Threshold
from bncli.engine.prediction import properties
from bncli.engine.prediction.decision_rules import decide_labels
from bncli.engine.prediction.properties import DecidesAlone, Flip, ProbabilityBound, Prover, Trend
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities
from bncli.engine.structures.structure import Dag
from bncli.recipe import Recipe
from tests.strategies import models, regrouped_models
from tests.sweeps import examples


@pytest.fixture(scope="module", params=[1 << 16, 1], ids=["inputs scored", "inputs divided"])
def most_inputs(request: pytest.FixtureRequest) -> object:
    """Small models are scored one input at a time, or divided until a single input is left."""
    kept, properties.MOST_INPUTS = properties.MOST_INPUTS, request.param
    yield
    properties.MOST_INPUTS = kept


@st.composite
def all_models(draw: st.DrawFn) -> Model:
    """Models with one set of tables or an average of two, calibrated or not, with a rule or without."""
    model = draw(models(max_attributes=4, max_labels=3) | regrouped_models(max_labels=3))
    assert isinstance(model.predictor, Tables)
    tables, k = model.predictor, len(model.schema.labels)
    # small scores, so that few probabilities are 0 or 1
    scale = draw(st.sampled_from([0.3, 1.0])) / max(
        1.0, *(float(np.abs(w).max()) for w in (tables.bias, *tables.weights))
    )
    tables = replace(tables, bias=tables.bias * scale, weights=tuple(w * 3 * scale for w in tables.weights))
    model = replace(model, predictor=tables)
    if draw(st.integers(0, 4)) == 0:
        other = replace(tables, weights=tuple(-w for w in tables.weights))
        model = replace(model, predictor=Ensemble((Component(0.7, tables, "a"), Component(0.3, other, "b"))))
    maps = [None, None, Temperature(2.0), PerClass((0.5, 2.0, 1.0)[:k], (0.3, -0.2, 0.0)[:k])]
    maps.append(Isotonic((Knots((0.2, 0.5, 0.9), (0.1, 0.4, 0.8)),) * (1 if k == 2 else k)))
    if (chosen := draw(st.sampled_from(maps))) is not None:
        model = replace(model, calibration=Calibration(chosen, 10, 1.0, 1.0))
    rules = [None, None, DecisionRule(abstain_below=0.6)] + [DecisionRule(threshold=Threshold(0.3))] * (k == 2)
    return replace(model, rule=draw(st.sampled_from(rules)))


class Inputs:
    """All inputs of a model, with their probabilities and decisions by codes."""

    def __init__(self, model: Model) -> None:
        self.scorer = compile_scorer(model)
        self.sizes = [model.schema.cardinalities[a] for a in self.scorer.used]
        self.all = list(itertools.product(*map(range, self.sizes)))
        columns = [np.array(column, np.uint32) for column in zip(*self.all, strict=True)]
        log_p = log_probabilities(self.scorer, columns, len(self.all))
        self.p = dict(zip(self.all, np.exp(log_p).T, strict=True))
        self.label = dict(zip(self.all, log_p.argmax(axis=0).tolist(), strict=True))
        self.decision = dict(zip(self.all, decide_labels(model.rule, model.schema.labels, log_p).tolist(), strict=True))

    def changed(self, one: tuple[int, ...], position: int, code: int) -> tuple[int, ...]:
        return (*one[:position], code, *one[position + 1 :])


def example_of(prover: Prover, stated: properties.Property) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    verdict = prover.prove(stated)
    assert verdict.holds is (verdict.counter_example is None)
    if verdict.counter_example is None:
        return None
    codes = dict(sorted(verdict.counter_example.codes.items()))
    return tuple(codes.values()), tuple((codes | dict(verdict.counter_example.changed)).values())


def prover_of(model: Model) -> Prover:
    return Prover(model, 60.0, lambda: 0.0)


@settings(max_examples=examples(20), deadline=None)
@given(all_models(), st.sampled_from([1, -1]), st.floats(0, 1), st.data())
def test_bounds(most_inputs: object, model: Model, sign: int, share: float, data: st.DataObject) -> None:
    inputs = Inputs(model)
    label = data.draw(st.integers(0, len(model.schema.labels) - 1))
    where = {p: data.draw(st.integers(0, n - 1)) for p, n in enumerate(inputs.sizes) if data.draw(st.booleans())}
    among = [one for one in inputs.all if all(one[p] == code for p, code in where.items())]
    all_p = [inputs.p[one][label] for one in inputs.all]
    bound = min(all_p) + share * (max(all_p) - min(all_p))
    found = example_of(prover_of(model), ProbabilityBound(label, sign, bound, where))
    violated = [one for one in among if sign * (inputs.p[one][label] - bound) > 1e-12]
    assert (found is None) == (not violated)
    assert found is None or found[0] in violated


@settings(max_examples=examples(20), deadline=None)
@given(all_models(), st.sampled_from([1, -1]), st.data())
def test_trends(most_inputs: object, model: Model, sign: int, data: st.DataObject) -> None:
    inputs = Inputs(model)
    label = data.draw(st.integers(0, len(model.schema.labels) - 1))
    for position, a in enumerate(inputs.scorer.used):
        attribute = model.schema.attributes[a]
        if not isinstance(attribute, NumericAttribute):
            continue
        found = example_of(prover_of(model), Trend(label, sign, position, attribute.n_values))
        violated = [
            (one, other)
            for one in inputs.all
            if one[position] < attribute.n_values - 1
            for other in [inputs.changed(one, position, one[position] + 1)]
            if sign * (inputs.p[other][label] - inputs.p[one][label]) < -1e-12
        ]
        assert (found is None) == (not violated)
        assert found is None or found in violated


@settings(max_examples=examples(20), deadline=None)
@given(all_models())
def test_values_that_decide_alone(most_inputs: object, model: Model) -> None:
    inputs = Inputs(model)
    for position, n in enumerate(inputs.sizes):
        decisive = [c for c in range(n) if len({inputs.decision[one] for one in inputs.all if one[position] == c}) == 1]
        verdict = prover_of(model).prove(DecidesAlone(position))
        assert verdict.holds == (not decisive)
        if verdict.counter_example is not None:
            assert dict(verdict.counter_example.codes) == {position: decisive[0]}


@settings(max_examples=examples(20), deadline=None)
@given(all_models(), st.floats(0, 1), st.booleans())
def test_flips(most_inputs: object, model: Model, share: float, searches: bool) -> None:
    inputs = Inputs(model)
    highest = [max(p) for p in inputs.p.values()]
    bound = min(highest) + share * (max(highest) - min(highest))
    prover = prover_of(model)
    if not searches:
        prover._find_flip = lambda bound: None  # type: ignore[method-assign]
    found = example_of(prover, Flip(bound))
    violated = [
        (one, other)
        for one in inputs.all
        if max(inputs.p[one]) > bound + 1e-12
        for position, n in enumerate(inputs.sizes)
        for other in (inputs.changed(one, position, code) for code in range(n))
        if inputs.label[other] != inputs.label[one]
    ]
    assert (found is None) == (not violated)
    assert found is None or found in violated


@settings(max_examples=10, deadline=None)
@given(all_models())
def test_without_time_nothing_is_claimed(model: Model) -> None:
    ticks = itertools.count()
    prover = Prover(model, -1.0, lambda: float(next(ticks)))
    assert prover.prove(ProbabilityBound(0, 1, 0.5, {})).holds is None


def test_a_flip_of_a_large_model_is_found_before_its_inputs_are_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    n_attributes, n_values = 30, 50
    attributes = tuple(
        NumericAttribute(f"a{i}", False, (1.0,) * n_values, tuple(map(float, range(n_values - 1))))
        for i in range(n_attributes)
    )
    schema = Schema("class", ("no", "yes", "maybe"), attributes)
    dag = Dag(((),) * n_attributes, tuple(range(n_attributes)))
    families = dag.families(schema.cardinalities)
    tables = Tables(np.zeros(3), families, tuple(rng.normal(size=(n_values, 3)) for _ in families))
    monkeypatch.setattr(Prover, "_search", lambda *_: pytest.fail("the inputs are divided"))
    model = Model(schema, dag, tables, Recipe(), 100, "1.2.3")
    verdict = prover_of(model).prove(Flip(0.9))
    assert verdict.holds is False
    assert verdict.counter_example is not None
    codes = dict(verdict.counter_example.codes)
    both = [list(codes.values()), list((codes | dict(verdict.counter_example.changed)).values())]
    before, after = prover_of(model).log_p(np.array(both)).T
    assert np.exp(before.max()) > 0.9
    assert before.argmax() != after.argmax()
