"""Claims of Carvalho, Adao & Mateus (2013), tested on other data; the figures are in carvalho.md and carvalho.csv."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import numpy as np
import pytest

from bncli.engine.structures.scores import dirichlet_approximation, uniform_approximation
from tests.published import carvalho_errors
from tests.published.carvalho import BINARY, DRAWS, FIGURES, TERNARY, WAYS, B, Case, artificial_case, real_case
from tests.published.carvalho_page import HEADER, compared, lines, page, read, relative_error
from tests.published.pages import UPDATING, read_csv, write_csv

PAGE = Path(__file__).with_name("carvalho.md")
TABLE = PAGE.with_suffix(".csv")
ERRORS = PAGE.with_name("carvalho_errors.csv")
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
        write_csv(ERRORS, [carvalho_errors.HEADER, *carvalho_errors.lines(carvalho_errors.line_errors())])
        PAGE.write_text(page(cases, carvalho_errors.read(read_csv(ERRORS))))
    assert PAGE.read_text() == page(cases, carvalho_errors.read(read_csv(ERRORS)))


def test_the_papers_relative_error_is_the_mean_square_over_that_of_the_mean() -> None:
    two, three, uniform_two, uniform_three = carvalho_errors.read(read_csv(ERRORS))
    assert f"{100 * two.by_square:.2f}" == "13.92"
    assert f"{uniform_two.by_root / two.by_square:.2f}" == "1.98"
    assert two.by_root > uniform_two.by_root
    assert three.by_root > uniform_three.by_root
    for stored, again in zip((two, three, uniform_two, uniform_three), carvalho_errors.line_errors(), strict=True):
        assert (stored.square, stored.mean) == pytest.approx((again.square, again.mean), abs=1e-9)


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("distribution", ["Dirichlet", "uniform"])
def test_errors_of_the_line_by_simulation(distribution: str, n_labels: int) -> None:
    rng = np.random.default_rng(5)
    if distribution == "uniform":
        u, line = rng.random((200_000, n_labels)), uniform_approximation(n_labels)
    else:
        u = rng.dirichlet([1.0] * n_labels + [B], 200_000)[:, :n_labels]
        line = dirichlet_approximation(n_labels, B)
    exact = np.log(u[:, 0]) - np.log(u.sum(axis=1))
    approximate = np.log(u[:, 0]) - line.beta * np.log(u).sum(axis=1) - line.gamma
    found = next(e for e in carvalho_errors.line_errors() if (e.distribution, e.n_labels) == (distribution, n_labels))
    assert np.square(approximate - exact).mean() == pytest.approx(found.square, rel=0.02)
    assert exact.mean() == pytest.approx(found.mean, rel=0.01)


def test_on_data_the_relative_error_is_far_above_the_papers(cases: list[Case]) -> None:
    real = [case for case in cases if not case.artificial]
    assert f"{min(relative_error(case, 'acll') for case in real):.2f}" == "0.35"
    assert median(relative_error(case, "acll") for case in real) > 2


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
    assert sum(nats["approximation", "acll"] > 0 for nats in real) == 22


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
