"""Read a training table: all of its rows, with column types that hold for all of them.

Types are guessed from the schema of a columnar file or from the first rows of a text file; the guess is nearly always
right. If a column turns out to be text, those of its blocks that were read as numbers are read again. Rows of weight 0
are dropped.

If a table has several files, they must agree on the types that the user does not give. Otherwise a column with numbers
in one file and text in another would silently become categorical. The rules:

- Columnar files are compared by the types that they declare.
- In a text file, a column is taken to hold numbers if it has more than two distinct numbers and no other values, and to
  hold text if none of its values is a number. If it holds numbers in one file, no later file may have other strings in
  it. If it holds text in one file, it must not hold numbers in a later one.
- Integers count as numbers, and a file in which the column is empty agrees with every type.
- A disagreement of text files is an error only if the column would become categorical, not if it holds dates, numbers
  in a national form, or codes with leading zeros.

Where a sample is allowed, a table larger than the budget is sampled while it is read (`RowSampler`); `rows_by_cuts`
reads it a second time.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bncli.engine.data.columns import CategoricalColumn, Column, Columns, NumericColumn
from bncli.engine.data.schema import CategoricalAttribute, Cuts, NumberForm
from bncli.engine.data.splits import latest_rows
from bncli.engine.kernels.arrays import Index, Mask
from bncli.errors import BncliError
from bncli.files.reading.arrow_files import ArrowBatch, type_word
from bncli.files.reading.column_builder import (
    EMPTY,
    CodedTexts,
    ColumnBlock,
    ColumnBuilder,
    append_distinct,
    encode_texts,
)
from bncli.files.reading.column_meaning import find_attributes
from bncli.files.reading.column_roles import (
    ColumnRoles,
    assign_roles,
    check_labels,
    is_codes_table,
    put_positive_second,
    read_coded,
    report_left_out,
    usable_rows,
    warn_about_numeric_labels,
)
from bncli.files.reading.csv_text import TextBlock, columns_with_leading_zeros, parse_block
from bncli.files.reading.numbers import guess_kinds, to_numbers
from bncli.files.reading.source import BadRow, ColumnRequest, MissingTokens, Source, ValueKind, is_text, shorten
from bncli.files.reading.split_columns import check_split, read_split_columns
from bncli.files.reading.table import BadRows, RawBlock, Table, parse, run_in_order
from bncli.files.reading.values import (
    column_in_form,
    distinct_levels,
    narrow_codes,
    narrow_numbers,
    request_in_form,
    sort_levels,
    strip_texts,
)
from bncli.watch import Note, Run, Watch, silent

BUDGET = 2 << 30
"""The maximum number of bytes of values, in narrow types, that are kept; a larger table may be sampled."""
SAMPLE_ROWS = 1 << 20
MOST_TEXTS = 1 << 18
"""About the maximum number of distinct strings of a column that are certain to be in the sample."""
MOST_SHARED_COLUMNS = 50_000
"""Tables with more columns are read by one thread, since threads would wait for each other, and take memory."""
_N_SAMPLED = 64


def read_columns(
    source: Source, *, threads: int = 1, watch: Watch = silent, cuts: Cuts | None = None, memory: int | None = None
) -> Columns:
    """Read a whole table, or a `.codes` file, and return its usable rows.

    cuts: cuts that fix the attributes and their types, or None to infer the types from all rows. memory: the memory
    limit in bytes, or None. Notes report guesses about columns, what was left out, and the number of malformed rows.
    """
    return read_rows(source, cuts=cuts, run=Run(threads, memory, watch=watch))[0]


def read_rows(source: Source, *, cuts: Cuts | None, run: Run, seed: int | None = None) -> tuple[Columns, int]:
    """Read a table; return its usable rows and their number.

    With a `seed`, a table that exceeds BUDGET is sampled; then the second result is the number of all rows of the
    table, usable or not. Raises BncliError if rows that are split by groups or by time would have to be sampled.
    """
    if is_codes_table(source.paths):
        coded = read_coded(source)
        return coded, coded.n_rows
    tokens = MissingTokens.of(source.missing_tokens)
    with Table(source, keep=True, memory=run.memory) as table:
        roles = assign_roles(source, table.names, table.name, cuts, table.nested)
        report_left_out(roles, run.watch)
        columns = start_columns(table, roles, source)
        builders = list(columns.values())
        if len(builders) > MOST_SHARED_COLUMNS:
            run = run._replace(threads=1)
        sampler = RowSampler(seed, roles, tokens)
        stated_rows = table.stated_rows()
        stated = roles.categorical | roles.numeric
        checks = [_TypeCheck(b, tokens, b.request.name in stated) for b in builders] if table.n_files > 1 else []
        with BadRows(source.on_bad_row, run.watch) as bad_rows:
            for block in _parsed_blocks(table, builders, source, tokens, run):
                for check in checks:
                    check.compare_schema(block.path, block.schema)
                bad_rows.take(block.bad)
                if stated_rows is not None and not sampler.sizes:
                    sampler.reserve(builders, block, stated_rows)
                for builder, column in zip(builders, block.columns, strict=True):
                    builder.add(column, block.locate)
                    builder.has_leading_zeros |= builder.request.name in block.leading_zeros
                for check, column in zip(checks, block.columns, strict=False):
                    check.take(block.path, column)
                sampler.add_block(builders, block)
            for check in checks:
                check.end_file()
            sampler.finish(builders)
            if sampler.n_kept < sampler.n_rows and (roles.group or roles.time is not None):
                what = f"{sampler.n_rows:,} rows do not fit in memory, but --group and --time need all rows in memory"
                raise BncliError(what, where=table.name, hint="leave columns out with --ignore, or use fewer rows")
        _read_again(table, columns, sampler, tokens, run.threads, any_bad=bad_rows.count > 0)
        n_kept = sampler.n_kept
        rows = _assemble(columns, n_kept, roles, table, source, cuts=cuts, watch=run.watch)
        return rows, rows.n_rows if n_kept == sampler.n_rows else sampler.n_rows


def start_columns(table: Table, roles: ColumnRoles, source: Source, *, guess: bool = True) -> dict[str, ColumnBuilder]:
    """Return a builder for each column in use, keyed by name, with the given or a guessed type.

    Types are guessed from the schema of a columnar file, or from the first rows of a text file; later rows may overrule
    the guess. If `guess` is False, the columns of a text file start as text.
    """
    tokens = MissingTokens.of(source.missing_tokens)
    stated = roles.categorical | roles.numeric
    form = None if source.decimal is None else NumberForm(source.decimal)
    head = table.head()
    # the time column is read as an attribute is, whether it is one or not
    read = roles.attributes
    if roles.time is not None and roles.time not in read:
        read = (*read, roles.time)
    open_names = [name for name in read if name not in stated]
    requests = {name: ColumnRequest(name, ValueKind.TEXT) for name in open_names}
    # If the decimal mark is a comma, 1.5 may not be a number, so nothing is guessed.
    if isinstance(head, TextBlock) and guess and source.decimal != ",":
        texts = parse_block(head, list(requests.values()), tokens).values
        kinds = guess_kinds(texts, tokens.number)
        requests = {name: ColumnRequest(name, kind) for name, kind in zip(open_names, kinds, strict=True)}
    elif head is not None and not isinstance(head, TextBlock):
        requests |= {name: head[name] for name in open_names if head[name].form is None or source.dates != "off"}
    for name in stated.intersection(read):
        if name in roles.in_form:
            requests[name] = request_in_form(name, roles.in_form[name][0].form)
        elif name in roles.numeric:
            requests[name] = request_in_form(name, form)
        else:
            requests[name] = ColumnRequest(name, ValueKind.TEXT)
    columns = {}
    for name in read:
        # The text of a columnar file is meant as text, whatever it looks like.
        text_may_be_numbers = isinstance(head, TextBlock) and source.decimal != ","
        is_text_column = requests[name] == ColumnRequest(name, ValueKind.TEXT)
        is_free = name not in stated and (text_may_be_numbers or not is_text_column)
        columns[name] = ColumnBuilder(requests[name], is_free=is_free, tokens=tokens)
    if roles.class_name not in columns:  # it is an attribute if a table of one column is described without a class
        request = ColumnRequest(roles.class_name, ValueKind.TEXT)
        columns[roles.class_name] = ColumnBuilder(request, is_free=False, tokens=tokens)
    for name in roles.group:
        if name not in columns:
            columns[name] = ColumnBuilder(ColumnRequest(name, ValueKind.TEXT), is_free=False, tokens=tokens)
    if roles.weights is not None:
        request = replace(request_in_form(roles.weights, form), weight=True)
        columns[roles.weights] = ColumnBuilder(request, is_free=False, tokens=tokens)
    return columns


@dataclass(frozen=True)
class ParsedBlock:
    """A row block of a file, with its columns as they are kept in memory.

    - leading_zeros: the columns in which a number has leading zeros, among those that were searched for them
    - requests: how the columns were requested
    - schema: the schema of a columnar file, or None for text
    """

    path: str
    columns: list[ColumnBlock]
    n_rows: int
    bad: tuple[BadRow, ...]
    locate: Callable[[int], str]
    leading_zeros: frozenset[str]
    requests: tuple[ColumnRequest, ...]
    schema: pa.Schema | None

    @property
    def n_bytes(self) -> int:
        """The size of the codes and numbers in bytes, without the distinct strings."""
        return sum(int((c.codes if isinstance(c, CodedTexts) else c).nbytes) for c in self.columns)


def _parsed_blocks(
    table: Table, builders: Sequence[ColumnBuilder], source: Source, tokens: MissingTokens, run: Run
) -> Iterator[ParsedBlock]:
    """Yield every row block, parsed here or, with `run.each_file`, elsewhere.

    The columns are requested with the types that earlier blocks suggest.
    """
    if run.each_file is None:
        names = [builder.request.name for builder in builders]
        tasks = (
            partial(
                _parse_compactly, raw, [(b.request, b.shared) for b in builders], _columns_to_search(builders), tokens
            )
            for raw in table.raw_blocks(names, run.watch)
        )
        yield from run_in_order(tasks, run.threads)
        return
    for path, blocks, error in run.each_file(
        parse_files, lambda: ([builder.request for builder in builders], _columns_to_search(builders))
    ):
        for number, block in enumerate(blocks):
            bad = tuple(replace(row, path=path) for row in block.bad)
            locate = partial(_locate_again, replace(source, paths=(path,)), number, block.requests)
            yield replace(block, path=path, bad=bad, locate=locate)
        if error is not None:
            raise error


def _columns_to_search(builders: Sequence[ColumnBuilder]) -> list[str]:
    """Return the names of the columns to search for leading zeros."""
    return [builder.request.name for builder in builders if builder.may_be_codes]


def parse_files(
    source: Source, begin: int, run: Run, requests: Sequence[ColumnRequest], watched: Sequence[str]
) -> Iterator[ParsedBlock]:
    """Yield the blocks of a table's files, starting at file `begin`, in a form that can be sent to another machine.

    If malformed rows are an error, the block with the first of them is the last one.
    """
    tokens = MissingTokens.of(source.missing_tokens)
    with Table(source, keep=False, memory=run.memory) as table:
        for raw in table.raw_blocks([request.name for request in requests], run.watch, begin):
            block = _parse_compactly(raw, [(request, EMPTY) for request in requests], watched, tokens)
            yield replace(block, locate=str)  # `_locate_again` replaces the function, which cannot be sent
            if block.bad and source.on_bad_row == "fail":
                return


def _parse_compactly(
    raw: RawBlock, requests: Sequence[tuple[ColumnRequest, pa.Array]], watched: Sequence[str], tokens: MissingTokens
) -> ParsedBlock:
    """Parse a raw block into narrow columns; each request comes with the shared strings that encode its column."""
    block = parse(raw, [request for request, _ in requests], tokens, len(requests))
    columns = [
        encode_texts(values, shared) if is_text(values) else narrow_numbers(values)
        for values, (_, shared) in zip(block.values, requests, strict=True)
    ]
    zeros: frozenset[str] = frozenset()
    if isinstance(raw, TextBlock):
        zeros = columns_with_leading_zeros(raw, block.n_rows, watched, tokens)
    schema = raw.data.schema if isinstance(raw, ArrowBatch) else None
    plain_requests = tuple(request for request, _ in requests)
    return ParsedBlock(raw.path, columns, block.n_rows, block.bad, block.locate, zeros, plain_requests, schema)


def _locate_again(source: Source, number: int, requests: Sequence[ColumnRequest], row: int) -> str:
    """Return the location of a row of block `number`, from 0, by reading the file again up to that block."""
    with Table(source, keep=False) as table:
        raw_blocks = table.raw_blocks([request.name for request in requests], silent)
        raw = next(itertools.islice(raw_blocks, number, None))
        return parse(raw, requests, MissingTokens.of(source.missing_tokens)).locate(row)


def _read_again(
    table: Table,
    columns: Mapping[str, ColumnBuilder],
    sampler: RowSampler,
    tokens: MissingTokens,
    threads: int,
    *,
    any_bad: bool,
) -> None:
    """Settle the types, and read again those blocks of text columns that had been read as numbers.

    any_bad: whether there were malformed rows, since the same rows must then be malformed again. Raises BncliError if
    the file has changed.
    """
    requests = [builder.request for builder in columns.values()]
    blocks_of = {name: set(builder.settle()) for name, builder in columns.items()}
    names = [name for name, blocks in blocks_of.items() if blocks]
    if not names:
        return
    # The columns that decide which rows are malformed are read as well: strict ones and, if a number of a columnar file
    # may have been infinite, all columns of numbers.
    again = [ColumnRequest(name, ValueKind.TEXT) for name in names]
    again += [request for request in requests if request.strict or (any_bad and request.kind is ValueKind.NUMBER)]
    sizes = sampler.sizes[: max(set().union(*blocks_of.values())) + 1]
    raw_blocks = table.raw_blocks([request.name for request in again], silent)
    parsed = run_in_order((partial(parse, raw, again, tokens) for raw in raw_blocks), threads)
    # In a columnar file, the blocks of fewer columns may begin and end in other rows.
    has_same_blocks = table.n_files == 1 and table.delimiter is not None
    unread = pa.table({str(j): pa.array([], pa.string()) for j in range(len(names))})
    for i, size in enumerate(sizes):
        while unread.num_rows < size and (block := next(parsed, None)) is not None:
            own = pa.table(list(block.values[: len(names)]), unread.column_names)
            unread = pa.concat_tables([unread, own])
        if unread.num_rows < size or (has_same_blocks and unread.num_rows > size):
            raise BncliError("the file changed while it was being read", where=table.name, hint="repeat the command")
        for name, texts in zip(names, unread.slice(0, size).columns, strict=True):
            if i in blocks_of[name]:
                rows, builder = sampler.rows[i], columns[name]
                texts = texts.combine_chunks() if rows is None else texts.take(pa.array(rows)).combine_chunks()
                builder.blocks[i] = encode_texts(texts, builder.shared)
        unread = unread.slice(size)


class _TypeCheck:
    """A comparison of one column's types in the files of a table; see the module docstring for the rules."""

    def __init__(self, builder: ColumnBuilder, tokens: MissingTokens, is_stated: bool) -> None:
        self._builder, self._tokens = builder, tokens
        self._is_stated = is_stated
        self._declared: tuple[str, str, str] | None = None
        """How the declared type is read (`type_word`), the first file that declares it, and the type."""
        self._is_watched = builder.is_free
        self._path: str | None = None
        self._first: tuple[str, str] | None = None
        """The first file that reveals the type of the column, and the type: `numbers` or `text`."""
        self._is_settled = False
        self._numbers: list[float] = []
        """Up to three distinct numbers of the current file."""
        self._has_text = False

    def compare_schema(self, path: str, schema: pa.Schema | None) -> None:
        """Raise BncliError if a columnar file declares a type that is read differently from the first file's type."""
        name = self._builder.request.name
        if schema is None or self._is_stated:
            return
        kind = schema.field(name).type
        word = type_word(kind)
        if word is None:
            return
        self._declared = self._declared or (word, path, str(kind))
        first_word, first_path, first_kind = self._declared
        if word != first_word:
            raise _disagreement(name, first_path, f"type {first_kind}", f"type {kind}", path)

    def take(self, path: str, block: ColumnBlock) -> None:
        """Record the next block, after the builder has taken it."""
        if not self._is_watched:
            return
        if path != self._path:
            self.end_file()
            self._path = path
        if self._is_settled:
            return
        exception = self._builder.non_numeric
        if self._first is not None and self._first[1] == "numbers":
            if exception is not None:
                self._record_difference(f"'{shorten(exception.text)}'", exception.where or path)
            return
        if not self._has_text or (self._first is None and not self._numbers):
            if isinstance(block, CodedTexts):
                used = np.flatnonzero(np.bincount(block.codes, minlength=len(block.texts)))
                # In a column with text, a few values show whether there are numbers at all.
                used = used[:_N_SAMPLED] if self._has_text else used
                block, wrong = to_numbers(block.texts.take(pa.array(used)), self._tokens.number)
                self._has_text = self._has_text or wrong is not None
            append_distinct(self._numbers, block)
        self._is_settled = self._first is None and self._has_text and bool(self._numbers)

    def end_file(self) -> None:
        """Record the type of the column in the current file, which has ended."""
        if self._path is None:
            return
        kind = "text" if self._has_text else "numbers" if len(self._numbers) > 2 else None
        if self._first is None:
            self._first = None if kind is None else (self._path, kind)
        elif self._first[1] == "text" and kind == "numbers":
            self._record_difference(kind, self._path)
        self._numbers, self._has_text = [], False

    def _record_difference(self, found: str, where: str) -> None:
        assert self._first is not None
        path, kind = self._first
        self._builder.difference = _disagreement(self._builder.request.name, path, kind, found, where)
        self._is_settled = True


