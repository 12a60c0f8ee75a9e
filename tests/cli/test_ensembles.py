"""An ensemble from fit to inspect: what is said of one component says of which."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bncli.engine.ensembles.budget import DEFAULT, EFFORTS
from bncli.engine.model import Ensemble
from bncli.files.artifacts.model import read_model
from tests.cli.conftest import Bncli


def test_what_is_shown_of_one_component_names_it(bncli: Bncli, tmp_path: Path) -> None:
    fitted = bncli("fit", "iris.csv", "--structure", "auto", "--time-limit", 0.01, "-o", "m.bnc")
    assert fitted.code == 0, fitted.err
    ensemble = read_model(str(tmp_path / "m.bnc")).predictor
    assert isinstance(ensemble, Ensemble)
    components = ensemble.components
    heaviest = components[0].name
    assert f", in component {heaviest!r}, which has the largest weight" in fitted.err
    text = bncli("inspect", "m.bnc", "--tables").out
    assert f"Details of the component with the largest weight, {heaviest}:\n" in text
    assert [line for line in text.splitlines() if line.startswith("Component ")] == [
        f"Component {one.name}, weight {one.weight:.4f}" for one in components
    ]
    assert text.count("Scores of the class alone\n") == len(components)
    members = json.loads(bncli("inspect", "m.bnc", "--json").out)["members"]
    assert [member["name"] for member in members] == [one.name for one in components]


def test_interactions_step_by_step_are_all_at_once(bncli: Bncli, tmp_path: Path) -> None:
    for words in (
        ("fit", "iris.csv", "--structure", "interactions", "--penalty", 1, "-o", "one.bnc"),
        ("discretize", "iris.csv", "--discretize", "equal-frequency", "--bins", 255, "--cuts-out", "cuts.json"),
        ("learn-structure", "iris.csv", "--cuts", "cuts.json", "--structure", "interactions", "-o", "found.json"),
        ("fit", "iris.csv", "--cuts", "cuts.json", "--structure", "found.json", "--penalty", 1, "-o", "other.bnc"),
    ):
        ran = bncli(*words)
        assert ran.code == 0, ran.err
    assert (tmp_path / "one.bnc").read_bytes() == (tmp_path / "other.bnc").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(("trees", "expected"), [(30, "stopped the boosting"), (2_000, "did not improve")])
def test_it_is_told_whether_more_boosted_trees_would_have_helped(
    bncli: Bncli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trees: int, expected: str
) -> None:
    monkeypatch.setitem(EFFORTS, DEFAULT, replace(EFFORTS[DEFAULT], trees=trees))
    x = np.random.default_rng(0).integers(0, 100, (1_000, 4))
    labels = np.where((x > [23, 31, 17, 12]).all(axis=1), "all", "some")
    lines = [",".join([*map(str, row), label]) for row, label in zip(x.tolist(), labels, strict=True)]
    (tmp_path / "sharp.csv").write_text("\n".join(["a,b,c,d,class", *lines]) + "\n")
    fitted = bncli("fit", "sharp.csv", "--structure", "auto", "-v", "-o", "m.bnc")
    assert fitted.code == 0, fitted.err
    assert ", in component 'boosted', which has the largest weight" in fitted.err
    (stopped,) = (line for line in fitted.err.splitlines() if line.startswith("stopped"))
    assert expected in stopped
