"""Effects and contributions of very many tables: against an enumeration of all cells, and against tables one by one."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.data.schema import NumericAttribute
from bncli.engine.model import Model, Tables
from bncli.engine.prediction import contributions, effects, purification
from bncli.engine.prediction.contributions import Explainer, Explanation, value_names
from bncli.engine.prediction.effects import effects_of
from bncli.engine.prediction.purification import MANY_TABLES, are_many, mixture_of
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities
from bncli.engine.structures.regrouping import group_intervals_by_size
from bncli.engine.structures.structure import Family, Regions
from bncli.recipe import Recipe
from tests.effects import intervals_of
from tests.engine.prediction.enumeration import against_others, slow_terms, slow_variance
from tests.engine.prediction.test_effects import fine, small
from tests.many_tables import boosted_model, boosted_tables, mixed_ensemble, random_codes, random_schema
from tests.strategies import models, regrouped_models
from tests.sweeps import examples, first_few


def explained(model: Model, rows: list[np.ndarray], most: int = 1000) -> tuple[Explanation, NDArray[np.float64]]:
    scorer = compile_scorer(model)
    codes = [rows[a] for a in scorer.used]
    log_p = log_probabilities(scorer, codes, len(rows[0]) if rows else 3)
    return Explainer(model, scorer.used).explain(codes, log_p, log_p.argmax(axis=0), most), log_p


def as_few(patch: pytest.MonkeyPatch, model: Model) -> None:
    """Keep every table by itself, as in a model with few tables."""
    patch.setattr(purification, "are_many", lambda families, cardinalities: False)
    assert not any(term.tables for term in mixture_of(model.predictor, model.schema).terms)


def contributions_of(why: Explanation, t: int) -> dict[tuple[str, ...], tuple[float, tuple[str, ...]]]:
    """Return the contributions of a row by their attributes, each with the values of these."""
    named = zip(why.contributions[:, t].tolist(), why.term_of[:, t].tolist(), strict=True)
    texts = [(value, why.terms[term]) for value, term in named if term >= 0]
    return {text.attributes: (value, text.values) for value, text in texts}


@given(models() | regrouped_models(), st.integers(0, 99))
def test_any_model_is_explained_as_table_by_table(model: Model, seed: int) -> None:
    """Models include tables with a child, which are never kept as PureTables, unknown values and missing levels."""
    rows = random_codes(model.schema, 9, seed, unknown=0.3)
    expected, _ = explained(model, rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(purification, "MANY_TABLES", 1)
        actual, _ = explained(model, rows)
    scale = max(1.0, float(np.abs(expected.log_odds).max(initial=0.0)))
    np.testing.assert_allclose(actual.base, expected.base, rtol=0, atol=1e-11 * scale)
    for t in range(len(expected.base)):
        one, other = contributions_of(actual, t), contributions_of(expected, t)
        for key in one.keys() | other.keys():
            assert one.get(key, (0.0,))[0] == pytest.approx(other.get(key, (0.0,))[0], abs=1e-10 * scale)
            if key in one and key in other:
                # Tables one by one join the intervals between which they make no difference.
                for name, cut, joined in zip(key, one[key][1], other[key][1], strict=True):
                    if cut != joined:
                        attribute = next(each for each in model.schema.attributes if each.name == name)
                        assert value_names(attribute).index(cut) in intervals_of(attribute, joined)


@pytest.mark.slow
@pytest.mark.parametrize("n_labels", first_few([2, 1, 7]))
def test_contributions_of_many_tables_sum_to_the_log_odds(n_labels: int) -> None:
    model = boosted_model(random_schema(12, n_labels), MANY_TABLES + 50)
    assert mixture_of(model.predictor, model.schema).terms[0].tables
    rows = random_codes(model.schema, 60, unknown=0.05)
    why, log_p = explained(model, rows, 3)
    odds = [against_others(log_p[:, t].tolist())[log_p[:, t].argmax()] if n_labels > 1 else 0.0 for t in range(60)]
    np.testing.assert_allclose(why.log_odds, odds, rtol=0, atol=1e-11)
    np.testing.assert_allclose(why.base + why.contributions.sum(axis=0) + why.rest, odds, rtol=0, atol=1e-11)
    np.testing.assert_allclose(why.base, effects_of(model).constant[log_p.argmax(axis=0)], rtol=0, atol=1e-12)


@pytest.mark.slow
def test_contributions_of_an_ensemble_are_those_of_its_tables_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    model = mixed_ensemble(random_schema(6, 3, intervals=8), 2 * MANY_TABLES + 20, most=3)
    rows = random_codes(model.schema, 25, unknown=0.05)
    many, _ = explained(model, rows)
    monkeypatch.setattr(contributions, "NUMBERS_OF_MANY_TABLES", 300)
    in_blocks, _ = explained(model, rows)
    as_few(monkeypatch, model)
    few, _ = explained(model, rows)
    for t in range(25):
        expected = contributions_of(few, t)
        assert contributions_of(many, t).keys() == expected.keys()
        for key, (value, seen) in expected.items():
            assert contributions_of(many, t)[key] == (pytest.approx(value, abs=1e-11), seen)
            assert contributions_of(in_blocks, t)[key] == (pytest.approx(value, abs=1e-11), seen)


def test_an_unknown_attribute_contributes_nothing() -> None:
    model = boosted_model(random_schema(5, 2, intervals=9), MANY_TABLES, most=4)
    rows = random_codes(model.schema, 4)
    rows[2][:] = model.schema.cardinalities[2]
    why, _ = explained(model, rows)
    names = [attribute.name for attribute in model.schema.attributes]
    for t in range(4):
        assert all(value == 0.0 for key, (value, _) in contributions_of(why, t).items() if names[2] in key)


@given((models(max_attributes=4) | regrouped_models()).filter(small))
def test_joint_effects_equal_the_enumeration_of_all_cells(model: Model) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(purification, "MANY_TABLES", 1)
        found = effects_of(model)
    slow = slow_terms(model.tables, model.schema)
    scale = max(1.0, *(float(np.abs(term).max()) for term in slow.values()))
    np.testing.assert_allclose(found.constant, slow.pop(()), rtol=0, atol=1e-10 * scale)
    by_set = {effect.tensor.attributes: effect for effect in found.effects}
    total = sum(slow_variance(term, subset, model.schema) for subset, term in slow.items())
    for subset, term in slow.items():
        if subset in by_set:
            effect = by_set[subset]
            np.testing.assert_allclose(fine(effect.tensor, model.schema), term, rtol=0, atol=1e-10 * scale)
            share = slow_variance(term, subset, model.schema) / total if total > 1e-20 else effect.share
            assert effect.share == pytest.approx(share, abs=1e-9)
        else:
            np.testing.assert_allclose(term, 0.0, rtol=0, atol=1e-10 * scale)


def test_tables_with_different_binnings_are_one_effect_per_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """The common refinement has few cells; compared with every table by itself."""
    model = boosted_model(random_schema(4, 3, intervals=10), MANY_TABLES, most=3)
    monkeypatch.setattr(effects, "MOST_CELLS", 1 << 20)
    many = effects_of(model)
    as_few(monkeypatch, model)
    few = {effect.tensor.attributes: effect for effect in effects_of(model).effects}
    assert len(many.effects) == len(few)
    for effect in many.effects:
        expected = few[effect.tensor.attributes]
        assert effect.share == pytest.approx(expected.share, rel=1e-9)
        assert not effect.averaged
        np.testing.assert_allclose(fine(effect.tensor, model.schema), fine(expected.tensor, model.schema), atol=1e-12)


@pytest.mark.slow
def test_with_many_cells_shares_are_sampled_and_values_averaged(monkeypatch: pytest.MonkeyPatch) -> None:
    model = boosted_model(random_schema(4, 2, intervals=30), MANY_TABLES, most=3)
    monkeypatch.setattr(effects, "MOST_CELLS", 60)
    few_cells, again = effects_of(model), effects_of(model)
    assert [effect.share for effect in few_cells.effects] == [effect.share for effect in again.effects]
    monkeypatch.setattr(effects, "MOST_CELLS", 1 << 20)
    exact = {effect.tensor.attributes: effect for effect in effects_of(model).effects}
    averaged = [effect for effect in few_cells.effects if effect.averaged]
    assert len(averaged) >= 4
    for effect in averaged:
        other = exact[effect.tensor.attributes]
        assert effect.share == pytest.approx(other.share, rel=0.1)
        # averages of the exact values by the training frequencies
        values, schema = fine(other.tensor, model.schema), model.schema
        for axis, (a, grouping) in enumerate(zip(effect.tensor.attributes, effect.tensor.groupings, strict=True)):
            q = np.array(schema.attributes[a].frequencies)
            codes = np.arange(len(q)) if grouping is None else np.array(grouping)
            given_cell = (codes[None, :] == np.arange(codes.max() + 1)[:, None]) * q
            given_cell /= given_cell.sum(axis=1, keepdims=True)
            values = np.moveaxis(np.tensordot(given_cell, values, axes=(1, axis)), 0, axis)
        np.testing.assert_allclose(effect.tensor.shown, values, atol=1e-12)


def test_effects_that_are_not_listed_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    model = boosted_model(random_schema(7, 2, intervals=5), MANY_TABLES, most=3)
    every = effects_of(model)
    assert every.left_out is None
    monkeypatch.setattr(effects, "MOST_EFFECTS", 5)
    some = effects_of(model)
    assert some.left_out is not None
    assert some.left_out.n_effects == len(every.effects) - 5
    assert some.left_out.share == pytest.approx(sum(effect.share for effect in every.effects[5:]))
    assert [effect.share for effect in some.effects] == [effect.share for effect in every.effects[:5]]


@pytest.mark.slow
@settings(max_examples=examples(6))
@given(st.sampled_from([1e-200, 1e200]))
def test_shares_do_not_depend_on_the_scale(scale: float) -> None:
    model = boosted_model(random_schema(4, 2, intervals=20), MANY_TABLES, most=2)
    tables = model.tables
    scaled = Tables(tables.bias, tables.families, tuple(scale * weights for weights in tables.weights))
    one, other = effects_of(model), effects_of(replace(model, predictor=scaled))
    assert [e.share for e in one.effects] == pytest.approx([e.share for e in other.effects], rel=1e-9)


def test_large_tables_and_children_are_kept_apart() -> None:
    schema = random_schema(5, 2, intervals=100)
    model = boosted_model(schema, MANY_TABLES, most=3)
    large, child = Family.over((0, 2, 4), schema.cardinalities), Family.over((1, 3), schema.cardinalities, child=1)
    tables, generator = model.tables, np.random.default_rng(0)
    more = tuple(generator.normal(size=(family.n_cells, 2)) for family in (large, child))
    whole = replace(model, predictor=Tables(tables.bias, (*tables.families, large, child), (*tables.weights, *more)))
    score = mixture_of(whole.predictor, schema).terms[0]
    assert (len(score.tables), len(score.tensors)) == (MANY_TABLES, 2)
    rows = random_codes(schema, 30, unknown=0.1)
    why, log_p = explained(whole, rows, 4)
    odds = [against_others(log_p[:, t].tolist())[log_p[:, t].argmax()] for t in range(30)]
    np.testing.assert_allclose(why.base + why.contributions.sum(axis=0) + why.rest, odds, rtol=0, atol=1e-11)
    assert sum(effect.share for effect in effects_of(whole).effects) == pytest.approx(1.0)


def test_few_tables_with_many_binnings_do_not_become_too_large() -> None:
    """The common refinement of twelve tables over the same six attributes would have millions of cells."""
    schema = random_schema(6, 2, intervals=64)
    families = [f for f in boosted_tables(schema, 300).families if len(f.attributes) == 6][:12]
    generator = np.random.default_rng(0)
    weights = tuple(generator.normal(size=(family.n_cells, 2)) for family in families)
    model = Model(
        schema, Regions(((0, 1, 2, 3, 4, 5),)), Tables(np.zeros(2), tuple(families), weights), Recipe(), 9, "0"
    )
    found = effects_of(model)
    assert len(found.effects) == 63
    assert max(effect.tensor.shown.size for effect in found.effects) < 10_000
    rows = random_codes(schema, 20, unknown=0.05)
    why, log_p = explained(model, rows, 4)
    odds = [against_others(log_p[:, t].tolist())[log_p[:, t].argmax()] for t in range(20)]
    np.testing.assert_allclose(why.base + why.contributions.sum(axis=0) + why.rest, odds, rtol=0, atol=1e-11)


def test_tables_with_few_binnings_are_one_tensor_per_set() -> None:
    """Binnings depend on the size of the region, as in models of regions: no effect is averaged."""
    schema = random_schema(8, 2, intervals=200)
    numeric = [i for i, attribute in enumerate(schema.attributes) if isinstance(attribute, NumericAttribute)]
    bins = {
        2: group_intervals_by_size(schema.attributes, [20])[0],
        3: group_intervals_by_size(schema.attributes, [8])[0],
    }
    sets = [*itertools.combinations(numeric, 2), *itertools.combinations(numeric, 3)]
    families = [Family.over(key, schema.cardinalities, groupings=tuple(bins[len(key)][a] for a in key)) for key in sets]
    assert not are_many([*families, *(Family.over((a,), schema.cardinalities) for a in numeric)], schema.cardinalities)
