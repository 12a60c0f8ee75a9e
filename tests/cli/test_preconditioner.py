"""`--preconditioner off`: the iterates of scipy on a likelihood written out row by row, and what Zaidi et al. saw."""

from __future__ import annotations

import csv
import json
import math
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize

from bncli.files.artifacts.model import read_model
from tests.cli.conftest import SAMPLE_DATA, Bncli

Array = NDArray[np.float64]
Row = dict[str, str]
Key = tuple[str, ...]

PARENTS = {
    "balance_scale.csv": {"left_weight": [], "left_distance": ["left_weight"], "right_weight": ["left_weight"]},
    "tic_tac_toe.csv": {"top-left-square": [], "middle-middle-square": [], "top-middle-square": ["top-left-square"]},
}
"""Networks over columns of which each has a level a value; the class is a parent of all."""
NAIVE = ("wine_holes.csv", "--structure", "nb")


# --- the likelihood, by loops over rows -----------------------------------------------------------------------------


class Slow:
    """A parameter for every cell that some row is in, and every class: W = w ln theta, or W itself."""

    def __init__(self, rows: Sequence[Row], parents: dict[str, list[str]], param: str) -> None:
        self.rows, self.parents = rows, parents
        self.classes = sorted({row["class"] for row in rows})
        self.keys = sorted({(*key, y) for row in rows for key in self.cells(row) for y in self.classes})
        self.place = {key: i for i, key in enumerate(self.keys)}
        logs = np.array([math.log(self.theta(key)) for key in self.keys])
        self.scale, self.start = (logs, np.ones(len(logs))) if param == "weighted" else (np.ones(len(logs)), logs)

    def cells(self, row: Row) -> list[Key]:
        return [("",), *((child, row[child], *(row[p] for p in joined)) for child, joined in self.parents.items())]

    def theta(self, key: Key) -> float:
        """Laplace: one row more for every value of the child."""
        column, *values, y = key
        if not column:
            return (sum(row["class"] == y for row in self.rows) + 1) / (len(self.rows) + len(self.classes))
        names = (column, *self.parents[column])
        alike = [row for row in self.rows if row["class"] == y and [row[n] for n in names[1:]] == values[1:]]
        n_values = len({row[column] for row in self.rows})
        return (sum(row[column] == values[0] for row in alike) + 1) / (len(alike) + n_values)

    def __call__(self, p: Array) -> tuple[float, Array]:
        """-CLL and its gradient."""
        value, gradient, tables = 0.0, np.zeros(len(p)), p * self.scale
        for row in self.rows:
            places = [[self.place[(*cell, y)] for cell in self.cells(row)] for y in self.classes]
            scores = [math.fsum(tables[i] for i in listed) for listed in places]
            total = math.fsum(map(math.exp, scores))
            for y, listed, score in zip(self.classes, places, scores, strict=True):
                wrong = math.exp(score) / total - (y == row["class"])
                value -= (score - math.log(total)) * (y == row["class"])
                for i in listed:
                    gradient[i] += wrong * self.scale[i]
        return value, gradient


def iterates(slow: Callable[[Array], tuple[float, Array]], start: Array, n: int) -> list[tuple[float, float, int]]:
    """(CLL, norm of the gradient, evaluations) after every iteration of scipy's L-BFGS-B as it comes, and at first."""
    values: list[tuple[float, float]] = []
    found: list[tuple[float, float, int]] = []

    def counted(p: Array) -> tuple[float, Array]:
        value, gradient = slow(p)
        values.append((-value, float(np.linalg.norm(gradient))))
        return value, gradient

    def told(intermediate_result: Any) -> None:
        assert values[-1][0] == -intermediate_result.fun
        found.append((*values[-1], len(values)))

    optimize.minimize(counted, start, jac=True, method="L-BFGS-B", callback=told, options={"maxiter": n})
    return [(*values[0], 1), *found]


