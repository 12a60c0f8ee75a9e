"""The whole of --structure auto on small tables: laws, unusual data, time limits, notes, and class frequencies."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bncli.engine.data.columns import CategoricalColumn, Columns, NumericColumn
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.splits import SplitBy
from bncli.engine.ensembles import auto, budget, held_out_evaluation, trials
from bncli.engine.ensembles.boosted_bag import BagPlan
from bncli.engine.ensembles.budget import ComputeBudget
from bncli.engine.ensembles.candidates import Candidate, CandidateFinder, candidate_names
from bncli.engine.ensembles.held_out_evaluation import FREQUENCIES, HeldOutEvaluation, parameter_space
from bncli.engine.ensembles.pooling import pool_log_probabilities
from bncli.engine.evaluation.cross_validation import predict
from bncli.engine.kernels.arrays import Array
from bncli.engine.learn import FittedModel, learn
from bncli.engine.model import Model
from bncli.engine.parameters import few_rows, optimization, weighted_samples
from bncli.engine.parameters.likelihood import ConditionalLikelihood
from bncli.engine.parameters.optimization import ParameterSpace
from bncli.engine.parameters.weighted_samples import Growth
from bncli.engine.prediction.effects import effects_of
from bncli.errors import BncliError
from bncli.files.artifacts.model import dump_model, read_model, write_model
from bncli.recipe import Recipe
from bncli.watch import Event, Note, Progress, Run, Stage
from tests.datasets import random_dataset
from tests.engine.ensembles.rows import coded, ensemble_of, mixed, recipe

GRID = (30.0, 3.0, 0.3)


@pytest.fixture(autouse=True, scope="module")
def few_penalties() -> Iterator[None]:
    """Try few penalties: these laws hold for any number of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trials, "GRID", GRID)
        patch.setattr(held_out_evaluation, "GRID", GRID)
        yield


def learnt(columns: Columns, **options: object) -> FittedModel:
    return learn(columns, recipe(**options))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def model(few_penalties: None) -> Model:
    return learnt(mixed(150, 3)).model


def test_an_ensemble_of_what_was_tried(model: Model) -> None:
    components = ensemble_of(model).components
    weights = [component.weight for component in components]
    assert weights == sorted(weights, reverse=True)
    assert model.tables is components[0].tables
    trials = ensemble_of(model).trials
    by_name = {trial.name: trial.weight for trial in trials}
    assert {one.name: one.weight for one in components} == {n: w for n, w in by_name.items() if w > 0}
    assert model.penalty == next(t.penalty for t in trials if t.name == components[0].name)


def test_the_prediction_pools_the_log_odds_of_the_components(model: Model) -> None:
    columns = mixed(40, 3, seed=5)
    components = ensemble_of(model).components
    alone = [predict(replace(model, predictor=one.tables), columns) for one in components]
    pooled = np.exp(sum(one.weight * logs for one, logs in zip(components, alone, strict=True)))
    np.testing.assert_allclose(np.exp(predict(model, columns)), pooled / pooled.sum(axis=0), rtol=1e-10)


def test_the_reported_likelihood_is_that_of_the_ensemble() -> None:
    columns = mixed(120)
    found = learnt(columns)
    assert columns.label is not None
    logs = predict(found.model, columns)[columns.label.codes, np.arange(120)]
    assert found.parameters.cll == pytest.approx(logs.sum(), rel=1e-9)
    assert found.parameters.cll_start == pytest.approx(-120 * math.log(2))


def test_the_number_of_threads_does_not_change_the_file() -> None:
    first, second = (dump_model(learn(mixed(100), recipe(), run=Run(threads)).model) for threads in (1, 2))
    assert first == second


@pytest.mark.slow
def test_doubled_weights_double_the_frequencies_and_leave_the_cuts() -> None:
    twice = learnt(mixed(60, weights=np.full(60, 2.0))).model.schema
    once = learnt(mixed(60)).model.schema
    assert [a.frequencies for a in twice.attributes] == [tuple(2 * f for f in a.frequencies) for a in once.attributes]


@pytest.mark.parametrize("metric", ["log-loss", "error", "rmse"])
def test_every_metric_gives_a_model(metric: str) -> None:
    found = learnt(mixed(80), metric=metric).model
    assert ensemble_of(found).components
    assert all(math.isfinite(trial.log_loss) and 0 <= trial.error <= 1 for trial in ensemble_of(found).trials)


