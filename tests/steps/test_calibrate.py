"""calibrate: a map stored in the model, and what says probabilities afterwards."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

import bncli
from bncli.cli.main import run
from bncli.engine.calibration import METHODS, Isotonic, Temperature
from bncli.engine.data.splits import SplitBy, stratified_folds
from bncli.engine.kernels.arrays import Array
from bncli.errors import BncliError, ModelError, UsageError
from bncli.files.artifacts.model import dump_model, format_version, read_model
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps.calibrate import calibrate
from bncli.steps.effects_and_regions import effects_report
from bncli.steps.evaluate.evaluate import evaluate_model
from bncli.steps.export import export
from bncli.steps.fit import fit
from bncli.steps.simulate import simulate
from bncli.steps.verify import verify
from bncli.watch import Event, Note, Run
from tests.sweeps import every_pair

SAMPLE_DATA = Path(__file__).parents[2] / "sample_data"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two halves of a table with three labels and of one with two, and models of the first halves, too bold."""
    made = tmp_path_factory.mktemp("calibrate")
    for name, structure in (("wine_holes", "tan"), ("tic_tac_toe", "tan")):
        header, *rows = (SAMPLE_DATA / f"{name}.csv").read_text().splitlines()
        for half in (0, 1):
            (made / f"{name}_{half}.csv").write_text("\n".join([header, *rows[half::2], ""]))
        source = Source((str(made / f"{name}_0.csv"),))
        fit(source, Recipe.of(structure=structure, param="map"), output=str(made / f"{name}.bnc"))
    return made


def calibrated(folder: Path, name: str, method: str, out: str = "c.bnc", **said: Any) -> tuple[str, list[str]]:
    heard: list[str] = []

    def watch(event: Event) -> None:
        if isinstance(event, Note):
            heard.append(event.text)

    source = Source((str(folder / f"{name}_1.csv"),), **said)
    calibrate(str(folder / f"{name}.bnc"), source, str(folder / out), method, run=Run(watch=watch))
    return str(folder / out), heard


def probabilities(path: str, table: Path) -> Array:
    return np.asarray(bncli.load(path).predict_proba(str(table)))


@pytest.mark.filterwarnings("ignore:[0-9]+ rows are too few")
@pytest.mark.parametrize("name", ["wine_holes", "tic_tac_toe"])
@pytest.mark.parametrize("method", METHODS)
def test_everything_that_says_probabilities_says_the_calibrated_ones(folder: Path, name: str, method: str) -> None:
    path, _ = calibrated(folder, name, method)
    table = folder / f"{name}_1.csv"
    model = read_model(path)
    assert model.calibration is not None
    before = probabilities(str(folder / f"{name}.bnc"), table)
    after = probabilities(path, table)
    np.testing.assert_allclose(np.log(after).T, model.calibration.map.apply(np.log(before).T), atol=1e-9)
    report = evaluate_model(path, Source((str(table),)))
    assert report.metrics["log_loss"] == pytest.approx(model.calibration.after, abs=1e-12)
    assert verify(path).fault is None
    assert run(["score", path, str(table), "-o", str(folder / "scores.csv"), "-q"]) == 0
    scores = np.genfromtxt(folder / "scores.csv", delimiter=",", skip_header=1, usecols=range(1, before.shape[1] + 1))
    np.testing.assert_allclose(scores, after, atol=1e-14)
    api = bncli.load(str(folder / f"{name}.bnc")).calibrate(str(table), method)
    np.testing.assert_array_equal(api.predict_proba(str(table)), after)


@pytest.mark.parametrize("method", METHODS)
def test_a_calibrated_model_is_read_as_it_was_written(folder: Path, method: str) -> None:
    path, _ = calibrated(folder, "wine_holes", method)
    model = read_model(path)
    assert dump_model(model) == Path(path).read_bytes()
    assert format_version(path) == 7


