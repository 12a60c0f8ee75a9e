"""What every parameter learner in the catalogue must do; a new one is examined without a new test."""

from __future__ import annotations

import inspect
import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from bncli.catalogue import PARAMETERS, SMOOTHINGS, STRUCTURES
from bncli.catalogue.choices import DIRECTIONS, OPTIMIZATION
from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.model import Parameters, Path, StoppedBy, Tables
from bncli.engine.parameters.optimization import OptimizerSettings
from bncli.engine.structures.structure import Dag, Family, Regions, Structure
from bncli.errors import BncliError
from bncli.recipe import defaults
from bncli.watch import Iteration
from tests import oracles
from tests.datasets import dense_dataset, random_dataset
from tests.strategies import datasets, graphs_for

PATHS = ("kbma", "kmap", "points")
"""Learners of regions."""
VALUES: dict[str, list[Any]] = {
    "--level": [1, 2, 3, 4],
    "--smoothing": ["m-estimate:1"],
    "--pseudo-counts": [5.0],
    "--class-pair-prior": [None, "1,1000"],
    "--tolerance": [1e-10],
    "--max-iterations": [300],
    "--theta": [1.0],
    "--degrees-of-freedom": ["conditional", "joint", "structural-zeros"],
    "--coding": ["cells", "thermometer"],
    "--lower-orders": [False, True],
    "--rows": [40],
    "--points": [100, "off"],
}
"""What is tried for each option of a learner's own; those of the optimization are tried together."""


def variants() -> list[Any]:
    """Every learner with every value of each of its own options, with and without a penalty."""
    cases = []
    for method in PARAMETERS.methods:
        if not PARAMETERS.module_of(method.word):
            continue
        together = OPTIMIZATION if "--optimizer" in method.options else ()
        skipped: tuple[str, ...] = () if method.word in PATHS else ("--theta",)
        skipped += ("--trace", "--restarts", *DIRECTIONS)
        own = [flag for flag in method.options if flag not in (*together, *skipped)]
        keys = [flag.removeprefix("--").replace("-", "_") for flag in own]
        values = [VALUES.get(flag, []) for flag in own]
        if together:
            keys, values = [*keys, "settings"], [*values, [optimizer("zero", 1.0), optimizer("generative", 0.0)]]
        assert all(values), f"{method.word} has an option without values to try"
        for chosen in itertools.product(*values):
            words = [c.init if isinstance(c, OptimizerSettings) else str(c) for c in chosen]
            cases.append(pytest.param(method, dict(zip(keys, chosen, strict=True)), id=" ".join([method.word, *words])))
    return cases


def optimizer(init: str, penalty: float) -> OptimizerSettings:
    return OptimizerSettings(init, penalty, 0.0, "lbfgs", 1e-10, 300)


def one_variant_each() -> list[Any]:
    """The first of each learner; the others are a sweep."""
    seen: set[str] = set()
    cases = []
    for case in variants():
        word = case.values[0].word
        cases.append(pytest.param(*case.values, id=case.id, marks=[pytest.mark.slow] if word in seen else []))
        seen.add(word)
    return cases


every_learner = pytest.mark.parametrize(("method", "options"), variants())
one_each = pytest.mark.parametrize(("method", "options"), one_variant_each())
TAN = Dag(((), (0,), (0,), (1,)), (0, 1, 2, 3))


PATH = Regions(((0,), (1,), (2,), (3,), (0, 1), (0, 2), (1, 3), (0, 1, 2)))


def structure_for(method: Any, dag: Dag = TAN) -> Structure:
    """The graph, or for learners of regions regions over the same attributes."""
    if method.word not in PATHS:
        return dag
    n = len(dag.parents)
    return PATH if dag is TAN else Regions(tuple((i,) for i in dag.nodes) + ((*range(min(n, 3)),),) * (n > 1))


