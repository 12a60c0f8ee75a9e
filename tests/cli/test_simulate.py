"""`bncli simulate` as it is typed: every origin, and one line for whatever does not fit together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bncli.catalogue import NETWORKS
from tests.cli.conftest import Bncli


@pytest.mark.parametrize("word", [*NETWORKS.words, "2.10.3.1000"])
def test_every_network(bncli: Bncli, word: str) -> None:
    ran = bncli("simulate", "--network", word, "--quiet")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert len(lines) == 1001
    assert lines[0].endswith(",class")
    assert bncli("simulate", "--network", word, "--quiet", "--seed", 0, "--threads", 1).out == ran.out
    assert bncli("simulate", "--network", word, "--quiet", "--seed", 1).out != ran.out


def test_every_option_of_a_network_has_its_effect(bncli: Bncli) -> None:
    size = ("--attributes", 6, "--values", "2-4", "--classes", 3, "--k", 2, "--rows", 50)
    report = json.loads(bncli("simulate", "--network", "kdb", *size, "-o", "x.csv", "--json").out)
    assert set(report) == {
        "schema_version",
        "model",
        "network",
        "output",
        "rows",
        "attributes",
        "classes",
        "arcs",
        "perfect",
        "probabilities",
        "missing",
        "holes",
        "network_file",
        "model_file",
        "seconds",
    }
    assert [report[key] for key in ("model", "network", "output")] == [None, "kdb", "x.csv"]
    assert (report["missing"], report["holes"]) == (None, 0)
    assert [report[key] for key in ("rows", "attributes", "classes", "arcs")] == [50, 6, 3, 6 + 0 + 1 + 2 * 4]
    assert set(report["seconds"]) == {"network", "rows", "total"}
    mild, steep = (
        bncli("simulate", "--network", "conditioning", "--exponent", a, "--rows", 2000, "-q").out for a in ("0", "2.5")
    )
    assert "1,0,0,0\n" in mild
    assert "1,0,0,0\n" not in steep


def test_files_for_the_other_commands(bncli: Bncli, tmp_path: Path) -> None:
    ran = bncli("simulate", "--network", "tan", "-o", "r.csv", "--network-out", "n.json", "--model-out", "m.bnc")
    assert ran.err.splitlines() == [
        "rows        1,000, with 10 attributes and the class (2 labels)",
        "drawn from  tan: 19 arcs, perfect, 170 probabilities",
        "network     n.json",
        "model       m.bnc",
        "rows in     r.csv",
    ]
    assert bncli("fit", "r.csv", "--structure", "n.json", "--param", "map", "-o", "f.bnc").code == 0
    assert bncli("score", "m.bnc", "r.csv").code == 0
    assert json.loads(bncli("inspect", "m.bnc", "--json").out)["structure"]["method"] == "random"
    again = bncli("simulate", "m.bnc", "--rows", 7)
    assert len(again.out.splitlines()) == 8
    assert "drawn from  m.bnc: 19 arcs" in again.err
    assert (tmp_path / "r.csv").read_text().splitlines()[0] == again.out.splitlines()[0]


def test_rows_to_a_closed_pipe(bncli: Bncli) -> None:
    assert bncli("simulate", "--network", "nb", "--rows", 3, "-o", "-", "-q").out.count("\n") == 4


def test_missing_values_leave_the_other_values_alone(bncli: Bncli) -> None:
    ran = bncli("simulate", *TAN, "--rows", 200, "--seed", 4, "--missing", "0.25")
    whole = bncli("simulate", *TAN, "--rows", 200, "--seed", 4, "-q").out
    missing = _missing(ran.out)
    assert ran.err.splitlines()[2] == f"missing     {missing} of 2,000 values ({missing / 2000:.1%})"
    assert 400 < missing < 600
    for with_missing, without in zip(ran.out.splitlines(), whole.splitlines(), strict=True):
        *values, label = zip(with_missing.split(","), without.split(","), strict=True)
        assert all(found in ("", drawn) for found, drawn in values)
        assert label[0] == label[1]
    report = json.loads(
        bncli("simulate", *TAN, "--rows", 200, "--seed", 4, "--missing", ".25", "-o", "h.csv", "--json").out
    )
    assert (report["missing"], report["holes"]) == (0.25, missing)
    assert bncli("simulate", *TAN, "--rows", 200, "--seed", 4, "--missing", "0", "-q").out == whole


def _missing(out: str) -> int:
    return sum(value == "" for line in out.splitlines() for value in line.split(","))


def test_missing_values_of_a_model_that_draws_them(bncli: Bncli) -> None:
    """A missing value that counts as a value is drawn like any other."""
    bncli("fit", "wine_holes.csv", "--param", "map", "-o", "w.bnc")
    plain, asked = (bncli("simulate", "w.bnc", "--rows", 50, *more) for more in ((), ("--missing-from-model",)))
    assert asked.out == plain.out
    assert f"missing     {_missing(plain.out)} of 650 values" in plain.err


TAN = ["--network", "tan"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "there is no network to draw from"),
        (["iris.bnc", *TAN], "MODEL and --network were both given"),
        (["iris.bnc", "--k", "2"], "--k has no effect with a MODEL"),
        (["iris.bnc", "--model-out", "m.bnc"], "--model-out has no effect with a MODEL"),
        (["-"], "a model cannot be read from the standard input"),
        (["--network", "tann"], "unknown --network 'tann'; did you mean tan?"),
        (["--network", "1.2.3"], "unknown --network '1.2.3'; choose nb, tan, kdb, conditioning or a name"),
        (["--network", "-1.2.3.4"], "unknown --network"),
        ([*TAN, "--k", "2"], "--k has no effect with --network tan; use it with --network kdb"),
        ([*TAN, "--exponent", "2"], "--exponent has no effect with --network tan"),
        (["--network", "conditioning", "--values", "2"], "--values has no effect with --network conditioning"),
        (["--network", "1.2.3.4", "--classes", "2"], "--classes has no effect with --network 1.2.3.4"),
        (["--network", "1.2.3.4", "--rows", "2"], "--rows has no effect with --network 1.2.3.4; the name contains"),
        (["--network", "1.2.1.4"], "a random network cannot have 1 values per attribute; the range is from 2 to"),
        (["--network", "900.1000.2.4"], "the tables of this network would have about 10^271 probabilities or more"),
        ([*TAN, "--rows", "0"], "'0' is not a whole number of at least 1"),
        ([*TAN, "--rows", "1e3"], "'1e3' is not a whole number"),
        ([*TAN, "--rows", "9" * 30], "is too large: the maximum is"),
        ([*TAN, "--seed", "-1"], "'-1' is not a whole number"),
        ([*TAN, "--values", "2-"], "'' is not a whole number"),
        ([*TAN, "--values", "4-2"], "a random network cannot have 4-2 values per attribute; give the smaller"),
        ([*TAN, "--values", "2-4-6"], "'4-6' is not a whole number"),
        ([*TAN, "--classes", "1"], "'1' is not a whole number of at least 2"),
        ([*TAN, "--attributes", "1000000"], "a random network cannot have 1000000 attributes; the range is from 1 to"),
        (["--network", "conditioning", "--exponent", "nan"], "'nan' is not a finite number"),
        (["--network", "conditioning", "--exponent", "301"], "the exponent 301 is not between 0 and 300"),
        ([*TAN, "--missing", "1"], "'1' is not a number of at least 0 and below 1"),
        ([*TAN, "--missing", "-0.1"], "'-0.1' is not a number of at least 0 and below 1"),
        ([*TAN, "--missing", "nan"], "'nan' is not a number of at least 0 and below 1"),
        ([*TAN, "--missing", "25%"], "'25%' is not a number of at least 0 and below 1"),
        ([*TAN, "--missing-from-model"], "--missing-from-model has no effect with --network; give a MODEL"),
        (["m.bnc", "--missing", "0", "--missing-from-model"], "--missing and --missing-from-model were both given"),
        ([*TAN, "--json"], "--json needs -o FILE"),
        ([*TAN, "--network-out", "-"], "the standard output can take only one result"),
        ([*TAN, "-o", "x.csv", "--json", "--model-out", "-"], "the standard output can take only one result"),
        ([*TAN, "-o", "x.jsonl"], "rows are written as CSV or Parquet"),
        ([*TAN, "-o", "x.csv.gz"], "not compressed"),
        ([*TAN, "--output-format", "arrow"], "'arrow' is not one of 'csv', 'parquet'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_does_not_fit_together(bncli: Bncli, tmp_path: Path, words: list[str], message: str) -> None:
    before = sorted(tmp_path.iterdir())
    ran = bncli("simulate", *words)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert ran.err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


def test_models_that_are_none(bncli: Bncli) -> None:
    bncli("fit", "iris.csv", "--penalty", "1")
    ran = bncli("simulate", "iris.bnc")
    assert (ran.code, ran.out) == (3, "")
    assert "'weighted'" in ran.err
    assert "iris.bnc; learn the model with --param map" in ran.err
    assert bncli("simulate", "iris.csv").code == 3
    assert bncli("simulate", "nothing.bnc").code == 3
