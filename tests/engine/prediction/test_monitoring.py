"""Monitoring: drift and its test, exact sums, the sketch of ln P(x), and expected figures by brute force."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from bncli.engine.data.columns import CategoricalColumn, Columns, NumericColumn
from bncli.engine.data.dataset import encode_attributes
from bncli.engine.evaluation.metrics import measure
from bncli.engine.kernels.arrays import Array
from bncli.engine.learn import learn
from bncli.engine.model import QUANTILES
from bncli.engine.networks.network import Network, true_model
from bncli.engine.prediction.marginalization import JointModel
from bncli.engine.prediction.monitoring import (
    ALPHA,
    LEAST_PSI,
    LOG_ODDS_WIDTH,
    MOST_ROWS,
    WIDTH,
    LogOddsCounts,
    LogProbabilitySketch,
    Moments,
    drift_of,
    homogeneity_p,
    population_stability,
    row_entropies,
    sample_evenly,
    sum_of_draws,
    summarise_log_p,
    unknown_probability,
)
from bncli.engine.prediction.scoring import compile_scorer
from bncli.errors import ModelError
from bncli.recipe import Recipe
from tests.engine.small_networks import all_rows, networks, probability

COUNTS = st.lists(st.tuples(st.integers(5, 400), st.integers(5, 400)), min_size=2, max_size=8)


@given(COUNTS)
def test_psi_is_its_formula(pairs: list[tuple[int, int]]) -> None:
    new, old = np.array(pairs, np.float64).T
    a, e = new / new.sum(), old / old.sum()
    expected = math.fsum((x - y) * math.log(x / y) for x, y in zip(a, e, strict=True))
    assert population_stability(new, old) == pytest.approx(expected, abs=1e-12)
    symmetric = stats.entropy(a, e) + stats.entropy(e, a)
    assert population_stability(new, old) == pytest.approx(symmetric, abs=1e-12)


@given(COUNTS)
def test_p_is_that_of_a_contingency_table(pairs: list[tuple[int, int]]) -> None:
    new, old = np.array(pairs, np.float64).T
    oracle = stats.chi2_contingency(np.stack([new, old]), correction=False)
    # values expected less than once are joined with others
    assume(oracle.expected_freq[0].min() >= 1)
    assert homogeneity_p(new, old) == pytest.approx(oracle.pvalue, abs=1e-10)


@given(st.integers(0, 5), st.integers(1, 40), st.integers(0, 5), st.integers(100, 3000))
def test_p_of_a_rare_value_is_exact(rare: int, common: int, rare_before: int, common_before: int) -> None:
    table = np.array([[rare, common], [rare_before, common_before]])
    expected = table[:, 0].sum() * table[0].sum() / table.sum()
    assume(rare + rare_before > 0)
    assume(expected < 0.999)
    oracle = stats.fisher_exact(table, alternative="greater")
    assert homogeneity_p(*table.astype(np.float64)) == pytest.approx(oracle.pvalue, rel=1e-8)


def test_with_large_training_samples_p_is_that_of_a_single_sample() -> None:
    new, old = np.array([30.0, 50.0, 40.0]), np.array([3e7, 4e7, 5e7])
    expected = stats.chisquare(new, old / old.sum() * new.sum())
    assert homogeneity_p(new, old) == pytest.approx(expected.pvalue, rel=1e-4)


@given(st.integers(0, 6), st.integers(1, 30), st.integers(1, 60))
def test_values_that_training_never_had(unknown: int, known: int, n_training: int) -> None:
    n = known + unknown
    table = [[unknown, known], [0, n_training]]
    expected = stats.fisher_exact(table, alternative="greater").pvalue
    assert unknown_probability(unknown, n, n_training) == pytest.approx(expected, rel=1e-9)


def test_a_value_that_one_side_lacks_is_half_a_row() -> None:
    a, e = (0.5 / 100, 1.0), (0.5, 0.5)
    expected = sum((x - y) * math.log(x / y) for x, y in zip(a, e, strict=True))
    assert population_stability(np.array([0.0, 100.0]), np.array([50.0, 50.0])) == pytest.approx(expected)


def test_rare_values_are_pooled() -> None:
    """One row of a rare level is no drift, however small its share was."""
    training = np.array([100_000.0, 3.0, 2.0, 1.0])
    assert homogeneity_p(np.array([0.0, 0.0, 0.0, 1.0]), training) == 1.0
    assert not drift_of(np.array([0.0, 0.0, 0.0, 1.0]), training, 0, 2).drifted


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 100, 1000])
@pytest.mark.parametrize("kind", ["even", "skewed", "two"])
def test_false_alarms_are_as_rare_as_the_limit(n: int, kind: str) -> None:
    """In reports of ten attributes without drift, alarms stay below the binomial 99.9 % bound of the allowed share."""
    shares = {"even": np.ones(6) / 6, "skewed": 0.5 ** np.arange(1, 9), "two": np.array([0.95, 0.05])}[kind]
    shares = shares / shares.sum()
    rng = np.random.default_rng(n)
    reports, attributes = 300, 10
    alarms = 0
    for _ in range(reports):
        new = rng.multinomial(n, shares, attributes).astype(np.float64)
        old = rng.multinomial(1500, shares, attributes).astype(np.float64)
        alarms += any(drift_of(*pair, 0, 2 * attributes).drifted for pair in zip(new, old, strict=True))
    assert alarms <= stats.binom.ppf(0.999, reports, ALPHA)


def test_the_mean_of_psi_without_drift() -> None:
    shares = np.array([0.4, 0.3, 0.2, 0.1])
    rng = np.random.default_rng(5)
    new, old = rng.multinomial(400, shares, 2000), rng.multinomial(900, shares, 2000)
    found = [population_stability(*pair) for pair in zip(new.astype(float), old.astype(float), strict=True)]
    told = drift_of(new[0].astype(float), old[0].astype(float), 0, 2)
    assert told.psi_expected == pytest.approx(3 * (1 / 400 + 1 / 900))
    assert np.mean(found) == pytest.approx(told.psi_expected, rel=0.1)
    assert told.psi_limit is not None
    assert np.mean(np.array(found) > told.psi_limit) == pytest.approx(ALPHA / 2, abs=0.005)


def test_drift_has_to_be_large_and_certain() -> None:
    training = np.array([5000.0, 3000.0, 2000.0])
    moved, hardly = np.array([200.0, 300.0, 500.0]), np.array([52_000.0, 30_000.0, 18_000.0])
    assert drift_of(moved, training, 0, 20).drifted
    sure = drift_of(hardly, training, 0, 20)  # so many rows make the smallest change sure, and none of it matters
    assert sure.psi is not None
    assert sure.p is not None
    assert sure.p < 1e-4
    assert sure.psi < LEAST_PSI
    assert not sure.drifted
    unsure = drift_of(np.array([1.0, 2.0, 3.0]), training, 0, 20)
    assert unsure.psi is not None
    assert unsure.psi > LEAST_PSI
    assert not unsure.drifted


def test_values_never_seen_are_drift() -> None:
    training, same = np.array([500.0, 300.0]), np.array([50.0, 30.0])
    assert drift_of(same, training, 20, 10).drifted
    assert not drift_of(same, training, 3, 10).drifted
    alone = drift_of(np.zeros(2), training, 20, 10)
    assert alone.psi is None
    assert alone.drifted


numbers = st.lists(st.floats(-1e150, 1e150), max_size=30)


@given(numbers, st.integers(0, 30))
def test_sums_are_exact_however_the_rows_are_split(values: list[float], at: int) -> None:
    whole, first, second = Moments(), Moments(), Moments()
    whole.add(np.array(values))
    first.add(np.array(values[at:]))
    second.add(np.array(values[:at]))
    first.merge(second)
    assert first == whole
    assert whole.total == sum(map(Fraction, values), Fraction())
    assert float(whole.total) == math.fsum(values)
    assert float(whole.squares) == math.fsum(value * value for value in values)


def test_mean_and_variance() -> None:
    values = np.random.default_rng(0).normal(1e6, 1.0, 100_000)
    moments = Moments()
    for block in np.array_split(values, 7):
        moments.add(block)
    assert moments.mean is not None
    assert abs(moments.mean - values.mean()) < 1e-9
    assert abs(moments.variance - values.var(ddof=1)) < 1e-3
    assert Moments().mean is None


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
def test_the_share_below_is_exact_to_one_interval(values: list[float], at: float) -> None:
    sketch, rows = LogProbabilitySketch(), np.array(values)
    sketch.add(rows)
    lowest, highest = (float(np.mean(rows < at * factor)) for factor in (1.0101, 1 / 1.0101))
    assert lowest - 1e-12 <= sketch.share_below(at) <= highest + 1e-12


def test_values_within_an_interval_are_taken_as_uniform() -> None:
    """One row is far below, four are in interval 100, one is far above: a part of the four counts as below."""
    sketch = LogProbabilitySketch({300: 1, 100: 4, -200: 1})
    for part in (0.0, 0.25, 0.5, 0.75):
        at = -math.exp((100 - part) * WIDTH)
        assert sketch.share_below(at) == pytest.approx((1 + 4 * part) / 6)


@pytest.mark.parametrize("weights", [None, np.arange(1.0, 51.0)])
def test_quantiles_of_training_rows(weights: np.ndarray | None) -> None:
    """Weighted rows are compared with repeated rows."""
    rng = np.random.default_rng(0)
    label = CategoricalColumn(rng.integers(0, 2, 50).astype(np.int32), ("no", "yes"))
    attributes = {f"a{i}": CategoricalColumn(rng.integers(0, 4, 50).astype(np.int32), tuple("abcd")) for i in range(3)}
    columns = Columns(50, attributes, "class", label, weights)
    model = learn(columns, Recipe.of(structure="nb", param="map")).model
    used = compile_scorer(model).used
    found = summarise_log_p(model, columns, used)
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
    sample = sample_evenly(columns)
    values = sample.attributes["x"].values
    assert MOST_ROWS / 2 < sample.n_rows <= MOST_ROWS
    assert set(np.diff(values)) == {4.0}
    assert values[-1] > n - 5


ODDS = st.lists(st.floats(-8, 8), min_size=2, max_size=12)


def counted(log_odds: Sequence[float] | Array, labels: Array | None = None) -> LogOddsCounts:
    counts = LogOddsCounts()
    counts.add(np.asarray(log_odds, np.float64), labels)
    return counts


def brute_auc(log_odds: Sequence[float]) -> float:
    p = [1 / (1 + math.exp(-s)) for s in log_odds]
    pairs = [(i, j) for i, j in itertools.permutations(range(len(p)), 2)]
    wins = [p[i] * (1 - p[j]) * ((log_odds[i] > log_odds[j]) + (log_odds[i] == log_odds[j]) / 2) for i, j in pairs]
    return math.fsum(wins) / math.fsum(p[i] * (1 - p[j]) for i, j in pairs)


@given(ODDS)
def test_auc_is_the_sum_over_pairs(log_odds: list[float]) -> None:
    assert counted(log_odds).expected_auc().value == pytest.approx(brute_auc(log_odds), abs=0.75 * LOG_ODDS_WIDTH)


@given(ODDS)
def test_auc_is_exact_at_the_middle_of_intervals(log_odds: list[float]) -> None:
    """Which leaves no room for an error of the formula, such as a row that is paired with itself."""
    rounded = [round(s) / 2 for s in log_odds]
    assert counted(rounded).expected_auc().value == pytest.approx(brute_auc(rounded), abs=1e-9)


@given(st.lists(st.integers(0, 3), min_size=2, max_size=40))
def test_measured_auc_is_that_of_evaluate(scores: list[int]) -> None:
    rng = np.random.default_rng(len(scores))
    labels = rng.integers(0, 2, len(scores))
    log_odds = np.array(scores, np.float64)
    log_p = np.stack([-np.logaddexp(0.0, log_odds), -np.logaddexp(0.0, -log_odds)])
    found, expected = counted(log_odds, labels).measured_auc(), measure(log_p, labels).auc
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-12))


@given(st.integers(2, 4), st.integers(1, 5), st.integers(0, 1000))
def test_mean_and_variance_of_all_labellings(n_labels: int, n_rows: int, seed: int) -> None:
    p = np.random.default_rng(seed).dirichlet(np.ones(n_labels), n_rows).T
    means, variances = row_entropies(np.log(p))
    labellings = list(itertools.product(range(n_labels), repeat=n_rows))
    chances = np.array([math.prod(p[y, t] for t, y in enumerate(labels)) for labels in labellings])
    losses = np.array([-sum(math.log(p[y, t]) for t, y in enumerate(labels)) for labels in labellings])
    assert means.sum() == pytest.approx(chances @ losses)
    assert variances.sum() == pytest.approx(chances @ np.square(losses) - (chances @ losses) ** 2, abs=1e-9)


def test_a_probability_of_zero_has_no_part_in_the_entropy() -> None:
    with np.errstate(divide="ignore"):
        means, variances = row_entropies(np.log(np.array([[1.0, 0.5], [0.0, 0.5]])))
    assert means.tolist() == pytest.approx([0.0, math.log(2)])
    assert variances.tolist() == pytest.approx([0.0, 0.0])


def test_intervals_are_those_of_drawn_labels() -> None:
    """Limits against 20,000 drawn labellings; a limit of 500 draws has a standard error of about 0.1 half-widths."""
    rng = np.random.default_rng(3)
    log_odds = np.round(rng.normal(0, 1.5, 300), 3)
    p = 1 / (1 + np.exp(-log_odds))
    events = rng.random((20_000, 300)) < p
    correct = np.where(p > 0.5, events, ~events).mean(axis=1)
    confidence = np.maximum(p, 1 - p)
    accuracy = sum_of_draws(300, confidence.sum(), (confidence * (1 - confidence)).sum(), 1.0)
    order = np.argsort(log_odds, kind="stable")
    ranks = np.empty(300)
    for value in np.unique(log_odds):
        ranks[log_odds == value] = np.flatnonzero(log_odds[order] == value).mean() + 1
    n_events = events.sum(axis=1)
    areas = (events @ ranks - n_events * (n_events + 1) / 2) / (n_events * (300 - n_events))
    auc = counted(log_odds).expected_auc()
    for figure, drawn in ((accuracy, correct), (auc, areas)):
        low, high = np.quantile(drawn, (0.025, 0.975))
        assert figure.value == pytest.approx(drawn.mean(), abs=0.002)
        assert figure.interval == pytest.approx((low, high), abs=0.2 * (high - low))


def test_what_is_undefined_is_none() -> None:
    assert counted([]).expected_auc().value is None
    assert counted([1.0]).expected_auc().value is None
    sure = counted([800.0, 900.0]).expected_auc()
    assert (sure.value, sure.interval) == (None, None)
    rare = counted([-9.0, -8.0, -7.0]).expected_auc()
    assert rare.value is not None
    assert rare.interval is None
    assert sum_of_draws(0, 0.0, 0.0, 1.0).value is None


def test_counts_of_parts_add_up() -> None:
    rng = np.random.default_rng(0)
    log_odds, labels = rng.normal(size=50), rng.integers(-1, 2, 50)
    parts = counted(log_odds[:20], labels[:20])
    parts.merge(counted(log_odds[20:], labels[20:]))
    whole = counted(log_odds, labels)
    assert list(parts) == list(whole)
    assert parts.expected_auc() == whole.expected_auc()
