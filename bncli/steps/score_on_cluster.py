"""Scoring on a cluster: a file of the table is a task, and its worker reads, scores and formats it by itself.

What a worker has made stays with it until the rows of its file are next: here is one file's at a time. Conventions:
bytes, counts and the error of the first row that has one are those of one process. Workers read files by their whole
paths; errors and notes name them as they were typed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Model
from bncli.errors import BncliError
from bncli.files.exports.prediction_files import PieceMaker
from bncli.files.exports.score_layout import ScoreLayout
from bncli.files.reading.byte_streams import find_inputs
from bncli.files.reading.rows_by_schema import Batches
from bncli.files.reading.source import BadRow, Source
from bncli.steps.cluster.connection import Cluster
from bncli.steps.cluster.tasks import each_file_in_turn, for_workers, report_idle_threads, with_typed_paths
from bncli.steps.run import with_memory_limit
from bncli.steps.score_rows import Counts, ScoredRows
from bncli.steps.what_if import WhatIfQuestions
from bncli.watch import Run, Watch


@dataclass(frozen=True)
class ScorePlan:
    """All that a worker must know; `source` names no files, which are those of the tasks.

    monitored: rows are counted for a monitor. questions: what is asked beyond the prediction.
    """

    model: Model
    source: Source
    layout: ScoreLayout
    output: str | None
    output_format: str | None
    strict: bool
    shift: Array | None = None
    monitored: bool = False
    questions: WhatIfQuestions = field(default_factory=WhatIfQuestions)


class RowsBlock(NamedTuple):
    """Some consecutive rows: the malformed ones met before or among them, and the others as they are written."""

    bad: tuple[BadRow, ...]
    pieces: list[bytes]


class ScoredFile(NamedTuple):
    """A file's rows in order, what was counted in them, and what ended them before their time."""

    blocks: list[RowsBlock]
    counts: Counts
    error: BncliError | None


def files_on_cluster(cluster: Cluster, plan: ScorePlan, paths: Sequence[str], watch: Watch) -> Iterator[ScoredFile]:
    """Yield every file of the table, in order, up to the first that ends in an error."""
    report_idle_threads(len(find_inputs(paths, keep=False)), cluster, watch)
    plan = replace(plan, source=replace(for_workers(plan.source), paths=()))
    for _, scored, typed in each_file_in_turn(cluster, _serve, plan, paths, tuple, watch):
        yield _as_typed(scored, typed)


def _serve(plan: ScorePlan) -> Callable[[tuple[str, ...]], ScoredFile]:
    """On a worker: the function that scores the last of some files; the first is that whose columns all have."""
    rows = ScoredRows(plan.model, strict=plan.strict, explain=plan.layout.explain, shift=plan.shift)
    if plan.questions.any:
        rows.ask(plan.model, plan.questions, plan.layout.rule)
    if plan.monitored:
        rows.watch(plan.model)
    maker = PieceMaker(plan.output, plan.output_format, plan.layout)

    def score_file(paths: tuple[str, ...]) -> ScoredFile:
        rows.count, rows.unseen, rows.missing, rows.highest = 0, Counter(), Counter(), -math.inf
        if rows.watcher is not None:
            rows.watcher.begin()
        found: list[RowsBlock] = []
        error = None
        try:
            for block in _blocks(plan, paths, rows, maker):
                found.append(block)
                if block.bad and plan.source.on_bad_row == "fail":
                    break
        except BncliError as raised:
            error = raised
        tally = None if rows.watcher is None else rows.watcher.tally
        return ScoredFile(found, Counts(rows.count, rows.unseen, rows.missing, rows.highest, tally), error)

    return score_file


def _blocks(plan: ScorePlan, paths: tuple[str, ...], rows: ScoredRows, maker: PieceMaker) -> Iterator[RowsBlock]:
    n_kept = len(plan.layout.keep)
    with Batches(
        replace(plan.source, paths=paths),
        plan.model.schema,
        rows.needed,
        keep=plan.layout.keep,
        texts=rows.texts_wanted(),
        run=with_memory_limit(Run()),
    ) as batches:
        rows.absent = batches.absent
        for batch, bad in batches.with_bad_rows(len(paths) - 1):
            if rows.strict:
                rows.refuse_unseen(batch, batches.kept_names)
            scored = rows.score(batch) if batch.columns.n_rows else ()
            yield RowsBlock(
                bad,
                [
                    maker.piece([column[at] for column in batch.kept[:n_kept]], log_p, why, added)
                    for at, log_p, why, added in scored
                ],
            )


def _as_typed(scored: ScoredFile, names: dict[str, str]) -> ScoredFile:
    """With every path in the words of the command line."""
    blocks = [
        RowsBlock(tuple(replace(row, path=names[row.path]) for row in bad), pieces) for bad, pieces in scored.blocks
    ]
    error = None if scored.error is None else with_typed_paths(scored.error, names)
    return scored._replace(blocks=blocks, error=error)
