"""Read rows encoded by given cuts: in batches to count them, or in the second pass over a large table.

`CodedBatches` and `CodesFileBatches` yield the rows of a table, or of a `.codes` file, in batches of bounded size.
`CodedBatches` numbers the labels in the order in which they occur, since the labels of later batches are not known.

A table that does not fit in memory is read in two passes if it consists of regular files. The first pass
(`training_rows`) reads all rows, finds types, levels and missing values, and keeps a sample of the rows. If no cuts are
supplied, they are learned from this sample. The second pass (`SampledTable`) reads the table again and keeps one code
per value. It is an error if a file has changed in between.

Rows of weight 0 are dropped.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from bncli.engine.data.columns import (
    UNSEEN,
    CategoricalColumn,
    ChunkedColumn,
    CodedColumn,
    Column,
    Columns,
    NumericColumn,
    Origin,
)
from bncli.engine.data.dataset import block_bounds, code_dtype, encode_column
from bncli.engine.data.schema import Attribute, Cuts, NumberForm, NumericAttribute
from bncli.engine.kernels.arrays import Array, Codes, Index
from bncli.errors import BncliError
from bncli.files.artifacts.codes import CodedRows, read_codes
from bncli.files.reading.byte_streams import find_inputs
from bncli.files.reading.column_roles import (
    DROP_UNLABELLED,
    ColumnRoles,
    assign_roles,
    read_coded,
    report_left_out,
)
from bncli.files.reading.numbers import to_numbers
from bncli.files.reading.rows_by_schema import ColumnEncoder, parse_encoded
from bncli.files.reading.source import ColumnRequest, MissingTokens, RowBlock, Source, ValueKind
from bncli.files.reading.table import BadRows, RawBlock, Table, run_in_order
from bncli.files.reading.training_rows import read_rows
from bncli.files.reading.values import strip_texts
from bncli.watch import Note, Run

ROWS_PER_BATCH = 1 << 16
"""The number of rows in each batch of a `.codes` file except the last, which may be smaller."""
_WHOLE_WEIGHTS = "multiply all weights by the same power of ten"


class CodedBatch(NamedTuple):
    """Rows of one file.

    - codes: the codes of each attribute, (rows,); the code of a missing value is the number of values
    - labels: the index of each row's label in the labels of the batches, (rows,)
    - weights: (rows,) or None
    - path: the path of the file
    """

    codes: tuple[Codes, ...]
    labels: Index
    weights: Array | None
    path: str


class CodedBatches:
    """An open table whose rows are encoded by cuts, iterated once; `labels` has the labels that have occurred so far.

    Raises BncliError for a value that is not among the levels, and for a weight that is not an integer. At the end,
    raises BncliError for rows without a class (unless the source drops them), and for a label such as NA, which means
    missing among numbers, if all other labels are numbers.
    """

    def __init__(self, source: Source, cuts: Cuts, *, run: Run = Run()) -> None:
        self.missing_tokens = source.missing_tokens
        self._source, self._run = source, run
        self._tokens = MissingTokens.of(source.missing_tokens)
        self._label_numbers: dict[str, int] = {}
        self._n_unlabelled = 0
        self._table = Table(source, keep=False, memory=run.memory)
        try:
            names = self._table.names
            self._roles = assign_roles(source, names, self._table.name, cuts, self._table.nested)
            report_left_out(self._roles, run.watch)
            self._attributes: list[Attribute] = []
            for attribute in cuts.attributes:
                # The option --decimal counts unless the cuts state how the numbers are written.
                if source.decimal is not None and isinstance(attribute, NumericAttribute) and attribute.form is None:
                    attribute = replace(attribute, form=NumberForm(source.decimal))
                self._attributes.append(replace(attribute, missing=True))
            self._encoders = ColumnEncoder.all_of(self._attributes, set(names), self._tokens)
        except BaseException:
            self._table.close()
            raise
        self.weighted = self._roles.weights is not None

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self._label_numbers)

    def __enter__(self) -> CodedBatches:
        return self

    def __exit__(self, *_: object) -> None:
        self._table.close()

    def __iter__(self) -> Iterator[CodedBatch]:
        requests = [encoder.request for encoder in self._encoders]
        requests.append(ColumnRequest(self._roles.class_name, ValueKind.TEXT))
        if self._roles.weights is not None:
            requests.append(ColumnEncoder.of_weights(self._roles.weights).request)
        with BadRows(self._source.on_bad_row, self._run.watch) as bad_rows:
            raw_blocks = self._table.raw_blocks([request.name for request in requests], self._run.watch)
            tasks = (partial(self._encode, raw, requests) for raw in raw_blocks)
            for path, block, columns, codes in run_in_order(tasks, self._run.threads):
                bad_rows.take(block.bad)
                yield self._usable_rows(path, block, columns, codes)
        # Rows without a class are reported together, when all are read.
        where, n = self._table.name, self._n_unlabelled
        if n and not self._source.drop_unlabelled:
            raise BncliError(f"the class is missing in {n} row{'s' * (n != 1)}", where=where, hint=DROP_UNLABELLED)
        # A text that means missing only among numbers, such as NA, is a label unless all others are numbers.
        doubtful = [label for label in self._label_numbers if label in self._tokens.number]
        others = [label for label in self._label_numbers if label not in doubtful]
        if doubtful and others and to_numbers(pa.array(others, pa.string()), ())[1] is None:
            name = self._roles.class_name
            what = f"the class '{name}' is numeric, but some rows have '{doubtful[0]}', which means missing"
            raise BncliError(
                what, where=where, hint=f"add --missing +{doubtful[0]} --drop-unlabelled to leave them out"
            )

    def _encode(
        self, raw: RawBlock, requests: Sequence[ColumnRequest]
    ) -> tuple[str, RowBlock, dict[str, Column], tuple[Codes, ...]]:
        """Parse and encode a raw block; return its path, its rows, and their attributes as columns and as codes."""
        block, parts = parse_encoded(raw, self._encoders, requests, self._tokens)
        columns = {name: column for part in parts for name, column in part.items()}
        codes = tuple(encode_column(columns[a.name], a).codes for a in self._attributes)
        return raw.path, block, columns, codes

    def _usable_rows(
        self, path: str, block: RowBlock, columns: dict[str, Column], codes: tuple[Codes, ...]
    ) -> CodedBatch:
        # block.values: the columns of the encoders, then the class, then the weights
        n_encoders = len(self._encoders)
        encoded = block.values[n_encoders].dictionary_encode()
        texts, is_missing = strip_texts(encoded.dictionary, self._tokens.text)
        text_of_row = encoded.indices.to_numpy()
        weights = np.asarray(block.values[n_encoders + 1], np.float64) if self.weighted else None
        usable = np.ones(block.n_rows, np.bool_) if weights is None else weights > 0
        if self._source.drop_incomplete:
            for own_codes, attribute in zip(codes, self._attributes, strict=True):
                # the code after those of the values is that of a missing one
                usable &= own_codes < attribute.n_values
        has_class = ~is_missing[text_of_row]
        self._n_unlabelled += int(np.count_nonzero(usable & ~has_class))
        rows = np.flatnonzero(usable & has_class)
        for name, column in columns.items():
            if not isinstance(column, CategoricalColumn):
                continue
            unseen = rows[column.codes[rows] == UNSEEN]
            if len(unseen):
                row = int(unseen[0])
                i = next(i for i, encoder in enumerate(self._encoders) if name in encoder.names)
                value = block.values[i][row].as_py().strip()
                what = f"column '{name}' has the value '{value}', which is not among its levels in the cuts"
                raise BncliError(what, where=block.locate(row), hint="learn the cuts from data that contain this value")
        if weights is not None:
            broken = rows[weights[rows] != np.floor(weights[rows])]
            if len(broken):
                row = int(broken[0])
                what = (
                    f"the weight {float(weights[row])!r} is not a whole number; only whole numbers are counted exactly"
                )
                raise BncliError(what, where=block.locate(row), hint=_WHOLE_WEIGHTS)
        # Labels are numbered in the order of the rows.
        in_use, first = np.unique(text_of_row[rows], return_index=True)
        numbers = np.zeros(len(texts), np.intp)
        for k in in_use[np.argsort(first)].tolist():
            numbers[k] = self._label_numbers.setdefault(texts[k].as_py(), len(self._label_numbers))
        return CodedBatch(
            tuple(own_codes[rows] for own_codes in codes),
            numbers[text_of_row[rows]],
            None if weights is None else weights[rows],
            path,
        )


class CodesFileBatches:
    """The rows of a `.codes` file in batches, with the interface of `CodedBatches`.

    All labels are known from the start. Raises BncliError for weights that are not integers.
    """

    def __init__(self, source: Source) -> None:
        self._path, self._rows = source.paths[0], read_coded(source)
        header = read_codes(self._path).header
        self.cuts, self.labels = header.cuts, header.labels
        self.weighted, self.missing_tokens = header.weights is not None, header.missing_tokens

    def __enter__(self) -> CodesFileBatches:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: the file is mapped into memory and is not open."""

    def __iter__(self) -> Iterator[CodedBatch]:
        rows, columns = self._rows, [c for c in self._rows.attributes.values() if isinstance(c, CodedColumn)]
        assert rows.label is not None
        for start in range(0, rows.n_rows, ROWS_PER_BATCH):
            stop = min(start + ROWS_PER_BATCH, rows.n_rows)
            weights = None if rows.weights is None else rows.weights[start:stop]
            if weights is not None and (weights != np.floor(weights)).any():
                raise BncliError("some weights are not whole numbers", where=self._path, hint=_WHOLE_WEIGHTS)
            codes = tuple(column.codes.rows(start, stop) for column in columns)
            yield CodedBatch(codes, rows.label.codes[start:stop].astype(np.intp), weights, self._path)


