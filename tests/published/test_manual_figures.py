"""What the manual says of figures in its own words holds in the files that keep them."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.manual_tables import MANUAL
from tests.performance.results import read
from tests.published import classifiers, hdp, penalty_center, references
from tests.published.classifiers_evidence import BESIDE, Evidence, evidence
from tests.published.classifiers_page import SIZES, page, ratios_to_best
from tests.published.references import recorded
from tests.transcripts import ROOT


@pytest.fixture(scope="module")
def found() -> Evidence:
    return evidence(recorded(classifiers.FIGURES) + recorded(references.FIGURES))


def test_the_pages_are_made_from_the_figures(found: Evidence) -> None:
    assert classifiers.FIGURES.with_suffix(".md").read_text() == page(found)
    assert hdp.PAGE.read_text() == hdp.page(hdp.recorded())


def test_the_tables_are_of_24_to_397_050_rows(found: Evidence) -> None:
    assert (found.sizes.min(), found.sizes.max()) == (24, 397_050)
    for path in (ROOT / "README.md", MANUAL / "which-one.md"):
        assert "of 24 to 397,050 rows" in " ".join(path.read_text().split())


def test_auto_leads_and_most_on_small_tables(found: Evidence) -> None:
    for loss in ("log-loss", "error"):
        ranks = found.ranks(loss)
        assert np.argmin(ranks) == found.learners.index("auto")
    ratios = [found.sized(*bounds).ratio("log-loss", "auto") for bounds in SIZES.values()]
    assert np.argmin(ratios) == 0
    assert (ratios_to_best(found) > 1).mean() == pytest.approx(1 / 3, abs=0.03)
    assert np.argsort(found.ranks("log-loss"))[1] == found.learners.index("interactions")


def test_large_tables_where_boosting_is_behind_level_and_ahead(found: Evidence) -> None:
    large = found.sized(5_001, np.inf)
    ratios = dict(zip(large.sets, large.of("log-loss", "auto") / large.of("log-loss", BESIDE), strict=True))
    assert {name for name, ratio in ratios.items() if ratio < 0.98} == {
        *("nursery", "mushroom", "connect_4", "covertype", "satimage", "optdigits", "letter", "shuttle")
    }
    assert ratios["adult"] == pytest.approx(1, abs=0.01)
    assert {name for name, ratio in ratios.items() if ratio > 1.02} == set()
    at = found.sets.index("covertype")
    auto, forest = ([found.of(loss, name)[at] for loss in ("log-loss", "error")] for name in ("auto", "RandomForest"))
    assert auto[0] == min(found.of("log-loss", name)[at] for name in found.learners)
    assert forest[1] < 0.8 * auto[1]


def test_seconds_of_auto_beside_boosting(found: Evidence) -> None:
    large, small = found.sized(5_001, np.inf), found.sized(0, 5_001)
    times = dict(zip(large.sets, large.of("fit", "auto") / large.of("fit", BESIDE), strict=True))
    assert min(times.values()) == pytest.approx(1.8, abs=0.05)
    assert max(times.values()) == pytest.approx(4.8, abs=0.1)
    seconds = small.of("fit", "auto")
    assert 0.1 <= np.median(small.of("fit", BESIDE)) < np.median(seconds) < 1
    assert (small.sets[int(seconds.argmax())], round(seconds.max())) == ("segment", 6)


def test_what_is_said_of_the_simpler_ones(found: Evidence) -> None:
    fit = {name: np.nansum(found.of("fit", name)) for name in ("interactions", "nb thermometer", "nb weighted")}
    assert fit["nb thermometer"] / fit["interactions"] == pytest.approx(0.18, rel=0.05)
    assert fit["nb weighted"] / len(found.sets) < 1
    assert found.ratio("log-loss", "nb weighted", "nb map") == pytest.approx(0.5, abs=0.05)
    assert found.ratio("log-loss", "kdb2 map hdp") == pytest.approx(1.7, abs=0.05)
    closed = [name for name in found.learners if name.endswith((" map", " map hdp", "kbma")) or name == "CategoricalNB"]
    ratios = {name: found.ratio("log-loss", name) for name in closed}
    assert min(ratios, key=ratios.__getitem__) == "kdb2 map hdp"
    assert 1 < found.ratio("log-loss", "tan weighted") < min(ratios.values())
    last = np.argsort(found.ranks("log-loss"))[-2:]
    assert {found.learners[i] for i in last} == {"nb map", "CategoricalNB"}


@pytest.mark.parametrize(("structure", "percent", "wins"), [("TAN", 4, 13), ("KDB-1", 4, 13), ("KDB-2", 10, 16)])
def test_what_hdp_gains(structure: str, percent: int, wins: int) -> None:
    compared = hdp.compare(hdp.recorded(), structure, "m-estimate:1", "log-loss")
    assert (round(100 * (1 - compared.ratio)), compared.wins) == (percent, wins)


def test_what_hdp_gains_with_three_parents_and_loses_without_noise() -> None:
    compared = hdp.compare(hdp.recorded(), "KDB-3", "m-estimate:1", "log-loss")
    assert (round(100 * (1 - compared.ratio)), compared.wins) == (16, 19)
    losses = {case[:3]: case.log_loss for case in hdp.recorded()}
    for name in ("car", "nursery"):
        for structure in ("TAN", "KDB-1", "KDB-2"):
            ratio = losses[name, structure, "hdp"] / losses[name, structure, "m-estimate:1"]
            assert 1 <= round(100 * (ratio - 1)) <= 3


def test_speeds_that_are_told_in_words() -> None:
    figures = {(figure.section, figure.what): figure.measured for figure in read().figures}
    tree = figures["Whole commands", "generative TAN from a CSV, 1,000,000 rows x 30"]
    assert 2 < tree < 3
    scoring = [value for (_, what), value in figures.items() if re.match("score, [-f][^,]*$", what)]
    assert len(scoring) == 4
    assert 2 <= min(scoring) <= max(scoring) <= 4.5


@pytest.mark.slow
def test_from_one_classifier_to_another() -> None:
    figures = penalty_center.recorded()
    assert [figure.options for figure in figures] == list(penalty_center.OPTIONS)
    for figure in figures[::5]:
        again = penalty_center.measure(figure.options)
        assert again[1:3] == pytest.approx(figure[1:3], rel=1e-3)
        assert again.chosen == figure.chosen
