"""`--param lr-roos` through the command: what it counts, what it costs, where it goes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Bncli
from tests.sweeps import first_few


def test_the_free_numbers_are_counted(bncli: Bncli) -> None:
    """Of two labels half as many as discriminative frees, of three two thirds; the classifiers are the same."""
    for table, n_labels in (("iris.csv", 3), ("tumours.csv", 2)):
        words = ("fit", table, "--structure", "nb", "--penalty", "0", "--json", "-q")
        free, ours = (json.loads(bncli(*words, "--param", p).out) for p in ("discriminative", "lr-roos"))
        assert ours["parameters"] * n_labels == free["parameters"] * (n_labels - 1)
        assert ours["cll_start"] == pytest.approx(free["cll_start"], rel=1e-9)
        if ours["stopped_by"] != "separable":
            assert ours["cll"] == pytest.approx(free["cll"], rel=1e-7)


@pytest.mark.parametrize(("param", "columns"), [("lr-roos", 1), ("discriminative", 2)])
def test_flops_are_those_of_the_run(bncli: Bncli, tmp_path: Path, param: str, columns: int) -> None:
    """By hand, of the paper's formulas: 2 labels, and a one a row for every table and the bias."""
    words = ("--structure", "nb", "--param", param, "--optimizer", "cg", "--penalty", "0", "--trace", "t.csv")
    report = json.loads(bncli("fit", "tumours.csv", *words, "--max-iterations", "9", "--json", "-q").out)
    n_rows, r = report["rows"], report["parameters"]
    ones = n_rows * (1 + report["used"])
    value, gradient = ones * columns + n_rows * 4, ones * 2 + 4 * n_rows
    rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    assert len(rows) == 10
    for row in rows:
        iterations, evaluations = int(row["iteration"]), int(row["cll_evaluations"])
        expected = iterations * (10 * r + gradient) + (evaluations - 1) * (4 * r + value)
        assert int(row["flops"]) == expected


@pytest.mark.parametrize("structure", first_few(["kdb", "kikuchi", "hill-climb"]))
def test_what_is_learnt_is_scored_and_inspected(bncli: Bncli, structure: str) -> None:
    ran = bncli("fit", "tumours.csv", "--structure", structure, "--param", "lr-roos", "-o", "m.bnc", "--json", "-q")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["held_out"]["log_loss"] < json.loads(ran.out)["held_out"]["base_log_loss"]
    shown = json.loads(bncli("inspect", "m.bnc", "--tables", "--json").out)
    assert shown["param"] == "lr-roos"
    assert all(set(_first_column(table["values"])) == {0.0} for table in shown["tables"])
    assert bncli("score", "m.bnc", "tumours.csv", "-o", "p.csv").code == 0
    assert bncli("evaluate", "tumours.csv", "--model", "m.bnc").code == 0


def _first_column(values: list[object]) -> list[float]:
    """The numbers of the first label in nested lists."""
    first = values[0]
    if isinstance(first, list):
        return [number for nested in values for number in _first_column(nested)]  # type: ignore[arg-type]
    return [float(first)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--structure", "interactions"), "--param lr-roos cannot be used with"),
        (("--missing-policy", "marginalize"), "--missing-policy marginalize cannot be used with --param lr-roos"),
        (("--coding", "thermometer"), "--coding has no effect with"),
        (("--penalty-center", "1"), "--penalty-center 1 has no effect with --param lr-roos"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_line(bncli: Bncli, words: tuple[str, ...], said: str) -> None:
    ran = bncli("fit", "iris.csv", "--param", "lr-roos", *words)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1
