"""What is in a table, column by column, from one pass over its rows in bounded memory.

Types are found by the rules of learning (`growing`, `assembly`), fed with the distinct values of every row block; each
column is a `Tally` of its values against the class. Two columns are the same where the sums of the hashes of
(row, value) are: of 64 bits, so a mistake has the odds of 2^-64 a pair.

Conventions: of text files every column is read as text, since its type may still change; of columnar files numbers are
read as such. A class of more than 256 labels is no class: then only the values themselves are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bncli.engine.data.columns import CategoricalColumn
from bncli.files.reading.ahead import in_order
from bncli.files.reading.bad_rows import BadRows
from bncli.files.reading.column_reader import BlockRows, ColumnReader, ColumnSummary, Encoded, encode_column
from bncli.files.reading.findings import find_one
from bncli.files.reading.learning import start_columns
from bncli.files.reading.reader import RawBlock, Table, parse
from bncli.files.reading.recognition import meaning_of
from bncli.files.reading.roles import Roles, roles_of
from bncli.files.reading.row_blocks import BadRow
from bncli.files.reading.source import Source, Tokens
from bncli.files.reading.tallies import Budget, mixed
from bncli.files.reading.text_blocks import BLOCK_SIZE
from bncli.watch import Watch, silent

MAX_LABELS = 256
MAX_VALUES = 1 << 14
"""Distinct values of a column up to which all is exact, in a table of up to 128 columns and a class of few labels."""
_CELLS, _TEXT = 1 << 24, 1 << 27
"""Table cells, and bytes of text, that all columns may keep together."""
_LEAST_CELLS, _LEAST_TEXT = 1 << 11, 1 << 12


@dataclass(frozen=True)
class Summary:
    """The columns in file order, the class among them.

    labels: what each counted class is read as; None where there is no class, or one of too many labels.
    """

    n_rows: int
    roles: Roles
    class_name: str | None
    ignored: frozenset[str]
    columns: dict[str, ColumnSummary]
    labels: CategoricalColumn | None


def summarise(source: Source, *, threads: int = 1, watch: Watch = silent, block_size: int = BLOCK_SIZE) -> Summary:
    """The whole table in one pass; it needs no attribute, and no class."""
    with Table(source, keep=False, block_size=block_size) as table:
        roles = roles_of(source, table.names, table.name)
        alone = not roles.attributes and len(table.names) == 1 and source.class_name is None
        class_name = None if alone else roles.class_name
        readers = _start(table, roles, class_name, source)
        reading = _Reading(readers, class_name, roles.weights)
        with BadRows(source.on_bad_row, watch) as bad:
            tasks = (partial(_encode_block, raw, readers) for raw in table.raw_blocks(list(readers), watch))
            for block in in_order(tasks, threads):
                bad.take(block.bad)
                reading.take(block)
        return reading.finish(roles, class_name)


def _start(table: Table, roles: Roles, class_name: str | None, source: Source) -> dict[str, ColumnReader]:
    """Every column, with the type that is said, or that of a columnar file; in a text file types are open."""
    attributes = tuple(name for name in table.names if name not in (class_name, roles.weights))
    columns = start_columns(table, replace(roles, attributes=attributes), source, guess=False)
    budget = _budget(len(table.names))
    find = partial(find_one, roles=roles, table=table, source=source)
    tokens = Tokens.of(source.missing_tokens)
    meaning = partial(meaning_of, tokens=tokens, source=source, delimiter=table.delimiter)
    return {name: ColumnReader(columns[name], tokens, budget, find, meaning) for name in table.names}


def _budget(n_columns: int) -> Budget:
    return Budget(max(_CELLS // n_columns, _LEAST_CELLS), MAX_VALUES, max(_TEXT // n_columns, _LEAST_TEXT))


@dataclass(frozen=True)
class _Block:
    columns: list[Encoded]
    n_rows: int
    bad: tuple[BadRow, ...]
    locate: Callable[[int], str]


def _encode_block(raw: RawBlock, readers: dict[str, ColumnReader]) -> _Block:
    tokens = next(iter(readers.values())).tokens
    block = parse(raw, [reader.want for reader in readers.values()], tokens)
    return _Block([encode_column(values) for values in block.values], block.n_rows, block.bad, block.locate)


class _Reading:
    """The rows so far."""

    def __init__(self, readers: dict[str, ColumnReader], class_name: str | None, weights: str | None) -> None:
        self._readers = readers
        names = list(readers)
        self._class = None if class_name is None else names.index(class_name)
        self._weights = None if weights is None else names.index(weights)
        self._labels: dict[str, int] | None = {}
        self._n_rows = 0

    def take(self, block: _Block) -> None:
        """Counts in a row block."""
        places = mixed(np.arange(self._n_rows, self._n_rows + block.n_rows, dtype=np.uint64)) | np.uint64(1)
        self._n_rows += block.n_rows
        labels = self._codes_of_labels(block)
        weights = None
        if self._weights is not None:
            encoded = block.columns[self._weights]
            weights = encoded.values.to_numpy()[encoded.codes]
        rows = BlockRows(labels, max(len(self._labels or ()), 1), weights, places, block.locate)
        for reader, encoded in zip(self._readers.values(), block.columns, strict=True):
            reader.take(encoded, rows)

    def _codes_of_labels(self, block: _Block) -> NDArray[np.int64]:
        """The class of each row, numbered as met; all 0 without a class."""
        if self._class is None or self._labels is None:
            return np.zeros(block.n_rows, np.int64)
        encoded = block.columns[self._class]
        found = encoded.values.slice(0, MAX_LABELS + 1).to_pylist()
        for label in found:
            self._labels.setdefault(label, len(self._labels))
        if len(self._labels) > MAX_LABELS:
            self._labels = None
            for reader in self._readers.values():
                reader.tally.forget_classes()
            return np.zeros(block.n_rows, np.int64)
        numbers: NDArray[np.int64] = np.array([self._labels[label] for label in found], np.int64)[encoded.codes]
        return numbers

    def finish(self, roles: Roles, class_name: str | None) -> Summary:
        n_labels = max(len(self._labels or ()), 1)
        columns = {
            name: reader.finish(self._n_rows, n_labels, is_class=name == class_name)
            for name, reader in self._readers.items()
        }
        labels = None
        if class_name is not None and self._labels is not None:
            reader = self._readers[class_name]
            texts = pa.array(list(self._labels), pa.string())
            labels = reader.label(texts, as_text=class_name in roles.categorical)
        used = {*roles.attributes, roles.class_name, roles.weights}
        ignored = frozenset(name for name in columns if name not in used)
        return Summary(self._n_rows, roles, class_name, ignored, columns, labels)
