"""Claims about classifiers beside each other, on the figures of two files; some of bncli's are measured again."""

from __future__ import annotations

import numpy as np
import pytest

from tests.performance.workloads import real_columns
from tests.published import classifiers, references
from tests.published.classifiers import LARGE, LEARNERS, measure
from tests.published.classifiers_evidence import BESIDE, LOSSES, Evidence, evidence
from tests.published.classifiers_page import SIZES, page, ratios_to_best
from tests.published.pages import UPDATING
from tests.published.references import LEARNERS as REFERENCES
from tests.published.references import Figure, recorded

pytestmark = pytest.mark.slow

PAGE = classifiers.FIGURES.with_suffix(".md")
AGAIN = ("glass", "house_votes_84")
"""Their first folds are measured in every run."""


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
    """To four digits; of interactions to three, as on the page: nearly equal steps change places with the rounding."""
    told = {figure[:3]: figure[3:7] for figure in figures}
    columns = real_columns(name)
    for word in LEARNERS:
        figure = measure(name, word, columns, 0)
        rounding = 1e-3 if word == "interactions" else 1e-4
        assert figure[3:7] == pytest.approx(told[figure[:3]], rel=rounding, abs=1e-6)


def test_the_page_shows_the_figures(found: Evidence) -> None:
    assert PAGE.read_text() == page(found)


def test_auto_is_ahead_of_what_people_use(found: Evidence) -> None:
    """First in log-loss and RMSE, no worse than second in error; and better than each of the others in log-loss."""
    beside = found.among(["auto", *REFERENCES])
    place = beside.learners.index("auto")
    for loss, worst_place in zip(LOSSES, (1, 2, 1), strict=True):
        ranks = beside.ranks(loss)
        assert (ranks <= ranks[place]).sum() <= worst_place
    for other in REFERENCES:
        against = beside.against("log-loss", "auto", other)
        assert beside.ratio("log-loss", "auto", other) < 0.8
        assert against.wins > against.losses
        assert against.p < 0.01


@pytest.mark.parametrize("learner", ["auto", "interactions"])
def test_ahead_of_boosting_on_small_tables(learner: str, found: Evidence) -> None:
    """In the mean ratio of the log-losses, below 1,000 rows and from there to 5,000; below 5,000 on most tables."""
    for bounds in list(SIZES.values())[:2]:
        assert found.sized(*bounds).ratio("log-loss", learner) < 0.95
    against = found.sized(0, LARGE + 1).against("log-loss", learner)
    assert against.wins > 2 * against.losses
    assert against.p < 0.01


def test_auto_is_ahead_of_boosting_on_most_large_tables(found: Evidence) -> None:
    large = found.sized(LARGE + 1, np.inf)
    assert large.ratio("log-loss", "auto") < 0.85
    assert large.against("log-loss", "auto").losses <= 1


def test_auto_is_often_as_good_as_the_best_of_them(found: Evidence) -> None:
    """The best is chosen table by table, with the rows held out in view."""
    ratios = ratios_to_best(found)
    assert (ratios <= 1).mean() > 0.4
    assert np.median(ratios) < 1.05


def test_auto_learns_within_a_few_times_the_seconds_of_boosting(found: Evidence) -> None:
    """On large tables, early-stopped boosting on the same thread."""
    large = found.sized(LARGE + 1, np.inf)
    assert large.ratio("fit", "auto") < 5
    assert (large.of("fit", "auto") / large.of("fit", BESIDE)).max() < 8


@pytest.mark.parametrize("structure", ["nb", "tan"])
def test_weights_are_better_than_frequencies(structure: str, found: Evidence) -> None:
    generative = {"nb": "nb map", "tan": "tan map hdp"}[structure]
    against = found.against("log-loss", f"{structure} weighted", generative)
    assert against.wins > against.losses
    assert found.ratio("log-loss", f"{structure} weighted", generative) < 0.8


def test_boosting_is_ahead_of_trees_with_weights(found: Evidence) -> None:
    """The plain line of bncli is fast and small, not the most accurate."""
    assert found.ratio("log-loss", "tan weighted") > 1
