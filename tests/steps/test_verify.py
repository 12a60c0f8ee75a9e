"""verify: a model against its self-test, and every kind of export against its model."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bncli.engine.model import DecisionRule, Tables
from bncli.errors import BncliError, ModelError, UsageError
from bncli.files.artifacts.model import read_model, write_model
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps.export import export
from bncli.steps.fit import fit
from bncli.steps.verify import verify
from tests.sweeps import first_few

SAMPLE_DATA = Path(__file__).parents[2] / "sample_data"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("verify") / "m.bnc")
    fit(Source((str(SAMPLE_DATA / "wine_holes.csv"),)), Recipe.of(param="map"), output=path)
    return path


def changed(model: str, path: Path) -> str:
    """The model with one table that is no longer the one that its self-test is of."""
    whole = read_model(model)
    weights = list(whole.tables.weights)
    weights[3] = weights[3] + np.linspace(0, 1e-3, weights[3].size).reshape(weights[3].shape)
    predictor = Tables(whole.tables.bias, whole.tables.families, tuple(weights))
    write_model(str(path), replace(whole, predictor=predictor))
    return str(path)


@pytest.mark.parametrize(
    "options", first_few([{"structure": "kikuchi"}, {"penalty": 1.0}, {"structure": "auto", "effort": 1}], 2)
)
def test_a_fresh_model_of_any_kind_says_what_it_said(tmp_path: Path, options: dict[str, object]) -> None:
    path = str(tmp_path / "m.bnc")
    fit(Source((str(SAMPLE_DATA / "iris.csv"),)), Recipe.of(**options), output=path)
    report = verify(path)
    assert report.fault is None
    assert report.self_test == (32, 0.0)
    assert (report.as_json()["rows"], report.as_json()["max_dp"]) == (32, 0.0)


def test_a_model_that_says_another_thing_is_a_fault(model: str, tmp_path: Path) -> None:
    report = verify(changed(model, tmp_path / "c.bnc"))
    assert report.self_test is not None
    assert 1e-6 < report.self_test.max_dp < 1e-2
    assert report.fault is not None
    assert report.fault.exit_code == 3
    assert f"the largest difference in probability is {report.self_test.max_dp:.1e} on 32 synthetic rows" in str(
        report.fault
    )
    assert report.as_json()["verified"] is False


@pytest.mark.parametrize(("shift", "agrees"), [(0.9e-9, True), (1.1e-9, False)])
def test_another_order_of_summation_is_allowed_and_no_more(
    model: str, tmp_path: Path, shift: float, agrees: bool
) -> None:
    whole = read_model(model)
    assert whole.self_test is not None
    probabilities = whole.self_test.probabilities.copy()
    probabilities[:2, 0] += shift, -shift
    write_model(
        str(tmp_path / "s.bnc"), replace(whole, self_test=whole.self_test._replace(probabilities=probabilities))
    )
    assert (verify(str(tmp_path / "s.bnc")).fault is None) == agrees


@pytest.mark.usefixtures("fewer_export_rows")
def test_the_model_of_an_earlier_version_carries_none(model: str, tmp_path: Path) -> None:
    older = str(tmp_path / "older.bnc")
    write_model(older, replace(read_model(model), self_test=None))
    with pytest.raises(ModelError, match=r"has no self-test: an earlier version wrote it, .*--against FILE"):
        verify(older)
    export(older, "python", output=str(tmp_path / "m.py"))
    report = verify(older, str(tmp_path / "m.py"))
    assert (report.self_test, report.fault) == (None, None)


@pytest.mark.parametrize(("form", "name"), [("bif", "x.bif"), ("xmlbif", "x.xml"), ("python", "x.py")])
def test_an_export_agrees_and_one_of_a_changed_model_does_not(
    model: str, tmp_path: Path, request: pytest.FixtureRequest, form: str, name: str
) -> None:
    if form == "python":
        request.getfixturevalue("fewer_export_rows")
    path = str(tmp_path / name)
    export(model, form, output=path)
    report = verify(model, path)
    assert report.export is not None
    assert report.export.rows >= (1_000 if form == "python" else 10_000)
    assert report.export.max_dp < 1e-12
    assert (report.format, report.fault) == (form, None)
    other = str(tmp_path / "other.bnc")
    fit(Source((str(SAMPLE_DATA / "wine_holes.csv"),)), Recipe.of(param="map", smoothing="m-estimate:50"), output=other)
    found = verify(other, path)
    assert found.export is not None
    assert found.export.max_dp > 1e-3
    assert f"the {form} file differs from the model {other}" in str(found.fault)
    assert found.as_json()["max_dp"] == found.export.max_dp


@pytest.mark.usefixtures("fewer_export_rows")
@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not at hand")
def test_a_javascript_module(model: str, tmp_path: Path) -> None:
    export(model, "javascript", output=str(tmp_path / "x.mjs"))
    assert verify(model, str(tmp_path / "x.mjs")).fault is None


@pytest.mark.usefixtures("fewer_export_rows")
def test_without_what_runs_a_program_there_is_no_verdict(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(model, "javascript", output=str(tmp_path / "x.js"))
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(BncliError, match="needs Node, which is not installed") as caught:
        verify(model, str(tmp_path / "x.js"))
    assert caught.value.exit_code == 1


@pytest.mark.usefixtures("fewer_export_rows")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("def predict_proba(row): return {'a': 1.0}", "does not return 3 probabilities per row"),
        (
            "def predict_proba(row): return {str(i): 1.0 for i in range(len(row['ash'] or 'a'))}",
            "the program fails",
        ),
        ("def predict_proba(row): return {1: 1, 2: 2, 3: row['nothing']}", "the program fails .*KeyError: 'nothing'"),
        ("def predict_proba(row", "the program .*SyntaxError"),
        ("import sys; sys.exit(0)", "the program fails"),
        ("print('hello')\ndef predict_proba(row): return {1: .1, 2: .1, 3: .8}", "the program fails"),
        ("\0", "the program fails"),
        (b"\xff\xfe", "the program cannot be loaded"),
    ],
)
def test_a_program_that_is_none_of_this_model(model: str, tmp_path: Path, content: str | bytes, message: str) -> None:
    (tmp_path / "x.py").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ModelError, match=message):
        verify(model, str(tmp_path / "x.py"))


@pytest.mark.usefixtures("fewer_export_rows")
def test_probabilities_that_are_none(model: str, tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("def predict_proba(row): return dict(zip('abc', [None] * 3))")
    report = verify(model, str(tmp_path / "x.py"))
    assert "some probabilities on 1,000 synthetic rows are NaN" in str(report.fault)
    assert report.as_json()["verified"] is False


def test_a_network_of_other_nodes_and_a_model_that_is_none(model: str, tmp_path: Path) -> None:
    other, path = str(tmp_path / "o.bnc"), str(tmp_path / "x.bif")
    fit(Source((str(SAMPLE_DATA / "iris.csv"),)), Recipe.of(param="map"), output=other)
    export(other, "bif", output=path)
    with pytest.raises(ModelError, match="does not belong to the model: its nodes differ"):
        verify(model, path)
    fit(Source((str(SAMPLE_DATA / "iris.csv"),)), Recipe.of(structure="kikuchi"), output=other)
    with pytest.raises(ModelError, match="this model is not a network"):
        verify(other, path)
    (tmp_path / "bad.bif").write_text("network {")
    with pytest.raises(BncliError, match=r"bad\.bif"):
        verify(model, str(tmp_path / "bad.bif"))


@pytest.mark.parametrize("name", ["x.dot", "x.json", "x.bnc", "x"])
def test_what_says_no_probabilities_is_wrong_usage(model: str, tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"the format of the export cannot be determined.*\.bif.*\.py"):
        verify(model, str(tmp_path / name))


def test_an_export_that_is_not_there(model: str, tmp_path: Path) -> None:
    with pytest.raises(BncliError, match="no such file"):
        verify(model, str(tmp_path / "x.py"))


@pytest.mark.usefixtures("fewer_export_rows")
def test_sql(model: str, tmp_path: Path) -> None:
    export(model, "sql", output=str(tmp_path / "x.sql"), options={"key": "id"})
    report = verify(model, str(tmp_path / "x.sql"))
    assert (report.format, report.fault) == ("sql", None)
    (tmp_path / "bad.sql").write_text("DROP TABLE nothing;")
    with pytest.raises(ModelError, match="the program fails on rows for this model"):
        verify(model, str(tmp_path / "bad.sql"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("empty.sql", ""),
        ("other.sql", "DROP TABLE nothing;"),
        ("list.sql", "-- bncli: []"),
        ("short.sql", '-- bncli: {"dialect": "sqlite"}'),
        ("short.csv", "a,b"),
    ],
)
def test_what_no_export_looks_like_is_said_in_words(model: str, tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ModelError, match="bncli did not write it, or it needs columns that the model does not use"):
        verify(model, str(tmp_path / name))


@pytest.mark.usefixtures("fewer_export_rows")
def test_an_onnx_graph(model: str, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    export(model, "onnx", output=str(tmp_path / "x.onnx"))
    assert verify(model, str(tmp_path / "x.onnx")).fault is None
    (tmp_path / "bad.onnx").write_bytes(b"\xff\x00")
    with pytest.raises(ModelError, match="the program fails on rows for this model"):
        verify(model, str(tmp_path / "bad.onnx"))


@pytest.mark.usefixtures("fewer_export_rows")
def test_a_scorecard_agrees_where_it_is_hardly_rounded(tmp_path: Path) -> None:
    path = str(tmp_path / "m.bnc")
    fit(Source((str(SAMPLE_DATA / "monks1.csv"),)), Recipe.of(param="map", structure="nb"), output=path)
    options = {"pdo": 20.0, "base": 600.0, "odds": 50.0}
    for digits, agrees in ((15, True), (0, False)):
        export(path, "scorecard", output=str(tmp_path / "x.csv"), options={**options, "digits": digits})
        fault = verify(path, str(tmp_path / "x.csv")).fault
        assert (fault is None) == agrees
    assert "the reason may be rounding" in str(fault)


@pytest.mark.usefixtures("fewer_export_rows")
@pytest.mark.parametrize(
    ("form", "ending"), [("python", "py"), pytest.param("javascript", "js", marks=pytest.mark.slow), ("sql", "sql")]
)
def test_decisions_are_compared_too(tmp_path: Path, form: str, ending: str) -> None:
    """Of a program that decides by other costs, or by costs that the model does not have, the probabilities agree."""
    if form == "javascript" and shutil.which("node") is None:
        pytest.skip("Node is not at hand")
    source, recipe = Source((str(SAMPLE_DATA / "wine_holes.csv"),)), Recipe.of(param="map")
    plain, written = str(tmp_path / "plain.bnc"), str(tmp_path / f"m.{ending}")
    fit(source, recipe, output=plain)
    whole = read_model(plain)
    labels = whole.schema.labels
    costs = tuple(tuple(0.0 if y == d else 1.0 + 8 * (y == 0) for d in range(len(labels))) for y in range(len(labels)))
    for name, rule in (
        ("ruled", DecisionRule(costs=costs)),
        ("other", DecisionRule(abstain_below=0.6)),
        ("plain", None),
    ):
        write_model(str(tmp_path / f"{name}.bnc"), replace(whole, rule=rule))
    ruled = str(tmp_path / "ruled.bnc")
    export(
        ruled, form, output=written, options={"key": "id", "input": "t", "dialect": "sqlite"} if form == "sql" else {}
    )
    report = verify(ruled, written)
    assert report.fault is None
    assert report.decisions is not None
    assert report.decisions == (report.export.rows if report.export else 0, 0)
    other = verify(str(tmp_path / "other.bnc"), written)
    assert other.decisions is not None
    assert other.decisions.others > 100
    assert "decides differently from the model in" in str(other.fault)
    assert other.export is not None
    assert other.export.agrees
    assert "has no decision rule" in str(verify(plain, written).fault)
    export(
        plain, form, output=written, options={"key": "id", "input": "t", "dialect": "sqlite"} if form == "sql" else {}
    )
    silent = verify(ruled, written)
    assert silent.fault is None
    assert silent.decisions is None