@pytest.mark.parametrize("n_rows", [1, 2, 3, 7])
def test_hardly_any_rows(n_rows: int) -> None:
    found = learnt(mixed(n_rows)).model
    p = np.exp(predict(found, mixed(20)))
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=0), 1.0)


def test_no_rows() -> None:
    with pytest.raises(BncliError, match="no rows to learn from"):
        learnt(mixed(10).take(np.zeros(0, np.intp)))


def test_no_attribute_that_helps() -> None:
    columns = replace(mixed(30), attributes={})
    p = np.exp(predict(learnt(columns).model, columns))
    assert columns.label is not None
    assert p[1, 0] == pytest.approx(columns.label.codes.mean(), abs=0.1)


def test_a_class_that_never_changes() -> None:
    columns = mixed(30)
    assert columns.label is not None
    same = replace(columns, label=replace(columns.label, codes=np.zeros(30, np.int8)))
    assert np.exp(predict(learnt(same).model, columns))[0].min() > 0.9


SOME = budget.Effort(math.inf, 50, 250, True, math.inf, 3, 100_000, 500)
"""50 rows are held out, of 250 at most; no trees are boosted."""


def test_many_rows_are_sampled_and_partly_held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(budget.EFFORTS, budget.DEFAULT, SOME)
    found = learnt(mixed(300)).model
    assert found.n_rows == 300
    assert ensemble_of(found).components
    assert math.isfinite(ensemble_of(found).trials[0].log_loss)


@pytest.mark.parametrize(
    ("n_rows", "drawn", "others"), [(24_000, 19_200, 19_200), (25_000, 20_000, 20_000), (30_000, 20_000, 24_000)]
)
def test_a_fifth_is_held_out_and_20_000_of_the_others_are_sampled(n_rows: int, drawn: int, others: int) -> None:
    (fold,) = auto._make_folds(random_dataset(n_rows, (2, 2), 2), budget.EFFORTS[budget.DEFAULT], 0)
    assert fold.finder.data.n_rows == pytest.approx(drawn, abs=1)
    assert fold.others.n_rows == pytest.approx(others, abs=1)
    assert fold.held_out.n_rows == n_rows - fold.others.n_rows
    assert (fold.others is fold.finder.data) == (others == drawn)


def test_candidates_close_to_trees_of_all_rows_are_refitted_to_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(budget.EFFORTS, budget.DEFAULT, replace(SOME, most_rows=100, boosted_from=0))
    monkeypatch.setattr(auto, "pool_weights", lambda logs, *rest: np.arange(len(logs)) == 0)
    fitted: list[int] = []

    def spied(data: Dataset, *told: Any) -> ParameterSpace:
        fitted.append(data.n_rows)
        return parameter_space(data, *told)

    monkeypatch.setattr(auto, "parameter_space", spied)
    monkeypatch.setattr(trials, "candidate_names", lambda data: ("singles", "boosted"))
    components = ensemble_of(learnt(mixed(200)).model).components
    assert {component.name for component in components} == {"singles", FREQUENCIES}
    assert sorted(set(fitted)) == [160, 200], "all that are not held out, then all"


@pytest.mark.parametrize(("half_a_member", "expected"), [(80, 160), (79, 80)])
def test_trees_learn_from_the_sample_if_there_is_no_time_for_more(
    monkeypatch: pytest.MonkeyPatch, half_a_member: float, expected: int
) -> None:
    data, effort = coded(mixed(200)), replace(SOME, most_rows=100, boosted_from=0)
    folds = auto._make_folds(data, effort, 0)
    clock = ComputeBudget(half_a_member, partial(float, 0))
    bag = BagPlan(1, 10**5, 500, 0, clock)
    tried = trials.Trials(data, folds, "log-loss", effort, bag, None, lambda event: None)
    monkeypatch.setattr(trials, "member_seconds", lambda data, n_rows, like=(): n_rows)
    learnt_from: list[int] = []

    def spied(parts: Sequence[tuple[Dataset, Dataset]], *told: Any) -> HeldOutEvaluation:
        learnt_from.extend(rows.n_rows for rows, _ in parts)
        raise KeyboardInterrupt

    monkeypatch.setattr(trials, "evaluate_boosted", spied)
    with pytest.raises(KeyboardInterrupt):
        tried._try_boosted(0)
    assert learnt_from == [expected]


@pytest.mark.slow
def test_the_same_bytes_for_the_same_effort() -> None:
    first, second, default, other = (
        dump_model(learn(mixed(60), Recipe.of(structure="auto", effort=effort)).model) for effort in (1, 1, None, 2)
    )
    assert first == second
    assert len({first, default, other}) == 3


