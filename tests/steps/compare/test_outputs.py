"""The files beside a comparison: what stands in them, and that none is begun for nothing."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bncli.errors import BncliError, UsageError
from bncli.steps.compare.analysis import analyse
from bncli.steps.compare.outputs import check_drawings, paper_tables, write_outputs
from tests.trials import random_trial, trial_of

SVG = "{http://www.w3.org/2000/svg}"


def test_every_outcome_a_line(tmp_path: Path) -> None:
    trial = random_trial(3, 2, repeats=2)
    counts: dict[str, int | None] = {"iterations": 7, "passes": 8}
    outcomes = [one if one.learner == "learner 0" else replace(one, costs=counts) for one in trial.outcomes]
    trial = replace(trial, outcomes=tuple(outcomes))
    write_outputs(analyse(trial, metrics=["error"]), csv=str(tmp_path / "o.csv"))
    rows = list(csv.DictReader((tmp_path / "o.csv").read_text().splitlines()))
    assert len(rows) == len(trial.outcomes)
    assert list(rows[0]) == [
        "data", "learner", "repeat", "fold", "rows", "accuracy", "error", "rmse", "cll", "fit_seconds", "score_seconds",
        "iterations", "passes",
    ]  # fmt: skip
    for row, outcome in zip(rows, trial.outcomes, strict=True):
        assert (row["data"], row["learner"]) == (outcome.data, outcome.learner)
        assert [int(row[name]) for name in ("repeat", "fold", "rows")] == [outcome.repeat, outcome.fold, outcome.rows]
        assert {name: float(row[name]) for name in outcome.metrics} == outcome.metrics
        assert float(row["score_seconds"]) == outcome.seconds["score"]
        assert [row["iterations"], row["passes"]] == (["", ""] if outcome.learner == "learner 0" else ["7", "8"])
    assert list(tmp_path.iterdir()) == [tmp_path / "o.csv"]


def test_names_of_any_kind_come_back(tmp_path: Path) -> None:
    odd = 'a, "b"\nc\udcff'
    losses = {(odd, "é"): [0.1 + 0.2, 1e-17], ("plain", "é"): [None, 0.5]}
    write_outputs(analyse(trial_of(losses), metrics=["error"]), csv=str(tmp_path / "o.csv"))
    with open(tmp_path / "o.csv", newline="", encoding="utf-8") as file:
        told = list(csv.DictReader(file))
    assert [(row["data"], row["learner"]) for row in told] == [('a, "b"\nc\\udcff', "é")] * 2 + [("plain", "é")] * 2
    assert [float(row["error"]) if row["error"] else None for row in told] == [0.1 + 0.2, 1e-17, None, 0.5]


def test_drawings_are_of_the_first_metric(tmp_path: Path) -> None:
    report = analyse(random_trial(4, 6), metrics=["accuracy", "error"], baseline="learner 2")
    write_outputs(report, diagram=str(tmp_path / "d.svg"), scatter=str(tmp_path / "s.svg"))
    diagram, scatter = (ElementTree.parse(tmp_path / name).getroot() for name in ("d.svg", "s.svg"))
    assert diagram.findtext(f"{SVG}title") == "Average ranks by accuracy over 6 data sets"
    words = [element.text for element in scatter.iter(f"{SVG}text")]
    assert [word for word in words if word and word.startswith("learner ") and "→" not in word] == [
        "learner 0", "learner 1", "learner 3",
    ]  # fmt: skip
    assert len(list(scatter.iter(f"{SVG}circle"))) == 18
    pair = report.summaries["accuracy"].against("learner 0", "learner 2")
    assert pair is not None
    assert f"better {pair.wins}" in {word.strip("↖↘ ") for word in words if word}


COSTLY = {(data, name): [0.1, 0.2] for data in "st" for name in ("map", "slow", "fast")}


def test_a_scatter_of_costs(tmp_path: Path) -> None:
    """Axes are logarithmic however little the figures differ, and who has no iterations has no panel."""
    trial = trial_of(COSTLY, seconds={"map": 0.2, "slow": 0.3, "fast": 0.25}, iterations={"slow": 30, "fast": 0})
    path = tmp_path / "s.svg"
    write_outputs(analyse(trial, metrics=["fit_seconds"], baseline="fast"), scatter=str(path))
    root = ElementTree.parse(path).getroot()
    assert root.findtext(f"{SVG}title") == "fit-seconds on each data set: every learner against fast"
    words = [(element.text or "").strip("↖↘ ") for element in root.iter(f"{SVG}text")]
    assert words.count("map") == words.count("slow") == 1
    dots = [(float(dot.get("cx", 0)), float(dot.get("cy", 0))) for dot in root.iter(f"{SVG}circle")]
    (x, y0), (_, y1) = dots[0], dots[2]
    left = min(float(line.get("points", "").split(",")[0]) for line in root.iter(f"{SVG}polyline"))
    assert 0 < x - left < 200
    assert "better 2" in words
    assert "worse 2" in words
    write_outputs(analyse(trial, metrics=["iterations"], baseline="fast"), scatter=str(path))
    words = [element.text for element in ElementTree.parse(path).getroot().iter(f"{SVG}text")]
    assert "map" not in words
    assert "slow" in words
    assert y0 > y1
    with pytest.raises(BncliError, match=r"no data set has iterations for both map and another learner"):
        write_outputs(analyse(trial, metrics=["iterations"], baseline="map"), scatter=str(path))


def test_latex_tables_of_costs_and_groups() -> None:
    trial = trial_of(COSTLY, seconds={"map": 0.2, "slow": 0.3, "fast": 0.1}, iterations={"slow": 30, "fast": 10})
    report = analyse(trial, metrics=["fit_seconds"], baseline="fast", groups={"rows<9": ("s",), "rows>=9": ("t",)})
    figures, *pairs, _ = paper_tables(report)
    assert "italic" not in figures.caption
    assert "Friedman" not in figures.caption
    assert [row[0] for row in figures.blocks[1]] == [
        f"{head}{where}"
        for where in ("", ", rows\\textless{}9", ", rows\\textgreater{}=9")
        for head in ("average rank", "W/D/L against fast", "ratio against fast")
    ]
    assert [table.header for table in pairs] == [["first", "second", "W/D/L", "ratio"]] * 3
    assert pairs[0].blocks[0] == [
        ["map", "slow", "2/0/0", "0.667"], ["map", "fast", "0/0/2", "2.000"], ["slow", "fast", "0/0/2", "3.000"],
    ]  # fmt: skip


def test_what_there_will_not_be_is_refused_before_the_work() -> None:
    check_drawings(2, 2, "error", diagram="d.svg", scatter="s.svg")
    check_drawings(2, 1, "error", scatter="s.svg")
    check_drawings(1, 1, "error")
    for n_learners, n_sets, flag, what in (
        (1, 5, "diagram", "learners"),
        (1, 5, "scatter", "learners"),
        (3, 1, "diagram", "data sets"),
    ):
        with pytest.raises(UsageError, match=f"--{flag} .*{what}"):
            check_drawings(n_learners, n_sets, "error", **{flag: "x.svg"})
    check_drawings(3, 3, "passes", scatter="s.svg")
    with pytest.raises(
        UsageError, match="costs such as fit-seconds are not tested for differences; use --scatter for costs"
    ):
        check_drawings(3, 3, "fit_seconds", diagram="d.svg")
    with pytest.raises(UsageError, match=r"cannot write 'x\.png': drawings can be written only as SVG"):
        check_drawings(3, 3, "error", scatter="x.png")


def test_a_diagram_that_gaps_have_left_nothing_for(tmp_path: Path) -> None:
    report = analyse(trial_of({("s", "a"): [0.1, 0.2], ("t", "b"): [0.1, 0.2]}), metrics=["error"])
    with pytest.raises(BncliError, match="need the error of at least two learners on at least two data sets"):
        write_outputs(
            report, csv=str(tmp_path / "o.csv"), scatter=str(tmp_path / "s.svg"), diagram=str(tmp_path / "d.svg")
        )
    assert [path.name for path in tmp_path.iterdir()] == ["o.csv"]


def test_latex_tables() -> None:
    losses = {(data, name): [0.1 + 0.1 * (name == "b_2"), 0.2] for data in ("s&t", "u") for name in ("a", "b_2")}
    losses |= {("u", "c"): [0.3, 0.3]}
    figures, seconds = paper_tables(analyse(trial_of(losses), metrics=["error"]))
    assert figures.header == ["", "a", r"b\_2", "c"]
    assert figures.blocks[0][0] == [
        r"s\&t",
        r"\textbf{0.1500} {\scriptsize$\pm$ 0.0707}",
        r"\textit{0.2000} {\scriptsize$\pm$ 0.0000}",
        "--",
    ]
    assert not figures.blocks[1]
    assert seconds.header == ["", "fit", "score", "ratio, fit", "ratio, score"]


def test_latex_tables_with_a_summary() -> None:
    report = analyse(random_trial(4, 8), metrics=["error", "rmse"])
    figures, pairs, *_ = tables = paper_tables(report)
    assert len(tables) == 5
    assert [row[0] for row in figures.blocks[1]] == [
        "average rank",
        "W/D/L against learner 0",
        "ratio against learner 0",
    ]
    assert [len(row) for block in figures.blocks for row in block] == [5] * 11
    assert len(pairs.blocks[0]) == 6
    assert "Nemenyi's critical difference" in figures.caption
    assert re.search(r"Friedman: \$\\chi\^2_\{3\} = [0-9.]+\$, exact \$p (=|<)", figures.caption)
    figures, *_ = paper_tables(analyse(random_trial(4, 20), metrics=["error"]))
    assert re.search(r"\$F_\{3,57\} = [0-9.]+\$, \$p (=|<)", figures.caption)


def test_latex_tables_of_many_learners_leave_out_the_spread() -> None:
    figures, *_ = paper_tables(analyse(random_trial(9, 3), metrics=["error"]))
    assert not any("pm" in cell for row in figures.blocks[0] for cell in row)
    assert figures.caption.startswith("Mean of the error, ")
