"""Claims of Feelders & Ivanovs (2006) that hold here; their Table 2 beside ours is in feelders_ivanovs.md."""

from __future__ import annotations

import numpy as np
import pytest

from bncli.engine.counting.counts import Counts
from tests.performance.workloads import real
from tests.published import feelders_ivanovs as experiment
from tests.published import feelders_ivanovs_figures as figures
from tests.published import feelders_ivanovs_page as report
from tests.published.climbs import one_thread
from tests.published.feelders_ivanovs import (
    ALL_SETS,
    OPTIMIZERS,
    OWN,
    PAGE,
    SEARCHED,
    SHARES,
    SPACES,
    WAYS,
    climbs,
    found_structure,
    recorded,
)
from tests.published.pages import UPDATING, read_csv


@pytest.fixture(scope="module")
def measured() -> report.Trials:
    """The trials in the file; with BNCLI_UPDATE=1 the page and its drawings are written from them."""
    found = recorded()
    if UPDATING:
        report.write(found)
    return found


def test_the_page_and_its_drawings_are_made_from_the_figures(measured: report.Trials) -> None:
    assert PAGE.read_text() == report.page(measured)
    for name, text in figures.drawings().items():
        assert PAGE.with_name(name).read_text() == text


def test_every_set_has_all_its_draws(measured: report.Trials) -> None:
    assert {name: len(each) for name, each in measured.items()} == ALL_SETS


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pima", "glass", "1.5.2-3.1000"])
def test_the_figures_are_those_of_this_program(name: str, measured: report.Trials) -> None:
    """Another machine's exponentials may change an iteration here and there."""
    with one_thread():
        found = climbs(name).trial
    for figure in ("iterations", "flops"):
        now, told = (np.array([getattr(trial, figure)(way) for way in WAYS]) for trial in (found, measured[name][0]))
        np.testing.assert_allclose(now, told, rtol=0.3, err_msg=figure)
        assert np.mean(np.log(now / told)) == pytest.approx(0, abs=0.1)


@pytest.mark.slow
def test_the_structures_and_curves_are_those_of_this_program() -> None:
    found = experiment.problem("pima")
    arcs = [tuple(line) for line in read_csv(experiment.ARCS)[1:] if line[0] == "pima"]
    assert experiment.arcs_of("pima", found[0].data, found[1]) == arcs
    ways = figures.curves()
    for way, climb in climbs("pima").climbs.items():
        told = np.array([cll for _, cll, _ in ways.get(way, [])])
        now = np.array([moment.cll for moment in climb.moments])[: len(told)]
        np.testing.assert_allclose(now[:5], told[:5], rtol=1e-6, err_msg=way)


@pytest.mark.slow
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
