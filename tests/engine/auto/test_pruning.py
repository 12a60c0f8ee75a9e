"""Every rule of what is still worth trying, on losses that are made up."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from bncli.engine.auto.candidates import BELOW, Rows
from bncli.engine.auto.choice import Judged, Losses
from bncli.engine.auto.pruning import (
    comes_later,
    has_lost_its_base,
    is_almost_certain,
    is_better,
    may_improve,
)
from tests.datasets import dataset_of, random_dataset

NOTHING, CERTAIN, SLACK, CONFLICT = 5e-5, 0.01, 0.05, 9.0
IN_VAIN, GAIN = 2, 0.01
"""The rules in numbers; not those of the modules, which would move the limits with the tests."""
FEW_AND_MANY = pytest.mark.parametrize("many", [False, True])


def judged(**log_losses: float) -> list[Judged]:
    """Candidates that were tried, in this order; `sharp_tree` is the sharp tree."""
    return [
        Judged(name.replace("_", " "), 1.0, Losses(loss, 0.5, 0.5), np.zeros(1), (), None)
        for name, loss in log_losses.items()
    ]


def may_improve_on(name: str, tried: list[Judged], *, many: bool) -> bool:
    return may_improve(name, BELOW, tried, many)


@FEW_AND_MANY
def test_the_first_is_tried_whatever_it_is(many: bool) -> None:
    assert may_improve_on("singles", [], many=many)
    assert may_improve_on("quadruples", [], many=many)


@FEW_AND_MANY
def test_nothing_is_tried_where_nothing_is_lost(many: bool) -> None:
    assert not may_improve_on("pairs", judged(singles=0.9 * NOTHING), many=many)
    assert not may_improve_on("sharp singles", judged(singles=0.5, pairs=0.9 * NOTHING), many=many)
    assert may_improve_on("pairs", judged(singles=1.1 * NOTHING), many=many)


def test_of_many_rows_some_in_vain_are_enough() -> None:
    last = {"pairs": 0.5, "triples": 0.5 * (1 - 0.9 * GAIN)}
    assert len(last) == IN_VAIN
    assert not may_improve_on("sharp singles", judged(singles=0.5, **last), many=True)
    assert may_improve_on("sharp singles", judged(singles=0.5, **last), many=False)


def test_one_of_the_last_that_gains_is_not_in_vain() -> None:
    gain = 0.5 * (1 - 1.1 * GAIN)
    assert may_improve_on("sharp singles", judged(singles=0.5, pairs=gain, triples=0.6), many=True)
    assert may_improve_on("sharp singles", judged(singles=0.5, pairs=0.6, triples=gain), many=True)
    assert not may_improve_on("sharp singles", judged(singles=0.5, pairs=gain, triples=0.6, lines=0.6), many=True)


def test_the_first_candidates_are_never_in_vain() -> None:
    assert may_improve_on("sharp singles", judged(singles=0.5, pairs=0.9), many=True)


def test_of_many_rows_a_sharp_tree_needs_sharp_cuts_that_are_good() -> None:
    assert may_improve_on("sharp tree", judged(singles=0.5, sharp_singles=0.5 * (1 + 0.9 * SLACK)), many=True)
    worse = judged(singles=0.5, sharp_singles=0.5 * (1 + 1.1 * SLACK))
    assert not may_improve_on("sharp tree", worse, many=True)
    assert may_improve_on("sharp tree", worse, many=False)
    assert may_improve_on("sharp tree", judged(singles=0.5), many=True)


def test_of_many_rows_a_tree_is_tried_where_pairs_were_too_many() -> None:
    assert may_improve_on("tree", judged(singles=0.5, pairs=0.51), many=True)
    assert not may_improve_on("tree", judged(singles=0.5, pairs=0.49), many=True)
    assert may_improve_on("tree", judged(singles=0.5), many=True)
    assert may_improve_on("tree", judged(singles=0.5, pairs=0.49), many=False)


@FEW_AND_MANY
def test_pairs_are_tried_however_bad_single_attributes_are(many: bool) -> None:
    assert may_improve_on("pairs", judged(lines=0.1, singles=0.9), many=many)
    assert may_improve_on("lines", judged(singles=0.9), many=many)


@FEW_AND_MANY
@pytest.mark.parametrize(("name", "below"), [("triples", "pairs"), ("quadruples", "triples")])
def test_larger_sets_grow_from_sets_that_are_good_enough(name: str, below: str, many: bool) -> None:
    assert may_improve_on(name, judged(singles=0.5, **{below: 0.5 * (1 + 0.9 * SLACK)}), many=many)
    assert not may_improve_on(name, judged(singles=0.5, **{below: 0.5 * (1 + 1.1 * SLACK)}), many=many)
    assert not may_improve_on(name, judged(singles=0.5), many=many)


def test_triples_may_grow_from_all_pairs() -> None:
    builds_on = BELOW | {"triples": "all pairs"}
    tried = judged(singles=0.5, pairs=0.9, all_pairs=0.5)
    assert may_improve("triples", builds_on, tried, many=False)
    assert not may_improve("triples", BELOW, tried, many=False)


@FEW_AND_MANY
def test_a_base_that_was_left_out_is_lost(many: bool) -> None:
    tried = judged(singles=0.5)
    assert has_lost_its_base("triples", BELOW, tried, many, ["pairs"])
    assert not has_lost_its_base("triples", BELOW, tried, many, ["all pairs"])
    assert not has_lost_its_base("quadruples", BELOW, tried, many, ["pairs"])
    assert not has_lost_its_base("lines", BELOW, tried, many, ["pairs"])


@FEW_AND_MANY
def test_where_nothing_is_left_to_gain_no_base_is_missed(many: bool) -> None:
    assert not has_lost_its_base("triples", BELOW, judged(singles=0.5, tree=0.9 * NOTHING), many, ["pairs"])
    vain = judged(singles=0.5, tree=0.5, lines=0.5)
    assert has_lost_its_base("triples", BELOW, vain, many, ["pairs"]) is not many


def test_better_is_less_than_what_was_tried() -> None:
    tried = judged(pairs=0.5, all_pairs=0.5, tree=0.4)
    assert is_better("tree", "pairs", tried)
    assert not is_better("all pairs", "pairs", tried)
    assert not is_better("pairs", "tree", tried)
    assert is_better("pairs", "triples", tried)


def test_triples_give_way_to_all_pairs_where_pairs_want_a_penalty_of_their_own() -> None:
    data = random_dataset(20, (2, 2, 2), 2)
    wanted = ("singles", "pairs", "triples", "all pairs")
    alike, apart = (Rows(data, penalties={"singles": 1.0, "pairs": ratio}) for ratio in (3.0, 10.0))
    assert comes_later("triples", wanted, apart)
    assert not comes_later("triples", wanted, alike)
    assert not comes_later("triples", wanted[:-1], apart)
    assert not comes_later("quadruples", wanted, apart)


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


@pytest.mark.parametrize("weights", [None, np.array([2.0, 2.0, 4.0])])
def test_almost_certain_is_a_share_of_the_entropy_of_the_class(weights: NDArray[np.float64] | None) -> None:
    labels = np.array([0, 0, 1]) if weights is not None else np.array([0, 1])
    data = dataset_of([np.zeros(len(labels), int)], labels, (1,), 3, weights)
    entropy = math.log(2)  # of two classes of equal weight; the third is never there
    (below,), (above,) = (judged(singles=factor * CERTAIN * entropy) for factor in (0.99, 1.01))
    assert is_almost_certain(below, data)
    assert not is_almost_certain(above, data)
