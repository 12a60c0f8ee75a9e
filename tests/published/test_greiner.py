"""The page of Greiner et al. (2004) is what its files of figures give, and what it says holds on them.

Some of the figures are measured again by `-m slow`.
"""

from __future__ import annotations

from collections import Counter
from importlib.resources import files

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.published import greiner, greiner_studies
from tests.published.greiner import BAD, INCOMPLETE, SHARES, SHARES_TABLE, STRUCTURES
from tests.published.greiner_page import PAGE, by_share, of_tables, page_of_records, printed_claims
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
    ways = ("NB+ELR", "TAN+EM")
    told = {case[:3]: case[3:] for case in greiner.recorded_shares()[0.5]}
    for case in greiner.cases_with_holes(SHARES_TABLE, 0.5, ways):
        assert case[3:] == pytest.approx(told[case[:3]], abs=2e-6)


@pytest.mark.slow
def test_the_figures_of_a_study_are_those_of_this_program() -> None:
    told = {case[:5]: case.errors for case in greiner_studies.recorded()}
    for case in greiner_studies.cases(TRUTHS[3]):
        assert case.errors == pytest.approx(told[case[:5]], rel=1e-5)


def test_every_share_is_there() -> None:
    found = greiner.recorded_shares()
    assert tuple(found) == SHARES
    assert {len({case[:3] for case in cases}) for cases in found.values()} == {2 * len(INCOMPLETE)}


def test_tables_4_and_5_are_whole() -> None:
    claims = printed_claims()
    for where, ways, n_pairs in (("Table 4", greiner.COMPLETE, 15), ("Table 5", PARAMETERS_OF_TABLE_5, 36)):
        pairs = {frozenset((claim.first, claim.second)) for claim in claims if claim.where == where}
        assert Counter(claim.where for claim in claims)[where] == len(pairs) == n_pairs
        assert pairs == {frozenset((a, b)) for a in ways for b in ways if a != b}


PARAMETERS_OF_TABLE_5 = tuple(f"{structure}+{p}" for structure in STRUCTURES for p in ("ELR", "APN", "EM"))


def test_the_tests_agree_with_the_paper_on_its_own_figures() -> None:
    """Where the p-value is one that its tables give, whatever its arrow says."""
    theirs = greiner.printed()
    for claim in printed_claims():
        found = greiner.compare(of_tables(theirs, claim.tables), claim.rows, claim.first, claim.second)
        assert claim.p is not None
        as_printed = claim.p / 2 < found.p_higher < claim.p * 1.1
        the_other_way = claim.p / 2 < found.p_lower < claim.p * 1.25 and found.mean < 0
        key = (claim.where, claim.first, claim.second)
        assert (as_printed, the_other_way and not as_printed) == (key in FROM_THE_TABLES, key in REVERSED), claim


GENERAL_BEFORE_NAIVE = tuple(
    ("Table 5", f"GBN+{one}", f"NB+{other}") for one in ("ELR", "APN", "EM") for other in ("APN", "EM")
)
REVERSED = (
    ("Table 4", "TAN+OFE", "NB+ELR"),
    ("Table 4", "GBN+OFE", "NB+OFE"),
    *GENERAL_BEFORE_NAIVE,
    ("Table 5", "TAN+ELR", "TAN+APN"),
    ("Table 5", "TAN+ELR", "TAN+EM"),
    ("Table 5", "GBN+APN", "GBN+EM"),
    ("5.2.2", "GBN+OFE", "TAN+OFE"),
    ("5.2.2", "GBN+ELR", "NB+ELR"),
)
"""Whose arrow points to the one that is on average less accurate in the paper's tables."""
NOT_FROM_THE_TABLES = (
    ("Table 4", "NB+ELR", "GBN+ELR"),
    ("5.1.2", "TAN+ELR", "TAN+OFE"),
    ("5.2.4", "x+ELR", "x+APN"),
    ("5.2.4", "x+ELR", "x+EM"),
)
FROM_THE_TABLES = {(claim.where, claim.first, claim.second) for claim in printed_claims()}
FROM_THE_TABLES -= {*REVERSED, *NOT_FROM_THE_TABLES}


