"""The default line, which chooses between a tree and interactions, beside each of the two alone, over many tables.

Run `BNCLI_DATA=FOLDER python -m tests.published.default_choice TREE` with OMP_NUM_THREADS and OPENBLAS_NUM_THREADS 1:
it measures what `default_choice.csv` lacks, small tables first, and writes the page. TREE is a working tree of commit
4b1ba349, in which the default was the tree; its time is that of the line `before`. Every table at hand but copies; of
more than MOST rows a sample of as many. The folds are those of `bncli evaluate --seed 0`: all five of up to 1,000 rows,
two of up to MOST, one of larger tables. The lines take turns in one thread, three in one process and `before` in
another, after a fit of a small table, and their seconds are those of the processor.

The tables lie in two halves (`tests.published.anchors.half`). The margin by which held-out rows have to prefer
interactions, and the standard errors after which no fold follows, were settled on the choosing half.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bncli.cli.learning_options import parse_learner
from bncli.engine.data.splits import stratified_folds, stratified_sample
from bncli.engine.evaluation.cross_validation import predict_and_measure
from bncli.engine.learn import learn
from bncli.files.pictures.drawing import PanelLayout, axis_of
from tests.performance.growth import draw_axes
from tests.performance.workloads import real_columns
from tests.published.anchors import half, sets
from tests.published.pages import read_csv, table, write_csv
from tests.transcripts import ROOT

FIGURES = Path(__file__).with_suffix(".csv")
PAGE = Path(__file__).with_suffix(".md")
PICTURE = ROOT / "bncli" / "manual" / "default-line.svg"
LINES = {"tree": "--structure tan --arcs cv", "interactions": "--structure interactions", "default": ""}
"""What one types after `bncli fit`."""
BEFORE = "before"
_SERVER = """
import sys, time
import numpy as np
from bncli.cli.learners import parse_learner
from bncli.engine.data.splits import stratified_folds, stratified_sample
from bncli.engine.evaluation.cross_validation import predict_and_measure
from bncli.engine.learn import learn
from tests.performance.workloads import real_columns
for line in sys.stdin:
    name, fold = line.split()
    columns = real_columns(name)
    if columns.n_rows > int(sys.argv[1]):
        columns = columns.take(stratified_sample(columns.label.codes, int(sys.argv[1]), 0))
    fold_of = stratified_folds(columns.label.codes, int(sys.argv[2]), (0, 0))
    training, test = (columns.take(np.flatnonzero(part)) for part in (fold_of != int(fold), fold_of == int(fold)))
    recipe = parse_learner("default=", 0).recipe
    began = time.process_time()
    model = learn(training, recipe).model
    seconds = time.process_time() - began
    loss = predict_and_measure(model, test).metrics.log_loss
    print(test.n_rows, loss, seconds, model.recipe.structure, flush=True)