@pytest.mark.slow
def test_the_default_effort_is_three() -> None:
    typed, default = (learn(mixed(100), Recipe.of(structure="auto", effort=e)).model for e in (3, None))
    assert ensemble_of(typed).trials == ensemble_of(default).trials


@pytest.mark.slow
def test_an_effort_of_five_tries_all_there_is() -> None:
    columns = mixed(100)
    found = learn(columns, Recipe.of(structure="auto", effort=5)).model
    assert {trial.name for trial in ensemble_of(found).trials} <= {*candidate_names(coded(columns)), FREQUENCIES}
    tried = {trial.name for trial in ensemble_of(found).trials}
    assert {"singles", "lines", "boosted", "tree", "pairs", "sharp singles", "sharp tree"} <= tried


def test_a_note_lists_the_candidates_too_costly_for_the_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(budget.EFFORTS, budget.DEFAULT, replace(SOME, share=0.0))
    _, reason, listed = left_out(mixed(100), "nothing", None)
    assert reason == "candidates were not tried because they take too long for the chosen --effort"
    assert ("singles", *listed) == tuple(name for name in candidate_names(coded(mixed(100))) if name != "boosted")


def test_a_candidate_whose_base_does_not_fit_in_memory_is_listed_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "memory_of", lambda name, data, effort: (1 << 41) * (name == "pairs"))
    notes: list[str] = []

    def watch(event: Event) -> None:
        if isinstance(event, Note) and not event.warning:
            notes.append(event.text)

    learn(mixed(100), recipe(), run=Run(memory=1 << 40, watch=watch))
    assert notes[-1] == "candidates were not tried because they do not fit in memory: pairs, triples"


def test_a_linear_effect_is_found_by_the_linear_candidate() -> None:
    """The log-odds of the class are linear in both numbers: no other candidate needs so few parameters."""
    rng = np.random.default_rng(1)
    x, z = rng.normal(size=(2, 300))
    codes = (rng.random(300) < 1 / (1 + np.exp(z - 2 * x))).astype(np.int8)
    attributes = {"x": NumericColumn(x), "z": NumericColumn(z)}
    found = learnt(Columns(300, attributes, "class", CategoricalColumn(codes, ("no", "yes")))).model
    weights = {trial.name: trial.weight for trial in ensemble_of(found).trials}
    losses = {trial.name: trial.log_loss for trial in ensemble_of(found).trials}
    assert max(weights, key=weights.__getitem__) == "lines"
    assert min(losses, key=losses.__getitem__) == "lines"
    assert ensemble_of(found).components[0].name == "lines"


def test_a_time_limit_skips_candidates() -> None:
    events: list[Event] = []
    now = iter(range(10_000))
    found = learn(mixed(80), recipe(time_limit=2.5), run=Run(clock=lambda: float(next(now)), watch=events.append)).model
    notes = [event.text for event in events if isinstance(event, Note)]
    assert len(notes) == 1
    assert "the time limit was reached" in notes[0]
    assert next(trial.name for trial in ensemble_of(found).trials) == "singles"
    left_out = notes[0].rpartition(": ")[2].split(", ")
    assert not {trial.name for trial in ensemble_of(found).trials} & set(left_out)


def left_out(
    columns: Columns, stop_after: str, limit: float | None = 10.0, effort: int | None = None
) -> tuple[Model, str, list[str]]:
    """Return the model if the time is over after this candidate, the reason in the note, and the skipped candidates."""
    now = [0.0]
    notes: list[str] = []
    tried: list[str] = []

    def watch(event: Event) -> None:
        if isinstance(event, Note) and not event.warning:
            notes.append(event.text)
        if isinstance(event, Progress) and ", " in event.detail:
            tried.append(event.detail.partition(",")[0])
            now[0] = 1e6 if tried[-1] == stop_after else 0.0

    asked = Recipe.of(structure="auto", time_limit=limit, effort=effort)
    found = learn(columns, asked, run=Run(clock=lambda: now[0], watch=watch)).model
    assert [trial.name for trial in ensemble_of(found).trials] == [*dict.fromkeys(tried), FREQUENCIES]
    if not notes:
        return found, "", []
    (note,) = notes
    reason, _, listed = note.partition(": ")
    return found, reason, listed.split(", ")


