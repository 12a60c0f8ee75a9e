"""What a search went through, as a person reads it: moves, penalties, candidates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bncli.cli.fit import candidate_lines
from bncli.cli.model_text import move_lines, penalty_text, shrinkage_text
from bncli.engine.model import ChosenPenalty, Shrinkage, TriedCandidate, TriedPenalty
from bncli.steps.run import NamedMove
from tests.cli.conftest import Bncli

THREE = tuple(TriedPenalty(penalty, 0.5) for penalty in (300.0, 100.0, 0.01))


@pytest.mark.parametrize(
    ("penalty", "tried", "text"),
    [
        (100.0, THREE, "100, chosen by cross-validation between 0.01 and 300"),
        (0.01, THREE, "0.01, chosen by cross-validation, the smallest of the values tried"),
        (300.0, THREE, "300, chosen by cross-validation, the largest of the values tried"),
        (1.0, (), "1, because there are too few rows for cross-validation"),
    ],
)
def test_an_end_of_the_grid_is_named(penalty: float, tried: tuple[TriedPenalty, ...], text: str) -> None:
    assert penalty_text(ChosenPenalty(penalty, tried)) == text


def test_what_is_left_of_the_log_odds_is_told() -> None:
    text = (
        "log-odds multiplied by 0.4, which shrinks them towards those of the class frequencies; chosen on held-out rows"
    )
    assert shrinkage_text(Shrinkage(0.4, 0.6)) == text


def test_fit_and_inspect_tell_how_far_tables_were_shrunk(bncli: Bncli, tmp_path: Path) -> None:
    """Of forty rows whose attributes say nothing of the class."""
    rows = [f"{i * 7 % 11},{'ab'[i * i % 5 > 2]},{'yn'[i * i % 7 > 3]}" for i in range(40)]
    (tmp_path / "few.csv").write_text("\n".join(["x,c,class", *rows, ""]))
    options = ("few.csv", "--structure", "nb", "--param", "discriminative", "--discretize", "equal-frequency")
    ran = bncli("fit", *options)
    (line,) = (line for line in ran.err.splitlines() if line.startswith("shrunk"))
    report = json.loads(bncli("fit", *options, "--json", "-q").out)
    shown = json.loads(bncli("inspect", "few.bnc", "--json").out)
    assert line == f"shrunk      {shrinkage_text(Shrinkage(**report['shrunk']))}"
    assert shown["shrunk"] == report["shrunk"]
    assert report["held_out"]["log_loss"] == report["shrunk"]["log_loss"]
    assert " ".join(line.split()[1:]) in " ".join(bncli("inspect", "few.bnc").out.split())
    bncli("fit", *options, "--penalty", "1")
    assert "shrunk" not in json.loads(bncli("inspect", "few.bnc", "--json").out)
    assert json.loads(bncli("fit", *options, "--penalty", "1", "--json", "-q").out)["shrunk"] is None


def test_without_attributes_nothing_is_told_of_shrinking(bncli: Bncli, tmp_path: Path) -> None:
    (tmp_path / "bare.csv").write_text("\n".join(["x,class", *(f"k,{'yn'[i % 3 == 0]}" for i in range(40)), ""]))
    assert "shrunk" not in bncli("fit", "bare.csv", "--structure", "nb", "--param", "discriminative").err
    assert "shrunk" not in bncli("inspect", "bare.bnc").out


def test_aligned_lines() -> None:
    moves = [NamedMove("add", "age", "pulse", 1234.5), NamedMove("reverse", "b", "a", 0.125)]
    assert move_lines(moves) == [
        "moves       2 from naive Bayes, with the gain of each in nats",
        "            add      age -> pulse  1,234.500",
        "            reverse  b -> a            0.125",
    ]


def test_nothing_where_nobody_searched() -> None:
    assert move_lines([]) == []


def test_both_commands_list_them_on_the_standard_error(bncli: Bncli) -> None:
    options = ("iris.csv", "--structure", "hill-climb", "--structure-score", "k2")
    learnt = bncli("learn-structure", *options)
    fitted = bncli("fit", *options, "--param", "map", "-v")
    lines = [line for line in learnt.err.splitlines() if " -> " in line]
    assert lines
    assert [line for line in fitted.err.splitlines() if " -> " in line] == lines
    assert "moves" not in learnt.out
    assert bncli("learn-structure", *options, "--quiet").err == ""
    told = bncli("learn-structure", *options, "--json")
    assert told.err == ""
    assert [f"{m['parent']} -> {m['child']}" for m in json.loads(told.out)["moves"]] == [
        " ".join(line.split()[1:4]) for line in lines
    ]


def test_a_line_each() -> None:
    lines = candidate_lines(
        (TriedCandidate("all pairs", 0.03, 0.25, 0.125, 1.0), TriedCandidate("tree", 300.0, 1.5, 0.5, 0.0))
    )
    assert lines == [
        "candidates  2, with held-out losses and ensemble weights",
        "            candidate  penalty  log-loss   error  weight",
        "            all pairs     0.03   0.25000  0.1250    1.00",
        "            tree           300   1.50000  0.5000       -",
    ]


def test_no_candidates_no_lines() -> None:
    assert candidate_lines(()) == []
