"""ln P(x) against sums over all rows of small networks, and the sketch of its distribution."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.data.columns import CategoricalColumn, Columns, NumericColumn
from bncli.engine.data.encoding import encode_attributes
from bncli.engine.learn import learn
from bncli.engine.model import QUANTILES
from bncli.engine.networks.network import Network, true_model
from bncli.engine.prediction.joint_model import JointModel
from bncli.engine.prediction.monitoring import MOST_ROWS, WIDTH, LogProbabilitySketch, even_sample, training_log_p
from bncli.engine.prediction.scoring import compile_scorer
from bncli.errors import ModelError
from bncli.recipe import Recipe
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
    sketch = LogProbabilitySketch()
    sketch.add(np.array(values))
    ordered = sorted(values)
    rank = min(max(math.ceil(q * len(values)), 1), len(values))
    assert sketch.quantile(q) == pytest.approx(ordered[rank - 1], rel=0.01)


@given(st.lists(st.lists(st.floats(-50.0, 0.0), max_size=20), max_size=4))
def test_sketches_add_up(parts: list[list[float]]) -> None:
    whole, joined = LogProbabilitySketch(), LogProbabilitySketch()
    whole.add(np.array([value for part in parts for value in part]))
    for part in parts:
        one = LogProbabilitySketch()
        one.add(np.array(part))
        joined.counts.update(one.counts)
    assert joined.counts == whole.counts


def test_no_rows_no_quantile() -> None:
    assert LogProbabilitySketch().quantile(0.5) is None


@given(st.lists(st.floats(-1e4, -1e-3), min_size=1, max_size=200), st.floats(-2e4, -1e-3))
def test_the_share_below_is_right_but_for_one_interval(values: list[float], at: float) -> None:
    sketch, rows = LogProbabilitySketch(), np.array(values)
    sketch.add(rows)
    lowest, highest = (float(np.mean(rows < at * factor)) for factor in (1.0101, 1 / 1.0101))
    assert lowest - 1e-12 <= sketch.share_below(at) <= highest + 1e-12


def test_of_an_interval_the_share_below_is_as_if_all_its_values_were_alike_frequent() -> None:
    """One row far below, four in the interval 100, one far above: of the four a share as large as the part below."""
    sketch = LogProbabilitySketch({300: 1, 100: 4, -200: 1})
    for part in (0.0, 0.25, 0.5, 0.75):
        at = -math.exp((100 - part) * WIDTH)
        assert sketch.share_below(at) == pytest.approx((1 + 4 * part) / 6)


@pytest.mark.parametrize("weights", [None, np.arange(1.0, 51.0)])
def test_quantiles_of_training_rows(weights: np.ndarray | None) -> None:
    """Against rows repeated as often as they weigh."""
    rng = np.random.default_rng(0)
    label = CategoricalColumn(rng.integers(0, 2, 50).astype(np.int32), ("no", "yes"))
    attributes = {f"a{i}": CategoricalColumn(rng.integers(0, 4, 50).astype(np.int32), tuple("abcd")) for i in range(3)}
    columns = Columns(50, attributes, "class", label, weights)
    model = learn(columns, Recipe.of(structure="nb", param="map")).model
    used = compile_scorer(model).used
    found = training_log_p(model, columns, used)
    log_p = JointModel(model, used).log_p(encode_attributes(columns, model.schema, used).codes)
    repeated = np.repeat(log_p, 1 if weights is None else weights.astype(int))
    assert found.rows == 50
    assert found.mean == pytest.approx(repeated.mean())
    expected = np.quantile(repeated, QUANTILES, method="inverted_cdf")
    assert found.quantiles == pytest.approx(expected.tolist())


def test_a_sample_of_many_rows_is_spread_over_all_of_them() -> None:
    n = 3 * MOST_ROWS + 5
    label = CategoricalColumn(np.zeros(n, np.int32), ("no",))
    columns = Columns(n, {"x": NumericColumn(np.arange(n, dtype=float))}, "class", label)
    sample = even_sample(columns)
    values = sample.attributes["x"].values
    assert MOST_ROWS / 2 < sample.n_rows <= MOST_ROWS
    assert set(np.diff(values)) == {4.0}
    assert values[-1] > n - 5
