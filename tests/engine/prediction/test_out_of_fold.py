"""fit --calibrate: the map of predictions that no model made of its own rows, refused where it cannot be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bncli.cli.main import run
from bncli.engine.calibration import METHODS, fit_calibration
from bncli.engine.data.splits import stratified_folds
from bncli.engine.evaluation.cross_validation import predict
from bncli.engine.learn import learn
from bncli.files.artifacts.model import read_model
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from bncli.recipe import Recipe

TABLE = str(Path(__file__).parents[3] / "sample_data" / "tumours.csv")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("words", [{}, {"class_weights": "malignant=3"}])
def test_the_map_is_that_of_five_folds(method: str, words: dict[str, str]) -> None:
    columns = read_columns(Source((TABLE,)))
    assert columns.label is not None
    recipe = Recipe.of(structure="nb", param="map", calibrate=method, seed=3, **words)
    plain = Recipe.of(structure="nb", param="map", **words)
    labels = columns.label.codes
    folds = stratified_folds(labels, 5, (3, 5))
    log_p = np.empty((2, columns.n_rows))
    weights = np.where(labels == 1, 3.0, 1.0) if words else None
    for fold in range(5):
        model = learn(columns.take(np.flatnonzero(folds != fold)), plain).model
        log_p[:, folds == fold] = predict(model, columns.take(np.flatnonzero(folds == fold)))
    found = learn(columns, recipe).model
    assert found.calibration == fit_calibration(method, log_p, labels, weights)
    assert found.tables.bias.tolist() == learn(columns, plain).model.tables.bias.tolist()


def test_the_rows_of_prediction_sets_are_not_learnt_from(tmp_path: Path) -> None:
    """The probabilities that are stored are those of the first of five folds, by a model of the others."""
    path = str(tmp_path / "m.bnc")
    assert run(["fit", TABLE, "--structure", "nb", "--param", "map", "--sets", "0.1", "-q", "-o", path]) == 0
    columns = read_columns(Source((TABLE,)))
    assert columns.label is not None
    held_out = stratified_folds(columns.label.codes, 5, (0, 0)) == 0
    model = learn(columns.take(np.flatnonzero(~held_out)), Recipe.of(structure="nb", param="map")).model
    rows = columns.take(np.flatnonzero(held_out))
    assert rows.label is not None
    log_p = predict(model, rows)
    rule = read_model(path).rule
    assert rule is not None
    assert rule.held_out is not None
    for label, stored in enumerate(rule.held_out.probabilities):
        assert sorted(stored) == pytest.approx(np.sort(np.exp(log_p[label, rows.label.codes == label])), abs=1e-9)


def test_the_model_is_the_same_for_any_number_of_threads_and_from_codes(tmp_path: Path) -> None:
    words = ["--structure", "nb", "--param", "map", "--calibrate", "isotonic", "-q"]
    assert run(["fit", TABLE, *words, "-o", str(tmp_path / "a.bnc"), "--threads", "1"]) == 0
    assert run(["fit", TABLE, *words, "-o", str(tmp_path / "b.bnc"), "--threads", "3"]) == 0
    assert (tmp_path / "a.bnc").read_bytes() == (tmp_path / "b.bnc").read_bytes()
    assert run(["discretize", TABLE, "--cuts-out", str(tmp_path / "c.json"), "-q"]) == 0
    cut = ["--cuts", str(tmp_path / "c.json")]
    assert run(["encode", TABLE, *cut, "-o", str(tmp_path / "t.codes"), "-q"]) == 0
    assert run(["fit", TABLE, *cut, *words, "-o", str(tmp_path / "d.bnc")]) == 0
    assert run(["fit", str(tmp_path / "t.codes"), *words, "-o", str(tmp_path / "e.bnc")]) == 0
    one, other = (read_model(str(tmp_path / f"{name}.bnc")) for name in "de")
    assert one.calibration == other.calibration
    assert (tmp_path / "d.bnc").read_bytes() == (tmp_path / "e.bnc").read_bytes()


def test_calibration_in_learning_lowers_the_log_loss(capsys: pytest.CaptureFixture[str]) -> None:
    losses = []
    for more in ([], ["--calibrate", "temperature"]):
        assert run(["evaluate", TABLE, "--structure", "nb", "--param", "map", "-q", *more]) == 0
        told = capsys.readouterr().out
        losses.append(float(next(line.split()[1] for line in told.splitlines() if line.startswith(" log-loss"))))
    assert losses[1] < 0.8 * losses[0]


def test_too_few_rows_for_calibration_are_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = Path(TABLE).read_text().splitlines()
    few = [lines[0], *[line for line in lines if "malignant" in line][:3], *[x for x in lines if "benign" in x][:30]]
    (tmp_path / "few.csv").write_text("\n".join([*few, ""]))
    assert run(["fit", str(tmp_path / "few.csv"), "--calibrate", "isotonic", "--param", "map"]) == 1
    assert "isotonic calibration fits a map for each label, but only 3 rows" in capsys.readouterr().err
    (tmp_path / "four.csv").write_text("\n".join([*few[:3], *few[-2:], ""]))
    assert run(["fit", str(tmp_path / "four.csv"), "--calibrate", "temperature", "--param", "map"]) == 1
    assert "--calibrate holds out a fifth of the rows, but there are only 4" in capsys.readouterr().err
    assert run(["fit", "--from-counts", "x.counts", "--param", "map", "--calibrate", "temperature"]) == 2
    assert "--calibrate has no effect with --from-counts FILE" in capsys.readouterr().err