WRONG = [
    ("temperature", {"temperature": 0.0}, "a temperature must be above 0"),
    ("temperature", {"method": "platt"}, "there is no calibration 'platt'"),
    ("temperature", {"rows": 0}, "out of range"),
    ("temperature", {"scales": [1]}, "unknown key 'scales'"),
    ("temperature", {"method": None}, "expected a string"),
    ("temperature", {"label_frequencies": [1.0, 2.0, 3.0]}, "unknown key 'label_frequencies'"),
    ("isotonic", {"label_frequencies": [1.0, 2.0, 0.0]}, "the weight of a label must be above 0"),
    ("isotonic", {"label_frequencies": [1.0, 2.0]}, "expected one number per label"),
    ("per-class", {"scales": [1.0]}, "expected one number per label"),
    ("per-class", {"scales": [1.0, -1.0, 1.0]}, "a scale must be at least 0"),
    ("isotonic", {"knots": []}, "there must be one map per label"),
    ("isotonic", {"knots": [{"at": [0.2, 0.1], "values": [0.1, 0.2]}] * 3}, "probabilities in increasing order"),
    ("isotonic", {"knots": [{"at": [0.1, 0.2], "values": [0.3, 0.2]}] * 3}, "must not decrease"),
    ("isotonic", {"knots": [{"at": [0.1, 0.2], "values": [0.0, 0.2]}] * 3}, "between 0 and 1"),
    ("isotonic", {"knots": [{"at": [], "values": []}] * 3}, "knots must be"),
    ("isotonic", {"knots": [{"at": [0.1], "values": [0.2, 0.3]}] * 3}, "expected one number"),
]


@pytest.mark.parametrize(("method", "change", "said"), WRONG)
def test_a_wrong_map_in_a_file_is_an_error(folder: Path, method: str, change: dict[str, Any], said: str) -> None:
    from bncli.files.artifacts.model import calibration_json, read_calibration
    from bncli.files.json_documents import parse_json

    path, _ = calibrated(folder, "wine_holes", method)
    found = read_model(path).calibration
    assert found is not None
    text = json.dumps(calibration_json(found) | change).encode()
    with pytest.raises(ModelError, match=said):
        read_calibration(parse_json(text, "a file", ModelError), 3)


def test_rows_that_the_model_was_learnt_from_are_warned_of(folder: Path) -> None:
    model, warned = str(folder / "wine_holes.bnc"), "the rows look like the training rows of the model"
    rows = (folder / "wine_holes_0.csv").read_text().splitlines()
    (folder / "shuffled_1.csv").write_text("\n".join([rows[0], *rows[:0:-1], ""]))
    (folder / "shuffled.bnc").write_bytes(Path(model).read_bytes())
    assert any(warned in text for text in calibrated(folder, "shuffled", "temperature")[1])
    assert not any(warned in text for text in calibrated(folder, "wine_holes", "temperature")[1])
    source = Source((str(folder / "wine_holes_0.csv"),))
    fit(source, Recipe.of(param="map", class_weights="balanced"), output=str(folder / "shuffled.bnc"))
    assert any(warned in text for text in calibrated(folder, "shuffled", "temperature")[1])


def test_a_calibration_is_replaced_and_not_heaped_on_another(folder: Path) -> None:
    first, _ = calibrated(folder, "wine_holes", "per-class", "first.bnc")
    heard: list[Event] = []
    source = Source((str(folder / "wine_holes_1.csv"),))
    calibrate(first, source, str(folder / "second.bnc"), "temperature", run=Run(watch=heard.append))
    plain, _ = calibrated(folder, "wine_holes", "temperature", "plain.bnc")
    assert (folder / "second.bnc").read_bytes() == Path(plain).read_bytes()
    assert any(isinstance(event, Note) and "already calibrated" in event.text for event in heard)


@pytest.mark.usefixtures("fewer_export_rows")
@pytest.mark.parametrize("form", ["python", "javascript", "sql", "onnx", "scorecard"])
def test_a_temperature_is_exported(folder: Path, form: str) -> None:
    path, _ = calibrated(folder, "tic_tac_toe", "temperature")
    agrees(path, form)
    if form != "onnx":
        options = {"key": "id"} if form == "sql" else {}
        plain = export(str(folder / "tic_tac_toe.bnc"), form, options=options)
        assert export(path, form, options=options).text != plain.text


def agrees(path: str, form: str) -> None:
    """What is exported says what the model does."""
    if form == "onnx":
        pytest.importorskip("onnxruntime")
    out = f"{path}.{form}"
    report = export(path, form, output=out, options={"scorecard": {"digits": 15}, "sql": {"key": "id"}}.get(form, {}))
    if report.max_dp is None:
        pytest.skip(f"nothing at hand runs {form}")
    assert report.max_dp < 1e-9


@pytest.mark.usefixtures("fewer_export_rows")
@pytest.mark.parametrize(
    ("name", "form", "method"),
    every_pair(["tic_tac_toe", "wine_holes"], ["python", "javascript", "sql", "onnx"], ["per-class", "isotonic"]),
)
def test_other_maps_are_exported(folder: Path, name: str, form: str, method: str) -> None:
    path, _ = calibrated(folder, name, method)
    agrees(path, form)


