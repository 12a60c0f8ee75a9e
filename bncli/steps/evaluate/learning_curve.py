"""Learning curves: the figures by how many rows were learnt from, with their spread over folds and repeats.

Samples are nested, the larger hold the smaller, and stratified. A size that takes in every row to learn from has the
figures of the evaluation itself, for nothing is learnt twice.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import NamedTuple

import numpy as np

from bncli.engine.data.columns import Columns
from bncli.engine.data.encoding import encode_labels
from bncli.engine.data.splits import nested_order
from bncli.engine.evaluation.metrics import METRICS, class_frequencies
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Model
from bncli.errors import UsageError
from bncli.files.atomic import write_bytes
from bncli.steps.evaluate.report import CurvePoint, FoldReport, summarized
from bncli.steps.run import Stopwatch
from bncli.watch import Progress, Watch, forward_warnings, silent

ALL = "all"
"""The size of every row that there is to learn from."""


@dataclass(frozen=True)
class Samples:
    """Rows to learn from in nested samples: their sizes, ascending, the last may be ALL; repeats and seed.

    Repeats and seed are those of a test table's samples; the samples of cross-validation are drawn by its protocol.
    """

    sizes: tuple[int | str, ...] = ()
    repeats: int = 1
    seed: int = 0

    def of(self, most: int, whose: str) -> tuple[int, ...]:
        """Return the sizes in rows, where at most `most` can be had; UsageError for one that exceeds them."""
        sizes = tuple(most if size == ALL else int(size) for size in self.sizes)
        if sizes and max(sizes) > most:
            what = f"--train-rows {max(sizes)} is more than the {most:,} rows {whose}"
            raise UsageError(what, hint=f"ask for fewer, or for {ALL}")
        if len(set(sizes)) < len(sizes):
            what = f"--train-rows has {most} twice, once as {ALL}: the {most:,} rows {whose}"
            raise UsageError(what, hint="leave one of them out")
        return sizes


class SampleFit(NamedTuple):
    """A model learnt from a sample of `size` rows, their class frequencies, and the seconds that it took."""

    size: int
    repeat: int
    model: Model
    frequencies: Array
    seconds: float


CSV_COLUMNS = ("train_rows", "repeat", "fold", "rows", *METRICS, "fit_seconds", "score_seconds")


def learning_curve(
    sizes: Sequence[int], sampled: Iterable[tuple[int, FoldReport]], whole: Sequence[FoldReport]
) -> tuple[CurvePoint, ...]:
    """Return a point per size, of its outcomes in the order of `whole`.

    Where a size has none, that of the whole is its own.
    """
    found = {(size, one.repeat, one.fold): one for size, one in sampled}
    return tuple(_point(n, tuple(found.get((n, one.repeat, one.fold), one) for one in whole)) for n in sizes)


def _point(rows: int, outcomes: tuple[FoldReport, ...]) -> CurvePoint:
    metrics = [one.metrics for one in outcomes]
    means, spread = summarized(metrics, METRICS, fmean), summarized(metrics, METRICS, stdev, at_least=2)
    return CurvePoint(rows, means, spread, outcomes)


def learn_samples(
    columns: Columns, samples: Samples, sizes: Sequence[int], learn: Callable[[Columns, Watch], Model], watch: Stopwatch
) -> Iterator[SampleFit]:
    """Yield a model of every sample that is not the whole table.

    `learn` tells its warnings, those of the first repeat.
    """
    assert columns.label is not None
    smaller = [size for size in sizes if size < columns.n_rows]
    total = samples.repeats * sum(smaller)
    done = 0
    for repeat in range(samples.repeats if smaller else 0):
        # the third number: as seeds, numpy takes (s, r) and (s, r, 0) for the same
        order = nested_order(columns.label.codes, (samples.seed, repeat, 1))
        for size in smaller:
            told = f"{size:,} {'row' if size == 1 else 'rows'}"
            watch(Progress(done, total, f"a sample of {told}"))
            begun, rows = watch.seconds()["fit"], columns.take(np.sort(order[:size]))
            model = learn(rows, silent if repeat else forward_warnings(watch, f"learnt from {told}, "))
            frequencies = class_frequencies(encode_labels(rows, model.schema), len(model.schema.labels), rows.weights)
            yield SampleFit(size, repeat, model, frequencies, watch.seconds()["fit"] - begun)
            done += size


def write_curve(path: str, curve: Sequence[CurvePoint]) -> None:
    """Write every outcome as CSV, a line per size, repeat and fold; what is not defined is an empty field."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for point in curve:
        for one in point.outcomes:
            figures: Mapping[str, float | None] = one.metrics
            seconds = (one.seconds[stage] for stage in ("fit", "score"))
            writer.writerow(
                [point.rows, one.repeat, one.fold, one.rows, *(figures[name] for name in METRICS), *seconds]
            )
    write_bytes(path, text.getvalue().encode())
