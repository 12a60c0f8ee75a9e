"""Claims of Zaidi et al. (2017) that hold here, on the figures of zaidi_*.csv; what the page says of them is so.

The slow ones measure some of the figures again.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from bncli.engine.counting.counts import Counts
from tests.performance.workloads import real_path
from tests.published import zaidi_page as report
from tests.published.climbs import climb, one_thread
from tests.published.zaidi_figures import figures
from tests.published.zaidi_page import FROM_MODEL, OURS, PAGE, Measured, of
from tests.published.zaidi_runs import IN_UNITS, SPACES, STARTS, STRUCTURES, Way, path, recorded

EXPONENTS = ("0", "0.25", "0.5", "0.75", "1")
BOTH = pytest.mark.parametrize(("structure", "start"), [(s, start) for s in STRUCTURES for start in STARTS])


@cache
def measured() -> Measured:
    return report.measured()


@pytest.mark.slow
def test_the_page_and_its_drawings_are_made_from_the_figures() -> None:
    found = measured()
    assert PAGE.read_text() == report.page(found)
    drawn = figures(found.large, found.all_sets)
    assert sorted(PAGE.parent.glob("zaidi_*.svg")) == sorted(PAGE.with_name(name) for name in drawn)
    for name, text in drawn.items():
        assert PAGE.with_name(name).read_text() == text
        assert f"({name})" in PAGE.read_text()


def test_every_set_is_climbed_with_every_structure() -> None:
    found = measured()
    assert len({case.name for case in found.all_sets}) >= 45
    for cases in (found.large, found.small, found.ends, found.optimum):
        names = {case.name for case in cases}
        assert {(case.name, case.structure) for case in cases} == {(n, s) for n in names for s in STRUCTURES}
    assert tuple(dict.fromkeys(case.name for case in found.conditioning)) == EXPONENTS


def test_all_spaces_begin_at_the_same_point() -> None:
    for case in measured().large:
        for start in STARTS:
            values = [case.climbs[Way(space, start, o)].start for space in SPACES for o in ("plain", "lbfgs")]
            assert values == pytest.approx([values[0]] * len(values), rel=1e-7)


@BOTH
def test_weights_are_ahead_of_free_tables(structure: str, start: str) -> None:
    """On four sets of five at least, by two iterations and more on average, but by less than the paper's ten."""
    lags = report.lags(measured().all_sets, structure, Way("d", start, "plain"))
    assert report.ahead(lags) > 0.8 * len(lags)
    assert 2 < np.mean(lags) < 10


@pytest.mark.parametrize("structure", STRUCTURES)
def test_weights_are_ahead_of_networks_from_zero(structure: str) -> None:
    """And the networks are mostly ahead of free tables."""
    found = measured()
    lags = report.lags(found.all_sets, structure, Way("e", "zero", "plain"))
    assert report.ahead(lags) > 0.7 * len(lags)
    assert np.mean(lags) < report.mean_lag(found.all_sets, structure, Way("d", "zero", "plain"))


@pytest.mark.parametrize("structure", STRUCTURES)
def test_networks_from_the_generative_model_are_not_behind_everywhere(structure: str) -> None:
    lags = report.lags(measured().all_sets, structure, Way("e", "generative", "plain"))
    assert 0.3 * len(lags) < report.ahead(lags) < 0.7 * len(lags)


@BOTH
def test_another_unit_for_free_tables_changes_little(structure: str, start: str) -> None:
    """So it is the relative scale of the weights that helps, as the paper says."""
    free, scaled = Way("d", start, "plain"), Way(IN_UNITS, start, "plain")
    assert abs(report.mean_lag(measured().small, structure, scaled, free)) < 1


@BOTH
def test_a_preconditioner_makes_weights_and_free_tables_alike_but_not_networks(structure: str, start: str) -> None:
    sets = measured().all_sets
    free, network = Way("d", start, "lbfgs"), Way("e", start, "lbfgs")
    assert abs(report.mean_lag(sets, structure, free)) < 1.5
    assert report.mean_lag(sets, structure, free._replace(optimizer="plain")) > 2
    assert report.mean_lag(sets, structure, network) > 3


@BOTH
def test_free_tables_take_longer(structure: str, start: str) -> None:
    """To 1 %, in processor time; networks are no order of magnitude slower."""
    large = of(measured().large, structure)
    assert 1 < report.ratio(large, Way("d", start, "plain"), 0.01, "seconds") < 4
    assert report.ratio(large, Way("e", start, "plain"), 0.01, "seconds") < 5
    assert report.spent_a_pass(large, structure, "e") < 2 * report.spent_a_pass(large, structure, "w")


