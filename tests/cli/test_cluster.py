"""`--cluster` where no cluster is asked: what is refused, and the extra that is not there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.conftest import SAMPLE_DATA, Bncli

WINE = SAMPLE_DATA / "wine.csv"
NOWHERE = "tcp://127.0.0.1:1"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--structure", "hill-climb"), "--structure hill-climb needs single rows"),
        (("--structure", "auto"), "--structure auto needs single rows"),
        (("--structure", "interactions"), "--structure interactions needs single rows"),
        (("--param", "em"), "--param em is not learned on a cluster"),
        (
            ("--structure", "nb", "--param", "discriminative", "--coding", "thermometer"),
            "--coding thermometer needs single rows",
        ),
        (("--structure", "nb", "--param", "extended", "--early-stop", "cv"), "--early-stop needs single rows"),
        (("--structure", "nb", "--class-weights", "balanced"), "class weights, prediction sets and thresholds"),
        (("--structure", "nb", "--sets", "0.1"), "class weights, prediction sets and thresholds"),
        (("--structure", "nb", "--threshold", "best:f1"), "class weights, prediction sets and thresholds"),
        (("--param", "map", "--missing-policy", "marginalize"), "missing values cannot be marginalized on a cluster"),
    ],
)
def test_fit_says_what_a_cluster_does_not_do(bncli: Bncli, options: tuple[str, ...], said: str) -> None:
    done = bncli("fit", WINE, *options, "--cluster", NOWHERE, "-o", "x.bnc")
    assert done.code == 2
    assert done.err.startswith(f"Error: {said}")


def test_fit_leaves_the_standard_input_to_one_machine(bncli: Bncli) -> None:
    done = bncli("fit", "-", "--structure", "nb", "--cluster", NOWHERE, "-o", "x.bnc")
    assert done.code == 2
    assert done.err.startswith(
        "Error: the workers of a cluster cannot read the standard input; save the table as a file"
    )


def test_encode_leaves_the_standard_input_to_one_machine(bncli: Bncli) -> None:
    done = bncli("encode", "-", "--cluster", NOWHERE, "-o", "x.codes")
    assert done.code == 2
    assert done.err.startswith("Error: --cluster has no effect with the standard input")


@pytest.mark.parametrize(
    "address", ["here", "local:", "local:0", "local:two", "tcp://host", "tcp:host:1", "file:", "http://h:1"]
)
def test_what_is_no_address(bncli: Bncli, address: str) -> None:
    done = bncli("evaluate", WINE, "--cluster", address)
    assert done.code == 2
    assert done.err.startswith(f"Error: --cluster {address} is not the address of a cluster; use tcp://HOST:PORT")


def test_a_file_that_no_scheduler_wrote(bncli: Bncli, tmp_path: Path) -> None:
    assert bncli("evaluate", WINE, "--cluster", "file:none.json").err.startswith(
        "Error: cannot read the scheduler's file"
    )
    (tmp_path / "some.json").write_text("[1]")
    done = bncli("evaluate", WINE, "--cluster", f"file:{tmp_path / 'some.json'}")
    assert (done.code, done.err.split(",")[0]) == (1, "Error: the file is not a scheduler file")


@pytest.mark.parametrize("command", [("evaluate",), ("encode",), ("compare", "--learner", "--structure nb")])
def test_without_the_extra(bncli: Bncli, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]) -> None:
    monkeypatch.setitem(sys.modules, "dask", None)
    done = bncli(command[0], WINE, *command[1:], "--cluster", NOWHERE)
    assert done.code == 2
    said = "Error: --cluster needs the package 'distributed', which is not installed; install it with"
    assert done.err.startswith(said)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("evaluate", WINE, "--test", WINE), "--cluster has no effect with --test"),
        (("evaluate", WINE, "--model", "m.bnc"), "--cluster has no effect with --model"),
        (("compare", WINE, "--jobs", "2"), "--cluster has no effect with --jobs"),
        (("fit", "--from-counts", "x.counts"), "--cluster has no effect with --from-counts"),
    ],
)
def test_what_does_not_go_together(bncli: Bncli, words: tuple[str, ...], said: str) -> None:
    done = bncli(*words, "--cluster", NOWHERE)
    assert done.code == 2
    assert done.err.startswith(f"Error: {said}")