@pytest.mark.parametrize("optimizer", ["lbfgs", "newton"])
@pytest.mark.parametrize("param", ["weighted", "discriminative"])
@pytest.mark.parametrize("table", PARENTS)
def test_the_first_iterates_are_those_of_scipy(
    bncli: Bncli, tmp_path: Path, table: str, param: str, optimizer: str
) -> None:
    rows = list(csv.DictReader((SAMPLE_DATA / table).read_text().splitlines()))[::3]
    parents = PARENTS[table]
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [*parents, "class"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    document = {
        "format": "bncli-structure",
        "version": 1,
        "class": "class",
        "parents": {child: ["class", *joined] for child, joined in parents.items()},
    }
    (tmp_path / "net.json").write_text(json.dumps(document))
    typed = [word for child in parents for word in ("--categorical", child)]
    ran = bncli(
        *("fit", "rows.csv", *typed, "--group-levels", "off", "--structure", "net.json", "--smoothing", "laplace:1"),
        *("--param", param, "--penalty", "0", "--optimizer", optimizer, "--preconditioner", "off"),
        *("--trace", "trace.csv", "-q"),
    )
    assert ran.code == 0, ran.err
    told = list(csv.DictReader((tmp_path / "trace.csv").read_text().splitlines()))
    slow = Slow(rows, parents, param)
    theirs = iterates(slow, slow.start, 12)
    assert min(len(told), len(theirs)) >= 9
    for row, (cll, norm, evaluations) in zip(told, theirs, strict=False):
        assert float(row["cll"]) == pytest.approx(cll, rel=1e-9)
        assert float(row["gradient_norm"]) == pytest.approx(norm, rel=1e-4)
        assert int(row["cll_evaluations"]) == evaluations
    # the first trial goes 1 along the gradient; on one of the tables that is too far, and a shorter one is taken
    first = 1 / theirs[0][1]
    if table == "tic_tac_toe.csv":
        assert theirs[1][2] > 2
        assert float(told[1]["step"]) != pytest.approx(first, rel=1e-9)
    else:
        assert theirs[1][2] == 2
        assert float(told[1]["step"]) == pytest.approx(first, rel=1e-9)


# --- what is seen of it ---------------------------------------------------------------------------------------------


def iterations(bncli: Bncli, *words: str) -> tuple[int, float]:
    """Of a fit of tumours without penalty."""
    ran = bncli("fit", "tumours.csv", "--penalty", "0", "--optimizer", "lbfgs", *words, "--json", "-q")
    report = json.loads(ran.out)
    assert report["stopped_by"] == "tolerance"
    return report["iterations"], report["cll"]


def test_weights_take_fewer_iterations_than_free_tables_where_nothing_is_conditioned(bncli: Bncli) -> None:
    """Zaidi et al. 2017; with the preconditioner both take as many."""
    taken, ends = {}, []
    for param in ("weighted", "discriminative"):
        for switch in ("on", "off"):
            words = ("--structure", "nb", "--param", param, "--preconditioner", switch)
            taken[param, switch], end = iterations(bncli, *words)
            ends.append(end)
    assert taken["weighted", "off"] < 0.75 * taken["discriminative", "off"]
    assert abs(taken["weighted", "on"] - taken["discriminative", "on"]) <= 2
    assert ends == pytest.approx([ends[0]] * 4, rel=1e-8)


@pytest.mark.parametrize(
    "words",
    [
        ("tumours.csv", "--param", "extended"),
        ("tumours.csv", "--param", "lr", "--structure", "nb"),
        ("tumours.csv", "--param", "weighted", "--level", "2", "--penalty-center", "1"),
        ("tumours.csv", "--structure", "kikuchi", "--max-order", "2", "--param", "discriminative"),
        ("tumours.csv", "--param", "discriminative", "--coding", "thermometer"),
        ("tumours.csv", "--structure", "nb", "--penalty", "cv"),
        pytest.param(
            (*NAIVE, "--param", "extended", "--missing-policy", "marginalize", "--early-stop", "none"),
            marks=pytest.mark.slow,
        ),
        (*NAIVE, "--param", "apn"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("optimizer", ["lbfgs", pytest.param("newton", marks=pytest.mark.slow)])
def test_wherever_they_run_they_run_without_a_preconditioner(
    bncli: Bncli, words: tuple[str, ...], optimizer: str
) -> None:
    """And arrive where they do with it."""
    penalty = () if {"--penalty", "apn", "--missing-policy"} & {*words} else ("--penalty", "1")
    reports = {}
    for switch in ("on", "off"):
        typed = (*words, *penalty, "--optimizer", optimizer, "--preconditioner", switch, "-o", f"{switch}.bnc")
        ran = bncli("fit", *typed, "--json", "-q")
        assert ran.code == 0, ran.err
        reports[switch] = json.loads(ran.out)
    assert reports["off"]["iterations"] > 0
    for name in ("cll", "ll"):
        if reports["on"].get(name) is not None:
            assert reports["off"][name] == pytest.approx(reports["on"][name], rel=1e-4)
    assert read_model("off.bnc").recipe.preconditioner == "off"
    assert read_model("on.bnc").recipe.preconditioner is None


@pytest.mark.parametrize("optimizer", ["lbfgs", "newton"])
def test_cross_tuning_counts_the_iterations_of_the_published_method(bncli: Bncli, optimizer: str) -> None:
    words = ("--structure", "nb", "--param", "extended", "--missing-policy", "marginalize", "--optimizer", optimizer)
    ran = bncli("fit", "wine_holes.csv", *words, "--preconditioner", "off", "--json", "-q")
    report = json.loads(ran.out)
    assert report["stopped_by"] == "cross-tuning"
    assert report["cll"] > report["cll_start"]


# --- the option -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", ["bfgs", "cg", "cgb"])
@pytest.mark.parametrize("switch", ["on", "off"])
def test_methods_that_have_none_refuse_it(bncli: Bncli, optimizer: str, switch: str) -> None:
    ran = bncli("fit", "iris.csv", "--optimizer", optimizer, "--preconditioner", switch)
    assert ran.code == 2
    assert f"--preconditioner has no effect with --optimizer {optimizer}" in ran.err
    assert ran.err.count("\n") == 1


def test_the_default_leaves_files_as_they_were(bncli: Bncli, tmp_path: Path) -> None:
    for name, words in (("untyped", ()), ("on", ("--preconditioner", "on")), ("off", ("--preconditioner", "off"))):
        assert (
            bncli("fit", "iris.csv", "--structure", "tan", "--penalty", "1", *words, "-o", f"{name}.bnc", "-q").code
            == 0
        )
    assert (tmp_path / "untyped.bnc").read_bytes() == (tmp_path / "on.bnc").read_bytes()
    recipes = {n: json.loads(bncli("inspect", f"{n}.bnc", "--json").out)["recipe"] for n in ("on", "off")}
    assert "preconditioner" not in recipes["on"]
    assert recipes["off"] == {**recipes["on"], "preconditioner": "off"}


def test_threads_change_nothing(bncli: Bncli, tmp_path: Path) -> None:
    shutil.copy(SAMPLE_DATA / "tic_tac_toe.csv", tmp_path / "t.csv")
    for threads in (1, 3):
        words = ("--preconditioner", "off", "--optimizer", "lbfgs", "--penalty", "0")
        assert bncli("fit", "t.csv", *words, "--threads", threads, "-o", f"{threads}.bnc").code == 0
    assert (tmp_path / "1.bnc").read_bytes() == (tmp_path / "3.bnc").read_bytes()
