"""The rules of what is still worth trying, on artificial losses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bncli.engine.data.columns import CategoricalColumn, Columns, NumericColumn
from bncli.engine.ensembles import trials
from bncli.engine.ensembles.budget import EFFORTS
from bncli.engine.ensembles.candidates import BUILDS_ON
from bncli.engine.ensembles.held_out_evaluation import HeldOutEvaluation, Losses
from bncli.engine.ensembles.trials import has_lost_its_base, improves_on_pairs, is_outdone, may_improve
from bncli.engine.learn import learn
from tests.engine.ensembles.rows import ensemble_of, recipe

NO_LOSS, SLACK, GAIN = 5e-5, 0.05, 0.01
"""The numbers of the rules; not imported, since a changed number should fail a test."""
EVERY_EFFORT = pytest.mark.parametrize("prunes", [False, True])


def evaluations(**log_losses: float) -> list[HeldOutEvaluation]:
    """Return evaluations with these losses, in this order; `sharp_tree` is the sharp tree."""
    return [
        HeldOutEvaluation(name.replace("_", " "), 1.0, Losses(loss, 0.5, 0.5), np.zeros(1), (), None)
        for name, loss in log_losses.items()
    ]


def may_improve_on(name: str, tried: list[HeldOutEvaluation], *, prunes: bool) -> bool:
    return may_improve(name, BUILDS_ON, tried, prunes)


@EVERY_EFFORT
def test_the_first_candidate_is_always_tried(prunes: bool) -> None:
    assert may_improve_on("singles", [], prunes=prunes)
    assert may_improve_on("quadruples", [], prunes=prunes)


@EVERY_EFFORT
def test_nothing_is_tried_without_a_loss(prunes: bool) -> None:
    assert not may_improve_on("pairs", evaluations(singles=0.9 * NO_LOSS), prunes=prunes)
    assert not may_improve_on("sharp singles", evaluations(singles=0.5, pairs=0.9 * NO_LOSS), prunes=prunes)
    assert may_improve_on("pairs", evaluations(singles=1.1 * NO_LOSS), prunes=prunes)


@pytest.mark.parametrize("sign", ["tree", "boosted"])
def test_pairs_are_promising_if_trees_have_gained(sign: str) -> None:
    gained, not_enough = 0.5 * (1 - 1.1 * GAIN), 0.5 * (1 - 0.9 * GAIN)
    assert may_improve_on("pairs", evaluations(singles=0.5, lines=0.6, **{sign: gained}), prunes=True)
    assert not may_improve_on("pairs", evaluations(singles=0.5, lines=0.6, **{sign: not_enough}), prunes=True)
    assert not may_improve_on("pairs", evaluations(singles=0.6, lines=0.5, **{sign: not_enough}), prunes=True)
    assert may_improve_on("pairs", evaluations(singles=0.5, **{sign: not_enough}), prunes=False)


def test_larger_sets_are_promising_if_nothing_could_show_interactions() -> None:
    assert may_improve_on("pairs", evaluations(singles=0.5, lines=0.4), prunes=True)
    assert may_improve_on("all pairs", evaluations(singles=0.5, tree=0.5), prunes=True)


@pytest.mark.parametrize(("name", "below"), [("all pairs", "pairs"), ("triples", "pairs"), ("quadruples", "triples")])
def test_larger_sets_are_promising_if_smaller_ones_have_gained(name: str, below: str) -> None:
    assert may_improve_on(name, evaluations(singles=0.5, **{below: 0.5 * (1 - 1.1 * GAIN)}), prunes=True)
    assert not may_improve_on(name, evaluations(singles=0.5, **{below: 0.5 * (1 - 0.9 * GAIN)}), prunes=True)
    assert may_improve_on(name, evaluations(singles=0.5, **{below: 0.5 * (1 - 0.9 * GAIN)}), prunes=False)


@EVERY_EFFORT
def test_pairs_are_tried_however_bad_single_attributes_are(prunes: bool) -> None:
    assert may_improve_on("pairs", evaluations(lines=0.1, singles=0.9), prunes=prunes)
    assert may_improve_on("lines", evaluations(singles=0.9), prunes=prunes)


@pytest.mark.parametrize(("name", "below"), [("triples", "pairs"), ("quadruples", "triples")])
def test_larger_sets_grow_from_sets_that_are_good_enough(name: str, below: str) -> None:
    assert may_improve_on(name, evaluations(singles=0.5, **{below: 0.5 * (1 + 0.9 * SLACK)}), prunes=False)
    assert not may_improve_on(name, evaluations(singles=0.5, **{below: 0.5 * (1 + 1.1 * SLACK)}), prunes=False)
    assert not may_improve_on(name, evaluations(singles=0.5), prunes=False)


def test_triples_may_grow_from_all_pairs() -> None:
    builds_on = BUILDS_ON | {"triples": "all pairs"}
    tried = evaluations(singles=0.5, pairs=0.9, all_pairs=0.5)
    assert may_improve("triples", builds_on, tried, prunes=False)
    assert not may_improve("triples", BUILDS_ON, tried, prunes=False)


@EVERY_EFFORT
def test_a_skipped_base_is_lost(prunes: bool) -> None:
    tried = evaluations(singles=0.5)
    assert has_lost_its_base("triples", BUILDS_ON, tried, prunes, ["pairs"])
    assert not has_lost_its_base("triples", BUILDS_ON, tried, prunes, ["all pairs"])
    assert not has_lost_its_base("quadruples", BUILDS_ON, tried, prunes, ["pairs"])
    assert not has_lost_its_base("lines", BUILDS_ON, tried, prunes, ["pairs"])


@EVERY_EFFORT
def test_no_base_is_missed_if_nothing_is_left_to_gain(prunes: bool) -> None:
    assert not has_lost_its_base("triples", BUILDS_ON, evaluations(singles=0.5, tree=0.9 * NO_LOSS), prunes, ["pairs"])


def test_all_pairs_must_be_strictly_better_than_pairs_if_both_were_tried() -> None:
    assert improves_on_pairs(evaluations(pairs=0.5, all_pairs=0.4))
    assert not improves_on_pairs(evaluations(pairs=0.5, all_pairs=0.5))
    assert not improves_on_pairs(evaluations(pairs=0.4, all_pairs=0.5))
    assert improves_on_pairs(evaluations(all_pairs=0.5))


@pytest.mark.parametrize("share", [0.1, 4.0])
def test_candidates_without_promise_are_tried_if_seconds_are_left(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The class is the parity of three categories: no pair has a gain, so an effort that prunes defers larger sets."""
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


