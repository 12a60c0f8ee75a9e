"""Prior networks against the sum over all joint states, and fits with them against counts made by hand."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.columns import MISSING, CategoricalColumn, Columns, NumericColumn
from bncli.engine.data.schema import CategoricalAttribute, Schema
from bncli.engine.evaluation.cross_validation import predict
from bncli.engine.learn import SuppliedParts, learn
from bncli.engine.model import Model
from bncli.engine.networks import prior_network
from bncli.engine.networks.network import NamedNetwork, Network, Node, network_of
from bncli.engine.networks.prior_network import PriorNetwork
from bncli.engine.prediction.network_models import model_of_network
from bncli.errors import BncliError
from bncli.recipe import Recipe
from tests.datasets import random_dataset
from tests.engine.prediction.test_network_models import random_named_network

NETWORK_PARAMS = ("map", "weighted", "discriminative", "extended", "lr", "lr-roos", "em", "apn")


def random_prior(seed: int, n_nodes: int, rows: float = 10.0) -> PriorNetwork:
    rng = np.random.default_rng(seed)
    model, _ = model_of_network(random_named_network(rng, n_nodes), f"x{rng.integers(n_nodes)}")
    return PriorNetwork(network_of(model), rows, "net.bnc")


def joint(network: Network) -> np.ndarray:
    """Q(x, y) of every row, one axis per attribute and the class last, factor by factor."""
    structure = network.structure
    table = np.zeros((*network.schema.cardinalities, len(network.schema.labels)))
    for state in itertools.product(*map(range, table.shape)):
        p = network.theta_class[(*(state[j] for j in structure.class_parents), state[-1])]
        for i, theta in enumerate(network.theta):
            by_class = (state[-1],) if i in structure.class_children else ()
            p = p * theta[(state[i], *(state[j] for j in structure.parents[i]), *by_class)]
        table[state] = p
    return table


@given(st.integers(0, 10_000), st.integers(2, 6), st.data())
def test_probabilities_of_any_attributes_are_sums_over_the_others(seed: int, n_nodes: int, data: st.DataObject) -> None:
    prior = random_prior(seed, n_nodes)
    members = data.draw(st.lists(st.integers(0, n_nodes - 2), unique=True, max_size=3))
    others = tuple(i for i in range(n_nodes - 1) if i not in members)
    summed = joint(prior.network).sum(axis=others)
    ascending = sorted(members)
    expected = summed.transpose(*(ascending.index(i) for i in members), len(members))
    np.testing.assert_allclose(prior.probabilities(members), expected, rtol=1e-12, atol=1e-15)


def test_a_schema_may_have_attributes_levels_and_labels_in_another_order_and_fewer_attributes() -> None:
    prior = random_prior(3, 5, rows=7.0)
    own = prior.network.schema
    attribute = own.attributes[2]
    assert isinstance(attribute, CategoricalAttribute)
    turned = replace(attribute, levels=attribute.levels[::-1])
    schema = Schema(own.class_name, own.labels[::-1], (turned, own.attributes[0]))
    expected = 7.0 * joint(prior.network).sum(axis=(1, 3)).transpose(1, 0, 2)[::-1, :, ::-1]
    np.testing.assert_allclose(prior.aligned(schema).expected((0, 1)), expected, rtol=1e-12)


@pytest.mark.parametrize("most", [10_000, 5], ids=["every row", "drawn"])
def test_rows_of_the_prior_have_its_weight_and_its_distribution(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    prior = random_prior(4, 4, rows=50.0)
    schema = prior.network.schema
    data = replace(random_dataset(20, schema.cardinalities, len(schema.labels)), schema=schema)
    if most == 5:
        monkeypatch.setattr(prior_network, "MOST_ROWS", 5)
        assert np.prod(schema.cardinalities) > 5
    rows = prior.aligned(schema).added_to(data)
    assert rows.total_weight == pytest.approx(70.0)
    assert all((own[:20] == more[:20]).all() for own, more in zip(data.codes, rows.codes, strict=True))
    added = rows.take(np.arange(20, rows.n_rows))
    table = np.zeros((*schema.cardinalities, len(schema.labels)))
    assert added.weights is not None
    np.add.at(table, (*added.codes, added.labels), added.weights)
    full = joint(prior.network)
    if most == 10_000:
        np.testing.assert_allclose(table, 50.0 * full, rtol=1e-12)
    else:  # given its attributes, a drawn row has the labels in the network's proportions
        drawn = table.sum(axis=-1) > 0
        np.testing.assert_allclose(
            (table / table.sum(axis=-1, keepdims=True).clip(1e-300))[drawn],
            (full / full.sum(axis=-1, keepdims=True))[drawn],
            rtol=1e-12,
        )


# --- fits -----------------------------------------------------------------------------------------------------------


def expert() -> tuple[Model, NamedNetwork]:
    """A tree below the class: a -> b, with probabilities that are easy to add by hand."""
    nodes = (
        Node("sick", ("no", "yes"), (), np.array([0.75, 0.25])),
        Node("a", ("u", "v"), ("sick",), np.array([[0.5, 0.5], [0.2, 0.8]])),
        Node("b", ("s", "t"), ("sick", "a"), np.array([[[0.9, 0.1], [0.4, 0.6]], [[0.3, 0.7], [0.6, 0.4]]])),
    )
    network = NamedNetwork("made", "sick", nodes)
    return model_of_network(network)[0], network


def table_of(n_rows: int, seed: int = 1, missing: float = 0.0) -> Columns:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, (3, n_rows))
    codes[:2][rng.random((2, n_rows)) < missing] = MISSING
    a, b = CategoricalColumn(codes[0], ("u", "v")), CategoricalColumn(codes[1], ("s", "t"))
    return Columns(n_rows, {"a": a, "b": b}, "sick", CategoricalColumn(codes[2], ("no", "yes")))


def fit(columns: Columns, rows: float, **words: Any) -> Model:
    prior = PriorNetwork(network_of(expert()[0]), rows, "net.bnc")
    recipe = Recipe.of(prior_network="net.bnc", prior_rows=rows, **words)
    return learn(columns, recipe, supplied=SuppliedParts(prior=prior)).model


def all_rows() -> Columns:
    a, b = np.array([[0, 0, 1, 1], [0, 1, 0, 1]])
    return Columns(4, {"a": CategoricalColumn(a, ("u", "v")), "b": CategoricalColumn(b, ("s", "t"))}, "sick", None)


def test_counts_are_those_of_the_rows_and_the_expected_ones_of_the_network() -> None:
    columns = table_of(30)
    model = fit(columns, 8.0, structure="nb", param="map", smoothing="mle")
    a, labels = columns.attributes["a"].codes, columns.label.codes  # type: ignore[union-attr]
    n = [[np.sum((a == k) & (labels == y)) for k in (0, 1)] for y in (0, 1)]
    # 8 rows: 6 are not sick, half of these have u, and 2 are sick, of whom 0.4 have u
    expected = [[(n[0][0] + 3) / (sum(n[0]) + 6), (n[0][1] + 3) / (sum(n[0]) + 6)]]
    expected += [[(n[1][0] + 0.4) / (sum(n[1]) + 2), (n[1][1] + 1.6) / (sum(n[1]) + 2)]]
    np.testing.assert_allclose(np.exp(model.tables.weights[0].T), expected, rtol=1e-12)
    of_class = [(sum(n[0]) + 6) / 38, (sum(n[1]) + 2) / 38]
    np.testing.assert_allclose(np.exp(model.tables.bias), of_class, rtol=1e-12)


@pytest.mark.parametrize("smoothing", ["mle", "laplace", "m-estimate", "fgg", "bdeu", "hdp"])
def test_closed_forms_become_the_network_as_its_rows_grow(smoothing: str) -> None:
    model = fit(table_of(40), 9e14, structure="kdb", param="map", smoothing=smoothing)
    np.testing.assert_allclose(np.exp(predict(model, all_rows())), np.exp(predict(expert()[0], all_rows())), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("param", NETWORK_PARAMS)
@pytest.mark.parametrize("drawn", [False, True])
def test_optimizers_end_at_the_network_as_its_rows_grow(
    param: str, drawn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if drawn:
        monkeypatch.setattr(prior_network, "MOST_ROWS", 3)
    columns = table_of(40, missing=0.2 if param in ("em", "apn") else 0.0)
    words: dict[str, Any] = {} if param == "map" else {"tolerance": "1e-15"}
    if param in ("weighted", "discriminative", "lr", "lr-roos", "extended"):
        words["penalty"] = "1e-3"
    model = fit(columns, 1e9, structure="kdb", param=param, **words)
    found, expected = np.exp(predict(model, all_rows())), np.exp(predict(expert()[0], all_rows()))
    if drawn:  # of 3 rows drawn: the network's posterior of these
        assert param in ("map", "em", "apn") or np.isclose(found, expected, rtol=0, atol=1e-5).all(axis=0).any()
    else:
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_em_counts_the_prior_exactly() -> None:
    columns = table_of(40, missing=0.3)
    model = fit(columns, 9e14, structure="kdb", param="em", missing_policy="marginalize")
    np.testing.assert_allclose(np.exp(predict(model, all_rows())), np.exp(predict(expert()[0], all_rows())), rtol=1e-12)


@pytest.mark.parametrize("param", ["map", "weighted", "em"])
def test_few_rows_of_the_prior_hardly_matter(param: str) -> None:
    words: dict[str, Any] = {"structure": "kdb", "param": param}
    if param == "weighted":
        words["penalty"] = "1"
    model = fit(table_of(60), 1e-9, **words)
    alone = learn(table_of(60), Recipe.of(**words)).model
    np.testing.assert_allclose(predict(model, all_rows()), predict(alone, all_rows()), rtol=0, atol=1e-6)


def test_the_likelihood_is_that_of_the_training_rows() -> None:
    columns = table_of(60)
    prior = PriorNetwork(network_of(expert()[0]), 25.0, "net.bnc")
    for param in ("map", "weighted"):
        words = {} if param == "map" else {"penalty": "cv"}
        recipe = Recipe.of(structure="tan", param=param, prior_network="net.bnc", prior_rows=25, **words)
        fitted = learn(columns, recipe, supplied=SuppliedParts(prior=prior))
        log_p = predict(fitted.model, columns)
        assert columns.label is not None
        cll = log_p[columns.label.codes, np.arange(columns.n_rows)].sum()
        assert fitted.parameters.cll == pytest.approx(cll, rel=1e-9)


def test_stored_counts_take_a_prior_too() -> None:
    data = random_dataset(50, (2, 2), 2)
    prior = random_prior(6, 4)
    schema = replace(
        data.schema, attributes=tuple(prior.network.schema.attributes[:1]), labels=prior.network.schema.labels
    )
    counts = Counts(replace(data, schema=schema, codes=data.codes[:1]))
    aligned = prior.aligned(schema)
    added = counts.with_prior(aligned).tables([(0,)])[0] - counts.tables([(0,)])[0]
    np.testing.assert_allclose(added, aligned.expected((0,)), rtol=1e-12)
    np.testing.assert_allclose(counts.with_prior(aligned).of_prior([(0,)]).tables([(0,)])[0], aligned.expected((0,)))


# --- tables that do not fit -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"class_name": "ill"}, "the class is 'ill' in the table and 'sick' in the network"),
        ({"label": CategoricalColumn(np.zeros(9, np.int64), ("no", "maybe"))}, "no, maybe in the table but no, yes in"),
        ({"a": CategoricalColumn(np.zeros(9, np.int64), ("w",))}, "column 'a' has the value 'w'"),
        ({"a": NumericColumn(np.zeros(9))}, "column 'a' was read as numbers"),
        ({"c": NumericColumn(np.zeros(9))}, "no attribute 'c'"),
        ({"a": CategoricalColumn(np.full(9, MISSING), ("u",))}, "column 'a' has missing values"),
    ],
)
def test_a_table_that_does_not_fit_is_an_error(change: dict[str, Any], what: str) -> None:
    columns = table_of(9)
    fields = {key: value for key, value in change.items() if key in ("class_name", "label")}
    attributes = {**columns.attributes, **{key: value for key, value in change.items() if key not in fields}}
    with pytest.raises(BncliError, match=what):
        fit(replace(columns, attributes=attributes, **fields), 5.0, structure="nb", param="map")


def test_a_network_too_dense_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prior_network, "MOST_ENTRIES", 3)
    with pytest.raises(BncliError, match="too dense for exact inference"):
        fit(table_of(9), 5.0, structure="nb", param="map")
