"""Evaluation through files: what is reported, and what is written."""

import csv
import json
import os
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from xml.etree import ElementTree

import numpy as np
import pytest

from bncli.engine.data.columns import CategoricalColumn, Columns
from bncli.engine.evaluation.cross_validation import Protocol, draw_splits, predict
from bncli.engine.evaluation.intervals import PredictedBlock, measure_intervals
from bncli.engine.evaluation.metrics import METRICS
from bncli.engine.learn import learn
from bncli.engine.parameters.penalty_choice import GRID
from bncli.errors import BncliError, ModelError, UsageError
from bncli.files.artifacts.model import write_model
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from bncli.recipe import Recipe
from bncli.steps.evaluate.evaluate import EvaluateOutputs, evaluate, evaluate_model, evaluate_on
from bncli.steps.evaluate.report import EvaluateReport
from bncli.steps.learning_inputs import read_supplied
from bncli.watch import Event, Note, Run, Stage

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
    """Return the columns but the last, which holds true labels: their names, the predictions, the probabilities."""
    header, *rows = list(csv.reader(path.read_text().splitlines()))
    assert header[-1] == "true_label"
    return header[:-1], [row[0] for row in rows], np.array([[float(p) for p in row[1:-1]] for row in rows])


def check_json(report: EvaluateReport) -> dict[str, object]:
    """Check that the JSON has the keys that scripts rely on, and no NaN."""
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
    report = evaluate(source, RECIPE, Protocol(3, 2, 4), outputs=EvaluateOutputs(str(output)))
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
    trained = evaluate_on(source, test, RECIPE, outputs=EvaluateOutputs(str(one)))
    model_path = str(tmp_path / "m.bnc")
    write_model(model_path, learn(read_columns(source), RECIPE).model)
    tested = evaluate_model(model_path, test, outputs=EvaluateOutputs(str(other)))
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
    with pytest.raises(UsageError, match=r"no column 'klass', .*; .*cuts\.json uses it as the class"):
        evaluate(source, RECIPE, supplied=read_supplied(*files))


def test_stages_are_reported(source: Source) -> None:
    events: list[Event] = []
    evaluate(source, RECIPE, Protocol(2), run=Run(watch=events.append))
    stages = [event.name for event in events if isinstance(event, Stage)]
    assert stages == ["read", *["fit", "score", "evaluate"] * 2, "write"]


def test_refused_arguments(source: Source) -> None:
    with pytest.raises(UsageError, match="cannot write"):
        evaluate(source, RECIPE, outputs=EvaluateOutputs(source.paths[0]))
    with pytest.raises(BncliError, match="91 folds need at least 91 rows, but the table has only 90"):
        evaluate(source, RECIPE, Protocol(91))


def test_every_fold_chooses_its_penalty(source: Source) -> None:
    folds = evaluate(source, Recipe(structure="nb"), Protocol(2)).as_json()["folds"]
    assert all(fold["penalty"] in GRID for fold in folds)
    assert [fold["penalty"] for fold in evaluate(source, RECIPE, Protocol(2)).as_json()["folds"]] == [None, None]
    typed = evaluate(source, Recipe(structure="nb", penalty=2.0), Protocol(2)).as_json()["folds"]
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


def labels_of(path: str) -> list[str]:
    return [row[2] for row in csv.reader(Path(path).read_text().splitlines())][1:]


def test_the_baseline_is_the_class_frequencies_of_the_rows_learnt_from(source: Source) -> None:
    """scikit-learn's classifier that looks at no attribute, on the same folds."""
    metrics, dummy = pytest.importorskip("sklearn.metrics"), pytest.importorskip("sklearn.dummy")
    report = evaluate(source, RECIPE, Protocol(4, 2, 3))
    assert report.folds is not None
    columns = read_columns(source)
    truth = np.array(labels_of(source.paths[0]))
    for fold in report.folds:
        held_out = np.zeros(columns.n_rows, np.bool_)
        held_out[draw_splits(columns, Protocol(4, 2, 3), fold.repeat)[fold.fold].rows] = True
        model = dummy.DummyClassifier(strategy="prior").fit(truth[~held_out, None], truth[~held_out])
        p = model.predict_proba(truth[held_out, None])
        assert fold.baseline.log_loss == pytest.approx(metrics.log_loss(truth[held_out], p, labels=["x", "y", "z"]))
        assert fold.baseline.accuracy == pytest.approx(model.score(truth[held_out, None], truth[held_out]))
    values = report.as_json()
    for name in ("accuracy", "log_loss"):
        assert values["base"][name] == pytest.approx(fmean(fold["base"][name] for fold in values["folds"]))
    assert values["skill_score"] == 1 - values["log_loss"] / values["base"]["log_loss"]