def test_the_note_lists_all_candidates_without_time_in_their_order() -> None:
    """This includes those that build on the residuals of a skipped candidate."""
    columns = mixed(60)
    found, reason, listed = left_out(columns, "singles")
    assert reason == "candidates were not tried because the time limit was reached"
    assert ("singles", *listed) == candidate_names(coded(columns))
    assert "triples" in listed
    assert {one.name for one in ensemble_of(found).components} == {"singles", FREQUENCIES}


def test_quadruples_are_listed_if_triples_were_skipped() -> None:
    columns = replace(mixed(60), attributes={f"a{i}": mixed(60, seed=i).attributes["b"] for i in range(4)})
    _, _, listed = left_out(columns, "tree")
    assert listed == ["pairs", "all pairs", "triples", "quadruples"]


@pytest.mark.slow
def test_with_enough_time_there_is_no_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto, "MOST_MEMBERS", 6)
    found, *nothing = left_out(mixed(60), "nothing")
    assert nothing == ["", []]
    assert "boosted" in {trial.name for trial in ensemble_of(found).trials}


@pytest.mark.slow
def test_a_time_limit_does_not_raise_a_given_effort() -> None:
    in_time, *_ = left_out(mixed(60), "nothing", 10.0, 2)
    unlimited, *_ = left_out(mixed(60), "nothing", None, 2)
    assert ensemble_of(in_time).trials == ensemble_of(unlimited).trials


def test_a_path_ends_when_the_time_is_over() -> None:
    """A single penalty of the first candidate is tried."""
    now = itertools.count()
    events: list[Event] = []
    learn(mixed(60), recipe(time_limit=0.001), run=Run(clock=lambda: float(next(now)), watch=events.append))
    penalties = {event.detail.split(",")[1] for event in events if isinstance(event, Progress) and ", " in event.detail}
    assert penalties == {" penalty 30"}