@pytest.mark.parametrize("method", ["per-class", "isotonic"])
def test_maps_are_refused_where_they_cannot_be_said(folder: Path, method: str) -> None:
    path, _ = calibrated(folder, "tic_tac_toe", method)
    with pytest.raises(ModelError, match="sums of points cannot represent"):
        export(path, "scorecard")
    with pytest.raises(ModelError, match="the model is calibrated"):
        export(path, "bif")
    with pytest.raises(ModelError, match="the model is calibrated"):
        simulate(path, 3)


@pytest.mark.usefixtures("fewer_export_rows")
def test_an_average_of_models_is_calibrated_in_programs(folder: Path) -> None:
    source = Source((str(folder / "tic_tac_toe_0.csv"),))
    fit(source, Recipe.of(structure="kikuchi"), output=str(folder / "averaged.bnc"))
    (folder / "averaged_1.csv").write_bytes((folder / "tic_tac_toe_1.csv").read_bytes())
    path, _ = calibrated(folder, "averaged", "temperature")
    agrees(path, "python")
    agrees(path, "sql")
    with pytest.raises(ModelError, match="sums of points cannot represent"):
        export(path, "scorecard")
    assert verify(path).fault is None


def test_a_temperature_divides_reasons_and_effects(folder: Path) -> None:
    path, _ = calibrated(folder, "wine_holes", "temperature")
    calibration = read_model(path).calibration
    assert calibration is not None
    assert isinstance(calibration.map, Temperature)
    table, heat = str(folder / "wine_holes_1.csv"), calibration.map.temperature
    for cool, raw in zip(
        bncli.load(path).explain(table), bncli.load(str(folder / "wine_holes.bnc")).explain(table), strict=True
    ):
        assert cool.log_odds == pytest.approx(raw.log_odds / heat, rel=1e-9)
        total = cool.base + sum(one.contribution for one in cool.contributions) + cool.rest
        assert total == pytest.approx(cool.log_odds, abs=1e-9)
    ours, theirs = (effects_report(read_model(one)) for one in (path, str(folder / "wine_holes.bnc")))
    np.testing.assert_allclose(ours.base, theirs.base / heat)
    np.testing.assert_allclose(ours.effects[0].values, theirs.effects[0].values / heat)
    odds = np.log(bncli.load(path).predict_proba(table)[0])
    own = int(odds.argmax())
    said = bncli.load(path).explain(table)[0].log_odds
    assert said == pytest.approx(odds[own] - np.delete(odds, own).mean(), abs=1e-9)


