"""What every structure learner in the catalogue must do; a new one is examined without a new test."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bncli.catalogue import NONE_IF_DEFAULT, STRUCTURES
from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.structures.structure import Dag, Regions, Structure
from bncli.errors import BncliError
from tests.datasets import random_dataset, reorder
from tests.strategies import datasets

VALUES = {
    "--k": [0, 1, 3],
    "--structure-score": ["ll", "bic", "bdeu:1", "acll:5"],
    "--forest": [False, True],
    "--loss": ["rmse", "error"],
    "--max-parents": [1, 2],
    "--perfect": [False, True],
    "--epsilon": [0.01],
    "--max-order": [4, 3, 2],
    "--theta": [1.0, 0.5],
    "--degrees-of-freedom": ["conditional", "joint", "structural-zeros"],
    "--max-seconds": [None],
    "--max-candidates": [100_000],
    "--columns": [8, 2],
    "--rows": [40, 6],
    "--pairs": [0, 2],
}
"""What is tried for each option; an option that is missing here fails the first test."""


def variants() -> list[Any]:
    """Every learner with every value of each of its options, the others at their first, and with all at their last."""
    cases = []
    for method in STRUCTURES.methods:
        if not STRUCTURES.module_of(method.word):
            continue
        values = {flag.removeprefix("--").replace("-", "_"): VALUES[flag] for flag in method.options}
        first, last = ({name: tried[end] for name, tried in values.items()} for end in (0, -1))
        tries = [first] + [first | {name: value} for name, tried in values.items() for value in tried[1:]]
        tries += [last] if last not in tries else []
        cases += [pytest.param(method, s, id=" ".join([method.word, *map(str, s.values())])) for s in tries]
    return cases


def ends() -> list[Any]:
    """The first and the last variant of each learner; those between are a sweep."""
    cases = variants()
    words = [case.values[0].word for case in cases]
    between = [words[max(i - 1, 0)] == word == words[min(i + 1, len(words) - 1)] for i, word in enumerate(words)]
    between[0] = between[-1] = False
    marks = [[pytest.mark.slow] if within else [] for within in between]
    return [pytest.param(*case.values, id=case.id, marks=mark) for case, mark in zip(cases, marks, strict=True)]


few = settings(max_examples=settings.default.max_examples // 2)
"""There are many learners."""
every_learner = pytest.mark.parametrize(("method", "options"), variants())
every_end = pytest.mark.parametrize(("method", "options"), ends())


def learn(method: Any, data: Dataset, options: dict[str, Any]) -> Structure:
    structure: Structure = importlib.import_module(STRUCTURES.module_of(method.word)).learn(Counts(data), **options)
    return structure


def assert_same(one: Structure, other: Structure) -> None:
    """The same structure; what a search says of its steps to 1e-9."""
    if isinstance(one, Dag) or isinstance(other, Dag):
        assert one == other
        return
    assert replace(one, trace=None, gains=()) == replace(other, trace=None, gains=())
    assert one.gains == pytest.approx(other.gains, rel=1e-9, abs=1e-9)
    if one.trace is not None and other.trace is not None:
        assert (one.trace.df, one.trace.map_step) == (other.trace.df, other.trace.map_step)
        assert one.trace.log_posterior == pytest.approx(other.trace.log_posterior, rel=1e-9, abs=1e-9)


@every_learner
def test_the_signature_is_the_contract(method: Any, options: dict[str, Any]) -> None:
    parameters = inspect.signature(importlib.import_module(STRUCTURES.module_of(method.word)).learn).parameters
    assert next(iter(parameters)) == "counts"
    constrained = {"constraints"} if method.word != "nb" else set()
    assert set(parameters) == {"counts", "watch", *constrained, *options}
    assert parameters["watch"].default is not inspect.Parameter.empty


@every_learner
@few
@given(data=datasets(max_rows=40))
def test_a_structure_over_the_informative_attributes(method: Any, options: dict[str, Any], data: Dataset) -> None:
    structure = learn(method, data, options)
    assert structure.method == method.word
    said = {name: value for name, value in options.items() if value not in (None, NONE_IF_DEFAULT.get(name))}
    assert dict(structure.options) == said
    if isinstance(structure, Dag):
        assert_network(structure, len(data.codes))
    else:
        assert_regions(structure, data)


def assert_regions(structure: Regions, data: Dataset) -> None:
    for s, region in enumerate(structure.regions):
        assert region
        assert list(region) == sorted(set(region))
        assert set(region) <= set(data.schema.informative)
        assert not any(set(region) <= set(earlier) for earlier in structure.regions[:s])


def assert_network(dag: Dag, n: int) -> None:
    assert len(dag.parents) == n
    assert list(dag.class_children) == sorted(set(dag.class_children))
    for i, parents in enumerate(dag.parents):
        assert len(set(parents)) == len(parents)
        assert set(parents) <= set(range(n)) - {i}
    assert is_acyclic(dag)


def is_acyclic(dag: Dag) -> bool:
    """Leaves can be plucked until nothing is left."""
    left = set(range(len(dag.parents)))
    while left:
        free = {i for i in left if not left & set(dag.parents[i])}
        if not free:
            return False
        left -= free
    return True


@every_end
@few
@given(data=datasets(max_rows=40), seed=st.integers(0, 99))
def test_the_order_of_rows_does_not_matter(method: Any, options: dict[str, Any], data: Dataset, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(data.n_rows)
    assert_same(learn(method, data.take(order), options), learn(method, data, options))


@every_end
@few
@given(data=datasets(max_rows=40))
def test_names_do_not_matter(method: Any, options: dict[str, Any], data: Dataset) -> None:
    attributes = tuple(replace(a, name=f"z{9 - i}") for i, a in enumerate(data.schema.attributes))
    renamed = replace(data, schema=replace(data.schema, attributes=attributes))
    assert_same(learn(method, renamed, options), learn(method, data, options))


@every_end
@few
@given(data=datasets(max_rows=30), seed=st.integers(0, 99))
def test_weight_two_is_the_row_twice(method: Any, options: dict[str, Any], data: Dataset, seed: int) -> None:
    times = np.random.default_rng(seed).integers(1, 4, data.n_rows)
    counted = replace(data, weights=None)
    doubled = counted.take(np.repeat(np.arange(data.n_rows), times))
    assert_same(learn(method, replace(data, weights=times.astype(float)), options), learn(method, doubled, options))


@every_end
@pytest.mark.usefixtures("small_blocks")
def test_threads_do_not_matter(method: Any, options: dict[str, Any]) -> None:
    outcomes = [
        learn(method, random_dataset(5_000, (3, 2, 4, 3), 3, weighted=True, threads=threads), options)
        for threads in (1, 3)
    ]
    assert outcomes[0] == outcomes[1]


@every_end
def test_the_order_of_attributes_does_not_matter_where_nothing_ties(method: Any, options: dict[str, Any]) -> None:
    data, order = random_dataset(500, (3, 2, 4, 3, 2), 3, seed=8), (3, 0, 4, 1, 2)
    straight, shuffled = learn(method, data, options), learn(method, reorder(data, order), options)
    if isinstance(straight, Regions) and isinstance(shuffled, Regions):
        found = [frozenset(order[j] for j in region) for region in shuffled.regions]
        assert found == [frozenset(r) for r in straight.regions] or method.word == "interactions"
        assert set(found) == {
            frozenset(r) for r in straight.regions
        }  # single attributes are in the order of the schema
        return
    assert isinstance(straight, Dag)
    assert isinstance(shuffled, Dag)
    for new, old in enumerate(order):
        assert tuple(order[j] for j in shuffled.parents[new]) == straight.parents[old]


DEGENERATE: list[tuple[int, tuple[int, ...], int]] = [
    (0, (2, 3), 2), (1, (2, 3), 2), (20, (4,), 2), (20, (), 2), (20, (1, 1), 2), (20, (1, 3), 2), (20, (2, 3), 1)
]  # fmt: skip
"""The numbers of rows, of values of each attribute, and of labels."""


@every_learner
def test_degenerate_data_give_a_structure_or_one_clear_error(method: Any, options: dict[str, Any]) -> None:
    for sizes in DEGENERATE:
        data = random_dataset(*sizes)
        try:
            structure = learn(method, data, options)
        except BncliError:
            continue
        assert set(structure.attributes) <= set(data.schema.informative), sizes
        if isinstance(structure, Dag):
            assert is_acyclic(structure), sizes
