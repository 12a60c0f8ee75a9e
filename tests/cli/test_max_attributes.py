"""`--max-attributes` from the command line and from Python."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import bncli as package
from bncli.files.artifacts.model import read_model
from tests.cli.conftest import SAMPLE_DATA, Bncli, prepare

LEARNER = ("--structure", "nb", "--param", "map")


@pytest.fixture(autouse=True)
def wine(bncli: Bncli) -> None:
    shutil.copy(SAMPLE_DATA / "wine.csv", "wine.csv")


@pytest.mark.slow
def test_fit_score_and_inspect(bncli: Bncli) -> None:
    ran = bncli("fit", "wine.csv", "--max-attributes", "3", "-o", "m.bnc")
    assert ran.code == 0
    notes = [line for line in ran.err.splitlines() if "--max-attributes 3" in line]
    assert len(notes) == 1
    assert "left out 10 of 13 attributes" in notes[0]
    assert notes[0].endswith("and 5 more")
    model = read_model("m.bnc")
    assert model.recipe.max_attributes == 3
    assert len(model.schema.attributes) == 3
    assert bncli("score", "m.bnc", "wine.csv", "--labels-only", "-q").code == 0  # the other columns do no harm
    assert json.loads(bncli("inspect", "m.bnc", "--json").out)["recipe"]["max_attributes"] == 3
    assert "max-attributes" in bncli("inspect", "m.bnc").out
    bncli("fit", "wine.csv", "--max-attributes", "3", "-o", "again.bnc", "--threads", "2")
    assert Path("m.bnc").read_bytes() == Path("again.bnc").read_bytes()


@pytest.mark.slow
def test_a_limit_that_leaves_nothing_out_gives_the_same_bytes(bncli: Bncli) -> None:
    for words in ((), LEARNER):
        bncli("fit", "wine.csv", *words, "-q", "-o", "all.bnc")
        for n in ("13", "99"):
            ran = bncli("fit", "wine.csv", *words, "--max-attributes", n, "-q", "-o", "m.bnc")
            assert (ran.code, ran.err) == (0, "")
            assert Path("m.bnc").read_bytes() == Path("all.bnc").read_bytes()


@pytest.mark.slow
def test_evaluate_compare_and_learn_structure(bncli: Bncli) -> None:
    losses = []
    for words in ((), ("--max-attributes", "2"), ("--max-attributes", "1")):
        ran = bncli("evaluate", "wine.csv", *LEARNER, *words, "--json", "-q")
        assert ran.code == 0
        losses.append(json.loads(ran.out)["log_loss"])
    assert losses[1] < losses[2]
    ran = bncli("compare", "wine.csv", "--learner", "few=--structure nb --param map --max-attributes 2",
                "--learner", "all=--structure nb --param map", "--jobs", "1", "--json", "-q")  # fmt: skip
    assert ran.code == 0
    ran = bncli("learn-structure", "wine.csv", "--max-attributes", "4", "--json", "-q")
    assert ran.code == 0
    assert json.loads(ran.out)["attributes"] == 4


def test_from_python() -> None:
    with pytest.warns(UserWarning, match="max_attributes=2 left out 11 of 13 attributes"):
        model = package.fit(str(SAMPLE_DATA / "wine.csv"), max_attributes=2, structure="nb", param="map")
    model.save("m.bnc")
    assert len(read_model("m.bnc").schema.attributes) == 2


@pytest.mark.parametrize(("words", "reason"), [
    ("fit wine.csv --max-attributes 0", "'0' is not a whole number of at least 1"),
    ("fit wine.csv --max-attributes few", "'few' is not a whole number of at least 1"),
    ("fit wine.csv --max-attributes 2 --structure auto", "no effect with --structure auto"),
    ("fit wine.csv --max-attributes 2 --structure s.json", "no effect with the structure in s.json"),
    ("fit wine.csv --max-attributes 2 --cuts c.json", "no effect with --cuts FILE"),
    ("fit wine.codes --max-attributes 2", "no effect on wine.codes, whose rows are codes"),
    ("fit --from-counts w.counts --param map --max-attributes 2", "no effect with --from-counts FILE"),
])  # fmt: skip
def test_refusals_of_one_line(bncli: Bncli, words: str, reason: str) -> None:
    prepare(
        bncli,
        "learn-structure wine.csv -o s.json -q",
        "discretize wine.csv --cuts-out c.json -q",
        "encode wine.csv -o wine.codes -q",
        "count wine.csv --cuts c.json -o w.counts -q",
    )
    ran = bncli(*words.split(), "-o", "m.bnc")
    assert ran.code == 2
    assert reason in ran.err
    assert not Path("m.bnc").exists()
