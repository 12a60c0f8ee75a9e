"""`--prior-network FILE --prior-rows N`: an expert's network and a table, from the command line to the model."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest

import bncli as python_interface
from bncli.files.artifacts.model import read_model

from .conftest import SAMPLE_DATA, Bncli, Ran, prepare

TREE = ("--structure", "asthma.bif", "--param", "map")


@pytest.fixture
def asthma(bncli: Bncli) -> Bncli:
    """An expert's network, `asthma.bnc`, and 80 rows drawn from it, `seen.csv`."""
    shutil.copy(SAMPLE_DATA / "asthma.bif", "asthma.bif")
    prepare(bncli, "import asthma.bif -o asthma.bnc -q", "simulate asthma.bnc --rows 80 -o seen.csv -q")
    return bncli


def fit(bncli: Bncli, rows: object, *options: object, output: str = "m.bnc") -> Ran:
    prior = ("--prior-network", "asthma.bnc", "--prior-rows", rows)
    return bncli("fit", "seen.csv", *(options or TREE), *prior, "-o", output, "-q")


def scores(bncli: Bncli, model: str) -> np.ndarray:
    assert bncli("score", model, "seen.csv", "-o", "scores.csv", "-q").code == 0
    with open("scores.csv", newline="") as file:
        return np.array([[float(row["p_no"]), float(row["p_yes"])] for row in csv.DictReader(file)])


def test_with_many_rows_the_model_is_the_network(asthma: Bncli) -> None:
    assert fit(asthma, "9e14").code == 0
    np.testing.assert_allclose(scores(asthma, "m.bnc"), scores(asthma, "asthma.bnc"), rtol=1e-12)


@pytest.mark.parametrize("options", [("--penalty", "1"), ("--structure", "tan", "--param", "map")])
def test_with_no_rows_the_model_is_that_of_the_data(asthma: Bncli, options: tuple[str, ...]) -> None:
    prior = ("--prior-network", "asthma.bnc", "--prior-rows", 0)
    assert asthma("fit", "seen.csv", *options, *prior, "-o", "m.bnc", "-q").code == 0
    assert asthma("fit", "seen.csv", *options, "-o", "alone.bnc", "-q").code == 0
    assert Path("m.bnc").read_bytes() == Path("alone.bnc").read_bytes()


def test_every_way_to_learn_gives_the_same_bytes(asthma: Bncli) -> None:
    assert fit(asthma, 20).code == 0
    model = python_interface.fit(
        "seen.csv", structure="asthma.bif", param="map", prior_network=Path("asthma.bnc"), prior_rows=20
    )
    model.save("python.bnc")
    Path("c.toml").write_text(
        'structure = "asthma.bif"\nparam = "map"\nprior-network = "asthma.bnc"\nprior-rows = 20\n'
    )
    assert asthma("fit", "seen.csv", "--config", "c.toml", "-o", "config.bnc", "-q").code == 0
    for other in ("python.bnc", "config.bnc"):
        assert Path(other).read_bytes() == Path("m.bnc").read_bytes()
    recorded = read_model("m.bnc").recipe
    assert recorded.prior_rows == 20
    assert recorded.prior_network.startswith("asthma.bnc sha256:")
    assert "asthma.bnc sha256:" in asthma("inspect", "m.bnc").out


@pytest.mark.slow
def test_evaluate_and_compare_take_it(asthma: Bncli) -> None:
    prior = "--prior-network asthma.bnc --prior-rows 30"
    evaluated = asthma("evaluate", "seen.csv", "--structure", "tan", *prior.split(), "--folds", 2, "-q")
    assert evaluated.code == 0
    learners = ("--learner", f"prior=--structure nb {prior}", "--learner", "alone=--structure nb")
    assert asthma("compare", "seen.csv", *learners, "--folds", 2, "--jobs", 1, "-q").code == 0


def test_counts_take_it(asthma: Bncli) -> None:
    assert fit(asthma, 20).code == 0
    cuts = ("--cuts", "cuts.json")
    assert asthma("discretize", "seen.csv", "--cuts-out", "cuts.json", "-q").code == 0
    counted = asthma("count", "seen.csv", *cuts, "--structure", "asthma.bif", "-o", "seen.counts", "-q")
    assert counted.code == 0
    prior = ("--prior-network", "asthma.bnc", "--prior-rows", 20)
    refused = asthma("fit", "--from-counts", "seen.counts", *TREE, *prior, "-q")
    assert refused.code == 1
    assert "'peak_flow' do not match the states of the network" in refused.err


@pytest.mark.parametrize(
    ("options", "code", "what"),
    [
        (("--prior-rows", 5), 2, "--prior-rows has no effect without --prior-network"),
        (("--prior-network", "asthma.bnc"), 2, "--prior-network has no effect without --prior-rows"),
        (("--prior-network", "asthma.bnc", "--prior-rows", -1), 2, "'-1' is not a"),
        (("--prior-network", "asthma.bnc", "--prior-rows", "inf"), 2, "'inf' is not a"),
        (("--prior-network", "none.bnc", "--prior-rows", 5), 3, "none.bnc"),
        (("--prior-network", "asthma.bif", "--prior-rows", 5), 3, "asthma.bif"),
        (("--prior-network", "w.bnc", "--prior-rows", 5), 3, "w.bnc"),
        (("--prior-network", "w.bnc", "--prior-rows", 0), 3, "w.bnc"),
        (("--prior-network", "iris.bnc", "--prior-rows", 5), 1, "iris.bnc"),
        (("--structure", "auto"), 2, "no effect with --structure auto"),
        (("--structure", "interactions"), 2, "no effect with --structure interactions"),
        (("--structure", "card"), 2, "no effect with --structure card"),
        (("--param", "acll"), 2, "no effect with --param acll"),
        (("--discretize", "equal-width"), 2, "--discretize has no effect with --prior-network"),
        (("--max-attributes", 2), 2, "--max-attributes has no effect with --prior-network"),
    ],
)
def test_what_cannot_be_done_is_one_line(asthma: Bncli, options: tuple[object, ...], code: int, what: str) -> None:
    prepare(asthma, "fit seen.csv --structure nb --penalty 1 -o w.bnc -q", "fit iris.csv --param map -o iris.bnc -q")
    if not str(options[0]).startswith("--prior"):
        options = (*options, "--prior-network", "asthma.bnc", "--prior-rows", 5)
    ran = asthma("fit", "seen.csv", *options, "-q")
    assert ran.code == code, ran.err
    assert what in ran.err
    assert len(ran.err.strip().splitlines()) == 1
