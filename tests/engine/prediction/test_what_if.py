"""What-if questions: the fewest changes, the value of an answer, and sensitivities, beside every row there is."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.columns import CategoricalColumn, Columns
from bncli.engine.data.dataset import encode_attributes
from bncli.engine.data.schema import CategoricalAttribute, NumericAttribute, Schema
from bncli.engine.learn import learn
from bncli.engine.model import DecisionRule, Threshold
from bncli.engine.networks.network import Network, true_model
from bncli.engine.prediction.decision_rules import Decider
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities
from bncli.engine.prediction.what_if import CounterfactualSearch, NextBest, measure_sensitivities
from bncli.engine.structures.structure import Dag
from bncli.errors import ModelError, UsageError
from bncli.recipe import Recipe
from tests.datasets import schema_of
from tests.engine.small_networks import all_rows, network_on, networks, probability

SIZES = st.lists(st.integers(2, 4), min_size=1, max_size=4)


@given(SIZES, st.integers(2, 3), st.integers(0, 1000), st.integers(1, 3), st.data())
def test_there_are_no_fewer_and_no_better_changes(
    sizes: list[int], k: int, seed: int, most: int, data: st.DataObject
) -> None:
    allowed = data.draw(st.sets(st.integers(0, len(sizes) - 1)))
    rng = np.random.default_rng(seed)
    rows = list(itertools.product(*map(range, sizes)))
    table = np.log(rng.dirichlet(np.ones(k), len(rows)))
    place = {row: t for t, row in enumerate(rows)}

    def score(codes: list[np.ndarray]) -> np.ndarray:
        return np.array([table[place[tuple(row)]] for row in zip(*(c.tolist() for c in codes), strict=True)]).T

    codes = [np.array(column, np.uint8) for column in zip(*rows, strict=True)]
    flips = CounterfactualSearch(schema_of(sizes, k), range(len(sizes)), sorted(allowed), most, score)
    found = flips.changes(codes, score(codes))
    for row, change in zip(rows, found, strict=True):
        others = [
            (sum(a != b for a, b in zip(row, other, strict=True)), -table[place[other]].max(), other)
            for other in rows
            if table[place[other]].argmax() != table[place[row]].argmax()
            and all(a == b or i in allowed for i, (a, b) in enumerate(zip(row, other, strict=True)))
        ]
        reachable = [one for one in others if one[0] <= most]
        if not reachable:
            assert change == ()
            continue
        distance, loss, _ = min(reachable)
        changed = list(row)
        for p, code in change:
            changed[p] = code
        assert len(change) == distance
        assert -table[place[tuple(changed)]].max() == loss


def test_words() -> None:
    age = NumericAttribute("age", False, (1.0, 1.0, 1.0), cuts=(18.0, 65.5))
    schema = Schema("y", ("a", "b"), (age,))
    of_second = np.array([0.9, 0.4, 0.2, 0.5])
    flips = CounterfactualSearch(
        schema, (0,), (0,), 1, lambda codes: np.log([1 - of_second[codes[0]], of_second[codes[0]]])
    )
    told = flips.find([np.array([0, 1, 2, 3], np.uint8)], np.log([1 - of_second, of_second]))
    assert told == ["age>65.5", "age<=18", "age<=18", "age<=18"]  # of the last, unknown, a tie is the first label


def test_words_of_an_interval_and_of_a_name_that_begins_like_one() -> None:
    age = NumericAttribute("age", False, (1.0, 1.0, 1.0), cuts=(18.0, 65.5))
    size = CategoricalAttribute("size", False, (1.0, 1.0), ("<5", "big"))
    schema = Schema("y", ("a", "b"), (age, size))
    of_second = np.array([[0.1, 0.2], [0.9, 0.1], [0.3, 0.4]])

    def score(codes: list[np.ndarray]) -> np.ndarray:
        p = of_second[codes[0].astype(int), codes[1].astype(int)]
        return np.log([1 - p, p])

    flips = CounterfactualSearch(schema, (0, 1), (0, 1), 1, score)
    codes = [np.array([0, 1], np.uint8), np.array([0, 1], np.uint8)]
    assert flips.find(codes, score(codes)) == ["age=18..65.5", "size=<5"]


def test_changes_lead_to_another_decision_of_the_rule() -> None:
    """The rule has a threshold and abstains; no change leads to a row without a decision."""
    schema = schema_of([4], 2)
    of_second = np.array([0.05, 0.2, 0.4, 0.9])

    def score(codes: list[np.ndarray]) -> np.ndarray:
        return np.log([1 - of_second[codes[0]], of_second[codes[0]]])

    def decide(log_p: np.ndarray) -> np.ndarray:
        p = np.exp(log_p[1])
        return np.where(p > 0.5, -1, (p > 0.1).astype(np.intp))

    codes = [np.arange(4, dtype=np.uint8)]
    flips = CounterfactualSearch(schema, (0,), (0,), 1, score, decide)
    assert flips.changes(codes, score(codes)) == [((0, 2),), ((0, 0),), ((0, 0),), ((0, 0),)]


def test_the_first_in_the_schema_wins_a_tie() -> None:
    """Both attributes change the label, with two values each and the same probability every time."""
    schema = schema_of([3, 3], 2)

    def score(codes: list[np.ndarray]) -> np.ndarray:
        of_second = np.where((codes[0] > 0) | (codes[1] > 0), 0.75, 0.25)
        return np.log([1 - of_second, of_second])

    codes = [np.zeros(1, np.uint8), np.zeros(1, np.uint8)]
    assert CounterfactualSearch(schema, (0, 1), (0, 1), 1, score).changes(codes, score(codes)) == [((0, 1),)]
    assert CounterfactualSearch(schema, (0, 1), (1,), 1, score).changes(codes, score(codes)) == [((1, 1),)]


def test_too_many_changes_are_an_error() -> None:
    schema = schema_of([9] * 40, 2)
    with pytest.raises(UsageError, match="63,540 ways to change up to 2 of 40 columns"):
        CounterfactualSearch(schema, range(40), range(40), 2, lambda codes: codes)


def entropy(weights: list[float]) -> float:
    total = math.fsum(weights)
    return -math.fsum(w / total * math.log(w / total) for w in weights if w > 0)


@given(networks(max_attributes=3))
def test_gains_are_expected_decreases_of_entropy(network: Network) -> None:
    schema = network.schema
    frequencies = [[1.0] * a.cardinality for a in schema.attributes]
    model = true_model(network, frequencies, 10, [1.0] * len(frequencies))
    used = compile_scorer(model).used
    if any(schema.attributes[i].missing for i in used):
        with pytest.raises(ModelError, match="counts as one more value"):
            NextBest(model, used)
        return
    if not used:
        return
    rows = [(row, probability(network, row)) for row in all_rows(schema)]
    shown = list(itertools.product(*(range(schema.cardinalities[i] + 1) for i in used)))
    codes = [np.array(column, np.uint8) for column in zip(*shown, strict=True)]
    missing = [c == schema.cardinalities[i] for i, c in zip(used, codes, strict=True)]
    found = NextBest(model, used).gains(codes, missing)

    def class_weights(seen: dict[int, int]) -> list[float]:
        return [
            math.fsum(p for row, p in rows if row[-1] == y and all(row[i] == v for i, v in seen.items()))
            for y in range(len(schema.labels))
        ]

    for t, values in enumerate(shown):
        seen = {i: v for i, v in zip(used, values, strict=True) if v < schema.cardinalities[i]}
        before = class_weights(seen)
        for j, i in enumerate(used):
            expected = 0.0
            if i not in seen:
                after = [class_weights(seen | {i: v}) for v in range(schema.cardinalities[i])]
                shares = [math.fsum(one) / math.fsum(before) for one in after]
                expected = entropy(before) - math.fsum(s * entropy(a) for s, a in zip(shares, after, strict=True))
            assert found[j, t] == pytest.approx(expected, abs=1e-9)


def test_another_prior_is_that_of_another_network() -> None:
    """The other network has the same tables of attributes and other class frequencies."""
    network = network_on(schema_of([2, 3], 2), Dag(((), ()), (0, 1)), 0)
    times = np.array([0.1, 4.0])
    frequent = network.theta_class * times
    other = replace(network, theta_class=frequent / frequent.sum())
    codes = [np.array([2, 2, 0, 1], np.uint8), np.array([3, 1, 3, 3], np.uint8)]
    missing = [codes[0] == 2, codes[1] == 3]

    def gains(of: Network, shift: np.ndarray | None = None) -> np.ndarray:
        model = true_model(of, [[1.0] * 2, [1.0] * 3], 10, [1.0] * 2)
        return NextBest(model, (0, 1), shift).gains(codes, missing)

    np.testing.assert_allclose(gains(network, np.log(times)), gains(other), atol=1e-12)
    assert np.abs(gains(network) - gains(other))[np.array(missing)].min() > 1e-4


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