def _disagreement(name: str, first_path: str, first_kind: str, found: str, where: str) -> BncliError:
    quoted = shlex.quote(name)
    hint = (
        f"write the values in the same way in all files; add --categorical {quoted} to read it as categories, or "
        f"--ignore {quoted} to leave it out"
    )
    return BncliError(f"column '{name}' has {first_kind} in {first_path}, but {found} here", where=where, hint=hint)


class RowSampler:
    """A sampler that keeps all rows while they fit BUDGET, and then a random sample, removing rows from the blocks.

    The key of a row is a hash of the seed and its position in the table. The sample consists of the SAMPLE_ROWS rows
    with the lowest keys, so it depends neither on how the table is divided into blocks nor on when the budget was
    exceeded. In addition, for every column, the first row with each of its first MOST_TEXTS or so distinct strings is
    kept, and the first row without a value, so that even rare levels and missing values are known. Rows of
    weight 0 cannot be such first rows, and rows without a class only for the class column, since they will be dropped.

    - seed: the seed of the sample, or None to keep all rows
    - sizes[i]: the number of rows of block i
    - rows[i]: the indices of the rows of block i that are kept, or None if all are
    """

    def __init__(self, seed: int | None, roles: ColumnRoles, tokens: MissingTokens) -> None:
        self.sizes: list[int] = []
        self.rows: list[Index | None] = []
        self._seed = seed
        self._roles, self._tokens = roles, tokens
        self._n_bytes = 0
        self._is_sampling = False
        self._limit = np.uint64(2**64 - 1)
        """The largest key of a sampled row; a row that is kept as the first one of its value has the key 0."""
        self._keys: list[NDArray[np.uint64]] = []
        self._known_texts: dict[tuple[str, bool], pa.Array] = {}
        self._with_missing: set[tuple[str, bool]] = set()

    @property
    def n_rows(self) -> int:
        """The number of rows of the table so far."""
        return sum(self.sizes)

    @property
    def n_kept(self) -> int:
        return sum(n if rows is None else len(rows) for n, rows in zip(self.sizes, self.rows, strict=True))

    def reserve(self, columns: Sequence[ColumnBuilder], first: ParsedBlock, n_rows: int) -> None:
        """Let the columns reserve memory for `n_rows` rows if, by the first block's size, all are likely to be kept."""
        if self._seed is None or n_rows * first.n_bytes <= BUDGET * first.n_rows:
            for column in columns:
                column.reserve(n_rows)

    def add_block(self, columns: Sequence[ColumnBuilder], block: ParsedBlock) -> None:
        """Sample the block that the columns have just taken, and shrink earlier blocks if necessary."""
        self.sizes.append(block.n_rows)
        self.rows.append(None)
        self._n_bytes += block.n_bytes
        if self._is_sampling:
            self._sample_block(columns, len(self.sizes) - 1)
        elif self._seed is not None and self._n_bytes > BUDGET:
            self._is_sampling = True
            # A limit that keeps twice as many rows as needed, so that the blocks need not be copied whole.
            # keys are uniform on 64 bits, so this fraction of the range keeps this fraction of the rows
            share = 2 * SAMPLE_ROWS / self.n_rows
            self._limit = np.uint64(int(share * 2**64) if share < 1.0 else 2**64 - 1)
            for i in range(len(self.sizes)):
                self._sample_block(columns, i)
            pa.default_memory_pool().release_unused()
        if self._is_sampling and self._n_sampled() > 2 * SAMPLE_ROWS:
            self._lower_limit(columns)

    def finish(self, columns: Sequence[ColumnBuilder]) -> None:
        """Reduce the sample to SAMPLE_ROWS rows, in addition to the rows that are kept as first ones."""
        if self._is_sampling and self._n_sampled() > SAMPLE_ROWS:
            self._lower_limit(columns)

    def _n_sampled(self) -> int:
        return sum(int(np.count_nonzero(keys)) for keys in self._keys)

    def _sample_block(self, columns: Sequence[ColumnBuilder], i: int) -> None:
        assert self._seed is not None
        keys = row_keys(sum(self.sizes[:i]), self.sizes[i], self._seed)
        blocks = {column.request.name: column.blocks[i] for column in columns}
        weights = None if self._roles.weights is None else blocks[self._roles.weights]
        has_weight = np.ones(self.sizes[i], np.bool_) if weights is None else np.asarray(weights) > 0
        # Groups of usable rows: those that certainly have a class, and those whose class is a text such as NA. This is
        # a label unless all other labels turn out to be numbers.
        groups: list[tuple[bool, Mask]] = [(True, has_weight)]
        label = blocks[self._roles.class_name]
        if isinstance(label, CodedTexts):
            is_missing, may_be_missing = (
                strip_texts(label.texts, missing)[1] for missing in (self._tokens.text, self._tokens.number)
            )
            groups = [(True, has_weight & ~may_be_missing[label.codes])]
            doubtful = (may_be_missing & ~is_missing)[label.codes]
            if doubtful.any():
                groups.append((False, has_weight & doubtful))
        for name, block in blocks.items():
            # A row without a class must be kept, so that it can be reported.
            of_column = [(True, has_weight)] if name == self._roles.class_name else groups
            for is_certain, rows in of_column:
                keys[self._first_rows((name, is_certain), block, rows)] = 0
        self._keys.append(keys)
        self._keep_rows(columns, i, keys <= self._limit)

    def _first_rows(self, key: tuple[str, bool], block: ColumnBlock, mask: Mask) -> Index:
        """Return the rows in the mask in which a string of a column occurs for the first time.

        For a column of numbers, return the first row without a value. key: the name of the column, and which group of
        usable rows the mask selects.
        """
        usable = np.flatnonzero(mask)
        if not isinstance(block, CodedTexts):
            if key in self._with_missing or block.dtype.kind != "f":
                return usable[:0]
            first_missing = usable[np.isnan(block[usable])][:1]
            self._with_missing.update([key] * len(first_missing))
            return first_missing
        known = self._known_texts.get(key, EMPTY)
        is_new = pc.invert(pc.is_in(block.texts, value_set=known)).to_numpy(zero_copy_only=False)
        if len(known) > MOST_TEXTS:
            is_new &= strip_texts(block.texts, self._tokens.text)[1]
        if not is_new.any():
            return usable[:0]
        # The first row of each text: assigned in reverse order, the first one remains.
        first = np.full(len(block.texts), -1, np.intp)
        first[block.codes[usable][::-1]] = usable[::-1]
        is_new &= first >= 0
        self._known_texts[key] = pa.concat_arrays([known, block.texts.filter(pa.array(is_new))])
        rows: Index = first[is_new]
        return rows

    def _lower_limit(self, columns: Sequence[ColumnBuilder]) -> None:
        """Lower the limit to the SAMPLE_ROWS-th lowest key above 0, and drop the rows with higher keys."""
        # rows that are kept as first ones have the key 0 and do not count
        sampled = np.concatenate([keys[keys > 0] for keys in self._keys])
        self._limit = np.partition(sampled, SAMPLE_ROWS - 1)[SAMPLE_ROWS - 1]
        for i, keys in enumerate(self._keys):
            self._keep_rows(columns, i, keys <= self._limit)

    def _keep_rows(self, columns: Sequence[ColumnBuilder], i: int, mask: Mask) -> None:
        """Drop the rows of block i that are not in the mask over its kept rows."""
        kept = self.rows[i]
        self.rows[i] = np.flatnonzero(mask) if kept is None else kept[mask]
        self._keys[i] = self._keys[i][mask]
        for column in columns:
            block = column.blocks[i]
            if not isinstance(block, CodedTexts):
                column.blocks[i] = block[mask]
                continue
            codes, texts = block.codes[mask], block.texts
            if len(texts) > len(codes):  # most texts no longer have a row
                used, renumbered = np.unique(codes, return_inverse=True)
                codes, texts = narrow_codes(renumbered, len(used)), texts.take(pa.array(used))
            column.blocks[i] = CodedTexts(codes, texts)