def read_table(source: Source, *, cuts: Cuts | None, seed: int, run: Run) -> Columns | SampledTable:
    """Read all rows of a table if it fits the budget or can be read only once; otherwise return a SampledTable.

    cuts: the cuts and levels of the attributes, or None if they are to be learned. seed: the seed of the sample.
    """
    inputs = find_inputs(source.paths, keep=False)
    if not all(file.is_regular for file in inputs):
        return read_rows(source, cuts=cuts, run=run)[0]
    files = tuple((file.path, os.stat(file.path).st_size, os.stat(file.path).st_mtime_ns) for file in inputs)
    columns, n_rows = read_rows(source, cuts=cuts, run=run, seed=seed)
    if n_rows == columns.n_rows or columns.origin is not None:
        return columns
    if cuts is None:
        what = f"{n_rows:,} rows are too many to keep all exact values in memory"
        run.watch(Note(f"{what}: cuts and levels are learned from {columns.n_rows:,} of them, drawn at random"))
    return SampledTable(source, columns, n_rows, files, run)


@dataclass(frozen=True)
class SampledTable:
    """A table that exceeds the budget, after its first pass.

    - rows: the sample
    - n_rows: the number of well-formed rows of the whole table, including rows that are dropped
    - files: the path, the size in bytes, and the modification time in nanoseconds of each file
    """

    source: Source
    rows: Columns
    n_rows: int
    files: tuple[tuple[str, int, int], ...]
    run: Run

    @property
    def labels(self) -> tuple[str, ...]:
        assert self.rows.label is not None
        return self.rows.label.levels

    def count(self, cuts: Cuts) -> int:
        """Return the number of rows that have a class, a positive weight and, if the source requires it, all values.

        The table is read again if it has weights or if the source drops unlabelled or incomplete rows.
        """
        drops_incomplete = self.source.drop_incomplete
        if self.rows.weights is None and not self.source.drop_unlabelled and not drops_incomplete:
            return self.n_rows
        needed = cuts if drops_incomplete else Cuts(self.rows.class_name, ())
        return sum(len(rows.labels) for _, _, rows in _encoded_blocks(self.source, needed, self.labels, self.run))

    def columns(self, cuts: Cuts, origin: Origin) -> Columns:
        """Read the table again, and return all usable rows as codes in memory.

        Raises BncliError in the same cases as `blocks`.
        """
        n, start = self.n_rows, 0
        # one code more than values, for a missing value
        codes = [np.empty(n, code_dtype(attribute.n_values + 1)) for attribute in cuts.attributes]
        labels = np.empty(n, code_dtype(len(self.labels)))
        weights = None if self.rows.weights is None else np.empty(n)
        for rows in self.blocks(cuts):
            stop = start + len(rows.labels)
            for column, block in zip(codes, rows.codes, strict=True):
                column[start:stop] = block
            labels[start:stop] = rows.labels
            if weights is not None:
                weights[start:stop] = rows.weights
            start = stop
        attributes = {
            a.name: CodedColumn(ChunkedColumn((column[:start],)), a)
            for a, column in zip(cuts.attributes, codes, strict=True)
        }
        label = CategoricalColumn(labels[:start], self.labels)
        weights = None if weights is None else weights[:start]
        return Columns(start, attributes, cuts.class_name, label, weights, origin)

    def row_blocks(self, cuts: Cuts) -> Iterator[CodedRows]:
        """Read the table again, and yield its usable rows in the row blocks that a `Dataset` of them would have.

        Raises BncliError in the same cases as `blocks`.
        """
        waiting: list[CodedRows] = []
        blocks = self.blocks(cuts)
        for start, stop in block_bounds(self.count(cuts)):
            n_wanted = stop - start
            while (n_waiting := sum(len(rows.labels) for rows in waiting)) < n_wanted:
                block = next(blocks, None)
                if block is None:
                    raise _changed_file(self.files[0][0])
                waiting.append(block)
            last = waiting[-1]
            # the last block may reach beyond the block that is wanted; the rest waits
            cut = len(last.labels) - (n_waiting - n_wanted)
            pieces = [*waiting[:-1], _slice_rows(last, 0, cut)]
            weights = [rows.weights for rows in pieces if rows.weights is not None]
            yield CodedRows(
                [np.concatenate(column) for column in zip(*(rows.codes for rows in pieces), strict=True)],
                np.concatenate([rows.labels for rows in pieces]),
                np.concatenate(weights) if weights else None,
            )
            waiting = [_slice_rows(last, cut, len(last.labels))]
        for rest in (*waiting, *blocks):
            if len(rest.labels):
                raise _changed_file(self.files[0][0])

    def blocks(self, cuts: Cuts) -> Iterator[CodedRows]:
        """Read the table again, and yield its usable rows in order, in blocks of any size.

        Raises BncliError if a file has changed, in the cases of `encode_files`, and for rows without a class unless the
        source drops them.
        """
        self._check_files()
        n_rows, n_unlabelled = 0, 0
        for n_read, n_without_class, rows in _encoded_blocks(self.source, cuts, self.labels, self.run):
            n_rows, n_unlabelled = n_rows + n_read, n_unlabelled + n_without_class
            yield rows
        self._check_files()
        if n_rows != self.n_rows:
            raise _changed_file(self.files[0][0])
        if n_unlabelled and not self.source.drop_unlabelled:
            what = f"the class is missing in {n_unlabelled} row{'s' if n_unlabelled > 1 else ''}"
            raise BncliError(what, where=self.files[0][0], hint=DROP_UNLABELLED)

    def _check_files(self) -> None:
        for path, size, time in self.files:
            try:
                status = os.stat(path)
            except OSError as error:
                raise BncliError(
                    "the file was removed while it was being read", where=path, hint="repeat the command"
                ) from error
            if (status.st_size, status.st_mtime_ns) != (size, time):
                raise _changed_file(path)


