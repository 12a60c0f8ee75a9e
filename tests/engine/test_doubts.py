"""What is said against a model that was just learnt: on tables made to deserve it, and on those that do not."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bncli.engine.data.columns import CategoricalColumn, Column, Columns, NumericColumn
from bncli.engine.evaluation.validate import Protocol, cross_validate
from bncli.engine.learn import gains_nothing, learn, warnings_about
from bncli.engine.model import Component, Ensemble, HeldOutLoss
from bncli.recipe import Recipe
from bncli.watch import Event, Note, Run

N = 600
MANY, NOISE = 20, 1e-3
"""Values of a column that are not many; a share of a loss that is no gain."""


def table(**columns: Column) -> Columns:
    """Columns of N rows, the class among them."""
    label = columns.pop("label")
    assert isinstance(label, CategoricalColumn)
    return Columns(N, columns, "label", label)


def names(codes: Any, n: int) -> CategoricalColumn:
    return CategoricalColumn(np.asarray(codes, np.int16), tuple(f"v{i:03}" for i in range(n)))


def told(columns: Columns, **options: object) -> list[str]:
    """The warnings of learning; there are no other notes."""
    heard: list[Event] = []
    learn(columns, Recipe.of(**options), run=Run(watch=heard.append))  # type: ignore[arg-type]
    notes = [event for event in heard if isinstance(event, Note)]
    assert all(note.warning for note in notes)
    return [note.text for note in notes]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture
def good(rng: np.random.Generator) -> dict[str, Column]:
    """Attributes and a class that follows them."""
    y = rng.integers(0, 2, N)
    return {
        "x": NumericColumn(y + rng.normal(0, 0.7, N)),
        "a": names(np.where(rng.random(N) < 0.8, y, 2), 3),
        "label": names(y, 2),
    }


@pytest.mark.parametrize("options", [{}, {"structure": "nb"}, {"param": "map"}, {"structure": "kdb", "k": 2}])
def test_nothing_is_said_of_a_good_model(good: dict[str, Column], options: dict[str, Any]) -> None:
    assert told(table(**good), **options) == []


@pytest.mark.parametrize("param", ["weighted", "map"])
def test_a_model_that_uses_no_attribute(rng: np.random.Generator, param: str) -> None:
    label = names(rng.integers(0, 2, N), 2)
    kept = {"param": param} if param == "map" else {"param": param, "arcs": "all"}
    noise = table(x=NumericColumn(rng.normal(size=N)), y=NumericColumn(rng.normal(size=N)), label=label)
    (text,) = told(noise, param=param)
    assert text.startswith("the model does not use any of the 2 attributes: every row gets the class frequencies of")
    assert "--discretize equal-frequency" in text
    assert "--class" in text
    assert all("does not use" not in text for text in told(noise, discretize="equal-frequency", **kept))
    (text,) = told(table(a=names(np.zeros(N), 1), label=label), param=param)
    assert text.startswith("the model does not use the only attribute: ")
    assert "--discretize" not in text


def test_attributes_that_do_not_help_on_held_out_rows_are_not_used(rng: np.random.Generator) -> None:
    noise = table(
        a=names(rng.integers(0, 6, N), 6), b=names(rng.integers(0, 6, N), 6), label=names(np.arange(N) % 2, 2)
    )
    (text,) = told(noise)
    assert text.startswith("the model does not use any of the 2 attributes: every row gets the class frequencies of")
    assert "which were better on rows held out" in text
    assert "--discretize" not in text


def test_a_model_no_better_than_the_class_frequencies(rng: np.random.Generator, good: dict[str, Column]) -> None:
    noise = {name: names(rng.integers(0, 6, N), 6) for name in ("a", "b")}
    (text,) = told(table(**noise, label=good["label"]), arcs="all")
    assert text.startswith("on rows held out the model is no better than the class frequencies alone (log-loss 0.6")
    assert "'label'" in text
    assert "--structure auto" in text
    # nothing is held out where there is nothing to choose by it
    assert told(table(**noise, label=good["label"]), penalty=1) == []


def test_no_better_is_told_from_hardly_better() -> None:
    assert gains_nothing(HeldOutLoss(0.7, 0.69))
    assert gains_nothing(HeldOutLoss(0.69, 0.69))
    assert gains_nothing(HeldOutLoss(0.69 * (1 - 0.9 * NOISE), 0.69))
    assert not gains_nothing(HeldOutLoss(0.69 * (1 - 1.1 * NOISE), 0.69))


def test_the_column_that_makes_most_parameters_is_named(rng: np.random.Generator, good: dict[str, Column]) -> None:
    town = names(rng.permutation(np.arange(N) % 300), 300)
    texts = told(
        table(**{"a": good["a"], "my town": town, "x": good["x"], "label": good["label"]}),
        group_levels="off",
        arcs="all",
    )
    (text,) = (text for text in texts if "parameters" in text)
    n = int(text.split()[0].replace(",", ""))
    assert n > N
    assert f" parameters from {N} rows: " in text
    assert " of them are about 'my town' and its 300 values; " in text
    assert text.endswith("leave it out (--ignore 'my town'), pool its values (--group-levels) or learn --structure nb")


def test_naive_bayes_is_not_told_to_be_naive_bayes(rng: np.random.Generator, good: dict[str, Column]) -> None:
    town = names(np.arange(N) % 400, 400)
    texts = told(table(town=town, **good), structure="nb", param="map", group_levels="off")
    (text,) = (text for text in texts if "parameters" in text)
    assert text.endswith(
        "'town' and its 400 values; leave it out (--ignore 'town') or pool its values (--group-levels)"
    )
    assert "--structure nb" not in text


def test_many_parameters_of_few_values_are_a_doubt_where_nothing_holds_them_down(rng: np.random.Generator) -> None:
    y = rng.integers(0, 2, N)
    columns = {f"a{i}": names(np.where(rng.random(N) < 0.3, y, rng.integers(0, 6, N)), 6) for i in range(8)}
    deep = {"structure": "kdb", "k": 4}
    (text,) = told(table(**columns, label=names(y, 2)), param="map", **deep)
    assert re.match(r"[0-9,]+ parameters from 600 rows, and no penalty: the largest table is over 'a.', ", text)
    assert text.endswith("; learn with --param discriminative or learn --structure nb")
    (text,) = told(table(**columns, label=names(y, 2)), penalty=0, max_iterations=2, **deep)
    assert text.endswith("; learn with --penalty cv or learn --structure nb")
    assert told(table(**columns, label=names(y, 2)), penalty=1, max_iterations=2, **deep) == []


def test_as_many_values_as_are_not_many(rng: np.random.Generator, good: dict[str, Column]) -> None:
    codes = names(np.arange(N) % MANY, MANY)
    assert told(table(codes=codes, **good), structure="kdb", k=2) == []


@pytest.mark.parametrize(("n_parameters", "is_told"), [(50 * N, False), (50 * N + 1, True)])
def test_fifty_times_the_rows_are_too_many_parameters_without_a_penalty(
    good: dict[str, Column], n_parameters: int, is_told: bool
) -> None:
    found = learn(table(**good), Recipe.of(param="map"))
    texts = list(warnings_about(found.model, replace(found.parameters, n_parameters=n_parameters)))
    assert [text.startswith(f"{n_parameters:,} parameters from 600 rows, and no penalty") for text in texts] == (
        [True] if is_told else []
    )


@pytest.mark.parametrize(("n_values", "is_told"), [(20, False), (21, True)])
def test_more_than_twenty_values_are_many(good: dict[str, Column], n_values: int, is_told: bool) -> None:
    codes = names(np.arange(N) % n_values, n_values)
    found = learn(table(codes=codes, **good), Recipe.of(param="map", structure="nb", group_levels="off"))
    texts = list(warnings_about(found.model, replace(found.parameters, n_parameters=N + 1)))
    assert ["'codes' and its 21 values" in text for text in texts] == ([True] if is_told else [])


def test_an_ensemble_is_judged_by_held_out_rows_alone(rng: np.random.Generator, good: dict[str, Column]) -> None:
    town = names(rng.permutation(np.arange(N) % 300), 300)
    found = learn(table(town=town, **good), Recipe.of(param="map", group_levels="off"))
    assert [text for text in warnings_about(found.model, found.parameters) if "parameters from" in text]
    ensemble = replace(found.model, predictor=Ensemble((Component(1.0, found.model.tables, "tree"),)))
    assert list(warnings_about(ensemble, found.parameters)) == []
    (text,) = warnings_about(ensemble, replace(found.parameters, held_out=HeldOutLoss(0.7, 0.69)))
    assert text.startswith("on rows held out the model is no better than the class frequencies alone (log-loss 0.7 ")
    assert "--structure auto" not in text


def test_cross_validation_warns_once(rng: np.random.Generator) -> None:
    heard: list[Event] = []
    noise = table(x=NumericColumn(rng.normal(size=N)), label=names(rng.integers(0, 2, N), 2))
    folds = list(cross_validate(noise, Recipe(), Protocol(4, 2), run=Run(watch=heard.append)))
    assert len(folds) == 8
    (note,) = (event for event in heard if isinstance(event, Note))
    assert note.warning
    assert note.text.startswith("in the first fold, the model does not use the only attribute: ")
