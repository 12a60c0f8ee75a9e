"""Effects against an enumeration of all cells, and the laws that make them mean one thing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.schema import CategoricalAttribute, Schema
from bncli.engine.model import Model, Tables
from bncli.engine.prediction.effects import Effects, effects_of
from bncli.engine.prediction.purification import ContrastTensor
from bncli.engine.structures.structure import Dag, Regions
from bncli.errors import BncliError
from bncli.recipe import Recipe
from tests.engine.prediction.enumeration import Floats, slow_terms, slow_variance
from tests.paths import Case, learnt_paths, model_of, path_of, reweighed
from tests.strategies import models, regrouped_models


def fine(tensor: ContrastTensor, schema: Schema) -> Floats:
    """Return the tensor's values over the codes of the schema."""
    values = tensor.shown
    for axis, grouping in enumerate(tensor.groupings):
        if grouping is not None:
            values = values.take(grouping, axis=axis)
    return values


def small(model: Model) -> bool:
    return np.prod(model.schema.cardinalities) <= 300


@given(models(max_attributes=4).filter(small) | regrouped_models().filter(small))
def test_equals_the_enumeration_of_all_cells(model: Model) -> None:
    found = effects_of(model)
    slow = slow_terms(model.tables, model.schema)
    scale = max(1.0, *(float(np.abs(term).max()) for term in slow.values()))
    np.testing.assert_allclose(found.constant, slow.pop(()), rtol=0, atol=1e-10 * scale)
    by_set = {effect.tensor.attributes: effect for effect in found.effects}
    variances = {subset: slow_variance(term, subset, model.schema) for subset, term in slow.items()}
    total = sum(variances.values())
    for subset, term in slow.items():
        if subset not in by_set:
            np.testing.assert_allclose(term, 0.0, rtol=0, atol=1e-10 * scale)
            continue
        effect = by_set[subset]
        np.testing.assert_allclose(fine(effect.tensor, model.schema), term, rtol=0, atol=1e-10 * scale)
        assert effect.share == pytest.approx(variances[subset] / total if total > 1e-20 else effect.share, abs=1e-9)


@given(models())
def test_shares_fall_and_sum_to_one(model: Model) -> None:
    shares = [effect.share for effect in effects_of(model).effects]
    assert shares == sorted(shares, reverse=True)
    assert not any(shares) or sum(shares) == pytest.approx(1.0)


def overlapping(weights: tuple[Floats, ...]) -> Model:
    attributes = tuple(CategoricalAttribute(name, False, (1.0, 2.0, 5.0), tuple("uvw")) for name in "abc")
    schema = Schema("class", ("p", "q", "r"), attributes)
    regions = Regions(((0, 1), (0, 2), (1, 2)))
    tables = Tables(np.arange(3.0), regions.families(schema.cardinalities), weights)
    return Model(schema, regions, tables, Recipe(), 8, "0")


def same(one: Effects, other: Effects) -> None:
    np.testing.assert_allclose(one.constant, other.constant, rtol=0, atol=1e-12)
    assert [e.tensor.attributes for e in one.effects] == [e.tensor.attributes for e in other.effects]
    for left, right in zip(one.effects, other.effects, strict=True):
        np.testing.assert_allclose(left.tensor.shown, right.tensor.shown, rtol=0, atol=1e-12)


def test_moving_effects_between_tables_changes_nothing() -> None:
    """A curve of a shared attribute, a constant, and what is equal for all classes can move between tables."""
    generator = np.random.default_rng(5)
    ab, ac, bc = (generator.normal(size=(3, 3, 3)) for _ in range(3))
    curve, constant, alike = generator.normal(size=(3, 3)), generator.normal(size=3), generator.normal(size=(3, 3, 1))
    model = overlapping(tuple(w.reshape(9, 3) for w in (ab, ac, bc)))
    moved = (ab + curve[:, None, :], ac - curve[:, None, :] + constant, bc - constant + alike)
    same(effects_of(model), effects_of(overlapping(tuple(w.reshape(9, 3) for w in moved))))


@given(learnt_paths(), st.integers(0, 9))
def test_effects_of_a_path_are_those_of_the_average_score(case: Case, seed: int) -> None:
    data, regions, learnt, _ = case
    shares = np.random.default_rng(seed).dirichlet(np.ones(len(path_of(learnt).steps))).tolist()
    path = reweighed(path_of(learnt), shares)
    model = replace(model_of(data, regions, learnt), predictor=path)
    found = effects_of(model)
    assert found.models == len(path.steps)
    members = [(step.weight, path.tables(s)) for s, step in enumerate(path.steps)]
    constant = np.zeros(len(data.schema.labels))
    expected = {effect.tensor.attributes: np.zeros(effect.tensor.shown.shape) for effect in found.effects}
    for weight, tables in members:
        alone = effects_of(replace(model, predictor=tables))
        constant += weight * alone.constant
        for effect in alone.effects:
            expected[effect.tensor.attributes] += weight * effect.tensor.shown
    np.testing.assert_allclose(found.constant, constant, rtol=0, atol=1e-10)
    for effect in found.effects:
        np.testing.assert_allclose(effect.tensor.shown, expected[effect.tensor.attributes], rtol=0, atol=1e-10)


@pytest.mark.parametrize("scale", [2.0**600, 2.0**-600])
def test_shares_do_not_depend_on_the_scale(scale: float) -> None:
    """Shares are the same even if squares of values overflow or underflow."""
    generator = np.random.default_rng(6)
    weights = tuple(generator.normal(size=(9, 3)) for _ in range(3))
    shares = [effect.share for effect in effects_of(overlapping(weights)).effects]
    scaled = effects_of(overlapping(tuple(scale * w for w in weights))).effects
    assert [effect.share for effect in scaled] == shares


def test_a_model_without_attributes_has_only_a_constant() -> None:
    schema = Schema("class", ("n", "y"), ())
    model = Model(schema, Dag((), ()), Tables(np.array([0.0, 2.0]), (), ()), Recipe(), 1, "0")
    found = effects_of(model)
    assert (found.constant.tolist(), found.effects, found.models) == ([-2.0, 2.0], (), 1)


def test_a_table_over_too_many_attributes_is_refused() -> None:
    attributes = tuple(CategoricalAttribute(f"a{i}", False, (1.0, 1.0), ("u", "v")) for i in range(9))
    schema = Schema("class", ("n", "y"), attributes)
    regions = Regions((tuple(range(9)),))
    tables = Tables(np.zeros(2), regions.families(schema.cardinalities), (np.zeros((512, 2)),))
    with pytest.raises(BncliError, match="effects in a table over 9 attributes cannot be separated"):
        effects_of(Model(schema, regions, tables, Recipe(), 1, "0"))