def _slice_rows(rows: CodedRows, start: int, stop: int) -> CodedRows:
    weights = None if rows.weights is None else rows.weights[start:stop]
    return CodedRows([codes[start:stop] for codes in rows.codes], rows.labels[start:stop], weights)


def _changed_file(path: str) -> BncliError:
    return BncliError("the file changed while it was being read", where=path, hint="repeat the command")


_EncodedBlock = tuple[int, int, CodedRows]
"""The numbers of rows and of rows of positive weight without a class in a block, and its usable rows as codes."""


def _encoded_blocks(source: Source, cuts: Cuts, labels: tuple[str, ...], run: Run) -> Iterable[_EncodedBlock]:
    """Yield the encoded blocks of all files, which are read here or (with `Run.each_file`) on a cluster."""
    with Table(source, keep=False, memory=run.memory) as table:
        roles = assign_roles(source, table.names, table.name, cuts, table.nested)
    if run.each_file is None:
        yield from encode_files(source, 0, run, cuts, labels, roles)
        return
    for _, blocks, error in run.each_file(encode_files, lambda: (cuts, labels, roles)):
        yield from blocks
        if error is not None:
            raise error


def encode_files(
    source: Source, begin: int, run: Run, cuts: Cuts, labels: tuple[str, ...], roles: ColumnRoles
) -> Iterator[_EncodedBlock]:
    """Yield the encoded blocks of a table's files, starting at file `begin` (counted from 0).

    Raises BncliError if the rows contradict the first pass: by a value that the first pass did not find or, if
    malformed rows are an error, by a malformed row.
    """
    tokens = MissingTokens.of(source.missing_tokens)
    as_text = roles.class_name in roles.categorical
    with Table(source, keep=False, memory=run.memory) as table:
        encoders = [ColumnEncoder.of_label(roles.class_name, labels, tokens, as_text=as_text)]
        encoders += [] if roles.weights is None else [ColumnEncoder.of_weights(roles.weights)]
        encoders += ColumnEncoder.all_of(cuts.attributes, set(table.names), tokens)
        encode = partial(
            _encode_block,
            encoders=encoders,
            cuts=cuts,
            tokens=tokens,
            roles=roles,
            drop_incomplete=source.drop_incomplete,
        )
        raw_blocks = table.raw_blocks([encoder.request.name for encoder in encoders], run.watch, begin)
        for block, n_unlabelled, rows in run_in_order((partial(encode, raw) for raw in raw_blocks), run.threads):
            if block.bad and source.on_bad_row == "fail":
                raise _changed_file(block.bad[0].path)
            yield block.n_rows, n_unlabelled, rows


