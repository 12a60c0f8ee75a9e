"""The compiled scorer: compared with a loop over rows, families and completions; laws; another prior by Bayes' rule."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.calibration import Calibration, PerClass
from bncli.engine.data import dataset
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import CategoricalAttribute, Schema
from bncli.engine.model import Component, Ensemble, Model, Tables
from bncli.engine.prediction import factors, scoring
from bncli.engine.prediction.factors import score_rows
from bncli.engine.prediction.scoring import (
    Scorer,
    add_softmax,
    compile_scorer,
    log_probabilities,
    log_probabilities_of,
    log_shares,
    prior_shift,
    shift_log_probabilities,
    write_log_softmax,
)
from bncli.engine.structures.structure import Dag, Family, Regions
from bncli.errors import BncliError, ModelError, UsageError
from bncli.recipe import Recipe
from tests.many_tables import boosted_model, mixed_ensemble, random_codes, random_schema
from tests.oracles import written_out
from tests.scoring_oracle import slow_log_probabilities
from tests.strategies import models, regrouped_models


def rows_of(model: Model, n: int, seed: int) -> list[NDArray[Any]]:
    """Return random codes by schema attribute, unknown values included."""
    generator = np.random.default_rng(seed)
    return [generator.integers(0, a.cardinality + 1, n).astype(np.uint8) for a in model.schema.attributes]


def scored(scorer: Scorer, rows: list[NDArray[Any]], n: int) -> NDArray[np.float64]:
    return log_probabilities(scorer, [rows[i] for i in scorer.used], n)


@given(models(), st.integers(0, 99), st.booleans())
def test_equals_the_definition(model: Model, seed: int, wide: bool) -> None:
    rows = rows_of(model, 12, seed)
    expected = [slow_log_probabilities(model, {i: int(c[t]) for i, c in enumerate(rows)}) for t in range(12)]
    with pytest.MonkeyPatch.context() as patch:
        if wide:
            patch.setattr(factors, "EXPANDED_ENTRIES", 0)
            patch.setattr(factors, "GATHERED_ENTRIES", 5)
        actual = scored(compile_scorer(model), rows, 12)
    np.testing.assert_allclose(actual, np.array(expected).T, rtol=1e-12, atol=1e-12)


@given(regrouped_models(), st.integers(0, 99), st.booleans())
def test_regrouped_attributes_score_as_the_same_tables_over_all_codes(model: Model, seed: int, wide: bool) -> None:
    """Compared with the definition and with tables without groupings; unknown and missing values included."""
    rows = rows_of(model, 12, seed)
    cardinalities = model.schema.cardinalities
    tables = model.tables
    written = [written_out(f, w, cardinalities) for f, w in zip(tables.families, tables.weights, strict=True)]
    fine = Tables(tables.bias, tuple(f for f, _ in written), tuple(w for _, w in written))
    with pytest.MonkeyPatch.context() as patch:
        if wide:
            patch.setattr(factors, "EXPANDED_ENTRIES", 0)
        actual = scored(compile_scorer(model), rows, 12)
    expected = [slow_log_probabilities(model, {i: int(c[t]) for i, c in enumerate(rows)}) for t in range(12)]
    np.testing.assert_allclose(actual, np.array(expected).T, rtol=1e-12, atol=1e-12)
    whole = scored(compile_scorer(replace(model, predictor=fine)), rows, 12)
    np.testing.assert_allclose(actual, whole, rtol=1e-12, atol=1e-12)
    known = np.all([column < n for column, n in zip(rows, cardinalities, strict=True)], axis=0)
    np.testing.assert_array_equal(actual[:, known], whole[:, known])


def test_a_regrouped_attribute_is_looked_up_once_per_block() -> None:
    schema = Schema("class", ("n", "y"), tuple(CategoricalAttribute(c, False, (1.0,) * 4, tuple("pqrs")) for c in "ab"))
    grouping = (0, 0, 1, 1)
    families = (
        Family((0,), (4,), None),
        Family((0,), (2,), None, groupings=(grouping,)),
        Family((0, 1), (2, 2), None, groupings=(grouping, grouping)),
    )
    weights = tuple(np.zeros((family.n_cells, 2)) for family in families)
    model = Model(schema, Regions(((0,), (0, 1))), Tables(np.zeros(2), families, weights), Recipe(), 1, "0")
    scorer = compile_scorer(model)
    assert [position for position, _ in scorer.regrouped] == [0, 1]
    assert [factor.positions for factor in scorer.stages[0].factors] == [(0,), (2,), (2, 3)]


def binary_model(n: int, parents: tuple[tuple[int, ...], ...], n_labels: int = 2, cards: int = 2) -> Model:
    generator = np.random.default_rng(3)
    levels = tuple(f"v{v}" for v in range(cards))
    frequencies = tuple(float(v + 1) for v in range(cards))
    attributes = tuple(CategoricalAttribute(f"a{i}", False, frequencies, levels) for i in range(n))
    schema = Schema("class", tuple(f"y{y}" for y in range(n_labels)), attributes)
    dag = Dag(parents, tuple(range(n)))
    families = dag.families(schema.cardinalities)
    weights = tuple(generator.normal(size=(f.n_cells, n_labels)) for f in families)
    return Model(schema, dag, Tables(generator.normal(size=n_labels), families, weights), Recipe(), 1, "0")


def test_many_parents_are_not_expanded_and_score_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 13
    model = binary_model(n, (tuple(range(1, n)), *[()] * (n - 1)))
    rows = rows_of(model, 200, 0)
    rows = [np.where(np.random.default_rng(i).random(200) < 0.9, np.minimum(c, 1), c) for i, c in enumerate(rows)]
    kinds = [type(f).__name__ for f in compile_scorer(model).stages[0].factors]
    assert kinds == ["WideFactor"] + ["Factor"] * (n - 1)
    wide = scored(compile_scorer(model), rows, 200)
    monkeypatch.setattr(factors, "EXPANDED_ENTRIES", 1 << 24)
    expanded = compile_scorer(model)
    assert all(type(f).__name__ == "Factor" for f in expanded.stages[0].factors)
    np.testing.assert_allclose(wide, scored(expanded, rows, 200), rtol=1e-12)


@pytest.mark.parametrize("n_labels", [1, 2, 3, 26])
def test_the_size_of_blocks_does_not_matter(n_labels: int) -> None:
    model = binary_model(4, ((), (0,), (0, 1), (2,)), n_labels, cards=3)
    n = 2 * scoring.ROWS_PER_BLOCK + 17
    rows = rows_of(model, n, 1)
    scorer = compile_scorer(model)
    whole = scored(scorer, rows, n)
    assert whole.shape == (n_labels, n)
    for start in (0, scoring.ROWS_PER_BLOCK - 3, n - 5):
        part = scored(scorer, [c[start : start + 5] for c in rows], 5)
        np.testing.assert_array_equal(whole[:, start : start + 5], part)


@given(models(), st.integers(0, 99))
def test_probabilities_sum_to_one(model: Model, seed: int) -> None:
    log_p = scored(compile_scorer(model), rows_of(model, 9, seed), 9)
    assert (log_p <= 0).all()
    np.testing.assert_allclose(np.exp(log_p).sum(axis=0), 1.0, rtol=0, atol=1e-12)


@given(models(), st.integers(0, 99))
def test_a_constant_per_cell_changes_nothing(model: Model, seed: int) -> None:
    """A constant that a table adds to all classes cancels in P(y | x)."""
    generator = np.random.default_rng(seed)
    moved = tuple(w + generator.normal(size=(len(w), 1)) for w in model.tables.weights)
    other = replace(model, predictor=replace(model.tables, weights=moved))
    rows = rows_of(model, 9, seed)
    log_p = scored(compile_scorer(model), rows, 9)
    np.testing.assert_allclose(scored(compile_scorer(other), rows, 9), log_p, rtol=1e-9, atol=1e-9)


def test_huge_scores_stay_finite() -> None:
    model = binary_model(2, ((), ()), 3)
    huge = tuple(w * 1e300 for w in model.tables.weights)
    for n_labels in (2, 3):
        cut = tuple(w[:, :n_labels] for w in huge)
        tables = Tables(model.tables.bias[:n_labels], model.tables.families, cut)
        log_p = scored(compile_scorer(replace(model, predictor=tables)), rows_of(model, 9, 0), 9)
        assert np.isfinite(log_p).all()
        assert (log_p.max(axis=0) <= 0).all()


def test_without_attributes_every_row_has_the_prior() -> None:
    model = binary_model(0, ())
    log_p = log_probabilities(compile_scorer(model), [], 4)
    bias = model.tables.bias
    np.testing.assert_allclose(log_p, np.tile((bias - np.logaddexp(*bias))[:, None], 4))


def test_no_rows() -> None:
    model = binary_model(2, ((), (0,)))
    assert log_probabilities(compile_scorer(model), [np.empty(0, np.uint8)] * 2).shape == (2, 0)


def test_attributes_outside_the_tables_are_not_used() -> None:
    model = binary_model(4, ((), (), (1,), ()))
    tables = model.tables
    fewer = Tables(tables.bias, tables.families[2:3], tables.weights[2:3])
    assert compile_scorer(replace(model, predictor=fewer)).used == (1, 2)


@given(regrouped_models(), st.integers(0, 99), st.booleans(), st.floats(1e-6, 1.0))
def test_an_ensemble_is_the_average_of_its_components(model: Model, seed: int, wide: bool, weight: float) -> None:
    """Components share families or have their own; unknown codes are included."""
    rng = np.random.default_rng(seed)
    families, n_labels = model.tables.families, len(model.schema.labels)
    kept = [f for f in families if rng.integers(0, 2)]
    other = Tables(
        rng.normal(0, 300, n_labels), tuple(kept), tuple(rng.normal(size=(f.n_cells, n_labels)) for f in kept)
    )
    pool = (Component(weight, model.tables, "one"), Component(1.0 - weight, other, "two"))[: 2 if weight < 1 else 1]
    rows = rows_of(model, 12, seed)
    parts = [scored(compile_scorer(replace(model, predictor=m.tables)), rows, 12) + np.log(m.weight) for m in pool]
    with pytest.MonkeyPatch.context() as patch:
        if wide:
            patch.setattr(factors, "EXPANDED_ENTRIES", 0)
        actual = scored(compile_scorer(replace(model, predictor=Ensemble(pool))), rows, 12)
    np.testing.assert_allclose(actual, np.logaddexp.reduce(parts), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n_labels", [2, 7])
def test_equals_the_definition_whatever_the_number_of_threads(monkeypatch: pytest.MonkeyPatch, n_labels: int) -> None:
    monkeypatch.setattr(dataset, "ROWS_PER_BLOCK", 10)
    model = boosted_model(random_schema(5, n_labels, intervals=5), 40, most=3)
    data = Dataset(model.schema, tuple(random_codes(model.schema, 50, unknown=0.1)), np.zeros(50, np.uint8))
    assert len(data.bounds()) > 1
    expected = [slow_log_probabilities(model, {i: int(c[t]) for i, c in enumerate(data.codes)}) for t in range(50)]
    actual = log_probabilities_of(model.predictor, data)
    np.testing.assert_allclose(actual, np.array(expected).T, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(actual, log_probabilities_of(model.predictor, replace(data, threads=2)))


def test_rows_of_a_data_set_score_like_rows_of_a_table() -> None:
    model = mixed_ensemble(random_schema(6, 3), 70)
    codes = random_codes(model.schema, 30)
    scorer = compile_scorer(model)
    expected = log_probabilities(scorer, [codes[a] for a in scorer.used])
    data = Dataset(model.schema, tuple(codes), np.zeros(30, np.uint8))
    np.testing.assert_array_equal(log_probabilities_of(model.predictor, data), expected)


def test_no_rows_and_no_attributes() -> None:
    model = boosted_model(random_schema(3, 2), 0)
    nothing = Dataset(model.schema, tuple(random_codes(model.schema, 0)), np.zeros(0, np.uint8))
    assert log_probabilities_of(model.predictor, nothing).shape == (2, 0)
    some = Dataset(model.schema, tuple(random_codes(model.schema, 4)), np.zeros(4, np.uint8))
    assert len(np.unique(log_probabilities_of(model.predictor, some)[0])) == 1


@pytest.mark.parametrize("n_labels", [1, 2, 3])
def test_shares_are_those_of_the_softmax(n_labels: int) -> None:
    tables = np.random.default_rng(0).normal(scale=20, size=(50, n_labels))
    scores = score_rows(tables)
    log_p = np.empty((n_labels, 50))
    write_log_softmax(scores, log_p)
    expected = tables.T - np.logaddexp.reduce(tables.T)
    np.testing.assert_allclose(log_p, expected, rtol=1e-9, atol=1e-12)
    shares = np.zeros((n_labels, 50))
    for weight in (0.25, 0.75):
        add_softmax(scores, weight, shares)
    np.testing.assert_allclose(shares, np.exp(expected), rtol=1e-12)
    log_shares(shares)
    np.testing.assert_allclose(shares, expected, rtol=1e-9, atol=1e-12)


def test_the_likelier_of_two_classes_keeps_its_digits() -> None:
    shares = np.zeros((2, 2))
    add_softmax(np.array([[-40.0, 40.0]]), 1.0, shares)
    log_shares(shares)
    tiny = -math.log1p(math.exp(-40))
    np.testing.assert_allclose(shares, [[tiny, -40.0], [-40.0, tiny]], rtol=1e-12)


def test_no_share_becomes_infinite() -> None:
    for scores in (np.array([[-1e5, 1e300]]), np.array([[0.0, 0.0], [1e300, -1e5], [1.0, 1.0]])):
        shares = np.zeros((max(len(scores), 2), 2))
        add_softmax(scores, 1.0, shares)
        log_shares(shares)
        assert np.isfinite(shares).all()


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