"""
"""What measures the default of an earlier tree, with the imports of that tree, like `_measured`."""
MOST = 10_000
FOLDS = 5
LEAST = 0.002
"""Nats that a loss counts as at least: of losses near 0 a ratio says nothing."""


class Figure(NamedTuple):
    """One line on one fold: log-loss of the rows held out, seconds of the processor, the structure of the model."""

    set: str
    size: int
    fold: int
    line: str
    rows: int
    log_loss: float
    seconds: float
    structure: str


def main(earlier: Path) -> None:
    """Measure what is missing, small tables first, and write the page; `earlier` is the working tree of `before`."""
    environment = {**os.environ, "PYTHONPATH": str(earlier)}
    command = [sys.executable, "-c", _SERVER, str(MOST), str(FOLDS)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=earlier, env=environment, text=True, stdin=pipe, stdout=pipe) as server:
        _measure_missing(server)
    PAGE.write_text(page(recorded()))
    PICTURE.write_text(picture(recorded()))


def _measure_missing(server: subprocess.Popen[str]) -> None:
    found = recorded() if FIGURES.exists() else []
    done = {(figure.set, figure.fold, figure.line) for figure in found}
    for line in (*LINES, BEFORE):
        _measured("lenses", 0, line, server)  # so that no import is measured
    sizes = {name: real_columns(name) for name in sets()}
    for name in sorted(sizes, key=lambda name: _size(name)):
        n_rows = sizes[name].n_rows
        for fold in range(FOLDS if n_rows <= 1_000 else 2 if n_rows <= MOST else 1):
            for line in (*LINES, BEFORE):
                if (name, fold, line) not in done:
                    found.append(_measured(name, fold, line, server))
                    print(*found[-1], flush=True)
            write(found)


def _size(name: str) -> float:
    columns = real_columns(name)
    assert columns.label is not None
    return min(columns.n_rows, MOST) * len(columns.attributes) * len(columns.label.levels)


def _measured(name: str, fold: int, line: str, server: subprocess.Popen[str]) -> Figure:
    columns = real_columns(name)
    size = columns.n_rows
    if line == BEFORE:
        assert server.stdin is not None
        assert server.stdout is not None
        print(name, fold, file=server.stdin, flush=True)
        n_rows, told_loss, told_seconds, structure = server.stdout.readline().split()
        return Figure(name, size, fold, line, int(n_rows), float(told_loss), float(told_seconds), structure)
    assert columns.label is not None
    if size > MOST:
        columns = columns.take(stratified_sample(columns.label.codes, MOST, 0))
        assert columns.label is not None
    fold_of = stratified_folds(columns.label.codes, FOLDS, (0, 0))
    training, test = (columns.take(np.flatnonzero(part)) for part in (fold_of != fold, fold_of == fold))
    recipe = parse_learner(f"{line}={LINES[line]}", 0).recipe
    began = time.process_time()
    model = learn(training, recipe).model
    seconds = time.process_time() - began
    loss = predict_and_measure(model, test).metrics.log_loss
    return Figure(name, size, fold, line, test.n_rows, loss, seconds, str(model.recipe.structure))


def write(figures: list[Figure]) -> None:
    """Write all figures, to six digits."""
    lines = [[*f[:5], f"{f.log_loss:.6g}", f"{f.seconds:.4g}", f.structure] for f in figures]
    write_csv(FIGURES, [Figure._fields, *lines])


def recorded() -> list[Figure]:
    """Return what the file says."""
    return [
        Figure(name, int(size), int(fold), line, int(rows), float(loss), float(seconds), structure)
        for name, size, fold, line, rows, loss, seconds, structure in read_csv(FIGURES)[1:]
    ]


class Table(NamedTuple):
    """One table: means over its folds by line, and how far the default is worse than the tree, in standard errors.

    `taken` is the number of folds whose model has interactions. With a single fold there is no standard error.
    """

    name: str
    size: int
    folds: int
    losses: dict[str, float]
    seconds: dict[str, float]
    taken: int
    errors: float

    def ratio(self, line: str) -> float:
        """Return the log-loss of a line divided by that of the tree."""
        return max(self.losses[line], LEAST) / max(self.losses["tree"], LEAST)


def tables(figures: list[Figure]) -> list[Table]:
    """Return the tables of which all lines are measured."""
    found = []
    for name in dict.fromkeys(figure.set for figure in figures):
        own = {line: [f for f in figures if (f.set, f.line) == (name, line)] for line in (*LINES, BEFORE)}
        if len({tuple(f.fold for f in own[line]) for line in own}) > 1:
            continue
        losses, seconds = (
            {line: float(np.mean([getattr(f, key) for f in own[line]])) for line in own}
            for key in ("log_loss", "seconds")
        )
        pairs = zip(own["default"], own["tree"], strict=True)
        worse = np.array([default.log_loss - tree.log_loss for default, tree in pairs])
        error = float(worse.std(ddof=1)) / len(worse) ** 0.5 if len(worse) > 1 else 0.0
        taken = sum(f.structure == "interactions" for f in own["default"])
        size = own["tree"][0].size
        found.append(Table(name, size, len(worse), losses, seconds, taken, float(worse.mean()) / error if error else 0))
    return sorted(found, key=lambda one: one.size)


def summary(found: list[Table]) -> list[list[str]]:
    """Return geometric means of ratios to the tree, and of the default's CPU time to that of before, by half."""
    rows = []
    for title in ("choosing", "judging"):
        own = [one for one in found if half(one.name) == title]

        def mean(ratios: list[float]) -> str:
            return f"{np.exp(np.mean(np.log(ratios))):.3f}"

        beside = (("interactions", "tree"), ("default", "tree"), ("default", BEFORE))

        rows.append(
            [
                title,
                str(len(own)),
                *(mean([one.ratio(line) for one in own]) for line in ("interactions", "default")),
                *(mean([one.seconds[line] / one.seconds[other] for one in own]) for line, other in beside),
            ]
        )
    return rows


