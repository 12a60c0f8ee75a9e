"""Compare Kikuchi-Bayes models, the best step and the average of all, with loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings

from bncli.engine.counting.counts import Counts
from bncli.engine.model import Model, StoppedBy
from bncli.engine.parameter_learners.closed_form import learn_kbma, learn_kmap
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities
from bncli.engine.structures.structure import Dag, Regions, SearchTrace
from bncli.errors import BncliError
from bncli.recipe import Recipe
from tests import path_oracle
from tests.datasets import random_dataset
from tests.kikuchi_oracle import Slow
from tests.paths import Case, learnt_on, learnt_paths, model_of, path_of, reweighed
from tests.sweeps import examples


@given(learnt_paths(learn_kmap))
@settings(max_examples=examples(13))
def test_it_is_the_model_of_its_regions(case: Case) -> None:
    data, regions, learnt, theta = case
    present = regions.regions[: len(path_of(learnt).steps) - 1]
    assert [step.weight for step in path_of(learnt).steps] == [*[0.0] * len(present), 1.0]
    expected = Slow(data, theta).step(present)
    assert learnt.n_parameters == expected.df
    assert learnt.cll == pytest.approx(expected.log_likelihood, rel=1e-9, abs=1e-9)
    scorer = compile_scorer(model_of(data, regions, learnt))
    log_p = log_probabilities(scorer, [data.codes[i][:1] for i in scorer.used], 1)[:, 0]
    row = {i: int(codes[0]) for i, codes in enumerate(data.codes)}
    np.testing.assert_allclose(np.exp(log_p), path_oracle.probabilities(data, present, row, theta), rtol=1e-9)


@given(learnt_paths(learn_kmap))
@settings(max_examples=examples(13))
def test_no_other_step_has_a_higher_posterior(case: Case) -> None:
    data, regions, learnt, theta = case
    whole = learn_kbma(Counts(data), regions, theta=theta)
    assert len(path_of(learnt).steps) - 1 == path_of(whole).best
    for one, other in zip(path_of(learnt).steps, path_of(whole).steps, strict=False):
        assert one._replace(weight=0.0) == other._replace(weight=0.0)


def test_the_rows_at_hand_decide_not_the_file() -> None:
    data = random_dataset(400, (2, 2), 2)
    regions = ((0,), (1,), (0, 1))
    told = SearchTrace((1, 2, 3, 4), (-9.0,) * 4, (-9.0, -9.0, -9.0, -9.0), 0)
    one, other = (learn_kmap(Counts(data), Regions(regions, trace), theta=1.0) for trace in (None, told))
    assert path_of(one).steps == path_of(other).steps
    assert len(path_of(one).steps) > 1


def test_a_network_is_refused() -> None:
    with pytest.raises(BncliError, match="use --structure kikuchi"):
        learn_kmap(Counts(random_dataset(9, (2,), 2)), Dag(((),), (0,)), theta=1.0)


@given(learnt_paths())
@settings(max_examples=examples(13))
def test_every_step_is_worth_what_the_definition_says(case: Case) -> None:
    data, regions, learnt, theta = case
    slow, logs = Slow(data, theta), []
    for s, step in enumerate(path_of(learnt).steps):
        expected = slow.step(regions.regions[:s])
        assert step.df == expected.df
        assert step.log_likelihood == pytest.approx(expected.log_likelihood, rel=1e-9, abs=1e-9)
        assert step.log_posterior == pytest.approx(expected.log_posterior, rel=1e-9, abs=1e-9)
        logs.append(expected.log_posterior)
    assert sum(step.weight for step in path_of(learnt).steps) == pytest.approx(1.0, abs=1e-12)
    if max(logs) > -math.inf:
        shares = [math.exp(value - max(logs)) for value in logs]
        weights = [step.weight for step in path_of(learnt).steps]
        np.testing.assert_allclose(weights, [share / math.fsum(shares) for share in shares], rtol=1e-6)


@given(learnt_paths())
@settings(max_examples=examples(13))
def test_the_likelihood_is_that_of_the_average(case: Case) -> None:
    data, _, learnt, theta = case
    weights = [1.0] * data.n_rows if data.weights is None else data.weights.tolist()
    total = 0.0
    for t in range(data.n_rows):
        row = {i: int(codes[t]) for i, codes in enumerate(data.codes)}
        total += weights[t] * math.log(path_oracle.averaged(data, path_of(learnt), row, theta)[data.labels[t]])
    assert learnt.cll == pytest.approx(total, rel=1e-9, abs=1e-9)
    assert learnt.cll_start == learnt.cll
    assert learnt.stopped_by is StoppedBy.CLOSED_FORM
    assert learnt.n_parameters == path_of(learnt).steps[-1].df


def scored(model: Model, rows: list[np.ndarray]) -> np.ndarray:
    scorer = compile_scorer(model)
    return log_probabilities(scorer, [rows[i] for i in scorer.used], len(rows[0]))


@pytest.mark.parametrize("n_labels", [2, 3, 7])
def test_one_pass_is_the_average_of_the_steps_one_by_one(n_labels: int) -> None:
    data = random_dataset(20_000, (3, 2, 4, 2, 3), n_labels)
    regions = Regions(((0,), (1,), (2,), (3,), (4,), (0, 1), (1, 2), (3, 4), (0, 1, 2), (2, 3)))
    learnt = learn_kbma(Counts(data), regions, theta=1.0)
    for weights in ([1.0] * 11, [0, 0, 3, 0, 0, 0, 1, 1, 0, 5, 0], [1, *[0] * 10], [*[0] * 10, 1]):
        path = reweighed(path_of(learnt), [float(w) for w in weights])
        expected = np.zeros((n_labels, data.n_rows))
        for s, step in enumerate(path.steps):
            model = Model(data.schema, regions, path.tables(s), Recipe(), 1, "0")
            expected += step.weight * np.exp(scored(model, list(data.codes)))
        averaged = Model(data.schema, regions, path, Recipe(), 1, "0")
        np.testing.assert_allclose(scored(averaged, list(data.codes)), np.log(expected), rtol=1e-9, atol=1e-12)


def test_probabilities_too_small_for_a_float_are_averaged_in_logs() -> None:
    """Both steps give a class the probability e^-1000."""
    data = random_dataset(30, (2, 2), 2)
    for n_labels in (2, 3):
        data = random_dataset(30, (2, 2), n_labels)
        model = learnt_on(data, ((0,), (1,)))
        far = tuple(np.full_like(logs, -3000.0) for logs in path_of(model).logs)
        for logs in far:
            logs[:, 0] = -500.0
        path = reweighed(path_of(model), [0.0, 0.5, 0.5])
        path = type(path)(np.zeros(n_labels), path.families, far, path.steps)
        log_p = scored(Model(data.schema, model.structure, path, Recipe(), 1, "0"), list(data.codes))
        np.testing.assert_allclose(log_p[1], -2500.0 + math.log(0.5), rtol=1e-6)


def test_the_tables_are_those_of_the_best_step() -> None:
    learnt = learn_kbma(Counts(random_dataset(200, (2, 3), 2)), Regions(((0,), (1,), (0, 1))), theta=1.0)
    best = path_of(learnt).tables(path_of(learnt).best)
    assert learnt.tables.families == best.families
    assert path_of(learnt).steps[path_of(learnt).best].weight == max(step.weight for step in path_of(learnt).steps)


def test_no_step_has_a_posterior() -> None:
    """There are fewer rows than degrees of freedom, so the model has the class only."""
    learnt = learn_kbma(Counts(random_dataset(1, (2, 2), 2)), Regions(((0,), (1,))), theta=1.0)
    assert [step.weight for step in path_of(learnt).steps] == [1.0, 0.0, 0.0]
    assert compile_scorer(model_of(random_dataset(1, (2, 2), 2), Regions(()), learnt)).used == ()


@pytest.mark.usefixtures("small_blocks")
def test_threads_change_nothing() -> None:
    regions = Regions(((0,), (1,), (2,), (0, 1), (1, 2)))
    one, two = (
        learn_kbma(Counts(random_dataset(5_000, (3, 2, 4), 3, threads=threads)), regions, theta=1.0)
        for threads in (1, 2)
    )
    assert one.cll == two.cll
    assert path_of(one).steps == path_of(two).steps


def test_a_network_is_refused_kbma() -> None:
    with pytest.raises(BncliError, match="use --structure kikuchi"):
        learn_kbma(Counts(random_dataset(9, (2,), 2)), Dag(((),), (0,)), theta=1.0)
