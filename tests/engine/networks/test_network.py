"""Networks of models, equivalent networks and named networks, compared with sums over all rows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import code_dtype
from bncli.engine.data.schema import Attribute, CategoricalAttribute, NumericAttribute, Schema
from bncli.engine.model import Model, Tables
from bncli.engine.networks.network import (
    NamedNetwork,
    Network,
    Node,
    equivalent_network,
    name_network,
    network_of,
    normalised_tables,
    state_names,
    table_shapes,
    true_model,
    value_names,
)
from bncli.engine.networks.simulation import conditioning_network
from bncli.engine.parameters.generative import generative_tables
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities
from bncli.engine.prediction.verification import largest_difference, network_posteriors
from bncli.engine.structures.structure import Dag, Regions
from bncli.errors import BncliError, ModelError
from bncli.recipe import Recipe
from tests.datasets import random_dataset, schema_of
from tests.engine.small_networks import all_rows, asia, network_on, networks, probability, strong_network
from tests.missing_values import network_model, slow_log_joint
from tests.spaces import fit
from tests.strategies import attributes, dags, perfected, schemas


def counted(network: Network) -> list[list[float]]:
    """Return positive frequencies for each attribute."""
    return [[float(code + 1) for code in range(n)] for n in network.schema.cardinalities]


@given(networks())
def test_the_probabilities_of_all_rows_sum_to_1(network: Network) -> None:
    assert math.fsum(probability(network, row) for row in all_rows(network.schema)) == pytest.approx(1.0, abs=1e-12)


@given(networks())
def test_the_true_model_scores_as_the_joint_distribution_says(network: Network) -> None:
    model = true_model(network, counted(network), 10)
    scorer = compile_scorer(model)
    n_labels = len(network.schema.labels)
    rows = [row[:-1] for row in all_rows(network.schema)[::n_labels]]
    codes = [np.array([row[i] for row in rows], code_dtype(9)) for i in scorer.used]
    log_p = log_probabilities(scorer, codes, len(rows))
    for t, row in enumerate(rows):
        joint = [probability(network, (*row, y)) for y in range(n_labels)]
        np.testing.assert_allclose(np.exp(log_p[:, t]), np.array(joint) / sum(joint), rtol=1e-9)


@given(networks())
def test_a_model_gives_back_its_network(network: Network) -> None:
    model = true_model(network, counted(network), 10)
    children = network.structure.class_children
    if any(parents for i, parents in enumerate(network.structure.parents) if i not in children):
        with pytest.raises(ModelError, match="the model has no table for 'a"):
            network_of(model)
        return
    again = network_of(model)
    np.testing.assert_allclose(again.theta_class, network.theta_class, rtol=1e-12)
    for i, (theta, old) in enumerate(zip(again.theta, network.theta, strict=True)):
        frequencies = np.array(counted(network)[i])
        np.testing.assert_allclose(theta, old if i in children else frequencies / frequencies.sum(), rtol=1e-12)


@pytest.mark.parametrize("network", [asia(), conditioning_network(1.0), strong_network(5, 0), strong_network(6, 1)])
def test_the_true_model_of_rows_with_missing_values_marginalizes_them(network: Network) -> None:
    """Compare with sums over all rows, for every single attribute and for all but one."""
    n, n_labels = len(network.schema.attributes), len(network.schema.labels)
    model = true_model(network, counted(network), 10, [1.0] * n)
    assert [a.missing_weight for a in model.schema.attributes] == [1.0] * n
    again, scorer = network_of(model), compile_scorer(model)
    for i in network.structure.nodes:
        np.testing.assert_allclose(again.theta[i], network.theta[i], rtol=1e-12, atol=1e-300)
    for observed in (*((i,) for i in range(n)), *(tuple({*range(n)} - {i}) for i in range(n))):
        joint = np.zeros(n_labels)
        for row in all_rows(network.schema):
            if all(row[i] == 0 for i in observed):
                joint[row[-1]] += probability(network, row)
        codes = [
            np.array([0 if i in observed else network.schema.cardinalities[i]], code_dtype(9)) for i in scorer.used
        ]
        found = np.exp(log_probabilities(scorer, codes, 1)[:, 0])
        np.testing.assert_allclose(found, joint / joint.sum(), rtol=1e-9, atol=1e-12)


@given(networks(), st.integers(0, 9))
def test_a_model_that_sums_out_is_a_network_on_any_graph(network: Network, seed: int) -> None:
    cardinalities = network.schema.cardinalities
    model = network_model(network.structure, cardinalities, len(network.schema.labels), seed)
    again = network_of(model)
    alone = set(range(len(cardinalities))) - set(network.structure.nodes)
    for t in range(3):
        row = [(t + i) % n for i, n in enumerate(cardinalities)]
        joint = slow_log_joint(model, dict(enumerate(row)))
        for y, expected in enumerate(joint):
            found = probability(again, (*row, y))
            found /= math.prod(float(again.theta[i][row[i]]) for i in alone)
            assert math.log(found) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def learned(param: str = "map", smoothing: str = "m-estimate:1") -> Model:
    data = random_dataset(300, (3, 2, 4), 3)
    dag = Dag(((), (0,), (1, 0)), (0, 1, 2))
    tables = generative_tables(Counts(data), dag, smoothing)
    return Model(data.schema, dag, tables, Recipe(param=param), data.n_rows, "1.2.3")


@pytest.mark.parametrize("param", ["map", "extended"])
@pytest.mark.parametrize("smoothing", ["mle", "laplace:1", "fgg:5", "bdeu:1"])
def test_every_smoothing_gives_a_network(param: str, smoothing: str) -> None:
    network = network_of(learned(param, smoothing))
    assert network.n_entries == 3 + 3 * 3 + 2 * 3 * 3 + 4 * 2 * 3 * 3
    assert [table.shape for table in network.theta] == [(3, 3), (2, 3, 3), (4, 2, 3, 3)]
    for table in network.theta:
        np.testing.assert_allclose(table.sum(axis=0), 1.0, atol=1e-6)


@pytest.mark.parametrize("param", ["weighted", "discriminative", "lr", "lr-roos"])
def test_weights_are_no_probabilities(param: str) -> None:
    with pytest.raises(ModelError, match=f"the parameters '{param}' of the model are not .*--param map, acll"):
        network_of(learned(param))


def test_tables_that_are_not_what_the_recipe_says() -> None:
    model = learned()
    weights = (model.tables.weights[0] + 0.1, *model.tables.weights[1:])
    with pytest.raises(ModelError, match="the probabilities in the table of 'a0' do not sum to 1"):
        network_of(replace(model, predictor=Tables(model.tables.bias, model.tables.families, weights)))
    huge = Tables(model.tables.bias + 1e300, model.tables.families, model.tables.weights)
    with pytest.raises(ModelError, match="the probabilities in the table of 'class' do not sum to 1"):
        network_of(replace(model, predictor=huge))


def test_tables_of_another_structure() -> None:
    with pytest.raises(ModelError, match="do not fit its structure"):
        network_of(replace(learned(), structure=Dag(((), (), ()), (0, 1, 2))))


def test_an_attribute_that_was_never_counted_has_equally_likely_codes() -> None:
    model = learned()
    attributes = (replace(model.schema.attributes[0], frequencies=(0.0, 0.0, 0.0)), *model.schema.attributes[1:])
    dag = Dag(((), (0,), ()), (1,))
    tables = generative_tables(Counts(random_dataset(300, (3, 2, 4), 3)), dag, "m-estimate:1")
    network = network_of(
        replace(model, schema=replace(model.schema, attributes=attributes), structure=dag, predictor=tables)
    )
    assert network.theta[0].tolist() == [1 / 3] * 3
    assert network.theta[2].tolist() == [1 / 4] * 4


def test_an_impossible_value_has_a_finite_logarithm() -> None:
    tables = true_model(conditioning_network(4.0), [[1.0, 1.0]] * 3, 2).tables
    assert np.isfinite(tables.weights[0]).all()
    assert tables.weights[0][0b100].tolist() == [pytest.approx(-708.396, abs=1e-3), 0.0]


def test_shapes_of_tables() -> None:
    dag = Dag(((1,), (), (0, 1)), (0, 2), (1,))
    assert table_shapes(dag, (2, 3, 4), 5) == [(2, 3, 5), (3,), (4, 2, 3, 5), (3, 5)]


def test_regions_are_no_network() -> None:
    model = replace(learned(), structure=Regions(((0, 1),)))
    for make in (network_of, equivalent_network):
        with pytest.raises(ModelError, match=r"made of regions, .* learn a network"):
            make(model)


def model_of(schema: Schema, dag: Dag, scale: float, seed: int, param: str = "discriminative") -> Model:
    """Return a model with normal random tables of this standard deviation."""
    rng = np.random.default_rng(seed)
    families, n_labels = dag.families(schema.cardinalities), len(schema.labels)
    weights = tuple(scale * rng.normal(size=(family.n_cells, n_labels)) for family in families)
    return Model(schema, dag, Tables(scale * rng.normal(size=n_labels), families, weights), Recipe(param=param), 9, "1")


@st.composite
def perfect_models(draw: st.DrawFn, scales: tuple[float, ...] = (0.1, 1.0, 10.0)) -> Model:
    schema = draw(schemas(max_attributes=4, max_labels=3))
    dag = perfected(draw(dags(len(schema.attributes))))
    return model_of(schema, dag, draw(st.sampled_from(scales)), draw(st.integers(0, 2**32 - 1)))


def scored(model: Model) -> dict[tuple[int, ...], list[float]]:
    """Return P(y | x) of every complete row, by adding up table entries."""
    result = {}
    for row in {row[:-1] for row in all_rows(model.schema)}:
        scores = [float(s) for s in model.tables.bias]
        for family, table in zip(model.tables.families, model.tables.weights, strict=True):
            cell = 0
            for i, n in zip(family.attributes, family.shape, strict=True):
                cell = cell * n + row[i]
            scores = [s + float(table[cell, y]) for y, s in enumerate(scores)]
        powers = [math.exp(s - max(scores)) for s in scores]
        result[row] = [p / sum(powers) for p in powers]
    return result


def network_posterior(network: Network, row: tuple[int, ...]) -> list[float]:
    """Return P(y | x) by multiplying probabilities; those of nodes without the class cancel, even if they are 0."""
    children = network.structure.class_children
    theta = tuple(t if i in children else np.ones_like(t) for i, t in enumerate(network.theta))
    network = replace(network, theta=theta)
    joint = [probability(network, (*row, y)) for y in range(len(network.schema.labels))]
    return [p / sum(joint) for p in joint]


def assert_equivalent(model: Model, network: Network) -> None:
    for row, expected in scored(model).items():
        assert network_posterior(network, row) == pytest.approx(expected, abs=1e-12, rel=0)


@given(perfect_models())
def test_every_row_keeps_its_posterior_on_perfect_graphs(model: Model) -> None:
    network = equivalent_network(model)
    assert_equivalent(model, network)
    for theta in network.theta:
        np.testing.assert_allclose(theta.sum(axis=0), 1.0, atol=1e-12)
    np.testing.assert_allclose(network.theta_class.sum(axis=-1), 1.0, atol=1e-12)


@given(perfect_models(scales=(100.0, 250.0)))
def test_large_weights_stay_finite_and_keep_what_is_likely(model: Model) -> None:
    network = equivalent_network(model)
    for theta in (*network.theta, network.theta_class):
        assert np.isfinite(theta).all()
        assert (theta >= 0).all()
    assert_equivalent_in_logs(model)


def assert_equivalent_in_logs(model: Model) -> None:
    """Compare the tables instead of the probabilities, which may underflow."""
    again = replace(model, predictor=normalised_tables(model))
    found = scored(again)
    for row, expected in scored(model).items():
        assert found[row] == pytest.approx(expected, abs=1e-9, rel=0)


@pytest.mark.parametrize("scale", [300.0, 700.0, 1e6])
def test_a_value_is_never_impossible_under_every_class(scale: float) -> None:
    """All classes make the first value very unlikely, and its ratio between classes must not underflow."""
    schema = schema_of((3, 2), 2)
    dag = Dag(((), (0,)), (0, 1))
    weights = (np.array([[-scale, -scale + 1], [0, 0], [scale, scale]]), np.zeros((6, 2)))
    model = Model(schema, dag, Tables(np.zeros(2), dag.families((3, 2)), weights), Recipe(), 9, "1")
    network = equivalent_network(model)
    assert network.theta[0].max(axis=-1).min() > 1e-14
    assert_equivalent(model, network)


def test_sums_of_children_go_to_the_class_if_its_parents_have_none() -> None:
    """0 -> class, 0 -> 1, class -> 1: the sums of the table of 1 depend on 0 and on the class."""
    schema = schema_of((2, 3), 3)
    model = model_of(schema, Dag(((), (0,)), (1,), (0,)), 2.0, 0)
    network = equivalent_network(model)
    assert_equivalent(model, network)
    assert network.theta_class.shape == (2, 3)
    assert network.theta[0].tolist() == [0.5, 0.5]


@pytest.mark.parametrize("param", ["weighted 4", "weighted 1", "discriminative", "lr", "lr_roos"])
def test_every_learner_gives_a_network(param: str) -> None:
    data = random_dataset(200, (3, 2, 4), 3)
    dag = Dag(((), (0,), (1,)), (0, 1, 2))
    tables = fit(param, data, dag, penalty=1.0).tables
    model = Model(data.schema, dag, tables, Recipe(param=param.split()[0].replace("_", "-")), data.n_rows, "1")
    assert_equivalent(model, equivalent_network(model))


@pytest.mark.parametrize("param", ["map", "extended", "acll", "acll-uniform"])
def test_a_network_stays_as_it_is(param: str) -> None:
    data = random_dataset(200, (3, 2, 4), 3)
    dag = Dag(((), (), (0, 1)), (0, 1, 2))
    assert dag.unmarried is not None
    tables = generative_tables(Counts(data), dag, "mle")
    model = Model(data.schema, dag, tables, Recipe(param=param), data.n_rows, "1")
    network = equivalent_network(model)
    for theta, own in zip(network.theta, network_of(model).theta, strict=True):
        assert (theta == own).all()
    assert_equivalent(model, network)


def modelled(network: Network) -> Model:
    """Return the model with the tables of the network."""
    return true_model(network, [[float(code + 1) for code in range(n)] for n in network.schema.cardinalities], 9)


@given(networks())
def test_any_network_is_written_whatever_its_graph(network: Network) -> None:
    assert_equivalent(modelled(network), equivalent_network(modelled(network)))


def test_on_a_perfect_graph_probabilities_do_not_change() -> None:
    """Tables that sum to 1 pass nothing on."""
    data = random_dataset(200, (3, 2, 4), 3)
    dag = Dag(((), (0,), (0, 1)), (0, 1, 2))
    tables = generative_tables(Counts(data), dag, "laplace:1")
    model = Model(data.schema, dag, tables, Recipe(param="map"), data.n_rows, "1")
    again = normalised_tables(model)
    for one, other in zip((tables.bias, *tables.weights), (again.bias, *again.weights), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-13)


def test_a_graph_that_is_not_perfect_is_refused() -> None:
    model = model_of(schema_of((2, 2, 2), 2), Dag(((), (), (0, 1)), (0, 1, 2)), 1.0, 0, "weighted")
    with pytest.raises(ModelError, match="no arc joins 'a0' and 'a1', both parents of 'a2'; learn with --param map"):
        equivalent_network(model)


def test_no_equivalent_network_for_tables_of_another_structure() -> None:
    model = model_of(schema_of((2, 2), 2), Dag(((), (0,)), (0, 1)), 1.0, 0)
    with pytest.raises(ModelError, match="do not fit its structure"):
        equivalent_network(replace(model, structure=Dag(((), ()), (0, 1))))


def test_no_attributes_at_all() -> None:
    model = model_of(schema_of((), 3), Dag((), ()), 1.0, 0)
    assert_equivalent(model, equivalent_network(model))


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@given(perfect_models())
def test_a_model_agrees_with_its_network(model: Model) -> None:
    assert largest_difference(model, name_network(equivalent_network(model)), 100, rng()) < 1e-12


@given(networks())
def test_posteriors_row_by_row(network: Network) -> None:
    network = equivalent_network(modelled(network))
    cardinalities = network.schema.cardinalities
    codes = {f"a{i}": rng().integers(0, n, 5) for i, n in enumerate(cardinalities)}
    found = network_posteriors(name_network(network), "class", codes, 5)
    for t in range(5):
        row = tuple(int(codes[f"a{i}"][t]) for i in range(len(cardinalities)))
        np.testing.assert_allclose(found[:, t], network_posterior(network, row), rtol=1e-9)


def test_a_rare_difference_is_found() -> None:
    model = model_of(schema_of((4, 5), 2), Dag(((), (0,)), (0, 1)), 1.0, 0)
    named = name_network(equivalent_network(model))
    wrong = np.array(named.nodes[2].probabilities)
    wrong[1, 3, :2] += (1e-3, -1e-3)
    nodes = (*named.nodes[:2], replace(named.nodes[2], probabilities=wrong))
    assert 1e-5 < largest_difference(model, replace(named, nodes=nodes), 10_000, rng()) < 1e-1


def test_an_impossible_row_gives_nan() -> None:
    model = model_of(schema_of((2,), 2), Dag(((),), (0,)), 1.0, 0)
    named = name_network(equivalent_network(model))
    impossible = replace(named.nodes[1], probabilities=np.array([[0.0, 1.0], [0.0, 1.0]]))
    assert math.isnan(largest_difference(model, replace(named, nodes=(named.nodes[0], impossible)), 100, rng()))


@pytest.mark.parametrize("labels", [2, 3])
def test_a_class_without_attributes(labels: int) -> None:
    model = model_of(schema_of((2,), labels), Dag(((),), ()), 1.0, 0)
    assert largest_difference(model, name_network(equivalent_network(model)), 10, rng()) < 1e-15


HALF = np.full(2, 0.5)
AB = ("a", "b")


def node(name: str = "x", states: tuple[str, ...] = AB, parents: tuple[str, ...] = (), table: Any = HALF) -> Node:
    return Node(name, states, parents, table)


def test_a_named_network_copies_its_tables() -> None:
    table = np.full((2, 3), 1 / 3)
    network = NamedNetwork("n", "x", (node("y", ("1", "2", "3"), ("x",), table), node()), "nb", {"k": 1})
    table[0, 0] = 7
    assert network.by_name["y"].probabilities[0, 0] == 1 / 3
    assert not network.by_name["y"].probabilities.flags.writeable
    assert network.dag.parents == {"y": ("x",), "x": ()}
    assert (network.dag.class_name, network.dag.method, network.dag.options) == ("x", "nb", {"k": 1})


def test_rounded_probabilities_are_accepted() -> None:
    node(states=("a", "b", "c"), table=[0.333333, 0.333333, 0.333333])
    node(states=tuple("abcdef"), table=[0.166667] * 6)


@pytest.mark.parametrize(
    ("states", "table", "message"),
    [
        ((), np.empty(0), "the node 'x' has no states"),
        (("a", "a"), HALF, "the node 'x' has the state 'a' twice"),
        (AB, [0.5, 0.6], "a row of the table of 'x' sums to 1.1"),
        (AB, [0.0, 0.0], "a row of the table of 'x' sums to 0"),
        (AB, [1.5, -0.5], "the table of 'x' contains 1.5"),
        (AB, [np.nan, 1.0], "the table of 'x' contains nan"),
    ],
)
def test_invalid_nodes(states: tuple[str, ...], table: Any, message: str) -> None:
    with pytest.raises(BncliError, match=message):
        node(states=states, table=table)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ((node(), node()), "the node 'x' occurs twice"),
        ((node("y"),), "the class 'x' is not a node"),
        ((node(), node("y", parents=("z",))), "the parent 'z' of 'y' is not a node"),
        ((node(), node("y", parents=("x",))), r"the table of 'y' has the shape \(2,\), not \(2, 2\)"),
        ((node(table=np.full((2, 2), 0.5), parents=("x",)),), "the structure has a cycle: x -> x"),
        ((node(table=np.full((2, 2), 0.5)),), "the table of 'x' has the shape"),
    ],
)
def test_invalid_networks(nodes: tuple[Node, ...], message: str) -> None:
    with pytest.raises(BncliError, match=message):
        NamedNetwork("n", "x", nodes)


def test_the_class_comes_first_and_unused_attributes_are_left_out() -> None:
    network = equivalent_network(model_of(schema_of((2, 3, 4), 2), Dag(((2,), (), ()), (0, 2)), 1.0, 0))
    named = name_network(network)
    assert [(node.name, node.parents) for node in named.nodes] == [
        ("class", ()),
        ("a0", ("class", "a2")),
        ("a2", ("class",)),
    ]
    assert [node.states for node in named.nodes] == [("y0", "y1"), ("0", "1"), ("0", "1", "2", "3")]
    assert (named.name, named.class_name, named.method) == ("class", "class", "file")
    a0 = named.by_name["a0"].probabilities
    assert a0.shape == (2, 4, 2)
    assert a0[1, 3, 0] == network.theta[0][0, 3, 1]


@given(networks())
def test_the_product_over_nodes_is_the_joint_probability(network: Network) -> None:
    schema = network.schema
    network = equivalent_network(modelled(network))
    named = name_network(network)
    left_out = [i for i, attribute in enumerate(schema.attributes) if attribute.name not in named.by_name]
    for row in all_rows(schema)[:50]:
        code = dict(zip([a.name for a in schema.attributes] + ["class"], row, strict=True))
        product = math.prod(float(network.theta[i][row[i]]) for i in left_out)
        for node in named.nodes:
            product *= float(node.probabilities[tuple(code[name] for name in (*node.parents, node.name))])
        assert product == pytest.approx(probability(network, row), rel=1e-12)


def test_nothing_is_impossible() -> None:
    schema = schema_of((2,), 2)
    network = network_on(schema, Dag(((),), (0,)), 0)
    sure = Network(schema, network.structure, network.theta_class, (np.array([[0.0, 1.0], [1.0, 0.0]]),))
    assert name_network(sure).by_name["a0"].probabilities.min() > 0


def test_intervals() -> None:
    age = NumericAttribute("age", True, (), (-1.0, 2.5, 0.1 + 2.5))
    assert state_names(age) == ("(-inf,-1]", "(-1,2.5]", "(2.5,2.6]", "(2.6,inf)", "missing")
    assert state_names(NumericAttribute("age", True, (), ())) == ("(-inf,inf)", "missing")


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        (("a", "b"), "missing"),
        (("a", "missing"), "missing_2"),
        (("missing", "missing_2", "missing_4"), "missing_3"),
    ],
)
def test_the_missing_level_has_a_name_of_its_own(levels: tuple[str, ...], expected: str) -> None:
    assert state_names(CategoricalAttribute("x", True, (), levels)) == (*levels, expected)
    assert state_names(CategoricalAttribute("x", False, (), levels)) == levels


@given(attributes("x"))
def test_every_code_has_a_name_of_its_own(attribute: Attribute) -> None:
    names = state_names(attribute)
    assert len(set(names)) == len(names) == attribute.cardinality
    assert value_names(attribute) == names[: attribute.n_values]
