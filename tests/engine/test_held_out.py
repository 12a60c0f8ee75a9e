"""Tests of the held-out log-loss that `fit` reports: that of models learned anew without these rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bncli.engine.learn as learning
from bncli.engine.calibration import fit_calibration
from bncli.engine.counting.counts import Counts
from bncli.engine.data.columns import CategoricalColumn, Columns, NumericColumn
from bncli.engine.data.schema import ReadingRules
from bncli.engine.data.splits import SplitBy, stratified_folds, stratified_sample
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.learn import FittedModel, SuppliedParts, learn, learn_parameters
from bncli.engine.parameters import penalty_choice
from bncli.engine.prediction.out_of_fold import predict
from bncli.engine.prediction.scoring import log_probabilities_of
from bncli.engine.structure_learners import interactions
from bncli.engine.training_data import encode_needed, learn_cuts
from bncli.files.artifacts.model import dump_model, read_model
from bncli.files.artifacts.monitors import monitored_model
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps.encode import encode
from bncli.steps.fit import fit
from bncli.watch import Run

MEASURED = Run(hold_out=True)


@pytest.fixture
def few_rows_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let 320 rows choose a penalty, as if tables of more were large."""
    monkeypatch.setattr(penalty_choice, "ALL_ROWS", 320)
    monkeypatch.setattr(penalty_choice, "MAX_ROWS", 320)


def table(n: int = 600, seed: int = 0, weighted: bool = False) -> Columns:
    """Numbers, names that follow a number, and many random names, of which the class decides which are pooled."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    size = rng.normal(size=n) + y
    grade = np.clip(np.round(size + rng.normal(size=n)), -2, 2) + 2
    return Columns(
        n,
        {
            "size": NumericColumn(size),
            "grade": CategoricalColumn(grade.astype(np.int8), ("a", "b", "c", "d", "e")),
            "town": CategoricalColumn(rng.integers(0, 60, n).astype(np.int8), tuple(f"t{i:02}" for i in range(60))),
        },
        "class",
        CategoricalColumn(y.astype(np.int8), ("no", "yes")),
        rng.uniform(0.5, 2.0, n) if weighted else None,
    )


def log_p_without(columns: Columns, others: Index, rows: Index, recipe: Recipe) -> Array:
    """Return ln P(true label) of some rows by a model learned from others as any model is learned."""
    log_p = predict(learn(columns.take(others), recipe).model, columns.take(rows))
    assert columns.label is not None
    return log_p[columns.label.codes[rows], np.arange(len(rows))]


def with_chosen_settings(learned: FittedModel, **words: Any) -> Recipe:
    penalty = learned.model.penalty_cv
    assert penalty is not None
    return Recipe.of(**words, penalty=penalty.penalty)


def of_folds(columns: Columns, recipe: Recipe) -> float:
    assert columns.label is not None
    weights = np.ones(columns.n_rows) if columns.weights is None else columns.weights
    fold_of, loss = stratified_folds(columns.label.codes, 5, 0), 0.0
    for fold in range(5):
        others, rows = np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)
        loss -= float(weights[rows] @ log_p_without(columns, others, rows, recipe))
    return loss / float(weights.sum())


@pytest.mark.usefixtures("few_rows_choose")
@pytest.mark.parametrize(
    ("words", "weighted"),
    [
        ({"structure": "tan"}, False),
        ({"structure": "kdb", "k": 2, "param": "discriminative"}, True),
        ({"structure": "nb", "group_levels": "auto"}, True),
        pytest.param({"structure": "hill-climb", "param": "discriminative"}, False, marks=pytest.mark.slow),
    ],
)
def test_every_fold_learns_cuts_levels_structure_and_parameters_again(words: dict[str, Any], weighted: bool) -> None:
    columns = table(weighted=weighted)
    learned = learn(columns, Recipe.of(**words), run=MEASURED)
    held_out = learned.parameters.held_out
    assert held_out is not None
    assert held_out == learned.model.held_out
    assert held_out.log_loss == pytest.approx(of_folds(columns, with_chosen_settings(learned, **words)), rel=1e-3)


@pytest.mark.parametrize(
    ("words", "weighted", "n_fits"),
    [({"structure": "tan"}, True, 1), ({"structure": "interactions"}, False, 1), ({"param": "map"}, True, 6)],
)
def test_a_threshold_is_chosen_by_the_rows_that_are_held_out_anyway(
    words: dict[str, Any], weighted: bool, n_fits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kept probabilities of the true labels have the log-loss that is reported; nothing is learned twice."""
    columns, fits = table(weighted=weighted), list[int]()
    learn_once = learning._learn_calibrated
    monkeypatch.setattr(learning, "_learn_calibrated", lambda *arguments: fits.append(1) or learn_once(*arguments))
    learned = learn(columns, Recipe.of(**{"structure": "nb", **words}, threshold="best:f1"))
    assert columns.label is not None
    assert len(fits) == n_fits
    assert learned.model.rule is not None
    scores = learned.model.rule.held_out
    assert scores is not None
    assert [len(of_label) for of_label in scores.probabilities] == np.bincount(columns.label.codes).tolist()
    if learned.parameters.held_out is not None:
        log_p, weights = np.log(np.concatenate(scores.probabilities)), np.ones(columns.n_rows)
        if scores.weights is not None:
            weights = np.concatenate(scores.weights)
        expected = learned.parameters.held_out.log_loss
        assert -float(weights @ log_p) / weights.sum() == pytest.approx(expected, rel=1e-3)