@pytest.mark.parametrize(("where", "n_alike", "n_pairs"), [("Table 4", 14, 15), ("Table 5", 32, 36)])
def test_the_same_learners_are_ahead_as_in_the_paper(where: str, n_alike: int, n_pairs: int) -> None:
    pairs = [claim[2:5] for claim in printed_claims() if claim.where == where]
    theirs = [greiner.compare(greiner.printed(), *pair) for pair in pairs]
    ours = [greiner.compare(greiner.measured(greiner.recorded()), *pair) for pair in pairs]
    alike = [paper.mean * here.mean > 0 for paper, here in zip(theirs, ours, strict=True)]
    assert (sum(alike), len(alike)) == (n_alike, n_pairs)
    assert all(paper.p > 0.1 for paper, same in zip(theirs, alike, strict=True) if not same)


def better(rows: str, first: str, second: str, tables: str = "all") -> float:
    """The p of the paired t-test in accuracy."""
    figures = of_tables(greiner.measured(greiner.recorded()), tables)
    return greiner.compare(figures, rows, first, second).p_higher


def lower(rows: str, first: str, second: str) -> float:
    """The p of the paired t-test in log-loss."""
    return greiner.compare({case[:3]: case.log_loss for case in greiner.recorded()}, rows, first, second).p_lower


def studied(study: str, first: str, second: str, *, holes: bool = False, setting: str = "") -> float:
    found = greiner_studies.recorded()
    return greiner_studies.compare(found, study, holes=holes, ways=(first, second), setting=setting).p_higher


def test_learning_to_classify_makes_the_better_classifier() -> None:
    assert better("complete", "x+ELR", "x+OFE") < 0.0015
    assert better("complete", "NB+ELR", "NB+OFE") < 0.005
    assert 0.015 < better("complete", "TAN+ELR", "TAN+OFE") < 0.025
    assert better("complete", "GBN+ELR", "GBN+OFE") > 0.1
    for structure in STRUCTURES:
        assert lower("complete", f"{structure}+ELR", f"{structure}+OFE") < 0.05


def test_also_from_rows_with_holes() -> None:
    assert better("holes", "x+ELR", "x+APN") < 0.0015
    assert better("holes", "x+ELR", "x+EM") < 0.0023
    assert better("holes", "NB+ELR", "NB+APN") < 0.025
    assert better("holes", "NB+ELR", "NB+EM") < 0.015
    assert better("holes", "TAN+ELR", "TAN+APN") < 0.001
    for other in ("TAN+EM", "GBN+APN", "GBN+EM"):
        assert 0.05 < better("holes", f"{other[:3]}+ELR", other) < 0.5


def test_where_predicted_rows_have_holes_too_little_of_the_lead_is_left() -> None:
    assert better("everywhere", "x+ELR", "x+OFE") < 0.01
    assert 0.04 < better("everywhere", "x+ELR", "x+APN") < 0.05
    assert better("everywhere", "x+ELR", "x+EM") > 0.1
    assert all(lower("everywhere", "x+ELR", f"x+{other}") < 0.05 for other in ("OFE", "APN", "EM"))


def test_simple_structures_beat_general_networks() -> None:
    for rows, ways in (("complete", ("OFE", "ELR")), ("holes", ("OFE", "ELR", "APN", "EM"))):
        for structure in ("NB", "TAN"):
            assert all(better(rows, f"{structure}+ELR", f"GBN+{way}") < 0.01 for way in ways)
        assert better(rows, "TAN+ELR", "NB+ELR") > 0.4


def test_the_figures_that_the_manual_quotes() -> None:
    page = files("bncli.manual").joinpath("missing-values.md").read_text().replace("\n", " ")
    em, apn = (better("holes", "x+ELR", f"x+{way}") for way in ("EM", "APN"))
    assert f"one-sided p = {em:.1g} and {apn:.1g} over nb, tan and gbn together" in page


def test_general_networks_are_not_better_than_naive_bayes_where_those_of_the_paper_are() -> None:
    assert better("complete", "GBN+OFE", "NB+OFE", "good") > 0.5
    for structure in ("NB", "TAN"):
        assert better("complete", f"{structure}+ELR", "GBN+OFE", "good") < 0.01
    assert {case.name for case in greiner.recorded()} >= set(BAD)
    (ours, theirs) = (
        _mean_of_the_bad(figures) for figures in (greiner.measured(greiner.recorded()), greiner.printed())
    )
    assert ours["GBN+OFE"] < ours["NB+OFE"] - 0.05
    assert theirs["GBN+OFE"] < theirs["NB+OFE"] - 0.05


