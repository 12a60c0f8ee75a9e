"""Compare the likelihood of incomplete rows, and contractions of tables, with enumeration and with differences."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from bncli.engine.data import dataset
from bncli.engine.inference import incomplete_likelihood, program
from bncli.engine.inference.incomplete_likelihood import Factor, IncompleteLikelihood, contract, contraction_adjoints
from bncli.engine.parameters.likelihood import conditional_likelihood
from bncli.engine.structures.structure import Dag
from bncli.errors import BncliError
from tests.datasets import schema_of
from tests.engine.inference.enumeration import Problem, enumerate_completions, problem, problems, through_softmax
from tests.sweeps import every_pair


@settings(deadline=None, max_examples=4 * settings.default.max_examples)
@given(problems())
def test_equals_enumeration(case: Problem) -> None:
    check(case)


def check(case: Problem) -> None:
    likelihood = IncompleteLikelihood(case.data, case.families)
    slow = enumerate_completions(case)
    value, gradient = likelihood.value_and_gradient(case.cells)
    joint_value, expected = replace(likelihood, joint=True).value_and_gradient(case.cells)
    np.testing.assert_allclose(likelihood.log_joint(case.cells), slow.log_joint, rtol=1e-10, atol=1e-10)
    assert value == pytest.approx(slow.value, rel=1e-10, abs=1e-10)
    assert joint_value == pytest.approx(slow.joint_value, rel=1e-10, abs=1e-10)
    for found, wanted in ((gradient, slow.gradient), (expected, slow.expected)):
        np.testing.assert_allclose(found[:, 0], wanted[:, 0], atol=1e-9)
        pairs = zip(through_softmax(case, found), through_softmax(case, wanted), strict=True)
        for a, b in pairs:
            np.testing.assert_allclose(a, b, atol=1e-9)


CHAIN = Dag(((), (0,), (1,), (2,), (3,), (4,), (5,), (6,)), (7,), (0,))
HUB = Dag(((), *((0,) for _ in range(6))), tuple(range(7)))
TWO_PARENTS = Dag(((), (0,), (0, 1), (1, 0), (0, 2), (2, 1)), tuple(range(6)))
GRAPHS = {"chain": CHAIN, "hub": HUB, "two parents": TWO_PARENTS, "nothing": Dag(((), ()), ())}


@pytest.mark.parametrize(("name", "n_labels", "share"), every_pair([*GRAPHS], [2, 3, 12], [0.0, 0.3, 1.0]))
def test_shapes_of_graphs(name: str, share: float, n_labels: int) -> None:
    dag = GRAPHS[name]
    cardinalities = (2, 3, 2, 2, 1, 2, 2, 2)[: len(dag.parents)]
    check(problem(dag, cardinalities, n_labels, 10, share, seed=n_labels))


def test_no_rows() -> None:
    case = problem(TWO_PARENTS, (2, 3, 2, 2, 1, 2), 2, 0, 0.3)
    likelihood = IncompleteLikelihood(case.data, case.families)
    value, gradient = likelihood.value_and_gradient(case.cells)
    assert value == 0
    assert not gradient.any()
    assert replace(likelihood, joint=True).value_and_gradient(case.cells)[0] == 0
    assert likelihood.log_joint(case.cells).shape == (2, 0)


@pytest.mark.parametrize("dag", [HUB, TWO_PARENTS, Dag(((), (0,), (1, 0), ()), (1, 2), (3, 0))])
@pytest.mark.parametrize("n_labels", [2, 5])
def test_complete_rows_have_the_closed_form(dag: Dag, n_labels: int) -> None:
    case = problem(dag, (2, 3, 2, 4, 2, 3, 2)[: len(dag.parents)], n_labels, 200, 0.0, seed=1)
    likelihood = IncompleteLikelihood(case.data, case.families)
    closed = conditional_likelihood(case.data, case.families)
    value, gradient = likelihood.value_and_gradient(case.cells)
    slow_value, slow_gradient = closed.value_and_gradient(case.cells)
    assert value == pytest.approx(slow_value, rel=1e-12)
    ours, theirs = (through_softmax(case, g) for g in (gradient, slow_gradient))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10)
    assert likelihood.work.entries == 0


def test_the_gradient_is_the_slope() -> None:
    """The directions are random and the tables stay normalised."""
    case = problem(Dag(((), (0,), (1, 0), (2,)), (1, 2, 3), (0,)), (2, 3, 2, 3), 3, 40, 0.4, seed=3)
    likelihood = IncompleteLikelihood(case.data, case.families)
    rng = np.random.default_rng(0)
    directions = [rng.normal(size=slope.shape) for slope in through_softmax(case, case.cells)]
    for value_and_slope in (likelihood.value_and_gradient, replace(likelihood, joint=True).value_and_gradient):
        slopes = through_softmax(case, value_and_slope(case.cells)[1])
        ahead, behind = (value_and_slope(moved(case, directions, step))[0] for step in (1e-5, -1e-5))
        expected = sum(float(np.vdot(d, slope)) for d, slope in zip(directions, slopes, strict=True))
        assert (ahead - behind) / 2e-5 == pytest.approx(expected, rel=1e-6)


def moved(case: Problem, directions: list[np.ndarray], step: float) -> np.ndarray:
    """Return the log CPTs with `step` times a direction added, normalised again."""
    cells, start = case.cells.copy(), 1
    for family, direction in zip(case.families, directions, strict=True):
        part = slice(start, start + family.n_cells)
        start = part.stop
        if family.child is None:
            cells[:, part] += step * direction
            cells[:, part] -= np.logaddexp.reduce(cells[:, part], axis=0)
        else:
            table = cells[:, part].reshape(len(cells), family.shape[0], -1) + step * direction
            cells[:, part] = (table - np.logaddexp.reduce(table, axis=1, keepdims=True)).reshape(len(cells), -1)
    return cells


@pytest.mark.parametrize("concentration", [1e-3, 0.02])
def test_probabilities_near_zero(concentration: float) -> None:
    """Some entries are about 1e-9 and contradict each other."""
    check(problem(TWO_PARENTS, (2, 3, 2, 2, 3, 2), 3, 25, 0.5, 5, concentration))


def test_probabilities_too_small_for_numbers() -> None:
    """With ln theta of about -690 products underflow, and logarithms are used instead."""
    case = problem(HUB, (3, 2, 2, 2, 2, 2, 2), 2, 30, 0.3, seed=2)
    cells = case.cells.copy()
    n = case.families[1].n_cells
    for f in range(1, 7):
        start = 1 + case.families[0].n_cells + (f - 1) * n
        cells[:, start : start + n // 2] = -690.0 + f
        cells[:, start + n // 2 : start + n] = 0.0
    check(Problem(case.data, case.families, cells))


def test_products_of_many_probabilities_are_rescaled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "MAX_DEPTH", 1)
    check(problem(TWO_PARENTS, (2, 3, 2, 2, 3, 2), 3, 25, 0.5, 5))
    check(problem(CHAIN, (2, 3, 2, 2, 2, 2, 3, 2), 2, 10, 0.7, 5))


@pytest.mark.slow
def test_a_hub_with_hundreds_of_children_and_a_long_chain_stay_finite() -> None:
    n = 400
    for dag in (Dag(((), *((0,) for _ in range(n))), (0,)), Dag(((), *((i,) for i in range(n))), (0, n))):
        case = problem(dag, (3,) * (n + 1), 2, 20, 0.5, seed=4, concentration=0.2)
        likelihood = IncompleteLikelihood(case.data, case.families)
        value, gradient = likelihood.value_and_gradient(case.cells)
        joint_value, expected = replace(likelihood, joint=True).value_and_gradient(case.cells)
        assert np.isfinite(value)
        assert np.isfinite(joint_value)
        assert np.isfinite(gradient).all()
        assert expected.sum() <= 20 * (n + 2) + 1e-6
        assert (expected >= -1e-12).all()


@pytest.mark.slow
def test_threads_and_the_size_of_programs_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "ROWS_PER_BLOCK", 16)
    case = problem(TWO_PARENTS, (2, 3, 2, 2, 3, 2), 3, 150, 0.3, seed=7)
    likelihoods = [IncompleteLikelihood(replace(case.data, threads=threads), case.families) for threads in (1, 3)]
    one, many = (
        (*one.value_and_gradient(case.cells), *replace(one, joint=True).value_and_gradient(case.cells))
        for one in likelihoods
    )
    for a, b in zip(one, many, strict=True):
        np.testing.assert_array_equal(a, b)
    monkeypatch.setattr(incomplete_likelihood, "MAX_PROGRAM", 300)
    small = IncompleteLikelihood(case.data, case.families)
    np.testing.assert_allclose(small.value_and_gradient(case.cells)[1], one[1], atol=1e-10)
    np.testing.assert_allclose(small.log_joint(case.cells), likelihoods[0].log_joint(case.cells), rtol=1e-12)
    assert max(len(block) for block in small._joint.blocks) > 1


def test_too_wide_a_table_is_refused_by_name() -> None:
    likelihood = wide_problem(7)
    with pytest.raises(BncliError, match=r"a\d.* are missing together"):
        likelihood.value_and_gradient(np.zeros((2, 1 + sum(family.n_cells for family in likelihood.families))))


def wide_problem(n: int) -> IncompleteLikelihood:
    """Return n hidden attributes of 16 values, each two of which are the parents of an observed child."""
    pairs = list(itertools.combinations(range(n), 2))
    dag = Dag((*((),) * n, *pairs), tuple(range(n + len(pairs))))
    cardinalities = (16,) * n + (2,) * len(pairs)
    codes = tuple(np.full(1, 16 if i < n else 0, np.uint8) for i in range(n + len(pairs)))
    data = dataset.Dataset(schema_of(cardinalities, 2), codes, np.zeros(1, np.uint8))
    return IncompleteLikelihood(data, dag.families(cardinalities, all_factors=True))


def test_only_what_bears_on_the_class_is_touched() -> None:
    """class -> a0 <- a1 <- a2, with a2 and a3 hidden: if a1 is observed, no sum is needed; a3 is barren."""
    dag = Dag(((1,), (2,), (), (0,)), (0,))
    codes = tuple(np.array([code], np.uint8) for code in (0, 1, 2, 2))
    data = dataset.Dataset(schema_of((2, 2, 2, 2), 2), codes, np.zeros(1, np.uint8))
    likelihood = IncompleteLikelihood(data, dag.families((2, 2, 2, 2), all_factors=True))
    cells = problem(dag, (2, 2, 2, 2), 2, 1, 0.0).cells
    assert likelihood.work.entries == 0
    value, gradient = likelihood.value_and_gradient(cells)
    assert np.isfinite(value)
    assert not gradient[:, 5:].any()


def test_work_is_known_before_a_pass() -> None:
    case = problem(TWO_PARENTS, (2, 3, 2, 2, 3, 2), 3, 50, 0.4, seed=7)
    for joint in (False, True):
        work = IncompleteLikelihood(case.data, case.families, joint).work
        assert work.entries > 0
        assert work.widest


SIZES = {1: 2, 2: 3, 3: 4, 4: 2}
K, N = 2, 5
SHAPES = [
    ((1,), (1,), 1),
    ((1, 2), (1,), 2),
    ((1,), (1, 2), 2),
    ((1, 2), (1, 2), 2),
    ((1, 2), (1, 3), 3),
    ((1, 3), (1, 2), 3),
    ((1, 2, 4), (1, 3), 4),
    ((1, 3), (1, 2, 4), 4),
    ((1, 2, 3), (1, 3, 4), 4),
]


def factor(axes: tuple[int, ...], single: bool, seed: int) -> Factor:
    shape = (K, *(SIZES[axis] for axis in axes), *([] if single else [N]))
    return Factor(np.random.default_rng(seed).uniform(0.1, 1.0, shape), axes, single)


def whole(part: Factor, n_axes: int) -> np.ndarray:
    """Return the table with every axis of the product."""
    table = part.table[..., np.newaxis] if part.single else part.table
    return np.expand_dims(table, tuple(axis for axis in range(1, n_axes + 1) if axis not in part.axes))


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_equals_the_product_summed(shape: tuple[tuple[int, ...], tuple[int, ...], int], single: bool) -> None:
    left_axes, right_axes, n_axes = shape
    left, right = factor(left_axes, False, 0), factor(right_axes, single, 1)
    product = whole(left, n_axes) * whole(right, n_axes)
    total = contract(left, right, n_axes)
    np.testing.assert_allclose(total, product.sum(axis=1), rtol=1e-12)
    adjoint = np.random.default_rng(2).normal(size=total.shape)
    share = product * (adjoint / total)[:, np.newaxis]
    for part, slope in zip((left, right), contraction_adjoints(left, right, n_axes, total, adjoint), strict=True):
        lacks = [axis for axis in range(1, n_axes + 1) if axis not in part.axes] + [n_axes + 1] * part.single
        assert slope is not None
        np.testing.assert_allclose(slope, share.sum(axis=tuple(lacks)), rtol=1e-10, atol=1e-12)


def test_one_table_alone() -> None:
    left = factor((1, 2), False, 0)
    total = contract(left, None, 2)
    np.testing.assert_allclose(total, left.table.sum(axis=1))
    slope, nothing = contraction_adjoints(left, None, 2, total, np.ones_like(total))
    assert nothing is None
    np.testing.assert_allclose(slope.sum(axis=1), np.ones_like(total))


def test_sums_of_zero_stay_finite() -> None:
    left = Factor(np.zeros((1, 2, 1)), (1,), False)
    total = contract(left, None, 1)
    assert not contraction_adjoints(left, None, 1, total, np.zeros_like(total))[0].any()
