"""Exported models: verified, read by other programs, refused where no network says the same."""

from __future__ import annotations

import csv
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from bncli.engine.data.dataset import encode_attributes
from bncli.engine.model import Model, Tables
from bncli.engine.networks.network import equivalent_network, name_network
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities
from bncli.engine.structures.named_structure import name_dag
from bncli.engine.structures.structure import Dag
from bncli.errors import BncliError, ModelError, UsageError
from bncli.files.artifacts.model import read_model, write_model
from bncli.files.artifacts.structure import read_structure
from bncli.files.exports import bif, python
from bncli.files.exports.bif import read_bif
from bncli.files.exports.sql import postgres_programs
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from bncli.recipe import Recipe
from bncli.steps import export as step
from bncli.steps.export import export
from bncli.steps.fit import fit
from bncli.steps.score import ScoreOutput, score
from bncli.watch import Event, Note
from tests import peers
from tests.datasets import schema_of
from tests.engine.networks.test_network import model_of, perfect_models
from tests.missing_values import network_model
from tests.sweeps import every_value, examples

SAMPLE_DATA = Path(__file__).parents[2] / "sample_data"
FORMATS = ("bif", "xmlbif", "dot", "json")


def learnt(name: str, folder: Path, structure: str = "tan", param: str = "discriminative") -> str:
    """A model of sample data."""
    path = str(folder / "m.bnc")
    recipe = Recipe.of(structure=structure, param=param, penalty=None if param == "map" else 1.0)
    fit(Source((str(SAMPLE_DATA / name),)), recipe, output=path)
    return path


@pytest.mark.parametrize("form", ["bif", "xmlbif"])
@pytest.mark.parametrize("param", ["map", "discriminative"])
def test_a_network_is_written_and_verified(tmp_path: Path, form: str, param: str) -> None:
    path = learnt("wine_holes.csv", tmp_path, param=param)
    report = export(path, form, output=str(tmp_path / "out"))
    assert (tmp_path / "out").read_text() == report.text
    model = read_model(path)
    content = report.as_json()
    assert content.pop("max_dp") < 1e-12
    assert content == {
        "model": path,
        "format": form,
        "output": str(tmp_path / "out"),
        "nodes": 14,
        "arcs": 25,
        "probabilities": model.tables.n_parameters,
        "rows": 10_000,
    }


@pytest.mark.parametrize("form", ["dot", "json"])
def test_a_structure_reads_back(tmp_path: Path, form: str) -> None:
    path = learnt("iris.csv", tmp_path)
    report = export(path, form, output=str(tmp_path / "out"))
    assert (report.nodes, report.arcs, report.rows, report.max_dp) == (5, 7, None, None)
    model = read_model(path)
    again = read_structure(str(tmp_path / "out"))
    assert again.resolve(model.schema) == name_dag(model.structure, model.schema).resolve(model.schema)


@pytest.mark.parametrize("form", FORMATS)
def test_equal_models_are_equal_bytes(tmp_path: Path, form: str) -> None:
    path = learnt("iris.csv", tmp_path)
    assert export(path, form, seed=1).text == export(path, form, output=str(tmp_path / "out")).text


@given(model=perfect_models())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(6))
def test_any_model_on_a_perfect_graph(tmp_path: Path, model: Model) -> None:
    path = str(tmp_path / "any.bnc")
    write_model(path, model)
    for form in ("bif", "xmlbif"):
        assert (export(path, form).max_dp or 0.0) < 1e-11


def test_names_and_levels_are_kept(tmp_path: Path) -> None:
    schema = replace(schema_of((2, 2), 2, names=["a b", "{}"]), class_name='the "class"', labels=("yes, no", "?"))
    model = model_of(schema, Dag(((), (0,)), (0, 1)), 1.0, 0)
    write_model(str(tmp_path / "m.bnc"), model)
    again = read_bif(export(str(tmp_path / "m.bnc"), "bif").text.encode(), "")
    assert [node.name for node in again.nodes] == ['the "class"', "a b", "{}"]
    assert again.nodes[0].states == ("yes, no", "?")
    for node, own in zip(again.nodes, name_network(equivalent_network(model)).nodes, strict=True):
        assert (node.probabilities == own.probabilities).all()


def test_a_graph_that_is_not_perfect(tmp_path: Path) -> None:
    model = model_of(schema_of((2, 2, 2), 2), Dag(((), (), (0, 1)), (0, 1, 2)), 1.0, 0, "weighted")
    path = str(tmp_path / "m.bnc")
    write_model(path, model)
    with pytest.raises(
        ModelError, match=r"no arc joins 'a0' and 'a1', both parents of 'a2', .*m\.bnc; learn with"
    ) as e:
        export(path, "bif", output=str(tmp_path / "out"))
    assert e.value.exit_code == 3
    assert not (tmp_path / "out").exists()
    assert export(path, "dot").arcs == 5


