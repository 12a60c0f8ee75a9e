"""`verify --disclosure` and `export --min-rows` through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Bncli


@pytest.fixture
def model(bncli: Bncli) -> str:
    lines = ["colour,age,y"]
    lines += [f"{colour},{age},{y}" for colour, age, y in 20 * [("red", 1, "a"), ("blue", 5, "b")]]
    lines += ["green,1,a", "green,5,b", "grey,9,b", "red,9,b"]
    Path("d.csv").write_text("\n".join(lines) + "\n")
    cuts = {"format": "bncli-cuts", "version": 1, "class": "y", "attributes": []}
    cuts["attributes"] = [
        {"name": "colour", "type": "categorical", "levels": ["blue", "green", "grey", "red"]},
        {"name": "age", "type": "numeric", "cuts": [3, 7]},
    ]
    Path("cuts.json").write_text(json.dumps(cuts))
    fit = ("fit", "d.csv", "--cuts", "cuts.json", "--structure", "nb", "--param", "map", "-o", "m.bnc", "-q")
    ran = bncli(*fit)
    assert ran.code == 0, ran.err
    return "m.bnc"


def test_what_rests_on_few_rows(bncli: Bncli, model: str) -> None:
    found = json.loads(bncli("verify", model, "--disclosure", "--json").out)["disclosure"]
    assert found["min_rows"] == 10
    assert [(value["attribute"], value["value"], value["rows"]) for value in found["values"]] == [
        ("colour", "green", 2),
        ("colour", "grey", 1),
        ("age", ">7", 2),
    ]
    assert [(table["attributes"], table["below"]) for table in found["tables"]] == [(["colour"], 2), (["age"], 1)]
    ran = bncli("verify", model, "--disclosure", "--min-rows", "2")
    assert ran.code == 0
    assert "1 value has fewer than 2 training rows" in ran.err
    assert "colour=grey: 1 row, in frequencies, tables, explanations" in ran.err


@pytest.mark.usefixtures("fewer_export_rows")
def test_pooled_exports(bncli: Bncli, model: str) -> None:
    ran = bncli("export", model, "-o", "m.py", "--min-rows", "3", "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["pooled"] == [
        {"attribute": "colour", "values": ["green", "grey"], "into": "other"},
        {"attribute": "age", "values": ["3..7", ">7"], "into": ">3"},
    ]
    spaces: dict[str, object] = {}
    exec(Path("m.py").read_text(), spaces)
    predict = spaces["predict_proba"]
    assert predict({"colour": "green", "age": 5}) == predict({"colour": "grey", "age": 9})  # type: ignore[operator]
    for name in ("m.bif", "m.js"):
        assert bncli("export", model, "-o", name, "--min-rows", "3").code == 0
    assert "green" not in Path("m.bif").read_text()
    assert "pooled" not in json.loads(bncli("export", model, "-o", "n.py", "--json").out)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("verify", "m.bnc", "--min-rows", "5"), 2, "--min-rows has no effect without --disclosure"),
        (("export", "m.bnc", "--to", "dot", "--min-rows", "5"), 2, "--min-rows has no effect with --to dot"),
        (("export", "m.bnc", "--to", "bif", "--min-rows", "30"), 3, "the label 'a' has only 21 training rows"),
        (("verify", "m.bnc", "--disclosure", "--min-rows", "0"), 2, "--min-rows"),
    ],
)
def test_refusals(bncli: Bncli, model: str, words: tuple[str, ...], code: int, said: str) -> None:
    ran = bncli(*words)
    assert ran.code == code
    assert said in ran.err
