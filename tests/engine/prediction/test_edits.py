"""Effects as linear functions of tables; what edits change, the optimum of a refit, and models with swapped labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given

import bncli as package
from bncli.engine.data.schema import Schema
from bncli.engine.kernels.arrays import Array
from bncli.engine.learn import learn
from bncli.engine.model import DecisionRule, HeldOutScores, Model, PredictionSets, Tables, Threshold
from bncli.engine.prediction.decision_rules import Decider
from bncli.engine.prediction.edits import (
    EditableEffect,
    change_by_set,
    change_to_monotone,
    editable_effect,
    parameter_arrays,
    undo_edit,
    with_arrays,
    with_positive_label,
)
from bncli.engine.prediction.effects import effects_of
from bncli.engine.prediction.verification import largest_edit_difference, probe_rows
from bncli.errors import UsageError
from bncli.files.artifacts.model import dump_model, read_model, write_model
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from bncli.recipe import Recipe
from bncli.steps.edit import EditChoice, edit_model
from tests.files.exports.test_programs_calibrated import calibrated_models
from tests.strategies import models

SAMPLE = Path(__file__).parents[3] / "sample_data"
RECIPES: list[dict[str, Any]] = [
    {"structure": "nb", "param": "map"},
    {"structure": "kdb", "k": 2, "param": "weighted", "penalty": 1.0},
    {"structure": "interactions", "penalty": 3.0},
]


def fitted(folder: Path, table: str = "tumours.csv", **options: Any) -> Model:
    path = folder / "x.bnc"
    package.fit(SAMPLE / table, **options).save(path)
    return read_model(str(path))


def names_of(schema: Schema, attributes: tuple[int, ...]) -> list[str]:
    return [schema.attributes[a].name for a in attributes]


def purified(effect: EditableEffect, values: Array) -> Array:
    """Subtract the mean along each axis."""
    for axis, frequencies in enumerate(effect.frequencies):
        values = values - np.expand_dims(np.tensordot(frequencies, values, axes=(0, axis)), axis)
    return values


@pytest.mark.parametrize("options", RECIPES, ids=lambda options: options["structure"])
@pytest.mark.parametrize("table", ["tumours.csv", "iris.csv"])
def test_an_effect_is_that_of_the_purified_score(tmp_path: Path, options: dict[str, Any], table: str) -> None:
    model = fitted(tmp_path, table, **options)
    rng = np.random.default_rng(0)
    for known in effects_of(model).effects:
        effect = editable_effect(model, names_of(model.schema, known.tensor.attributes))
        assert effect.read(parameter_arrays(model.predictor)) == pytest.approx(known.tensor.shown, abs=1e-10)
        drawn = rng.normal(size=(*effect.shape, 3))
        # what is embedded is read back without its means
        table_of_host = effect.embed(drawn)
        assert effect.extract(effect.host, table_of_host) == pytest.approx(purified(effect, drawn), abs=1e-10)
        # each map and its transpose
        other = rng.normal(size=table_of_host.shape)
        assert (table_of_host * other).sum() == pytest.approx((drawn * effect.sum_host(other)).sum())
        for part in effect.parts:
            cells = rng.normal(size=(part.family.n_cells, 3))
            left = (effect.extract(part, cells) * drawn).sum()
            assert left == pytest.approx((cells * effect.spread(part, drawn)).sum())


def test_every_value_set_holds_up_to_a_constant(tmp_path: Path) -> None:
    model = fitted(tmp_path, structure="nb", param="map")
    effect = editable_effect(model, ["size"])
    arrays = parameter_arrays(model.predictor)
    change, targets = change_by_set(effect, effect.read(arrays), ["large=1", "medium=2", "small=3"], 1)
    assert targets == {"large": 1, "medium": 2, "small": 3}
    arrays[effect.host.array] = arrays[effect.host.array] + effect.embed(effect.scores(change))
    assert np.diff(effect.read(arrays)[:, 1]) == pytest.approx([1, 1])


def test_the_nearest_monotone_curve_is_that_of_scikit_learn(tmp_path: Path) -> None:
    from sklearn.isotonic import IsotonicRegression

    model = fitted(tmp_path, structure="nb", param="map", discretize="equal-frequency")
    effect = editable_effect(model, ["smoothness"])
    now = effect.read(parameter_arrays(model.predictor))
    for rising in (True, False):
        fit = IsotonicRegression(increasing=rising).fit_transform(
            np.arange(len(now)), now[:, 1], sample_weight=effect.frequencies[0]
        )
        changed = now + change_to_monotone(effect, now, 1, rising=rising)
        assert changed[:, 1] == pytest.approx(fit)
        assert purified(effect, changed) == pytest.approx(changed)


def test_a_refit_is_the_optimum_around_the_fixed_effect(tmp_path: Path) -> None:
    """No step that keeps the effect improves the penalised likelihood, which is computed row by row here."""
    model = fitted(tmp_path, structure="tan", param="discriminative", penalty=2.0)
    choice = EditChoice(("radius",), flatten=True, why="x")
    source = Source((str(SAMPLE / "tumours.csv"),))
    edited = edit_model(model, choice, source)
    effect = editable_effect(edited, ["radius"])
    assert np.abs(effect.read(parameter_arrays(edited.predictor))).max() < 1e-10
    plain = edit_model(model, choice)
    assert isinstance(edited.predictor, Tables)
    assert isinstance(plain.predictor, Tables)
    labels = np.array([y == "malignant" for y in _column("diagnosis")]).astype(int)

    def cll(tables: Tables) -> float:
        path = tmp_path / "y.bnc"
        write_model(str(path), replace(edited, predictor=tables, self_test=None, edits=()))
        p = np.asarray(package.load(path).predict_proba(SAMPLE / "tumours.csv"))
        return float(np.log(p[np.arange(len(p)), labels]).sum())

    # the refit starts from the tables learned from these rows with the effect replaced, which are those of `plain`
    start, end = parameter_arrays(plain.predictor), parameter_arrays(edited.predictor)

    def objective(arrays: list[Any]) -> float:
        moved = sum(float(((a - b) ** 2).sum()) for a, b in zip(arrays, start, strict=True))
        tables = with_arrays(edited.predictor, arrays)
        assert isinstance(tables, Tables)
        return cll(tables) - 2.0 / 2 * moved

    best = objective(end)
    assert best > objective(start)
    rng = np.random.default_rng(1)
    for _ in range(5):
        step = _without_effect(effect, [rng.normal(size=array.shape) for array in end])
        for size in (0.05, -0.05):
            assert objective([a + size * d for a, d in zip(end, step, strict=True)]) < best


def _without_effect(effect: EditableEffect, step: list[Any]) -> list[Any]:
    total = sum(effect.extract(part, step[part.array]) for part in effect.parts)
    step[effect.host.array] = step[effect.host.array] - effect.embed(np.asarray(total))
    return step


def _column(name: str) -> list[str]:
    header, *rows = [line.split(",") for line in (SAMPLE / "tumours.csv").read_text().splitlines()]
    return [row[header.index(name)] for row in rows]


@pytest.mark.slow
def test_an_edit_adds_a_table_where_all_others_bin_the_values_in_their_own_way(tmp_path: Path) -> None:
    model = fitted(tmp_path, structure="interactions", penalty=3.0)
    before = len(parameter_arrays(model.predictor))
    binned = [
        a.name for i, a in enumerate(model.schema.attributes) if editable_effect(model, [a.name]).host.array == before
    ]
    assert binned, "the test needs such an attribute"
    effect = editable_effect(model, binned[:1])
    edited = edit_model(model, EditChoice((binned[0],), set=(f"{next(iter(effect.cells))}=0.7",), why="x"))
    assert edited.edits[0].added
    assert len(parameter_arrays(edited.predictor)) == before + 1
    known = next(e for e in effects_of(edited).effects if names_of(edited.schema, e.tensor.attributes) == binned[:1])
    assert known.tensor.shown[0, 1] == pytest.approx(0.7)
    again = read_back(tmp_path, edited)
    assert largest_edit_difference(again) < 1e-12
    assert dump_model(undo_edit(again)) == dump_model(model)
    source = Source((str(SAMPLE / "tumours.csv"),))
    refitted = edit_model(again, EditChoice(("size",), flatten=True, why="y"), source)
    # the earlier edit stays
    kept = editable_effect(refitted, binned[:1]).read(parameter_arrays(refitted.predictor))
    assert kept == pytest.approx(effect_values(edited, binned[0]), abs=1e-9)
    assert largest_edit_difference(refitted) < 1e-9


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("field", ["values", "before"])
def test_a_value_that_an_edit_recorded_wrongly_is_noticed(tmp_path: Path, number: int, field: str) -> None:
    model = fitted(tmp_path, structure="nb", param="map")
    for name in ("size", "texture"):
        model = edit_model(model, EditChoice((name,), flatten=True, why="x"))
    assert largest_edit_difference(model) < 1e-12
    edits = list(model.edits)
    recorded = [list(row) for row in getattr(edits[number], field)]
    recorded[0][0] += 0.25
    edits[number] = replace(edits[number], **{field: tuple(map(tuple, recorded))})
    assert largest_edit_difference(replace(model, edits=tuple(edits))) == pytest.approx(0.25)


def read_back(folder: Path, model: Model) -> Model:
    write_model(str(folder / "again.bnc"), model)
    return read_model(str(folder / "again.bnc"))


def effect_values(model: Model, name: str) -> Any:
    return editable_effect(model, [name]).read(parameter_arrays(model.predictor))


def test_an_edit_that_changes_nothing_is_refused(tmp_path: Path) -> None:
    model = edit_model(fitted(tmp_path, structure="nb", param="map"), EditChoice(("size",), flatten=True, why="x"))
    with pytest.raises(UsageError, match="nothing would change"):
        edit_model(model, EditChoice(("radius",), monotone="up", why="x"))


TABLE = str(Path(__file__).parents[3] / "sample_data" / "tumours.csv")


@given(calibrated_models())
def test_each_label_keeps_its_probability(model: Model) -> None:
    assume(len(model.schema.labels) == 2)
    first, second = model.schema.labels
    other = with_positive_label(model, first)
    assert other.schema.labels == (second, first)
    assert other.schema.label_frequencies == model.schema.label_frequencies[::-1]
    before, after = (probe_rows(one, 50, np.random.default_rng(0)) for one in (model, other))
    assert before.rows() == after.rows()
    assert np.allclose(after.probabilities, before.probabilities[::-1], rtol=1e-9, atol=1e-12)
    assert with_positive_label(model, second) is model
    assert with_positive_label(model, None) is model
    again = probe_rows(with_positive_label(other, second), 50, np.random.default_rng(0))
    assert np.allclose(again.probabilities, before.probabilities, rtol=1e-9, atol=1e-12)


def test_directions_stay_those_of_their_label() -> None:
    """With another event the log-odds of the former one still rise, so it has to be named."""
    columns = read_columns(Source((TABLE,)))
    model = learn(columns, Recipe.of(structure="nb", increasing=("radius",), penalty=1.0)).model
    assert (model.schema.labels, model.schema.towards) == (("benign", "malignant"), None)
    other = with_positive_label(model, "benign")
    assert (other.schema.labels, other.schema.towards) == (("malignant", "benign"), "malignant")
    assert with_positive_label(other, "malignant").schema.towards is None


def test_rules_decide_the_same() -> None:
    p = np.linspace(0.013, 0.987, 200)
    log_p = np.log([1 - p, p])
    rules = (
        DecisionRule(costs=((0.0, 5.0), (1.0, 0.0))),
        DecisionRule(threshold=Threshold(0.3, "f1")),
        DecisionRule(abstain_below=0.8),
        DecisionRule(
            sets=PredictionSets(0.1),
            held_out=HeldOutScores(((0.2, 0.9), (0.4, 0.5, 0.7)), ((1.0, 2.0), (1.0, 1.0, 3.0)), True),
        ),
    )

    @given(models(max_labels=2))
    def check(model: Model) -> None:
        labels = model.schema.labels
        for rule in rules:
            found = with_positive_label(Model(**{**vars(model), "rule": rule}), labels[0]).rule
            assert found is not None
            if rule.decides:
                before = np.array([*labels, None], object)[Decider.of(rule, labels).decide(log_p).codes]
                after = np.array([*labels[::-1], None], object)[
                    Decider.of(found, labels[::-1]).decide(log_p[::-1]).codes
                ]
                assert before.tolist() == after.tolist()
            if rule.held_out is not None:
                assert found.held_out is not None
                assert found.held_out.probabilities == rule.held_out.probabilities[::-1]
                assert found.held_out.weights == rule.held_out.weights[::-1]  # type: ignore[index]

    check()


@given(models(max_labels=4))
def test_other_numbers_of_labels_are_refused(model: Model) -> None:
    with pytest.raises(UsageError, match="has no such label"):
        with_positive_label(model, "no label")
    if len(model.schema.labels) != 2:
        with pytest.raises(UsageError, match="needs a class with two labels"):
            with_positive_label(model, model.schema.labels[0])
