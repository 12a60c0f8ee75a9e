"""The prior of Jakulin & Rish (2006): figure 1, where the bootstrap checks it, and what other degrees of freedom do.

`BNCLI_DATA=FOLDER python -m tests.published.jakulin_prior` measures and writes jakulin_figure1.csv and jakulin_df.csv,
in minutes; the page is made from them. Models of figure 1 are the steps of a search, and every attribute alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.engine.counting.counts import Counts
from bncli.engine.data.cutting import learn_dataset
from bncli.engine.data.dataset import Dataset
from bncli.engine.kikuchi.search_trace import Resampling, bootstrap_log_losses, follow, log_priors
from bncli.engine.learn import learn_structure
from bncli.engine.structures.structure import Regions
from bncli.files.pictures.comparison_plots import ScatterPanel, scatter_plots
from tests.published.jakulin import PAGE, SETS, THETA_SETS, columns_of, losses, printed, recipes
from tests.published.pages import read_csv, table, write_csv

FIGURE = PAGE.with_name("jakulin_figure1.csv")
DRAWING = FIGURE.with_suffix(".svg")
OF_PAPER = ("lymph", "german")
"""Those of the paper's six sets that are at hand."""
OTHERS = ("hepatitis", "glass", "voting", "tic-tac-toe")
RESAMPLES = 200
DEGREES = PAGE.with_name("jakulin_df.csv")
KINDS = ("conditional", "joint", "structural-zeros")
NO_THETA = 1e-9
"""Stands for the paper's theta of 0."""
Array = NDArray[np.float64]


class Point(NamedTuple):
    """A model: how it came about, rows, df by equation 7 and with structural zeros, log-likelihood, and log-losses by
    the bootstrap, all in nats: of the training rows by the submodels of a resample, and, theta 0, of its own rows."""

    name: str
    model: str
    rows: int
    df: int
    df_zeros: int
    log_likelihood: float
    other_rows: float
    bare_likelihood: float
    own_rows: float

    @property
    def log_prior(self) -> float:
        return float(log_priors(self.rows, np.array([float(self.df)]))[0])

    @property
    def log_posterior(self) -> float:
        return self.log_likelihood + self.log_prior


def points(name: str, resamples: int = RESAMPLES) -> Iterator[Point]:
    """The models of a set, those of the search first."""
    data = learn_dataset(columns_of(SETS[name]))
    found = learn_structure(Counts(data), recipes()["kMAP"])
    assert isinstance(found, Regions)
    yield from _path(name, data, found.regions, "step", resamples)
    for attribute in data.schema.informative:
        if (attribute,) != found.regions[:1]:
            yield [*_path(name, data, ((attribute,),), "attribute", resamples)][1]


def _path(name: str, data: Dataset, regions: tuple[tuple[int, ...], ...], kind: str, resamples: int) -> Iterator[Point]:
    plain, bare = (follow(Counts(data), regions, theta) for theta in (1.0, NO_THETA))
    zeros = follow(Counts(data), regions, 1.0, degrees_of_freedom="structural-zeros")
    draws = Resampling(resamples)
    other = bootstrap_log_losses(data, regions, 1.0, draws)
    own = -np.mean([follow(Counts(drawn), regions, NO_THETA).log_likelihood for drawn in draws.draw(data)], axis=0)
    for s in range(len(regions) + 1):
        label = f"{kind} {s if kind == 'step' else data.schema.attributes[regions[0][0]].name}"
        likelihood = (plain.log_likelihood[s], other[s], bare.log_likelihood[s], float(own[s]))
        yield Point(name, label, data.n_rows, plain.df[s], zeros.df[s], *likelihood)


def measure() -> None:
    """Writes the file."""
    lines = [[*p[:5], *(f"{value:.4f}" for value in p[5:])] for name in (*OF_PAPER, *OTHERS) for p in points(name)]
    write_csv(FIGURE, [Point._fields, *lines])


def recorded() -> list[Point]:
    """The file."""
    return [
        Point(w[0], w[1], int(w[2]), int(w[3]), int(w[4]), *map(float, w[5:]))  # type: ignore[arg-type]
        for w in read_csv(FIGURE)[1:]
    ]


def drawing() -> str:
    """A panel a set, a point a model: minus log posterior upwards, log-loss by the bootstrap across, nats a row."""
    panels = []
    for name, found in by_set().items():
        pairs = [(p.model, p.other_rows / p.rows, -p.log_posterior / p.rows) for p in found]
        above = sum(upwards > across for _, across, upwards in pairs)
        panels.append(ScatterPanel(name, pairs, len(pairs) - above, 0, above))
    title = "Minus the log posterior (upwards) beside the log-loss by the bootstrap"
    return scatter_plots(title, "bootstrap", panels, lower_is_better=True).source()


def by_set() -> dict[str, list[Point]]:
    """The file, set after set."""
    found = recorded()
    return {name: [p for p in found if p.name == name] for name in dict.fromkeys(p.name for p in found)}


def comparison() -> str:
    """How the prior goes with the bootstrap, as a table."""
    lines = []
    for name, found in by_set().items():
        posterior, likelihood, other = (np.array(v) for v in zip(*map(_numbers, found), strict=True))
        penalty, lost = likelihood - posterior, other + likelihood
        zeros = np.array([-float(log_priors(p.rows, np.array([float(p.df_zeros)]))[0]) for p in found])
        won = np.array([p.own_rows + p.bare_likelihood for p in found])
        cells = (correlation(posterior, -other), correlation(penalty, lost), slope(penalty, lost), slope(zeros, -won))
        lines.append([name, str(len(found)), *(f"{cell:.2f}" for cell in cells)])
    return table(("set", "models", "posterior: r", "prior: r", "lost a nat of prior", "gained a nat of prior"), lines)


def _numbers(point: Point) -> tuple[float, float, float]:
    return point.log_posterior, point.log_likelihood, point.other_rows


def correlation(x: Array, y: Array) -> float:
    """Pearson's."""
    return float(np.corrcoef(x, y)[0, 1])


def slope(x: Array, y: Array) -> float:
    """Of the line through the origin."""
    return float(x @ y / (x @ x))


def degrees(name: str) -> Iterator[tuple[str, str, str, float]]:
    """Set, what df count, classifier and log-loss of the first replication."""
    columns = columns_of(SETS[name])
    for kind in KINDS:
        chosen = {way: recipes()[way].replaced(degrees_of_freedom=kind) for way in ("kMAP", "kBMA")}
        for loss in losses(columns, name, 0, chosen)[0]:
            yield name, kind, loss.way, loss.log_loss


def measure_degrees() -> None:
    """Writes the file."""
    lines = [(name, kind, way, f"{loss:.6f}") for s in THETA_SETS for name, kind, way, loss in degrees(s)]
    write_csv(DEGREES, [("set", "degrees of freedom", "classifier", "log-loss"), *lines])


def degrees_table() -> str:
    """Log-losses by what df count, beside the paper's."""
    found = {(name, kind, way): float(loss) for name, kind, way, loss in read_csv(DEGREES)[1:]}
    ways = ("kMAP", "kBMA")
    header = ("set", *(f"{way} {kind}" for way in ways for kind in KINDS), *(f"paper: {way}" for way in ways))
    lines = [
        [name, *(f"{found[name, k, w]:.3f}" for w in ways for k in KINDS)]
        + [f"{printed()[name].log_loss[way]:.2f}" for way in ways]
        for name in dict.fromkeys(key[0] for key in found)
    ]
    return table(header, lines)


if __name__ == "__main__":
    measure()
    measure_degrees()
