"""Claims about classifiers beside each other, on the figures of two files; some of bncli's are measured again."""

from __future__ import annotations

import pytest

from tests.performance.workloads import real_columns
from tests.published import classifiers, references
from tests.published.classifiers import LEARNERS, measure
from tests.published.classifiers_evidence import Evidence, evidence
from tests.published.classifiers_page import page
from tests.published.pages import UPDATING
from tests.published.references import FOLDS, Figure, recorded

pytestmark = pytest.mark.slow

PAGE = classifiers.FIGURES.with_suffix(".md")
AGAIN = ("glass", "house_votes_84", "iris")
"""Measured in every run."""


@pytest.fixture(scope="module")
def figures() -> list[Figure]:
    """What the files say; with BNCLI_UPDATE=1 what they lack is measured and the page is written first."""
    if UPDATING:
        references.main(references.FIGURES, [])
        classifiers.main(classifiers.FIGURES, [])
        PAGE.write_text(page(evidence(_recorded())))
    return _recorded()


def _recorded() -> list[Figure]:
    return recorded(classifiers.FIGURES) + recorded(references.FIGURES)


@pytest.fixture(scope="module")
def found(figures: list[Figure]) -> Evidence:
    return evidence(figures)


@pytest.mark.parametrize("name", AGAIN)
def test_the_figures_are_those_of_this_program(name: str, figures: list[Figure]) -> None:
    told = {figure[:3]: figure[3:7] for figure in figures}
    columns = real_columns(name)
    for word in LEARNERS:
        for fold in range(FOLDS):
            figure = measure(name, word, columns, fold)
            assert figure[3:7] == pytest.approx(told[figure[:3]], rel=1e-4, abs=1e-6)


def test_the_page_shows_the_figures(found: Evidence) -> None:
    assert PAGE.read_text() == page(found)
