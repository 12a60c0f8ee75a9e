"""Inspect tells what a file is and everything in it."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bncli.engine.data.schema import CategoricalAttribute, Cuts, NumericAttribute, Schema
from bncli.engine.model import ChosenPenalty, Model, Tables, TriedPenalty
from bncli.engine.structures.named_structure import NamedDag
from bncli.engine.structures.structure import Dag, Family, Regions
from bncli.errors import ModelError
from bncli.files.artifacts.cuts import dump_cuts, write_cuts
from bncli.files.artifacts.model import write_model
from bncli.files.artifacts.structure import write_structure
from bncli.files.exports.structure_json import dump_structure
from bncli.recipe import Recipe
from bncli.steps.inspect import CutsReport, ModelReport, StructureReport, inspect

SCHEMA = Schema(
    "class",
    ("no", "yes"),
    (
        NumericAttribute("age", False, (3.0, 7.0), (27.5,)),
        CategoricalAttribute("colour", True, (4.0, 5.0, 1.0), ("blue", "red")),
        NumericAttribute("constant", False, (10.0,), ()),
    ),
)
DAG = Dag(((), (0,), ()), (0, 1), (), "tan", {})
FAMILIES = DAG.families(SCHEMA.cardinalities)
TABLES = Tables(np.array([-0.5, 0.5]), FAMILIES, (np.arange(4.0).reshape(2, 2), np.arange(12.0).reshape(6, 2)))
CHOSEN = ChosenPenalty(3.0, (TriedPenalty(300.0, 0.7), TriedPenalty(3.0, 0.1)))
MODEL = Model(SCHEMA, DAG, TABLES, Recipe(), 10, "0.1.0", CHOSEN)


@pytest.fixture
def model_path(tmp_path: Path) -> str:
    write_model(str(tmp_path / "m.bnc"), MODEL)
    return str(tmp_path / "m.bnc")


def test_cuts_of_a_sample_of_the_rows(tmp_path: Path) -> None:
    """The key is there only then."""
    path = str(tmp_path / "m.bnc")
    for sampled in (None, 7):
        write_model(path, replace(MODEL, sampled_rows=sampled))
        assert inspect(path).as_json().get("sampled_rows") == sampled
        write_cuts(path, Cuts("class", (NumericAttribute("age", False, (), (27.5,)),), sampled_rows=sampled))
        assert inspect(path).as_json().get("sampled_rows") == sampled
        assert ("sampled_rows" in Path(path).read_text()) == (sampled is not None)


def test_a_model(model_path: str) -> None:
    report = inspect(model_path)
    assert isinstance(report, ModelReport)
    content = report.as_json()
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert content.pop("recipe")["penalty"] == "cv"
    assert content.pop("penalty") == 3.0
    assert content.pop("penalty_cv") == [{"lambda": 300.0, "log_loss": 0.7}, {"lambda": 3.0, "log_loss": 0.1}]
    assert content.pop("arcs_cv") == []
    assert content == {
        "format": "bncli-model",
        "version": 4,
        "bncli_version": "0.1.0",
        "class": "class",
        "labels": ["no", "yes"],
        "attributes": [
            {"name": "age", "type": "numeric", "cuts": [27.5]},
            {"name": "colour", "type": "categorical", "levels": ["blue", "red"], "missing": True},
            {"name": "constant", "type": "numeric", "cuts": []},
        ],
        "unseen": "average",
        "missing_policy": "level",
        "missing_tokens": None,
        "structure": {
            "class": "class",
            "method": "tan",
            "options": {},
            "parents": {"age": ["class"], "colour": ["class", "age"]},
        },
        "structure_learned": "tan",
        "perfect": True,
        "param": "weighted",
        "rows": 10,
        "parameters": 18,
    }


def test_the_tables_of_a_model(model_path: str) -> None:
    report = inspect(model_path, tables=True)
    tables = report.as_json()["tables"]
    assert tables[0] == {"attributes": [], "shape": [2], "values": [-0.5, 0.5]}
    assert tables[1] == {"attributes": ["age"], "shape": [2, 2], "values": [[0.0, 1.0], [2.0, 3.0]]}
    assert (tables[2]["attributes"], tables[2]["shape"]) == (["colour", "age"], [3, 2, 2])
    # Colour missing (its last code), age above 27.5, class yes.
    assert tables[2]["values"][2][1][1] == TABLES.weights[1][2 * 2 + 1, 1]


def test_tables_that_see_attributes_coarsely_say_how(tmp_path: Path) -> None:
    age = NumericAttribute("age", True, (3.0, 7.0, 1.0, 2.0), (27.5, 41.0))
    schema = replace(SCHEMA, attributes=(age, SCHEMA.attributes[1]))
    families = (Family((0,), (4,), None), Family((0, 1), (3, 3), None, groupings=((0, 1, 1, 2), None)))
    tables = Tables(TABLES.bias, families, (np.arange(8.0).reshape(4, 2), np.arange(18.0).reshape(9, 2)))
    write_model(str(tmp_path / "m.bnc"), Model(schema, Regions(((0, 1),)), tables, Recipe(), 13, "0.1.0"))
    report = inspect(str(tmp_path / "m.bnc"), tables=True)
    _, single, pair = report.as_json()["tables"]
    assert "merges" not in single
    assert pair["merges"] == [{"name": "age", "type": "numeric", "cuts": [27.5], "missing": True}, None]
    assert pair["shape"] == [3, 3, 2]
    # Age above 27.5, colour missing, class yes.
    assert pair["values"][1][2][1] == tables.weights[1][1 * 3 + 2, 1]


def test_the_reports_are_the_engines_records(model_path: str) -> None:
    report = inspect(model_path)
    assert isinstance(report, ModelReport)
    assert [attribute.informative for attribute in report.model.schema.attributes] == [True, True, False]
    assert [attribute.cardinality for attribute in report.model.schema.attributes] == [2, 3, 1]
    assert report.structure.parents["colour"] == ("class", "age")


def test_a_cuts_file_by_its_content_not_its_name(tmp_path: Path) -> None:
    cuts = Cuts("class", (NumericAttribute("age", False, (), (27.5,)),), "mdl")
    write_cuts(str(tmp_path / "x.bnc"), cuts)
    report = inspect(str(tmp_path / "x.bnc"))
    assert report == CutsReport(cuts)
    assert report.as_json() == json.loads(dump_cuts(cuts))


def test_a_structure_file(tmp_path: Path) -> None:
    dag = NamedDag("class", {"age": ("class",)}, "nb")
    write_structure(str(tmp_path / "x"), dag)
    report = inspect(str(tmp_path / "x"))
    assert report == StructureReport(dag)
    assert report.as_json() == json.loads(dump_structure(dag)) | {"perfect": True}


@pytest.mark.parametrize(
    ("text", "kind", "class_name", "perfect"),
    [
        ("digraph { class -> age }", "dot", None, None),
        ('digraph { class [bncli_role="class"] class -> age }', "dot", "class", True),
        (
            "network n { } variable class { type discrete [ 1 ] { u }; } variable age { type discrete [ 1 ] { u }; }"
            "probability ( class ) { table 1; } probability ( age | class ) { (u) 1; }",
            "bif", None, None,
        ),
        (
            "<BIF><NETWORK><VARIABLE><NAME>class</NAME><OUTCOME>u</OUTCOME></VARIABLE>"
            "<VARIABLE><NAME>age</NAME><OUTCOME>u</OUTCOME></VARIABLE>"
            "<DEFINITION><FOR>class</FOR><TABLE>1</TABLE></DEFINITION>"
            "<DEFINITION><FOR>age</FOR><GIVEN>class</GIVEN><TABLE>1</TABLE></DEFINITION></NETWORK></BIF>",
            "xmlbif", None, None,
        ),
    ],
)  # fmt: skip
def test_a_network_of_another_program(
    tmp_path: Path, text: str, kind: str, class_name: str | None, perfect: bool | None
) -> None:
    (tmp_path / "x").write_text(text)
    report = inspect(str(tmp_path / "x"))
    assert isinstance(report, StructureReport)
    assert report.as_json() == {
        "format": kind,
        "class": class_name,
        "method": "file",
        "options": {},
        "parents": {"class": [], "age": ["class"]},
        "perfect": perfect,
    }


def test_whether_a_graph_is_perfect(tmp_path: Path) -> None:
    dag = NamedDag("class", {"age": ("class",), "colour": ("class",), "size": ("class", "colour", "age")})
    write_structure(str(tmp_path / "x"), dag)
    assert inspect(str(tmp_path / "x")).as_json()["perfect"] is False
    write_model(str(tmp_path / "m.bnc"), replace(MODEL, structure=Dag(((), (0,), ()), (1,))))
    assert inspect(str(tmp_path / "m.bnc")).as_json()["perfect"] is False


def test_a_table_is_no_such_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,class\n1,x\n")
    with pytest.raises(ModelError, match="this is a text file, perhaps a table, not a model, cuts, structure"):
        inspect(str(tmp_path / "a.csv"))


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no such file, .*m\.bnc"):
        inspect(str(tmp_path / "m.bnc"))
    reader, writer = os.pipe()
    os.close(writer)
    with pytest.raises(ModelError, match="bncli inspect cannot read a pipe"):
        inspect(f"/dev/fd/{reader}")
    os.close(reader)


def test_an_older_file_says_which_version_it_has() -> None:
    older = Path(__file__).parents[1] / "files" / "artifacts" / "version_1.bnc"
    report = inspect(str(older))
    assert isinstance(report, ModelReport)
    assert report.version == 1