@pytest.mark.parametrize("method", ["per-class", "isotonic"])
def test_reasons_under_other_maps_are_those_before_and_say_so(
    folder: Path, method: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path, _ = calibrated(folder, "tic_tac_toe", method)
    table = str(folder / "tic_tac_toe_1.csv")
    assert run(["score", path, table, "-o", str(folder / "why.csv"), "--explain", "1"]) == 0
    assert f"log-odds and contributions are those before {method} calibration" in capsys.readouterr().err
    one, other = (bncli.load(p).explain(table, 2) for p in (path, str(folder / "tic_tac_toe.bnc")))
    same = [(a, b) for a, b in zip(one, other, strict=True) if a.prediction == b.prediction]
    assert len(same) > 300
    assert all(a == b for a, b in same)


def test_weights_are_heeded(folder: Path) -> None:
    header, *rows = (folder / "tic_tac_toe_1.csv").read_text().splitlines()
    weighted = [f"{row},{1 + (i < 100)}" for i, row in enumerate(rows)]
    (folder / "weighted_1.csv").write_text("\n".join([f"{header},w", *weighted, ""]))
    (folder / "doubled_1.csv").write_text("\n".join([header, *rows, *rows[:100], ""]))
    for name in ("weighted", "doubled"):
        (folder / f"{name}.bnc").write_bytes((folder / "tic_tac_toe.bnc").read_bytes())
    one, other = (
        read_model(calibrated(folder, name, "isotonic", class_name="class", **said)[0]).calibration
        for name, said in (("weighted", {"weights": "w"}), ("doubled", {}))
    )
    assert one is not None
    assert other is not None
    assert isinstance(one.map, Isotonic)
    assert isinstance(other.map, Isotonic)
    np.testing.assert_allclose(one.map.knots[0].values, other.map.knots[0].values, rtol=1e-12)
    assert one.after == pytest.approx(other.after)


@pytest.mark.parametrize("method", METHODS)
def test_other_class_frequencies_are_told_and_undone(folder: Path, method: str) -> None:
    header, *rows = (folder / "tic_tac_toe_1.csv").read_text().splitlines()
    rare = [row for i, row in enumerate(rows) if not row.endswith("positive") or i % 6 == 0]
    (folder / "rare_1.csv").write_text("\n".join([header, *rare, ""]))
    (folder / "rare.bnc").write_bytes((folder / "tic_tac_toe.bnc").read_bytes())
    path, heard = calibrated(folder, "rare", method, "rare_c.bnc")
    told = [text for text in heard if text.startswith("the class frequencies differ from those in training")]
    assert len(told) == 1
    assert ("a temperature cannot correct" in told[0]) == (method == "temperature")
    assert not any("as frequent" in text for text in calibrated(folder, "tic_tac_toe", method)[1])
    if method != "temperature":
        model, table = bncli.load(path), str(folder / "tic_tac_toe_1.csv")
        share = float(np.mean([row.endswith("positive") for row in rows]))
        assert abs(model.predict_proba(table)[:, 1].mean() - share) > 0.1
        assert abs(model.predict_proba(table, prior="training")[:, 1].mean() - share) < 0.05


def test_bad_input_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, table = str(folder / "tic_tac_toe.bnc"), str(folder / "tic_tac_toe_1.csv")
    header, *rows = Path(table).read_text().splitlines()
    hostile = {
        "noclass.csv": ["\n".join(row.rpartition(",")[0] for row in (header, *rows)), "no column 'class'"],
        "unseen.csv": [f"{header}\n{rows[0].rpartition(',')[0]},draw\n", "'draw', which is not a label of the model"],
        "unlabelled.csv": [f"{header}\n{rows[1]}\n{rows[0].rpartition(',')[0]},\n", "--drop-unlabelled"],
        "empty.csv": [f"{header}\n", "the table has no rows"],
        "few.csv": ["\n".join([header, *rows[:6], ""]), "isotonic calibration fits a map for each label, but only"],
    }
    for name, (text, said) in hostile.items():
        (folder / name).write_text(text)
        words = ["calibrate", model, str(folder / name), "-o", str(folder / "x.bnc"), "--method", "isotonic"]
        assert run(words) in (1, 3), name
        assert said in capsys.readouterr().err, name
        assert not (folder / "x.bnc").exists()
    assert run(["calibrate", model, table]) == 2
    assert "-o FILE is missing" in capsys.readouterr().err
    with pytest.raises(UsageError, match="there is no calibration 'platt'"):
        bncli.load(model).calibrate(table, "platt")
    with pytest.raises(TypeError, match="there is no option 'wieghts'"):
        bncli.load(model).calibrate(table, wieghts="w")


def test_the_summary_and_inspect_tell_of_the_map(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(folder / "wine_holes.bnc"), str(folder / "wine_holes_1.csv"), "-o", str(folder / "t.bnc")]
    assert run(["calibrate", *words]) == 0
    told = capsys.readouterr().err
    assert "calibration temperature" in told
    assert "on the 89 rows used for calibration" in told
    assert run(["inspect", str(folder / "t.bnc"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["calibration"]
    assert found["method"] == "temperature"
    assert found["rows"] == 89
    assert found["log_loss"]["after"] <= found["log_loss"]["before"]


def grouped(folder: Path, name: str, copies: int) -> Path:
    """Each row of the second half of a table several times, with a column that names it, in its own file."""
    header, *rows = (folder / f"{name}_1.csv").read_text().splitlines()
    table = folder / f"{name}_{copies}_copies.csv"
    lines = [f"g{i:04d},{row}" for i, row in enumerate(rows) for _ in range(copies)]
    table.write_text("\n".join([f"unit,{header}", *lines, ""]))
    return table


def test_the_held_out_loss_is_that_of_maps_of_the_other_groups(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Against a search for the temperature of each fold."""
    table, model = grouped(folder, "wine_holes", 3), str(folder / "wine_holes.bnc")
    assert run(["calibrate", model, str(table), "-o", str(folder / "g.bnc"), "--group", "unit", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    n_rows = len(table.read_text().splitlines()) - 1
    assert report["split"] == {"kind": "group", "columns": ["unit"], "units": n_rows // 3}
    p = probabilities(model, table)
    log_p = np.log(p)
    labels = [line.rsplit(",", 1)[1] for line in table.read_text().splitlines()[1:]]
    codes = np.array([report["labels"].index(label) for label in labels])
    units = np.repeat(np.arange(n_rows // 3), 3)
    folds = stratified_folds(codes, 5, 0, SplitBy(units))
    assert all(len(set(folds[units == unit])) == 1 for unit in units)

    def loss(temperature: float, rows: Array) -> float:
        scaled = log_p[rows] / temperature
        return float(np.sum(logsumexp(scaled, axis=1) - scaled[np.arange(len(rows)), codes[rows]]))

    total = 0.0
    for fold in range(5):
        others = np.flatnonzero(folds != fold)
        best = minimize_scalar(lambda x, rows=others: loss(np.exp(x), rows), bounds=(-4, 4), method="bounded")
        total += loss(np.exp(best.x), np.flatnonzero(folds == fold))
    assert report["log_loss"]["held_out"] == pytest.approx(total / n_rows, rel=1e-5)
    assert report["log_loss"]["held_out"] > report["log_loss"]["after"]


def test_groups_and_times_leave_the_map_as_it_is(folder: Path) -> None:
    source = Source((str(grouped(folder, "tic_tac_toe", 2)),))
    model, paths = str(folder / "tic_tac_toe.bnc"), [str(folder / name) for name in ("rows.bnc", "groups.bnc")]
    calibrate(model, source, paths[0], "per-class")
    calibrate(model, replace(source, group=("unit",)), paths[1], "per-class")
    assert Path(paths[0]).read_bytes() == Path(paths[1]).read_bytes()


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"group": ("nobody",)}, "no column 'nobody'"),
        ({"gap": "3d"}, "--gap has no effect without --time"),
        ({"window": 2}, "--window has no effect without --time"),
        ({"group": ("always",)}, "all rows belong to one group"),
        ({"time": "always"}, "same time in every row"),
        ({"time": "unit"}, "neither numbers nor dates"),
        ({"group": ("few",), "method": "isotonic"}, "only 2 groups have the label 'negative'"),
    ],
)
def test_groups_that_calibrate_cannot_use(folder: Path, said: dict[str, Any], message: str) -> None:
    header, *rows = grouped(folder, "tic_tac_toe", 1).read_text().splitlines()
    table = folder / "unusable.csv"
    lines = [f"7,{'even' if i % 2 else 'odd'},{row}" for i, row in enumerate(rows)]
    table.write_text("\n".join([f"always,few,{header}", *lines, ""]))
    method = said.pop("method", "temperature")
    with pytest.raises(BncliError) as raised:
        calibrate(str(folder / "tic_tac_toe.bnc"), Source((str(table),), **said), str(folder / "no.bnc"), method)
    assert message in str(raised.value)
    assert not (folder / "no.bnc").exists()


def test_a_model_tested_on_copies_is_as_sure_as_on_the_rows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With groups, three copies of each row give the intervals of one; without, narrower ones."""
    found = []
    for copies, group in ((1, []), (3, ["--group", "unit"]), (3, [])):
        table = str(grouped(folder, "tic_tac_toe", copies))
        assert run(["evaluate", "--model", str(folder / "tic_tac_toe.bnc"), table, *group, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out))
    one, three, blind = found
    for figure in ("accuracy", "log_loss", "auc"):
        assert three["ci"][figure] == pytest.approx(one["ci"][figure], abs=1e-9)
        low, high = blind["ci"][figure]
        assert high - low < 0.7 * (one["ci"][figure][1] - one["ci"][figure][0])
    assert three["split"] == {"kind": "group", "columns": ["unit"], "units": one["rows"]}


def test_a_loss_on_rows_of_one_time_is_said_to_be_too_low(tmp_path: Path) -> None:
    """With five years the last one is held out; it cannot be split again to test the map that was fitted to it."""
    rng = np.random.default_rng(0)
    rows = [(2018 + i // 40, rng.integers(0, 3), "ny"[rng.integers(0, 2)]) for i in range(200)]
    source = tmp_path / "years.csv"
    source.write_text("year,a,y\n" + "".join(f"{year},v{a},{y}\n" for year, a, y in rows))
    events: list[Event] = []
    recipe = Recipe.of(structure="nb", calibrate="temperature", penalty=1.0)
    fit(Source((str(source),), time="year"), recipe, output=str(tmp_path / "m.bnc"), run=Run(watch=events.append))
    assert any(isinstance(event, Note) and event.warning and "loss is too low" in event.text for event in events)
