"""Claims of Jakulin & Rish (2006) that hold here, on the figures of jakulin.csv; some of these are measured again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bncli.engine.counting.counts import Counts
from bncli.engine.data.cutting import learn_dataset
from bncli.engine.learn import learn_structure
from bncli.engine.structures.structure import Regions
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from tests.performance.workloads import real_path
from tests.published import jakulin, jakulin_prior
from tests.published.jakulin import FACTS, FIGURES, FITTED, LR, PAGE, RANKED, SETS, THETA, THETA_SETS, Loss
from tests.published.jakulin_page import RANKS_IN_PAPER, Figures, page, ranks_printed
from tests.published.pages import UPDATING, read_csv, write_csv

AGAIN = ("lenses", "monk1", "glass")
"""Measured in every slow run in the first replication: the paper's five classifiers and those of a chosen penalty."""
SAMPLE = Path(__file__).parents[2] / "sample_data" / "tic_tac_toe.csv"


@pytest.fixture(scope="module")
def figures() -> Figures:
    """What the files say; with BNCLI_UPDATE=1 all is measured and written first."""
    if UPDATING:
        for table in SETS.values():
            for name in table.files:
                real_path(name)
        found = [(*jakulin.measured(name),) for name in SETS]
        write_csv(FIGURES, [_LOSS_HEADER, *(_words(loss) for losses, _ in found for loss in losses)])
        write_csv(FACTS, [_FACTS_HEADER, *((*fact[:3], f"{fact.seconds:.3f}") for _, fact in found)])
        lines = [(name, f"{theta:g}", way, f"{x:.6f}") for s in THETA_SETS for name, theta, way, x in jakulin.thetas(s)]
        write_csv(THETA, [("set", "theta", "classifier", "log-loss"), *lines])
        write_page()
    return _recorded()


def write_page() -> None:
    """The page and its drawing, from the files."""
    PAGE.write_text(page(_recorded()))
    jakulin_prior.DRAWING.write_text(jakulin_prior.drawing())


_LOSS_HEADER = ("set", "replication", "classifier", "log-loss", "error")
_FACTS_HEADER = ("set", "rows", "df", "seconds")


def _words(loss: Loss) -> tuple[object, ...]:
    return (*loss[:3], f"{loss.log_loss:.6f}", f"{loss.error:.6f}")


def _recorded() -> Figures:
    return Figures(jakulin.recorded(), jakulin.facts(), jakulin.recorded_thetas())


def test_the_best_model_of_tic_tac_toe_is_the_papers_picture() -> None:
    """Figure 2: 5 regions of one square, 4 of two, 6 of three, in that order; lines of three through what came before.

    One square: the centre and the corners. Two: the centre and a corner. Three: six of the eight lines, both diagonals
    among them.
    """
    columns = read_columns(Source((str(SAMPLE),)))
    regions = learn_structure(Counts(learn_dataset(columns)), jakulin.recipes()["kMAP"])
    assert isinstance(regions, Regions)
    assert regions.trace is not None
    squares = [name.removesuffix("-square") for name in columns.attributes]
    best = [{squares[i] for i in region} for region in regions.regions[: regions.trace.map_step]]
    centre, corners = "middle-middle", {"top-left", "top-right", "bottom-left", "bottom-right"}
    assert [len(region) for region in best] == [1] * 5 + [2] * 4 + [3] * 6
    assert set().union(*best[:5]) == {centre} | corners
    assert all(centre in region and region & corners for region in best[5:9])
    lines = [{squares[i] for i in line} for line in _LINES]
    assert all(region in lines for region in best[9:])
    assert {"top-left", centre, "bottom-right"} in best[9:]
    assert {"top-right", centre, "bottom-left"} in best[9:]


_LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


