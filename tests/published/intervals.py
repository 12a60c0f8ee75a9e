"""How often the 95 % intervals of `evaluate` cover the truth, by simulation.

Run `python -m tests.published.intervals`: it measures what `intervals.csv` lacks and writes the page. The model is
held fixed: it gives each row a probability, and labels are drawn from the true one. The truth is the figure on
2,000,000 rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import log_expit

from bncli.engine.evaluation.intervals import PredictedBlock, measure_intervals
from bncli.engine.evaluation.metrics import measure
from bncli.engine.kernels.arrays import Array, Integers
from tests.published.pages import read_csv, table, write_csv

FIGURES = Path(__file__).with_suffix(".csv")
PAGE = Path(__file__).with_suffix(".md")
METRICS = ("accuracy", "log_loss", "auc")
TRIALS = {200: 1000, 1000: 1000, 10_000: 500}
MODELS = ("calibrated", "overconfident", "units of four rows")
_ROWS_OF_TRUTH = 2_000_000


class Coverage(NamedTuple):
    """In how many of the trials the intervals covered the truth."""

    model: str
    rows: int
    trials: int
    accuracy: int
    log_loss: int
    auc: int


def draw(model: str, n_rows: int, seed: int) -> tuple[Array, Integers, Integers | None]:
    """Return ln P(c | x_t) (K, N) of a model for new rows, their labels, and their units."""
    rng = np.random.default_rng(seed)
    units = np.arange(n_rows) // 4 if model == "units of four rows" else None
    true = rng.normal(0.0, 1.5, n_rows)
    predicted = 2 * true if model == "overconfident" else true
    if units is not None:
        # the rows of a unit are alike, and share an effect that the model does not know
        predicted = true[units * 4] + 0.3 * rng.normal(size=n_rows)
        true = predicted + rng.normal(size=n_rows)[units * 4]
    labels = (rng.random(n_rows) < np.exp(log_expit(true))).astype(np.int64)
    return np.array([log_expit(-predicted), log_expit(predicted)]), labels, units


def cover(model: str, n_rows: int, trials: int) -> Coverage:
    """Return how often the intervals cover the truth."""
    log_p, labels, _ = draw(model, _ROWS_OF_TRUTH, 10**6)
    truth, covered = measure(log_p, labels).by_name(), dict.fromkeys(METRICS, 0)
    for trial in range(trials):
        log_p, labels, units = draw(model, n_rows, trial)
        block = PredictedBlock(np.arange(n_rows), log_p)
        reported = measure(log_p, labels).by_name()
        found = measure_intervals([block], labels, None, reported, units=units, seed=trial).metrics
        for name in METRICS:
            ends, value = found[name], truth[name]
            assert value is not None
            covered[name] += ends is not None and ends[0] <= value <= ends[1]
    return Coverage(model, n_rows, trials, **covered)


def recorded() -> list[Coverage]:
    return [Coverage(line[0], *map(int, line[1:])) for line in read_csv(FIGURES)[1:]]


def page(coverages: list[Coverage]) -> str:
    """Return the page of the figures in percent."""
    rows = [
        [each.model, f"{each.rows:,}", f"{each.trials:,}"]
        + [f"{100 * getattr(each, name) / each.trials:.1f}" for name in METRICS]
        for each in coverages
    ]
    return (
        "# How often the intervals of `evaluate` cover the truth\n\n"
        "Percentage of simulated test tables in which the 95 % interval (BCa bootstrap over units) covers the figure\n"
        "of the same model on 2,000,000 new rows. 1,000 trials have a standard error of 0.7 points, 500 of 1.0.\n\n"
        + table(["model", "rows", "trials", "accuracy", "log-loss", "auc"], rows)
        + "\n"
    )


def main() -> None:
    """Measure what is missing, and write the page."""
    coverages = recorded() if FIGURES.exists() else []
    for model in MODELS:
        for n_rows, trials in TRIALS.items():
            if (model, n_rows) not in {(each.model, each.rows) for each in coverages}:
                coverages.append(cover(model, n_rows, trials))
                write_csv(FIGURES, [Coverage._fields, *coverages])
    coverages.sort(key=lambda each: (MODELS.index(each.model), each.rows))
    write_csv(FIGURES, [Coverage._fields, *coverages])
    PAGE.write_text(page(coverages))


if __name__ == "__main__":
    main()
