"""`bncli encode`, and the commands that take its file as their table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Bncli, prepare


def test_every_learning_command_takes_the_file(bncli: Bncli, tmp_path: Path) -> None:
    ran = bncli("encode", "iris.csv")
    assert (ran.code, ran.out) == (0, "")
    assert "written     iris.codes" in ran.err
    (tmp_path / "iris.codes").rename(tmp_path / "renamed")  # told by what is in it
    assert bncli("fit", "renamed", "--param", "map", "-o", "m.bnc").code == 0
    assert bncli("learn-structure", "renamed", "-o", "s.json").code == 0
    assert bncli("fit", "renamed", "--structure", "s.json", "--param", "map", "-o", "n.bnc").code == 0
    assert (tmp_path / "m.bnc").read_bytes() == (tmp_path / "n.bnc").read_bytes()
    assert (
        bncli(
            "compare",
            "renamed",
            "monks1.csv",
            "--learner",
            "a=--param map",
            "--learner",
            "b=--structure nb --param map",
            "--folds",
            2,
            "--jobs",
            1,
        ).code
        == 0
    )
    assert bncli("score", "m.bnc", "iris.csv", "-o", "scores.csv").code == 0


def test_cross_validation_is_that_of_the_table(bncli: Bncli) -> None:
    bncli("discretize", "wine_holes.csv", "--cuts-out", "cuts.json")
    bncli("encode", "wine_holes.csv", "-o", "w.codes")
    words = ("--structure", "nb", "--penalty", 1, "--folds", 2, "--json")
    table = json.loads(bncli("evaluate", "wine_holes.csv", "--cuts", "cuts.json", *words).out)
    codes = json.loads(bncli("evaluate", "w.codes", *words).out)
    assert {k: v for k, v in codes.items() if k not in ("seconds", "folds")} == {
        k: v for k, v in table.items() if k not in ("seconds", "folds")
    }


def test_auto_takes_the_codes_and_says_so(bncli: Bncli) -> None:
    bncli("encode", "iris.csv")
    ran = bncli("fit", "iris.codes", "--structure", "auto", "--effort", 1, "-o", "a.bnc")
    assert ran.code == 0
    assert "uses the cuts of the codes" in ran.err


def test_compare_says_which_cuts_of_a_learner_are_idle(bncli: Bncli) -> None:
    bncli("encode", "iris.csv")
    learners = ("a=--structure nb --param map", "b=--structure nb --param map --discretize equal-width --bins 3")
    words = [word for learner in learners for word in ("--learner", learner)]
    ran = bncli("compare", "iris.codes", "monks1.csv", *words, "--folds", 2, "--jobs", 1)
    assert ran.code == 0
    why = "because its rows are already discretized"
    note = f"Note: learner 'b' is run on iris.codes without --discretize and --bins, {why}"
    assert [line for line in ran.err.splitlines() if "codes" in line] == [note]
    assert "goes without" not in bncli("compare", "iris.csv", *words, "--folds", 2, "--jobs", 1).err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            "fit iris.codes --discretize equal-width",
            "--discretize has no effect on iris.codes, whose rows are codes",
        ),
        (
            "fit iris.codes --bins 5",
            "--bins has no effect on iris.codes, whose rows are codes; use it with bncli encode",
        ),
        ("evaluate iris.codes --bins 5", "--bins has no effect on iris.codes"),
        ("fit iris.codes --cuts cuts.json", "--cuts has no effect"),
        ("fit iris.codes --ignore petal_width", "--ignore has no effect"),
        ("fit iris.codes --class petal_width", "the class of iris.codes is 'class'"),
        ("encode iris.codes -o again.codes", "already codes"),
        ("encode iris.csv -o iris.csv", "iris.csv"),
        ("encode iris.csv -o i.parquet", "cannot write 'i.parquet': the output must be a codes file"),
        ("encode iris.csv -o i.codes.gz", "not compressed"),
        ("score m.bnc iris.codes", "contains codes"),
        (
            "evaluate iris.codes --model m.bnc",
            "codes, but a model is tested on the values of a table, iris.codes;",
        ),
        ("evaluate iris.csv --param map --test iris.codes", "give the original table"),
        ("calibrate m.bnc iris.codes -o c.bnc", "codes, but a model is tested"),
        ("describe iris.codes", "contains codes"),
        ("fit iris.codes monks1.csv -o b.bnc", "contains codes"),
    ],
)
def test_what_makes_no_sense_with_codes_is_refused(bncli: Bncli, words: str, told: str) -> None:
    prepare(bncli, "encode iris.csv", "discretize iris.csv --cuts-out cuts.json", "fit iris.csv --param map -o m.bnc")
    ran = bncli(*words.split())
    of_table = ("describe iris.codes", "fit iris.codes monks1.csv -o b.bnc")
    assert ran.code == (3 if words.startswith("score") else 1 if words in of_table else 2)
    assert not any(Path(name).exists() for name in ("i.parquet", "i.codes.gz"))
    assert told in ran.err
    assert len(ran.err.splitlines()) == 1
