"""The value of an answer against sums over all rows of small networks."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from bncli.engine.networks.network import Network, true_model
from bncli.engine.prediction.scoring import compile_scorer
from bncli.engine.prediction.what_if import NextBest
from bncli.engine.structures.structure import Dag
from bncli.errors import ModelError
from tests.datasets import schema_of
from tests.engine.small_networks import all_rows, network_on, networks, probability


def entropy(weights: list[float]) -> float:
    total = math.fsum(weights)
    return -math.fsum(w / total * math.log(w / total) for w in weights if w > 0)


@given(networks(max_attributes=3))
def test_gains_are_expected_falls_of_entropy(network: Network) -> None:
    schema = network.schema
    frequencies = [[1.0] * a.cardinality for a in schema.attributes]
    model = true_model(network, frequencies, 10, [1.0] * len(frequencies))
    used = compile_scorer(model).used
    if any(schema.attributes[i].missing for i in used):
        with pytest.raises(ModelError, match="is a value of its own"):
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
    """The same tables of the attributes under other class frequencies."""
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
