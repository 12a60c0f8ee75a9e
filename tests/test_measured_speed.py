"""RESULTS.md is what figures.csv gives, limits that are missed say why, and a figure that grew is an objection."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.performance import growth, passes
from tests.performance.results import PAGE, SLACK, Figure, Results, objection, page, read, summary, write

KEPT = Figure("Trees", "a tree of letter", 0.5, "x its time", 1.0)
MISSED = Figure("Trees", "a tree of adult", 2.0, "x its time", 1.0, "fixed costs")
UNLIMITED = Figure("Passes", "adult", 20.0, "passes")


def test_the_page_is_made_from_the_figures() -> None:
    assert page(read()) == PAGE.read_text()


def test_the_picture_of_growth_is_made_from_its_figures() -> None:
    points = growth.recorded()
    assert growth.PICTURE.read_text() == growth.picture(points)
    assert {point.command for point in points} == {*growth.COMMANDS}
    cpu = {(point.command, point.rows): point.cpu for point in points if point.columns == growth.FEW_COLUMNS}
    ratios = {command: cpu[command, 1_000_000] / cpu[command, 100_000] for command in growth.COMMANDS}
    assert ratios.pop("fit") <= 1.0, "the manual says no longer"
    assert (round(min(ratios.values())), round(max(ratios.values()))) == (2, 4), "the manual says 2 to 4 times"


def test_every_figure_stands_once_and_says_why_its_limit_is_missed() -> None:
    figures = read().figures
    assert len({figure.key for figure in figures}) == len(figures) > 100
    for figure in figures:
        assert figure.is_missed == bool(figure.missed), figure.what
        assert "|" not in figure.what + figure.detail + figure.missed


def test_the_sections_are_those_of_the_modules() -> None:
    modules = sorted(PAGE.parent.glob("test_*.py"))
    headings = {path.read_text().split("\n")[0].strip('".') for path in modules}
    assert {figure.section for figure in read().figures} == headings


def test_the_means_of_the_survey_are_those_of_its_table() -> None:
    lines = passes.recorded()
    told = {
        figure.what: figure for figure in read().figures if figure.section.startswith("Passes to the optimum, over")
    }
    for penalty, peer in ((1.0, "plain L-BFGS, lambda 1"), (0.0, "L-BFGS on weights as published, no penalty")):
        for least, which in ((0, "all"), (passes.MANY_ROWS, "over 10,000 rows")):
            ratio, detail = passes.ratio(lines, penalty, least)
            figure = told.pop(f"{peer}, {which}")
            # the table has whole passes
            assert figure.measured == pytest.approx(ratio, rel=0.01)
            assert figure.detail == detail
    for penalty in (1.0, 0.01):
        missing, n_problems, detail = passes.arrivals(lines, penalty)
        figure = told.pop(f"lambda {penalty:g}: problems that do not arrive")
        assert (figure.measured, figure.unit, figure.detail) == (missing, f"of {n_problems}", detail)
    assert not told


def test_a_ratio_of_the_survey_counts_preconditioners_and_caps_what_does_not_arrive() -> None:
    lines = [
        passes.Line("a", "NB", 20_000, 1, 1.0, 10, 10, 40),
        passes.Line("b", "NB", 2_000, 1, 1.0, passes.CAP, 30, passes.CAP),
        passes.Line("b", "NB", 2_000, 1, 0.0, 1, 1, 1),
    ]
    assert passes.ratio(lines, 1.0)[0] == pytest.approx(((20 * 500) / (40 * 500)) ** 0.5)
    assert passes.ratio(lines, 1.0, passes.MANY_ROWS)[0] == pytest.approx(0.5)
    found = passes.means(lines, 1.0)
    assert (found.problems, found.late, found.peer_late) == (2, 1, 1)


@pytest.mark.parametrize("updating", [False, True])
def test_a_limit_that_is_to_be_kept_is_kept(updating: bool) -> None:
    assert objection(KEPT, None, updating=updating) is None
    assert objection(replace(KEPT, measured=1.0), None, updating=updating) is None
    above = replace(KEPT, measured=1.01)
    assert "at most 1 " in (objection(above, above, updating=updating) or "")


@pytest.mark.parametrize("figure", [MISSED, UNLIMITED])
def test_without_a_limit_or_beyond_it_a_figure_may_not_grow(figure: Figure) -> None:
    most = SLACK * figure.measured
    assert figure.bound == most
    assert objection(replace(figure, measured=most), figure) is None
    grown = replace(figure, measured=most * 1.001)
    assert "times what is recorded" in (objection(grown, figure) or "")
    assert "no figure is recorded" in (objection(figure, None) or "")
    assert objection(grown, figure, updating=True) is None
    assert objection(figure, None, updating=True) is None


def test_a_limit_that_was_missed_and_is_kept_now_is_no_objection() -> None:
    assert objection(replace(MISSED, measured=1.0), None) is None


def test_figures_are_read_as_they_are_written_and_newer_ones_replace_them(tmp_path: Path) -> None:
    path = tmp_path / "figures.csv"
    old = Results("Machine: a.\nSoftware: 1.", (UNLIMITED, KEPT, MISSED))
    write(old, path)
    assert read(path) == old
    faster = replace(MISSED, measured=0.9)
    both = old.renewed(Results("Machine: a.\nSoftware: 2.", (faster,)))
    assert both == Results("Machine: a.\nSoftware: 2.", (UNLIMITED, KEPT, faster))
    assert old.renewed(Results("Machine: b.\nSoftware: 1.", (KEPT,))).figures == (KEPT,)
    write(both, path)
    assert [figure.missed for figure in read(path).figures] == ["", "", ""]
    assert read(tmp_path / "none.csv") == Results("", ())


def test_the_page_lists_what_is_missed_with_its_reason_and_what_would_fail() -> None:
    text = page(Results("Machine: a.", (UNLIMITED, KEPT, MISSED)))
    first, rest = text.split("## Passes")
    assert "| Trees | a tree of adult | 2 x its time | 1 | fixed costs |" in first
    assert "letter" not in first
    assert "| adult | 20 passes |  | 30 |  |" in rest
    assert "| a tree of letter | 0.5 x its time | 1 | 1 |  |" in rest
    assert "| a tree of adult | 2 x its time | 1 | 3 |  |" in rest


def test_a_run_tells_what_it_measured() -> None:
    now = replace(MISSED, measured=2.5)
    assert summary([now, KEPT], Results("", (MISSED,))) == [
        "Trees: a tree of adult: 2.5 x its time (recorded 2, at most 1)  MISSED: fixed costs",
        "Trees: a tree of letter: 0.5 x its time (not recorded, at most 1)",
    ]
