"""Regions all the way: cutting, structure and parameters one by one give the file of one fit; the model scores."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import Bncli


@pytest.mark.parametrize("data", ["monks1.csv", "iris.csv"])
@pytest.mark.parametrize("param", ["kbma", "kmap", "discriminative", "lr-roos"])
def test_step_by_step_is_all_at_once(bncli: Bncli, tmp_path: Path, data: str, param: str) -> None:
    penalty = ("--penalty", 1) if param in ("discriminative", "lr-roos") else ()
    for words in (
        ("fit", data, "--structure", "kikuchi", "--param", param, *penalty, "--theta", 2, "-o", "one.bnc"),
        ("discretize", data, "--cuts-out", "cuts.json"),
        ("learn-structure", data, "--cuts", "cuts.json", "--structure", "kikuchi", "--theta", 2, "-o", "regions.json"),
        (
            "fit",
            data,
            "--cuts",
            "cuts.json",
            "--structure",
            "regions.json",
            "--param",
            param,
            *penalty,
            "-o",
            "other.bnc",
        ),
    ):
        ran = bncli(*words)
        assert ran.code == 0, ran.err
    assert (tmp_path / "one.bnc").read_bytes() == (tmp_path / "other.bnc").read_bytes()


def test_supplied_files_may_be_pipes(bncli: Bncli, tmp_path: Path) -> None:
    """Each is read once, though the options, the step and every fold ask what it holds."""
    for words in (
        ("discretize", "iris.csv", "--cuts-out", "cuts.json"),
        ("learn-structure", "iris.csv", "--cuts", "cuts.json", "--structure", "kikuchi", "-o", "regions.json"),
        ("fit", "iris.csv", "--cuts", "cuts.json", "--structure", "regions.json", "--param", "kmap", "-o", "files.bnc"),
    ):
        assert bncli(*words).code == 0
    with piped(tmp_path / "cuts.json") as cuts, piped(tmp_path / "regions.json") as regions:
        assert (
            bncli("fit", "iris.csv", "--cuts", cuts, "--structure", regions, "--param", "kmap", "-o", "pipes.bnc").code
            == 0
        )
    assert (tmp_path / "pipes.bnc").read_bytes() == (tmp_path / "files.bnc").read_bytes()


@pytest.mark.slow
def test_the_structure_of_a_comparison_may_be_a_pipe(bncli: Bncli, tmp_path: Path) -> None:
    ran = bncli("learn-structure", "iris.csv", "--structure", "kikuchi", "-o", "regions.json")
    assert ran.code == 0, ran.err
    with piped(tmp_path / "regions.json") as regions:
        learner = f"--structure {regions} --param kmap"
        assert bncli("compare", "iris.csv", "--learner", learner, "--folds", "2", "--jobs", "2").code == 0


@contextmanager
def piped(path: Path) -> Iterator[str]:
    """The name of a pipe that holds the content of a file, once."""
    reader, writer = os.pipe()
    os.write(writer, path.read_bytes())
    os.close(writer)
    yield f"/dev/fd/{reader}"
    os.close(reader)


def test_a_list_of_regions_by_hand(bncli: Bncli, tmp_path: Path) -> None:
    listed = [["a1", "a2"], ["a5"], ["a3", "a4", "a5"]]
    content = {"format": "bncli-structure", "version": 1, "class": "class", "regions": listed}
    (tmp_path / "regions.json").write_text(json.dumps(content))
    report = json.loads(bncli("fit", "monks1.csv", "--structure", "regions.json", "-o", "m.bnc", "--json").out)
    assert report["param"] == "kbma"
    steps = json.loads(bncli("inspect", "m.bnc", "--json").out)["steps"]
    assert [step["region"] for step in steps] == [[], *listed]
    assert sum(step["weight"] for step in steps) == pytest.approx(1.0)


@pytest.mark.parametrize("param", ["kbma", "kmap", "discriminative", "lr-roos"])
def test_what_is_unknown_does_not_stop_a_score(bncli: Bncli, tmp_path: Path, param: str) -> None:
    """A value that training never saw, an empty field, a column that is not there."""
    penalty = ("--penalty", 1) if param in ("discriminative", "lr-roos") else ()
    assert bncli("fit", "monks1.csv", "--structure", "kikuchi", "--param", param, *penalty).code == 0
    (tmp_path / "new.csv").write_text("a1,a5\n1,1\n9,\n,2\n")
    ran = bncli("score", "monks1.bnc", "new.csv", "--allow-missing-columns", "--output-format", "jsonl")
    assert ran.code == 0, ran.err
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert len(rows) == 3
    for row in rows:
        assert sum(value for name, value in row.items() if name.startswith("p_")) == pytest.approx(1.0)