def families_of(learnt: Parameters, structure: Structure, data: Dataset, whole: bool) -> tuple[Family, ...]:
    """What the tables have to be for."""
    if isinstance(learnt.predictor, Path):
        return learnt.tables.families
    return structure.families(data.schema.cardinalities, all_factors=whole)


def learn(method: Any, data: Dataset, dag: Structure, options: dict[str, Any], **more: Any) -> Parameters:
    if method.for_missing_values:
        data = replace(data, schema=replace(data.schema, missing_policy="marginalize"))
    learnt: Parameters = PARAMETERS.load(method.word, "learn")(Counts(data), dag, **options, **more)
    return learnt


def cells_of(learnt: Parameters) -> np.ndarray:
    return np.concatenate([learnt.tables.bias[:, np.newaxis], *(w.T for w in learnt.tables.weights)], axis=1)


def assert_same_model(one: Parameters, other: Parameters, data: Dataset) -> None:
    """The same probabilities of every row: to rounding in closed form, as near as the optima are otherwise."""
    assert one.cll_start == pytest.approx(other.cll_start, rel=1e-9)
    assert one.cll == pytest.approx(other.cll, rel=1e-7)
    z = oracles.indicators(one.tables.families, data)
    p, q = (softmax(z @ cells_of(learnt).T, axis=1) for learnt in (one, other))
    np.testing.assert_allclose(p, q, atol=1e-12 if one.stopped_by is StoppedBy.CLOSED_FORM else 1e-4)


@every_learner
def test_the_signature_is_the_contract(method: Any, options: dict[str, Any]) -> None:
    parameters = dict(inspect.signature(PARAMETERS.load(method.word, "learn")).parameters)
    assert list(parameters)[:2] == ["counts", "structure"]
    kikuchi = STRUCTURES.method("kikuchi")
    assert kikuchi is not None
    of_regions = {"theta"} if method.word in kikuchi.params else set()
    # the random starts of a gradient method are part of its settings
    of_starts = {"starts"} if "--restarts" in method.options and "settings" not in options else set()
    assert set(parameters) == {"counts", "structure", "watch", *options, *of_regions, *of_starts}
    assert parameters["watch"].default is not inspect.Parameter.empty


