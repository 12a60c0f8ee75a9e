"""Mutual informations, k-dependence parents and gains of arcs against their definitions.

Search on wide tables: the same structure as without narrowing, and arcs among the most informative attributes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.catalogue import STRUCTURES
from bncli.engine.counting.counts import Counts
from bncli.engine.data.columns import ChunkedColumn, ColumnsJoinedOnDemand
from bncli.engine.data.dataset import Dataset
from bncli.engine.learn import learn_structure
from bncli.engine.structure_learners.dependence import (
    FEW_SEARCHED,
    MOST_SEARCHED,
    WIDE,
    arc_gains,
    conditional_dependence,
    k_dependence_parents,
    narrow,
    relevance,
)
from bncli.engine.structures.scores import parse_score
from bncli.engine.structures.structure import Dag, Regions
from bncli.recipe import Recipe
from bncli.watch import Event, Note, Progress, Run
from tests import oracles
from tests.datasets import dataset_of, random_dataset
from tests.missing_values import complete_rows, with_missing
from tests.strategies import datasets

ONE_VALUE = (1,) * (WIDE // 2)
FEW = (*ONE_VALUE, 2, 3, 1, 2, 4, *ONE_VALUE, 3, 2)


@given(datasets())
def test_equals_the_slow_definitions(data: Dataset) -> None:
    n = len(data.codes)
    expected = [oracles.mutual_information(oracles.count(data, (i,))) for i in range(n)]
    np.testing.assert_allclose(relevance(Counts(data)), expected, rtol=1e-10, atol=1e-12)
    dependence = conditional_dependence(Counts(data))
    np.testing.assert_array_equal(dependence, dependence.T)
    np.testing.assert_array_equal(np.diag(dependence), 0.0)
    for i, j in itertools.combinations(range(n), 2):
        slow = oracles.conditional_mutual_information(oracles.count(data, (i, j)))
        assert dependence[i, j] == pytest.approx(slow, rel=1e-10, abs=1e-12)


def test_uninformative_attributes_have_no_dependence() -> None:
    data = random_dataset(40, (3, 1, 2, 1), 2)
    assert relevance(Counts(data))[[1, 3]].tolist() == [0.0, 0.0]
    assert not conditional_dependence(Counts(data))[[1, 3]].any()


def test_no_attributes_and_no_rows() -> None:
    assert relevance(Counts(random_dataset(5, (), 2))).shape == (0,)
    assert not conditional_dependence(Counts(random_dataset(0, (2, 3), 2))).any()


def test_progress_is_told() -> None:
    events: list[Event] = []
    conditional_dependence(Counts(random_dataset(20, (2,) * 13, 2)), events.append)
    told = [e for e in events if isinstance(e, Progress)]
    assert [e.done for e in told] == sorted({e.done for e in told})
    assert told[0].done == 0
    assert all(e.done < e.total == 78 for e in told if e.total)
    assert all(e.total == 78 for e in events if isinstance(e, Progress))


@given(datasets(), st.sampled_from([0.3, 1.0]))
def test_missing_values_leave_the_rows_that_have_the_attribute_or_the_pair(data: Dataset, share: float) -> None:
    incomplete = with_missing(data, share)
    n = len(data.codes)
    alone = [oracles.count(complete_rows(incomplete, {i}), (i,)) for i in range(n)]
    expected = [oracles.mutual_information(table) for table in alone]
    np.testing.assert_allclose(relevance(Counts(incomplete)), expected, rtol=1e-10, atol=1e-12)
    dependence = conditional_dependence(Counts(incomplete))
    for i, j in itertools.combinations(range(n), 2):
        table = oracles.count(complete_rows(incomplete, {i, j}), (i, j))
        assert dependence[i, j] == pytest.approx(oracles.conditional_mutual_information(table), rel=1e-10, abs=1e-12)


@given(datasets(max_rows=30), st.integers(0, 5))
def test_parents_of_a_smaller_k_come_first(data: Dataset, k: int) -> None:
    (order, few), (same_order, more) = (k_dependence_parents(Counts(data), n) for n in (k, k + 1))
    assert order == same_order
    assert few == tuple(parents[:k] for parents in more)


@given(datasets(max_rows=30))
def test_the_most_relevant_come_first_and_parents_before_their_children(data: Dataset) -> None:
    counts = Counts(data)
    order, parents = k_dependence_parents(counts, 2)
    scores = relevance(counts)
    assert list(order) == sorted(range(len(data.codes)), key=lambda i: (-scores[i], i))
    for rank, i in enumerate(order):
        assert set(parents[i]) <= set(order[:rank])


def test_uninformative_attributes_are_not_in_the_order() -> None:
    order, parents = k_dependence_parents(Counts(random_dataset(40, (1, 3, 1, 2), 2)), 3)
    assert sorted(order) == [1, 3]
    assert parents[0] == parents[2] == ()


RULES = ("ll", "bic", "aic", "k2", "bdeu:1", "acll:5", "acll-uniform:5")


def slow_gain(data: Dataset, rule: str, parent: int, child: int) -> tuple[float, float]:
    """The gain of an arc, and the larger of the two scores."""
    table = oracles.count(data, (child, parent))
    score = parse_score(rule).score
    alone, together = float(score(table.sum(axis=1, keepdims=True))), float(score(table))
    return together - alone, max(abs(alone), abs(together))


@given(datasets(max_rows=40), st.sampled_from(RULES))
def test_every_gain_to_the_twelfth_digit_of_the_largest(data: Dataset, rule: str) -> None:
    n = len(data.codes)
    gains = arc_gains(Counts(data), parse_score(rule))
    arcs = [(j, i) for j in range(n) for i in range(n) if i != j]
    slow = {arc: slow_gain(data, rule, *arc) for arc in arcs}
    assert gains.shape == (n, n)
    np.testing.assert_array_equal(gains, np.rint(gains))
    assert np.abs(gains).max() <= 2e12
    np.testing.assert_array_equal(np.diag(gains), 0)
    top = max(arcs, key=lambda arc: abs(slow[arc][0]), default=None)
    if top is not None and abs(slow[top][0]) > 1e-6 * slow[top][1]:
        quantum = slow[top][0] / gains[top]
        for arc in arcs:
            assert gains[arc] * quantum == pytest.approx(slow[arc][0], rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_with_missing_values_both_scores_are_of_the_rows_that_have_both(rule: str) -> None:
    incomplete = with_missing(random_dataset(80, (2, 3, 4), 3, weighted=True), 0.4)
    gains = arc_gains(Counts(incomplete), parse_score(rule))
    slow = np.zeros((3, 3))
    for j, i in itertools.permutations(range(3), 2):
        slow[j, i] = slow_gain(complete_rows(incomplete, {i, j}), rule, j, i)[0]
    np.testing.assert_allclose(gains / np.abs(gains).max(), slow / np.abs(slow).max(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("rule", ["ll", "bic", "aic", "bdeu:1"])
def test_equivalent_scores_gain_alike_in_both_directions(rule: str) -> None:
    gains = arc_gains(Counts(random_dataset(60, (2, 3, 4, 2), 3, weighted=True)), parse_score(rule))
    np.testing.assert_array_equal(gains, gains.T)


def test_independent_attributes_gain_exactly_nothing() -> None:
    """Every combination of values three times in each class, the classes of unequal sizes."""
    grid = np.array(list(np.ndindex(3, 5, 7)))
    rows = np.concatenate([grid] * 4)
    labels = np.repeat([0, 1], [3 * len(grid), len(grid)])
    gains = arc_gains(Counts(dataset_of([*rows.T], labels, (3, 5, 7), 2)), parse_score("ll"))
    np.testing.assert_array_equal(gains, 0)


def test_uninformative_attributes_gain_nothing_and_progress_is_told() -> None:
    told: list[Event] = []
    gains = arc_gains(Counts(random_dataset(50, (1, 3, 2), 2)), parse_score("k2"), told.append)
    assert gains[1, 2] != gains[2, 1]
    assert not gains[0].any()
    assert not gains[:, 0].any()
    assert told == [Progress(0, 1, "pairs of attributes")]
    assert arc_gains(Counts(random_dataset(50, (1,), 2)), parse_score("k2")).shape == (1, 1)


@pytest.mark.parametrize("method", [word for word in STRUCTURES.words if word != "auto"])
def test_attributes_of_one_value_change_nothing(method: str) -> None:
    data = random_dataset(300, FEW, 3)
    informative = data.schema.informative
    alone = random_dataset(300, [FEW[i] for i in informative], 3)
    alone = Dataset(alone.schema, tuple(data.codes[i] for i in informative), data.labels)
    wide, short = (learn_structure(Counts(each), Recipe.of(structure=method)) for each in (data, alone))
    if isinstance(short, Regions):
        assert isinstance(wide, Regions)
        assert wide.regions == tuple(tuple(informative[i] for i in region) for region in short.regions)
        assert (wide.binnings, wide.trace) == (short.binnings, short.trace)
        return
    assert isinstance(wide, Dag)
    assert wide.class_children == tuple(informative[i] for i in short.class_children)
    assert wide.class_parents == tuple(informative[i] for i in short.class_parents)
    assert len(wide.parents) == len(FEW)
    assert [wide.parents[i] for i in informative] == [tuple(informative[i] for i in p) for p in short.parents]
    assert wide.n_arcs == short.n_arcs


@pytest.mark.parametrize("method", sorted(MOST_SEARCHED))
def test_arcs_join_the_most_informative_attributes(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    monkeypatch.setitem(MOST_SEARCHED, method, 30)
    data = random_dataset(40, (2,) * (WIDE + 1), 2, seed=3)
    most = 30
    strongest = set(np.argsort(-relevance(Counts(data)), kind="stable")[:most].tolist())
    events: list[Event] = []
    recipe = Recipe.of(structure=method)
    structure = learn_structure(Counts(data), recipe, Run(watch=events.append))
    assert isinstance(structure, Dag)
    assert structure.n_arcs > 0
    for i, parents in enumerate(structure.parents):
        assert not parents or strongest.issuperset((i, *parents))
    outside = set(range(WIDE + 1)) - strongest
    assert outside.intersection(structure.class_children) == (set() if method in ("gbn", "skdb") else outside)
    notes = [event.text for event in events if isinstance(event, Note) and "searches for arcs" in event.text]
    assert len(notes) == 1
    assert notes[0].startswith(f"{method} searches for arcs among the {most} attributes")
    assert f"the other {WIDE + 1 - most} " in notes[0]


@pytest.mark.parametrize("method", ["kikuchi", "interactions"])
def test_regions_leave_the_least_informative_attributes_out(method: str) -> None:
    notes: list[Event] = []
    counts, searched = narrow(Counts(random_dataset(40, (2,) * (WIDE + 1), 2, seed=3)), method, notes.append)
    assert len(searched) == len(counts.schema.attributes) == FEW_SEARCHED
    (note,) = notes
    assert isinstance(note, Note)
    assert note.text.startswith(f"{method} searches among the {FEW_SEARCHED} attributes with the most information")
    assert note.text.endswith(f"the other {WIDE + 1 - FEW_SEARCHED} are left out")


def test_more_rows_support_more_attributes() -> None:
    for n_rows, searched in ((100, FEW_SEARCHED), (400, 400), (2_000, 1_000)):
        data = random_dataset(n_rows, (2,) * (WIDE + 1), 2)
        counts, indices = narrow(Counts(data), "tan", lambda event: None)
        assert len(indices) == len(counts.schema.attributes) == searched


def test_naive_bayes_says_nothing_about_arcs() -> None:
    counts, events = Counts(random_dataset(30, (2,) * (WIDE + 1), 2)), list[Event]()
    structure = learn_structure(counts, Recipe.of(structure="nb"), Run(watch=events.append))
    assert isinstance(structure, Dag)
    assert structure.class_children == counts.schema.informative
    assert [event.text for event in events if isinstance(event, Note)] == []


def test_a_table_that_is_not_wide_keeps_its_counts() -> None:
    counts = Counts(random_dataset(30, (1,) * (WIDE - 2) + (2, 2), 2))
    assert narrow(counts, "tan", lambda event: None) == (counts, tuple(range(WIDE)))


def test_columns_in_parts_are_narrowed_too() -> None:
    data = random_dataset(60, FEW, 2)
    parts = ColumnsJoinedOnDemand([ChunkedColumn((codes[:20], codes[20:])) for codes in data.codes])
    in_parts = Dataset(data.schema, parts, data.labels)
    assert learn_structure(Counts(in_parts), Recipe.of(structure="tan")) == learn_structure(
        Counts(data), Recipe.of(structure="tan")
    )