def _encode_block(
    raw: RawBlock,
    *,
    encoders: Sequence[ColumnEncoder],
    cuts: Cuts,
    tokens: MissingTokens,
    roles: ColumnRoles,
    drop_incomplete: bool,
) -> tuple[RowBlock, int, CodedRows]:
    """Parse and encode a raw block.

    Returns its rows, the number of rows of positive weight without a class, and the usable rows as codes. Raises
    BncliError for a value that the first pass did not find.
    """
    block, parts = parse_encoded(raw, encoders, [encoder.request for encoder in encoders], tokens)
    columns = {name: column for part in parts for name, column in part.items()}
    label = columns.pop(roles.class_name)
    assert isinstance(label, CategoricalColumn)
    weights = None
    if roles.weights is not None:
        weights_column = columns.pop(roles.weights)
        assert isinstance(weights_column, NumericColumn)
        weights = np.asarray(weights_column.values, np.float64)
    # UNSEEN: the table had no such label when it was sampled
    is_unknown = label.codes < -1
    if is_unknown.any():
        raise _unknown_value(cuts.class_name, block.locate(int(is_unknown.argmax())))
    has_weight = np.ones(block.n_rows, np.bool_) if weights is None else weights > 0
    keep = has_weight & (label.codes >= 0)
    n_unlabelled = int(has_weight.sum() - keep.sum())
    rows = np.flatnonzero(keep)
    if not keep.all():  # before encoding, since rows that are dropped may have values that the cuts do not know
        columns = {name: column.take(rows) for name, column in columns.items()}
        label, weights = label.take(rows), None if weights is None else weights[rows]
    codes: list[Codes] = []
    for attribute in cuts.attributes:
        known = replace(attribute, missing=True)
        encoded = encode_column(columns[attribute.name], known)
        if encoded.unseen:
            first = (encoded.codes == known.cardinality).argmax()
            raise _unknown_value(attribute.name, block.locate(int(rows[first])))
        codes.append(encoded.codes.astype(code_dtype(attribute.n_values + 1), copy=False))
    if drop_incomplete and codes:
        is_present = [own < a.n_values for own, a in zip(codes, cuts.attributes, strict=True)]
        rows = np.flatnonzero(np.all(is_present, axis=0))
        codes = [own[rows] for own in codes]
        label, weights = label.take(rows), None if weights is None else weights[rows]
    return block, n_unlabelled, CodedRows(codes, label.codes.astype(code_dtype(len(label.levels))), weights)


def _unknown_value(name: str, where: str) -> BncliError:
    what = f"column '{name}' has a value that was not stored when the file was first read"
    hint = f"leave it out with --ignore '{name}', or use --cuts with all its levels"
    return BncliError(what, where=where, hint=hint)