def test_trees_that_gain_much_outdo_only_shallow_candidates() -> None:
    deep, level = evaluations(singles=1.0, boosted=0.89), evaluations(singles=1.0, boosted=0.91)
    assert all(is_outdone(name, deep) for name in ("lines", "tree", "sharp singles", "sharp tree"))
    assert not any(is_outdone(name, deep) for name in ("pairs", "all pairs", "triples"))
    assert not is_outdone("tree", level)
    assert not is_outdone("tree", evaluations(singles=1.0))


def spirals(n_rows: int, seed: int) -> Columns:
    """Return rows whose class depends on the angle and the radius of two coordinates, beside two of noise."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(4, n_rows))
    score = 6.0 * np.sin(2 * np.arctan2(values[1], values[0]) + 2 * np.hypot(*values[:2]))
    labels = (rng.random(n_rows) < 1 / (1 + np.exp(-score))).astype(np.int8)
    attributes = {name: NumericColumn(column) for name, column in zip("xyuv", values, strict=True)}
    return Columns(n_rows, attributes, "class", CategoricalColumn(labels, ("a", "b")))


@pytest.mark.slow
def test_few_rows_have_trees_only_if_these_clearly_win(monkeypatch: pytest.MonkeyPatch) -> None:
    tangled = spirals(600, 0)
    assert "boosted" in [component.name for component in ensemble_of(learn(tangled, recipe(effort=3)).model).components]
    label = tangled.label
    assert label is not None
    straight = replace(tangled, label=replace(label, codes=(tangled.as_read["x"].values > 0).astype(np.int8)))
    few = spirals(150, 0)
    with_probe = [ensemble_of(learn(rows, recipe(effort=3)).model) for rows in (straight, few)]
    for rows, found in zip((straight, few), with_probe, strict=True):
        assert "boosted" not in [trial.name for trial in found.trials]
        monkeypatch.setattr(trials, "PROBED_ROWS", 10**9)
        assert found.trials == ensemble_of(learn(rows, recipe(effort=3)).model).trials