def test_progress_names_the_trials() -> None:
    events: list[Event] = []
    learn(mixed(60), recipe(), run=Run(watch=events.append))
    assert [event.name for event in events if isinstance(event, Stage)] == ["discretize", "candidates", "parameters"]
    details = [event.detail for event in events if isinstance(event, Progress)]
    assert "singles, penalty 30, fold 2 of 5" in details
    assert all(event.total is None or event.done <= event.total for event in events if isinstance(event, Progress))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_held_out_loss_is_that_of_the_whole_ensemble(weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a fold are pooled with weights that their own labels did not touch, so that the loss does not flatter."""
    calls = []
    pool_held_out = auto._pool_held_out

    def record(*arguments: Any) -> Array:
        calls.append(arguments)
        return pool_held_out(*arguments)

    monkeypatch.setattr(auto, "_pool_held_out", record)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 150) if weighted else None
    found = learnt(mixed(150, 3, weights=weights))
    held_out = found.parameters.held_out
    assert held_out is not None
    ((searched, evaluations, pool, metric),) = calls
    labels, row_weights, *_ = auto._held_out_rows(searched)
    pooled = pool_held_out(searched, evaluations, pool, metric)
    loss_of = partial(np.average, weights=row_weights)
    assert held_out.log_loss == pytest.approx(loss_of(-pooled[labels, np.arange(len(labels))]), rel=1e-12)
    flattering = pool_log_probabilities([evaluation.log_p for evaluation in evaluations], pool)
    assert held_out.log_loss >= loss_of(-flattering[labels, np.arange(len(labels))])
    first = searched[0]
    changed = replace(first, held_out=replace(first.held_out, labels=first.held_out.labels[::-1].copy()))
    again = pool_held_out([changed, *searched[1:]], evaluations, pool, metric)
    own = first.held_out.n_rows
    np.testing.assert_array_equal(again[:, :own], pooled[:, :own])
    assert (again[:, own:] != pooled[:, own:]).any()
    folds = auto._make_folds(coded(mixed(150, 3, weights=weights)), budget.EFFORTS[budget.DEFAULT], 0)
    loss, total = 0.0, 0.0
    for fold in folds:
        of_rows = np.ones(fold.held_out.n_rows) if fold.held_out.weights is None else fold.held_out.weights
        seen = np.bincount(fold.finder.data.labels, fold.finder.data.weights, 3)
        for y, w in zip(fold.held_out.labels, of_rows, strict=True):
            loss -= w * math.log((seen[y] + 1) / (seen.sum() + 3))
            total += w
    assert held_out.base_log_loss == pytest.approx(loss / total, rel=1e-12)
    assert held_out.log_loss < held_out.base_log_loss


def test_one_component_has_at_most_the_loss_of_its_trial() -> None:
    """Its log-odds may be made bolder or milder."""
    found = learn(mixed(300, 3), recipe(time_limit=1e-9), run=Run(clock=itertools.count().__next__))
    singles, frequencies = ensemble_of(found.model).trials
    assert (frequencies.name, frequencies.weight) == (FREQUENCIES, 0)
    assert found.parameters.held_out is not None
    assert 0.9 * singles.log_loss < found.parameters.held_out.log_loss <= singles.log_loss


def test_a_single_row_is_not_held_out() -> None:
    assert learnt(mixed(1, 2)).parameters.held_out is None


@pytest.mark.parametrize("word", [3, 4])
def test_the_note_lists_candidates_too_large_for_the_memory_once(word: int) -> None:
    data = coded(mixed(100))
    effort = budget.EFFORTS[word]
    needed = {name: budget.memory_of(name, data, effort) for name in candidate_names(data)}
    enough = needed["singles"]
    notes: list[str] = []

    def watch(event: Event) -> None:
        if isinstance(event, Note):
            notes.append(event.text)

    found = learn(mixed(100), Recipe.of(structure="auto", effort=word), run=Run(memory=enough, watch=watch)).model
    tried = {trial.name for trial in ensemble_of(found).trials}
    assert tried <= {FREQUENCIES, *(name for name in candidate_names(data) if needed[name] <= enough)}
    (note,) = [note for note in notes if "they do not fit in memory: " in note]
    told = note.partition("they do not fit in memory: ")[2].split(", ")
    assert len(told) == len(set(told))
    assert "pairs" in told
    assert all(needed[name] > enough for name in told)


def test_too_little_memory_for_the_first_candidate_is_an_error() -> None:
    with pytest.raises(BncliError, match=r"about .* of memory, but only .* is free"):
        learn(mixed(100), Recipe.of(structure="auto"), run=Run(memory=1_000))


@pytest.mark.parametrize("name", ["tree", "pairs", "all pairs", "triples", "quadruples"])
def test_larger_sets_take_more_memory_and_no_lower_effort_takes_more(name: str) -> None:
    data = random_dataset(3_000, (4,) * 10, 3)
    of_efforts = [budget.memory_of(name, data, effort) for effort in budget.EFFORTS.values()]
    assert of_efforts == sorted(of_efforts)
    assert budget.memory_of("singles", data, budget.EFFORTS[3]) < of_efforts[2]


def test_a_limit_of_no_time_is_refused() -> None:
    with pytest.raises(BncliError, match="is not a finite number above 0"):
        Recipe.of(structure="auto", time_limit=0)


@pytest.mark.slow
def test_on_all_rows_larger_sets_are_penalised_as_in_the_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    factors: dict[str, set[float]] = {}
    find = CandidateFinder.find

    def record(finder: CandidateFinder, name: str) -> Candidate:
        candidate = find(finder, name)
        factors.setdefault(name, set()).add(candidate.interaction_factor)
        return candidate

    disagree = property(lambda finder: 20.0 if {"singles", "pairs"} <= finder.penalties.keys() else 1.0)
    monkeypatch.setattr(CandidateFinder, "interaction_factor", disagree)
    monkeypatch.setattr(CandidateFinder, "find", record)
    monkeypatch.setattr(trials, "may_improve", lambda *rest: True)
    monkeypatch.setattr(auto, "pool_weights", lambda logs, *rest: np.ones(len(logs)))
    learnt(mixed(60), effort=4)
    assert factors["triples"] == {20.0}
    assert factors["pairs"] == {1.0}


@pytest.mark.slow
def test_the_last_fits_may_grow_through_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = mixed(800, 3)
    monkeypatch.setattr(few_rows, "MOST_ROWS", 500)
    whole = learnt(columns)
    monkeypatch.setattr(
        auto,
        "Growth",
        partial(Growth, many_rows=300, rows_per_parameter=1, fewest_per_parameter=0, least_largest=200, least=100),
    )
    drawn: list[int] = []
    draw = weighted_samples.weighted_samples

    def told(likelihood: ConditionalLikelihood, sizes: Sequence[int]) -> Iterator[Dataset]:
        drawn.extend(sizes)
        return draw(likelihood, sizes)

    monkeypatch.setattr(optimization, "weighted_samples", told)
    grown = learnt(columns)
    assert drawn
    assert grown.parameters.cll == pytest.approx(whole.parameters.cll, rel=1e-3)
    assert [one.name for one in ensemble_of(grown.model).components] == [
        one.name for one in ensemble_of(whole.model).components
    ]


def noise(n_rows: int, seed: int = 0, n_labels: int = 2) -> Columns:
    """Return attributes that are independent of the class."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_labels, n_rows).astype(np.int8)
    labels[:n_labels] = range(n_labels)
    return Columns(
        n_rows,
        {
            "x": NumericColumn(rng.normal(size=n_rows)),
            "a": CategoricalColumn(rng.integers(0, 3, n_rows).astype(np.int8), ("blue", "green", "red")),
        },
        "class",
        CategoricalColumn(labels, tuple(f"y{y}" for y in range(n_labels))),
    )


@pytest.fixture(scope="module")
def frequencies_model() -> Model:
    """Return an ensemble of the class frequencies alone: a single row cannot be held out."""
    found = learn(mixed(1), Recipe.of(structure="auto")).model
    assert [one.name for one in ensemble_of(found).components] == [FREQUENCIES]
    return found


def test_the_class_frequencies_are_those_of_all_rows_and_one_more_per_class(frequencies_model: Model) -> None:
    label = mixed(1).label
    assert label is not None
    shares = (np.arange(2) == label.codes[0]) / 3 + 1 / 3
    np.testing.assert_allclose(
        np.exp(predict(frequencies_model, mixed(10))), np.repeat(shares[:, np.newaxis], 10, axis=1)
    )


def test_a_model_without_tables_is_stored_and_explained(frequencies_model: Model, tmp_path: Path) -> None:
    path = str(tmp_path / "m.bnc")
    write_model(path, frequencies_model)
    again = read_model(path)
    assert dump_model(again) == dump_model(frequencies_model)
    assert ensemble_of(again).families == ()
    assert effects_of(again).effects == ()


@pytest.mark.slow
def test_with_few_rows_the_ensemble_is_hardly_worse_than_the_class_frequencies() -> None:
    """On average over samples, also if one class has a single row."""
    excess = [excess_on_noise(seed) for seed in range(3)]
    assert np.mean(excess) < 0.03
    assert max(excess) < 0.2


def excess_on_noise(seed: int) -> float:
    """Return the log-loss of new rows minus that of the class frequencies."""
    rows = noise(24, seed=10 + seed)
    assert rows.label is not None
    codes = np.append(rows.label.codes[:23], np.int8(2))
    found = learn(replace(rows, label=CategoricalColumn(codes, ("a", "b", "c"))), Recipe.of(structure="auto")).model
    new = noise(2_000, seed=100 + seed)
    assert new.label is not None
    logs = predict(found, new)[new.label.codes, np.arange(2_000)]
    counts = np.bincount(codes, minlength=3) + 1.0
    return float(np.log(counts / counts.sum())[new.label.codes].mean() - logs.mean())


def test_units_that_only_look_predictable_get_the_class_frequencies() -> None:
    """Held-out units of several rows are few observations: beyond chance means two standard errors per unit."""
    rng = np.random.default_rng(0)
    units, labels = np.repeat(np.arange(40), 5), np.repeat(np.arange(40) % 2, 5)

    def fold(by: SplitBy | None) -> Any:
        held_out = SimpleNamespace(n_rows=200, labels=labels, weights=None, split_by=by)
        return SimpleNamespace(held_out=held_out)

    frequencies = np.log(np.full((2, 200), 0.5))
    for gain, spread, beats in ((0.02, 0.3, False), (0.3, 0.3, True), (-0.1, 0.01, False)):
        per_unit = gain + spread * (rng.permutation(40) - 19.5) / 12
        p_true = np.clip(0.5 * np.exp(per_unit)[units], 1e-3, 0.999)
        pooled = np.empty((2, 200))
        pooled[labels, np.arange(200)], pooled[1 - labels, np.arange(200)] = np.log(p_true), np.log1p(-p_true)
        assert auto._beats_frequencies([fold(SplitBy(units))], pooled, frequencies) is beats
        assert auto._beats_frequencies([fold(None)], pooled, frequencies)
    one_unit = [fold(SplitBy(np.zeros(200, np.intp)))]
    assert not auto._beats_frequencies(one_unit, np.log(np.full((2, 200), 0.9)), frequencies)
    both = auto._held_out_rows([fold(SplitBy(units)), fold(None)])
    assert (both.n_rows, both.n_units) == (400, 240)
    evidence = auto._held_out_rows([fold(SplitBy(units))]).unit_weights
    assert evidence is not None
    assert evidence.sum() == pytest.approx(40)
    assert auto._held_out_rows([fold(None)]).unit_weights is None
