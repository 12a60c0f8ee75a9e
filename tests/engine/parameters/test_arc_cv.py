"""Arcs chosen with the penalty: as slow sums would, each network from its own fold, fewer arcs where two tie."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.model import ChosenPenalty, TriedArcs, TriedPenalty
from bncli.engine.parameter_learners import weighted
from bncli.engine.parameters import arc_cv
from bncli.engine.parameters.arc_cv import ChosenArcs, choose_arcs, supported
from bncli.engine.parameters.optimization import ParameterSpace
from bncli.engine.parameters.penalty_cv import GRID, HeldOutFold, best_of, held_out_folds, penalty_path
from bncli.engine.structure_learners import kdb, tan
from bncli.engine.structures.structure import Dag
from bncli.watch import Event, Progress
from tests import oracles
from tests.datasets import dataset_of, random_dataset
from tests.sweeps import first_few

space = partial(weighted.space, smoothing="m-estimate:1", level=4)
PATH = partial(penalty_path, center=0.0)


def choose(data: Dataset, search: arc_cv.Search = tan.learn, path: arc_cv.PathOf = PATH) -> ChosenArcs:
    counts = Counts(data)
    return choose_arcs(counts, search(counts), search, space, folds=held_out_folds(data, 0), path=path)


def bic(data: Dataset, child: int, parents: tuple[int, ...]) -> float:
    """Row by row: the log-likelihood of a child given its parents and the class, less half of ln N a parameter."""
    weights = oracles.weights_of(data)
    families: dict[tuple[int, ...], float] = {}
    contexts: dict[tuple[int, ...], float] = {}
    for t in range(data.n_rows):
        context = (int(data.labels[t]), *(int(data.codes[j][t]) for j in parents))
        contexts[context] = contexts.get(context, 0.0) + weights[t]
        cell = (*context, int(data.codes[child][t]))
        families[cell] = families.get(cell, 0.0) + weights[t]
    likelihood = sum(n * math.log(n / contexts[cell[:-1]]) for cell, n in families.items())
    cardinalities = data.schema.cardinalities
    free = (cardinalities[child] - 1) * math.prod(cardinalities[j] for j in parents) * data.n_labels
    return likelihood - 0.5 * math.log(max(sum(weights), 1.0)) * free


@given(st.integers(0, 10_000), st.integers(2, 3), st.booleans(), st.integers(5, 300))
def test_supported_parents_have_the_highest_bic(seed: int, k: int, is_weighted: bool, n_rows: int) -> None:
    data = random_dataset(n_rows, (2, 3, 2, 4), 2, seed=seed, weighted=is_weighted)
    counts = Counts(data)
    found = kdb.learn(counts, k=k)
    for child, (kept, parents) in enumerate(zip(supported(counts, found).parents, found.parents, strict=True)):
        scores = [bic(data, child, parents[:m]) for m in range(len(parents) + 1)]
        assert kept == parents[: len(kept)]
        assert scores[len(kept)] == pytest.approx(max(scores), rel=1e-9, abs=1e-9)


def rows_of(n_rows: int, seed: int) -> tuple[np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2, (n_rows, 3)), rng


def test_the_class_alone_wins_where_nothing_tells_of_it() -> None:
    x, rng = rows_of(300, 0)
    labels = (rng.random(300) < 0.2).astype(np.int64)
    chosen = choose(dataset_of([*x.T], labels, (2, 2, 2), 2))
    assert chosen.structure.attributes == ()
    assert [one.arcs for one in chosen.penalty.arcs][:2] == ["class", "none"]


def test_no_arcs_win_where_attributes_tell_of_the_class_alone() -> None:
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 150)
    # many values each: tables of pairs cannot be filled by so few rows
    x = [
        np.where(rng.random(150) < 0.6, labels * 6 + rng.integers(0, 6, 150), rng.integers(0, 12, 150)) for _ in "abcd"
    ]
    chosen = choose(dataset_of(x, labels, (12,) * 4, 2))
    assert chosen.structure.n_arcs == 0
    assert len(chosen.structure.class_children) == 4


def test_arcs_stay_where_only_pairs_tell_of_the_class() -> None:
    x, rng = rows_of(400, 2)
    labels = np.where(rng.random(400) < 0.9, x[:, 0] ^ x[:, 1], rng.integers(0, 2, 400))
    structure = choose(dataset_of([*x.T], labels, (2, 2, 2), 2)).structure
    assert 1 in structure.parents[0] or 0 in structure.parents[1]


def test_a_single_attribute_competes_with_the_class_alone() -> None:
    x, rng = rows_of(200, 3)
    chosen = choose(dataset_of([x[:, 0]], rng.integers(0, 2, 200), (2,), 2))
    assert [one.arcs for one in chosen.penalty.arcs] == ["class", "none"]


@pytest.mark.parametrize(
    ("losses", "rows", "winner"),
    [
        ((0.7, 0.5, 0.4), 100, "all"),
        ((0.7, 0.5, 0.49), 100, "none"),  # 1 nat in all
        ((0.7, 0.5, 0.488), 100, "all"),  # 1.2
        ((0.7, 0.695, 0.68), 100, "all"),  # beside the class alone, which stayed the best
        ((0.7, 0.695, 0.69), 100, "class"),
        ((0.7, 0.695, 0.69), 1_000, "all"),
        ((0.7, 0.8, 0.9), 1_000, "class"),
    ],
)
def test_more_arcs_need_evidence(losses: tuple[float, ...], rows: int, winner: str) -> None:
    tried = [TriedArcs(word, 0, 1.0, loss) for word, loss in zip(("class", "none", "all"), losses, strict=True)]
    assert arc_cv._best(tried, rows).arcs == winner


def test_the_search_sees_the_rows_of_its_fold_alone() -> None:
    data, seen = random_dataset(200, (2, 3, 2), 2), []

    def search(counts: Counts) -> Dag:
        seen.append(counts.data.n_rows)
        return tan.learn(counts)

    choose(data, search)
    # once on all rows, by the caller; then once in each of five folds, however many networks compete
    assert seen == [200, 160, 160, 160, 160, 160]


def test_every_network_has_the_loss_of_its_own_path() -> None:
    data = random_dataset(300, (3, 3, 3, 2), 3, seed=5)
    chosen, folds = choose(data), held_out_folds(data, 0)
    for one in chosen.penalty.arcs:
        subset = arc_cv._SUBSETS[one.arcs]
        path = penalty_path(
            folds, lambda counts, subset=subset: space(counts, subset(counts, tan.learn(counts))), center=0.0
        )
        # a path that begins further down arrives at the same optima, to its tolerance
        assert one.log_loss == pytest.approx(min(tried.log_loss for tried in path.tried), rel=2e-3)


@pytest.mark.parametrize("near", first_few([None, GRID[3], GRID[-1], *GRID[:3], *GRID[4:-1]], 3))
def test_a_path_that_begins_below_finds_the_same_penalty(near: float | None) -> None:
    data = random_dataset(300, (3, 3, 3), 2, seed=6)
    folds = held_out_folds(data, 0)
    of_tree = partial(space, structure=tan.learn(Counts(data)))
    path = penalty_path(folds, of_tree, center=0.0, near=near)
    whole = penalty_path(folds, of_tree, center=0.0)
    assert path.penalty == whole.penalty
    assert path.penalty == best_of(list(path.tried))
    assert [one.penalty for one in path.tried] == list(GRID[GRID.index(path.tried[0].penalty) :][: len(path.tried)])


def test_with_many_rows_two_folds_judge_and_all_choose_the_penalty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arc_cv, "MANY_ROWS", 300)
    data = random_dataset(300, (3, 3, 3, 2), 3, seed=5)
    chosen, folds = choose(data), held_out_folds(data, 0)
    won = arc_cv._best(chosen.penalty.arcs, 120)

    def space_of(counts: Counts) -> ParameterSpace:
        return space(counts, arc_cv._SUBSETS[won.arcs](counts, tan.learn(counts)))

    two, every = (penalty_path(some, space_of, center=0.0) for some in (folds[:2], folds))
    assert won.log_loss == pytest.approx(min(one.log_loss for one in two.tried), rel=2e-3)
    assert chosen.penalty.log_loss == pytest.approx(min(one.log_loss for one in every.tried), rel=2e-3)


@pytest.mark.parametrize(("n_supported", "competes"), [(0, False), (1, True), (6, True), (7, False), (8, False)])
def test_supported_arcs_compete_where_they_are_some_and_at_most_three_quarters(
    n_supported: int, competes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of eight arcs."""
    chain = Dag(((), *((i,) for i in range(8))), tuple(range(9)))
    kept = Dag(tuple(parents if i <= n_supported else () for i, parents in enumerate(chain.parents)), tuple(range(9)))
    assert (chain.n_arcs, kept.n_arcs) == (8, n_supported)
    monkeypatch.setitem(arc_cv._SUBSETS, "supported", lambda counts, structure: kept)
    networks = arc_cv._distinct(Counts(random_dataset(20, (2,) * 9, 2)), chain)
    assert ("supported" in networks) is competes
    assert set(networks) >= {"class", "none", "all"}


