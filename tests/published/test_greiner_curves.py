"""Greiner et al. (2004), figure 2: the page shows the figures, and what it says of them holds in them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bncli.engine.evaluation.significance import paired_t
from tests.cli.conftest import Bncli
from tests.cli.conftest import bncli as bncli
from tests.performance.workloads import real_path
from tests.published.greiner_curves import PANELS, PROTOCOL, SIZES, ZERO, cases, outcomes, recorded, section
from tests.published.greiner_page import PAGE
from tests.published.targets import rows_of


def test_the_page_shows_the_figures() -> None:
    assert "\n\n".join(section(recorded())) in PAGE.read_text()


def test_every_size_is_learnt_from_in_every_fold() -> None:
    ways = {(panel.rows, way) for panel in PANELS for way in panel.ways}
    expected = [
        (*way, size, repeat, fold)
        for way in ways
        for size in SIZES
        for repeat in range(PROTOCOL.repeats)
        for fold in range(PROTOCOL.folds)
    ]
    assert sorted(case[:5] for case in recorded()) == sorted(expected)


@pytest.mark.slow
@pytest.mark.avx2
def test_the_figures_are_those_of_this_program() -> None:
    told = {case[:5]: case[5:] for case in recorded()}
    for case in cases(rows_of("chess"), 1, 2, SIZES[:2]):
        assert case[5:] == pytest.approx(told[case[:5]], rel=1e-5)


@pytest.mark.slow
@pytest.mark.avx2
@pytest.mark.parametrize("way", ["NB+OFE", "TAN+ELR"])
def test_the_command_says_the_same(bncli: Bncli, way: str) -> None:
    options = ["--structure", way[: way.index("+")].lower(), "--missing-policy", "marginalize", "--param"]
    elr = ["extended", "--optimizer", "cg", "--penalty", "0", "--early-stop", "cv", "--tolerance", "1e-6"]
    options += [*elr, "--max-iterations", "60"] if way.endswith("ELR") else ["map"]
    words = ("--folds", "3", "--repeats", "2", "--train-rows", "25", "--json", "-q")
    curve = json.loads(bncli("evaluate", real_path("chess_krkp"), *options, *words).out)["learning_curve"]
    errors = outcomes(recorded(), "error")
    for point in curve:
        told = errors["complete", way, point["rows"]]
        assert point["error"] == pytest.approx(np.mean(told), rel=1e-5)
        assert point["std"]["error"] == pytest.approx(np.std(told, ddof=1), rel=1e-4)


def p_lower(rows: str, first: str, second: str, size: int, figure: str = "error") -> float:
    """That the first is not lower, over the six folds."""
    found = outcomes(recorded(), figure)
    return paired_t(found[rows, first, size], found[rows, second, size]).p_lower


def mean(rows: str, way: str, size: int, figure: str = "error") -> float:
    return float(np.mean(outcomes(recorded(), figure)[rows, way, size]))


def test_elr_errs_less_than_ofe_at_every_size_and_converges_quickly() -> None:
    assert all(p_lower("complete", "NB+ELR", "NB+OFE", size) < 0.05 for size in SIZES)
    assert mean("complete", "NB+ELR", 400) < mean("complete", "NB+OFE", SIZES[-1]) / 2


def test_the_start_matters_with_few_rows_and_not_by_much() -> None:
    gains = {size: mean("complete", ZERO, size) - mean("complete", "NB+ELR", size) for size in SIZES}
    for size in SIZES[:3]:
        assert 0.005 < gains[size] < 0.055
        assert p_lower("complete", "NB+ELR", ZERO, size) > 0.05
    assert all(abs(gains[size]) < 0.01 for size in SIZES[3:])


def test_with_missing_values_elr_errs_less_than_em_and_apn() -> None:
    for other in ("NB+APN", "NB+EM"):
        assert all(mean("holes", "NB+ELR", size) < mean("holes", other, size) for size in SIZES)
        assert all(p_lower("holes", "NB+ELR", other, size) < 0.05 for size in SIZES[2:])


def test_with_a_general_network_elr_and_ofe_err_alike() -> None:
    assert all(0.05 < p_lower("complete", "GBN+ELR", "GBN+OFE", size) < 0.95 for size in SIZES)
    assert all(p_lower("complete", "GBN+ELR", "GBN+OFE", size, "log_loss") < 0.05 for size in SIZES[5:])
    for way in ("NB+ELR", "TAN+ELR"):
        assert p_lower("complete", way, "GBN+ELR", SIZES[-1]) < 0.01


def test_with_a_tree_elr_errs_less_as_soon_as_there_are_rows() -> None:
    assert all(p_lower("complete", "TAN+ELR", "TAN+OFE", size) < 0.05 for size in SIZES[2:])
    for size in SIZES[:2]:
        assert p_lower("complete", "TAN+ELR", "TAN+OFE", size) > 0.05
        assert p_lower("complete", "TAN+ELR", "NB+ELR", size) > 0.05
