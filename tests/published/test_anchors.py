"""The anchors' page is what its figures give; the rule of what is measured; some figures are measured again."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import pytest

from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from tests.published import anchors
from tests.published.anchor_learners import ANCHORS
from tests.published.anchors import (
    BUDGET,
    FIGURES,
    LAST,
    LIMIT,
    OURS,
    SMALL,
    Figure,
    half,
    in_process,
    measure,
    recorded,
)
from tests.published.anchors_evidence import BEFORE, SIZES, anchored
from tests.published.anchors_page import page
from tests.published.anchors_short import in_a_paragraph, in_short
from tests.published.references import losses

PACKAGES = {"LightGBM, early": "lightgbm", "CatBoost, early": "catboost", "EBM": "interpret"}


def test_the_page_is_made_from_the_figures() -> None:
    assert FIGURES.with_suffix(".md").read_text() == page(anchored(recorded()))


def test_every_large_table_is_anchored_in_both_halves() -> None:
    """All of boosting but CatBoost, and auto as it was."""
    tried = {(figure.set, figure.learner) for figure in recorded()}
    names = {figure.set for figure in recorded() if figure.size >= SMALL}
    assert len(names) == 26
    assert {half(name) for name in names} == {"choosing", "judging"}
    for name in names:
        assert {(name, learner) for learner in (BEFORE, *ANCHORS) if learner not in LAST} <= tried


def test_halves_follow_from_the_names() -> None:
    """sha256sum of the names: the last digit is even for the choosing half."""
    assert [half(name) for name in ("banana", "iris", "adult", "wine")] == [
        "choosing",
        "judging",
        "judging",
        "choosing",
    ]


def test_ratios_and_the_best_anchor() -> None:
    found = anchored(
        [
            Figure("a", 500, 0, "auto", 100, 0.2, 0.1, 0.1, 4.0, 0.1, 9, 1000),
            Figure("a", 500, 0, "EBM", 100, 0.1, 0.1, 0.1, 2.0, 0.1),
            Figure("a", 500, 0, "LightGBM, early", 100, 0.4, 0.1, 0.1, 2.0, 0.1),
            Figure("b", 2000, 0, "auto", 400, 0.0, 0.0, 0.0, 4.0, 0.1, 9, 1000),
            Figure("b", 2000, 0, "EBM", 400, 0.005, 0.1, 0.1, 2.0, 0.1),
            Figure("b", 2000, 0, "LightGBM, early", 400, outcome="stopped"),
        ]
    )
    small, large = (found.where(size) for size in SIZES)
    assert small.ratio("auto", "EBM") == pytest.approx(2)
    assert large.ratio("auto", "EBM") == pytest.approx(0.5 / 400 / 0.005)  # half an error among 400 rows
    assert found.ratio("auto", "EBM", "fit", "seconds") == pytest.approx(2)
    assert small.beside_best("auto") == {"a": (pytest.approx(2), "EBM")}
    assert large.pairs("auto", "LightGBM, early") == []
    assert [*found.noisy().of] == ["a"]
    assert "| LightGBM, early | 1 | 1 (b) | 0 | 0 | 2 |" in page(found)
    told = in_short(found)
    assert "| EBM | 2.00 | 0-1 | 2 | 0.25 | 1-0 | 2 |" in told
    assert "Under 1,000 rows, at least one of them is ahead of `auto` on 1 of 1 tables: a (EBM, 2.00)." in told
    briefly = " ".join(in_a_paragraph(found).split())
    assert briefly.startswith("On tables of fewer than 1,000 rows: 0.50 for LightGBM (1-0), 2.00 for EBM (0-1); at")
    assert briefly.endswith(
        "On tables of 1,000 rows or more: 0.25 for EBM (1-0); at least one of them is ahead of `auto` on 0 of 1 tables."
    )


def test_a_run_goes_on_where_it_was_and_keeps_to_its_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three tables of one learner: the first is known, the second uses up the budget."""
    sizes = {"a": 4000, "b": 5000, "c": 10, "d": 20}
    asked = []

    def measured(name: str, word: str) -> Figure:
        asked.append((name, word))
        nothing = Figure(name, sizes[name], 0, word, 1)
        return nothing._replace(outcome="stopped") if name == "b" else nothing._replace(fit=BUDGET - LIMIT, score=0.0)

    monkeypatch.setattr(anchors, "_columns", lambda name: name)
    monkeypatch.setattr(anchors, "_size", lambda name: (sizes[name], 1, 1))
    monkeypatch.setattr(anchors, "in_process", measured)
    path = tmp_path / "anchors.csv"
    anchors.main(path, ["a"], ["EBM"])
    anchors.main(path, list(sizes), ["EBM", "auto"])
    assert asked == [("a", "EBM"), ("a", "auto"), ("b", "auto"), ("b", "EBM")]
    assert [figure.outcome for figure in recorded(path)] == ["", "", "stopped", "stopped"]


def test_boosting_and_ebm_take_what_a_table_may_hold(tmp_path: Path) -> None:
    """Missing values in both kinds of columns, a constant, a class of one row, a class that is not in training."""
    file = tmp_path / "t.csv"
    words, labels = ["red", "green", "blue", ""], ["yes", "no"]
    rows = [f"{i * 0.37 % 1 if i % 7 else ''},{words[i % 4]},same,{labels[i * 5 % 3 % 2]}" for i in range(60)]
    rows += ["0.5,red,same,rare", "0.25,blue,same,unseen"]
    file.write_text("x,colour,constant,class\n" + "\n".join(rows) + "\n")
    columns = read_columns(Source((str(file),)))
    train, test = columns.take(range(61)), columns.take(range(50, 62))
    for learner, package in PACKAGES.items():
        pytest.importorskip(package, reason="the extra `references` is not installed")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            p = ANCHORS[learner](train, test, 4)()
        assert p.shape == (12, 4)
        assert p.sum(axis=1) == pytest.approx(1)
        assert (p[:, columns.label.levels.index("unseen")] == 0).all()  # type: ignore[union-attr]
        assert math.isfinite(losses(p, test.label.codes)[0])  # type: ignore[union-attr]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["titanic", "glass"])
def test_the_figures_are_those_of_this_program(name: str) -> None:
    told = {figure.learner: figure for figure in recorded() if figure.set == name}
    for learner in (*ANCHORS, *OURS):
        if learner in told:
            for package in (PACKAGES.get(learner, "sklearn"), "xgboost", "pandas"):
                pytest.importorskip(package, reason="the extra `references` is not installed")
            figure = measure(name, learner)
            assert figure[:5] == told[learner][:5]
            assert figure[5:8] == pytest.approx(told[learner][5:8], rel=1e-4, abs=1e-6)
            assert figure[10:] == told[learner][10:]


@pytest.mark.slow
def test_what_takes_too_long_is_stopped_and_the_next_is_measured() -> None:
    pytest.importorskip("interpret", reason="the extra `references` is not installed")
    assert in_process("letter", "EBM", 1).outcome == "stopped"
    assert in_process("lenses", "EBM", 60).outcome == ""