def test_what_floating_point_cannot_hold_is_not_written(tmp_path: Path) -> None:
    """Two attributes contradict each other by more than a probability can say."""
    dag = Dag(((), ()), (0, 1))
    weights = (np.array([[0.0, 1500.0], [0.0, 0.0]]), np.array([[1490.0, 0.0], [0.0, 0.0]]))
    model = Model(schema_of((2, 2), 2), dag, Tables(np.zeros(2), dag.families((2, 2)), weights), Recipe(), 9, "1")
    write_model(str(tmp_path / "m.bnc"), model)
    with pytest.raises(
        BncliError, match=r"would differ from the model by up to .*e-01 in probability on 10,000 random rows"
    ):
        export(str(tmp_path / "m.bnc"), "bif", output=str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("param", "option"),
    [("map", "more --smoothing"), ("acll", "more --pseudo-counts"), ("weighted", "a higher --penalty")],
)
def test_the_option_that_keeps_probabilities_from_zero_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, param: str, option: str
) -> None:
    recipe = Recipe(param=param)
    monkeypatch.setattr(step, "largest_difference", lambda *_: 1.0)
    path = learnt("iris.csv", tmp_path, param="map")
    write_model(path, replace(read_model(path), recipe=recipe))
    with pytest.raises(BncliError, match=f"learn with {option}"):
        export(path, "bif")


@pytest.mark.parametrize("scale", [300.0, 700.0])
def test_extreme_tables_that_can_be_held(tmp_path: Path, scale: float) -> None:
    dag = Dag(((), (0,)), (0, 1))
    rng = np.random.default_rng(0)
    weights = (rng.choice([-scale, scale], (3, 2)), rng.normal(size=(6, 2)))
    model = Model(schema_of((3, 2), 2), dag, Tables(np.zeros(2), dag.families((3, 2)), weights), Recipe(), 9, "1")
    write_model(str(tmp_path / "m.bnc"), model)
    assert (export(str(tmp_path / "m.bnc"), "bif").max_dp or 0.0) < 1e-9


def test_a_file_that_reads_back_as_another_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(data: bytes, where: str) -> object:
        network = read_bif(data, where)
        return replace(network, nodes=(replace(network.nodes[0], states=("a", "b", "c")), *network.nodes[1:]))

    monkeypatch.setattr(bif, "FORMAT", bif.FORMAT._replace(read=forgetful))
    with pytest.raises(BncliError, match="read back differs"):
        export(learnt("iris.csv", tmp_path), "bif", output=str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_arcs_into_nodes_without_the_class_are_named(tmp_path: Path) -> None:
    """0 -> 1 -> class -> 2: the model keeps no table of 1."""
    model = model_of(schema_of((2, 2, 2), 2), Dag(((), (0,), ()), (2,), (1,)), 1.0, 0)
    write_model(str(tmp_path / "m.bnc"), model)
    notes: list[Event] = []
    report = export(str(tmp_path / "m.bnc"), "bif", watch=notes.append)
    assert notes == [
        Note(
            "the class is not a parent of a1, so the model has no tables over the parents of this node, "
            "which is written without parents"
        )
    ]
    assert (report.nodes, report.arcs) == (3, 2)
    assert export(str(tmp_path / "m.bnc"), "json").arcs == 3


def test_bad_outputs_are_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "m.bnc").write_text("no model")
    with pytest.raises(UsageError, match=r"the input .* is the same file"):
        export(str(tmp_path / "m.bnc"), "bif", output=str(tmp_path / "m.bnc"))
    with pytest.raises(BncliError, match="there is no folder"):
        export(str(tmp_path / "m.bnc"), "bif", output=str(tmp_path / "no" / "out"))
    with pytest.raises(UsageError, match="not compressed"):
        export(str(tmp_path / "m.bnc"), "bif", output=str(tmp_path / "x.bif.gz"))
    with pytest.raises(ModelError):
        export(str(tmp_path / "m.bnc"), "bif", output=str(tmp_path / "out"))
    assert [path.name for path in tmp_path.iterdir()] == ["m.bnc"]


READERS = {"bif": ("bif", "bif"), "xmlbif": ("bifxml", "xml")}


