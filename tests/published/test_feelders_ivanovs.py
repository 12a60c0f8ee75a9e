"""Claims of Feelders & Ivanovs (2006) that hold here; their Table 2 beside ours is in feelders_ivanovs.md."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from bncli.engine.counting.counts import Counts
from tests.performance.workloads import real
from tests.published import feelders_ivanovs_page as report
from tests.published.climbs import one_thread
from tests.published.feelders_ivanovs import (
    DRAWS,
    OPTIMIZERS,
    OWN,
    REAL,
    SEARCHED,
    SHARES,
    SPACES,
    WAYS,
    found_structure,
    trials,
)
from tests.published.pages import UPDATING, read_csv, write_csv

pytestmark = pytest.mark.slow

PAGE = Path(__file__).with_name("feelders_ivanovs.md")
FIGURES = PAGE.with_suffix(".csv")


@pytest.fixture(scope="module")
def measured() -> report.Trials:
    """All trials; those on real data only where they are at hand. Writes the files if it is told to."""
    at_hand = any(Path(os.environ.get("BNCLI_DATA", "")).glob("satimage.csv*"))
    kinds = (REAL if at_hand else {}) | DRAWS
    with one_thread():
        trials("1.5.2-3.100", 1)  # warms up
        found = {name: trials(name, draws) for name, draws in kinds.items()}
    if UPDATING:
        assert at_hand, "the page needs the real data too"
        PAGE.write_text(report.page(found))
        write_csv(FIGURES, [("set", "figure", *WAYS), *lines(found)])
    return found


def lines(found: report.Trials) -> list[tuple[str, ...]]:
    return [
        (name, figure, *(f"{number:.3f}" for number in row.mean[: len(WAYS)]))
        for figure in ("iterations", "flops")
        for name, row in report.rows(found, figure).items()
    ]


def test_the_figures_are_those_of_the_file(measured: report.Trials) -> None:
    """Another machine's exponentials may change an iteration here and there."""
    written = {tuple(line[:2]): line[2:] for line in read_csv(FIGURES)}
    for name, figure, *numbers in lines(measured):
        expected = np.array(written[name, figure], np.float64)
        np.testing.assert_allclose(np.array(numbers, np.float64), expected, rtol=0.3, err_msg=f"{name} {figure}")
        assert np.mean(np.log(np.array(numbers, np.float64) / expected)) == pytest.approx(0, abs=0.1)


@pytest.mark.parametrize("file", SEARCHED.values())
def test_all_structures_happen_to_be_perfect(file: str) -> None:
    counts = Counts(real(file))
    assert found_structure(counts, perfect=False).parents == found_structure(counts, perfect=True).parents


def test_all_arrive(measured: report.Trials) -> None:
    for each in measured.values():
        assert np.isfinite([[trial.iterations(way) for way in (*WAYS, OWN)] for trial in each]).all()


def means(measured: report.Trials, figure: str) -> dict[str, float]:
    return dict(zip((*WAYS, OWN), report.mean(report.rows(measured, figure)), strict=True))


def test_means_are_those_of_the_paper(measured: report.Trials) -> None:
    """Within a quarter for every one of the nine ways, and in both halves of the table."""
    for figure in ("iterations", "flops"):
        ours = report.mean(report.rows(measured, figure))[: len(WAYS)]
        np.testing.assert_allclose(ours, report.mean_published(list(measured), figure), rtol=0.25, err_msg=figure)


def test_more_parameters_fewer_iterations(measured: report.Trials) -> None:
    mean = means(measured, "iterations")
    for optimizer in ("CG", "CGB", "BFGS"):
        assert mean[f"BN {optimizer}"] < mean[f"LR_Roos {optimizer}"] < mean[f"LR {optimizer}"]
    for space in SPACES:
        assert mean[f"{space} CGB"] < mean[f"{space} CG"]
        assert mean[f"{space} BFGS"] < 1.05 * mean[f"{space} CGB"]


def test_exact_searches_lose_in_flops(measured: report.Trials) -> None:
    mean = means(measured, "flops")
    for space in SPACES:
        assert mean[f"{space} CGB"] > 1.3 * mean[f"{space} CG"]


def test_networks_are_never_the_cheapest(measured: report.Trials) -> None:
    for name, row in report.rows(measured, "flops").items():
        assert np.argmin(row.mean[: len(WAYS)]) < WAYS.index("BN CG"), name
    mean = means(measured, "flops")
    for optimizer in OPTIMIZERS:
        assert mean[f"BN {optimizer.upper()}"] > 1.3 * mean[f"LR_Roos {optimizer.upper()}"]


def test_the_best_way_follows_from_the_structure(measured: report.Trials) -> None:
    rows = report.rows(measured, "flops")
    simple = {"1.30.2-3.1000": "LR BFGS", "satimage": "LR BFGS", "glass": "LR CG", "pima": "LR CG"}
    for name, way in simple.items():
        assert name not in rows or WAYS[int(np.argmin(rows[name].mean[: len(WAYS)]))] == way
    for name in ("3.30.2-3.1000", "2.5.5.1000", "3.5.5.1000"):
        assert WAYS[int(np.argmin(rows[name].mean[: len(WAYS)]))] == "LR_Roos CG"
    assert rows["3.5.5.1000"].mean[WAYS.index("LR_Roos BFGS")] > 50
    mean = means(measured, "flops")
    assert sorted(WAYS, key=mean.__getitem__)[:2] == ["LR_Roos CG", "LR CG"]


def test_the_own_optimizer_needs_no_more_iterations_than_the_best_of_the_nine(measured: report.Trials) -> None:
    assert means(measured, "iterations")[OWN] < 1.2 * min(means(measured, "iterations")[way] for way in WAYS)


def test_conjugate_gradients_often_do_not_arrive_at_a_thousandth(measured: report.Trials) -> None:
    _, arrived = report.seconds(measured, SHARES[1])
    total = dict(zip((*WAYS, OWN), np.sum(list(arrived.values()), axis=0), strict=True))
    runs = sum(map(len, measured.values()))
    assert all(total[f"{space} BFGS"] == runs for space in SPACES)
    assert total[OWN] == runs
    assert total["LR CG"] < 0.75 * runs