@pytest.mark.parametrize(("n_rows", "n_judges"), [(9_999, 5), (10_000, 2)])
def test_of_ten_thousand_rows_two_folds_judge(n_rows: int, n_judges: int) -> None:
    used: list[int] = []

    def path(folds: list[HeldOutFold], *_: object, **__: object) -> ChosenPenalty:
        used.append(len(folds))
        return ChosenPenalty(1.0, (TriedPenalty(1.0, 0.5),))

    choose(random_dataset(n_rows, (2, 2), 2), path=path)
    # the class alone and no arcs at least, and then the winner on every fold
    judging, last = (used, 5) if n_judges == 5 else (used[:-1], used[-1])
    assert len(judging) >= 2
    assert (set(judging), last) == ({n_judges}, 5)


def test_progress_names_the_arcs_and_never_ends_above_its_total() -> None:
    data, events = random_dataset(120, (2, 2, 2), 2), []

    def watch(event: Event) -> None:
        events.append(event)

    choose(data, path=partial(PATH, watch=watch))
    told = [event for event in events if isinstance(event, Progress)]
    assert {"arcs class", "arcs none"} <= {event.detail.split(",")[0] for event in told}
    assert all(event.total is not None and event.done <= event.total for event in told)


def test_rows_in_another_order_keep_the_arcs_that_are_plain() -> None:
    x, rng = rows_of(400, 7)
    order = rng.permutation(400)
    labels = x[:, 0] ^ x[:, 1]
    for rows in (np.arange(400), order):
        assert choose(dataset_of([*x[rows].T], labels[rows], (2, 2, 2), 2)).structure.n_arcs >= 1


def test_arcs_are_judged_by_the_loss_at_the_penalty_that_won() -> None:
    """Under directions the other penalties have losses without, which may be lower."""

    def followed(*_: object, **__: object) -> ChosenPenalty:
        return ChosenPenalty(1.0, (TriedPenalty(10.0, 0.3), TriedPenalty(1.0, 0.5)))

    x, rng = rows_of(60, 5)
    chosen = choose(dataset_of([*x.T], rng.integers(0, 2, 60), (2, 2, 2), 2), path=followed)
    assert {one.log_loss for one in chosen.penalty.arcs} == {0.5}