def test_the_weights_speed_up_the_beginning_not_the_end() -> None:
    ends = measured().ends
    ratios = {
        s: [report.end_ratio(ends, s, Way("d", start, "plain"), "iteration") for start in STARTS] for s in STRUCTURES
    }
    assert min(ratios["NB"]) > 1.3
    assert max(ratios["TAN"] + ratios["KDB-1"]) < 1.3


def test_the_worse_the_conditioning_the_more_weights_help() -> None:
    """After five iterations."""
    cases = measured().conditioning
    advantage = [report.missing(cases, a, "d", 5) - report.missing(cases, a, "w", 5) for a in EXPONENTS]
    assert advantage == sorted(advantage)
    assert abs(advantage[0]) < 0.002
    assert advantage[-1] > 0.02


def test_the_own_optimizer_arrives_sooner() -> None:
    """At the optimum, not on the first stretch: in less than half of w's passes, and where w does not arrive."""
    found = measured()
    assert report.saved(found.optimum, OURS, 1e-6, "passes") < 0.5
    ours, theirs = (sum(case.arrival(way, 1e-6) is not None for case in found.optimum) for way in (OURS, FROM_MODEL[0]))
    assert ours > theirs
    for structure in STRUCTURES:
        assert report.ratio(of(found.large, structure), OURS, 0.01, "seconds") > 1


def test_every_iteration_up_to_the_one_that_is_compared_is_kept() -> None:
    """And in the long runs what they cost."""
    for case in [*measured().all_sets, *measured().optimum]:
        for way, run in case.climbs.items():
            assert [m.iteration for m in run.moments[:6]] == list(range(min(6, len(run.moments)))), (case.name, way)
    for case in measured().large:
        assert all(m.passes > 0 and math.isfinite(m.seconds) for run in case.climbs.values() for m in run.moments)


def test_the_files_are_small() -> None:
    assert sum(path(study).stat().st_size for study in Measured.__annotations__) < 1e6


@pytest.mark.slow
@pytest.mark.parametrize("name", ["iris", "car"])
def test_the_figures_are_those_of_this_program(name: str) -> None:
    """Iterations and NLLs.

    Rounding grows on the way: where the published optimiser stands at the end differs between processors, by 5 % on
    iris (the kernels of OpenBLAS for Haswell, Nehalem and Prescott). Of its runs the first iterations are compared.
    """
    from tests.published.zaidi import climbed, studies

    real_path(name)
    told = {run[:3]: run.climb for run in recorded("small") if run.set == name}
    with one_thread():
        again = {run[:3]: run.climb for structure in STRUCTURES for run in climbed(name, structure, studies()["small"])}
    assert again.keys() == told.keys()
    for key, run in again.items():
        for moment, before in zip(run.moments[:6], told[key].moments[:6], strict=True):
            assert moment.iteration == before.iteration
            assert moment.cll == pytest.approx(before.cll, rel=1e-5)
        rounding = 0.1 if key[2].optimizer == "lbfgs" and name == "iris" else 1e-3
        assert run.best == pytest.approx(told[key].best, rel=rounding, abs=1e-3)


@pytest.mark.slow
def test_without_its_preconditioner_the_product_climbs_as_published() -> None:
    """The first iterations, in which five pairs and ten are the same."""
    from tests.published.zaidi import rows_of, spaces_of, structure_of

    real_path("car")
    counts = Counts(rows_of("car"))
    for run in recorded("small"):
        space, start, optimizer = run.way
        if run.set == "car" and optimizer == "plain" and space in SPACES:
            found = spaces_of(counts, structure_of(counts, run.structure))[space]
            again = climb(found, "lbfgs", init=start, max_iterations=6, preconditioner="off")
            told = [moment.cll for moment in run.climb.moments[:6]]
            assert [moment.cll for moment in again.moments[:6]] == pytest.approx(told, rel=1e-6)


@pytest.mark.slow
def test_the_conditioning_is_that_of_this_program() -> None:
    from tests.published.zaidi import conditioning

    told = {run[:3]: run.climb for run in recorded("conditioning")}
    for run in conditioning(0.5, 3):
        assert [m.cll for m in run.climb.moments[:6]] == pytest.approx(
            [m.cll for m in told[run[:3]].moments[:6]], rel=1e-5
        )
