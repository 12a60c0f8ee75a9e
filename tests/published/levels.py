"""Columns of many levels: merged into groups, or each level with an effect that is drawn in, beside the truth.

Run `BNCLI_DATA=FOLDER OMP_NUM_THREADS=1 python -m tests.published.levels`: it measures what `levels.csv` lacks of the
rule `after`, small tables first, and writes the page. `before` and `off` are `--group-levels auto` and `--group-levels
off` at commit aa9a0046, when `auto` merged the levels of every column that it took: in that tree, `python -m
tests.published.levels before off`. `python -m tests.published.levels draws` measures what `level_draws.csv` lacks
(`tests.published.level_draws`), and writes the page.

The truth of a made table is a logistic regression on two numbers (a slope and a threshold) and a name whose levels have
effects; a second name, of as many levels, says nothing. The frequencies of levels fall like 1 / (rank + a tenth of the
levels). The effects are drawn from a normal distribution of standard deviation 0.3 (`small`) or 1 (`large`), or from
one of four groups (`groups`). Losses are those of 20,000 further rows. Tables of offices and a sample of adult have no
known truth; four fifths of their rows, at most 10,000, are learned from, and up to 20,000 others measure the loss.
"""

from __future__ import annotations

import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bncli.cli.learning_options import parse_learner
from bncli.engine.data.columns import CategoricalColumn, Columns, NumericColumn
from bncli.engine.data.splits import stratified_sample
from bncli.engine.evaluation.cross_validation import predict_and_measure
from bncli.engine.learn import learn
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from tests.office import TABLES, write
from tests.performance.workloads import real_columns
from tests.published import level_draws
from tests.published.pages import read_csv, table, write_csv

FIGURES = Path(__file__).with_suffix(".csv")
PAGE = Path(__file__).with_suffix(".md")
LINES = {"auto": "--structure auto", "default": "", "interactions": "--structure interactions"}
RULES = ("before", "after", "off")
SIZES = ((30, 800), (100, 2_000), (100, 5_000), (300, 5_000), (1_000, 5_000))
GIVEN = ("adult", "staff", "churn", "bank", "clinic", "tickets", "shop", "flights")
KINDS = ("small", "large", "groups")
TEST_ROWS = 20_000


class Figure(NamedTuple):
    """One line under one rule on one table: rows learned from, log-loss of the test rows, seconds of the processor."""

    table: str
    line: str
    rule: str
    rows: int
    log_loss: float
    seconds: float


