"""Encoded rows, the sums over them that all learners use, and the encoding of raw columns under a schema.

Learners request sums over rows; they never loop over rows. `data.reduce(kernel, *broadcast)` divides the rows into at
most 16 row blocks (more for very many rows), lets `kernel(block, *broadcast)` sum over each, and adds the partial
results in order. `data.map` returns the results of all blocks instead of their sum, for example to keep state per row.
The blocks depend only on the number of rows N, and partial sums are added in block order, so neither the number of
threads nor the machines that hold the blocks change a bit of the result. Kernels are module-level functions of arrays.

A schema maps every value of a raw column to a small integer, its code:

    numeric      the interval of the value, 0 .. m
    categorical  the position in the schema of the level of that name, or of the level into which it was pooled
    missing      the missing level (the last code), if the attribute has one
    unknown      one past the last code: a value never seen in training, or a missing value without a missing level

The columns may list their levels in another order than the schema, or more of them (in a fold of a table); their codes
are translated by the names of the levels. Cost: one pass per column.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.columns import (
    MISSING,
    CategoricalColumn,
    ChunkedColumn,
    CodedColumn,
    Column,
    Columns,
    ColumnsJoinedOnDemand,
    NumericColumn,
)
from bncli.engine.data.schema import Attribute, CategoricalAttribute, NumericAttribute, Schema
from bncli.engine.data.splits import RowSplit, SplitBy
from bncli.engine.kernels.arrays import Array, Codes, Index
from bncli.engine.kernels.binning import interval_codes
from bncli.errors import ModelError

ROWS_PER_BLOCK = 1 << 16
"""A row block has at least this many rows, unless it is the only one; smaller ones are not worth a thread."""
MAX_BLOCKS = 16
MORE_BLOCKS = ((1 << 24, 64), (1 << 30, 256))
"""Pairs (rows, blocks): with at least this many rows, there are up to this many blocks, so that more machines help."""
ROWS_PER_SLICE = 1 << 14
"""Kernels process a row block in slices of this many rows, whose temporaries stay in the second-level cache."""
T = TypeVar("T")


@dataclass(frozen=True)
class RowBlock:
    """Consecutive rows: codes[i] (rows,) of attribute i, labels (rows,), weights (rows,) or None, and optional state.

    `state` holds data that kernels keep for these rows, for example an array of scores.
    """

    codes: tuple[Codes, ...]
    labels: Codes
    weights: Array | None
    state: Any = None

    @property
    def n_rows(self) -> int:
        return len(self.labels)

    def __sizeof__(self) -> int:
        """Return the size of codes, labels and weights in bytes; a cluster uses it to decide where to move a block."""
        arrays = (*self.codes, self.labels, *(() if self.weights is None else (self.weights,)))
        return sum(array.nbytes for array in arrays)

    def slices(self, size: int = ROWS_PER_SLICE) -> Iterator[slice]:
        """Yield the rows of the block in slices of `size` rows; the last one may have fewer."""
        for start in range(0, self.n_rows, size):
            yield slice(start, min(start + size, self.n_rows))


@dataclass(frozen=True)
class Dataset:
    """Encoded training rows: codes[i] (N,) of schema attribute i and labels (N,), in narrow unsigned types.

    - weights: positive row weights (N,), or None if every row weighs 1
    - codes: all 0 for an uninformative attribute; if the schema marginalizes missing values, the code of a missing
      value is the cardinality of its attribute; otherwise every code is below the cardinality
    - split_by: the groups and times that splits of the rows respect, or None
    - recut: for some splits, the same rows encoded with cuts and levels learned only from the split's training rows
    """

    schema: Schema
    codes: tuple[Codes, ...] | ColumnsJoinedOnDemand
    labels: Codes
    weights: Array | None = None
    threads: int = 1
    split_by: SplitBy | None = None
    recut: tuple[tuple[Dataset, RowSplit], ...] = ()

    @property
    def n_rows(self) -> int:
        return len(self.labels)

    @property
    def n_labels(self) -> int:
        return len(self.schema.labels)

    @property
    def total_weight(self) -> float:
        """The sum of the row weights."""
        return float(self.n_rows if self.weights is None else self.weights.sum())

    @cached_property
    def class_counts(self) -> Array:
        """The weight of the rows of each class, (K,)."""
        return ChunkedColumn((self.labels,)).count(self.n_labels, self.weights)

    @cached_property
    def n_missing(self) -> tuple[int, ...]:
        """The number of rows in which each attribute is unobserved; 0 for an uninformative attribute.

        All elements are 0 if missing values are a level.
        """
        if not self.schema.marginalizes:
            return (0,) * len(self.codes)
        counted = self.reduce(_count_missing, self.schema.cardinalities)
        return tuple(n if a.informative else 0 for n, a in zip(counted, self.schema.attributes, strict=True))

    @cached_property
    def radices(self) -> tuple[int, ...]:
        """The number of codes of each attribute: its cardinality, plus 1 if any of its values are unobserved."""
        return tuple(r + (n > 0) for r, n in zip(self.schema.cardinalities, self.n_missing, strict=True))

    def take(self, rows: Index) -> Dataset:
        """Return a copy of the given rows, in the given order, without `recut`."""
        return replace(
            self,
            codes=tuple(c[rows] for c in self.codes),
            labels=self.labels[rows],
            weights=None if self.weights is None else self.weights[rows],
            split_by=None if self.split_by is None else self.split_by.take(rows),
            recut=(),
        )

    def bounds(self) -> list[tuple[int, int]]:
        """Return a pair (start, stop) for every block, whose rows are start .. stop - 1."""
        return block_bounds(self.n_rows)

    def row_blocks(self, states: Sequence[Any] | None = None) -> list[RowBlock]:
        """Return the rows as row blocks, each with its element of `states`; codes are copied only to join parts."""
        if states is None:
            return self._stateless_blocks
        # built explicitly, for `replace` takes longer than a pass over few rows
        return [
            RowBlock(block.codes, block.labels, block.weights, state)
            for block, state in zip(self._stateless_blocks, states, strict=True)
        ]

    @cached_property
    def _stateless_blocks(self) -> list[RowBlock]:
        # cached, since a learner that adds attribute by attribute uses the row blocks for each of them
        blocks = []
        for a, b in self.bounds():
            if isinstance(self.codes, ColumnsJoinedOnDemand):
                codes = tuple(column.rows(a, b) for column in self.codes.columns)
            else:
                codes = tuple(column[a:b] for column in self.codes)
            blocks.append(RowBlock(codes, self.labels[a:b], None if self.weights is None else self.weights[a:b]))
        return blocks

    def map(self, kernel: Callable[..., T], *broadcast: Any, states: Sequence[Any] | None = None) -> list[T]:
        """Return `kernel(block, *broadcast)` for every block, in block order."""
        results = list(self._results(kernel, broadcast, states))
        if isinstance(self.codes, ColumnsJoinedOnDemand):
            self.codes.release()
        return results

    def keep(self, kernel: Callable[..., Any], *broadcast: Any, states: Sequence[Any] | None = None) -> list[Any]:
        """Return the results of `map` for use as `states`; on a cluster, they are references to values kept there."""
        return self.map(kernel, *broadcast, states=states)

    def reduce(self, kernel: Callable[..., Any], *broadcast: Any, states: Sequence[Any] | None = None) -> Any:
        """Return the sum of `kernel(block, *broadcast)` over the blocks.

        The kernel returns an array, a number, or a tuple or list of these, which are added element by element.
        """
        results = self._results(kernel, broadcast, states)
        # in block order, whichever was finished first: floating-point sums depend on the order
        total = next(results)
        for result in results:
            total = _add(total, result)
        if isinstance(self.codes, ColumnsJoinedOnDemand):
            self.codes.release()
        return total

    def _results(self, kernel: Callable[..., T], broadcast: Any, states: Sequence[Any] | None) -> Iterator[T]:
        """Yield `kernel(block, *broadcast)` for every block, in block order.

        At most two calls per thread are submitted ahead of the result that is yielded, since results may be large.
        """
        blocks = self.row_blocks(states)
        threads = min(self.threads, len(blocks))
        if threads <= 1:
            yield from (kernel(block, *broadcast) for block in blocks)
            return
        tasks = [partial(kernel, block, *broadcast) for block in blocks]
        ahead = 2 * threads  # one running and one waiting, so that no thread is idle between two
        # the calling thread works too: if it only waited for the others, that would cost more than it saves
        with ThreadPoolExecutor(threads - 1) as pool:
            waiting = deque(_Task(pool, task) for task in tasks[:ahead])
            for task in [*tasks[ahead:], *[None] * len(waiting)]:
                # while the next result is not ready, take a task over that no thread of the pool has begun
                while not waiting[0].is_done() and any(other.run_here() for other in waiting):
                    pass
                result = waiting.popleft().result()
                if task is not None:
                    waiting.append(_Task(pool, task))
                yield result


class _Task(Generic[T]):
    """A call of a kernel on a row block, run by a thread of the pool or, with `run_here`, by the calling thread."""

    def __init__(self, pool: ThreadPoolExecutor, work: Callable[[], T]) -> None:
        self._work, self._future = work, pool.submit(work)
        self._results_here: list[T] = []

    def is_done(self) -> bool:
        return bool(self._results_here) or self._future.done()

    def run_here(self) -> bool:
        """Run the task in the calling thread unless it has already been started; return whether this call ran it."""
        if self._results_here or not self._future.cancel():
            return False
        self._results_here.append(self._work())
        return True

    def result(self) -> T:
        """Return the result, waiting for it if necessary."""
        return self._results_here[0] if self._results_here else self._future.result()


class BlockKeeper(Protocol):
    """The holder of the row blocks of a `DistributedDataset`, in block order."""

    def results(
        self, kernel: Callable[..., Any], broadcast: Sequence[Any], states: Sequence[Any] | None
    ) -> Sequence[Any]:
        """Return `kernel(block, *broadcast)` for every block, transferred to this process.

        `states`, unless it is None, has one element per block: a value, or a reference that `keep` returned.
        """

    def keep(self, kernel: Callable[..., Any], broadcast: Sequence[Any], states: Sequence[Any] | None) -> list[Any]:
        """Call the kernel on every block; return references to the results, which stay where the blocks are."""


@dataclass(frozen=True)
class DistributedDataset(Dataset):
    """Training rows whose blocks are on other machines.

    `keeper` calls kernels on the blocks there; sums are bit-identical to the sums of a local Dataset. Codes, labels and
    weights are also available in this process. `take` (for folds and samples) copies these and returns a Dataset.
    """

    keeper: BlockKeeper = field(kw_only=True)

    def take(self, rows: Index) -> Dataset:
        return Dataset(self.schema, self.codes, self.labels, self.weights, self.threads, self.split_by).take(rows)

    def keep(self, kernel: Callable[..., Any], *broadcast: Any, states: Sequence[Any] | None = None) -> list[Any]:
        return self.keeper.keep(kernel, broadcast, states)

    def _results(self, kernel: Callable[..., Any], broadcast: Any, states: Sequence[Any] | None) -> Iterator[Any]:
        return iter(self.keeper.results(kernel, broadcast, states))


def block_bounds(n_rows: int) -> list[tuple[int, int]]:
    """Return a pair (start, stop) for every block of `n_rows` rows; its rows are start .. stop - 1.

    The number of blocks is a power of two, at most 16 (more for very many rows, see MORE_BLOCKS); no block has fewer
    than ROWS_PER_BLOCK rows unless it is the only one.
    """
    n_blocks, most = 1, max([MAX_BLOCKS, *(n for least, n in MORE_BLOCKS if n_rows >= least)])
    # depends on the number of rows alone: other edges would change the last digits of sums
    while n_blocks < most and n_rows >= 2 * n_blocks * ROWS_PER_BLOCK:
        n_blocks *= 2
    edges = [n_rows * s // n_blocks for s in range(n_blocks + 1)]
    return list(itertools.pairwise(edges))


def code_dtype(n_codes: int) -> np.dtype[np.unsignedinteger]:
    """Return the narrowest unsigned type for codes 0..n_codes - 1."""
    return np.dtype(np.min_scalar_type(max(n_codes - 1, 0)))


def _count_missing(block: RowBlock, cardinalities: tuple[int, ...]) -> list[int]:
    return [int(np.count_nonzero(codes == n)) for codes, n in zip(block.codes, cardinalities, strict=True)]


def _add(a: Any, b: Any) -> Any:
    if isinstance(a, (tuple, list)):
        return type(a)(_add(x, y) for x, y in zip(a, b, strict=True))
    return a + b


@dataclass(frozen=True)
class EncodedAttributes:
    """The codes (N,) of several attributes, and for each the numbers of rows with unseen and with missing values."""

    codes: tuple[Codes, ...]
    unseen: tuple[int, ...]
    missing: tuple[int, ...]


@dataclass(frozen=True)
class EncodedColumn:
    """The codes (N,) of one attribute, and the numbers of rows with unseen and with missing values."""

    codes: Codes
    unseen: int
    missing: int


def encode_attributes(
    columns: Columns, schema: Schema, used: Iterable[int], *, allow_missing: bool = False
) -> EncodedAttributes:
    """Encode the attributes with the indices `used`, for scoring; no class column is needed.

    If the table lacks a column, raise ModelError or, with `allow_missing`, give it the code of unknown values in every
    row and count it neither as unseen nor as missing. Raises ModelError for the same reasons as `encode_column`, too.
    """
    encoded = []
    for i in used:
        attribute = schema.attributes[i]
        column = columns.attributes.get(attribute.name)
        if column is not None:
            encoded.append(encode_column(column, attribute))
        elif allow_missing:
            unknown = np.full(1, attribute.cardinality, code_dtype(attribute.cardinality + 1))
            encoded.append(EncodedColumn(np.broadcast_to(unknown, columns.n_rows), 0, 0))
        else:
            raise ModelError(f"the table has no column {attribute.name!r}, which the model needs")
    return EncodedAttributes(
        tuple(e.codes for e in encoded), tuple(e.unseen for e in encoded), tuple(e.missing for e in encoded)
    )


def encode_column(column: Column | CodedColumn, attribute: Attribute) -> EncodedColumn:
    """Encode a column with the cuts or levels of an attribute.

    Raises ModelError if the column is numeric and the attribute categorical, or vice versa, or if the column is already
    coded with other cuts.
    """
    unknown = attribute.cardinality
    if isinstance(column, CodedColumn):
        own = column.attribute
        if isinstance(own, CategoricalAttribute) and isinstance(attribute, CategoricalAttribute):
            # a level that the attribute lacks is unseen
            table = _translation(own.levels, attribute.code_of, unknown)
            table[-1] = attribute.n_values
        elif (
            isinstance(own, NumericAttribute) and isinstance(attribute, NumericAttribute) and own.cuts == attribute.cuts
        ):
            table = np.arange(own.n_values + 1)
        else:
            raise ModelError(f"the codes of column {attribute.name!r} do not match the cuts of the model")
        codes = table.astype(code_dtype(unknown + 1)).take(column.codes.joined())
        n_missing = int(column.codes.count(own.n_values + 1)[own.n_values])
        n_unknown = int(np.count_nonzero(codes == unknown))
        return EncodedColumn(codes, n_unknown - (0 if attribute.missing else n_missing), n_missing)
    if isinstance(column, NumericColumn) and isinstance(attribute, NumericAttribute):
        values = column.values
        codes = interval_codes(values, attribute.cuts, code_dtype(unknown + 1))
        if values.dtype.kind != "f":
            return EncodedColumn(codes, 0, 0)
        # the code of NaN is arbitrary until here
        missing = np.isnan(values)
        n_missing = int(np.count_nonzero(missing))
        if n_missing:
            codes[missing] = attribute.n_values
        return EncodedColumn(codes, 0, n_missing)
    if isinstance(column, CategoricalColumn) and isinstance(attribute, CategoricalAttribute):
        # the last two entries of the table, reached by the codes -2 and -1, are for unseen and for missing values
        table = np.append(_translation(column.levels, attribute.code_of, unknown), attribute.n_values)
        codes = table.astype(code_dtype(unknown + 1)).take(column.codes)  # up to six times faster than an index
        n_missing = int(np.count_nonzero(column.codes == MISSING))
        n_unknown = int(np.count_nonzero(codes == unknown))
        # without a missing level, missing values have the code of unknown ones too
        return EncodedColumn(codes, n_unknown - (0 if attribute.missing else n_missing), n_missing)
    kind = "numeric" if isinstance(attribute, NumericAttribute) else "categorical"
    raise ModelError(f"column {attribute.name!r} is not {kind}, as the model requires")


def encode_labels(columns: Columns, schema: Schema) -> Codes:
    """Return the class of every row, (N,), as a position in the schema's labels.

    Raises ModelError if there is no class column, or if a row has no class or a label that the schema lacks.
    """
    if columns.label is None:
        raise ModelError(f"the table has no class column {schema.class_name!r}")
    n = len(schema.labels)
    known = {label: code for code, label in enumerate(schema.labels)}
    codes = np.append(_translation(columns.label.levels, known, unknown=n), n).take(columns.label.codes)
    unknown_rows = np.flatnonzero(codes == n)
    if len(unknown_rows):
        own = int(columns.label.codes[unknown_rows[0]])
        if own < 0:
            raise ModelError(f"the class {schema.class_name!r} is missing in some rows")
        listed = ", ".join(schema.labels[:10]) + (", ..." if len(schema.labels) > 10 else "")
        what = f"class {schema.class_name!r} has a label that is not in the model: {columns.label.levels[own]!r}"
        raise ModelError(what, hint=f"its labels are {listed}")
    # every label is known, so the type need not hold n itself
    narrow: Codes = codes.astype(code_dtype(n))
    return narrow


def _translation(own: tuple[str, ...], code_of: Mapping[str, int], unknown: int) -> NDArray[np.int64]:
    """Return the code of each level of `own`, or `unknown` if it has none, followed by one more entry `unknown`."""
    return np.array([*(code_of.get(level, unknown) for level in own), unknown], np.int64)
