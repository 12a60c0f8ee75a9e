"""The data sets of a comparison: each read once before any work, so that what cannot be used is said at once.

What is kept of it is little: how to read it again, the class of every row (folds are drawn by it, and bias and variance
need it) and a digest of all values, by which a run that goes on later knows its data again.

Conventions: a data set is called after its file, without folder and endings; where two would be called the same, as
much of the path is added as tells them apart. What cannot be read twice (the standard input, a pipe) is refused, for
every process reads its data itself.

Data sets in groups by their number of rows: everything over all of them is then told of each group too.

Conventions: bounds b_1 < b_2 < ... make the groups `rows<b_1`, `b_1<=rows<b_2`, ..., `rows>=b_n`; the rows are those of
the whole table. A group without a data set is refused, for a bound outside the tables is most likely a slip.

Who takes part in a comparison: a name and the learning options behind it.

What a comparison finds before anything is concluded from it: an outcome for every fold of every learner.

A trial holds them all in one order, that of the data sets, learners, repeats and folds, whatever finished first. A
learner that failed on a data set has no outcome there: a gap, with its reason.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.columns import CategoricalColumn, CodedColumn, Column, Columns
from bncli.engine.data.dataset import code_dtype
from bncli.engine.evaluation.cross_validation import Protocol, assign_folds
from bncli.engine.kernels.arrays import Array, Codes
from bncli.errors import BncliError, UsageError
from bncli.files.artifacts.cuts import attribute_json, dump_cuts
from bncli.files.exports.structure_json import dump_structure
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from bncli.recipe import Recipe
from bncli.steps.run import free_memory
from bncli.steps.supplied_files import SuppliedFiles
from bncli.watch import Event, Note, Progress, Stage, Watch

if TYPE_CHECKING:
    from bncli.engine.evaluation.metrics import BiasVariance


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


Groups = Mapping[str, tuple[str, ...]]
"""The data sets of each group, by its name."""
_FEW = 4


@dataclass(frozen=True)
class Learner:
    """A recipe with a name; `options` is what was typed for it; what is supplied stands in for methods."""

    name: str
    recipe: Recipe
    options: str = ""
    supplied: SuppliedFiles = SuppliedFiles()

    def identity(self) -> dict[str, Any]:
        """Return all that its results depend on, as JSON values: the content of files, not their names."""
        cuts, structure = self.supplied.cuts, self.supplied.structure
        files = {
            "cuts": None if cuts is None else _file_digest(dump_cuts(cuts)),
            "structure": None if structure is None else _file_digest(dump_structure(structure)),
        }
        return {"name": self.name, "recipe": self.recipe.as_dict(), **files}


COSTS = ("fit_seconds", "iterations", "passes")
"""What learning in a fold costs, less being better: seconds of the processor; iterations of the final optimization and
its passes over the rows. Costs compare by ratios; no test asks whether they differ, for the same work costs the same.
"""
COUNTS = ("iterations", "passes")
"""Those that are whole numbers in a fold, and that parameters in closed form do not have."""


@dataclass(frozen=True)
class Outcome:
    """What one learner did on one fold of one repeat of one data set.

    metrics are by name, None where one is not defined; seconds of the processor are those to `fit` and to `score`, and
    `costs` the iterations and passes, None for parameters in closed form; predicted (rows,) holds the codes of the most
    probable labels of the rows tested, in ascending order of the rows.
    """

    data: str
    learner: str
    repeat: int
    fold: int
    rows: int
    metrics: dict[str, float | None]
    seconds: dict[str, float]
    costs: dict[str, int | None]
    predicted: Codes

    def figure(self, metric: str) -> float | None:
        """Return a metric or a cost by its name."""
        if metric == "fit_seconds":
            return self.seconds["fit"]
        return self.costs[metric] if metric in COUNTS else self.metrics[metric]


@dataclass(frozen=True)
class UntriedLearner:
    """A learner that could not be tried on a data set, and why in one line."""

    data: str
    learner: str
    reason: str


@dataclass(frozen=True)
class ComparisonRun:
    """Everything that was run: learners and data sets in the order typed, rows by data set, outcomes in that order.

    options says, by learner, what was typed for it; bias_variance, by data set and learner, is empty for one repeat;
    gaps lists who failed where.
    """

    learners: tuple[str, ...]
    data: tuple[str, ...]
    sizes: dict[str, int]
    protocol: Protocol
    outcomes: tuple[Outcome, ...]
    bias_variance: dict[tuple[str, str], BiasVariance]
    options: dict[str, str] = field(default_factory=dict)
    gaps: tuple[UntriedLearner, ...] = ()


def read_entries(sources: Sequence[Source], protocol: Protocol, *, threads: int, watch: Watch) -> tuple[Entry, ...]:
    """Return every data set, one after the other; the first that cannot be read, or split into folds, is an error."""
    # As short as they can be and still differ.
    paths = [_only_path(source) for source in sources]
    real = [os.path.realpath(path) for path in paths]
    for i, path in enumerate(paths):
        if real[i] in real[:i]:
            raise UsageError("the same data is given twice", where=path)
    depth, names = 1, [_short(path, 1) for path in real]
    while (clashing := {name for name in names if names.count(name) > 1}) and depth < 64:
        depth += 1
        names = [_short(path, depth) if name in clashing else name for path, name in zip(real, names, strict=True)]
    names = list(paths) if clashing else names
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
    """Return the path of a source of one.

    UsageError where it cannot be read again, BncliError where there is nothing.
    """
    (path,) = source.paths
    if path == "-" or (os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))):
        what = "the standard input" if path == "-" else path
        raise UsageError(f"{what} can be read only once, and a comparison reads its data again", hint="save it first")
    if not os.path.exists(path):
        read_columns(source)  # says it better
    return path


def _short(path: str, depth: int) -> str:
    """Return the last `depth` parts of a path, without endings."""
    parts = path.strip(os.sep).split(os.sep)
    stem = parts[-1] if os.path.isdir(path) else parts[-1].split(".")[0] or parts[-1]
    return "/".join([*parts[-depth:-1], stem])


def _about(name: str, watch: Watch) -> Watch:
    """Return a watch that only hands on notes, with the name of the data set in front."""

    def told(event: Event) -> None:
        if isinstance(event, Note):
            watch(Note(f"{name}: {event.text}", event.warning))

    return told


def _entry(name: str, source: Source, protocol: Protocol, columns: Columns) -> Entry:
    try:
        assign_folds(columns, protocol, 0)
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
        digest=_table_digest(columns),
    )


def _table_digest(columns: Columns) -> str:
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


def groups_by_rows(bounds: Sequence[int], sizes: Mapping[str, int]) -> Groups:
    """Return the groups between ascending bounds, from the rows of every data set; none without a bound."""
    if not bounds:
        return {}
    edges = [0, *bounds]
    groups = {}
    for least, below in zip(edges, [*bounds, None], strict=True):
        tables = tuple(data for data, n in sizes.items() if n >= least and (below is None or n < below))
        if not tables:
            raise UsageError(
                f"no table has {_option_texts(least, below)}: {_span(sizes)}", hint="move the bound of --groups"
            )
        groups[_name(least, below)] = tables
    return groups


def _option_texts(least: int, below: int | None) -> str:
    if below is None:
        return f"{least:,} rows or more"
    return f"{least:,} rows or more and fewer than {below:,}" if least else f"fewer than {below:,} rows"


def _span(sizes: Mapping[str, int]) -> str:
    """Return which tables have how many rows: all of a few, else the smallest and the largest."""
    ascending = sorted(sizes, key=lambda data: sizes[data])
    if len(ascending) <= _FEW:
        return ", ".join(f"{data} has {sizes[data]:,}" for data in ascending)
    first, last = ascending[0], ascending[-1]
    return f"they have from {sizes[first]:,} ({first}) to {sizes[last]:,} ({last})"


def _name(least: int, below: int | None) -> str:
    if below is None:
        return f"rows>={least}"
    return f"{least}<=rows<{below}" if least else f"rows<{below}"


def check_names(learners: Sequence[Learner]) -> None:
    """Raise UsageError where two learners have one name, or there is none at all."""
    if not learners:
        raise UsageError("there is no learner to compare")
    seen: dict[str, Learner] = {}
    for learner in learners:
        if learner.name in seen:
            same = learner.recipe == seen[learner.name].recipe
            hint = "it is given twice" if same else "put NAME= before its options"
            raise UsageError(f"two learners are called {learner.name!r}", hint=hint)
        seen[learner.name] = learner


def _file_digest(text: str) -> str:
    """Of a file as it is written here: layout does not matter."""
    return hashlib.sha256(text.encode()).hexdigest()