def test_the_baseline_of_a_test_set_is_of_the_table_learnt_from_or_of_the_rows_tested(tmp_path: Path) -> None:
    train = write_table(tmp_path / "train.csv", 60, 0)
    (tmp_path / "test.csv").write_text("number,word,class\n0,a,z\n1,b,z\n2,c,x\n")
    test = Source((str(tmp_path / "test.csv"),))
    shares = {label: labels_of(train.paths[0]).count(label) / 60 for label in "xyz"}
    base = evaluate_on(train, test, RECIPE).baseline
    expected = -(2 * np.log(shares["z"]) + np.log(shares["x"])) / 3
    assert base.log_loss == pytest.approx(expected)
    write_model(str(tmp_path / "m.bnc"), learn(read_columns(train), RECIPE).model)
    base = evaluate_model(str(tmp_path / "m.bnc"), test).baseline
    # label y, which has no row, counts as one
    assert base == (pytest.approx(2 / 3), pytest.approx(-(2 * np.log(0.5) + np.log(0.25)) / 3))


def test_figures_of_labels_and_curves_come_from_the_predictions_of_all_rows(source: Source, tmp_path: Path) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    out = tmp_path / "out.csv"
    values = evaluate(source, RECIPE, Protocol(3), outputs=EvaluateOutputs(str(out))).as_json()
    _, predicted, p = read_predictions(out)
    truth = labels_of(source.paths[0])
    expected = zip(*metrics.precision_recall_fscore_support(truth, predicted, labels=["x", "y", "z"]), strict=True)
    for figures, (precision, recall, f1, support) in zip(values["per_class"], expected, strict=True):
        told = [figures[key] for key in ("precision", "recall", "f1", "support")]
        assert told == pytest.approx([precision, recall, f1, support])
    curves = values["curves"]
    assert {name: [one["label"] for one in table] for name, table in curves.items()} == {
        name: ["x", "y", "z"] for name in ("roc", "precision_recall", "reliability")
    }
    for c, label in enumerate("xyz"):
        own = np.array(truth) == label
        assert curves["roc"][c]["auc"] == pytest.approx(metrics.roc_auc_score(own, p[:, c]))
        assert curves["precision_recall"][c]["average_precision"] == pytest.approx(
            metrics.average_precision_score(own, p[:, c])
        )
        assert sum(curves["reliability"][c]["support"]) == 90
        assert curves["roc"][c]["threshold"][0] is curves["precision_recall"][c]["threshold"][0] is None


@pytest.mark.parametrize("param", ["map", "weighted"])
def test_row_weights_count_in_every_figure(param: str, tmp_path: Path) -> None:
    """A test row of weight 2 is the row twice; what is learned from is the same."""
    train = write_table(tmp_path / "train.csv", 60, 0)
    header, *lines = (tmp_path / "train.csv").read_text().splitlines()
    weights = [i % 3 for i in range(60)]
    weighted = "\n".join([f"{header},w", *(f"{line},{w}" for line, w in zip(lines, weights, strict=True))])
    (tmp_path / "weighted.csv").write_text(weighted)
    (tmp_path / "twice.csv").write_text(
        "\n".join([header, *(line for line, w in zip(lines, weights, strict=True) for _ in range(w))])
    )
    model = learn(
        read_columns(train), Recipe.of(structure="nb", param=param, **({} if param == "map" else {"penalty": 1.0}))
    ).model
    write_model(str(tmp_path / "m.bnc"), model)
    heavy = evaluate_model(str(tmp_path / "m.bnc"), Source((str(tmp_path / "weighted.csv"),), weights="w")).as_json()
    twice = evaluate_model(str(tmp_path / "m.bnc"), Source((str(tmp_path / "twice.csv"),))).as_json()
    for name in (*METRICS, "skill_score"):
        assert heavy[name] == pytest.approx(twice[name]), name
    assert heavy["base"] == pytest.approx(twice["base"])
    for one, other in zip(heavy["per_class"], twice["per_class"], strict=True):
        own, others = one.pop("ci"), other.pop("ci")
        for name in ("precision", "recall", "f1"):
            assert own[name] == pytest.approx(others[name]), name
        assert one == pytest.approx(other)
    assert heavy["ci_method"] == "BCa bootstrap over 40 rows, 1,000 replicates"
    for name in set(METRICS) - {"ece"}:
        low, high = heavy["ci"][name]
        assert low <= heavy[name] <= high, name
        assert heavy["ci"][name] == pytest.approx(twice["ci"][name]), name
    for kind, area in (("roc", "auc"), ("precision_recall", "average_precision")):
        for one, other in zip(heavy["curves"][kind], twice["curves"][kind], strict=True):
            assert one[area] == pytest.approx(other[area])