def picture(figures: list[Figure]) -> str:
    """Return log-loss over CPU time, both divided by those of the tree: the tables of each half, and their means."""
    layout = PanelLayout(width=330.0, height=240.0, left=64.0, above=40.0, right=24.0, below=48.0, columns=2)
    found = tables(figures)
    drawing, frames = layout.sheet("Log-loss and CPU seconds beside the tree, means large, tables small", 2, head=40.0)
    points = {
        title: {
            line: [
                (one.seconds[line] / one.seconds["tree"], one.ratio(line), one.name)
                for one in found
                if half(one.name) == title
            ]
            for line in LINES
        }
        for title in ("choosing", "judging")
    }
    every = [point for lines in points.values() for own in lines.values() for point in own]
    across, upwards = (axis_of([point[place] for point in every], True) for place in (0, 1))
    for frame, (title, lines) in zip(frames, points.items(), strict=True):
        upwards_name = f"log-loss beside the tree, {title} half"
        draw_axes(drawing, frame, across, upwards, "CPU seconds beside the tree", upwards_name)
        for line, own in lines.items():
            for x, y, name in own if line == "default" else ():
                tip = f"{name}, default: log-loss {y:.3f}, CPU {x:.2f}"
                drawing.dot(*frame.place(across.share(x), upwards.share(y)), tip, radius=2.0)
            x, y = (float(np.exp(np.mean(np.log([point[place] for point in own])))) for place in (0, 1))
            left, top = frame.place(across.share(x), upwards.share(y))
            drawing.dot(left, top, f"{line}: log-loss {y:.3f}, CPU {x:.2f}", radius=5.0)
            above = line == "tree"
            drawing.text(left + 8, top - 6 if above else top + 14, line, size=11)
    return drawing.source()


def page(figures: list[Figure]) -> str:
    """Return the summary, then table by table."""
    found = tables(figures)
    cpu = ("CPU: interactions", "default", "default beside before")
    header = ["half", "tables", "log-loss: interactions", "default", *cpu]
    parts = ["# The default line and its two structures", "", *_INTRODUCTION, table(header, summary(found)), ""]
    header = [
        *("table", "half", "rows", "folds"),
        *LINES,
        *("taken", "ratio", "errors", "CPU", "CPU beside before"),
    ]
    rows = [
        [
            one.name,
            half(one.name),
            f"{one.size:,}",
            str(one.folds),
            *(f"{one.losses[line]:.4f}" for line in LINES),
            str(one.taken),
            f"{one.ratio('default'):.3f}",
            f"{one.errors:.1f}" if one.folds > 1 else "",
            *(f"{one.seconds['default'] / one.seconds[beside]:.1f}" for beside in ("tree", BEFORE)),
        ]
        for one in found
    ]
    return "\n".join([*parts, table(header, rows), ""])


_INTRODUCTION = [
    "`bncli fit DATA` lets held-out rows choose between a tree (`--structure tan --arcs cv`) and `--structure",
    "interactions`. The table has geometric means of log-loss and CPU time, divided by those of the tree; a loss",
    f"counts as at least {LEAST} nats. Of more than {MOST:,} rows a sample of as many is used. The last column divides",
    "the CPU time of the default by that of the version in which the tree was the default; the aim was 2.",
    "",
    "Below are the tables one by one: log-loss of the three lines in nats, the number of folds in which the default",
    "took interactions, the ratio of the default to the tree, their difference in standard errors over paired folds,",
    "and the ratios of the CPU times, to the tree and to the version before. With two folds a standard error is rough.",
    "",
    "A clear loser is dropped after the first folds. All was measured in turns on one machine (AMD EPYC with AVX-512,",
    "one thread, beside other work). Where the winner is interactions, it takes most of the time, since each of five",
    "folds (two from 2,000 rows on) searches its own regions.",
    "",
    "Written by `python -m tests.published.default_choice` from `default_choice.csv`; the module has the rule.",
    "",
]

if __name__ == "__main__":
    main(Path(sys.argv[1]))
