"""`bncli import`: networks of files as models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bncli.files.artifacts.model import read_model

from .conftest import Bncli

ASTHMA = """network asthma { }
variable smoke { type discrete [ 2 ] { yes, no }; }
variable asthma { type discrete [ 2 ] { yes, no }; }
variable flow { type discrete [ 3 ] { "(-inf,200]", "(200,400]", "(400,inf)" }; }
probability ( smoke ) { table 0.25, 0.75; }
probability ( asthma | smoke ) { (yes) 0.2, 0.8; (no) 0.1, 0.9; }
probability ( flow | asthma ) { (yes) 0.6, 0.3, 0.1; (no) 0.1, 0.3, 0.6; }
"""


@pytest.mark.parametrize("ending", ["bif", "xml"])
@pytest.mark.parametrize("policy", ["level", "marginalize"])
def test_what_export_writes_predicts_the_same(bncli: Bncli, ending: str, policy: str) -> None:
    fit = ("fit", "wine_holes.csv", "--param", "map", "--missing-policy", policy, "-q", "-o", "m.bnc")
    assert bncli(*fit).code == 0
    assert bncli("export", "m.bnc", "-o", f"m.{ending}").code == 0
    assert bncli("import", f"m.{ending}", "-o", "again.bnc", "-q").code == 0
    here, there = (bncli("score", name, "wine_holes.csv", "--digits", 9, "-q").out for name in ("m.bnc", "again.bnc"))
    assert here == there
    assert read_model("again.bnc").schema.missing_policy == policy


def test_rows_with_missing_values_are_marginalized(bncli: Bncli) -> None:
    Path("a.bif").write_text(ASTHMA)
    done = bncli("import", "a.bif", "--class", "asthma", "--json")
    assert done.code == 0
    assert json.loads(done.out) == {
        "schema_version": 1,
        "network": "a.bif",
        "output": "a.bnc",
        "class": "asthma",
        "labels": ["yes", "no"],
        "attributes": 2,
        "numeric": ["flow"],
        "arcs": 0,
        "class_parents": 1,
        "probabilities": 12,
        "missing_policy": "marginalize",
    }
    Path("rows.csv").write_text("smoke,flow\nyes,150\n,150\n,\n")
    scored = bncli("score", "a.bnc", "rows.csv", "-q").out.splitlines()[1:]
    p_yes = [float(line.split(",")[1]) for line in scored]
    prior = 0.25 * 0.2 + 0.75 * 0.1
    expected = [0.2 * 0.6 / (0.2 * 0.6 + 0.8 * 0.1), prior * 0.6 / (prior * 0.6 + (1 - prior) * 0.1), prior]
    assert p_yes == pytest.approx(expected, rel=1e-12)
    for words in (("inspect", "a.bnc", "--effects"), ("report", "a.bnc"), ("verify", "a.bnc"), ("export", "a.bnc")):
        assert bncli(*words, *(("--to", "bif") if words[0] == "export" else ())).code == 0


def test_what_is_no_network_is_refused_in_one_line(bncli: Bncli) -> None:
    Path("a.bif").write_text(ASTHMA)
    Path("graph.dot").write_text("digraph { a -> b }")
    Path("cut.bif").write_text(ASTHMA[:-40])
    for words, code, what in (
        (
            ("import", "a.bif", "--class", "astma"),
            2,
            "the network has no node 'astma'",
        ),
        (("import", "graph.dot"), 1, "not a network with its probabilities"),
        (("import", "iris.csv"), 1, "not a network with its probabilities"),
        (("import", "cut.bif"), 1, "cut.bif, line "),
        (("import", "none.bif"), 1, "none.bif"),
        (("import", "-"), 2, "a network cannot be read from the standard input"),
        (("import", "a.bif", "-o", "a.bif"), 2, "is the same file"),
    ):
        done = bncli(*words)
        assert (done.code, done.out) == (code, "")
        assert what in done.err
        assert done.err.count("\n") == 1
    assert not Path("a.bnc").exists()