def test_labels_that_a_fold_lacks_and_folds_of_one_row(tmp_path: Path) -> None:
    """No figure is missing that could be told, and none is told that could not."""
    lines = [f"{i % 2},{label}" for i, label in enumerate(["x"] * 5 + ["y"] * 4 + ["z"])]
    (tmp_path / "rare.csv").write_text("\n".join(["a,class", *lines]))
    rare = Source((str(tmp_path / "rare.csv"),))
    for protocol in (Protocol(2), Protocol(10)):
        values = evaluate(rare, RECIPE, protocol).as_json()
        json.dumps(values, allow_nan=False)
        assert values["base"]["log_loss"] > 0
        assert [figures["support"] for figures in values["per_class"]] == [5, 4, 1]
        assert all(one["auc"] is not None for one in values["curves"]["roc"])
        assert values["std"]["mcc"] is not None
    write_model(str(tmp_path / "m.bnc"), learn(read_columns(rare), RECIPE).model)
    (tmp_path / "one.csv").write_text("a,class\n1,x\n")
    values = evaluate_model(str(tmp_path / "m.bnc"), Source((str(tmp_path / "one.csv"),))).as_json()
    json.dumps(values, allow_nan=False)
    empty = {"auc": None, "threshold": [], "false_positive_rate": [], "true_positive_rate": []}
    assert values["curves"]["roc"] == [{"label": label, **empty} for label in "xyz"]
    assert values["curves"]["precision_recall"][2]["average_precision"] is None
    empty = dict.fromkeys(("precision", "recall", "f1"))
    assert values["per_class"][2] == {"label": "z", **empty, "support": 0, "ci": empty}
    assert values["ci"]["log_loss"] is None


@pytest.mark.parametrize("informative", [True, False])
def test_a_model_that_is_no_better_than_the_frequencies_is_a_warning(informative: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 60)
    values = labels if informative else rng.integers(0, 12, 60)
    rows = [f"v{value},{'xy'[label]}" for value, label in zip(values, labels, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["a,class", *rows]))
    source, events = Source((str(tmp_path / "t.csv"),)), list[Event]()
    report = evaluate(source, RECIPE, run=Run(watch=events.append))
    warned = [event.text for event in events if isinstance(event, Note) and "no better than" in event.text]
    assert [finding.kind for finding in report.findings] == ["leak"] * informative
    assert report.skill_score is not None
    assert (report.skill_score > 0) == informative
    assert len(warned) == (not informative)
    assert all(f"{report.baseline.log_loss:.4f}" in text for text in warned)