def made(n_levels: int, n_rows: int, kind: str) -> tuple[Columns, Columns, float]:
    """Return training rows, test rows, and the log-loss of the truth on the test rows."""
    rng = np.random.default_rng([n_levels, n_rows, zlib.crc32(kind.encode())])
    shares = 1 / (1 + np.arange(n_levels) + n_levels / 10)
    n = n_rows + TEST_ROWS
    name, other = rng.choice(n_levels, (2, n), p=shares / shares.sum())
    if kind == "groups":
        effects = np.array((-1.5, -0.5, 0.5, 1.5))[rng.integers(0, 4, n_levels)]
    else:
        effects = rng.normal(0, {"small": 0.3, "large": 1.0}[kind], n_levels)
    slope, threshold = rng.normal(size=(2, n)).round(3)
    log_odds = -0.5 + 0.8 * slope + 0.8 * (threshold > 0.5) + effects[name]
    labels = (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(np.int8)
    levels = tuple(f"{i:04d}" for i in range(n_levels))
    attributes = {
        "name": CategoricalColumn(name.astype(np.int16), levels),
        "slope": NumericColumn(slope),
        "threshold": NumericColumn(threshold),
        "other": CategoricalColumn(other.astype(np.int16), levels),
    }
    columns = Columns(n, attributes, "class", CategoricalColumn(labels, ("no", "yes")))
    test = np.arange(n_rows, n)
    truth = np.logaddexp(0, np.where(labels == 1, -log_odds, log_odds))[test].mean()
    return columns.take(np.arange(n_rows)), columns.take(test), float(truth)


def given(name: str) -> tuple[Columns, Columns]:
    """Return the rows of an office table or of adult to learn from, and others."""
    if name == "adult":
        columns, n = real_columns(name), 1_200
    else:
        maker, encoding = TABLES[name], None if TABLES[name].encoding == "utf-16" else TABLES[name].encoding
        with tempfile.TemporaryDirectory() as folder:
            source = Source((str(write(name, Path(folder))),), class_name=maker.class_name, encoding=encoding)
            columns = read_columns(source)
        n = min(10_000, columns.n_rows * 4 // 5)
    assert columns.label is not None
    training = stratified_sample(columns.label.codes, n, 0)
    others = np.setdiff1d(np.arange(columns.n_rows), training)
    return columns.take(training), columns.take(others[:TEST_ROWS])


def tables() -> Iterator[tuple[str, Columns, Columns, float | None]]:
    """Yield name, training rows, test rows, and the log-loss of the truth if it is known."""
    for name in GIVEN:
        yield (name, *given(name), None)
    for n_levels, n_rows in SIZES:
        for kind in KINDS:
            yield (f"{kind} {n_levels:,} {n_rows:,}", *made(n_levels, n_rows, kind))


def main(rules: list[str]) -> None:
    """Measure what is missing of these rules, and write the page."""
    found = recorded() if FIGURES.exists() else []
    done = {(figure.table, figure.line, figure.rule) for figure in found}
    for name, training, test, truth in tables():
        if truth is not None and (name, "truth", "") not in done:
            found.append(Figure(name, "truth", "", training.n_rows, truth, 0.0))
        for line, words in LINES.items():
            for rule in rules:
                if (name, line, rule) not in done:
                    recipe = parse_learner(
                        f"{line}={words} --group-levels {'off' if rule == 'off' else 'auto'}", 0
                    ).recipe
                    began = time.process_time()
                    model = learn(training, recipe).model
                    seconds = time.process_time() - began
                    loss = predict_and_measure(model, test).metrics.log_loss
                    found.append(Figure(name, line, rule, training.n_rows, loss, seconds))
                    print(*found[-1], flush=True)
        lines = [[*f[:4], f"{f.log_loss:.6g}", f"{f.seconds:.3g}"] for f in found]
        write_csv(FIGURES, [Figure._fields, *lines])
    PAGE.write_text(page(recorded(), level_draws.recorded()))


def recorded() -> list[Figure]:
    """Return what the file says."""
    return [Figure(*texts, int(rows), float(loss), float(s)) for *texts, rows, loss, s in read_csv(FIGURES)[1:]]


def ratios(figures: list[Figure], line: str, rule: str) -> dict[str, float]:
    """Return by table the log-loss of a line after the change, divided by the one under another rule."""
    of_rule = {f.table: f.log_loss for f in figures if (f.line, f.rule) == (line, rule)}
    after = {f.table: f.log_loss for f in figures if (f.line, f.rule) == (line, "after")}
    return {name: after[name] / loss for name, loss in of_rule.items() if name in after}


def page(figures: list[Figure], draws: list[level_draws.Figure]) -> str:
    """Return the means of the ratios, the tables drawn again, then the losses table by table."""
    means = []
    for line in LINES:
        of_before, of_off = (np.array(list(ratios(figures, line, rule).values())) for rule in ("before", "off"))
        ours, theirs = (sum(f.seconds for f in figures if (f.line, f.rule) == (line, r)) for r in ("after", "before"))
        geometric = [f"{np.exp(np.log(values).mean()):.3f}" for values in (of_before, of_off)]
        means.append([line, str(len(of_before)), *geometric, f"{of_before.max():.3f}", f"{ours / theirs:.2f}"])
    header = ["line", "tables", "beside merged", "beside off", "worst beside merged", "CPU beside merged"]
    parts = ["# Columns of many levels", "", *_INTRODUCTION, table(header, means), ""]
    losses = {(f.table, f.line, f.rule): f"{f.log_loss:.4f}" for f in figures}
    rows = {f.table: f.rows for f in figures}
    header = ["table", "rows", "truth", *(f"{line}: {rule}" for line in LINES for rule in RULES)]
    lines = [
        [
            name,
            f"{n:,}",
            losses.get((name, "truth", ""), ""),
            *(losses.get((name, line, rule), "") for line in LINES for rule in RULES),
        ]
        for name, n in rows.items()
    ]
    parts += ["## Office tables drawn again", "", *_DRAWS, level_draws.section(draws), ""]
    return "\n".join([*parts, "## Log-loss, nats", "", *_TABLES, table(header, lines), ""])


_INTRODUCTION = [
    "`--group-levels auto` takes the categories of more than 20 levels and more than the square root of the number of",
    "rows. It once merged their levels into groups (`before`). Now `--structure auto` and `--structure interactions`,",
    "and the default line where it takes interactions, merge only levels of a single row and those beyond the 1,000",
    "most frequent; the effects of the others are drawn in, those of few rows most (`after`). `off` kept every level",
    "without that. The table has geometric means of ratios of log-losses on rows that took no part in learning, and",
    "the ratio of the CPU times of the fits, which includes all other changes to the program since `before`.",
    "",
    "Written by `python -m tests.published.levels` from `levels.csv` and `level_draws.csv`; the modules describe the",
    "tables.",
    "",
]
_DRAWS = [
    "Only 200 rows of staff are held out, and 1,000 of shop, so that the ratios of such tables have large errors.",
    "Therefore four were drawn again from their generators with other seeds; 20,000 rows measure each draw's loss.",
    "The table has mean log-losses in nats, and ratios of these means with their standard errors over paired draws.",
    "",
    "Levels were first shrunk by the variance of their class frequencies `alone`, and with the same factor of the",
    "penalty for lines and for steps. Then `auto` was 2 % worse on staff than with merged levels: there, job titles",
    "differ in the salary, and beside the salary they differ much less. `shrunk` takes the variance beside the other",
    "attributes, and a factor for each coding (`bncli.engine.parameters.level_effects`).",
    "",
]
_TABLES = [
    "The names of made tables say how the effects of levels are drawn, and give the number of levels and rows.",
    "",
]

if __name__ == "__main__":
    if sys.argv[1:] == ["draws"]:
        level_draws.measure()
        PAGE.write_text(page(recorded(), level_draws.recorded()))
    else:
        main(sys.argv[1:] or ["after"])
