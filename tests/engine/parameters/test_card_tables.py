"""Groups and fits of cards against exhaustive search and against the conditions of the optimum."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bncli.engine.data.schema import Attribute, CategoricalAttribute, NumericAttribute
from bncli.engine.parameters.card_tables import (
    EXCHANGE_COST,
    LEAST_COST,
    PENALTY,
    PSEUDO_ROWS,
    CardFit,
    GroupedFit,
    TableGroups,
    ascending_pairs,
    fewest_boxes,
    join_codes,
    join_values,
    joinable_boxes,
    joinable_pairs,
)


def loss(counts: np.ndarray, groups: list[int]) -> float:
    """The entropy that a grouping leaves, in nats, with the rows that are added."""
    base = counts.sum(axis=0) / counts.sum()
    total = 0.0
    for g in set(groups):
        row = sum(counts[i] + PSEUDO_ROWS * base for i in range(len(groups)) if groups[i] == g)
        total -= sum(n * math.log(n / row.sum()) for n in row if n > 0)
    return total


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=6), st.booleans())
@example([(0, 3), (0, 9), (4, 8), (4, 8), (4, 8)], False)
def test_the_first_pair_that_is_joined_costs_least(rows: list[tuple[int, int]], is_ordered: bool) -> None:
    counts = np.array(rows, np.float64)
    if not counts.sum(axis=0).all():
        return
    n = len(rows)
    groups = join_values(counts, n if is_ordered else 0, cost=0.0, most=n - 1).tolist()
    assert max(groups) == n - 2
    pairs = itertools.pairwise(range(n)) if is_ordered else itertools.combinations(range(n), 2)
    least = min(loss(counts, [a if i == b else i for i in range(n)]) for a, b in pairs)
    assert loss(counts, groups) == pytest.approx(least, abs=1e-9)


@given(st.integers(3, 9), st.integers(0, 1000))
def test_intervals_stay_together_and_two_groups_are_left(n: int, seed: int) -> None:
    counts = np.random.default_rng(seed).integers(0, 30, (n + 1, 3)).astype(float)
    groups = join_values(counts, n, cost=1e9, most=4)
    assert len(set(groups.tolist())) == 2
    kept = join_values(counts, n, cost=0.0, most=4)
    assert len(set(kept.tolist())) <= 4
    runs = [value for value, _ in itertools.groupby(kept[:n].tolist())]
    assert len(runs) == len(set(runs))


def test_a_missing_level_may_join_any_interval() -> None:
    assert set(joinable_pairs([0, 2, 3, 5], 5)) == {(0, 1), (1, 2), (0, 3), (1, 3), (2, 3)}
    assert set(joinable_pairs([0, 1, 2], 0)) == {(0, 1), (0, 2), (1, 2)}


@pytest.mark.parametrize("n_labels", [2, 3])
def test_the_gradient_at_the_optimum_is_zero(n_labels: int) -> None:
    rng = np.random.default_rng(2)
    columns = [rng.integers(0, 3, 200), rng.integers(0, 2, 200)]
    labels = (columns[0] + rng.integers(0, 2, 200)) % n_labels
    mass = rng.uniform(0.5, 2.0, 200)
    fit = CardFit(labels, n_labels, mass)
    objective, bias, values = fit.free(columns, [3, 2], tolerance=1e-15)
    scores = fit.scores(bias, columns, values)
    residuals = mass[:, None] * (fit.target - fit.probabilities(scores))
    for column, own in zip(columns, values, strict=True):
        slope = np.stack([residuals[column == k].sum(axis=0) for k in range(len(own))])
        np.testing.assert_allclose(slope, PENALTY * own, atol=1e-4)
    norm = sum(float((own**2).sum()) for own in values)
    assert objective == pytest.approx(fit.loss(scores) + PENALTY / 2 * norm, rel=1e-4)
    assert fit.loss(scores) == pytest.approx(-(mass * np.log(fit.probabilities(scores)[np.arange(200), labels])).sum())


def planted(kinds: str, seed: int) -> tuple[CardFit, list[np.ndarray], list[Attribute]]:
    """Rows whose class depends on whether two attributes of 6 codes are both in a half of their codes, or neither."""
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, 6, 500) for _ in kinds]
    halves = [own < 3 if kind == "n" else np.isin(own, [0, 2, 5]) for own, kind in zip(codes, kinds, strict=True)]
    labels = ((halves[0] == halves[1]) ^ (rng.random(500) < 0.2)).astype(np.intp)
    attributes: list[Attribute] = [
        NumericAttribute(name, False, (1.0,) * 6, cuts=(0.0, 1.0, 2.0, 3.0, 4.0))
        if kind == "n"
        else CategoricalAttribute(name, False, (1.0,) * 6, levels=tuple("uvwxyz"))
        for name, kind in zip("ab", kinds, strict=True)
    ]
    return CardFit(labels, 2, np.ones(500)), codes, attributes


@pytest.mark.parametrize("kinds", ["nn", "nc", "cc"])
def test_the_values_of_a_pair_are_joined_as_enumeration_joins_them(kinds: str) -> None:
    fit, codes, attributes = planted(kinds, 3)
    scores = np.tile(fit.frequencies(), (500, 1))
    p = fit.probabilities(scores)[:, 1]

    def gain(groupings: tuple[tuple[int, ...], ...]) -> float:
        cells = np.array(groupings[0])[codes[0]] * 6 + np.array(groupings[1])[codes[1]]
        total = 0.0
        for cell in np.unique(cells):
            g, h = (fit.labels - p)[cells == cell].sum(), (p * (1 - p))[cells == cell].sum()
            total += (g * g - h) / (2 * (h + PENALTY / 2))
        return float(total)

    splits = [
        [tuple(int(c > cut) for c in range(6)) for cut in range(5)]
        if kind == "n"
        else [halves for halves in itertools.product((0, 1), repeat=6) if halves[0] == 0 and any(halves)]
        for kind in kinds
    ]
    best = max(itertools.product(*splits), key=gain)
    found, groupings = join_codes(fit.residuals(scores), codes, attributes)
    own = tuple(grouping or tuple(range(6)) for grouping in groupings)
    assert found == pytest.approx(gain(own))
    assert found >= gain(best) - 1e-9
    for grouping, coarse in zip(own, best, strict=True):
        # the best cut of each attribute is one of the cuts
        assert len(set(zip(grouping, coarse, strict=True))) == len(set(grouping))
    assert (max(own[0]) + 1) * (max(own[1]) + 1) <= 9


def test_a_missing_level_of_a_pair_stays_alone() -> None:
    fit, codes, _ = planted("nn", 1)
    attributes = [NumericAttribute(n, True, (1.0,) * 6, cuts=(0.0, 1.0, 2.0, 3.0)) for n in "ab"]
    _, groupings = join_codes(fit.residuals(np.zeros((500, 2))), codes, attributes)
    for grouping in groupings:
        assert grouping is not None
        assert grouping[-1] == max(grouping)
        assert grouping[-1] not in grouping[:-1]


def are_boxes(groups: tuple[int, ...], shape: tuple[int, int], ordered: tuple[int, int]) -> bool:
    for g in set(groups):
        cells = [divmod(k, shape[1]) for k in range(len(groups)) if groups[k] == g]
        axes = [sorted({cell[j] for cell in cells}) for j in range(2)]
        if set(itertools.product(*axes)) != set(cells):
            return False
        for axis, n in zip(axes, ordered, strict=True):
            run = [code for code in axis if code < n]
            if run and run != list(range(run[0], run[-1] + 1)):
                return False
    return True


@given(st.lists(st.integers(0, 2), min_size=6, max_size=6), st.sampled_from([(0, 0), (2, 3), (2, 2), (0, 3)]))
def test_equal_cells_become_the_fewest_boxes(numbers: list[int], ordered: tuple[int, int]) -> None:
    shape = (2, 3)
    found = tuple(fewest_boxes(np.array(numbers)[:, np.newaxis], shape, ordered).tolist())
    assert are_boxes(found, shape, ordered)
    assert len(set(zip(found, numbers, strict=True))) == len(set(found))
    least = min(
        len(set(groups))
        for groups in itertools.product(range(len(set(found))), repeat=6)
        if are_boxes(groups, shape, ordered) and len(set(zip(groups, numbers, strict=True))) == len(set(groups))
    )
    assert len(set(found)) == least
    for a, b in joinable_boxes(np.array(found), shape, ordered):
        assert are_boxes(tuple(a if g == b else g for g in found), shape, ordered)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_labels", [2, 3])
def test_groups_that_are_left_are_those_of_enumeration(seed: int, n_labels: int) -> None:
    rng = np.random.default_rng(seed)
    code = rng.integers(0, 8, 400)
    labels = ((code > rng.integers(2, 6)) + (rng.random(400) < 0.3) * rng.integers(0, n_labels, 400)) % n_labels
    attribute = NumericAttribute("a", False, (1.0,) * 8, cuts=tuple(map(float, range(7))))
    table = TableGroups.of_values(np.arange(8), attribute)
    found = GroupedFit([code], labels, np.ones(400), n_labels, [table]).join(2)
    fit = CardFit(labels, n_labels, np.ones(400))
    least = min(fit.free([(code > cut).astype(np.intp)], [2])[0] for cut in range(7))
    assert fit.free([found.groups[0][code]], [2])[0] == pytest.approx(least, rel=1e-6)
    assert found.n_rows == 2


def test_a_table_that_says_least_is_left_out_where_rows_are_few() -> None:
    rng = np.random.default_rng(4)
    codes = [rng.integers(0, 4, 500) for _ in range(3)]
    labels = (codes[0] + 0.2 * codes[1] + rng.normal(size=500) > 2).astype(np.intp)
    attribute = NumericAttribute("a", False, (1.0,) * 4, cuts=(0.0, 1.0, 2.0))
    tables = [TableGroups.of_values(np.arange(4), attribute, fewest=1)] * 3
    found = GroupedFit(codes, labels, np.ones(500), 2, tables).join(4)
    assert [len(own) > 1 for own in found.values] == [True, False, False]
    assert found.n_rows <= 4
    whole = GroupedFit(codes, labels, np.ones(500), 2, [t._replace(fewest=2) for t in tables]).join(6)
    assert [len(own) for own in whole.values] == [2, 2, 2]


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_exchanges_lead_from_columns_of_noise_to_the_card_of_enumeration(seed: int, n_labels: int) -> None:
    rng = np.random.default_rng(seed)
    n, size = 400, 5
    cells = [rng.integers(0, size, n) for _ in range(5)]
    labels = np.clip((cells[3] > 1) * 1 + (cells[4] > 2) * 1 + (rng.random(n) < 0.2), 1, n_labels) - 1
    numeric = NumericAttribute("x", False, (1.0,) * size, cuts=tuple(map(float, range(size - 1))))
    tables = [TableGroups.of_values(np.arange(size), numeric, 1)] * 5
    fit = GroupedFit(cells, labels, np.ones(n), n_labels, tables)
    empty = [np.zeros(size, np.intp)] * 5
    halves = [(np.arange(size) > cut).astype(np.intp) for cut in range(size - 1)]

    def cost(groups: list[np.ndarray]) -> float:
        n_rows = sum(2 for own in groups if own.any())
        return fit.fitted(groups)[0] + LEAST_COST * (n_labels - 1) * n_rows

    start = fit.join_groups([halves[1], halves[2], *empty[2:]], 4)
    found = fit.exchange(start, 4, 2)
    assert found.n_rows <= 4
    least = math.inf
    for f, g in itertools.combinations(range(5), 2):
        for one, other in itertools.product(halves, halves):
            groups = [*empty]
            groups[f], groups[g] = one, other
            least = min(least, cost(groups))
    assert cost(found.groups) <= least + EXCHANGE_COST
    assert [bool(own.any()) for own in found.groups] == [False, False, False, True, True]


@pytest.mark.parametrize(
    ("sizes", "n_labels", "seed"), [([3, 3], 2, 3), ([3, 3], 3, 0), ([3, 3], 3, 1), ([2, 3, 2, 3], 2, 0)]
)
def test_tables_of_three_groups_leave_their_rows_to_a_further_table(sizes: list[int], n_labels: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, size, most, rows = 3_000, 20, len(sizes) + 1, sum(sizes)
    x = rng.standard_normal((most + 1, n))
    total = x[:most].sum(axis=0) + rng.logistic(0, 1.0, n)  # the last column is noise
    labels = np.digitize(total, np.quantile(total, np.arange(1, n_labels) / n_labels))
    cells = [np.digitize(column, np.quantile(column, np.arange(1, size) / size)) for column in x]
    numeric = NumericAttribute("x", False, (1.0,) * size, cuts=tuple(map(float, range(size - 1))))
    tables = [TableGroups.of_values(np.arange(size), numeric, 1)] * len(x)
    fit = GroupedFit(cells, labels, np.ones(n), n_labels, tables)
    formed = {2: np.arange(size) // 10, 3: np.digitize(np.arange(size), [4, 16])}
    empty = [np.zeros(size, np.intp)] * (len(x) - len(sizes))
    start = fit.join_groups([*(formed[k] for k in sizes), *empty], rows)
    assert [len(own) for own in start.values] == [*sizes, 1, 1]
    found = fit.exchange(start, rows, most)
    assert [len(own) for own in found.values] == [2] * most + [1]
    assert fit.exchange(start, rows, most - 1).n_rows == rows


def test_the_order_of_groups_is_that_of_neighbours_along_an_axis() -> None:
    rising = NumericAttribute("a", True, (1.0,) * 4, cuts=(0.0, 1.0), direction=1)
    falling = NumericAttribute("b", False, (1.0,) * 2, cuts=(0.0,), direction=-1)
    free = CategoricalAttribute("c", False, (1.0,) * 2, levels=("u", "v"))
    assert ascending_pairs(np.array([0, 1, 1, 0]), [rising], [4], [3]) == [(0, 1)]  # the last code is a missing level
    assert ascending_pairs(np.arange(2), [falling], [2], [2]) == [(1, 0)]
    assert ascending_pairs(np.arange(2), [free], [2], [0]) == []
    grid = np.array([0, 0, 1, 2])  # two boxes above one
    assert set(ascending_pairs(grid, [falling, free], [2, 2], [2, 0])) == {(1, 0), (2, 0)}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_labels", [2, 3])
def test_the_optimum_under_orders_is_that_of_a_general_optimizer(seed: int, n_labels: int) -> None:
    from scipy.optimize import minimize

    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, 4, 150), rng.integers(0, 3, 150)]
    labels = (columns[0] + rng.integers(0, 3, 150)) % n_labels
    fit = CardFit(labels, n_labels, rng.uniform(0.5, 2, 150), raised=seed % n_labels)
    orders = [[(0, 1), (1, 2), (2, 3)], [(2, 1), (0, 1)]]
    objective, bias, values = fit.free(columns, [4, 3], tolerance=1e-14, orders=orders)
    pairs = [(f, low, high) for f, order in enumerate(orders) for low, high in order]

    def parts(x: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        rows = x.reshape(8, n_labels)
        return rows[0], [rows[1:5], rows[5:]]

    def loss_of(x: np.ndarray) -> float:
        own, tables = parts(x)
        return fit.loss(fit.scores(own, columns, tables)) + PENALTY / 2 * sum(float((t**2).sum()) for t in tables)

    def rises(x: np.ndarray) -> np.ndarray:
        gaps = np.array([parts(x)[1][f][high] - parts(x)[1][f][low] for f, low, high in pairs])
        return np.delete(gaps[:, [fit.raised]] - gaps, fit.raised, axis=1).ravel()

    slow = minimize(
        loss_of,
        np.zeros(8 * n_labels),
        method="SLSQP",
        constraints={"type": "ineq", "fun": rises},
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert slow.success
    found = np.concatenate([bias[np.newaxis], *values]).ravel()
    assert rises(found).min() > -1e-9
    assert loss_of(found) == pytest.approx(objective, abs=1e-3)  # the bias has a tiny penalty of its own
    assert loss_of(found) <= slow.fun + 1e-5
    unbound = fit.free(columns, [4, 3], tolerance=1e-14)
    assert rises(np.concatenate([unbound[1][np.newaxis], *unbound[2]]).ravel()).min() < -1e-3  # the orders matter
