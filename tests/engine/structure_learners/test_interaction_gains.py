"""Gains against a loop over rows, cells and classes; laws of rows, weights and threads; who is a candidate."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bncli.engine.data import dataset
from bncli.engine.data.dataset import Dataset
from bncli.engine.parameters.likelihood import conditional_likelihood
from bncli.engine.structure_learners import interaction_gains
from bncli.engine.structure_learners.interaction_gains import Extensions, Gains, Interaction
from bncli.engine.structures.regrouping import group_intervals
from bncli.engine.structures.structure import Family
from bncli.watch import Event, Progress
from tests.datasets import random_dataset
from tests.effects import mixed_datasets
from tests.sweeps import examples

Array = NDArray[np.float64]


def gains_of(data: Dataset, sets: list[tuple[int, ...]], bins: int | None = 3, seed: int = 0) -> Gains:
    """Of a model over these sets whose tables are anything."""
    families = [Family(s, tuple(data.schema.cardinalities[i] for i in s), None) for s in sets]
    likelihood = conditional_likelihood(data, families)
    cells = np.random.default_rng(seed).normal(size=(data.n_labels, likelihood.n_cells))
    return Gains(likelihood, cells, data.schema.informative, bins, 0.7)


def slow_gain(gains: Gains, members: tuple[int, ...]) -> float:
    """Row by row, cell by cell, class by class, from the formula."""
    data = gains.likelihood.data
    groupings = [group_intervals(data.schema.attributes[i], gains.bins) if gains.bins else None for i in members]
    sums: dict[tuple[tuple[int, ...], int], list[float]] = {}
    for t in range(data.n_rows):
        codes = [int(data.codes[i][t]) for i in members]
        cell = tuple(c if m is None else m[c] for c, m in zip(codes, groupings, strict=True))
        weight = 1.0 if data.weights is None else float(data.weights[t])
        for y, p in enumerate(probabilities(gains, t)):
            pair = sums.setdefault((cell, y), [0.0, 0.0])
            pair[0] += weight * (float(data.labels[t] == y) - p)
            pair[1] += weight * p * (1 - p)
    sizes = [data.schema.cardinalities[i] if m is None else max(m) + 1 for i, m in zip(members, groupings, strict=True)]
    new = share_of_new([set(f.attributes) for f in gains.likelihood.families], members, sizes)
    return sum((g * g - new * h) / (2 * (h + gains.penalty)) for g, h in sums.values())


def probabilities(gains: Gains, t: int) -> list[float]:
    data, first, scores = gains.likelihood.data, 1, gains.cells[:, 0].copy()
    for family in gains.likelihood.families:
        cell = np.ravel_multi_index([int(data.codes[i][t]) for i in family.attributes], family.shape)
        scores += gains.cells[:, first + cell]
        first += family.n_cells
    shares = np.exp(scores - scores.max())
    return (shares / shares.sum()).tolist()  # type: ignore[no-any-return]


def share_of_new(families: list[set[int]], members: tuple[int, ...], sizes: list[int]) -> float:
    """The dimensions of a table that the tables over its fitted margins have not, by the rank of their columns."""
    cells = list(itertools.product(*map(range, sizes)))
    columns = [[1.0] * len(cells)]
    for family in families:
        inside = [place for place, i in enumerate(members) if i in family]
        codes = [tuple(cell[place] for place in inside) for cell in cells]
        columns += [[float(code == one) for code in codes] for one in set(codes)]
    return (len(cells) - int(np.linalg.matrix_rank(np.array(columns)))) / len(cells)


@settings(max_examples=examples(10))
@given(mixed_datasets(), st.sampled_from([None, 2, 3]), st.integers(0, 9))
def test_pairs_and_triples_against_a_loop(data: Dataset, bins: int | None, seed: int) -> None:
    informative = data.schema.informative
    sets = [(i,) for i in informative] + ([informative[:2]] if len(informative) > 1 and seed % 2 else [])
    gains = gains_of(data, sets, bins, seed)
    pairs = gains.of_pairs()
    assert sorted(one.attributes for one in pairs) == list(itertools.combinations(informative, 2))
    triples = gains.of_extensions([one.attributes for one in pairs])
    assert sorted(one.attributes for one in triples) == list(itertools.combinations(informative, 3))
    for one in (*pairs, *triples):
        assert one.gain == pytest.approx(slow_gain(gains, one.attributes), rel=1e-9, abs=1e-9)
    for found in (pairs, triples):
        assert found == sorted(found, key=lambda one: (-one.gain, one.attributes))


def test_pairs_are_extensions_of_singles() -> None:
    gains = gains_of(random_dataset(200, (2, 3, 4, 5), 3), [(0,), (1,), (2,), (3,)])
    again = gains.of_extensions([(0,), (1,), (2,), (3,)])
    same_gains(gains.of_pairs(), again)


def same_gains(found: list[Interaction], again: list[Interaction]) -> None:
    assert [one.attributes for one in found] == [one.attributes for one in again]
    np.testing.assert_allclose([one.gain for one in found], [one.gain for one in again], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_labels", [2, 3, 12])
def test_laws_of_rows(n_labels: int) -> None:
    """A row of weight 2 is the row twice, and the order of rows is nothing."""
    data = random_dataset(120, (2, 3, 4, 3), n_labels)
    every = [(i,) for i in range(4)]
    rows = np.random.default_rng(0).permutation(np.repeat(np.arange(120), 1 + np.arange(120) % 2))
    weighted = replace(data, weights=1.0 + np.arange(120) % 2)
    one, other = gains_of(weighted, every), gains_of(data.take(rows), every)
    same_gains(one.of_pairs(), other.of_pairs())
    same_gains(one.of_extensions([(0, 1), (1, 3)]), other.of_extensions([(0, 1), (1, 3)]))


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "ROWS_PER_BLOCK", 50)
    data = random_dataset(600, (2, 3, 4, 3, 2), 3)
    one, four = (gains_of(replace(data, threads=n), [(i,) for i in range(5)]) for n in (1, 4))
    assert one.of_pairs() == four.of_pairs()
    assert one.of_extensions([(0, 1), (2, 3)]) == four.of_extensions([(0, 1), (2, 3)])


def test_a_few_classes_at_a_time_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    gains = gains_of(random_dataset(100, (2, 3, 4), 5), [(0,), (1,), (2,)])
    whole = gains.of_pairs()
    monkeypatch.setattr(interaction_gains, "NUMBERS_AT_A_TIME", 1)
    same_gains(gains.of_pairs(), whole)


def test_attributes_of_many_values_are_counted_by_what_occurs(monkeypatch: pytest.MonkeyPatch) -> None:
    gains = gains_of(random_dataset(150, (2, 30, 40, 3), 3), [(0,), (1,)])
    whole = gains.of_pairs()
    monkeypatch.setattr(interaction_gains, "WIDE", 10)
    same_gains(gains.of_pairs(), whole)


def test_giant_tables_are_no_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    gains = gains_of(random_dataset(150, (2, 30, 40, 3), 3), [(0,), (1,)])
    for wide in (10, 100):
        monkeypatch.setattr(interaction_gains, "WIDE", wide)
        monkeypatch.setattr(interaction_gains, "MAX_CELLS", 100)
        assert {one.attributes for one in gains.of_pairs()} == {(0, 1), (0, 2), (0, 3), (1, 3)}
        assert {one.attributes for one in gains.of_extensions([(0, 3), (1, 2)])} == set()


def test_equal_candidates_stand_in_their_order() -> None:
    data = random_dataset(80, (3, 3, 3), 2)
    twins = replace(data, codes=(data.codes[0], data.codes[1], data.codes[0]))
    found = gains_of(twins, [(1,)]).of_pairs()
    assert [one.attributes for one in found if 1 in one.attributes] == [(0, 1), (1, 2)]


def test_chance_gains_nothing_on_the_average() -> None:
    """Of a model that is right the gain of a pair lies about 0, and is far above where it is wrong."""
    rng = np.random.default_rng(0)
    grid = random_dataset(4000, (4,) * 8, 2)
    codes = tuple(rng.integers(0, 4, 4000).astype(np.uint8) for _ in range(8))
    data = replace(grid, codes=codes, labels=rng.integers(0, 2, 4000).astype(np.uint8))
    likelihood = conditional_likelihood(data, ())
    found = Gains(likelihood, np.zeros((2, 1)), data.schema.informative, None).of_pairs()
    assert abs(np.mean([one.gain for one in found])) < 4
    planted = replace(data, labels=((codes[0] > 1) ^ (codes[3] > 1)).astype(np.uint8))
    first, second, *_ = Gains(replace(likelihood, data=planted), np.zeros((2, 1)), tuple(range(8)), None).of_pairs()
    assert first.attributes == (0, 3)
    assert first.gain > 100 * max(1.0, second.gain)


def test_one_class_has_no_gains() -> None:
    data = random_dataset(30, (2, 3), 1)
    (pair,) = gains_of(data, [(0,), (1,)]).of_pairs()
    assert pair == Interaction((0, 1), 0.0)


def test_progress_is_told() -> None:
    events: list[Event] = []
    gains = replace(gains_of(random_dataset(30, (2, 3, 2), 2), [(0,)]), watch=events.append)
    gains.of_pairs()
    gains.of_extensions([(0, 1), (1, 2)])
    assert {e.detail for e in events if isinstance(e, Progress)} == {"pairs of attributes", "regions of 3 attributes"}
    assert all(isinstance(e, Progress) and e.total is not None and 0 <= e.done < e.total for e in events)


def slow(data: Dataset, members: tuple[int, ...], columns: Array) -> list[list[float]]:
    """The sums of every cell that occurs, in the order of the cells."""
    cells: dict[tuple[int, ...], Array] = {}
    for t in range(data.n_rows):
        cell = tuple(int(data.codes[i][t]) for i in members)
        cells[cell] = cells.get(cell, 0.0) + columns[:, t]
    return [cells[cell].tolist() for cell in sorted(cells)]


@given(
    st.lists(st.integers(1, 6), min_size=3, max_size=7),
    st.integers(0, 2),
    st.integers(1, 3),
    st.sampled_from([1, 30, 1 << 18]),
    st.sampled_from([1, 1 << 24]),
)
def test_against_a_loop_over_rows(
    cardinalities: list[int], n_members: int, n_columns: int, dense: int, budget: int
) -> None:
    data = random_dataset(50, cardinalities, 2, seed=n_columns)
    columns = np.random.default_rng(3).normal(size=(n_columns, 50))
    others = tuple(range(len(cardinalities)))
    members, wanted = others[:n_members], others[n_members + 1 :]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interaction_gains, "SPARSE_TABLE", dense)
        patch.setattr(interaction_gains, "ROUND", budget)
        found = dict(Extensions(data, others, [columns]).sums(members, wanted))
    assert set(found) == set(wanted)
    for i, sums in found.items():
        reached = sums[:, np.abs(sums).sum(axis=0) > 0]
        np.testing.assert_allclose(reached.T, slow(data, (*members, i), columns), atol=1e-12)


def test_nothing_wanted_is_nothing_counted() -> None:
    data = random_dataset(5, (2, 2), 2)
    assert list(Extensions(data, (0, 1), [np.ones((1, 5))]).sums((0,), ())) == []


def test_what_nobody_has_takes_no_room() -> None:
    rows = np.arange(300)
    data = random_dataset(300, (3000, 3000, 3000), 2)
    data.codes[0][:], data.codes[1][:], data.codes[2][:] = rows, rows * 7, rows * 9
    ((_, sums),) = Extensions(data, (0, 1, 2), [np.ones((1, 300))]).sums((0, 1), (2,))
    assert sums.tolist() == [[1.0] * 300]
