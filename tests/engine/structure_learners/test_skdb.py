"""Selective KDB and its leave-one-out losses against networks fitted again without each row."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bncli.engine.counting.counts import Counts
from bncli.engine.data.columns import CategoricalColumn, Columns, NumericColumn
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import ReadingRules
from bncli.engine.data.splits import SplitBy, inner_splits
from bncli.engine.kernels.arrays import Array
from bncli.engine.kernels.information import rounded
from bncli.engine.parameter_learners.closed_form import learn_map
from bncli.engine.structure_learners import kdb, skdb
from bncli.engine.structure_learners.skdb import errors, find_held_out, log_losses, nested_losses, squared_errors
from bncli.engine.structures.structure import Dag
from bncli.engine.training_data import encode_needed
from bncli.recipe import Recipe
from bncli.watch import Event, Note, Progress, Run
from tests.datasets import dataset_of, random_dataset
from tests.engine.leaving_out import LOSSES, members_of, slow_loss
from tests.oracles import log_posterior, weights_of
from tests.strategies import datasets
from tests.sweeps import examples


def slow_skdb(data: Dataset, k: int, loss: str) -> tuple[tuple[int, ...], ...]:
    """All networks from few parents to many, then from few attributes to many; the first of the lowest loss."""
    members, best, chosen = members_of(data, k), np.inf, (0, 0)
    for candidate in itertools.product(range(k + 1), range(len(members) + 1)):
        found = float(rounded(np.array([slow_loss(data, members, *candidate, loss)]))[0])
        if found < best:
            best, chosen = found, candidate
    parents: list[tuple[int, ...]] = [()] * len(data.codes)
    for i, listed in members[: chosen[1]]:
        parents[i] = listed[: chosen[0]]
    return tuple(parents), tuple(sorted(i for i, _ in members[: chosen[1]]))


@given(datasets(max_rows=25, max_attributes=4), st.integers(0, 3), st.sampled_from(LOSSES))
def test_equals_a_search_over_slow_losses(data: Dataset, k: int, loss: str) -> None:
    parents, children = slow_skdb(data, k, loss)
    assert skdb.learn(Counts(data), k=k, loss=loss) == Dag(parents, children, (), "skdb", {"k": k, "loss": loss})


@given(datasets(), st.integers(0, 4), st.sampled_from(LOSSES))
def test_a_cut_of_kdb(data: Dataset, k: int, loss: str) -> None:
    dag, full = skdb.learn(Counts(data), k=k, loss=loss), kdb.learn(Counts(data), k=k)
    most = max(map(len, dag.parents))
    chosen = set(dag.class_children)
    for i, parents in enumerate(dag.parents):
        assert parents == (full.parents[i][:most] if i in chosen else ())
        assert set(parents) <= chosen


def noise(n: int, rng: np.random.Generator) -> list[np.ndarray]:
    return [rng.integers(0, 4, n) for _ in range(4)]


def test_noise_is_left_out_and_parents_are_taken_where_they_tell() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 2, 4000), rng.integers(0, 2, 4000)
    y = np.where(rng.random(4000) < 0.95, a ^ b, a)  # b tells nothing without a
    data = dataset_of([*noise(4000, rng), a, b], y, (4,) * 4 + (2, 2), 2)
    dag = skdb.learn(Counts(data), k=1, loss="rmse")
    assert {4, 5} <= set(dag.class_children)
    assert (4,) in dag.parents or (5,) in dag.parents


def test_no_attribute_at_all_may_win() -> None:
    rng = np.random.default_rng(0)
    data = dataset_of(noise(60, rng), (rng.random(60) < 0.1).astype(int), (4,) * 4, 2)
    dag = skdb.learn(Counts(data), k=2, loss="log-loss")
    assert dag.class_children == ()
    assert set(dag.parents) == {()}


def test_ties_go_to_fewer_parents_then_to_fewer_attributes() -> None:
    x = np.tile([0, 1], 200)
    data = dataset_of([x, x, x], x, (2, 2, 2), 2)
    dag = skdb.learn(Counts(data), k=2, loss="error")
    assert dag.class_children == (0,)
    assert dag.parents == ((), (), ())


@pytest.mark.parametrize("loss", LOSSES)
def test_the_choice_is_told_in_one_note(loss: str) -> None:
    events: list[Event] = []
    dag = skdb.learn(Counts(random_dataset(300, (3, 2, 4, 3), 3)), k=2, loss=loss, watch=events.append)
    (note,) = [event.text for event in events if isinstance(event, Note)]
    chosen, k = len(dag.class_children), max(map(len, dag.parents))
    assert note.startswith(f"skdb chose {chosen} of 4 attributes and k = {k}: leave-one-out {loss} 0.")


def test_tables_that_do_not_fit_are_no_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_dataset(400, (3, 3, 3, 3), 2, seed=3)
    monkeypatch.setattr(skdb, "MAX_ENTRIES", 2 * (3 + 9 + 9 + 9))
    notes: list[Event] = []
    assert max(map(len, skdb.learn(Counts(data), k=3, loss="rmse", watch=notes.append).parents)) <= 1
    assert "(k above 1 was tried only with fewer attributes, because larger tables do not fit in memory)" in str(
        notes[-1]
    )


def test_many_parents_of_many_values_take_no_dense_table() -> None:
    data = random_dataset(500, (50,) * 12, 2)
    assert set(skdb.learn(Counts(data), k=11, loss="rmse").class_children) <= set(range(12))


@st.composite
def datasets_with_units(draw: st.DrawFn, *, has_times: bool) -> Dataset:
    data = draw(datasets(min_rows=2, max_rows=25, max_attributes=4))
    units = st.lists(st.integers(0, 6), min_size=data.n_rows, max_size=data.n_rows)
    times = st.lists(st.sampled_from([0.0, 1.0, 2.5, 3.0]), min_size=data.n_rows, max_size=data.n_rows)
    by = SplitBy(
        np.array(draw(units)) if not has_times or draw(st.booleans()) else None,
        np.array(draw(times)) if has_times else None,
    )
    return replace(data, split_by=by)


@settings(max_examples=examples(20))
@given(datasets_with_units(has_times=False), st.integers(0, 2), st.sampled_from(LOSSES))
def test_units_are_left_out_whole(data: Dataset, k: int, loss: str) -> None:
    assert data.split_by is not None
    units = data.split_by.units
    assert units is not None
    members, weights = members_of(data, 2), np.array(weights_of(data))
    held_out = find_held_out(data)
    assert (held_out is None) == (len(set(units.tolist())) == data.n_rows)
    rest = None if held_out is None else [np.where(units == unit, 0.0, weights).tolist() for unit in units]
    found = nested_losses(data, members, [k + 1] * len(members), loss, held_out=held_out)
    for p in range(len(members) + 1):
        assert found[k, p] == pytest.approx(slow_loss(data, members, k, p, loss, rest), rel=1e-9, abs=1e-12)


@settings(max_examples=examples(20))
@given(datasets_with_units(has_times=True), st.integers(0, 2), st.sampled_from(LOSSES))
def test_the_latest_rows_are_held_out_once(data: Dataset, k: int, loss: str) -> None:
    members, weights = members_of(data, 2), np.array(weights_of(data))
    splits = inner_splits(data.labels, 5, 0, data.split_by)
    assume(splits)
    ((others, rows),) = splits
    fitted = np.where(np.isin(np.arange(data.n_rows), others), weights, 0.0).tolist()
    rest = [fitted if t in set(rows.tolist()) else [] for t in range(data.n_rows)]
    found = nested_losses(data, members, [k + 1] * len(members), loss, held_out=find_held_out(data))
    for p in range(len(members) + 1):
        assert found[k, p] == pytest.approx(slow_loss(data, members, k, p, loss, rest), rel=1e-9, abs=1e-12)


@given(datasets(), st.sampled_from(LOSSES))
def test_units_of_one_row_choose_the_same_network(data: Dataset, loss: str) -> None:
    alone = replace(data, split_by=SplitBy(np.arange(data.n_rows)[::-1]))
    assert skdb.learn(Counts(alone), k=2, loss=loss) == skdb.learn(Counts(data), k=2, loss=loss)


def test_an_identifier_of_units_is_no_evidence() -> None:
    """Values that name the unit predict the labels of its other rows, but none of a new unit."""
    rng = np.random.default_rng(3)
    units = np.repeat(np.arange(40), 5)
    data = dataset_of([units], (rng.random(40) < 0.2).astype(int)[units], (40,), 2)
    assert skdb.learn(Counts(data), k=0, loss="log-loss").class_children == (0,)
    notes: list[Event] = []
    grouped = replace(data, split_by=SplitBy(units))
    assert skdb.learn(Counts(grouped), k=0, loss="log-loss", watch=notes.append).class_children == ()
    assert "leave-one-group-out log-loss" in str(notes[-1])


def test_cuts_that_know_the_labels_of_a_unit_are_no_evidence() -> None:
    """With random labels per unit, cuts follow single units; cuts of folds show that they are worth nothing."""
    rng = np.random.default_rng(5)
    units = np.repeat(np.arange(60), 6)
    labels = rng.integers(0, 2, 60)[units]
    noise = {f"x{i}": NumericColumn(rng.normal(size=60)[units]) for i in range(4)}
    columns = Columns(360, noise, "class", CategoricalColumn(labels, ("a", "b")), split_by=SplitBy(units))
    notes: list[Event] = []
    data = encode_needed(columns, Recipe.of(structure="skdb"), None, ReadingRules(), Run(watch=notes.append))
    assert skdb.learn(Counts(replace(data, recut=())), k=1, loss="rmse").class_children
    dag = skdb.learn(Counts(data), k=1, loss="rmse", watch=notes.append)
    assert dag.class_children == ()
    squares = np.zeros(360)
    for others, rows in inner_splits(labels, 5, 0, columns.split_by):
        p = (np.bincount(labels[others], minlength=2) + 0.5) / (len(others) + 1)
        squares[rows] = (1 - p[labels[rows]]) ** 2
    assert f"cross-validated rmse {math.sqrt(squares.mean()):.6g}" in str(notes[-1])
    # an attribute that tells something of new units is taken
    told = {**noise, "told": NumericColumn(labels + rng.normal(0, 0.5, 60)[units])}
    data = encode_needed(replace(columns, attributes=told), Recipe.of(structure="skdb"), None, ReadingRules(), Run())
    assert 4 in skdb.learn(Counts(data), k=1, loss="rmse").class_children


@pytest.mark.slow
@settings(max_examples=examples(20))
@given(st.integers(0, 2), st.sampled_from(LOSSES), st.booleans(), st.integers(0, 99))
def test_losses_with_own_cuts_are_those_of_networks_of_the_training_rows(
    k: int, loss: str, has_times: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    units = np.repeat(np.arange(20), 3)
    labels = rng.integers(0, 2, 20)[units]
    values = {f"x{i}": NumericColumn(labels + rng.normal(0, 0.4, 60)) for i in range(3)}
    by = SplitBy(units, times=np.arange(60.0) if has_times else None)
    columns = Columns(60, values, "class", CategoricalColumn(labels, ("a", "b")), split_by=by)
    data = encode_needed(columns, Recipe.of(structure="skdb"), None, ReadingRules(), Run())
    found = skdb._losses_with_own_cuts(data, 2, loss, None, (3, 4))
    for p in range(4):
        losses, n_rows = 0.0, 0
        for coded, (others, rows) in data.recut:
            members = members_of(coded.take(others), 2)
            fitted = np.isin(np.arange(60), others).astype(float).tolist()
            rest = [fitted if t in set(rows.tolist()) else [] for t in range(60)]
            own = min(k, max(len(members) - 1, 0))
            one = slow_loss(coded, members, own, min(p, len(members)), loss, rest)
            losses += len(rows) * (one**2 if loss == "rmse" else one)
            n_rows += len(rows)
        expected = math.sqrt(losses / n_rows) if loss == "rmse" else losses / n_rows
        assert found[k, p] == pytest.approx(expected, rel=1e-9, abs=1e-12)


@settings(max_examples=examples(13))
@given(datasets(max_rows=20, max_attributes=4), st.integers(0, 3), st.sampled_from(LOSSES))
def test_equals_refitting_without_each_row(data: Dataset, k: int, loss: str) -> None:
    members = members_of(data, k)
    losses = nested_losses(data, members, [k + 1] * len(members), loss)
    assert losses.shape == (k + 1, len(members) + 1)
    for k_used, p in np.ndindex(losses.shape):
        assert losses[k_used, p] == pytest.approx(slow_loss(data, members, k_used, p, loss), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_whole_weights_are_rows_alike(loss: str) -> None:
    data = random_dataset(40, (3, 2, 4), 3, seed=5)
    times = np.random.default_rng(0).integers(1, 5, data.n_rows)
    members = members_of(data, 2)
    repeated = data.take(np.repeat(np.arange(data.n_rows), times))
    weighted = nested_losses(replace(data, weights=times.astype(float)), members, [3] * 3, loss)
    np.testing.assert_allclose(weighted, nested_losses(repeated, members, [3] * 3, loss), rtol=1e-13)


def test_a_network_is_the_one_that_map_learns() -> None:
    data = random_dataset(25, (3, 2, 4, 2), 3, seed=2)
    members, k = members_of(data, 2), 2
    parents = tuple(dict(members)[i] for i in range(4))
    log_losses = []
    for t in range(data.n_rows):
        rest = data.take(np.delete(np.arange(data.n_rows), t))
        tables = learn_map(Counts(rest), Dag(parents, (0, 1, 2, 3)), smoothing="m-estimate:1").tables
        scores = tables.bias.copy()
        for family, weights in zip(tables.families, tables.weights, strict=True):
            values = tuple(int(data.codes[i][t]) for i in family.attributes)
            scores += weights[np.ravel_multi_index(values, family.shape)]
        log_losses.append(-log_posterior(list(scores))[int(data.labels[t])])
    losses = nested_losses(data, members, [3] * 4, "log-loss")
    assert losses[k, 4] == pytest.approx(float(np.mean(log_losses)), rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("by", [None, SplitBy(np.arange(5_000) // 3)])
@pytest.mark.usefixtures("small_blocks")
def test_rounds_and_threads_change_no_bit(weighted: bool, by: SplitBy | None, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = (
        replace(random_dataset(5_000, (3, 5, 4), 3, weighted=weighted, threads=threads), split_by=by)
        for threads in (1, 2)
    )
    members, held_out = members_of(one, 2), find_held_out(one)
    expected = nested_losses(one, members, [3] * 3, "rmse", held_out=held_out)
    assert (nested_losses(two, members, [3] * 3, "rmse", held_out=held_out) == expected).all()
    monkeypatch.setattr(skdb, "MOST_SCORES", 1)
    assert (nested_losses(one, members, [3] * 3, "rmse", held_out=held_out) == expected).all()


def test_networks_not_asked_for_are_infinitely_bad() -> None:
    data = random_dataset(30, (3, 2, 4), 2)
    members = members_of(data, 2)
    some, everything = (nested_losses(data, members, n_k, "rmse") for n_k in ([3, 2, 1], [3, 3, 3]))
    asked = np.array([[True, True, True, True], [True, True, True, False], [True, True, False, False]])
    assert np.isinf(some[~asked]).all()
    assert (some[asked] == everything[asked]).all()


def test_progress_ends_at_its_total() -> None:
    data = random_dataset(30, (3, 2, 4), 2)
    events: list[Progress] = []
    nested_losses(data, members_of(data, 2), [3, 2, 2], "rmse", events.append)  # type: ignore[arg-type]
    assert [event.total for event in events] == [7] * len(events)
    assert events[-1].done == 7
    assert [event.done for event in events] == sorted(event.done for event in events)


def ahead_of(scores: list[list[float]], labels: list[int]) -> tuple[Array, np.ndarray]:
    """d[y, t] from scores by row."""
    by_class = np.array(scores, dtype=float).T
    return by_class - by_class[labels, np.arange(len(labels))], np.array(labels)


@given(st.integers(1, 5), st.data())
def test_equals_the_formulas(n_labels: int, draw: st.DataObject) -> None:
    row = st.lists(st.floats(-8, 8), min_size=n_labels, max_size=n_labels)
    scores = draw.draw(st.lists(row, min_size=1, max_size=8))
    labels = [draw.draw(st.integers(0, n_labels - 1)) for _ in scores]
    p = [math.exp(log_posterior(s)[y]) for s, y in zip(scores, labels, strict=True)]
    ahead, y = ahead_of(scores, labels)
    np.testing.assert_allclose(squared_errors(ahead, y), [(1 - q) ** 2 for q in p], rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(log_losses(ahead, y), [-math.log(q) for q in p], rtol=1e-9, atol=1e-15)
    first = [next(c for c, s in enumerate(row) if s >= max(row) - 1e-10) for row in scores]
    assert errors(ahead, y).tolist() == [float(a != b) for a, b in zip(first, labels, strict=True)]


def test_a_tie_within_rounding_goes_to_the_first_class() -> None:
    ahead, labels = ahead_of([[0.1 + 0.2, 0.3], [0.3, 0.1 + 0.2], [0.0, 1.0]], [0, 0, 0])
    assert errors(ahead, labels).tolist() == [0.0, 0.0, 1.0]
    assert errors(*ahead_of([[1.0, 1.0]], [1])).tolist() == [1.0]


def test_digits_are_kept_next_to_certainty() -> None:
    ahead, labels = ahead_of([[50.0, 0.0, 0.0]], [0])
    missed = 2 * math.exp(-50)
    assert squared_errors(ahead, labels)[0] == pytest.approx(missed**2, rel=1e-12)
    assert log_losses(ahead, labels)[0] == pytest.approx(missed, rel=1e-12)


def test_hopeless_rows_stay_finite() -> None:
    ahead, labels = ahead_of([[0.0, 5000.0], [0.0, -5000.0]], [0, 0])
    assert squared_errors(ahead, labels).tolist() == [1.0, 0.0]
    assert log_losses(ahead, labels).tolist() == [5000.0, 0.0]


def test_one_class_is_never_missed() -> None:
    ahead, labels = ahead_of([[3.0], [4.0]], [0, 0])
    for loss in (squared_errors, errors, log_losses):
        assert loss(ahead, labels).tolist() == [0.0, 0.0]
