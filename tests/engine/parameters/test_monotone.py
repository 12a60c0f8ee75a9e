"""Check monotone parameters: no row's log-odds fall, and they are optimal, by scipy and by the KKT conditions."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import LinearConstraint, minimize, nnls

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import direction_of
from bncli.engine.model import Model, Optimum, Tables
from bncli.engine.parameter_learners.conditional import (
    build_space_discriminative,
    build_space_lr,
    build_space_lr_roos,
    build_space_weighted,
)
from bncli.engine.parameters.optimization import ParameterSpace, find_optimum, find_optimum_from
from bncli.engine.parameters.penalty_choice import held_out_folds, penalty_path
from bncli.engine.structures.structure import Dag, Regions, Structure
from bncli.recipe import Recipe
from tests.directions import directed_dataset, worst_fall
from tests.spaces import how
from tests.strategies import dags, groupings
from tests.sweeps import every_value, examples

TAN = Dag(((), (0,), (0,)), (0, 1, 2))
PAIRS = Regions(((0,), (1,), (2,), (0, 1), (0, 2)))
MISSING = (False, True, False)


def space_of(name: str, data: Dataset, structure: Structure) -> ParameterSpace:
    counts = Counts(data)
    if name.startswith("discriminative"):
        coding = "thermometer" if "thermometer" in name else "cells"
        smoothing = "m-estimate:1" if isinstance(structure, Dag) else None
        lower = "lower" in name
        return build_space_discriminative(counts, structure, smoothing=smoothing, coding=coding, lower_orders=lower)
    if name.startswith("weighted"):
        return build_space_weighted(counts, structure, smoothing="m-estimate:1", level=int(name[-1]))
    build: Any = {"lr": build_space_lr, "lr-roos": build_space_lr_roos}[name]
    found: ParameterSpace = build(counts, structure, smoothing="m-estimate:1")
    return found


def optimum(space: ParameterSpace, **changes: Any) -> Optimum:
    return find_optimum(space, how(**({"penalty": 0.5, "tolerance": 1e-11, "init": "zero"} | changes)), lambda *_: None)


def model_of(space: ParameterSpace, structure: Structure, point: NDArray[np.float64]) -> Model:
    data = space.likelihood.data
    tables = Tables.of_cells(space.cells(point), space.likelihood.families)
    return Model(data.schema, structure, tables, Recipe(), data.n_rows, "1.2.3")


def matrix_of(space: ParameterSpace) -> NDArray[np.float64]:
    """Return W (K n_cells, P) of a space whose tables are linear in its parameters, column by column."""
    n = space.coordinates.n_parameters
    return np.stack([space.coordinates.tables(one).ravel() for one in np.eye(n)], axis=1)


def score_rows(space: ParameterSpace, codes: list[tuple[int | None, ...]]) -> NDArray[np.float64]:
    """Return (rows, n_cells): the cells whose entries each row adds up; the family of an unknown child is left out."""
    out = np.zeros((len(codes), space.likelihood.n_cells))
    for t, row in enumerate(codes):
        out[t, 0] = 1.0
        edge = 1
        for family in space.likelihood.families:
            values = [row[a] for a in family.attributes]
            if None not in values:
                cell = int(np.ravel_multi_index([int(v or 0) for v in values], family.shape))
                out[t, edge + cell] += 1.0
            edge += family.n_cells
    return out


def by_scipy(space: ParameterSpace, penalty: float) -> float:
    """Return the penalised log-likelihood of the best parameters under which no row's log-odds fall, by scipy."""
    data = space.likelihood.data
    schema = data.schema
    matrices = matrix_of(space).reshape(data.n_labels, space.likelihood.n_cells, -1)
    rows = [tuple(int(c[t]) for c in data.codes) for t in range(data.n_rows)]
    of_rows = score_rows(space, rows) @ matrices
    true = np.arange(data.n_labels)[:, np.newaxis] == data.labels

    def objective(p: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        scores = of_rows @ p
        logs = scores - np.logaddexp.reduce(scores, axis=0)
        value = penalty / 2 * p @ p - logs[true].sum()
        return float(value), np.einsum("yt,ytp->p", np.exp(logs) - true, of_rows) + penalty * p

    own = 1 if schema.towards is None else schema.labels.index(schema.towards)
    contrasts = np.concatenate([matrices[own] - other for y, other in enumerate(matrices) if y != own], axis=1)
    bounds = []
    children = {family.child for family in space.likelihood.families}
    for i in range(len(schema.attributes)):
        if sign := direction_of(schema, i):
            ranges = [[*range(m), *([None] if j in children else [])] for j, m in enumerate(schema.cardinalities)]
            ranges[i] = [0]
            for others in itertools.product(*ranges):
                line = [(*others[:i], u, *others[i + 1 :]) for u in range(schema.attributes[i].n_values)]
                rises = sign * np.diff(score_rows(space, line), axis=0) @ contrasts
                bounds.append(rises.reshape(-1, matrices.shape[2]))
    rule = np.unique(np.concatenate(bounds), axis=0)
    start = np.zeros(matrices.shape[2])
    limits: Any = {"type": "ineq", "fun": lambda p: rule @ p, "jac": lambda p: rule}
    found = minimize(
        objective, start, jac=True, method="SLSQP", constraints=[limits], options={"maxiter": 2000, "ftol": 1e-13}
    )
    assert found.success or found.status == 8, found.message  # 8: rounding alone is left
    assert (rule @ found.x).min() > -1e-8
    return -float(found.fun)


CASES = [
    ("discriminative", TAN),
    ("discriminative", PAIRS),
    ("discriminative thermometer", PAIRS),
    ("discriminative thermometer lower", Regions(((0, 1), (0, 2)))),
    ("weighted 4", TAN),
    ("weighted 2", TAN),
    ("lr", TAN),
    ("lr-roos", TAN),
]


@pytest.mark.parametrize(("case", "sign"), every_value(CASES, [1, -1]))
def test_the_optimum_is_that_of_scipy(case: tuple[str, Structure], sign: int) -> None:
    (name, structure), directions = case, (sign, 0, 0)
    data = directed_dataset(150, (4, 3, 3), directions, missing=MISSING, seed=5)
    space = space_of(name, data, structure)
    found = optimum(space)
    cells = space.cells(found.point)
    cll, _ = space.likelihood.value_and_gradient(cells)
    best = by_scipy(space, 0.5)
    assert cll - 0.25 * found.point @ found.point == pytest.approx(best, rel=5e-7)
    assert found.value == pytest.approx(-best, rel=5e-7)


@pytest.mark.parametrize(("case", "towards"), every_value(CASES, [0, 1, 2]))
def test_towards_one_of_three_it_is_that_of_scipy(case: tuple[str, Structure], towards: int) -> None:
    name, structure = case
    directions = (1, 0, 0) if towards < 2 else (-1, 0, 0)
    data = directed_dataset(120, (4, 2, 3), directions, missing=(False, False, True), labels=3, towards=towards, seed=5)
    space = space_of(name, data, structure)
    found = optimum(space)
    best = by_scipy(space, 0.5)
    cells = space.cells(found.point)
    cll, _ = space.likelihood.value_and_gradient(cells)
    assert cll - 0.25 * found.point @ found.point == pytest.approx(best, rel=5e-7)
    assert found.value == pytest.approx(-best, rel=5e-7)
    space_without = replace(space, monotone=None)
    free = optimum(space_without)
    assert free.value < found.value - 1e-3
    assert (
        worst_fall(model_of(space, structure, found.point))
        > -1e-9
        > worst_fall(model_of(space_without, structure, free.point))
    )


def test_of_two_labels_towards_the_first_is_the_other_way_towards_the_second() -> None:
    rising = directed_dataset(150, (4, 3, 3), (1, 0, 0), missing=MISSING, towards=0, seed=5)
    falling = directed_dataset(150, (4, 3, 3), (-1, 0, 0), missing=MISSING, seed=5)
    one, other = (space_of("discriminative thermometer", data, PAIRS) for data in (rising, falling))
    assert optimum(one).value == pytest.approx(optimum(other).value, rel=1e-7)
    assert optimum(replace(one, monotone=None)).value < optimum(one).value - 1e-3


@pytest.mark.filterwarnings("ignore:delta_grad == 0.0:UserWarning")  # trust-constr, at steps of 1e-16 near its end
def test_trust_constr_and_bounds_agree_where_steps_are_parameters() -> None:
    """With one attribute in thermometer coding a direction is a bound on each step, which L-BFGS-B supports."""
    data = directed_dataset(300, (6,), (1,), seed=2)
    space = space_of("discriminative thermometer", data, Regions(((0,),)))
    found = optimum(space, penalty=0.3)
    codes, signs = data.codes[0].astype(int), np.where(data.labels == 1, 1.0, -1.0)
    steps = np.where(np.arange(6)[:, np.newaxis] > np.arange(5), 0.5, -0.5)[codes]

    def objective(p: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        # by symmetry each class has half of a difference: lambda / 2 (p/2)^2 twice
        margin = signs * (p[0] + steps @ p[1:])
        slope = -signs / (1 + np.exp(margin))
        gradient = np.concatenate([[slope.sum()], steps.T @ slope]) + 0.15 * p
        return float(np.logaddexp(0, -margin).sum() + 0.075 * p @ p), gradient

    bounds = [(None, None)] + [(0.0, None)] * 5
    start, tight = np.full(6, 0.1), {"ftol": 1e-15, "gtol": 1e-10}
    bounded = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=tight)
    limits = LinearConstraint(np.eye(6)[1:], 0, np.inf)
    trusted = minimize(objective, start, jac=True, method="trust-constr", constraints=[limits], tol=1e-10)
    assert found.value == pytest.approx(bounded.fun, rel=5e-7)
    assert found.value == pytest.approx(trusted.fun, rel=1e-6)
    np.testing.assert_allclose(np.diff(np.diff(space.cells(found.point), axis=0)[0, 1:]), bounded.x[1:], atol=5e-3)
    assert (bounded.x[1:] == 0).any()
    assert (bounded.x[1:] > 0).any()


@pytest.mark.parametrize(("case", "labels"), every_value(CASES, [3, 2]))
def test_the_conditions_of_an_optimum(case: tuple[str, Structure], labels: int) -> None:
    """The gradient is a combination of the binding rows with nonnegative factors."""
    name, structure = case
    data = directed_dataset(200, (4, 3, 3), (1, -1, 0), missing=MISSING, labels=labels, towards=labels - 1, seed=3)
    space = space_of(name, data, structure)
    found = optimum(space)
    p, monotone = found.point, space.monotone
    assert monotone is not None
    _, d_tables = space.likelihood.value_and_gradient(space.coordinates.tables(p))
    gradient = 0.5 * p - space.coordinates.pull_back(p, d_tables)
    of = monotone.inequalities(0.5)
    rows = of.transposed(np.eye(len(of.stiffness))).T
    x = np.concatenate([p, monotone.directions.slopes(space.coordinates.tables(p))])
    slack = rows @ x
    assert slack.min() > -1e-4
    n = len(p)
    # slopes cost nothing; those of a start leave as much as there is to others, so whatever binds is among these rows
    binding = rows[slack < 1e-3]
    _, residual = nnls(binding.T, np.concatenate([gradient, np.zeros(len(x) - n)]))
    assert residual < 2e-3 * max(1.0, float(np.abs(gradient).max()))
    assert np.abs(gradient).max() > 0.1


def test_a_direction_that_holds_already_costs_nothing() -> None:
    data = directed_dataset(200, (2, 3), (0, 0), seed=1)
    structure = Dag(((), ()), (0, 1))
    free = optimum(space_of("discriminative", data, structure))
    cells = space_of("discriminative", data, structure).cells(free.point)
    sign = 1 if np.diff(cells[1, 1:3] - cells[0, 1:3])[0] > 0 else -1
    for direction, is_same in ((sign, True), (-sign, False)):
        data = directed_dataset(200, (2, 3), (direction, 0), seed=1)
        found = optimum(space_of("discriminative", data, structure))
        assert (found.point == free.point).all() == is_same
        assert (found.evaluations == free.evaluations) == is_same
        assert (found.value > free.value) != is_same


def test_what_is_added_has_the_gradient_it_says() -> None:
    data = directed_dataset(60, (4, 3, 3), (1, -1, 0), missing=MISSING)
    space = space_of("discriminative thermometer", data, PAIRS)
    monotone = space.monotone
    assert monotone is not None
    rng = np.random.default_rng(0)
    n_slopes = monotone.directions.constraints[1].shape[1]
    n = space.coordinates.n_parameters + n_slopes
    x, v = rng.normal(size=n), rng.normal(size=n)
    rows = monotone.inequalities(0.5)
    assert n_slopes
    force = rng.normal(size=len(rows.stiffness))
    assert rows.product(x) @ force == pytest.approx(x @ rows.transposed(force), rel=1e-12)
    np.testing.assert_allclose(rows.product(x + v), rows.product(x) + rows.product(v), atol=1e-12)


@pytest.mark.parametrize(("name", "structure"), CASES, ids=lambda one: one if isinstance(one, str) else one.method)
def test_factors_make_the_tables(name: str, structure: Structure) -> None:
    data = directed_dataset(60, (4, 3, 3), (1, -1, 0), missing=MISSING, labels=3, towards=1)
    coordinates: Any = space_of(name, data, structure).coordinates
    p = np.random.default_rng(0).normal(size=coordinates.n_parameters)
    found = p
    for factor in reversed(coordinates.matrices):
        found = factor @ found
    np.testing.assert_allclose(found, coordinates.tables(p).ravel(), atol=1e-12)


def test_matrices_that_are_not_multiplied_out_make_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    data = directed_dataset(60, (4, 3, 3), (1, 0, -1), missing=MISSING, seed=8)
    whole, parts = (space_of("lr", data, TAN).monotone for _ in range(2))
    assert whole is not None
    assert parts is not None
    of_whole = whole.inequalities(1.0)
    monkeypatch.setattr("bncli.engine.parameters.monotone.ENTRIES", 0)
    of_parts = parts.inequalities(1.0)
    assert len(of_whole.factors) == 1 < len(of_parts.factors)
    x, force = np.random.default_rng(0).normal(size=(2, of_whole.factors[0].shape[1], len(of_whole.stiffness)))
    np.testing.assert_allclose(of_parts.product(x), of_whole.product(x), atol=1e-12)
    np.testing.assert_allclose(of_parts.transposed(force.T[:, :2]), of_whole.transposed(force.T[:, :2]), atol=1e-12)


def test_the_penalty_is_chosen_without_directions_and_its_loss_is_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bncli.engine.parameters.penalty_choice.GRID", (10.0, 1.0))
    free, directed = (directed_dataset(60, (4, 3), (sign, 0), seed=4) for sign in (0, -1))
    paths = []
    for data in (free, directed):
        folds = held_out_folds(data, 0)
        spaces = [space_of("discriminative", fold.counts.data, Dag(((), ()), (0, 1))) for fold in folds]
        of_fold = {id(fold.counts): space for fold, space in zip(folds, spaces, strict=True)}
        paths.append((folds, spaces, penalty_path(folds, lambda counts, of=of_fold: of[id(counts)], center=0.0)))
    (_, _, plain), (folds, spaces, found) = paths
    assert found.penalty == plain.penalty
    assert [one for one in found.tried if one.penalty != found.penalty] == [
        one for one in plain.tried if one.penalty != found.penalty
    ]
    said = 0.0
    for fold, space in zip(folds, spaces, strict=True):
        cells = space.cells(optimum(space, penalty=found.penalty, tolerance=1e-6).point)
        said += space.on(fold.rows).value_and_gradient(cells)[0]
    assert found.log_loss == pytest.approx(-said / 60, rel=2e-3)
    assert plain.log_loss != pytest.approx(-said / 60, rel=4e-3)


@pytest.mark.parametrize("optimizer", ["newton", "lbfgs", "bfgs", "cg", "cgb"])
def test_every_optimizer_gets_there(optimizer: str) -> None:
    data = directed_dataset(150, (4, 3, 3), (1, 0, -1), missing=MISSING, seed=8)
    space = space_of("discriminative thermometer", data, PAIRS)
    best = optimum(space, penalty=1.0)
    assert optimum(space, penalty=1.0, optimizer=optimizer).value == pytest.approx(best.value, rel=1e-5)


@pytest.mark.slow
def test_from_a_point_nearby_it_is_the_same() -> None:
    data = directed_dataset(150, (4, 3, 3), (1, 0, -1), missing=MISSING, seed=8)
    space = space_of("weighted 4", data, TAN)
    best = optimum(space, penalty=1.0)
    again = find_optimum_from(space, how(penalty=1.0, init="zero"), best.point + 0.1)
    assert again.value == pytest.approx(best.value, rel=1e-6)


@pytest.mark.slow
@settings(max_examples=examples(13), deadline=None)
@given(st.data())
def test_no_row_ever_falls(drawn: st.DataObject) -> None:
    """This holds for all rows, networks, directions and labels, with missing and unknown values."""
    n = drawn.draw(st.integers(1, 3))
    cardinalities = drawn.draw(st.lists(st.integers(2, 4), min_size=n, max_size=n))
    missing = [drawn.draw(st.booleans()) and m > 2 for m in cardinalities]
    directions = drawn.draw(st.lists(st.sampled_from([1, -1, 0]), min_size=n, max_size=n).filter(any))
    rows, seed = drawn.draw(st.integers(2, 60)), drawn.draw(st.integers(0, 99))
    labels = drawn.draw(st.integers(2, 4))
    towards = drawn.draw(st.integers(0, labels - 1))
    data = directed_dataset(rows, cardinalities, directions, missing=missing, labels=labels, towards=towards, seed=seed)
    structure: Structure
    if drawn.draw(st.booleans()):
        names = ["discriminative", "weighted 4", "weighted 1", "lr-roos", "discriminative thermometer lower"]
        structure = drawn.draw(dags(n))
    else:
        names = ["discriminative", "discriminative thermometer", "discriminative thermometer lower"]
        of_members = st.sets(st.integers(0, n - 1), min_size=1, max_size=3)
        members = drawn.draw(st.lists(of_members, min_size=1, max_size=4, unique_by=frozenset))
        regions = tuple(tuple(sorted(one)) for one in members)
        seen = tuple(tuple(drawn.draw(groupings(data.schema.attributes[a])) for a in one) for one in regions)
        structure = Regions(regions, binnings=seen)
    space = space_of(drawn.draw(st.sampled_from(names)), data, structure)
    found = optimum(space, penalty=drawn.draw(st.sampled_from([0.01, 1.0])), tolerance=1e-6)
    assert worst_fall(model_of(space, structure, found.point)) > -1e-9
