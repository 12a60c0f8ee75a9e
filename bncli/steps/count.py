"""Counts a table's rows: the contingency tables that a structure needs, as a file that can be merged with others.

The table is read in batches, and these are gathered to chunks: memory does not grow with the rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bncli.engine.counting.counted_rows import CountedRows, CountsPart, Wanted, added, count_rows, no_rows, relabelled
from bncli.engine.data.dataset import Dataset, code_dtype
from bncli.engine.data.schema import Cuts, Schema
from bncli.engine.parameters.memory_estimate import needed_and_free
from bncli.engine.structures.named_structure import NamedRegions, NamedStructure
from bncli.errors import BncliError, UsageError
from bncli.files.artifacts.counts import counts_summary, write_counts
from bncli.files.paths import check_data, check_outputs, default_output_path
from bncli.files.reading.column_builder import sorted_texts
from bncli.files.reading.column_roles import is_codes_table
from bncli.files.reading.rows_by_schema import CodedBatch, CodedBatches, CodesFileBatches
from bncli.files.reading.source import Source
from bncli.steps.inputs import SuppliedFiles, class_named_by
from bncli.steps.run import Stopwatch, limited
from bncli.watch import Note, Run, Stage, Watch

CHUNK = 1 << 25
"""Codes that are counted at a time: at most so many bytes where attributes have up to 256 of them."""
MOST_ROWS = 1 << 19
MOST_PARTS = 1 << 14
COPIES = 4
"""Of the tables that exist at once: those of a chunk (as floats, then as integers), the sum, and the new sum."""


@dataclass(frozen=True)
class CountReport:
    """What was counted, and where it was written; `entries` are the numbers of all tables together.

    `tables`: pairs, or the attributes of each table besides those of single attributes. `weight` is the sum of row
    weights.
    """

    counts: str
    counted: CountedRows
    seconds: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        """Return every figure by name."""
        return {"counts": self.counts} | counts_summary(self.counted) | {"seconds": self.seconds}


class _Parts:
    """The batches, each file of which is a part of its own: so a merge sees what it would count twice.

    Conventions: from the MOST_PARTS-th file on all the rest is one part.
    """

    def __init__(self, batches: CodedBatches | CodesFileBatches, cuts: Cuts) -> None:
        self._batches, self._cuts = batches, cuts
        self._found: dict[str, _Fingerprint] = {}

    def __iter__(self) -> Iterator[CodedBatch]:
        known, path = self._found, ""
        for batch in self._batches:
            if len(batch.labels):
                path = batch.path if batch.path in known or len(known) < MOST_PARTS else path
                if path not in known:
                    known[path] = _Fingerprint(self._cuts, weighted=self._batches.weighted)
                known[path].add(batch)
            yield batch

    def found(self, watch: Watch) -> tuple[CountsPart, ...]:
        """Return all of them, in the order of a merge; a note names the first whose rows are those of another."""
        labels, first = self._batches.labels, dict[str, str]()
        parts = [(path, CountsPart(one.digest(labels), one.n_rows)) for path, one in self._found.items()]
        twice = [(path, first[p.fingerprint]) for path, p in parts if first.setdefault(p.fingerprint, path) != path]
        if twice:
            watch(Note(f"{twice[0][0]} has the same rows as {twice[0][1]}, which are counted twice", warning=True))
        return tuple(sorted((part for _, part in parts), key=lambda part: (part.fingerprint, part.n_rows)))


class _Fingerprint:
    """SHA-256 of the coded rows in their order, the same whatever file they are read from and in whatever batches.

    Codes have the width that the cuts alone tell, and labels are numbered as they are met.
    """

    def __init__(self, cuts: Cuts, *, weighted: bool) -> None:
        codes = [code_dtype(a.n_values + 2) for a in cuts.attributes]  # one for missing values, one for unseen ones
        kinds = [*codes, np.dtype(np.uint32), *([np.dtype(np.float64)] if weighted else [])]
        self._columns = [(hashlib.sha256(), kind.newbyteorder("<")) for kind in kinds]
        self._met: dict[int, int] = {}
        self.n_rows = 0

    def add(self, batch: CodedBatch) -> None:
        self.n_rows += len(batch.labels)
        there, first = np.unique(batch.labels, return_index=True)
        for k in there[np.argsort(first)].tolist():
            self._met.setdefault(k, len(self._met))
        number = np.zeros(int(there.max(initial=-1)) + 1, np.intp)
        number[there] = [self._met[k] for k in there.tolist()]
        numbers = [*batch.codes, number[batch.labels], *([] if batch.weights is None else [batch.weights])]
        for (column, kind), values in zip(self._columns, numbers, strict=True):
            column.update(np.ascontiguousarray(values, kind).data)

    def digest(self, labels: tuple[str, ...]) -> str:
        whole = hashlib.sha256("\0".join(labels[k] for k in self._met).encode())
        for column, _ in self._columns:
            whole.update(column.digest())
        return whole.hexdigest()


def count(
    source: Source, supplied: SuppliedFiles, *, output: str | None = None, run: Run = Run(), chunk: int = CHUNK
) -> CountReport:
    """Count `source` under the supplied cuts for the structure (None: all pairs), and write `output`.

    Without rows the counts are all 0, and a note says so.
    """
    path = default_output_path(source.paths, ".counts") if output is None else output
    for data in source.paths:
        check_data(data)
    check_outputs((path,), (*source.paths, source.schema_file, *supplied.paths))
    stopwatch = Stopwatch(run.watch)
    run = limited(run._replace(watch=stopwatch))
    stopwatch(Stage("count"))
    batches, cuts = _opened(source, supplied, run)
    with batches:
        counted = _count_all(batches, cuts, supplied.structure, run, chunk)
    if not counted.n_rows:
        run.watch(Note("there are no rows: all counts are 0", warning=True))
    stopwatch(Stage("write"))
    write_counts(path, counted)
    return CountReport(path, counted, stopwatch.seconds())


def _opened(source: Source, supplied: SuppliedFiles, run: Run) -> tuple[CodedBatches | CodesFileBatches, Cuts]:
    """Return the rows to come, and the cuts that code them: those supplied, or those of a `.codes` file."""
    if is_codes_table(source.paths):
        encoded = CodesFileBatches(source)
        return encoded, encoded.cuts
    assert supplied.cuts is not None
    with class_named_by(supplied.cuts_path, None if source.class_name else supplied.cuts.class_name):
        return CodedBatches(source, supplied.cuts, run=run), supplied.cuts


def _count_all(
    batches: CodedBatches | CodesFileBatches, cuts: Cuts, structure: NamedStructure | None, run: Run, chunk: int
) -> CountedRows:
    """Return the counts of all rows, their labels sorted."""
    wanted = required_sets(cuts, structure)
    n_rows = max(1, min(MOST_ROWS, chunk // max(1, len(cuts.attributes))))
    total, parts = no_rows(cuts, wanted), _Parts(batches, cuts)
    for batch in _chunks(parts, n_rows):
        labels = batches.labels
        schema = Schema(total.cuts.class_name, labels, total.cuts.attributes)
        data = Dataset(schema, batch.codes, batch.labels.astype(code_dtype(len(labels))), batch.weights, run.threads)
        # BncliError where the tables, with so many labels, do not fit.
        n_labels = len(labels)
        memory = run.memory
        entries = replace(total.layout, n_labels=n_labels).n_entries
        needed = COPIES * 8 * entries
        if memory is not None and needed > memory:
            what = (
                f"the tables would have {entries:,} entries for {n_labels:,} labels: {needed_and_free(needed, memory)}"
            )
            raise BncliError(
                what, hint="count with --structure FILE, or leave columns with many levels out of the cuts"
            )
        total = added([total, count_rows(data, total.cuts, wanted)], labels)
    total = replace(total, missing_tokens=batches.missing_tokens, parts=parts.found(run.watch))
    return relabelled(total, sorted_texts(batches.labels))


def _chunks(batches: Iterable[CodedBatch], n_rows: int) -> Iterator[CodedBatch]:
    """Yield the same rows, at least so many at a time but for the last."""
    waiting: list[CodedBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(len(one.labels) for one in waiting) >= n_rows:
            yield _joined(waiting)
            waiting = []
    if any(len(one.labels) for one in waiting):
        yield _joined(waiting)


def _joined(batches: list[CodedBatch]) -> CodedBatch:
    codes = tuple(np.concatenate(column) for column in zip(*(one.codes for one in batches), strict=True))
    weights = [one.weights for one in batches if one.weights is not None]
    labels = np.concatenate([one.labels for one in batches])
    return CodedBatch(codes, labels, np.concatenate(weights) if weights else None, batches[0].path)


def required_sets(cuts: Cuts, structure: NamedStructure | None) -> Wanted:
    """Return the sets of attributes whose tables the structure's parameters take, ascending.

    None, all pairs, without one.
    """
    if structure is None:
        return None
    if isinstance(structure, NamedRegions):
        what = "regions are chosen by what they say of single rows, which counts do not tell"
        raise UsageError(what, hint="count for a network, or for pairs")
    # whether an attribute has missing values is not known yet: all of them may be in the structure
    attributes = tuple(replace(attribute, missing=True) for attribute in cuts.attributes)
    schema = Schema(cuts.class_name, (), attributes)
    families = structure.resolve(schema).families(schema.cardinalities, whole=True)
    return tuple(sorted({tuple(sorted(family.attributes)) for family in families if len(family.attributes) > 1}))