@every_learner
@settings(max_examples=settings.default.max_examples // 2)
@given(data=datasets(max_rows=30, max_attributes=4), draw=st.data())
def test_tables_are_finite_and_the_likelihood_told_is_theirs(
    method: Any, options: dict[str, Any], data: Dataset, draw: st.DataObject
) -> None:
    structure = structure_for(method, draw.draw(graphs_for(method.word, len(data.codes))))
    learnt = learn(method, data, structure, options)
    families = families_of(learnt, structure, data, whole=method.for_missing_values)
    if method.word == "points":  # a table for every region, also for an attribute of a pair
        assert isinstance(structure, Regions)
        regions = sorted(structure.regions, key=lambda region: len(region) > 1)
        groupings = [family.groupings for family in learnt.tables.families]
        families = tuple(
            Family.over(region, data.schema.cardinalities, groupings=own)
            for region, own in zip(regions, groupings, strict=True)
        )
    assert learnt.tables.families == families
    assert learnt.tables.bias.shape == (data.n_labels,)
    assert [w.shape for w in learnt.tables.weights] == [(f.n_cells, data.n_labels) for f in families]
    assert np.isfinite(cells_of(learnt)).all()
    if isinstance(learnt.predictor, Tables):  # an average over a path is not a sum of tables
        cll, _ = oracles.conditional_log_likelihood(families, data, cells_of(learnt))
        assert learnt.cll == pytest.approx(cll, rel=1e-9, abs=1e-9)
    assert learnt.n_parameters > 0


@every_learner
def test_iterations_are_told_and_the_objective_never_falls(method: Any, options: dict[str, Any]) -> None:
    events: list[Any] = []
    data = random_dataset(200, (3, 2, 4, 2), 3, seed=2)
    learnt = learn(method, data, structure_for(method), options, watch=events.append)
    told = [event for event in events if isinstance(event, Iteration)]
    if learnt.stopped_by is StoppedBy.CLOSED_FORM:
        assert told == []
        return
    assert [event.iteration for event in told] == list(range(learnt.iterations + 1))
    values = [(event.cll if event.ll is None else event.ll) - event.penalty for event in told]
    assert all(after >= before - 1e-9 * abs(before) for before, after in itertools.pairwise(values))
    if told[0].ll is None:
        assert (told[0].cll, told[-1].cll) == (learnt.cll_start, learnt.cll)


@one_each
def test_every_smoothing(method: Any, options: dict[str, Any]) -> None:
    for rule in SMOOTHINGS.words if "smoothing" in options else ():
        smoothing = defaults.parse_rule(rule, SMOOTHINGS)
        learnt = learn(method, random_dataset(60, (3, 2, 4, 2), 3), TAN, {**options, "smoothing": smoothing})
        assert np.isfinite(cells_of(learnt)).all()
        assert learnt.cll < 0


@every_learner
@pytest.mark.parametrize("n_labels", [2, 3])
def test_the_order_of_rows_does_not_matter(method: Any, options: dict[str, Any], n_labels: int) -> None:
    data = dense_dataset((3, 2, 2, 2), n_labels)
    shuffled = data.take(np.random.default_rng(0).permutation(data.n_rows))
    one, other = (learn(method, d, structure_for(method), options) for d in (data, shuffled))
    assert_same_model(one, other, data)


@one_each
def test_names_do_not_matter(method: Any, options: dict[str, Any]) -> None:
    data = random_dataset(100, (3, 2, 4, 2), 3)
    attributes = tuple(replace(a, name=f"z{9 - i}") for i, a in enumerate(data.schema.attributes))
    renamed = replace(data, schema=replace(data.schema, attributes=attributes))
    one, other = (learn(method, d, structure_for(method), options) for d in (data, renamed))
    np.testing.assert_array_equal(cells_of(one), cells_of(other))


@one_each
def test_weight_two_is_the_row_twice(method: Any, options: dict[str, Any]) -> None:
    data = dense_dataset((3, 2, 2, 2), 3)
    times = np.random.default_rng(0).integers(1, 4, data.n_rows)
    repeated = data.take(np.repeat(np.arange(data.n_rows), times))
    weighted = replace(data, weights=times.astype(float))
    one, other = (learn(method, d, structure_for(method), options) for d in (repeated, weighted))
    assert_same_model(one, other, data)


@one_each
@pytest.mark.usefixtures("small_blocks")
def test_the_same_bits_again_and_for_any_threads(method: Any, options: dict[str, Any]) -> None:
    outcomes = []
    if "settings" in options:
        options = {**options, "settings": replace(options["settings"], max_iterations=6)}
    for threads in (1, 3):
        data = random_dataset(5_000, (3, 2, 4, 2), 3, weighted=True, threads=threads)
        learnt = learn(method, data, structure_for(method), options)
        outcomes.append((learnt.cll, learnt.evaluations, cells_of(learnt).tobytes()))
    assert len(set(outcomes)) == 1


DEGENERATE: list[tuple[int, tuple[int, ...], int]] = [
    (1, (2, 3), 2), (20, (4,), 3), (20, (), 2), (20, (1, 3), 2), (1, (), 4)
]  # fmt: skip
"""The numbers of rows, of values of each attribute, and of labels."""


@every_learner
def test_degenerate_data_give_parameters_or_one_clear_error(method: Any, options: dict[str, Any]) -> None:
    for n_rows, cardinalities, n_labels in DEGENERATE:
        data = random_dataset(n_rows, cardinalities, n_labels)
        dag = Dag(((),) * len(cardinalities), data.schema.informative)
        try:
            learnt = learn(method, data, structure_for(method, dag), options)
        except BncliError:
            continue
        assert np.isfinite(cells_of(learnt)).all(), (n_rows, cardinalities, n_labels)
