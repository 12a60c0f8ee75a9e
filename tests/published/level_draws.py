"""Measure the effect of shrinking levels, instead of merging them, on many draws of office tables.

A single table of 1,000 rows has too few held-out rows to show a difference of 1 %. So four office tables are drawn anew
from their generators (`tests.office`), with other seeds. Each draw has its own frequencies of levels. Four fifths of a
first table are learned from, as on the page about levels; the remaining fifth and further tables with the same
frequencies of levels, TEST_ROWS rows in all, measure the loss.

`merged` is `--group-levels N`, where N is the largest number of levels that `--group-levels auto` leaves alone: the
attributes that `auto` takes are then merged into groups, as `auto` once did. `shrunk` is `--group-levels auto`, and
`alone` the same at commit 7bb6be50, when the variance of levels was not yet that beside the other attributes, and when
one factor of the penalty was used for lines and for steps.

Run `OMP_NUM_THREADS=1 python -m tests.published.levels draws`: it measures what `level_draws.csv` lacks.
"""

from __future__ import annotations

import csv
import io
import math
import tempfile
import zlib
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from bncli.cli.learning_options import parse_learner
from bncli.engine.data.columns import Columns
from bncli.engine.data.cutting import FEW
from bncli.engine.data.splits import stratified_sample
from bncli.engine.evaluation.cross_validation import predict_and_measure
from bncli.engine.learn import learn
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from tests import office
from tests.published.pages import read_csv, table, write_csv

FIGURES = Path(__file__).with_suffix(".csv")
LINES = {"auto": "--structure auto", "default": "", "interactions": "--structure interactions"}
DRAWS = {"staff": 20, "shop": 20, "clinic": 20, "churn": 20}
IDENTIFIERS = ("employee", "case_id", "customer")
TEST_ROWS = 20_000
RULES = ("merged", "alone", "shrunk")


class Figure(NamedTuple):
    """The log-loss of one line under one rule on the test rows of one draw."""

    table: str
    seed: int
    line: str
    rule: str
    log_loss: float


def drawn(name: str, seed: int) -> tuple[Columns, Columns]:
    """Return the training rows and the test rows of one draw of an office table."""
    maker = office.TABLES[name]

    def long_tail(rng: np.random.Generator, n_levels: int, n: int) -> NDArray[np.int64]:
        """Draw levels as the generator does, but with the frequencies of this draw."""
        ranks = np.random.default_rng([seed, zlib.crc32(b"levels")]).permutation(n_levels)
        shares = 1 / (1 + ranks)
        once = rng.permutation(n_levels)[:n]
        rest = rng.choice(n_levels, n - len(once), p=shares / shares.sum())
        return rng.permutation(np.concatenate([once, rest]))

    n_tables = 1 + math.ceil((TEST_ROWS - maker.n_rows / 5) / maker.n_rows)
    with patch.object(office, "_long_tail", long_tail):
        sheets = [office.sheet_of(name, 1_000 * seed + k) for k in range(n_tables)]
    # identifiers are nearly unique in each table, so that a fit leaves them out, but not in all tables together
    kept = [column for column in sheets[0] if column not in IDENTIFIERS]
    with tempfile.TemporaryDirectory() as folder:
        path, text = Path(folder) / maker.file, io.StringIO()
        out = csv.writer(text, delimiter=maker.delimiter, lineterminator="\r\n")
        out.writerow(kept)
        for sheet in sheets:
            out.writerows(zip(*(sheet[column].texts for column in kept), strict=True))
        path.write_bytes(text.getvalue().encode(maker.encoding))
        columns = read_columns(Source((str(path),), class_name=maker.class_name, encoding=maker.encoding))
    first = columns.take(np.arange(maker.n_rows))
    assert first.label is not None
    training = stratified_sample(first.label.codes, maker.n_rows * 4 // 5, 0)
    others = np.setdiff1d(np.arange(columns.n_rows), training)
    return columns.take(training), columns.take(others[:TEST_ROWS])


def measure() -> None:
    """Measure what the file lacks."""
    found = recorded() if FIGURES.exists() else []
    done = {(figure.table, figure.seed, figure.line, figure.rule) for figure in found}
    for name, n_draws in DRAWS.items():
        for seed in range(1, n_draws + 1):
            if all((name, seed, line, rule) in done for line in LINES for rule in ("merged", "shrunk")):
                continue
            training, test = drawn(name, seed)
            rules = {"merged": str(max(FEW, math.isqrt(training.n_rows))), "shrunk": "auto"}
            for line, words in LINES.items():
                for rule, option in rules.items():
                    if (name, seed, line, rule) not in done:
                        recipe = parse_learner(f"{line}={words} --group-levels {option}", 0).recipe
                        loss = predict_and_measure(learn(training, recipe).model, test).metrics.log_loss
                        found.append(Figure(name, seed, line, rule, loss))
                        print(*found[-1], flush=True)
            write_csv(FIGURES, [Figure._fields, *([*f[:4], f"{f.log_loss:.6g}"] for f in found)])


def recorded() -> list[Figure]:
    """Return the figures of the file."""
    return [Figure(name, int(seed), line, rule, float(loss)) for name, seed, line, rule, loss in read_csv(FIGURES)[1:]]


class Difference(NamedTuple):
    """Mean log-losses over the draws of a table under a rule and with merged levels.

    `error` is the standard error of their difference, from paired draws.
    """

    draws: int
    merged: float
    other: float
    error: float

    @property
    def ratio(self) -> float:
        """The mean log-loss under the rule divided by the one with merged levels."""
        return self.other / self.merged

    @property
    def error_of_ratio(self) -> float:
        """The standard error divided by the mean log-loss with merged levels."""
        return self.error / self.merged


def difference(figures: list[Figure], name: str, line: str, rule: str) -> Difference:
    """Compare a rule with merging, for one line on the draws of a table."""
    by_seed = [
        {f.seed: f.log_loss for f in figures if (f.table, f.line, f.rule) == (name, line, wanted)}
        for wanted in ("merged", rule)
    ]
    merged, other = (np.array([losses[seed] for seed in sorted(losses)]) for losses in by_seed)
    error = float((other - merged).std(ddof=1)) / len(merged) ** 0.5
    return Difference(len(merged), float(merged.mean()), float(other.mean()), error)


def section(figures: list[Figure]) -> str:
    """Return the table of means and ratios for the page about levels."""
    header = ["table", "line", "draws", *RULES, "alone / merged", "error", "shrunk / merged", "error"]
    rows = []
    for name in DRAWS:
        for line in LINES:
            alone, shrunk = (difference(figures, name, line, rule) for rule in ("alone", "shrunk"))
            losses = [f"{loss:.4f}" for loss in (shrunk.merged, alone.other, shrunk.other)]
            ratios = [f"{x:.4f}" for one in (alone, shrunk) for x in (one.ratio, one.error_of_ratio)]
            rows.append([name, line, str(shrunk.draws), *losses, *ratios])
    return table(header, rows)