def row_keys(start: int, n: int, seed: int) -> NDArray[np.uint64]:
    """Return the keys of `n` rows, beginning with row `start`, (n,): hashes of seed and position, which are never 0."""
    with np.errstate(over="ignore"):
        bits = np.arange(start, start + n, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        bits += np.uint64((seed + 1) * 0xD1B54A32D192ED03 % 2**64)
        return mix_bits(bits) | np.uint64(1)


def mix_bits(bits: NDArray[Any]) -> NDArray[np.uint64]:
    """Apply the finalizer of SplitMix64 (Steele, Lea & Flood 2014), a one-to-one map that spreads every bit."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = bits ^ (bits >> np.uint64(31))
    return mixed


def _assemble(
    columns: Mapping[str, ColumnBuilder],
    n_rows: int,
    roles: ColumnRoles,
    table: Table,
    source: Source,
    *,
    cuts: Cuts | None,
    watch: Watch,
) -> Columns:
    """Return the finished table, without identifiers, rows of weight 0, and rows that the source's options leave out.

    Raises BncliError if the class or the remaining rows cannot be used.
    """
    where = table.name
    if n_rows == 0:
        raise BncliError("the table has no rows", where=where, hint="add rows below the header")
    label = columns[roles.class_name].label(as_text=roles.class_name in roles.categorical)
    weights = None if roles.weights is None else columns[roles.weights].numeric().values.astype(np.float64)
    keep = usable_rows(label, weights, where, drop_unlabelled=source.drop_unlabelled)
    split_by = read_split_columns(columns, roles.group, roles.time, table, source)
    if cuts is None:
        attributes = find_attributes(columns, keep, roles, table, source, watch)
    else:
        attributes = _attributes_of_cuts(columns, keep, roles, cuts, where, MissingTokens.of(source.missing_tokens))
    rows = Columns(n_rows, attributes, roles.class_name, label, weights, split_by=split_by)
    if not keep.all():
        rows = _without_unused_levels(rows.take(np.flatnonzero(keep)), attributes_too=cuts is None)
    if source.drop_incomplete:
        rows = _without_unused_levels(_drop_incomplete(rows, where, watch), attributes_too=cuts is None)
    labels = () if rows.label is None else rows.label.levels
    check_labels(rows.class_name, labels, rows.n_rows, where)
    check_split(rows, source, where, watch)
    if roles.class_name not in roles.categorical:
        warn_about_numeric_labels(rows.class_name, labels, rows.n_rows, watch)
    rows = put_positive_second(rows, source.positive)
    if source.window is not None and rows.split_by is not None:
        latest = latest_rows(rows.split_by, source.window)
        watch(Note(f"--window {source.window}: learned from the latest {len(latest):,} of {rows.n_rows:,} rows"))
        rows = _without_unused_levels(rows.take(latest), attributes_too=True)
    return rows


def _attributes_of_cuts(
    columns: Mapping[str, ColumnBuilder], keep: Mask, roles: ColumnRoles, cuts: Cuts, where: str, tokens: MissingTokens
) -> dict[str, Column]:
    """Return the attributes, keyed by name, with the types, forms and levels of the cuts supplied.

    Raises BncliError if a string is not among the levels of the cuts, unless it occurs only in rows that are dropped.
    """
    # Levels are sorted as they would be found, regardless of their order in the cuts: cuts may be learned again for
    # folds.
    categorical = [a for a in cuts.attributes if isinstance(a, CategoricalAttribute)]
    levels = {a.name: sort_levels(a.code_of) for a in categorical}
    attributes: dict[str, Column] = {}
    for name in roles.attributes:
        column = columns[name]
        if name in roles.in_form:
            values = column.numeric().values
            attributes |= {a.name: column_in_form(values, a.form) for a in roles.in_form[name]}
        elif name not in levels:
            attributes[name] = column.numeric()
        else:
            unknown = _unknown_levels(column.texts(), levels[name], tokens)
            if len(unknown) and not keep.all():
                unknown = _unknown_levels(column.texts(keep), levels[name], tokens)
            if len(unknown):
                what = (
                    f"column '{name}' has the value '{unknown[0].as_py()}', which is not among its levels in the cuts"
                )
                raise BncliError(what, where=where, hint="learn the cuts from data that contain this value")
            attributes[name] = column.categorical(levels[name])
    return attributes


def _unknown_levels(texts: pa.Array, levels: tuple[str, ...], tokens: MissingTokens) -> pa.Array:
    found = distinct_levels(texts, tokens.text)
    return found.filter(pc.invert(pc.is_in(found, value_set=pa.array(levels, pa.string()))))


def _drop_incomplete(table: Columns, where: str, watch: Watch) -> Columns:
    """Return the rows that have a value of every attribute; raise BncliError if there is none."""
    complete = np.ones(table.n_rows, np.bool_)
    for column in table.attributes.values():
        if isinstance(column, CategoricalColumn):
            complete &= column.codes >= 0
        elif isinstance(column, NumericColumn) and column.values.dtype.kind == "f":
            complete &= ~np.isnan(column.values)
    n_dropped = table.n_rows - int(complete.sum())
    if not n_dropped:
        return table
    if n_dropped == table.n_rows:
        hint = "leave a column out with --ignore, or omit --drop-incomplete"
        raise BncliError("every row has a missing value", where=where, hint=hint)
    rows = f"{n_dropped:,} of {table.n_rows:,} rows lack" if n_dropped > 1 else "1 row lacks"
    watch(Note(f"{rows} a value and {'are' if n_dropped > 1 else 'is'} left out (--drop-incomplete)"))
    return table.take(np.flatnonzero(complete))


def _without_unused_levels(table: Columns, *, attributes_too: bool) -> Columns:
    """Return the table without unused labels and, if `attributes_too`, without unused levels of attributes."""
    attributes = dict(table.attributes)
    if attributes_too:
        for name, column in attributes.items():
            attributes[name] = _only_used_levels(column) if isinstance(column, CategoricalColumn) else column
    return replace(table, attributes=attributes, label=None if table.label is None else _only_used_levels(table.label))


def _only_used_levels(column: CategoricalColumn) -> CategoricalColumn:
    used = np.bincount(column.codes[column.codes >= 0], minlength=len(column.levels)) > 0
    if used.all():
        return column
    # The last element belongs to the code MISSING, -1.
    renumbered = np.append(np.cumsum(used) - 1, -1)
    levels = tuple(level for level, is_used in zip(column.levels, used, strict=True) if is_used)
    return CategoricalColumn(narrow_codes(renumbered.take(column.codes), len(levels)), levels)
