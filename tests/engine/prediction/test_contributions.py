"""Explanations of rows: sums, compared with the scorer and with purified tables one by one, and terms in words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.data.schema import CategoricalAttribute, NumericAttribute, Schema
from bncli.engine.model import Component, Ensemble, Model
from bncli.engine.prediction import contributions
from bncli.engine.prediction.contributions import Explainer, Explanation, TermText, _TermTexts, value_names
from bncli.engine.prediction.effects import effects_of
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities
from bncli.engine.structures.structure import Dag
from tests.effects import intervals_of
from tests.engine.prediction.enumeration import Floats, against_others, rows_of, slow_contrasts
from tests.engine.prediction.test_scoring import binary_model
from tests.missing_values import network_model, rows_with_unknowns, slow_posterior
from tests.paths import Case, learnt_paths, model_of, path_of, reweighed
from tests.scoring_oracle import slow_log_probabilities
from tests.strategies import models, regrouped_models

Rows = list[NDArray[np.uint8]]


def explained(model: Model, rows: Rows, most: int = 100) -> tuple[Explanation, Floats, NDArray[np.intp]]:
    scorer = compile_scorer(model)
    codes = [rows[i] for i in scorer.used]
    n = len(rows[0]) if rows else 3
    log_p = log_probabilities(scorer, codes, n)
    predicted = log_p.argmax(axis=0)
    return Explainer(model, scorer.used).explain(codes, log_p, predicted, most), log_p, predicted


@given(models() | regrouped_models(), st.integers(0, 99), st.integers(1, 4))
def test_the_sum_is_the_log_odds_whatever_is_unknown(model: Model, seed: int, most: int) -> None:
    """The base is the same for all rows with the same predicted label."""
    rows = rows_of(model, 12, seed)
    why, log_p, predicted = explained(model, rows, most)
    odds = [against_others(log_p[:, t].tolist())[p] for t, p in enumerate(predicted)]
    scale = max(1.0, float(np.abs(odds).max()))
    np.testing.assert_allclose(why.log_odds, odds, rtol=0, atol=1e-10 * scale)
    total = why.base + why.contributions.sum(axis=0) + why.rest
    np.testing.assert_allclose(total, why.log_odds, rtol=0, atol=1e-9 * scale)
    np.testing.assert_array_equal(why.base, effects_of(model).constant[predicted])


@given(models() | regrouped_models(), st.integers(0, 99))
def test_a_contribution_is_the_entry_of_an_effect(model: Model, seed: int) -> None:
    rows = rows_of(model, 8, seed, unknown=False)
    why, _, predicted = explained(model, rows)
    tensors = {effect.tensor.attributes: effect.tensor for effect in effects_of(model).effects}
    names = [attribute.name for attribute in model.schema.attributes]
    for t, p in enumerate(predicted):
        listed = {}
        for value, term in zip(why.contributions[:, t], why.term_of[:, t], strict=True):
            if term >= 0:
                text = why.terms[term]
                attributes = tuple(names.index(name) for name in text.attributes)
                listed[attributes] = value
                for axis, (a, told) in enumerate(zip(attributes, text.values, strict=True)):
                    code = rows[a][t]
                    if told != value_names(model.schema.attributes[a])[code]:
                        joined = intervals_of(model.schema.attributes[a], told)
                        grouping = tensors[attributes].groupings[axis]
                        slices = [i if grouping is None else grouping[i] for i in joined]
                        assert len(joined) > 1
                        assert code in joined
                        assert np.ptp(np.take(tensors[attributes].values, slices, axis), axis).max() < 1e-10
        assert listed.keys() <= tensors.keys()
        for attributes, tensor in tensors.items():
            cell = tuple(
                rows[a][t] if m is None else m[rows[a][t]] for a, m in zip(attributes, tensor.groupings, strict=True)
            )
            entry = float(tensor.values[(*cell, p)])
            assert listed.get(attributes, 0.0) == pytest.approx(entry, rel=1e-12, abs=1e-12)
            assert attributes in listed or abs(entry) < 2e-12


@given(models(), st.integers(0, 99))
def test_the_largest_come_first_and_the_rest_is_the_others(model: Model, seed: int) -> None:
    rows = rows_of(model, 6, seed)
    every, _, _ = explained(model, rows)
    few, _, _ = explained(model, rows, 2)
    sizes = np.abs(every.contributions)
    assert (np.diff(sizes, axis=0) <= 0).all()
    np.testing.assert_array_equal(few.contributions, every.contributions[:2])
    np.testing.assert_allclose(few.rest, every.contributions[2:].sum(axis=0), rtol=1e-9, atol=1e-9)
    assert np.abs(every.rest).max(initial=0.0) < 1e-10


@given(learnt_paths(), st.integers(0, 99))
def test_an_average_is_explained_by_the_weights_that_a_row_gives(case: Case, seed: int) -> None:
    data, regions, learnt, _ = case
    generator = np.random.default_rng(seed)
    path = reweighed(path_of(learnt), generator.dirichlet(np.ones(len(path_of(learnt).steps))).tolist())
    model = replace(model_of(data, regions, learnt), predictor=path)
    rows = rows_of(model, 5, seed, unknown=False)
    why, _, predicted = explained(model, rows)
    steps = [replace(model, predictor=path.tables(s)) for s in range(len(path.steps))]
    for t, p in enumerate(predicted):
        row = {a: int(column[t]) for a, column in enumerate(rows)}
        own = np.array([step.weight for step in path.steps])
        own *= [np.exp(slow_log_probabilities(step, row)[p]) for step in steps]
        own /= own.sum()
        scores = np.array([slow_contrasts(step.tables, model.schema, row)[p] for step in steps])
        bases = np.array([effects_of(step).constant[p] for step in steps])
        assert why.contributions[:, t].sum() == pytest.approx(float(own @ (scores - bases)), abs=1e-9)
    np.testing.assert_allclose(why.base + why.contributions.sum(axis=0), why.log_odds, rtol=0, atol=1e-9)


@given(models(max_attributes=3), st.integers(0, 99))
def test_an_ensemble_is_explained_by_its_components(model: Model, seed: int) -> None:
    """Equal components are explained like one of them, others by the weights that a row gives them."""
    generator = np.random.default_rng(seed)
    other = replace(
        model.tables,
        bias=generator.normal(size=model.tables.bias.size),
        weights=tuple(generator.normal(size=w.shape) for w in model.tables.weights),
    )
    first = Component(0.75, model.tables, "one")
    twice = replace(model, predictor=Ensemble((first, Component(0.25, model.tables, "again"))))
    mixed = replace(model, predictor=Ensemble((first, Component(0.25, other, "other"))))
    components = [replace(model, predictor=tables) for tables in (model.tables, other)]
    rows = rows_of(model, 5, seed)
    used = compile_scorer(model).used
    codes = [rows[i] for i in used]
    pure = [slow_p(component, rows, 5) for component in components]
    log_p = np.logaddexp(pure[0] + np.log(0.75), pure[1] + np.log(0.25))
    predicted = log_p.argmax(axis=0)
    one, alone = (Explainer(m, used).explain(codes, pure[0], predicted, 9) for m in (twice, model))
    size = max(1.0, float(np.abs(alone.contributions).max(initial=0.0)), float(np.abs(alone.log_odds).max()))
    np.testing.assert_allclose(one.contributions, alone.contributions, rtol=0, atol=1e-10 * size)
    why = Explainer(mixed, used).explain(codes, log_p, predicted, 99)
    np.testing.assert_allclose(why.base + why.contributions.sum(axis=0), why.log_odds, rtol=0, atol=1e-9 * size)
    own = np.log([[0.75], [0.25]]) + [p[predicted, np.arange(5)] for p in pure]
    own = np.exp(own - np.logaddexp.reduce(own))
    sums = [Explainer(m, used).explain(codes, log_p, predicted, 99).contributions.sum(axis=0) for m in components]
    expected = (own * np.array(sums)).sum(axis=0)
    np.testing.assert_allclose(why.contributions.sum(axis=0), expected, rtol=0, atol=1e-9 * size)


def slow_p(model: Model, rows: Rows, n: int) -> Floats:
    """Return log P(y | x_t), shape (K, n)."""
    return np.array([slow_log_probabilities(model, {i: int(c[t]) for i, c in enumerate(rows)}) for t in range(n)]).T


@given(learnt_paths(), st.integers(0, 99))
def test_contributions_of_an_average_sum_to_the_log_odds(case: Case, seed: int) -> None:
    data, regions, learnt, _ = case
    model = model_of(data, regions, learnt)
    why, _, _ = explained(model, rows_of(model, 9, seed), 1)
    np.testing.assert_allclose(why.base + why.contributions.sum(axis=0) + why.rest, why.log_odds, rtol=0, atol=1e-9)


def test_contributions_of_marginalized_rows_sum_to_the_log_odds() -> None:
    """The base includes the effect of marginalization."""
    model = network_model(Dag(((), (0,), (0, 1)), (0, 1, 2)), (2, 3, 2), 3, 4)
    rows = rows_with_unknowns(model, 40, 2)
    why, log_p, _ = explained(model, rows, 2)
    np.testing.assert_allclose(why.base + why.contributions.sum(axis=0) + why.rest, why.log_odds, rtol=0, atol=1e-9)
    expected = [slow_posterior(model, {i: int(c[t]) for i, c in enumerate(rows)}) for t in range(40)]
    np.testing.assert_allclose(log_p.T, expected, rtol=1e-9, atol=1e-9)
    complete = np.all([column < c for column, c in zip(rows, model.schema.cardinalities, strict=True)], axis=0)
    constant = effects_of(model).constant[log_p.argmax(axis=0)]
    np.testing.assert_allclose(why.base[complete], constant[complete], rtol=0, atol=1e-9)
    assert not np.allclose(why.base, constant)


def test_unknown_parents_and_regions_add_nothing() -> None:
    """If a table averages over an unknown attribute, the purified terms of that attribute are 0."""
    model = binary_model(3, ((), (0,), (0,)), n_labels=3)
    rows = [np.array([2], np.uint8), np.array([1], np.uint8), np.array([0], np.uint8)]
    model = replace(
        model, predictor=replace(model.tables, families=model.tables.families[1:], weights=model.tables.weights[1:])
    )
    why, _, _ = explained(model, rows)
    listed = {why.terms[r]: c for r, c in zip(why.term_of[:, 0], why.contributions[:, 0], strict=True) if r >= 0}
    assert listed
    assert not any("unknown" in values for _, values in listed)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_the_size_of_blocks_does_not_matter(monkeypatch: pytest.MonkeyPatch, n_labels: int) -> None:
    model = binary_model(4, ((), (0,), (0, 1), (2,)), n_labels, cards=3)
    rows = rows_of(model, 500, 1)
    whole, _, _ = explained(model, rows, 3)
    monkeypatch.setattr(contributions, "NUMBERS_PER_BLOCK", 200)
    blocks, _, _ = explained(model, rows, 3)
    for name in ("log_odds", "base", "rest", "contributions"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(blocks, name))


@pytest.mark.parametrize("n_labels", [1, 2])
def test_no_rows_no_attributes_one_class(n_labels: int) -> None:
    model = binary_model(2, ((), (0,)), n_labels)
    why, _, _ = explained(model, [np.empty(0, np.uint8)] * 2, 2)
    assert why.contributions.shape == (2, 0)
    why, _, _ = explained(binary_model(0, (), n_labels), [], 2)
    np.testing.assert_allclose(why.base, why.log_odds, atol=1e-12)
    assert (why.term_of == -1).all()
    assert not why.rest.any()


def test_rounding_errors_are_not_listed() -> None:
    """With three terms per row, even the largest is not listed if it is negligible."""
    sums = np.array([[1e-19, 0.5, -2e-16], [0.25, -1e-13, 1e-18], [-0.75, 0.0, 0.0]])
    listed, chosen = np.zeros((3, 3)), np.full((3, 3), -1, np.intp)
    rest = contributions.take_largest(sums, listed, chosen)
    assert chosen.T.tolist() == [[2, 1, -1], [0, -1, -1], [-1, -1, -1]]
    assert listed.T.tolist() == [[-0.75, 0.25, 0.0], [0.5, 0.0, 0.0], [0.0, 0.0, 0.0]]
    np.testing.assert_allclose(listed.sum(axis=0) + rest, sums.sum(axis=0), rtol=0, atol=1e-16)


AGE = NumericAttribute("age", True, (1.0,) * 4, (27.5, 41.0))
COLOUR = CategoricalAttribute("colour", False, (1.0, 1.0), ("blue", "red"))
SCHEMA = Schema("class", ("n", "y"), (AGE, COLOUR))


def test_values() -> None:
    assert value_names(AGE) == ("<=27.5", "27.5..41", ">41", "missing", "unknown")
    assert value_names(COLOUR) == ("blue", "red", "unknown")
    assert value_names(NumericAttribute("x", True, (1.0, 1.0), ())) == ("any", "missing", "unknown")


def test_cuts_that_look_alike_are_written_in_full() -> None:
    close = NumericAttribute("x", False, (1.0,) * 3, (1.0000001, 1.0000002))
    assert value_names(close)[1] == "1.0000001..1.0000002"


@pytest.mark.parametrize("largest", [1 << 62, 1])
def test_terms_in_words(monkeypatch: pytest.MonkeyPatch, largest: int) -> None:
    monkeypatch.setattr(contributions, "_LARGEST", largest)
    texts = _TermTexts(SCHEMA, ((0,), (0, 1)), (0, 1), {})
    codes = [np.array([0, 4, 0], np.uint8), np.array([1, 2, 1], np.uint8)]
    places, described = texts.describe(np.array([[1, 1, 1], [0, -1, 0]]), codes)
    pair, other = TermText(("age", "colour"), ("<=27.5", "red")), TermText(("age", "colour"), ("unknown", "unknown"))
    age = TermText(("age",), ("<=27.5",))
    seen = [[None if p < 0 else described[p] for p in row] for row in places.tolist()]
    assert seen == [[pair, other, pair], [age, None, age]]
    assert len(described) == 3
