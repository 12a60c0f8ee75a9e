"""The data sets of a comparison: each read once before any work, so that what cannot be used is said at once.

What is kept of it is little: how to read it again, the class of every row (folds are drawn by it, and bias and variance
need it) and a digest of all values, by which a run that goes on later knows its data again.

Conventions: a data set is called after its file, without folder and endings; where two would be called the same, as
much of the path is added as tells them apart. What cannot be read twice (the standard input, a pipe) is refused, for
every process reads its data itself.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.columns import CategoricalColumn, CodedColumn, Column, Columns
from bncli.engine.data.dataset import code_dtype
from bncli.engine.evaluation.validate import Protocol, folds_of
from bncli.engine.kernels.arrays import Array, Codes
from bncli.errors import BncliError, UsageError
from bncli.files.attributes import attribute_json
from bncli.files.table import Source, read_columns
from bncli.steps.memory import free_memory
from bncli.watch import Event, Note, Progress, Stage, Watch


@dataclass(frozen=True)
class Entry:
    """A data set: its name, where it is read, and of its rows the label codes (N,) and the weights (N,) or None.

    `source` names the class. cells = rows times attributes, a measure of the work. digest: equal for equal tables.
    """

    name: str
    source: Source
    labels: Codes
    n_labels: int
    weights: Array | None
    cells: int
    digest: str

    @property
    def n_rows(self) -> int:
        return len(self.labels)


def read_entries(sources: Sequence[Source], protocol: Protocol, *, threads: int, watch: Watch) -> tuple[Entry, ...]:
    """Every data set, one after the other; the first that cannot be read, or split into folds, is an error."""
    names = _names([_only_path(source) for source in sources])
    watch(Stage("read"))
    entries = []
    for done, (name, source) in enumerate(zip(names, sources, strict=True)):
        watch(Progress(done, len(sources), name))
        notes = _about(name, watch) if len(sources) > 1 else watch
        columns = read_columns(source, threads=threads, watch=notes, memory=free_memory())
        entries.append(_entry(name, source, protocol, columns))
    watch(Progress(len(sources), len(sources)))
    return tuple(entries)


def _only_path(source: Source) -> str:
    """The path of a source of one; UsageError where it cannot be read again, BncliError where there is nothing."""
    (path,) = source.paths
    if path == "-" or (os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))):
        what = "the standard input" if path == "-" else path
        raise UsageError(f"{what} can be read only once, and a comparison reads its data again", hint="save it first")
    if not os.path.exists(path):
        read_columns(source)  # says it better
    return path


def _names(paths: Sequence[str]) -> list[str]:
    """As short as they can be and still differ."""
    real = [os.path.realpath(path) for path in paths]
    for i, path in enumerate(paths):
        if real[i] in real[:i]:
            raise UsageError("the same data is given twice", where=path)
    depth, names = 1, [_short(path, 1) for path in real]
    while (clashing := {name for name in names if names.count(name) > 1}) and depth < 64:
        depth += 1
        names = [_short(path, depth) if name in clashing else name for path, name in zip(real, names, strict=True)]
    return list(paths) if clashing else names


def _short(path: str, depth: int) -> str:
    """The last `depth` parts of a path, without endings."""
    parts = path.strip(os.sep).split(os.sep)
    stem = parts[-1] if os.path.isdir(path) else parts[-1].split(".")[0] or parts[-1]
    return "/".join([*parts[-depth:-1], stem])


def _about(name: str, watch: Watch) -> Watch:
    """A watch that only hands on notes, with the name of the data set in front."""

    def told(event: Event) -> None:
        if isinstance(event, Note):
            watch(Note(f"{name}: {event.text}", event.warning))

    return told


def _entry(name: str, source: Source, protocol: Protocol, columns: Columns) -> Entry:
    try:
        folds_of(columns, protocol, 0)
    except BncliError as error:
        raise BncliError(error.what, where=source.paths[0], hint=error.hint) from error
    assert columns.label is not None
    n_labels = len(columns.label.levels)
    return Entry(
        name=name,
        source=replace(source, class_name=columns.class_name),
        labels=columns.label.codes.astype(code_dtype(n_labels)),
        n_labels=n_labels,
        weights=columns.weights,
        cells=columns.n_rows * max(len(columns.attributes), 1),
        digest=_digest(columns),
    )


def _digest(columns: Columns) -> str:
    assert columns.label is not None
    digest = hashlib.blake2b(digest_size=16)
    named: list[tuple[str, Column | CodedColumn]] = [*columns.attributes.items(), (columns.class_name, columns.label)]
    for name, column in named:
        values: NDArray[np.generic]
        levels = column.levels if isinstance(column, CategoricalColumn) else None
        if isinstance(column, CodedColumn):
            digest.update(repr(attribute_json(column.attribute)).encode())
            values = column.codes.whole()
        else:
            values = column.codes if isinstance(column, CategoricalColumn) else column.values
        digest.update(repr((name, levels, values.dtype.str, len(values))).encode())
        digest.update(np.ascontiguousarray(values).data)
    if columns.weights is not None:
        digest.update(np.ascontiguousarray(columns.weights).data)
    return digest.hexdigest()
