"""Claims of Zaidi et al. (2017) that hold here; curves and tables are in zaidi.csv and zaidi.md."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.performance.workloads import real_path
from tests.published import zaidi_page as report
from tests.published.climbs import one_thread
from tests.published.pages import UPDATING, write_csv
from tests.published.zaidi import (
    EXPONENTS,
    IN_UNITS,
    LARGE,
    OWN,
    PRECISE,
    SPACES,
    STARTS,
    STRUCTURES,
    TO_THE_END,
    cases,
    conditioning,
    small_sets,
    to_the_optimum,
)
from tests.published.zaidi_page import Measured

pytestmark = pytest.mark.slow

PAGE = Path(__file__).with_name("zaidi.md")
CURVES = PAGE.with_suffix(".csv")


@pytest.fixture(scope="module")
def measured() -> Measured:
    """Writes the files. Takes minutes, so only where it is told to."""
    if not UPDATING:
        pytest.skip("takes ten minutes: BNCLI_UPDATE=1 measures again, checks the claims and writes the tables")
    for name in (*LARGE, *TO_THE_END, *PRECISE):
        real_path(name)
    with one_thread():
        list(cases("car", max_iterations=5))  # warms up
        found = Measured(
            [case for name, n_rows in LARGE.items() for case in cases(name, n_rows, own=OWN)],
            [case for name in small_sets() for case in cases(name, words=(*SPACES, IN_UNITS), max_iterations=100)],
            [case for name in TO_THE_END for case in cases(name, max_iterations=2000, tolerance=1e-32)],
            [case for name in PRECISE for case in to_the_optimum(name)],
            {a: [conditioning(a, seed) for seed in range(10)] for a in EXPONENTS},
        )
    PAGE.write_text(report.page(found))
    header = ("set", "structure", "start", "space", *map(str, report.GRID))
    write_csv(CURVES, [header, *report.curve_lines(found.large)])
    return found


def test_all_spaces_begin_at_the_same_point(measured: Measured) -> None:
    for case in measured.large:
        for start in STARTS:
            values = [case.climbs[space, start].start for space in ("w", "d", "e")]
            assert values == pytest.approx([values[0]] * 3, rel=1e-9)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_weights_are_ahead_of_free_tables(measured: Measured, structure: str, start: str) -> None:
    """On four sets of five at least, by two iterations and more on average."""
    lags = report.lags([*measured.large, *measured.small], structure, "d", start)
    assert np.mean(np.array(lags) > 0) > 0.8
    assert np.mean(lags) > 2


@pytest.mark.parametrize("structure", STRUCTURES)
def test_weights_are_ahead_of_networks_from_zero(measured: Measured, structure: str) -> None:
    lags = report.lags([*measured.large, *measured.small], structure, "e", "zero")
    assert np.mean(np.array(lags) > 0) > 0.7


@pytest.mark.parametrize("structure", STRUCTURES)
def test_another_unit_for_free_tables_changes_little(measured: Measured, structure: str) -> None:
    """So it is the relative scale of the weights that helps, as the paper says."""
    for start in STARTS:
        free, scaled = (np.mean(report.lags(measured.small, structure, space, start)) for space in ("d", IN_UNITS))
        assert scaled == pytest.approx(free, abs=1.0)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_free_tables_take_longer(measured: Measured, structure: str, start: str) -> None:
    """In iterations to 1 %: at least half as many again."""
    chosen = [case for case in measured.large if case.structure == structure]
    assert report.ratio(chosen, ("d", start, False), 0.01, "iteration") > 1.5


def test_the_worse_the_conditioning_the_more_weights_help(measured: Measured) -> None:
    """After five iterations."""
    advantage = [report.missing(runs, "d", 5) - report.missing(runs, "w", 5) for runs in measured.conditioning.values()]
    assert advantage == sorted(advantage)
    assert abs(advantage[0]) < 0.002
    assert advantage[-1] > 0.02


def test_the_own_optimizer_arrives_sooner(measured: Measured) -> None:
    """At the optimum, not on the first stretch: in less than half of w's passes, and where w does not arrive."""
    assert report.saved(measured.precise, "ours", 1e-6, "passes") < 0.5
    arrived = [
        (case.arrival(case.own["d", "generative"], 1e-6), case.arrival(case.climbs["w", "generative"], 1e-6))
        for case in measured.precise
    ]
    ours, theirs = (sum(moment is not None for moment in column) for column in zip(*arrived, strict=True))
    assert ours > theirs
