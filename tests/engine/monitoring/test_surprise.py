"""ln P(x) against sums over all rows of small networks, and the sketch of its distribution."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.monitoring.surprise import JointModel, Sketch
from bncli.engine.networks.network import Network, true_model
from bncli.engine.prediction.scoring import compile_scorer
from bncli.errors import ModelError
from tests.engine.small_networks import all_rows, networks, probability


@given(networks(max_attributes=3), st.booleans())
def test_log_p_adds_up_whatever_is_unknown(network: Network, marginalizes: bool) -> None:
    schema = network.schema
    frequencies = [[1.0] * a.cardinality for a in schema.attributes]
    model = true_model(network, frequencies, 10, [1.0] * len(frequencies) if marginalizes else None)
    used = compile_scorer(model).used
    try:
        joint = JointModel(model, used)
    except ModelError:  # an attribute has parents and no table: then it is no whole network
        assert not marginalizes
        return
    if not used:
        return
    roots = [i for i in used if not network.structure.parents[i] and i not in network.structure.class_children]
    shown = list(itertools.product(*(range(schema.cardinalities[i] + 1) for i in used)))
    found = joint.log_p([np.array(column, np.uint8) for column in zip(*shown, strict=True)])
    rows = [(row, probability(network, row)) for row in all_rows(schema)]
    if not marginalizes and roots:  # such an attribute has the frequencies of training for probabilities
        return
    for codes, log_p in zip(shown, found, strict=True):
        fits = [
            p
            for row, p in rows
            if all(code in (row[i], schema.cardinalities[i]) for i, code in zip(used, codes, strict=True))
        ]
        assert log_p == pytest.approx(math.log(math.fsum(fits)), abs=1e-9)


@given(st.lists(st.floats(-1e4, -1e-6), min_size=1, max_size=200), st.floats(0.0, 1.0))
def test_quantiles_of_a_sketch_are_right_to_one_per_cent(values: list[float], q: float) -> None:
    sketch = Sketch()
    sketch.add(np.array(values))
    ordered = sorted(values)
    rank = min(max(math.ceil(q * len(values)), 1), len(values))
    assert sketch.quantile(q) == pytest.approx(ordered[rank - 1], rel=0.01)


@given(st.lists(st.lists(st.floats(-50.0, 0.0), max_size=20), max_size=4))
def test_sketches_add_up(parts: list[list[float]]) -> None:
    whole, joined = Sketch(), Sketch()
    whole.add(np.array([value for part in parts for value in part]))
    for part in parts:
        one = Sketch()
        one.add(np.array(part))
        joined.counts.update(one.counts)
    assert joined.counts == whole.counts


def test_no_rows_no_quantile() -> None:
    assert Sketch().quantile(0.5) is None
