"""Evaluation through files: what is reported, and what is written."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import pytest

from bncli.engine.evaluation.validate import Protocol
from bncli.engine.learn import learn
from bncli.engine.training.penalty_cv import GRID
from bncli.errors import BncliError, ModelError, UsageError
from bncli.files.model import write_model
from bncli.files.table import Source, read_columns
from bncli.recipe import Recipe
from bncli.steps.evaluate import METRICS, Outputs, evaluate, evaluate_model, evaluate_on
from bncli.steps.evaluating.report import EvaluateReport
from bncli.steps.supplied_files import read_supplied
from bncli.watch import Event, Run, Stage

RECIPE = Recipe.of(structure="nb", param="map")


def write_table(path: Path, n: int, seed: int, words: str = "abc") -> Source:
    rng = np.random.default_rng(seed)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["number", "word", "class"])
        for _ in range(n):
            label = int(rng.integers(0, 3))
            word = "" if rng.random() < 0.1 else words[int(rng.integers(0, len(words)))]
            writer.writerow([round(float(rng.normal()) + 2 * label, 3), word, ["x", "y", "z"][label]])
    return Source((str(path),))


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return write_table(tmp_path / "data.csv", 90, 0)


def read_predictions(path: Path) -> tuple[list[str], list[str], np.ndarray]:
    header, *rows = list(csv.reader(path.read_text().splitlines()))
    return header, [row[0] for row in rows], np.array([[float(p) for p in row[1:]] for row in rows])


def check_json(report: EvaluateReport) -> dict[str, object]:
    """What scripts rely on: these keys, plain values, nothing that is not a number."""
    values = report.as_json()
    keys = {
        "rows",
        "protocol",
        *METRICS,
        "base",
        "skill_score",
        "seconds",
        "labels",
        "confusion",
        "per_class",
        "curves",
    }
    assert keys <= set(values)
    assert set(values["seconds"]) == {"fit", "score"}
    json.dumps(values, allow_nan=False)
    return values


def test_cross_validation(source: Source, tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    report = evaluate(source, RECIPE, Protocol(3, 2, 4), outputs=Outputs(str(output)))
    values = check_json(report)
    assert report.protocol == "2 x 3-fold cross-validation, stratified, seed 4"
    assert report.rows == 90
    assert report.labels == ("x", "y", "z")
    assert np.sum(report.confusion) == 180
    assert report.folds is not None
    assert report.std is not None
    for name in METRICS:
        figures = [fold.metrics[name] for fold in report.folds]
        known = [figure for figure in figures if figure is not None]
        assert report.metrics[name] == pytest.approx(fmean(known))
        assert report.std[name] == pytest.approx(stdev(known))
    assert [(f.repeat, f.fold, f.rows) for f in report.folds] == [(r, f, 30) for r in (0, 1) for f in (0, 1, 2)]
    assert set(METRICS) | {"repeat", "fold", "rows", "base", "penalty", "seconds"} == set(values["folds"][0])  # type: ignore[index]
    assert all(fold.seconds["fit"] > 0 and fold.seconds["score"] > 0 for fold in report.folds)

    header, predicted, probabilities = read_predictions(output)
    assert header == ["prediction", "p_x", "p_y", "p_z"]
    truth = [row[2] for row in csv.reader((tmp_path / "data.csv").read_text().splitlines())][1:]
    first = [fold.metrics["accuracy"] for fold in report.folds if fold.repeat == 0]
    right = [p == t for p, t in zip(predicted, truth, strict=True)]
    assert fmean(right) == pytest.approx(fmean(f for f in first if f is not None))
    assert np.allclose(probabilities.sum(axis=1), 1, rtol=0, atol=1e-12)


def test_the_same_seed_gives_the_same_report(source: Source) -> None:
    first, again = (evaluate(source, RECIPE, Protocol(3, 1, 1), run=Run(threads)) for threads in (1, 2))
    assert (first.metrics, first.std, first.confusion) == (again.metrics, again.std, again.confusion)
    assert evaluate(source, RECIPE, Protocol(3, 1, 2)).metrics != first.metrics


def test_train_and_test_equal_a_model_on_the_test_set(source: Source, tmp_path: Path) -> None:
    test = write_table(tmp_path / "test.csv", 40, 1, words="abd")
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    trained = evaluate_on(source, test, RECIPE, outputs=Outputs(str(one)))
    model_path = str(tmp_path / "m.bnc")
    write_model(model_path, learn(read_columns(source), RECIPE).model)
    tested = evaluate_model(model_path, test, outputs=Outputs(str(other)))
    assert trained.metrics == tested.metrics
    assert trained.confusion == tested.confusion
    assert one.read_bytes() == other.read_bytes()
    assert (trained.rows, tested.rows) == (40, 40)
    for report in (trained, tested):
        values = check_json(report)
        assert "folds" not in values
        assert "std" not in values
    assert trained.seconds["fit"] is not None
    assert tested.seconds["fit"] is None
    with pytest.raises(ModelError, match="'word'"):
        evaluate_model(model_path, test, unseen="error")


def test_a_test_label_that_the_model_does_not_know(source: Source, tmp_path: Path) -> None:
    path = tmp_path / "test.csv"
    path.write_text("number,word,class\n1,a,x\n2,b,who\n")
    with pytest.raises(ModelError, match="who"):
        evaluate_on(source, Source((str(path),)), RECIPE)


def test_cuts_and_structure_files_hold_in_every_fold(source: Source, tmp_path: Path) -> None:
    cuts, structure = tmp_path / "cuts.json", tmp_path / "structure.json"
    attributes = [{"name": "number", "type": "numeric", "cuts": [1.0]}]
    cuts.write_text(json.dumps({"format": "bncli-cuts", "version": 1, "class": "class", "attributes": attributes}))
    graph = {"format": "bncli-structure", "version": 1, "class": "class", "parents": {"number": ["class"]}}
    structure.write_text(json.dumps(graph))
    bound = evaluate(source, RECIPE, supplied=read_supplied(str(cuts), str(structure)))
    free = evaluate(source, RECIPE)
    assert bound.metrics["log_loss"] != free.metrics["log_loss"]
    assert bound.protocol == "5-fold cross-validation, stratified, seed 0"


def test_the_class_is_that_of_the_cuts_where_the_structure_does_not_tell(source: Source, tmp_path: Path) -> None:
    (tmp_path / "x.gv").write_text("digraph { class -> number }")
    attributes = [{"name": "number", "type": "numeric", "cuts": [1.0]}]
    cuts = {"format": "bncli-cuts", "version": 1, "class": "class", "attributes": attributes}
    (tmp_path / "cuts.json").write_text(json.dumps(cuts))
    files = str(tmp_path / "cuts.json"), str(tmp_path / "x.gv")
    assert evaluate(source, RECIPE, supplied=read_supplied(*files)).labels == evaluate(source, RECIPE).labels
    (tmp_path / "cuts.json").write_text(json.dumps(cuts | {"class": "klass"}))
    with pytest.raises(UsageError, match=r"no column 'klass', .*; .*cuts\.json names it as the class"):
        evaluate(source, RECIPE, supplied=read_supplied(*files))


def test_stages_are_told(source: Source) -> None:
    events: list[Event] = []
    evaluate(source, RECIPE, Protocol(2), run=Run(watch=events.append))
    stages = [event.name for event in events if isinstance(event, Stage)]
    assert stages == ["read", "fit", "score", "fit", "score", "write"]


def test_what_cannot_be_asked(source: Source) -> None:
    with pytest.raises(UsageError, match="cannot write"):
        evaluate(source, RECIPE, outputs=Outputs(source.paths[0]))
    with pytest.raises(BncliError, match="91 folds are more than the 90 rows"):
        evaluate(source, RECIPE, Protocol(91))


def test_every_fold_chooses_its_penalty(source: Source) -> None:
    folds = evaluate(source, Recipe(), Protocol(2)).as_json()["folds"]
    assert all(fold["penalty"] in GRID for fold in folds)
    assert [fold["penalty"] for fold in evaluate(source, RECIPE, Protocol(2)).as_json()["folds"]] == [None, None]
    typed = evaluate(source, Recipe(penalty=2.0), Protocol(2)).as_json()["folds"]
    assert [fold["penalty"] for fold in typed] == [2.0, 2.0]


def test_missing_values_that_are_marginalized_and_columns_that_are_not_there(source: Source, tmp_path: Path) -> None:
    recipe = Recipe.of(structure="tan", missing_policy="marginalize", param="map")
    crossed = evaluate(source, recipe, Protocol(3))
    assert crossed.metrics["accuracy"] is not None
    assert crossed.metrics["accuracy"] > 0.5
    write_model(str(tmp_path / "m.bnc"), learn(read_columns(source), recipe).model)
    lines = (tmp_path / "data.csv").read_text().splitlines()
    (tmp_path / "few.csv").write_text("\n".join(line.split(",", 1)[1] for line in lines))
    few = Source((str(tmp_path / "few.csv"),))
    with pytest.raises(ModelError, match="no column 'number'"):
        evaluate_model(str(tmp_path / "m.bnc"), few)
    few = replace(few, allow_missing_columns=True)
    for allowed in (evaluate_model(str(tmp_path / "m.bnc"), few), evaluate_on(source, few, recipe)):
        assert allowed.rows == 90
