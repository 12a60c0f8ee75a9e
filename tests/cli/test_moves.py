"""The moves of a greedy search as a person reads them."""

from __future__ import annotations

import json

from bncli.cli.moves import move_lines
from bncli.steps.run import NamedMove
from tests.cli.conftest import Bncli


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
    fitted = bncli("fit", *options, "--param", "map")
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