@pytest.mark.slow
@pytest.mark.usefixtures("few_rows_choose")
def test_the_arcs_that_were_chosen_are_kept_in_every_fold() -> None:
    """On these rows no arc is worth keeping, so the figure is that of naive Bayes."""
    columns = table()
    learned = learn(columns, Recipe.of(), run=MEASURED)
    assert learned.model.structure_learned == "naive Bayes, chosen from tan on held-out rows"
    assert learned.parameters.held_out is not None
    expected = of_folds(columns, with_chosen_settings(learned, structure="nb"))
    assert learned.parameters.held_out.log_loss == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("n_folds", [5, 1])
def test_a_slow_search_is_repeated_too(monkeypatch: pytest.MonkeyPatch, n_folds: int) -> None:
    """The folds that choose the penalty share the structure of all rows; of many rows one fold is measured."""
    columns = table(300)
    if n_folds == 1:
        monkeypatch.setattr(penalty_choice, "ALL_ROWS", 299)
    words = {"structure": "gbn", "param": "discriminative"}
    learned = learn(columns, Recipe.of(**words), run=MEASURED)
    recipe = with_chosen_settings(learned, **words)
    assert columns.label is not None
    fold_of, log_p = stratified_folds(columns.label.codes, 5, 0), np.zeros(300)
    for fold in range(n_folds):
        rows = np.flatnonzero(fold_of == fold)
        log_p[rows] = log_p_without(columns, np.flatnonzero(fold_of != fold), rows, recipe)
    assert learned.parameters.held_out is not None
    expected = -log_p[fold_of < n_folds].mean()
    assert learned.parameters.held_out.log_loss == pytest.approx(expected, rel=1e-3)


@pytest.mark.usefixtures("few_rows_choose")
def test_of_many_rows_a_tenth_of_a_sample_is_held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(penalty_choice, "WHOLE_ROWS", 400)
    monkeypatch.setattr(penalty_choice, "MEASURED_ROWS", 500)
    columns = table(weighted=True)
    assert columns.label is not None
    learned = learn(columns, Recipe.of(structure="tan"), run=MEASURED)
    drawn = stratified_sample(columns.label.codes, 500, 0)
    is_held_out = stratified_folds(columns.label.codes[drawn], 10, 0) == 0
    others, rows = drawn[~is_held_out], drawn[is_held_out]
    assert columns.weights is not None
    assert len(rows) == 50
    n = np.bincount(columns.label.codes[others], columns.weights[others]) + 1
    base = -np.average(np.log(n / n.sum())[columns.label.codes[rows]], weights=columns.weights[rows])
    held_out = learned.parameters.held_out
    assert held_out is not None
    assert held_out.base_log_loss == pytest.approx(base, rel=1e-12)
    recipe = with_chosen_settings(learned, structure="tan")
    of_all_rows = SuppliedParts(learn_cuts(columns, recipe))
    log_p = predict(learn(columns.take(others), recipe, supplied=of_all_rows).model, columns.take(rows))
    log_p_true = log_p[columns.label.codes[rows], np.arange(50)]
    assert held_out.log_loss == pytest.approx(-np.average(log_p_true, weights=columns.weights[rows]), rel=1e-3)


