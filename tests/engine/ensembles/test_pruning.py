"""Every rule of what is still worth trying, on losses that are made up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bncli.engine.data.columns import CategoricalColumn, Columns
from bncli.engine.ensembles.budget import EFFORTS
from bncli.engine.ensembles.candidate_selection import (
    HeldOutEvaluation,
    Losses,
    has_lost_its_base,
    is_better,
    is_outdone,
    may_improve,
)
from bncli.engine.ensembles.candidates import BELOW, Rows
from bncli.engine.learn import learn
from tests.datasets import random_dataset
from tests.engine.ensembles.rows import ensemble_of, recipe

NOTHING, SLACK, GAIN, CONFLICT = 5e-5, 0.05, 0.01, 9.0
"""The rules in numbers; not those of the modules, which would move the limits with the tests."""
EVERY_EFFORT = pytest.mark.parametrize("prunes", [False, True])


def judged(**log_losses: float) -> list[HeldOutEvaluation]:
    """Candidates that were tried, in this order; `sharp_tree` is the sharp tree."""
    return [
        HeldOutEvaluation(name.replace("_", " "), 1.0, Losses(loss, 0.5, 0.5), np.zeros(1), (), None)
        for name, loss in log_losses.items()
    ]


def may_improve_on(name: str, tried: list[HeldOutEvaluation], *, prunes: bool) -> bool:
    return may_improve(name, BELOW, tried, prunes)


@EVERY_EFFORT
def test_the_first_is_tried_whatever_it_is(prunes: bool) -> None:
    assert may_improve_on("singles", [], prunes=prunes)
    assert may_improve_on("quadruples", [], prunes=prunes)


@EVERY_EFFORT
def test_nothing_is_tried_where_nothing_is_lost(prunes: bool) -> None:
    assert not may_improve_on("pairs", judged(singles=0.9 * NOTHING), prunes=prunes)
    assert not may_improve_on("sharp singles", judged(singles=0.5, pairs=0.9 * NOTHING), prunes=prunes)
    assert may_improve_on("pairs", judged(singles=1.1 * NOTHING), prunes=prunes)


@pytest.mark.parametrize("teller", ["tree", "boosted"])
def test_pairs_are_promising_where_trees_of_pairs_or_of_questions_have_gained(teller: str) -> None:
    gained, not_enough = 0.5 * (1 - 1.1 * GAIN), 0.5 * (1 - 0.9 * GAIN)
    assert may_improve_on("pairs", judged(singles=0.5, lines=0.6, **{teller: gained}), prunes=True)
    assert not may_improve_on("pairs", judged(singles=0.5, lines=0.6, **{teller: not_enough}), prunes=True)
    assert not may_improve_on("pairs", judged(singles=0.6, lines=0.5, **{teller: not_enough}), prunes=True)
    assert may_improve_on("pairs", judged(singles=0.5, **{teller: not_enough}), prunes=False)


def test_where_nothing_has_told_larger_sets_are_promising() -> None:
    assert may_improve_on("pairs", judged(singles=0.5, lines=0.4), prunes=True)
    assert may_improve_on("all pairs", judged(singles=0.5, tree=0.5), prunes=True)


@pytest.mark.parametrize(("name", "below"), [("all pairs", "pairs"), ("triples", "pairs"), ("quadruples", "triples")])
def test_larger_sets_are_promising_where_smaller_ones_have_gained(name: str, below: str) -> None:
    assert may_improve_on(name, judged(singles=0.5, **{below: 0.5 * (1 - 1.1 * GAIN)}), prunes=True)
    assert not may_improve_on(name, judged(singles=0.5, **{below: 0.5 * (1 - 0.9 * GAIN)}), prunes=True)
    assert may_improve_on(name, judged(singles=0.5, **{below: 0.5 * (1 - 0.9 * GAIN)}), prunes=False)


@EVERY_EFFORT
def test_pairs_are_tried_however_bad_single_attributes_are(prunes: bool) -> None:
    assert may_improve_on("pairs", judged(lines=0.1, singles=0.9), prunes=prunes)
    assert may_improve_on("lines", judged(singles=0.9), prunes=prunes)


@pytest.mark.parametrize(("name", "below"), [("triples", "pairs"), ("quadruples", "triples")])
def test_larger_sets_grow_from_sets_that_are_good_enough(name: str, below: str) -> None:
    assert may_improve_on(name, judged(singles=0.5, **{below: 0.5 * (1 + 0.9 * SLACK)}), prunes=False)
    assert not may_improve_on(name, judged(singles=0.5, **{below: 0.5 * (1 + 1.1 * SLACK)}), prunes=False)
    assert not may_improve_on(name, judged(singles=0.5), prunes=False)


def test_triples_may_grow_from_all_pairs() -> None:
    builds_on = BELOW | {"triples": "all pairs"}
    tried = judged(singles=0.5, pairs=0.9, all_pairs=0.5)
    assert may_improve("triples", builds_on, tried, prunes=False)
    assert not may_improve("triples", BELOW, tried, prunes=False)


@EVERY_EFFORT
def test_a_base_that_was_left_out_is_lost(prunes: bool) -> None:
    tried = judged(singles=0.5)
    assert has_lost_its_base("triples", BELOW, tried, prunes, ["pairs"])
    assert not has_lost_its_base("triples", BELOW, tried, prunes, ["all pairs"])
    assert not has_lost_its_base("quadruples", BELOW, tried, prunes, ["pairs"])
    assert not has_lost_its_base("lines", BELOW, tried, prunes, ["pairs"])


@EVERY_EFFORT
def test_where_nothing_is_left_to_gain_no_base_is_missed(prunes: bool) -> None:
    assert not has_lost_its_base("triples", BELOW, judged(singles=0.5, tree=0.9 * NOTHING), prunes, ["pairs"])


def test_better_is_less_than_what_was_tried() -> None:
    tried = judged(pairs=0.5, all_pairs=0.5, tree=0.4)
    assert is_better("tree", "pairs", tried)
    assert not is_better("all pairs", "pairs", tried)
    assert not is_better("pairs", "tree", tried)
    assert is_better("pairs", "triples", tried)


@pytest.mark.parametrize(
    ("penalties", "beyond"),
    [
        ({}, 1.0),
        ({"singles": 1.0}, 1.0),
        ({"pairs": 30.0, "triples": 300.0}, 1.0),
        ({"singles": 3.0, "pairs": 3.0}, 1.0),
        ({"singles": 10.0, "pairs": 1.0}, 1.0),
        ({"singles": 1.0, "pairs": 0.99 * CONFLICT}, 1.0),
        ({"singles": 1.0, "pairs": CONFLICT}, CONFLICT),
        ({"singles": 0.3, "pairs": 30.0}, 100.0),
    ],
)
def test_best_penalties_a_decade_apart_are_a_conflict(penalties: dict[str, float], beyond: float) -> None:
    assert Rows(random_dataset(20, (2, 2), 2), penalties=penalties).beyond == pytest.approx(beyond)


@pytest.mark.parametrize("share", [0.1, 4.0])
def test_what_promised_nothing_is_tried_of_what_is_left_to_spend(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parity of three categories: no pair tells anything, so that an effort that prunes defers larger sets."""
    monkeypatch.setitem(EFFORTS, 3, replace(EFFORTS[3], share=share))
    codes = np.random.default_rng(0).integers(0, 2, (400, 3)).astype(np.int8)
    columns = Columns(
        400,
        {f"a{i}": CategoricalColumn(column, ("no", "yes")) for i, column in enumerate(codes.T)},
        "class",
        CategoricalColumn((codes.sum(axis=1) % 2).astype(np.int8), ("even", "odd")),
    )
    trials = {trial.name: trial.log_loss for trial in ensemble_of(learn(columns, recipe()).model).trials}
    assert trials["singles"] > 0.6
    assert (trials.get("triples", 1.0) < 0.1) == (share > 1)


def test_trees_that_gain_much_outdo_shallow_candidates_alone() -> None:
    deep, level = judged(singles=1.0, boosted=0.89), judged(singles=1.0, boosted=0.91)
    assert all(is_outdone(name, deep) for name in ("lines", "tree", "sharp singles", "sharp tree"))
    assert not any(is_outdone(name, deep) for name in ("pairs", "all pairs", "triples"))
    assert not is_outdone("tree", level)
    assert not is_outdone("tree", judged(singles=1.0))