def test_pictures(source: Source, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "pictures"
    with pytest.raises(BncliError, match="there is no folder"):
        evaluate(source, RECIPE, outputs=EvaluateOutputs(svg=str(folder)))
    folder.parent.mkdir()
    evaluate(source, RECIPE, outputs=EvaluateOutputs(svg=f"{folder}/"))
    assert sorted(path.name for path in folder.iterdir()) == ["precision_recall.svg", "reliability.svg", "roc.svg"]
    for path in folder.iterdir():
        texts = [element.text for element in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]
        assert {"x", "y", "z"} <= set(texts)
    before = (folder / "roc.svg").read_bytes()
    evaluate(source, RECIPE, outputs=EvaluateOutputs(svg=str(folder)))
    assert (folder / "roc.svg").read_bytes() == before


def test_where_pictures_cannot_go(source: Source, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--svg needs a folder .*data\.csv"):
        evaluate(source, RECIPE, outputs=EvaluateOutputs(svg=source.paths[0]))
    with pytest.raises(UsageError, match="give the path of a folder"):
        evaluate(source, RECIPE, outputs=EvaluateOutputs(svg="-"))
    (tmp_path / "p").mkdir()
    os.link(source.paths[0], tmp_path / "p" / "roc.svg")
    with pytest.raises(UsageError, match="cannot write"):
        evaluate(source, RECIPE, outputs=EvaluateOutputs(svg=str(tmp_path / "p")))


def test_many_labels_are_drawn_by_their_rows(tmp_path: Path) -> None:
    rows = [f"{i % 7},c{min(i // 4, 29):02}" for i in range(126)]
    (tmp_path / "t.csv").write_text("\n".join(["a,class", *rows]))
    evaluate(Source((str(tmp_path / "t.csv"),)), RECIPE, Protocol(2), outputs=EvaluateOutputs(svg=str(tmp_path / "p")))
    root = ElementTree.parse(tmp_path / "p" / "roc.svg")
    texts = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "the 24 most frequent of 30 labels" in texts[0]
    labels = [text for text in texts if text.startswith("c") and text[1:].isdigit()]
    assert labels == sorted(labels)
    assert len(labels) == 24
    assert "c29" in labels  # the commonest


def test_intervals_are_widened_by_the_gap_between_test_and_training_losses(tmp_path: Path) -> None:
    """Each row is tested once, and scored once as a training row: by the model of the fold before its own."""
    source = write_table(tmp_path / "data.csv", 90, 0)
    columns = read_columns(source)
    assert columns.label is not None
    codes, tested, training = columns.label.codes, np.empty(90), np.empty(90)
    splits = draw_splits(columns, Protocol(3, 1, 4), 0)
    for split, following in zip(splits, [*splits[1:], splits[0]], strict=True):
        log_p = predict(learn(columns.take(split.others), RECIPE).model, columns)
        losses = -log_p[codes, np.arange(90)]
        tested[split.rows], training[following.rows] = losses[split.rows], losses[following.rows]
    gap = float(np.mean(tested - training))
    assert gap > 0.01
    factor = float(np.sqrt(1 + gap / tested.var()))
    wide = evaluate(source, RECIPE, Protocol(3, 1, 4), outputs=EvaluateOutputs(by=("word",)))
    assert wide.intervals.method.endswith(f"widened by {100 * (factor - 1):.0f} % because folds share training rows")
    blocks = [PredictedBlock(split.rows, wide.predictions.log_probabilities[:, split.rows]) for split in splits]
    plain = measure_intervals(blocks, codes, None, wide.metrics, seed=4)
    for name in ("accuracy", "log_loss", "auc", "mcc"):
        ends, value = plain.metrics[name], wide.metrics[name]
        assert ends is not None
        assert value is not None
        expected = [value + factor * (end - value) for end in ends]
        if name == "accuracy":
            expected[1] = min(expected[1], 1.0)
        assert wide.intervals.metrics[name] == pytest.approx(expected), name
    # a group of rows has the same additional variance, which is less beside that of fewer rows
    assert wide.groups is not None
    for group in wide.groups.groups:
        rows = np.array([word == group.value for word in words_of(columns)])
        log_p, own = wide.predictions.log_probabilities[:, rows], codes[rows]
        alone = measure_intervals([PredictedBlock(np.arange(len(own)), log_p)], own, None, group.metrics)
        factor = float(np.sqrt(1 + gap / 90 / (tested[rows].var() / len(own))))
        ends, others = alone.metrics["log_loss"], group.intervals["log_loss"]
        assert ends is not None
        assert others is not None
        assert others[1] - others[0] == pytest.approx(factor * (ends[1] - ends[0])), group.value


def words_of(columns: Columns) -> list[str | None]:
    column = columns.attributes["word"]
    assert isinstance(column, CategoricalColumn)
    return [None if code < 0 else column.levels[code] for code in column.codes]
