"""The page on score cards is what its figures give, and what the manual says of them holds in the figures."""

from __future__ import annotations

import os
from importlib.resources import files

import pytest

from tests.published.cards import LINES, PAGE, TERMS, means, measured, page, recorded, third, wins


def test_the_page_is_made_from_the_figures() -> None:
    assert page(recorded()) == PAGE.read_text()


def test_a_card_beats_a_score_of_as_many_rows_on_most_tables() -> None:
    found = means(recorded())
    for k in TERMS:
        counts = [wins(found, k, part) for part in ("choosing", "judging")]
        assert sum(better for better, _ in counts) >= 0.9 * sum(tables for _, tables in counts), k


def test_the_manual_counts_the_tables_that_the_figures_give() -> None:
    text = " ".join(files("bncli.manual").joinpath("structures.md").read_text().split())
    found = means(recorded())
    five, ten, fifteen = (
        [sum(both) for both in zip(*(wins(found, k, part) for part in ("choosing", "judging")), strict=True)]
        for k in TERMS
    )
    near = sum(third(found, part)[0] for part in ("choosing", "judging"))
    assert f"On {five[1]} tables of two classes" in text
    assert f"on {five[0]} with 5 terms, {ten[0]} with 10 terms, and {fifteen[0]} of {fifteen[1]} with 15 terms" in text
    assert f"within 3 % of its log-loss on {near} (" in text


def test_a_card_has_no_more_rows_than_it_may() -> None:
    for own in means(recorded()).values():
        for k in TERMS:
            if f"card {k}" in own:
                assert own[f"card {k}"].rows <= own[f"FasterRisk {k}"].rows


@pytest.mark.slow
@pytest.mark.skipif("BNCLI_DATA" not in os.environ, reason="the tables are not in the repository")
def test_a_fold_measured_again_gives_the_figures() -> None:
    known = {f.line: f for f in recorded() if (f.set, f.fold) == ("heart_statlog", 0)}
    others = [f for line, f in known.items() if line.startswith("FasterRisk")]
    for figure in measured("heart_statlog", 0, [line for line in LINES if "FasterRisk" not in line], others):
        assert figure[4:7] == pytest.approx(known[figure.line][4:7], rel=1e-3)
