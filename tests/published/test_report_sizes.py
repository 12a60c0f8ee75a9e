"""The manual's sizes of reports are those that were measured, and stand for pages as they are now."""

from __future__ import annotations

import pytest

from tests.manual_tables import MANUAL
from tests.published.report_sizes import PAGES, measured, page_rows, recorded
from tests.sweeps import first_few


def test_the_manual_says_what_was_measured() -> None:
    assert [one.table for one in recorded()] == list(PAGES)
    assert page_rows(recorded()) in (MANUAL / "report.md").read_text()


def test_every_page_is_below_a_megabyte() -> None:
    assert max(one.bytes for one in recorded()) < 1_000_000


@pytest.mark.slow
@pytest.mark.parametrize("name", first_few(["wine_holes", "tic_tac_toe"]))
def test_a_page_is_as_large_as_it_was(name: str) -> None:
    (before,) = (one for one in recorded() if one.table == name)
    now = measured(name)
    assert now._replace(bytes=before.bytes, seconds=before.seconds) == before
    assert now.bytes == pytest.approx(before.bytes, rel=0.02)
