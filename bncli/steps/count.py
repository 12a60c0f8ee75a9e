"""Count the rows of a table, and write a counts file: the contingency tables that a structure needs.

Counts files of several tables can be merged. The table is read in batches, which are counted in chunks, so memory does
not grow with the number of rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bncli.engine.counting.counted_rows import (
    CountedRows,
    CountsPart,
    RequestedSets,
    count_rows,
    empty_counts,
    merge_counts,
    relabel,
)
from bncli.engine.data.dataset import Dataset, code_dtype
from bncli.engine.data.schema import Cuts, Schema
from bncli.engine.parameters.costs import needed_and_free
from bncli.engine.structures.named_structure import NamedRegions, NamedStructure
from bncli.errors import BncliError, UsageError
from bncli.files.artifacts.counts import counts_summary, write_counts
from bncli.files.paths import check_data, check_outputs, default_output_path
from bncli.files.reading.column_roles import is_codes_table
from bncli.files.reading.rows_by_cuts import CodedBatch, CodedBatches, CodesFileBatches
from bncli.files.reading.source import Source
from bncli.files.reading.values import sort_levels
from bncli.steps.learning_inputs import SuppliedFiles, explain_class_origin
from bncli.steps.run import Stopwatch, with_memory_limit
from bncli.watch import Note, Run, Stage

CHUNK_CODES = 1 << 25
"""The target number of codes per chunk, which is also its size in bytes if no attribute has more than 256 codes."""
MOST_CHUNK_ROWS = 1 << 19
MOST_PARTS = 1 << 14
COPIES = 4
"""The number of copies of the tables in memory: of a chunk as floats and as integers, the sum so far, the new sum."""


@dataclass(frozen=True)
class CountReport:
    """The counts, the file to which they were written, and the seconds of each stage."""

    counts: str
    counted: CountedRows
    seconds: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        """Return the summary of the counts, with their file and the seconds of each stage."""
        return {"counts": self.counts} | counts_summary(self.counted) | {"seconds": self.seconds}


def count(source: Source, supplied: SuppliedFiles, *, output: str | None = None, run: Run = Run()) -> CountReport:
    """Count the rows of `source`, and write the counts to `output`.

    The attributes are cut by the supplied cuts, or by the cuts in `source` if it is a `.codes` file. Contingency tables
    are counted for the supplied structure or, without one, for all pairs of attributes. A table without rows gives
    counts of 0 and a warning. Raises BncliError if the tables do not fit into memory, and UsageError for a structure of
    regions.
    """
    path = default_output_path(source.paths, ".counts") if output is None else output
    for data in source.paths:
        check_data(data)
    check_outputs((path,), (*source.paths, source.schema_file, *supplied.paths))
    stopwatch = Stopwatch(run.watch)
    run = with_memory_limit(run._replace(watch=stopwatch))
    stopwatch(Stage("count"))
    batches: CodedBatches | CodesFileBatches
    if is_codes_table(source.paths):
        batches = CodesFileBatches(source)
        cuts = batches.cuts
    else:
        assert supplied.cuts is not None
        cuts = supplied.cuts
        with explain_class_origin(supplied.cuts_path, None if source.class_name else cuts.class_name):
            batches = CodedBatches(source, cuts, run=run)
    with batches:
        counted = _count_batches(batches, cuts, supplied.structure, run)
    if not counted.n_rows:
        run.watch(Note("there are no rows: all counts are 0", warning=True))
    stopwatch(Stage("write"))
    write_counts(path, counted)
    return CountReport(path, counted, stopwatch.seconds())


def _count_batches(
    batches: CodedBatches | CodesFileBatches, cuts: Cuts, structure: NamedStructure | None, run: Run
) -> CountedRows:
    """Return the counts of all rows, with sorted labels.

    Raises BncliError if the tables do not fit into memory, and UsageError for a structure of regions.
    """
    # The sets of two or more attributes whose tables the structure needs; None for all pairs.
    sets: RequestedSets = None
    if isinstance(structure, NamedRegions):
        what = "regions are chosen by the probabilities of single rows, which counts do not contain"
        raise UsageError(what, hint="count for a network, or for all pairs of attributes (--structure pairs)")
    if structure is not None:
        # Any attribute may turn out to have missing values, and then it may be in the structure.
        attributes = tuple(replace(attribute, missing=True) for attribute in cuts.attributes)
        schema = Schema(cuts.class_name, (), attributes)
        families = structure.resolve(schema).families(schema.cardinalities, all_factors=True)
        sets = tuple(sorted({tuple(sorted(family.attributes)) for family in families if len(family.attributes) > 1}))
    chunk_rows = max(1, min(MOST_CHUNK_ROWS, CHUNK_CODES // max(1, len(cuts.attributes))))
    total, fingerprints = empty_counts(cuts, sets), dict[str, _Fingerprint]()
    for chunk in _chunks(_fingerprinted(batches, cuts, fingerprints), chunk_rows):
        labels = batches.labels  # those that have occurred so far
        entries = replace(total.layout, n_labels=len(labels)).n_entries
        needed = COPIES * 8 * entries
        if run.memory is not None and needed > run.memory:
            size = f"the tables would have {entries:,} entries for {len(labels):,} labels"
            hint = "count with --structure FILE, or remove columns with many levels from the cuts"
            raise BncliError(f"{size}: {needed_and_free(needed, run.memory)}", hint=hint)
        schema = Schema(total.cuts.class_name, labels, total.cuts.attributes)
        data = Dataset(schema, chunk.codes, chunk.labels.astype(code_dtype(len(labels))), chunk.weights, run.threads)
        total = merge_counts([total, count_rows(data, total.cuts, sets)], labels)
    # Every file is a part of its own, so that a later merge recognises rows that it would count twice.
    parts = {path: CountsPart(file.digest(batches.labels), file.n_rows) for path, file in fingerprints.items()}
    first_path: dict[str, str] = {}
    for path, part in parts.items():
        if first_path.setdefault(part.fingerprint, path) != path:
            text = f"{path} has the same rows as {first_path[part.fingerprint]}, which are counted twice"
            run.watch(Note(text, warning=True))
            break
    run_in_order = tuple(sorted(parts.values(), key=lambda part: (part.fingerprint, part.n_rows)))
    total = replace(total, missing_tokens=batches.missing_tokens, parts=run_in_order)
    return relabel(total, sort_levels(batches.labels))


def _chunks(batches: Iterable[CodedBatch], n_rows: int) -> Iterator[CodedBatch]:
    """Yield consecutive batches joined into chunks of at least `n_rows` rows; the last chunk may have fewer."""
    waiting: list[CodedBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(len(batch.labels) for batch in waiting) >= n_rows:
            yield _join(waiting)
            waiting = []
    if any(len(batch.labels) for batch in waiting):
        yield _join(waiting)


def _join(batches: list[CodedBatch]) -> CodedBatch:
    codes = tuple(np.concatenate(column) for column in zip(*(batch.codes for batch in batches), strict=True))
    weights = [batch.weights for batch in batches if batch.weights is not None]
    labels = np.concatenate([batch.labels for batch in batches])
    return CodedBatch(codes, labels, np.concatenate(weights) if weights else None, batches[0].path)


def _fingerprinted(
    batches: CodedBatches | CodesFileBatches, cuts: Cuts, fingerprints: dict[str, _Fingerprint]
) -> Iterator[CodedBatch]:
    """Yield the batches unchanged, and add the rows of each to the fingerprint of its file.

    If there are more than MOST_PARTS files, the last fingerprint covers all further files.
    """
    path = ""
    for batch in batches:
        if len(batch.labels):
            path = batch.path if batch.path in fingerprints or len(fingerprints) < MOST_PARTS else path
            if path not in fingerprints:
                fingerprints[path] = _Fingerprint(cuts, weighted=batches.weighted)
            fingerprints[path].add(batch)
        yield batch


class _Fingerprint:
    """The SHA-256 fingerprint of a sequence of coded rows, independent of the file format and the batch size.

    The width of the codes depends only on the cuts, and labels are numbered in the order in which they occur.
    """

    def __init__(self, cuts: Cuts, *, weighted: bool) -> None:
        codes = [code_dtype(a.n_values + 2) for a in cuts.attributes]  # with codes for missing and for unseen values
        kinds = [*codes, np.dtype(np.uint32), *([np.dtype(np.float64)] if weighted else [])]
        self._columns = [(hashlib.sha256(), kind.newbyteorder("<")) for kind in kinds]
        self._number_of_label: dict[int, int] = {}
        self.n_rows = 0

    def add(self, batch: CodedBatch) -> None:
        self.n_rows += len(batch.labels)
        present, first = np.unique(batch.labels, return_index=True)
        for k in present[np.argsort(first)].tolist():
            self._number_of_label.setdefault(k, len(self._number_of_label))
        numbers = np.zeros(int(present.max(initial=-1)) + 1, np.intp)
        numbers[present] = [self._number_of_label[k] for k in present.tolist()]
        columns = [*batch.codes, numbers[batch.labels], *([] if batch.weights is None else [batch.weights])]
        for (digest, kind), values in zip(self._columns, columns, strict=True):
            digest.update(np.ascontiguousarray(values, kind).data)

    def digest(self, labels: tuple[str, ...]) -> str:
        """Return the fingerprint in hexadecimal; labels[k] is the name of label k."""
        whole = hashlib.sha256("\0".join(labels[k] for k in self._number_of_label).encode())
        for digest, _ in self._columns:
            whole.update(digest.digest())
        return whole.hexdigest()
