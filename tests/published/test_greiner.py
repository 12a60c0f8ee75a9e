"""The page of Greiner et al. (2004) is what its files of figures give, and what it says holds on them.

Some of the figures are measured again by `-m slow`.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.published import greiner, greiner_studies
from tests.published.greiner import BAD, INCOMPLETE, SHARE, SHARES, SHARES_TABLE, STRUCTURES
from tests.published.greiner_page import PAGE, Claim, of_tables, page_of_records, printed_claims
from tests.published.greiner_studies import TRUTHS, Truth, simpler, single

AGAIN = ("corral", "glass2")
"""Tables measured in every slow run."""


def test_the_page_shows_the_figures() -> None:
    assert PAGE.read_text() == page_of_records()


@pytest.mark.slow
@pytest.mark.parametrize("name", AGAIN)
def test_the_figures_are_those_of_this_program(name: str) -> None:
    told = {case[:3]: case[3:] for case in greiner.recorded()}
    for case in greiner.cases(name):
        assert case[3:] == pytest.approx(told[case[:3]], abs=2e-6)


@pytest.mark.slow
def test_the_figures_by_share_are_those_of_this_program() -> None:
    ways = ("NB+ELR", "NB+APN", "TAN+EM")
    told = {case[:3]: case[3:] for case in greiner.recorded_shares()[0.5]}
    for case in greiner.cases_with_holes(SHARES_TABLE, 0.5, ways):
        assert case[3:] == pytest.approx(told[case[:3]], abs=2e-6)


@pytest.mark.slow
def test_the_figures_of_a_study_are_those_of_this_program() -> None:
    told = {case[:5]: case.errors for case in greiner_studies.recorded()}
    for case in greiner_studies.cases(TRUTHS[3]):
        assert case.errors == pytest.approx(told[case[:5]], rel=1e-5)


def test_every_share_is_there_and_a_quarter_agrees_with_the_tables() -> None:
    found = greiner.recorded_shares()
    assert tuple(found) == SHARES
    of_the_tables = {case[:3]: case for case in greiner.recorded()}
    assert all(case == of_the_tables[case[:3]] for case in found[SHARE])
    assert {len(cases) for cases in found.values()} == {2 * len(INCOMPLETE)}


def test_tables_4_and_5_are_whole() -> None:
    claims = printed_claims()
    for where, ways, n_pairs in (("Table 4", greiner.COMPLETE, 15), ("Table 5", PARAMETERS_OF_TABLE_5, 36)):
        pairs = {frozenset((claim.first, claim.second)) for claim in claims if claim.where == where}
        assert Counter(claim.where for claim in claims)[where] == len(pairs) == n_pairs
        assert pairs == {frozenset((a, b)) for a in ways for b in ways if a != b}


PARAMETERS_OF_TABLE_5 = tuple(f"{structure}+{p}" for structure in STRUCTURES for p in ("ELR", "APN", "EM"))


def better(rows: str, first: str, second: str) -> float:
    """The p of the paired t-test in accuracy."""
    return greiner.compare(greiner.measured(greiner.recorded()), rows, first, second).p_higher


def studied(study: str, first: str, second: str, *, holes: bool = False, setting: str = "") -> float:
    found = greiner_studies.recorded()
    return greiner_studies.compare(found, study, holes=holes, ways=(first, second), setting=setting).p_higher


def test_the_tests_agree_with_the_paper_on_its_own_figures() -> None:
    """Where the p-value is one that its tables give."""
    theirs = greiner.printed()
    for claim in CLAIMS:
        if claim.p is not None and (claim.rows, claim.first, claim.second) not in NOT_FROM_THE_TABLES:
            found = greiner.compare(theirs, claim.rows, claim.first, claim.second).p_higher
            assert claim.p / 2 < found < claim.p * 1.1


NOT_FROM_THE_TABLES = (
    ("complete", "TAN+ELR", "TAN+OFE"),
    ("complete", "NB+ELR", "GBN+ELR"),
    ("holes", "TAN+ELR", "TAN+APN"),
    ("holes", "TAN+ELR", "TAN+EM"),
    ("holes", "x+ELR", "x+APN"),
    ("holes", "x+ELR", "x+EM"),
)


def test_learning_to_classify_makes_the_better_classifier() -> None:
    assert better("complete", "x+ELR", "x+OFE") < 0.0015
    assert better("complete", "NB+ELR", "NB+OFE") < 0.005
    assert better("holes", "x+ELR", "x+APN") < 0.0015
    assert better("holes", "x+ELR", "x+EM") < 0.01
    assert better("holes", "NB+ELR", "NB+APN") < 0.05
    assert better("holes", "NB+ELR", "NB+EM") < 0.025


def test_simple_structures_beat_general_networks() -> None:
    for rows in ("complete", "holes"):
        for structure in ("NB", "TAN"):
            assert better(rows, f"{structure}+ELR", "GBN+ELR") < 0.02
    assert better("complete", "NB+ELR", "GBN+OFE") < 0.03


def test_wrong_structures_do_not_hurt_who_learns_to_classify() -> None:
    assert studied("simpler", "ELR", "OFE") < 1e-6
    assert studied("simpler", "ELR", "APN", holes=True) < 1e-3
    assert studied("simpler", "ELR", "EM", holes=True) < 1e-3


def test_structures_that_say_too_much_are_for_those_who_describe() -> None:
    assert studied("single", "OFE unsmoothed", "ELR unsmoothed", setting="98%") < 0.002
    assert studied("chain", "OFE", "ELR") < 0.01
    assert studied("chain", "EM", "ELR", holes=True) < 0.05


@pytest.mark.parametrize("truth", TRUTHS, ids=lambda truth: f"{truth.study} {truth.setting}")
def test_the_truths_are_distributions(truth: Truth) -> None:
    assert truth.probabilities.sum() == pytest.approx(1.0)


def test_the_truths_are_what_they_are_said_to_be() -> None:
    cells = simpler(3).probabilities.reshape((2,) * 6)
    assert cells[1].sum() == pytest.approx(0.9)
    assert cells[1, 1].sum() / 0.9 == pytest.approx(0.2)
    assert cells[0, :, :, :, 1].sum() / 0.1 == pytest.approx(0.8)
    assert sum(cells[:, a, b, c].sum() for a in (0, 1) for b in (0, 1) for c in (0, 1) if not a == b == c) == 0
    assert single(6, 1.0).best_error == 0
    assert single(6, 0.98).best_error == pytest.approx(0.02)
    agree = np.array([[0.49, 0.01], [0.01, 0.49]])
    assert single(7, 0.98).probabilities.reshape(2, 2, -1).sum(axis=2) == pytest.approx(agree)
