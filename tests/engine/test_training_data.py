"""Tests of `--max-attributes`: which attributes are kept, and that held-out rows play no part in it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from bncli.engine.counting.counts import Counts
from bncli.engine.data.columns import CategoricalColumn, Columns, NumericColumn
from bncli.engine.data.cutting import learn_dataset
from bncli.engine.learn import learn
from bncli.engine.structure_learners.dependence import relevance
from bncli.engine.training_data import RIDGE, _best_weight, keep_needed, rank_attributes
from bncli.errors import BncliError, UsageError
from bncli.recipe import Recipe
from bncli.watch import Note, Run


def categories(codes: Any) -> CategoricalColumn:
    return CategoricalColumn(np.asarray(codes, np.int64), tuple("abcdefgh"[: int(max(codes)) + 1]))


def echo(n: int = 900, seed: int = 2) -> Columns:
    """The class follows `strong` and, less, `other`; `echo` repeats `strong` almost always; `noise` says nothing."""
    rng = np.random.default_rng(seed)
    strong, other, noise = rng.integers(0, 2, n), rng.integers(0, 3, n), rng.integers(0, 4, n)
    repeated = np.where(rng.random(n) < 0.05, 1 - strong, strong)
    labels = (rng.random(n) < 1 / (1 + np.exp(-(4.0 * strong - 2.0 + 1.0 * (other - 1))))).astype(np.int64)
    attributes = {"noise": categories(noise), "echo": categories(repeated), "other": categories(other)}
    attributes["strong"] = categories(strong)
    return Columns(n, attributes, "class", CategoricalColumn(labels, ("no", "yes")))


def loss_of(columns: Columns, names: tuple[str, ...]) -> float:
    """The log-loss of every fourth row by the joint frequencies of the named attributes on the other rows."""
    assert columns.label is not None
    labels, place = columns.label.codes, np.arange(columns.n_rows) % 4
    keys = list(zip(*(columns.attributes[name].codes.tolist() for name in names), strict=True))  # type: ignore[union-attr]
    loss = 0.0
    for part in range(4):
        counts: dict[Any, list[float]] = {}
        for t in np.flatnonzero(place != part):
            counts.setdefault(keys[t], [1.0, 1.0])[labels[t]] += 1
        for t in np.flatnonzero(place == part):
            seen = counts.get(keys[t], [1.0, 1.0])
            loss -= float(np.log(seen[labels[t]] / sum(seen)))
    return loss


@pytest.mark.parametrize("seed", range(3))
def test_the_best_pair_of_all_is_kept(seed: int) -> None:
    columns = echo(seed=seed)
    best = min(itertools.combinations(columns.attributes, 2), key=lambda pair: loss_of(columns, pair))
    assert set(best) == {"strong", "other"}
    ranked = rank_attributes(columns, Recipe(), 4, Run())
    assert ranked[:2] == ["strong", "other"]
    # the two that tell most about the class one by one are others
    information = relevance(Counts(learn_dataset(columns)))
    assert set(np.argsort(-information)[:2]) == {1, 3}
    kept = keep_needed(columns, Recipe(max_attributes=2), Run())
    assert list(kept.attributes) == ["other", "strong"]  # in the order of the table


def test_identifiers_and_constants_come_late() -> None:
    columns = echo()
    rng = np.random.default_rng(0)
    identifier = CategoricalColumn(rng.permutation(900), tuple(f"{i:03}" for i in range(900)))
    constant = NumericColumn(np.ones(900))
    wider = replace(columns, attributes={"id": identifier, "one": constant, **columns.attributes})
    for rule in ("auto", "off"):
        ranked = rank_attributes(wider, Recipe(group_levels=rule), 6, Run())
        assert ranked[:2] == ["strong", "other"]
        assert ranked[-1] == "one"
        assert "id" in ranked[-2:]


def test_the_same_with_any_number_of_threads_and_in_any_unit_of_weight() -> None:
    columns = echo(6000)
    ranked = rank_attributes(columns, Recipe(), 4, Run(threads=1))
    assert ranked == rank_attributes(columns, Recipe(), 4, Run(threads=3))
    weighted = replace(columns, weights=np.ones(6000))
    assert ranked == rank_attributes(weighted, Recipe(), 4, Run())


def test_rows_without_weight_for_an_attribute_do_not_count() -> None:
    """`strong` is right in rows of weight 1 and inverted in more rows of hardly any weight."""
    columns = echo()
    assert columns.label is not None
    inverted = replace(columns, label=CategoricalColumn(1 - columns.label.codes, columns.label.levels))
    label = np.concatenate([columns.label.codes, inverted.label.codes, inverted.label.codes])  # type: ignore[union-attr]
    thrice = columns.take(np.tile(np.arange(900), 3))
    thrice = replace(thrice, label=CategoricalColumn(label, columns.label.levels))
    weights = np.repeat([1.0, 0.01, 0.01], 900)
    assert rank_attributes(replace(thrice, weights=weights), Recipe(), 2, Run()) == ["strong", "other"]


def test_the_weight_of_an_attribute_is_the_optimum() -> None:
    data = learn_dataset(echo())
    rng = np.random.default_rng(1)
    scores, own = rng.normal(size=(2, 2, 900))
    own[1] += 0.8 * data.labels
    at_labels = (data.labels, np.arange(900))

    def objective(weight: float) -> float:
        total = scores + weight * own
        return float(np.log(np.exp(total).sum(axis=0)).sum() - total[at_labels].sum()) + RIDGE * weight**2 / 2

    best = minimize_scalar(objective, bounds=(0, 2), method="bounded", options={"xatol": 1e-9}).x
    assert 0.1 < best < 1.9
    assert _best_weight(scores, own, data) == pytest.approx(best, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("words", [{}, {"structure": "gbn", "param": "discriminative"}, {"structure": "interactions"}])
def test_the_figure_of_held_out_rows_is_honest_where_nothing_can_be_learnt(words: dict[str, Any]) -> None:
    """Of 150 columns of noise some follow the class by luck; selected by all rows they would look good on any."""
    rng = np.random.default_rng(0)
    n = 80
    attributes = {f"a{i}": categories(rng.integers(0, 3, n)) for i in range(150)}
    columns = Columns(n, attributes, "class", CategoricalColumn(rng.integers(0, 2, n), ("no", "yes")))
    fitted = learn(columns, Recipe(max_attributes=3, **words), run=Run(hold_out=True))
    assert len(fitted.model.schema.attributes) == 3
    held_out = fitted.parameters.held_out
    assert held_out is not None
    assert held_out.log_loss > 0.95 * held_out.base_log_loss
    # the bound tells: with the three selected by all rows, the figure of held-out rows falls below it
    chosen = keep_needed(columns, Recipe(max_attributes=3), Run())
    easy = learn(chosen, Recipe(structure="nb", param="weighted"), run=Run(hold_out=True)).parameters.held_out
    assert easy is not None
    assert easy.log_loss < 0.95 * easy.base_log_loss


@pytest.mark.parametrize("words", [{"penalty": 1.0}, {"structure": "nb", "param": "map"}])
def test_a_limit_that_leaves_nothing_out_changes_nothing(words: dict[str, Any]) -> None:
    heard: list[object] = []
    with_limit = learn(echo(300), Recipe(max_attributes=4, **words), run=Run(watch=heard.append)).model
    assert with_limit.recipe == learn(echo(300), Recipe(**words)).model.recipe
    assert not [event for event in heard if isinstance(event, Note) and "max-attributes" in event.text]


def test_directions_of_columns_that_are_left_out_are_passed_over_but_wrong_names_are_not() -> None:
    columns = echo()
    assert columns.label is not None
    rng = np.random.default_rng(0)
    numbers = {"up": NumericColumn(columns.label.codes + rng.normal(size=900)), "idle": NumericColumn(rng.random(900))}
    table = replace(columns, attributes={**columns.attributes, **numbers})
    recipe = Recipe(structure="tan", penalty=1, max_attributes=3, increasing=["up", "idle"])
    schema = learn(table, recipe).model.schema
    assert {a.name: getattr(a, "direction", 0) for a in schema.attributes}["up"] == 1
    assert "idle" not in [a.name for a in schema.attributes]
    with pytest.raises(UsageError, match="upp: there is no such attribute"):
        learn(table, Recipe(structure="tan", penalty=1, max_attributes=3, increasing=["upp"]))


def test_a_single_row_cannot_be_held_out() -> None:
    with pytest.raises(BncliError, match="there is only one"):
        learn(echo().take(np.array([0])), Recipe(max_attributes=2))
