"""Claims of Carvalho, Adao & Mateus (2013), tested on other data; the figures are in carvalho.md and carvalho.csv."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.published.carvalho import BINARY, DRAWS, FIGURES, TERNARY, WAYS, Case, artificial_case, real_case
from tests.published.carvalho_page import HEADER, compared, lines, page, read
from tests.published.pages import UPDATING, read_csv, write_csv

PAGE = Path(__file__).with_name("carvalho.md")
TABLE = PAGE.with_suffix(".csv")
QUICK = ("haberman", "crx", "wine")
"""Sets that every run measures again."""


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    """What the file holds; with BNCLI_UPDATE=1 all is measured, which takes minutes, and the files are written."""
    if UPDATING:
        real = [real_case(name) for name in (*BINARY, *TERNARY)]
        artificial = [artificial_case(n_labels, draw) for n_labels in (2, 3) for draw in range(DRAWS)]
        write_csv(TABLE, [HEADER, *lines([*real, *artificial])])
    return read(read_csv(TABLE))


def test_the_page_shows_the_figures(cases: list[Case]) -> None:
    if UPDATING:
        PAGE.write_text(page(cases))
    assert PAGE.read_text() == page(cases)


@pytest.mark.parametrize("figure", ["training", "held out"])
@pytest.mark.parametrize("way", ["acll", "uniform", "ll/acll"])
def test_tables_by_acll_lose_on_every_set(cases: list[Case], way: str, figure: str) -> None:
    """The paper's main claim is the opposite."""
    assert all(case.nats[figure, way] < case.nats[figure, "ll"] for case in cases)


def test_with_three_classes_the_uniform_assumption_is_the_better_one(cases: list[Case]) -> None:
    for group in ("three classes", "artificial, three classes"):
        assert compared(cases, "training", ("acll", "uniform"), group).p_lower < 0.01


def test_with_two_classes_the_assumptions_are_alike(cases: list[Case]) -> None:
    """The paper finds the Dirichlet assumption better."""
    for group in ("two classes", "artificial, two classes"):
        assert compared(cases, "training", ("acll", "uniform"), group).p > 0.5


@pytest.mark.parametrize("way", ["acll/fgg", "uniform/fgg"])
def test_with_the_same_tables_trees_by_acll_help_only_held_out_artificial_rows(cases: list[Case], way: str) -> None:
    assert compared(cases, "training", (way, "ll"), "all").p_lower < 0.001
    assert compared(cases, "training", (way, "ll"), "artificial").p_lower < 0.001
    assert compared(cases, "held out", (way, "ll"), "all").p_lower < 0.01
    assert compared(cases, "held out", (way, "ll"), "artificial").p_higher < 0.02


def test_the_approximation_prefers_its_own_tables_and_exceeds_what_a_likelihood_can_be(cases: list[Case]) -> None:
    real = [case.nats for case in cases if not case.artificial]
    assert sum(nats["approximation", "acll"] > nats["approximation", "ll"] for nats in real) == 24
    assert sum(nats["approximation", "acll"] > 0 for nats in real) == 20


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_real_figures_are_those_of_the_file(name: str, cases: list[Case]) -> None:
    agree(real_case(name), cases)


def test_artificial_figures_are_those_of_the_file(cases: list[Case]) -> None:
    agree(artificial_case(3, 1), cases)


def agree(measured: Case, cases: list[Case]) -> None:
    written = next(each for each in cases if each.name == measured.name)
    assert (measured.n_labels, measured.n_rows) == (written.n_labels, written.n_rows)
    for figure in FIGURES:
        for way in WAYS:
            assert measured.nats[figure, way] == pytest.approx(written.nats[figure, way], rel=1e-6, abs=1e-8)
