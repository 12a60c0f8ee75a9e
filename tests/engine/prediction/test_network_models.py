"""Models of networks against the sum over all joint states."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.columns import MISSING, CategoricalColumn, Columns
from bncli.engine.data.schema import CategoricalAttribute, NumericAttribute
from bncli.engine.evaluation.cross_validation import predict
from bncli.engine.networks.network import NamedNetwork, Node
from bncli.engine.prediction import network_models
from bncli.engine.prediction.network_models import model_of_network
from bncli.errors import BncliError, UsageError


def random_named_network(rng: np.random.Generator, n_nodes: int, most_parents: int = 2) -> NamedNetwork:
    """A network over nodes x0, x1, ... in an order that is not that of their names."""
    names = [f"x{i}" for i in range(n_nodes)]
    sizes = {name: int(rng.integers(2, 4)) for name in names}
    order, nodes = list(rng.permutation(names)), {}
    for at, name in enumerate(order):
        parents = tuple(rng.permutation(order[:at])[: rng.integers(0, most_parents + 1)].tolist())
        shape = [sizes[parent] for parent in parents]
        table = rng.dirichlet(np.ones(sizes[name]), int(np.prod(shape))).reshape(*shape, sizes[name])
        nodes[name] = Node(str(name), tuple(f"s{k}" for k in range(sizes[name])), parents, table)
    return NamedNetwork("made", None, tuple(nodes[name] for name in names))


def enumerated(network: NamedNetwork, target: str, known: dict[str, int]) -> list[float]:
    """P(target | known) by adding up the joint probability of all states."""
    sizes = {node.name: len(node.states) for node in network.nodes}
    totals = [0.0] * sizes[target]
    for states in itertools.product(*(range(n) for n in sizes.values())):
        state = dict(zip(sizes, states, strict=True))
        if all(state[name] == code for name, code in known.items()):
            factors = (n.probabilities[(*(state[p] for p in n.parents), state[n.name])] for n in network.nodes)
            totals[state[target]] += math.prod(factors)
    return [total / sum(totals) for total in totals]


@given(st.integers(0, 10_000), st.integers(2, 6))
def test_any_node_is_predicted_from_any_others(seed: int, n_nodes: int) -> None:
    rng = np.random.default_rng(seed)
    network = random_named_network(rng, n_nodes)
    target = f"x{rng.integers(n_nodes)}"
    model, is_dense = model_of_network(network, target)
    others = [node for node in network.nodes if node.name != target]
    rows = [{n.name: int(rng.integers(len(n.states))) for n in others if rng.random() < 0.6} for _ in range(5)]
    columns = Columns(
        len(rows),
        {n.name: CategoricalColumn(np.array([row.get(n.name, MISSING) for row in rows]), n.states) for n in others},
        target,
        None,
    )
    expected = [enumerated(network, target, row) for row in rows]
    np.testing.assert_allclose(np.exp(predict(model, columns)).T, expected, rtol=1e-9, atol=1e-12)
    assert not is_dense
    for attribute, node in zip(model.schema.attributes, others, strict=True):
        np.testing.assert_allclose(attribute.frequencies, enumerated(network, node.name, {}), rtol=1e-9)
    np.testing.assert_allclose(model.schema.label_frequencies, enumerated(network, target, {}), rtol=1e-9)


def test_frequencies_are_drawn_where_the_network_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    network = random_named_network(np.random.default_rng(3), 5)
    exact, _ = model_of_network(network)
    monkeypatch.setattr(network_models, "MOST_VALUES", 1)
    drawn, is_dense = model_of_network(network)
    assert not is_dense
    for one, other in zip(drawn.schema.attributes, exact.schema.attributes, strict=True):
        np.testing.assert_allclose(one.frequencies, other.frequencies, atol=0.02)
        assert one.frequencies != other.frequencies
    assert drawn.tables.families == exact.tables.families


def two_nodes(states: tuple[str, ...]) -> NamedNetwork:
    table = np.full((2, len(states)), 1 / len(states))
    table[1] = np.arange(1, len(states) + 1) / sum(range(1, len(states) + 1))
    return NamedNetwork(
        "made", None, (Node("class", ("a", "b"), (), np.array([0.5, 0.5])), Node("x", states, ("class",), table))
    )


BELOW_2, BELOW_4 = math.nextafter(2.0, 0.0), math.nextafter(4.0, 0.0)


@pytest.mark.parametrize(
    ("states", "cuts"),
    [
        (("(-inf,2]", "(2,4]", "(4,inf)"), (2.0, 4.0)),
        (("(-inf-2]", "(2-4]", "(4-inf)"), (2.0, 4.0)),
        (("(0, 2]", "(2, 4]", "(4, 9]"), (2.0, 4.0)),
        (("[0,2)", "[2,4)", "[4,9]"), (BELOW_2, BELOW_4)),
        (("<=2", ">2"), (2.0,)),
        (("<2", "[2,4)", ">=4"), (BELOW_2, BELOW_4)),
        (("(-3.5,-1e-3]", "(-1e-3,.5]"), (-1e-3,)),
        (("(4,inf)", "(-inf,2]", "(2,4]"), (2.0, 4.0)),
    ],
)
def test_states_that_are_intervals_become_cuts(states: tuple[str, ...], cuts: tuple[float, ...]) -> None:
    model, _ = model_of_network(two_nodes(states))
    (attribute,) = model.schema.attributes
    assert isinstance(attribute, NumericAttribute)
    assert attribute.cuts == cuts
    # The table follows the order of the intervals, not that of the states.
    expected = [(states.index(state) + 1) / sum(range(1, len(states) + 1)) for state in sorted(states, key=_rank)]
    np.testing.assert_allclose(np.exp(model.tables.weights[0][:, 1]), expected)


def _rank(state: str) -> float:
    """An order of the states above: by the number at the upper end."""
    if state.startswith("<"):
        return float(state.lstrip("<="))
    if state.startswith(">"):
        return math.inf
    return float(
        state.strip("()[]").replace("-inf-", "-inf,").replace("2-4", "2,4").replace("4-inf", "4,inf").split(",")[-1]
    )


@pytest.mark.parametrize(
    "states", [("(0,2]", "(3,4]"), ("(0,2]", "(1,4]"), ("(0,2]", "other"), ("low", "high"), ("(0,2]", "(0,2] ")]
)
def test_other_states_are_levels(states: tuple[str, ...]) -> None:
    (attribute,) = model_of_network(two_nodes(states))[0].schema.attributes
    assert isinstance(attribute, CategoricalAttribute)
    assert attribute.levels == states


def test_a_last_state_called_missing_is_the_missing_level() -> None:
    model, _ = model_of_network(two_nodes(("<=2", ">2", "missing")))
    (attribute,) = model.schema.attributes
    assert (attribute.missing, attribute.cardinality) == (True, 3)
    assert model.schema.missing_policy == "level"


def test_the_class_is_found_or_named() -> None:
    network = random_named_network(np.random.default_rng(0), 3)
    assert model_of_network(network)[0].schema.class_name == "x2"
    assert model_of_network(network, "x0")[0].schema.class_name == "x0"
    with pytest.raises(UsageError, match="no node 'x9'"):
        model_of_network(network, "x9")
    with pytest.raises(BncliError, match="no node besides the class"):
        model_of_network(NamedNetwork("one", None, (Node("y", ("a", "b"), (), np.array([0.5, 0.5])),)))
    with pytest.raises(BncliError, match="single state"):
        model_of_network(two_nodes(("only",)), "x")