def _mean_of_the_bad(figures: greiner.Figures) -> dict[str, float]:
    return {way: float(np.mean([figures[name, "complete", way] for name in BAD])) for way in greiner.COMPLETE}


def test_on_letter_who_learns_to_classify_leads_until_half_the_values_are_missing() -> None:
    for share, accuracy in by_share(greiner.recorded(), greiner.recorded_shares(), "holes"):
        for structure in STRUCTURES:
            if 0 < share <= 0.5:
                others = (accuracy[f"{structure}+{other}"] for other in ("OFE", "APN", "EM"))
                assert accuracy[f"{structure}+ELR"] > max(others)


def test_on_letter_the_lead_shrinks_as_more_is_missing() -> None:
    by = [accuracy for _, accuracy in by_share(greiner.recorded(), greiner.recorded_shares(), "holes")][1:]
    for structure, told in (("NB", {0: 11.5, 3: 5.2, 4: 1.6}), ("TAN", {0: 2.9, 3: 0.9, 4: -0.3})):
        leads = [100 * (accuracy[f"{structure}+ELR"] - accuracy[f"{structure}+EM"]) for accuracy in by]
        assert {i: leads[i] for i in told} == pytest.approx(told, abs=0.05)


def test_of_those_who_describe() -> None:
    for structure in STRUCTURES:
        assert better("holes", f"{structure}+APN", f"{structure}+EM") > 0.2
        assert lower("holes", f"{structure}+EM", f"{structure}+APN") < 0.005
    assert better("holes", "TAN+EM", "TAN+APN") < 0.005
    figures = {case[:3]: case[3:] for case in greiner.recorded()}
    assert all(found == figures[name, rows, "NB+OFE"] for (name, rows, way), found in figures.items() if way == "NB+EM")
    for rows in ("holes", "everywhere"):
        assert better(rows, "x+EM", "x+OFE") < 0.05
        assert lower(rows, "x+EM", "x+OFE") < 0.002


def test_wrong_structures_do_not_hurt_who_learns_to_classify() -> None:
    assert studied("simpler", "ELR", "OFE") < 1e-6
    assert studied("simpler", "ELR", "APN", holes=True) < 1e-3
    assert studied("simpler", "ELR", "EM", holes=True) < 1e-3
    for holes, ways in ((False, ("OFE",)), (True, ("OFE", "APN", "EM"))):
        for way in ways:
            errors = errors_of_simpler(way, holes=holes)
            assert (np.diff(errors) > -1e-9).all()
            assert errors[5] >= 2 * simpler(5).best_error
    best = [simpler(m).best_error for m in range(6)]
    assert np.max(errors_of_simpler("ELR", holes=False) - best) < 0.002
    with_holes = errors_of_simpler("ELR", holes=True)
    assert np.max((with_holes - best)[:5]) < 0.0165
    assert (with_holes[5], best[5]) == pytest.approx((0.18, 0.10), abs=1e-6)


def errors_of_simpler(way: str, *, holes: bool) -> NDArray[np.float64]:
    """By m."""
    found = greiner_studies.mean_errors(greiner_studies.recorded(), "simpler", holes=holes, way=way)
    return np.array([found[f"m={m}", greiner_studies.SIMPLER_SIZE] for m in range(6)])


def test_structures_that_say_too_much_are_for_those_who_describe() -> None:
    assert studied("single", "OFE unsmoothed", "ELR unsmoothed", setting="98%") < 0.002
    by_run = {(c.setting, c.size, c.parameters): c.errors for c in greiner_studies.recorded() if c.study == "single"}
    for (setting, size, way), errors in by_run.items():
        if way == "OFE unsmoothed" and "100%" in setting:
            assert errors == by_run[setting, size, "ELR unsmoothed"]
    for setting in ("98%", "100%"):
        assert studied("single", "ELR", "OFE", setting=setting) < 0.01
        for way in ("APN", "EM"):
            assert studied("single", way, "ELR", holes=True, setting=setting) > 0.5
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