# The import of pgmpy alone takes seconds.
@pytest.mark.parametrize("reader", [peers.by_pyagrum, pytest.param(peers.by_pgmpy, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("form", "learner"),
    every_value(
        ["bif", "xmlbif"],
        [("wine_holes.csv", "tan", "discriminative"), ("iris.csv", "kdb", "weighted"), ("tumours.csv", "tan", "map")],
    ),
)
def test_other_programs_say_what_score_says(
    tmp_path: Path, form: str, reader: Callable[[str], peers.Posterior], learner: tuple[str, str, str]
) -> None:
    (data, structure, param), which = learner, int(reader is peers.by_pgmpy)
    path = learnt(data, tmp_path, structure, param)
    target = str(tmp_path / f"out.{READERS[form][which]}")
    export(path, form, output=target)
    posterior = reader(target)
    model = read_model(path)
    scorer = compile_scorer(model)
    columns = read_columns(Source((str(SAMPLE_DATA / data),)))
    codes = encode_attributes(columns, model.schema, scorer.used).codes
    expected = np.exp(log_probabilities(scorer, codes))
    names = [model.schema.attributes[i].name for i in scorer.used]
    single = reader is peers.by_pyagrum and form == "bif"  # pyAgrum reads the numbers of BIF in single precision
    for t in range(0, columns.n_rows, columns.n_rows // 5):
        row = {name: int(column[t]) for name, column in zip(names, codes, strict=True)}
        np.testing.assert_allclose(
            posterior(model.schema.class_name, row), expected[:, t], atol=1e-6 if single else 1e-10
        )


def test_the_json_is_the_structure_file(tmp_path: Path) -> None:
    text = json.loads(export(learnt("iris.csv", tmp_path), "json").text)
    assert (text["format"], text["class"], text["method"]) == ("bncli-structure", "class", "tan")


@pytest.mark.parametrize("form", ["bif", "xmlbif"])
def test_a_general_network_that_sums_out_is_written_with_all_its_tables(tmp_path: Path, form: str) -> None:
    """Nodes above the class and far from it, too; a network that does not sum out would make roots of these."""
    dag = Dag(((), (0,), (1,), (1, 2), (3,)), (2,), (0,))
    model = network_model(dag, (2, 3, 2, 2, 3), 3, 7)
    write_model(str(tmp_path / "m.bnc"), model)
    report = export(str(tmp_path / "m.bnc"), form)
    assert report.max_dp is not None
    assert report.max_dp < 1e-12
    assert (report.nodes, report.arcs) == (6, 7)
    network = equivalent_network(model)
    assert network.structure == dag
    assert network.n_entries == 3 * 2 + 2 + 3 * 2 + 2 * 3 * 3 + 2 * 3 * 2 + 3 * 2


@pytest.mark.parametrize(
    ("form", "options"),
    every_value(
        ["python", "javascript", "onnx"],
        [
            {"structure": "tan", "param": "map"},
            {"structure": "kdb", "param": "weighted", "penalty": 1.0},
            {"structure": "kikuchi", "param": "kbma"},
            {"structure": "interactions", "penalty": 1.0},
            {"structure": "auto", "effort": 1},
        ],
    ),
)
def test_a_program_is_run_and_verified(
    tmp_path: Path, request: pytest.FixtureRequest, form: str, options: dict[str, Any]
) -> None:
    if options["structure"] != "tan":
        request.getfixturevalue("fewer_export_rows")
    if form == "javascript" and shutil.which("node") is None:
        pytest.skip("Node is not at hand")
    path = str(tmp_path / "m.bnc")
    fit(Source((str(SAMPLE_DATA / "wine_holes.csv"),)), Recipe.of(**options), output=path)
    report = export(path, form, output=str(tmp_path / "out"))
    assert report.rows is not None
    assert report.rows >= (10_000 if options["structure"] == "tan" else 1_000)
    assert report.max_dp is not None
    assert report.max_dp < 1e-12
    text = report.text.encode() if isinstance(report.text, str) else report.text
    assert (tmp_path / "out").read_bytes() == text


@pytest.mark.parametrize(("structure", "as_json"), every_value(["nb", "tan", "interactions"], [False, True]))
@pytest.mark.usefixtures("fewer_export_rows")
def test_a_scorecard_is_verified_and_its_rounding_measured(tmp_path: Path, structure: str, as_json: bool) -> None:
    path = str(tmp_path / "m.bnc")
    fit(Source((str(SAMPLE_DATA / "monks1.csv"),)), Recipe.of(structure=structure, penalty=1.0), output=path)
    report = export(path, "scorecard", output=str(tmp_path / "card"), options={"json": as_json})
    assert report.max_dp is not None
    assert report.max_dp < 1e-12
    assert report.rounding is not None
    assert 0 <= report.rounding.log_loss < 0.01
    assert 0 < report.rounding.max_dp < 0.05
    assert report.as_json()["rounding"] == report.rounding._asdict()
    finer = export(path, "scorecard", options={"digits": 4}).rounding
    assert finer is not None
    assert finer.max_dp < report.rounding.max_dp / 100


def test_a_scorecard_that_cannot_be_names_the_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"needs two classes, but the model has 3.*m\.bnc"):
        export(learnt("iris.csv", tmp_path), "scorecard", output=str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_scorecard_of_an_average_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "m.bnc")
    fit(Source((str(SAMPLE_DATA / "monks1.csv"),)), Recipe.of(structure="kikuchi", param="kbma"), output=path)
    with pytest.raises(ModelError, match=r"averages the probabilities of \d+ models, which are not sums of effects"):
        export(path, "scorecard")
    with pytest.raises(ModelError, match="averages the probabilities"):
        export(path, "onnx", options={"contributions": True})


@pytest.mark.parametrize(
    ("dialect", "options"),
    every_value(
        ["sqlite", "duckdb", "postgres"],
        [
            {"structure": "tan", "param": "weighted", "penalty": 1.0},
            {"structure": "kikuchi", "param": "kbma"},
            {"structure": "auto", "effort": 1},
        ],
    ),
)
def test_sql_is_run_and_verified(
    tmp_path: Path, request: pytest.FixtureRequest, dialect: str, options: dict[str, Any]
) -> None:
    if options["structure"] != "tan":
        request.getfixturevalue("fewer_export_rows")
    if dialect == "duckdb":
        pytest.importorskip("duckdb")
    if dialect == "postgres" and (postgres_programs() is None or options["structure"] == "kikuchi"):
        pytest.skip("PostgreSQL is not at hand, or the same was run in it already")
    path = str(tmp_path / "m.bnc")
    fit(Source((str(SAMPLE_DATA / "wine_holes.csv"),)), Recipe.of(**options), output=path)
    heard: list[Event] = []
    report = export(path, "sql", options={"dialect": dialect, "key": "row"}, watch=heard.append)
    assert (report.rows or 0) >= (10_000 if options["structure"] == "tan" else 1_000)
    assert report.max_dp is not None
    assert report.max_dp < 1e-12
    assert not heard


def test_a_view_scores_a_table_as_it_was_imported(tmp_path: Path) -> None:
    """All columns texts, missing ones as they stand in the file."""
    path = learnt("wine_holes.csv", tmp_path)
    text = export(path, "sql", options={"input": "wine", "key": "row"}).text
    score(path, Source((str(SAMPLE_DATA / "wine_holes.csv"),)), ScoreOutput(str(tmp_path / "s.csv")))
    with open(SAMPLE_DATA / "wine_holes.csv", newline="") as rows, closing(sqlite3.connect(":memory:")) as base:
        names, *content = csv.reader(rows)
        base.execute(f"CREATE TABLE wine (row integer, {', '.join(f'[{name}] TEXT' for name in names)})")
        marks = ", ".join("?" * (len(names) + 1))
        base.executemany(f"INSERT INTO wine VALUES ({marks})", [(i, *row) for i, row in enumerate(content)])
        base.executescript(text)
        found = base.execute("SELECT * FROM m_scores ORDER BY row").fetchall()
    labels = read_model(path).schema.labels
    with open(tmp_path / "s.csv", newline="") as scores:
        for row, score_row in zip(found, csv.DictReader(scores), strict=True):
            assert row[1] == score_row["prediction"]
            assert row[2:] == pytest.approx([float(score_row[f"p_{label}"]) for label in labels], abs=1e-12)


def test_a_program_that_cannot_be_run_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    heard: list[Event] = []
    report = export(learnt("iris.csv", tmp_path), "javascript", watch=heard.append)
    assert (report.rows, report.max_dp) == (None, None)
    assert heard == [Note("Node is not installed, so the export was not run")]


def test_a_program_that_says_something_else_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python, "FORMAT", python.FORMAT._replace(run=lambda _, rows: [[0.25, 0.5, 0.25]] * len(rows)))
    with pytest.raises(
        BncliError, match=r"the program would differ from the model by up to .* in probability on .* synthetic rows"
    ):
        export(learnt("iris.csv", tmp_path), "python", output=str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_program_takes_the_rows_of_a_file_as_they_are(tmp_path: Path) -> None:
    """The texts of a CSV file, missing ones too, give what `score` writes."""
    path = learnt("wine_holes.csv", tmp_path)
    space: dict[str, Any] = {}
    exec(export(path, "python").text, space)
    score(path, Source((str(SAMPLE_DATA / "wine_holes.csv"),)), ScoreOutput(str(tmp_path / "s.csv")))
    with open(SAMPLE_DATA / "wine_holes.csv", newline="") as rows, open(tmp_path / "s.csv", newline="") as scores:
        for row, score_row in zip(csv.DictReader(rows), csv.DictReader(scores), strict=True):
            for label, p in space["predict_proba"](row).items():
                assert p == pytest.approx(float(score_row[f"p_{label}"]), abs=1e-12)
