"""Coded rows, and the one verb through which all learners reach them.

Learners ask for sums over rows; they never loop over rows. `data.reduce(kernel, *broadcast)` cuts the rows into at
most 16 row blocks (of very many rows more), lets `kernel(block, *broadcast)` sum over each, and adds the partial
results in order. The blocks follow from N alone, so neither the number of threads nor the place where blocks live
changes a bit of the result.
`data.map` is its sister for state per row. Kernels are module-level functions of arrays.

Coded rows whose row blocks live elsewhere: the sister of Dataset, with the same blocks and the same sums.

The blocks follow from N alone, wherever they are, and partial sums are added in block order here: so one machine and
many give the same bytes. Row state that is kept stays beside its block. What a question takes of single rows (`take`:
folds, samples) is drawn from the codes as this process sees them, and is an ordinary Dataset.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from bncli.engine.data.columns import ChunkedColumn, ColumnsJoinedOnDemand
from bncli.engine.data.schema import Schema
from bncli.engine.kernels.arrays import Array, Codes, Index

ROWS_PER_BLOCK = 1 << 16
"""A row block has at least so many rows, unless it is alone: handing fewer to a thread costs more than it saves."""
MAX_BLOCKS = 16
MORE_BLOCKS = ((1 << 24, 64), (1 << 30, 256))
"""From so many rows on there are up to so many blocks, each as long as a whole small table: so more machines help."""
ROWS_PER_SLICE = 1 << 14
"""Kernels walk a row block in slices whose temporaries stay in the second-level cache."""
T = TypeVar("T")


@dataclass(frozen=True)
class RowBlock:
    """Consecutive rows: codes[i] (rows,) of attribute i, labels (rows,), weights (rows,) or None, and any row state."""

    codes: tuple[Codes, ...]
    labels: Codes
    weights: Array | None
    state: Any = None

    @property
    def n_rows(self) -> int:
        return len(self.labels)

    def __sizeof__(self) -> int:
        """Return bytes of the arrays: by them a cluster weighs whether to move a block."""
        arrays = (*self.codes, self.labels, *(() if self.weights is None else (self.weights,)))
        return sum(array.nbytes for array in arrays)

    def slices(self, size: int = ROWS_PER_SLICE) -> Iterator[slice]:
        """Yield the rows of the block, cut into slices of `size`."""
        for start in range(0, self.n_rows, size):
            yield slice(start, min(start + size, self.n_rows))


@dataclass(frozen=True)
class Dataset:
    """Training rows in codes: codes[i] (N,) of schema attribute i in the narrowest unsigned type, labels (N,).

    weights (N,) are positive; None means that every row weighs 1. Where the schema marginalizes missing values, the
    code of one is the cardinality of its attribute; elsewhere every code is below it. Codes that lie in parts are
    `Joined`: their row blocks are views where a block lies in one part.
    """

    schema: Schema
    codes: tuple[Codes, ...] | ColumnsJoinedOnDemand
    labels: Codes
    weights: Array | None = None
    threads: int = 1

    @property
    def n_rows(self) -> int:
        return len(self.labels)

    @property
    def n_labels(self) -> int:
        return len(self.schema.labels)

    @property
    def total_weight(self) -> float:
        """N of the formulas: the sum of row weights."""
        return float(self.n_rows if self.weights is None else self.weights.sum())

    @cached_property
    def class_counts(self) -> Array:
        """The weight of the rows of each class (K,)."""
        return ChunkedColumn.of(self.labels).count(self.n_labels, self.weights)

    @cached_property
    def n_missing(self) -> tuple[int, ...]:
        """Rows in which each informative attribute is unobserved; counted at the first question, where any can be."""
        if not self.schema.marginalizes:
            return (0,) * len(self.codes)
        counted = self.reduce(_count_missing, self.schema.cardinalities)
        return tuple(n if a.informative else 0 for n, a in zip(counted, self.schema.attributes, strict=True))

    @cached_property
    def radices(self) -> tuple[int, ...]:
        """Codes of each attribute that occur: its cardinality, and one more where values are missing."""
        return tuple(r + (n > 0) for r, n in zip(self.schema.cardinalities, self.n_missing, strict=True))

    def take(self, rows: Index) -> Dataset:
        """Return the given rows in the given order, copied."""
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, codes=tuple(c[rows] for c in self.codes), labels=self.labels[rows], weights=weights)

    def bounds(self) -> list[tuple[int, int]]:
        """Return first and last row + 1 of every block."""
        return block_bounds(self.n_rows)

    def row_blocks(self, states: Sequence[Any] | None = None) -> list[RowBlock]:
        """Return the rows as row blocks (views, no copies), each with its element of `states`."""
        if states is None:
            return self._stateless
        # made by hand, for `replace` takes longer than a pass over few rows
        return [
            RowBlock(block.codes, block.labels, block.weights, state)
            for block, state in zip(self._stateless, states, strict=True)
        ]

    @cached_property
    def _stateless(self) -> list[RowBlock]:
        """Sliced once: a learner that adds attribute by attribute asks for the row blocks at each of them."""
        return [
            RowBlock(self._rows(a, b), self.labels[a:b], None if self.weights is None else self.weights[a:b])
            for a, b in self.bounds()
        ]

    def _rows(self, start: int, stop: int) -> tuple[Codes, ...]:
        if isinstance(self.codes, ColumnsJoinedOnDemand):
            return tuple(column.rows(start, stop) for column in self.codes.columns)
        return tuple(codes[start:stop] for codes in self.codes)

    def map(self, kernel: Callable[..., T], *broadcast: Any, states: Sequence[Any] | None = None) -> list[T]:
        """Return `kernel(block, *broadcast)` of every block, in block order."""
        results = list(self._results(kernel, broadcast, states))
        self._let_go()
        return results

    def keep(self, kernel: Callable[..., Any], *broadcast: Any, states: Sequence[Any] | None = None) -> list[Any]:
        """As `map`, for row state that only kernels look at: where blocks live elsewhere, it stays beside them."""
        return self.map(kernel, *broadcast, states=states)

    def reduce(self, kernel: Callable[..., Any], *broadcast: Any, states: Sequence[Any] | None = None) -> Any:
        """Return the sum over row blocks of `kernel(block, *broadcast)`: an array, a number, a tuple or a list."""
        results = self._results(kernel, broadcast, states)
        # in block order, whichever came first: floating-point sums depend on the order
        total = next(results)
        for result in results:
            total = _add(total, result)
        self._let_go()
        return total

    def _let_go(self) -> None:
        if isinstance(self.codes, ColumnsJoinedOnDemand):
            self.codes.let_go()

    def _results(self, kernel: Callable[..., T], broadcast: Any, states: Sequence[Any] | None) -> Iterator[T]:
        """Results in block order; no more than two per thread exist at a time, so that large partial sums stay few."""
        blocks = self.row_blocks(states)
        threads = min(self.threads, len(blocks))
        if threads <= 1:
            return (kernel(block, *broadcast) for block in blocks)
        return self._by_threads([partial(kernel, block, *broadcast) for block in blocks], threads)

    def _by_threads(self, tasks: Sequence[Callable[[], T]], threads: int) -> Iterator[T]:
        ahead = 2 * threads  # one in hand and one that waits: no thread idles between two
        # this thread works too: one that only waits for the others costs more than what it does
        with ThreadPoolExecutor(threads - 1) as pool:
            waiting = deque(_Share(pool, task) for task in tasks[:ahead])
            for task in [*tasks[ahead:], *[None] * len(waiting)]:
                while not waiting[0].is_done() and any(share.take() for share in waiting):
                    pass
                result = waiting.popleft().result()
                if task is not None:
                    waiting.append(_Share(pool, task))
                yield result


class _Share(Generic[T]):
    """A kernel on a row block, for the thread that is free first: one of the pool, or the one that asks."""

    def __init__(self, pool: ThreadPoolExecutor, work: Callable[[], T]) -> None:
        self._work, self._future = work, pool.submit(work)
        self._here: list[T] = []

    def is_done(self) -> bool:
        return bool(self._here) or self._future.done()

    def take(self) -> bool:
        """Do it here, unless a thread has begun."""
        if self._here or not self._future.cancel():
            return False
        self._here.append(self._work())
        return True

    def result(self) -> T:
        """Return what came of it, waited for."""
        return self._here[0] if self._here else self._future.result()


class BlockKeeper(Protocol):
    """Who has the row blocks, in block order."""

    def results(
        self, kernel: Callable[..., Any], broadcast: Sequence[Any], states: Sequence[Any] | None
    ) -> Sequence[Any]:
        """Return `kernel(block, *broadcast)` of every block, brought here.

        `states` are arrays or what `keep` returned.
        """

    def keep(self, kernel: Callable[..., Any], broadcast: Sequence[Any], states: Sequence[Any] | None) -> list[Any]:
        """Stand for the result of every block, which stays where the block is."""


@dataclass(frozen=True)
class DistributedDataset(Dataset):
    """Training rows whose sums are made by `keeper`; codes, labels and weights are the same rows as seen from here."""

    keeper: BlockKeeper = field(kw_only=True)

    def take(self, rows: Index) -> Dataset:
        """Return the given rows in the given order, copied here."""
        return Dataset(self.schema, self.codes, self.labels, self.weights, self.threads).take(rows)

    def keep(self, kernel: Callable[..., Any], *broadcast: Any, states: Sequence[Any] | None = None) -> list[Any]:
        """Return `map` without the way home."""
        return self.keeper.keep(kernel, broadcast, states)

    def _results(self, kernel: Callable[..., Any], broadcast: Any, states: Sequence[Any] | None) -> Iterator[Any]:
        return iter(self.keeper.results(kernel, broadcast, states))


def block_bounds(n_rows: int) -> list[tuple[int, int]]:
    """Return first and last row + 1 of every block.

    A power of two of them, none under ROWS_PER_BLOCK rows, and at most 16.

    Of very many rows there may be more, by MORE_BLOCKS.
    """
    n_blocks, most = 1, max([MAX_BLOCKS, *(n for least, n in MORE_BLOCKS if n_rows >= least)])
    # by the number of rows alone: threads must not move the edges, nor with them the last digits of sums
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
