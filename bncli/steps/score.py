"""Streams a table through a model: rows in, a prediction a row out, in order and in bounded memory.

Reading and parsing, scoring, and formatting and writing overlap, each on a thread of its own; the output begins before
the input ends. The reader stays on the caller's thread, where ^C is heard even while it waits for input.

Conventions: no batch of probabilities holds more than 2^21 numbers, however many classes there are. With
`unseen="error"` the first value in the rows' order that training never saw stops the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast

from bncli.engine.data.columns import UNSEEN, CategoricalColumn
from bncli.engine.data.encoding import encode_attributes
from bncli.engine.data.schema import CategoricalAttribute, Unseen, source_column
from bncli.engine.explanation.contributions import Explainer, Explanation
from bncli.engine.kernels.arrays import Array, Codes
from bncli.engine.model import Model
from bncli.engine.prediction.scoring import compile_scorer, log_probabilities
from bncli.errors import ModelError
from bncli.files.model import read_model
from bncli.files.paths import check_outputs, refuse_ending
from bncli.files.score_layout import Layout, most_probable
from bncli.files.scores import NOT_WRITTEN, WRITTEN, ScoreFile, open_scores
from bncli.files.table import Batch, Batches, Source
from bncli.steps.pipeline import PipelineStage
from bncli.steps.run import Stopwatch, limited
from bncli.watch import Run, Stage

NUMBERS_PER_BLOCK = 1 << 21
_PER_REASON = 16
"""Numbers that a contribution and its words count for."""

Block = tuple[list[Any], Array, Explanation | None]
"""Rows on their way to the output: the kept columns, log P(y | x_t) of shape (K, N), and why, if asked for."""


@dataclass(frozen=True)
class Output:
    """Where predictions go (None or `-`: standard output) and what is written of a row.

    keep: input columns carried through. digits None: full precision. explain: how many contributions to the prediction.
    """

    path: str | None = None
    format: str | None = None
    keep: tuple[str, ...] | Literal["all"] = ()
    labels_only: bool = False
    log_proba: bool = False
    digits: int | None = None
    explain: int = 0


@dataclass(frozen=True)
class ScoreReport:
    """What went through. `unseen` and `missing` count values by column, of the columns that the model uses.

    `absent_columns` are those that the data lacks, unknown in every row and counted nowhere else. `output` None:
    standard output.
    """

    model: str
    output: str | None
    rows: int
    skipped_rows: int
    unseen_values: int
    unseen: dict[str, int]
    missing_values: int
    missing: dict[str, int]
    absent_columns: tuple[str, ...]
    seconds: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        """Every field by name."""
        return asdict(self) | {"absent_columns": list(self.absent_columns)}


def score(
    model_path: str,
    source: Source,
    output: Output = Output(),
    *,
    unseen: Unseen | None = None,
    run: Run = Run(),
) -> ScoreReport:
    """Scores `source` and writes the predictions; `unseen` and its missing tokens: None = as the model says."""
    path = None if output.path == "-" else output.path
    refuse_ending(path, NOT_WRITTEN, WRITTEN)
    check_outputs((path, source.bad_rows_file), (*source.paths, model_path))
    stopwatch = Stopwatch(run.watch)
    stopwatch(Stage("score"))
    model = read_model(model_path)
    rows = ScoredRows(model, strict=(unseen or model.schema.unseen) == "error", explain=output.explain)
    with Batches(
        source,
        model.schema,
        rows.needed,
        keep=output.keep,
        texts=rows.texts_wanted(),
        run=limited(run)._replace(watch=stopwatch),
    ) as batches:
        rows.absent = batches.absent
        kept = batches.kept_names if output.keep == "all" else tuple(output.keep)
        wanted = (output.labels_only, output.log_proba, output.digits, output.explain)
        layout = Layout(model.schema.labels, kept, *wanted)
        with open_scores(path, output.format, layout) as scores:
            _stream(batches, rows, scores, len(kept))
        return _report(model_path, path, rows, batches, stopwatch.seconds())


def _stream(batches: Batches, rows: ScoredRows, scores: ScoreFile, n_kept: int) -> None:
    """Reading here, scoring and writing in a stage each; of the texts that were read the first `n_kept` are written."""

    def score_batch(batch: Batch) -> None:
        if rows.strict:
            rows.refuse_unseen(batch, batches.kept_names)
        for block, log_p, why in rows.score(batch):
            writing.put(([column[block] for column in batch.kept[:n_kept]], log_p, why))

    with (
        PipelineStage[Block](lambda block: scores.write(*block)) as writing,
        PipelineStage(score_batch) as scoring,
        closing(cast(Generator[Batch, None, None], iter(batches))) as stream,
    ):
        for batch in stream:
            scoring.put(batch)


def _report(
    model_path: str, output: str | None, rows: ScoredRows, batches: Batches, seconds: dict[str, float]
) -> ScoreReport:
    return ScoreReport(
        model=model_path,
        output=output,
        rows=rows.count,
        skipped_rows=batches.n_skipped,
        unseen_values=sum(rows.unseen.values()),
        unseen=rows.in_order(rows.unseen),
        missing_values=sum(rows.missing.values()),
        missing=rows.in_order(rows.missing),
        absent_columns=batches.absent,
        seconds=seconds,
    )


class ScoredRows:
    """Scores batch after batch, and counts what it meets.

    strict: a value that training never saw is an error. explain: how many contributions to the prediction are told.
    `needed`: the columns that the model looks at; `absent`, those that the rows lack, is for the reader to say.
    """

    def __init__(self, model: Model, strict: bool = False, explain: int = 0) -> None:
        self.strict = strict
        self.count = 0
        self.absent: tuple[str, ...] = ()
        self.unseen: Counter[str] = Counter()
        self.missing: Counter[str] = Counter()
        self._schema = model.schema
        self._scorer = compile_scorer(model)
        self._explain = explain
        self._explainer = Explainer(model, self._scorer.used) if explain else None
        self._attributes = [model.schema.attributes[i] for i in self._scorer.used]
        self.needed = tuple(attribute.name for attribute in self._attributes)
        self._columns = tuple(source_column(attribute) for attribute in self._attributes)

    def texts_wanted(self) -> tuple[str, ...]:
        """Columns whose text is read beside those to keep: if an unseen value is an error, those that can have one."""
        return tuple(a.name for a in self._attributes if isinstance(a, CategoricalAttribute) and self.strict)

    def score(self, batch: Batch) -> Iterator[tuple[slice, Array, Explanation | None]]:
        """Consecutive rows, their log P(y | x_t), shape (K, rows), and why."""
        encoded = encode_attributes(batch.columns, self._schema, self._scorer.used, allow_missing=bool(self.absent))
        n_rows = batch.columns.n_rows
        self.count += n_rows
        self.unseen.update(dict(zip(self._columns, encoded.unseen, strict=True)))
        # of the parts of a date, which are missing together, the column counts once
        self.missing.update(dict(zip(self._columns, encoded.missing, strict=True)))
        step = max(1, NUMBERS_PER_BLOCK // (self._scorer.n_labels + _PER_REASON * self._explain))
        for start in range(0, n_rows, step):
            block = slice(start, min(start + step, n_rows))
            codes = [column[block] for column in encoded.codes]
            log_p = log_probabilities(self._scorer, codes, block.stop - start)
            yield block, log_p, self._why(codes, log_p)

    def _why(self, codes: Sequence[Codes], log_p: Array) -> Explanation | None:
        if self._explainer is None:
            return None
        return self._explainer.explain(codes, log_p, most_probable(log_p), self._explain)

    def refuse_unseen(self, batch: Batch, kept_names: tuple[str, ...]) -> None:
        """ModelError for the first value, row by row, that training never saw."""
        first: tuple[int, str] | None = None
        for name in self.needed:
            column = batch.columns.attributes.get(name)
            if isinstance(column, CategoricalColumn) and (column.codes == UNSEEN).any():
                found = int((column.codes == UNSEEN).argmax()), name
                first = found if first is None or found[0] < first[0] else first
        if first is not None:
            row, name = first
            value = batch.kept[kept_names.index(name)][row].as_py().strip()
            what = f"column {name!r} has the value {value!r}, which training never saw"
            raise ModelError(what, where=batch.locate(row), hint="--unseen average scores such rows")

    def in_order(self, counts: Counter[str]) -> dict[str, int]:
        """Without the columns that have none."""
        return {name: counts[name] for name in dict.fromkeys(self._columns) if counts[name]}
