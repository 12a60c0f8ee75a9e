"""What a model says about few rows, and the pooled model beside averages made cell by cell."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bncli.engine.data.schema import CategoricalAttribute, NumericAttribute, Schema
from bncli.engine.model import Model, Tables
from bncli.engine.networks.network import network_of, true_model
from bncli.engine.prediction.disclosure import OTHER, find_disclosure, pool_rare_values
from bncli.errors import ModelError
from tests.engine.small_networks import networks
from tests.oracles import digit
from tests.strategies import models, regrouped_models
from tests.sweeps import examples

ANY = models(max_attributes=4) | regrouped_models()


def old_codes(model: Model, pooled: Model, a: int) -> list[list[int]]:
    """The codes that became each code of an attribute, found from its cuts and groups."""
    old, new = model.schema.attributes[a], pooled.schema.attributes[a]
    if isinstance(old, NumericAttribute):
        assert isinstance(new, NumericAttribute)
        ends = [*old.cuts, math.inf]
        codes = [
            [c for c in range(old.n_values) if np.searchsorted(new.cuts, ends[c]) == n] for n in range(new.n_values)
        ]
    else:
        assert isinstance(new, CategoricalAttribute)
        levels = [set(group) for group in new.groups] or [{level} for level in new.levels]
        codes = [[c for c, level in enumerate(old.levels) if level in group] for group in levels]
    return codes + [[old.n_values]] * new.missing


@settings(max_examples=examples(20), deadline=None)
@given(ANY, st.integers(1, 12))
def test_nothing_below_the_minimum_is_left(model: Model, min_rows: int) -> None:
    pooled, listed = pool_rare_values(model, min_rows)
    left = find_disclosure(pooled, min_rows)
    lone = {a.name for a in pooled.schema.attributes if a.n_values == 1}
    assert {value.attribute for value in left.values} <= lone
    before = find_disclosure(model, min_rows)
    assert {one.attribute for one in listed} <= {value.attribute for value in before.values}
    if not before.values:
        assert pooled.schema == model.schema
    for a, (old, new) in enumerate(zip(model.schema.attributes, pooled.schema.attributes, strict=True)):
        kept = [c for codes in old_codes(model, pooled, a) for c in codes]
        assert kept == sorted(kept) or isinstance(old, CategoricalAttribute)
        assert sorted(kept) == list(range(old.n_values + new.missing))


@settings(max_examples=examples(20), deadline=None)
@given(ANY, st.integers(1, 12))
def test_entries_are_averages_by_frequency(model: Model, min_rows: int) -> None:
    assert isinstance(model.predictor, Tables)
    pooled, _ = pool_rare_values(model, min_rows)
    assert isinstance(pooled.predictor, Tables)
    groups = [old_codes(model, pooled, a) for a in range(len(model.schema.attributes))]
    pairs = zip(model.predictor.families, pooled.predictor.families, strict=True)
    for f, (family, new) in enumerate(pairs):
        assert new.attributes == family.attributes
        for cell, codes in enumerate(itertools.product(*(range(len(groups[a])) for a in family.attributes))):
            expected = np.zeros(len(model.schema.labels))
            total = 0.0
            members = [groups[a][code] for a, code in zip(family.attributes, codes, strict=True)]
            weights = [
                {
                    c: (w if any(model.schema.attributes[a].frequencies[d] for d in group) else 1.0)
                    for c, w in ((c, model.schema.attributes[a].frequencies[c]) for c in group)
                }
                for a, group in zip(family.attributes, members, strict=True)
            ]
            for old in itertools.product(*members):
                share = math.prod(weight[c] for weight, c in zip(weights, old, strict=True))
                row = 0
                for position, (c, n) in enumerate(zip(old, family.shape, strict=True)):
                    row = row * n + digit(family, position, c)
                expected += share * model.predictor.weights[f][row]
                total += share
            np.testing.assert_allclose(pooled.predictor.weights[f][cell], expected / total, atol=1e-9)


@settings(max_examples=examples(6), deadline=None)
@given(networks(), st.integers(1, 8), st.integers(0, 1000))
def test_a_network_stays_one(network: object, min_rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = network.schema.cardinalities  # type: ignore[attr-defined]
    frequencies = [rng.integers(0, 10, n).tolist() for n in sizes]
    model = true_model(network, frequencies, 50)  # type: ignore[arg-type]
    try:
        network_of(model)
    except ModelError:
        assume(False)
    pooled, _ = pool_rare_values(model, min_rows)
    for theta in network_of(pooled).theta:
        np.testing.assert_allclose(theta.sum(axis=0), 1.0)


def test_what_is_listed() -> None:
    colour = CategoricalAttribute("colour", True, (3.0, 40.0, 5.0, 2.0), levels=("red", "green", "blue"))
    age = NumericAttribute("age", False, (30.0, 4.0, 16.0), cuts=(10.0, 20.0))
    schema = Schema("y", ("no", "yes"), (colour, age), label_frequencies=(42.0, 8.0))
    model = next_model(schema)
    found = find_disclosure(model, 10)
    assert [(value.attribute, value.value, value.rows) for value in found.values] == [
        ("y", "yes", 8.0),
        ("colour", "red", 3.0),
        ("colour", "blue", 5.0),
        ("colour", "missing", 2.0),
        ("age", "10..20", 4.0),
    ]
    with pytest.raises(ModelError, match="'yes' has only 8 training rows"):
        pool_rare_values(model, 10)
    pooled, listed = pool_rare_values(replace(model, schema=replace(schema, label_frequencies=())), 7)
    assert [tuple(one) for one in listed] == [
        ("colour", ("missing",), None),
        ("colour", ("red", "blue"), OTHER),
        ("age", ("10..20", ">20"), ">10"),
    ]
    colours, ages = pooled.schema.attributes
    assert isinstance(colours, CategoricalAttribute)
    assert colours.groups == (("green",), ("red", "blue"))
    assert colours.frequencies == (40.0, 8.0)
    assert isinstance(ages, NumericAttribute)
    assert ages.cuts == (10.0,)


def test_cells_have_at_least_and_at_most_as_many_rows_as_their_values_allow() -> None:
    one = CategoricalAttribute("a", False, (45.0, 5.0), levels=("x", "z"))
    other = CategoricalAttribute("b", False, (30.0, 20.0), levels=("u", "v"))
    model = next_model(Schema("y", ("no", "yes"), (one, other)), joint=True)
    (table,) = find_disclosure(model, 10).tables
    # x & u: 25 to 30 rows; x & v: 15 to 20; both cells of z: at most 5
    assert (table.cells, table.below, table.unknown) == (4, 2, 0)
    (table,) = find_disclosure(model, 20).tables
    assert (table.cells, table.below, table.unknown) == (4, 2, 1)


def next_model(schema: Schema, *, joint: bool = False) -> Model:
    from bncli.engine.structures.structure import Dag
    from bncli.recipe import Recipe

    dag = Dag(((), (0,)), (1,)) if joint else Dag(((), ()), (0, 1))
    families = dag.families(schema.cardinalities)
    weights = tuple(np.zeros((family.n_cells, 2)) for family in families)
    return Model(schema, dag, Tables(np.zeros(2), families, weights), Recipe(), 50, "1")