def test_the_table_is_the_papers() -> None:
    """46 sets; their figures in two digits give its average ranks, give or take what rounding makes equal."""
    printed = jakulin.printed()
    assert len(printed) == 46
    assert [name for name in printed if name in SETS] == list(SETS)
    assert ranks_printed(list(printed)) == pytest.approx(RANKS_IN_PAPER["log-loss"], abs=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("name", AGAIN)
def test_the_figures_are_those_of_this_program(name: str, figures: Figures) -> None:
    told = {loss[:3]: loss[3:] for loss in figures.losses}
    own = {way: recipe for way, recipe in jakulin.recipes().items() if way in {*RANKED, LR, "LR cv", FITTED}}
    for loss in jakulin.losses(jakulin.columns_of(SETS[name]), name, 0, own)[0]:
        assert loss[3:] == pytest.approx(told[loss[:3]], abs=2e-6)


@pytest.mark.slow
def test_degrees_of_freedom_of_naive_bayes_are_the_papers(figures: Figures) -> None:
    """Wherever rows, attributes and cuts are the same, which is so on every second set."""
    same = {fact.name for fact in figures.facts if fact.df == jakulin.printed()[fact.name].df}
    assert len(same) >= len(SETS) / 2
    assert {"car", "hayes-roth", "lenses", "p-tumor", "tic-tac-toe", "wine", "zoo"} <= same


def test_the_page_and_its_drawing_are_made_from_the_figures() -> None:
    if UPDATING:
        write_page()
    assert PAGE.read_text() == page(_recorded())
    assert jakulin_prior.DRAWING.read_text() == jakulin_prior.drawing()


def test_the_prior_goes_with_the_bootstrap() -> None:
    """As the caption of figure 1 says; the lines of tic-tac-toe's board are another matter."""
    for name, points in jakulin_prior.by_set().items():
        penalty = np.array([-point.log_prior for point in points])
        lost = np.array([point.other_rows + point.log_likelihood for point in points])
        assert (lost > 0).all()
        assert jakulin_prior.correlation(penalty, lost) > (0.7 if name == "tic-tac-toe" else 0.85)
        assert jakulin_prior.slope(penalty, lost) < 0.5
        assert max(point.df_zeros - point.df for point in points) <= 0


@pytest.mark.slow
def test_figure_1_is_that_of_this_program() -> None:
    told = {(point.name, point.model): point for point in jakulin_prior.recorded()}
    for point in jakulin_prior.points("glass"):
        expected = told[point.name, point.model]
        assert (point.df, point.df_zeros) == (expected.df, expected.df_zeros)
        assert point[5:] == pytest.approx(expected[5:], rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lenses", "hayes-roth"])
def test_other_degrees_of_freedom_are_those_of_this_program(name: str) -> None:
    told = {(s, kind, way): float(loss) for s, kind, way, loss in read_csv(jakulin_prior.DEGREES)[1:]}
    for s, kind, way, loss in jakulin_prior.degrees(name):
        assert loss == pytest.approx(told[s, kind, way], abs=2e-6)


@pytest.mark.slow
def test_averaging_is_first_in_log_loss(figures: Figures) -> None:
    """Of the five classifiers, as in the paper."""
    ranks = figures.ranks("log-loss")
    assert RANKED[int(ranks.argmin())] == "kBMA"
    assert ranks[RANKED.index("kBMA")] < ranks[RANKED.index("kMAP")]


@pytest.mark.slow
def test_averaging_is_better_than_the_best_model(figures: Figures) -> None:
    """In log-loss, on two sets of three at least."""
    averaged, best = (figures.mean(way, "log-loss") for way in ("kBMA", "kMAP"))
    differences = np.array([averaged[name] - best[name] for name in averaged])
    assert (differences < 0).sum() >= 2 * (differences > 0).sum()


def test_every_classifier_of_the_page_can_be_measured() -> None:
    """Those whose penalty is chosen too, in a fold of a small table."""
    columns = read_columns(Source((str(SAMPLE.with_name("iris.csv")),)))
    held_out = np.arange(columns.n_rows) % 3 == 0
    found, _ = jakulin._fold(columns, held_out, jakulin.recipes())
    assert found.keys() == jakulin.recipes().keys()
    for way in ("NB", "LR cv", jakulin.FITTED):
        assert 0 < found[way][0] / held_out.sum() < np.log(3)
