"""Measure `--structure auto` with and without boosted trees on tables that are too small to boost them at once.

Run `BNCLI_DATA=FOLDER python -m tests.published.probed_trees` with OMP_NUM_THREADS and OPENBLAS_NUM_THREADS 1. It
measures what `probed_trees.csv` lacks, and writes the page.

Tables: all real tables, except copies, with at least PROBED_ROWS training rows and fewer than `--effort 3` requires for
boosting, on the five folds of `bncli evaluate --seed 0`. They lie in two halves (`tests.published.anchors.half`): the
constants of `bncli.engine.ensembles.trials` were settled on the choosing half, and the judging half was measured once
they stood. Added to them are made tables whose attributes interact, with five draws of 750 training rows each and
10,000 rows that measure the loss.

On each fold, the two lines take turns at going first. The seconds are CPU time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from bncli.cli.learning_options import parse_learner
from bncli.engine.data.columns import CategoricalColumn, Columns, NumericColumn
from bncli.engine.data.splits import stratified_folds
from bncli.engine.ensembles import trials
from bncli.engine.ensembles.budget import DEFAULT, EFFORTS
from bncli.engine.evaluation.cross_validation import predict_and_measure
from bncli.engine.learn import learn
from tests.engine.ensembles.rows import ensemble_of
from tests.performance.workloads import real_columns
from tests.published.anchors import half, sets
from tests.published.pages import read_csv, table, write_csv

FIGURES = Path(__file__).with_suffix(".csv")
PAGE = Path(__file__).with_suffix(".md")
LINES = {"without": 10**9, "with": trials.PROBED_ROWS}
"""The value of PROBED_ROWS."""
FOLDS = 5
LEAST = 0.002
"""The log-loss in nats that a loss counts as at least, because ratios of losses near 0 mean nothing."""
MADE_ROWS, TEST_ROWS = 750, 10_000
HALVES = ("choosing", "judging", "made")


class Figure(NamedTuple):
    """One line on one fold of one table.

    - rows: training rows; log_loss: of the held-out rows; seconds: CPU time of the fit
    - kept: whether boosted trees became a candidate; used: whether the model contains them
    """

    table: str
    half: str
    fold: int
    line: str
    rows: int
    log_loss: float
    seconds: float
    kept: bool
    used: bool


def _spirals(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return 6 * np.sin(2 * np.arctan2(x[1], x[0]) + 2 * np.hypot(x[0], x[1]))


def _squares(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return 4 * np.sign(np.sin(2 * x[0]) * np.sin(2 * x[1]))


def _octants(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return 4 * np.sign(x[0] * x[1] * x[2])


MADE = {"spirals": _spirals, "squares": _squares, "octants": _octants}
"""The log-odds of the class given four independent standard normal attributes (4, N)."""


def made(name: str, seed: int) -> tuple[Columns, Columns]:
    """Return training rows and test rows of a made table."""
    rng = np.random.default_rng([seed, list(MADE).index(name)])
    n = MADE_ROWS + TEST_ROWS
    values = rng.normal(size=(4, n))
    labels = (rng.random(n) < 1 / (1 + np.exp(-MADE[name](values)))).astype(np.int8)
    attributes = {f"a{i}": NumericColumn(column) for i, column in enumerate(values)}
    columns = Columns(n, attributes, "class", CategoricalColumn(labels, ("no", "yes")))
    return columns.take(np.arange(MADE_ROWS)), columns.take(np.arange(MADE_ROWS, n))


def parts() -> Iterator[tuple[str, str, int, Columns, Columns]]:
    """Yield name, half, fold, training rows and test rows of every fold in the range of rows."""
    for name in MADE:
        for seed in range(FOLDS):
            yield (name, "made", seed, *made(name, seed))
    for name in sets():
        columns = real_columns(name)
        assert columns.label is not None
        if not trials.PROBED_ROWS <= columns.n_rows * (1 - 1 / FOLDS) < EFFORTS[DEFAULT].boosted_from:
            continue
        fold_of = stratified_folds(columns.label.codes, FOLDS, (0, 0))
        for fold in range(FOLDS):
            training, test = (columns.take(np.flatnonzero(part)) for part in (fold_of != fold, fold_of == fold))
            yield name, half(name), fold, training, test


def main() -> None:
    """Measure what is missing, and write the page."""
    found = recorded() if FIGURES.exists() else []
    done = {(figure.table, figure.fold, figure.line) for figure in found}
    _measured("without", *made("squares", 10))  # so that no import is measured
    for name, title, fold, training, test in parts():
        for line in [*LINES][:: -1 if fold % 2 else 1]:
            if (name, fold, line) not in done:
                found.append(Figure(name, title, fold, line, training.n_rows, *_measured(line, training, test)))
                print(*found[-1], flush=True)
        lines = [[*f[:5], f"{f.log_loss:.6g}", f"{f.seconds:.3g}", int(f.kept), int(f.used)] for f in found]
        write_csv(FIGURES, [Figure._fields, *lines])
    PAGE.write_text(page(recorded()))


def _measured(line: str, training: Columns, test: Columns) -> tuple[float, float, bool, bool]:
    recipe = parse_learner("auto=--structure auto", 0).recipe
    with patch.object(trials, "PROBED_ROWS", LINES[line]):
        began = time.process_time()
        model = learn(training, recipe).model
        seconds = time.process_time() - began
    loss = predict_and_measure(model, test).metrics.log_loss
    ensemble = ensemble_of(model)
    kept, used = ("boosted" in [part.name for part in those] for those in (ensemble.trials, ensemble.components))
    return loss, seconds, kept, used


def recorded() -> list[Figure]:
    """Return the figures of the file."""
    return [
        Figure(name, title, int(fold), line, int(rows), float(loss), float(s), kept == "1", used == "1")
        for name, title, fold, line, rows, loss, s, kept, used in read_csv(FIGURES)[1:]
    ]


class Table(NamedTuple):
    """Means over the folds of one table by line; in how many fits trees were kept, and in how many models they are.

    `error` is the standard error of the mean difference in log-loss between the lines, from paired folds.
    """

    name: str
    half: str
    rows: int
    losses: dict[str, float]
    seconds: dict[str, float]
    fits: int
    kept: int
    used: int
    error: float

    @property
    def ratio(self) -> float:
        """The log-loss with trees divided by the one without."""
        return max(self.losses["with"], LEAST) / max(self.losses["without"], LEAST)

    @property
    def cost(self) -> float:
        """The CPU time with trees divided by the one without."""
        return self.seconds["with"] / self.seconds["without"]


def tables(figures: list[Figure]) -> list[Table]:
    """Return the tables, those of each half together."""
    found = []
    for name in dict.fromkeys(figure.table for figure in figures):
        own = {
            line: sorted((f for f in figures if (f.table, f.line) == (name, line)), key=lambda f: f.fold)
            for line in LINES
        }
        losses, seconds = (
            {line: float(np.mean([getattr(f, key) for f in own[line]])) for line in LINES}
            for key in ("log_loss", "seconds")
        )
        gains = np.array([a.log_loss - b.log_loss for a, b in zip(own["with"], own["without"], strict=True)])
        first = own["with"][0]
        kept, used = sum(f.kept for f in own["with"]), sum(f.used for f in own["with"])
        error = float(gains.std(ddof=1)) / len(gains) ** 0.5
        found.append(Table(name, first.half, first.rows, losses, seconds, len(gains), kept, used, error))
    return sorted(found, key=lambda one: (HALVES.index(one.half), one.rows))


def mean_ratios(found: list[Table], title: str) -> tuple[float, float]:
    """Return the geometric means, over the tables of a half, of the ratios of log-loss and of CPU time."""
    own = [one for one in found if one.half == title]
    return tuple(float(np.exp(np.mean(np.log(x)))) for x in ([o.ratio for o in own], [o.cost for o in own]))  # type: ignore[return-value]


def page(figures: list[Figure]) -> str:
    """Return the page: the summary, then table by table."""
    found = tables(figures)
    header = ["half", "tables", "fits", "trees kept", "trees in the model", "log-loss", "worst table", "CPU"]
    summary = []
    for title in HALVES:
        own = [one for one in found if one.half == title]
        counts = [len(own), *(sum(getattr(one, key) for one in own) for key in ("fits", "kept", "used"))]
        loss, cost = mean_ratios(found, title)
        worst = max(one.ratio for one in own)
        summary.append([title, *map(str, counts), f"{loss:.3f}", f"{worst:.3f}", f"{cost:.2f}"])
    parts = ["# Boosted trees on few rows", "", *_INTRODUCTION, table(header, summary), ""]
    header = ["table", "half", "rows", "without", "with", "difference", "error", "ratio", "kept", "in the model", "CPU"]
    rows = [
        [
            one.name,
            one.half,
            str(one.rows),
            *(f"{one.losses[line]:.4f}" for line in LINES),
            f"{one.losses['with'] - one.losses['without']:+.4f}",
            f"{one.error:.4f}",
            f"{one.ratio:.3f}",
            f"{one.kept} of {one.fits}",
            str(one.used),
            f"{one.cost:.2f}",
        ]
        for one in found
    ]
    return "\n".join([*parts, table(header, rows), ""])


_INTRODUCTION = [
    "With fewer than 1,000 training rows, but at least 500, `--structure auto` grows boosted trees on its first fold",
    "only, and keeps them as a candidate only where they clearly win there. The page compares this with the same",
    "learner without boosted trees. The ratios are those of log-loss on held-out rows and of CPU time, with trees",
    f"divided by without; means are geometric. A log-loss counts as at least {LEAST} nats.",
    "",
    "The limits were settled on the choosing half. The judging half was measured once they stood. On made tables, the",
    "class depends on two or three of four attributes through their interaction alone.",
    "",
    "In the second table, log-loss is the mean over five folds (made tables: five draws), and the error is the",
    "standard error of the mean difference over paired folds. Where trees were not kept, both lines have the same",
    "model. The whole gain on the judging half comes from one table.",
    "",
    "Written by `python -m tests.published.probed_trees` from `probed_trees.csv`; the module describes the tables.",
    "",
]

if __name__ == "__main__":
    main()