def test_of_many_rows_interactions_are_searched_once_without_those_held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The penalty, the measured model and the final one share the structure, and the fits start from each other."""
    monkeypatch.setattr(interactions, "SEARCHED_ROWS", 2000)
    rng = np.random.default_rng(1)
    x, c = rng.normal(size=(3, 4000)), rng.integers(0, 4, 4000)
    y = rng.random(4000) < 1 / (1 + np.exp(-np.sin(2 * x[0]) - 2 * np.sign(x[0] * x[1]) - 0.5 * (c == 2)))
    attributes = {f"x{i}": NumericColumn(own) for i, own in enumerate(x)}
    attributes |= {"c": CategoricalColumn(c.astype(np.int8), ("a", "b", "c", "d"))}
    label, weights = CategoricalColumn(y.astype(np.int8), ("no", "yes")), rng.uniform(0.5, 2.0, 4000)
    columns = Columns(4000, attributes, "class", label, weights)
    searches: list[int] = []
    search = learning.learn_structure

    def counted(counts: Counts, *args: Any) -> Any:
        searches.append(counts.data.n_rows)
        return search(counts, *args)

    monkeypatch.setattr(learning, "learn_structure", counted)
    monkeypatch.setattr(penalty_choice, "ALL_ROWS", 1000)
    recipe = Recipe.of(structure="interactions")
    learned = learn(columns, recipe, run=Run(hold_out=True, keep_predictions=True))
    assert searches == [4000]
    searched = interactions.searched_rows(label.codes)
    split = penalty_choice.split_outside(searched, label.codes, 0)
    assert split is not None
    others, rows = split
    assert not np.isin(rows, searched).any()
    held_out, predictions = learned.parameters.held_out, learned.parameters.held_out_predictions
    assert held_out is not None
    assert held_out.rows == len(rows) == 800
    assert held_out == learned.model.held_out
    # the same structure and penalty, fitted to the other rows from zero
    structure, chosen = learned.model.structure, learned.model.penalty_cv
    assert any(len(region) == 2 for region in structure.regions)  # type: ignore[union-attr]
    data = encode_needed(columns, recipe, None, ReadingRules(), Run())
    apart = learn_parameters(Counts(data.take(others)), structure, recipe, chosen=chosen)
    log_p = log_probabilities_of(apart.predictor, data.take(rows))
    loss = -np.average(log_p[label.codes[rows], np.arange(800)], weights=weights[rows])
    assert held_out.log_loss == pytest.approx(loss, rel=1e-3)
    assert predictions is not None
    assert np.allclose(predictions.log_probabilities, log_p, atol=0.05)
    # the final parameters are those of a fit from zero
    cold = learn_parameters(Counts(data), structure, recipe, chosen=chosen)
    assert learned.parameters.cll == pytest.approx(cold.cll, rel=1e-4)
    assert learned.parameters.cll_start > cold.cll_start
    # without a measurement, the loss is that of the rows that chose the penalty
    unmeasured = learn(columns, recipe, run=Run())
    assert unmeasured.model.held_out is None
    assert unmeasured.parameters.held_out is not None
    assert unmeasured.parameters.held_out[1:] == held_out[1:]


def test_names_that_say_nothing_do_not_flatter() -> None:
    """Levels pooled by the class of all rows would make noise look like knowledge."""
    rng = np.random.default_rng(3)
    towns = CategoricalColumn(rng.integers(0, 90, 400).astype(np.int8), tuple(f"t{i:02}" for i in range(90)))
    y = CategoricalColumn(rng.integers(0, 2, 400).astype(np.int8), ("no", "yes"))
    columns = Columns(400, {"town": towns, "zip": towns}, "class", y)
    for structure in ("nb", "interactions"):
        held_out = learn(columns, Recipe.of(structure=structure), run=MEASURED).parameters.held_out
        assert held_out is not None
        assert held_out.log_loss > 0.98 * held_out.base_log_loss


def test_calibrated_probabilities_are_measured_on_rows_that_their_map_has_not_seen() -> None:
    columns = table(300, weighted=True)
    assert columns.label is not None
    recipe = Recipe.of(structure="nb", param="map", calibrate="per-class")
    learned = learn(columns, recipe, run=MEASURED)
    labels, weights = columns.label.codes, columns.weights
    assert weights is not None
    folds, log_p = stratified_folds(labels, 5, (0, 5)), np.empty((2, 300))
    for fold in range(5):
        model = learn(columns.take(np.flatnonzero(folds != fold)), Recipe.of(structure="nb", param="map")).model
        log_p[:, folds == fold] = predict(model, columns.take(np.flatnonzero(folds == fold)))
    loss = 0.0
    for fold in range(5):
        seen = folds != fold
        mapped = fit_calibration("per-class", log_p[:, seen], labels[seen], weights[seen]).map.apply(log_p[:, ~seen])
        loss -= float(weights[~seen] @ mapped[labels[~seen], np.arange(mapped.shape[1])])
    assert learned.parameters.held_out is not None
    assert learned.parameters.held_out.log_loss == pytest.approx(loss / weights.sum(), rel=1e-9)


def test_the_folds_of_a_cross_validation_do_without() -> None:
    assert learn(table(300), Recipe.of(structure="gbn", param="discriminative")).model.held_out is None


@pytest.mark.slow
@pytest.mark.usefixtures("few_rows_choose")
@pytest.mark.parametrize("words", [{}, {"structure": "auto", "effort": 1}])
def test_table_and_codes_give_the_same_figure_and_the_model_keeps_it(tmp_path: Path, words: dict[str, Any]) -> None:
    columns, data = table(), tmp_path / "t.csv"
    lines = ["size,grade,class"]
    for t in range(columns.n_rows):
        size, grade = columns.as_read["size"], columns.as_read["grade"]
        assert isinstance(size, NumericColumn)
        assert isinstance(grade, CategoricalColumn)
        assert columns.label is not None
        lines.append(f"{size.values[t]},{grade.levels[grade.codes[t]]},{columns.label.levels[columns.label.codes[t]]}")
    data.write_text("\n".join(lines) + "\n")
    path, recipe = tmp_path / "m.bnc", Recipe.of(**words)
    report = fit(Source((str(data),)), recipe, output=str(path))
    model = read_model(str(path))
    assert model.held_out is not None
    assert report.held_out is not None
    assert model.held_out[:2] == report.held_out[:2]
    assert report.held_out[2:] == (600, 600)
    assert monitored_model(model).held_out_log_loss == report.held_out.log_loss
    if not words:
        encode(Source((str(data),)), recipe, output=str(tmp_path / "t.codes"))
        fit(Source((str(tmp_path / "t.codes"),)), recipe, output=str(tmp_path / "c.bnc"))
        assert (tmp_path / "c.bnc").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("words", "is_grouped"),
    [
        ({"structure": "tan"}, True),
        ({"structure": "interactions"}, False),
        ({"structure": "card"}, False),
        pytest.param({"structure": "auto", "effort": 1}, True, marks=pytest.mark.slow),
        ({"structure": "nb", "param": "map", "calibrate": "per-class"}, True),
        ({"structure": "nb", "class_weights": "balanced"}, False),
        pytest.param({}, False, marks=pytest.mark.slow),
    ],
)
def test_kept_predictions_have_the_loss_that_is_reported(words: dict[str, Any], is_grouped: bool) -> None:
    """They cost no bit of the model, and cover every row that is held out once; units are known."""
    columns = table(150, weighted=not is_grouped)
    if is_grouped:
        columns = replace(columns, split_by=SplitBy(np.arange(150) // 3))
    recipe = Recipe.of(**words)
    plain, kept = (learn(columns, recipe, run=MEASURED._replace(keep_predictions=keep)) for keep in (False, True))
    assert plain.parameters.held_out_predictions is None
    held_out, predictions = kept.parameters.held_out, kept.parameters.held_out_predictions
    assert held_out == plain.parameters.held_out
    assert dump_model(kept.model) == dump_model(plain.model)
    assert held_out is not None
    assert predictions is not None
    log_p, codes, weights, units = predictions
    assert log_p.shape == (2, held_out.rows)
    np.testing.assert_allclose(np.exp(log_p).sum(axis=0), 1, rtol=1e-9)
    assert columns.label is not None
    assert np.bincount(codes).tolist() == np.bincount(columns.label.codes).tolist()
    assert units is None if not is_grouped else len(np.unique(units)) == held_out.units == 50
    row_weights = np.ones(150) if weights is None else weights
    assert row_weights.sum() == pytest.approx(150 if columns.weights is None else columns.weights.sum())
    if "class_weights" in words:  # the loss is of rows with the weights of their class
        row_weights = row_weights * (150 / np.bincount(codes) / 2)[codes]
    losses = -log_p[codes, np.arange(150)]
    # models of the folds may be fitted to another tolerance than the penalty that was chosen with them
    assert np.average(losses, weights=row_weights) == pytest.approx(held_out.log_loss, rel=2e-3)


def test_kept_predictions_by_time_are_those_of_the_latest_rows() -> None:
    times = np.random.default_rng(2).permutation(300).astype(float)
    columns = replace(table(300), split_by=SplitBy(times=times))
    fitted = learn(columns, Recipe.of(structure="nb"), run=MEASURED._replace(keep_predictions=True))
    predictions = fitted.parameters.held_out_predictions
    assert predictions is not None
    assert columns.label is not None
    latest = np.flatnonzero(times >= 240)
    np.testing.assert_array_equal(predictions.codes, columns.label.codes[latest])
    recipe = with_chosen_settings(fitted, structure="nb")
    own = log_p_without(columns, np.flatnonzero(times < 240), latest, recipe)
    np.testing.assert_allclose(predictions.log_probabilities[predictions.codes, np.arange(60)], own, atol=2e-3)
