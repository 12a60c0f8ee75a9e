"""Models of regions on the command line: found, fitted, looked at, and refused where only a network will do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bncli.cli.inspect import bins_text, path_table
from bncli.cli.model_text import regions_text
from bncli.steps.effects_and_regions import NamedStep, RegionsReport
from tests.cli.conftest import Bncli


def test_the_line_of_a_summary() -> None:
    assert (
        regions_text(RegionsReport({"2": 1, "3": 1200})) == "1 of order 2, 1,200 of order 3 (attributes and the class)"
    )
    assert regions_text(RegionsReport({}, 0, 0, 1.0)) == "none (class frequencies only); step 0 of 0, weight 1"
    assert regions_text(RegionsReport({"2": 3})) == "3 of order 2 (attributes and the class)"


def test_the_bins_of_regions() -> None:
    assert bins_text((None, 8, 4)) == (
        "Intervals of an attribute: as cut in regions of 1, at most 8 in regions of 2, at most 4 in larger ones."
    )
    assert bins_text((5,)) == "Intervals of an attribute: at most 5."


def test_long_paths_are_shown_in_full() -> None:
    steps = [NamedStep((f"x{s}",) * (s > 0), s, -1.0 * s, -2.0 * s, 0.0) for s in range(500)]
    table = path_table(steps, 7)
    assert table.row_count == 500
    assert [s for s, mark in enumerate(table.columns[1].cells) if mark == "*"] == [7]


def write_regions(path: Path, *regions: str, **more: object) -> None:
    content = {"format": "bncli-structure", "version": 1, "class": "class", "regions": [r.split() for r in regions]}
    path.write_text(json.dumps(content | more))


def test_regions_by_hand_are_fitted(bncli: Bncli, tmp_path: Path) -> None:
    write_regions(tmp_path / "r.json", "a5", "a1 a2")
    report = json.loads(bncli("fit", "monks1.csv", "--structure", "r.json", "-o", "m.bnc", "--json").out)
    assert (report["structure"], report["param"], report["unnamed"]) == ("file", "kbma", ["a3", "a4", "a6"])
    weight = report["regions"].pop("weight")
    assert report["regions"] == {"orders": {"2": 1, "3": 1}, "steps": 2, "best_step": 2}
    shown = json.loads(bncli("inspect", "m.bnc", "--json", "--tables").out)
    assert shown["structure"]["regions"] == [["a5"], ["a1", "a2"]]
    assert (shown["perfect"], shown["param"], shown["best_step"]) == (None, "kbma", 2)
    assert [step["region"] for step in shown["steps"]] == [[], ["a5"], ["a1", "a2"]]
    assert shown["steps"][2]["weight"] == weight
    assert [(table["attributes"], table["shape"]) for table in shown["tables"]] == [
        ([], [2]), (["a5"], [4, 2]), (["a1", "a2"], [3, 3, 2]),
    ]  # fmt: skip
    assert shown["parameters"] == 2 + 4 * 2 + 9 * 2


@pytest.mark.parametrize(
    ("param", "words"),
    [
        ("kbma", "The model is the average of the models of all steps with these weights; * marks the best step."),
        ("kmap", "The model is that of the best step alone (marked *)."),
    ],
)
def test_the_path_says_what_it_means(bncli: Bncli, tmp_path: Path, param: str, words: str) -> None:
    write_regions(tmp_path / "r.json", "a5", "a1 a2")
    assert bncli("fit", "monks1.csv", "--structure", "r.json", "--param", param, "-o", "m.bnc").code == 0
    shown = bncli("inspect", "m.bnc").out
    assert words in shown
    assert next(line.split()[:3] for line in shown.splitlines() if "*" in line) == ["2", "*", "a1,"]
    assert "perfect" not in shown


def test_a_file_of_regions_is_shown(bncli: Bncli, tmp_path: Path) -> None:
    write_regions(tmp_path / "r.json", "a5", "a1 a2")
    assert bncli("inspect", "r.json").out.splitlines()[0] == "Structure for the class class, not learned by bncli"
    assert json.loads(bncli("inspect", "r.json", "--json").out)["perfect"] is None
    bncli("learn-structure", "monks1.csv", "--structure", "kikuchi", "-o", "found.json")
    shown = bncli("inspect", "found.json").out
    assert "kbma averages the models of all steps with these weights" in shown
    assert "the class alone" in shown


def test_a_search_step_by_step_is_the_same_file(bncli: Bncli, tmp_path: Path) -> None:
    found = bncli("learn-structure", "tumours.csv", "--structure", "kikuchi", "-o", "s.json")
    assert "regions     2 of order 2, 1 of order 3 (attributes and the class); step 5 of 9" in found.err
    report = json.loads(bncli("learn-structure", "tumours.csv", "--structure", "kikuchi", "--json").out)
    written = json.loads((tmp_path / "s.json").read_text())
    assert report["arcs"] is None
    assert all(report[key] == written[key] for key in ("regions", "df", "log_likelihood", "log_posterior", "map_step"))
    bncli("fit", "tumours.csv", "--structure", "s.json", "-o", "one.bnc")
    bncli("fit", "tumours.csv", "--structure", "kikuchi", "-o", "all.bnc")
    assert (tmp_path / "one.bnc").read_bytes() == (tmp_path / "all.bnc").read_bytes()
    assert bncli("export", "all.bnc", "--to", "json").out == (tmp_path / "s.json").read_text()


def test_the_bootstrap_stands_beside_the_posterior(bncli: Bncli, tmp_path: Path) -> None:
    words = ("learn-structure", "monks1.csv", "--structure", "kikuchi")
    bncli(*words, "-o", "plain.json")
    assert bncli(*words, "--bootstrap", "3", "--seed", "7", "-o", "checked.json").code == 0
    plain, checked = (json.loads((tmp_path / name).read_text()) for name in ("plain.json", "checked.json"))
    losses = checked.pop("bootstrap_log_loss")
    assert len(losses) == len(plain["df"])
    assert checked == plain | {"options": plain["options"] | {"bootstrap": 3, "seed": 7}}
    shown = bncli("inspect", "checked.json").out
    assert all(f"{loss:.4f}" in shown for loss in losses)
    assert "bootstrap log-loss" in shown
    assert "bootstrap" not in bncli("inspect", "plain.json").out
    report = json.loads(bncli(*words, "--bootstrap", "3", "--seed", "7", "--json").out)
    assert report["bootstrap_log_loss"] == losses


def test_the_bootstrap_of_a_table_with_missing_values(bncli: Bncli, tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("a,b,y\n" + "".join(f"{'uv?'[i % 3]},{'pq'[i % 2]},{i % 2}\n" for i in range(40)))
    words = (
        "learn-structure",
        "h.csv",
        "--structure",
        "kikuchi",
        "--bootstrap",
        "2",
        "--missing-policy",
        "marginalize",
    )
    assert bncli(*words, "-o", "s.json").code == 0
    assert "bootstrap_log_loss" in json.loads((tmp_path / "s.json").read_text())


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--bootstrap", "3"), "Error: --bootstrap has no effect with --structure tan; use it with --structure k"),
        (("--structure", "kikuchi", "--bootstrap", "0"), "Error: Invalid value for '--bootstrap': "),
    ],
)
def test_a_bootstrap_of_nothing_is_refused(bncli: Bncli, words: tuple[str, ...], line: str) -> None:
    ran = bncli("learn-structure", "monks1.csv", *words)
    assert ran.code == 2
    assert ran.err.startswith(line)


@pytest.mark.parametrize("kind", ["joint", "structural-zeros"])
def test_other_degrees_of_freedom_step_by_step_are_the_same_file(bncli: Bncli, tmp_path: Path, kind: str) -> None:
    typed = ("--structure", "kikuchi", "--degrees-of-freedom", kind)
    bncli("learn-structure", "tumours.csv", *typed, "-o", "s.json")
    fit = ("fit", "tumours.csv")
    bncli(*fit, "--structure", "s.json", "-o", "one.bnc")
    bncli(*fit, *typed, "-o", "all.bnc")
    bncli(*fit, "--structure", "kikuchi", "-o", "plain.bnc")
    assert (tmp_path / "one.bnc").read_bytes() == (tmp_path / "all.bnc").read_bytes()
    steps = {name: json.loads(bncli("inspect", f"{name}.bnc", "--json").out)["steps"] for name in ("all", "plain")}
    written = json.loads((tmp_path / "s.json").read_text())
    assert written["options"]["degrees_of_freedom"] == kind
    assert [step["df"] for step in steps["all"]] == written["df"]
    assert steps["all"] != steps["plain"]
    bncli(*fit, "--structure", "s.json", "--degrees-of-freedom", "conditional", "-o", "other.bnc")
    typed_over = json.loads(bncli("inspect", "other.bnc", "--json").out)["steps"]
    assert [step["df"] for step in typed_over] != written["df"]


def test_what_needs_a_network_refuses(bncli: Bncli, tmp_path: Path) -> None:
    write_regions(tmp_path / "r.json", "a5", "a1 a2")
    bncli("fit", "monks1.csv", "--structure", "r.json", "-o", "m.bnc")
    for words in (("export", "m.bnc", "--to", "bif"), ("export", "m.bnc", "-o", "m.xml"), ("simulate", "m.bnc")):
        ran = bncli(*words)
        assert (ran.code, ran.out, ran.err.count("\n")) == (3, "", 1)
        assert "the model is made of regions" in ran.err
        assert "--param map" in ran.err
    drawn = bncli("export", "m.bnc", "--to", "dot")
    assert '"region 2" -- "a1";' in drawn.out
    assert drawn.err == "dot         4 nodes\n"


def test_a_regions_file_is_evaluated(bncli: Bncli, tmp_path: Path) -> None:
    write_regions(tmp_path / "r.json", "a5", "a1 a2", options={"theta": 2})
    report = json.loads(bncli("evaluate", "monks1.csv", "--structure", "r.json", "--json").out)
    assert report["accuracy"] == 1.0
    typed = json.loads(bncli("evaluate", "monks1.csv", "--structure", "r.json", "--theta", "2", "--json").out)
    assert typed["log_loss"] == report["log_loss"]
    other = json.loads(bncli("evaluate", "monks1.csv", "--structure", "r.json", "--theta", "1", "--json").out)
    assert other["log_loss"] != report["log_loss"]


@pytest.mark.parametrize("theta", [0, -1.5])
def test_a_theta_that_makes_no_sense(bncli: Bncli, tmp_path: Path, theta: float) -> None:
    write_regions(tmp_path / "r.json", "a5", options={"theta": theta})
    ran = bncli("fit", "monks1.csv", "--structure", "r.json")
    assert ran.code == 1
    assert "r.json" in ran.err
    assert "'theta'" in ran.err


def test_regions_with_bins_of_their_own(bncli: Bncli, tmp_path: Path) -> None:
    """The structure of the model fits the same model; tables say how they see their attributes; kbma is refused."""
    write_regions(tmp_path / "r.json", "petal_length", "petal_length petal_width", bins=[None, 3])
    cuts = ("--discretize", "equal-frequency", "--bins", "10")
    fit = ("fit", "iris.csv", *cuts, "--structure", "r.json", "--param", "discriminative")
    bncli(*fit, "-o", "m.bnc")
    bncli("export", "m.bnc", "--to", "json", "-o", "s.json")
    assert json.loads((tmp_path / "s.json").read_text())["bins"] == [None, 3]
    (tmp_path / "r.json").write_bytes((tmp_path / "s.json").read_bytes())
    bncli(*fit, "-o", "again.bnc")
    assert (tmp_path / "again.bnc").read_bytes() == (tmp_path / "m.bnc").read_bytes()
    tables = json.loads(bncli("inspect", "m.bnc", "--json", "--tables").out)["tables"]
    assert tables[1]["shape"] == [10, 3]
    assert "merges" not in tables[1]
    assert tables[2]["shape"] == [3, 3, 3]
    assert [len(merge["cuts"]) for merge in tables[2]["merges"]] == [2, 2]
    assert "as cut in regions of 1, at most 3 in larger ones" in bncli("inspect", "m.bnc", "--tables").out
    refused = bncli("fit", "iris.csv", "--structure", "r.json", "--param", "kbma", "-o", "k.bnc")
    assert refused.code == 2
    assert "--param kbma cannot be used with regions that use coarser intervals" in refused.err


def test_interactions_show_what_they_gain(bncli: Bncli, tmp_path: Path) -> None:
    """A structure file gives the model that the search gives, and both tell the gains."""
    bncli("learn-structure", "monks1.csv", "--structure", "interactions", "-o", "s.json")
    found = json.loads((tmp_path / "s.json").read_text())
    assert found["regions"][:7] == [["a1"], ["a2"], ["a3"], ["a4"], ["a5"], ["a6"], ["a1", "a2"]]
    assert len(found["gains"]) == len(found["regions"])
    assert found["gains"][6] > max(found["gains"][7:])
    shown = bncli("inspect", "s.json").out
    line = next(line for line in shown.splitlines() if "a1, a2" in line)
    assert line.split() == ["7", "a1,", "a2", f"{found['gains'][6]:.4f}"]
    assert "A gain estimates what a region adds" in shown
    bncli("fit", "monks1.csv", "--structure", "interactions", "--penalty", "1", "-o", "one.bnc")
    given = ("--param", "discriminative", "--coding", "thermometer", "--penalty", "1")
    bncli("fit", "monks1.csv", "--structure", "s.json", *given, "-o", "two.bnc")
    assert (tmp_path / "one.bnc").read_bytes() == (tmp_path / "two.bnc").read_bytes()
    assert json.loads(bncli("inspect", "one.bnc", "--json").out)["structure"]["gains"] == found["gains"]
    assert "A gain estimates what a region adds" in bncli("inspect", "one.bnc").out
    assert bncli("export", "one.bnc", "--to", "json").out == (tmp_path / "s.json").read_text()
    scores = bncli("score", "one.bnc", "monks1.csv").out.splitlines()
    assert len(scores) > 100
