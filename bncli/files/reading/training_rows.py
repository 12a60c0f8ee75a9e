"""A table to learn from: all rows read, the type of every column found over all of them.

One pass with types guessed from the first rows, which hold for nearly every file; then the columns that turned out to
be text are read again where they had been read as numbers. Rows of weight 0 do not exist.

Whether the files of one table agree on what its columns are.

Types are found over all rows, so a column of numbers in one file and of names in the next would be one of names, or be
left out for its many values, and nobody would know which file is at fault. So that is an error, which names the file.
Only columns whose type nobody has said are looked at; whole and broken numbers are no difference, nor is a column that
is empty in a file.

Conventions: columnar files are compared by the types that they declare. In text, a file with more than two different
numbers and nothing else in a column has numbers, and one without any number has names; a file after one of numbers has
nothing else, and none after one of names has numbers. What turns out to be dates, numbers in a national form or codes
with leading zeros is no difference either: `findings` raises the error, when it comes to names.

A table larger than memory, read in two rounds.

The first reads all rows, finds types, levels and missing values, and keeps the values while they fit a budget, then a
sample of the rows (`sampling`). On these cuts are learnt. The second reads the table again and keeps one code a value.
A file that is another than in the first round is an error.
"""

from __future__ import annotations

import itertools
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from bncli.engine.data.columns import (
    CategoricalColumn,
    ChunkedColumn,
    CodedColumn,
    Column,
    Columns,
    NumericColumn,
    Origin,
)
from bncli.engine.data.dataset import block_bounds, code_dtype
from bncli.engine.data.encoding import encode_column
from bncli.engine.data.number_formats import Form, NumberForm
from bncli.engine.data.schema import Attribute, Cuts
from bncli.engine.kernels.arrays import Codes
from bncli.errors import BncliError
from bncli.files.artifacts.codes import CodedRows
from bncli.files.reading import sampling
from bncli.files.reading.arrow_files import Batch, type_word
from bncli.files.reading.byte_streams import find_inputs
from bncli.files.reading.column_assembly import assemble
from bncli.files.reading.column_builder import (
    EMPTY,
    CodedTexts,
    ColumnBlock,
    ColumnBuilder,
    add_different,
    compact_values,
)
from bncli.files.reading.column_roles import ColumnRoles, assign_roles, is_codes_table, read_coded, report_left_out
from bncli.files.reading.csv_text import BLOCK_SIZE, BadRows, TextBlock
from bncli.files.reading.numbers import kinds_of, to_numbers
from bncli.files.reading.rows_by_schema import EncodedSource, LevelLookup, tokens_of_class
from bncli.files.reading.sampling import RowSampler
from bncli.files.reading.source import BadRow, ColumnRequest, MissingTokens, RowBlock, Source, ValueKind
from bncli.files.reading.table import RawBlock, Table, columns_with_leading_zeros, in_order, parse, parse_block
from bncli.files.reading.values import want_in_form
from bncli.watch import Note, Run, Watch, silent

_NUMBERS, _NAMES = "numbers", "names"
_N_SHOWN = 40
_N_TRIED = 64


class PartTypes:
    """Hears of every block of a table in order; columns hear of the first file that differs from those before it."""

    def __init__(self, columns: Mapping[str, ColumnBuilder], said: frozenset[str], tokens: MissingTokens) -> None:
        self._open = [name for name in columns if name not in said]
        self._declared: dict[str, tuple[str, str, str]] = {}
        self._typed = [_Typed(column, tokens) if column.is_free else None for column in columns.values()]
        self._path: str | None = None

    def declared(self, path: str, schema: pa.Schema) -> None:
        """Raise BncliError where a columnar file declares another type than the first columnar file."""
        for name in self._open:
            kind = schema.field(name).type
            word = type_word(kind)
            if word is None:
                continue
            known, first, before = self._declared.setdefault(name, (word, path, str(kind)))
            if word != known:
                raise _error(name, first, before, str(kind), path)

    def take(self, path: str, blocks: Sequence[ColumnBlock]) -> None:
        """Record the next rows, which the columns have already taken."""
        if path != self._path:
            self.finish()
            self._path = path
        for typed, block in zip(self._typed, blocks, strict=True):
            if typed is not None:
                typed.take(path, block)

    def finish(self) -> None:
        """Record the end of a file."""
        for typed in self._typed:
            if typed is not None and self._path is not None:
                typed.end(self._path)


class _File(NamedTuple):
    path: str
    kind: str


class _Typed:
    """A column: the first file that tells what it is, and what is known of the file in hand."""

    def __init__(self, column: ColumnBuilder, tokens: MissingTokens) -> None:
        self._column, self._tokens = column, tokens
        self._first: _File | None = None
        self._settled = False
        self._numbers: list[float] = []
        self._has_text = False

    def take(self, path: str, block: ColumnBlock) -> None:
        if self._settled:
            return
        first, text = self._first, self._column.non_numeric
        if first is not None and first.kind == _NUMBERS:
            if text is not None:
                shown = text.text if len(text.text) <= _N_SHOWN else text.text[:_N_SHOWN] + "..."
                self._differ(f"'{shown}'", text.where or path)
            return
        if not self._has_text or (first is None and not self._numbers):
            self._look(block)
        self._settled = first is None and self._has_text and bool(self._numbers)

    def _look(self, block: ColumnBlock) -> None:
        if isinstance(block, CodedTexts):
            used = np.flatnonzero(np.bincount(block.codes, minlength=len(block.texts)))
            # among names a few are enough to see whether there are numbers at all
            used = used[:_N_TRIED] if self._has_text else used
            numbers, wrong = to_numbers(block.texts.take(pa.array(used)), self._tokens.number)
            self._has_text = self._has_text or wrong is not None
            block = numbers
        add_different(self._numbers, block)

    def end(self, path: str) -> None:
        kind = _NAMES if self._has_text else _NUMBERS if len(self._numbers) > 2 else None
        if self._first is None:
            self._first = None if kind is None else _File(path, kind)
        elif self._first.kind == _NAMES and kind == _NUMBERS:
            self._differ(_NUMBERS, path)
        self._numbers, self._has_text = [], False

    def _differ(self, found: str, where: str) -> None:
        assert self._first is not None
        self._column.difference = _error(self._column.want.name, self._first.path, self._first.kind, found, where)
        self._settled = True


@dataclass(frozen=True)
class ReadingRounds:
    """How the first of two rounds keeps rows: a sample by `seed` beyond `budget` bytes (None: all, in one round)."""

    seed: int
    budget: int | None = -1
    block_size: int = BLOCK_SIZE


@dataclass(frozen=True)
class _ParsedBlock:
    """A row block of a file; `wants` are how its columns were asked for, `schema` what a columnar file declares."""

    path: str
    columns: list[ColumnBlock]
    n_rows: int
    bad: tuple[BadRow, ...]
    locate: Callable[[int], str]
    leading_zeros: frozenset[str]
    wants: tuple[ColumnRequest, ...]
    schema: pa.Schema | None


@dataclass(frozen=True)
class SampledTable:
    """What the first round found in a table that does not fit: `rows` as they were read, a part of all `n_rows`."""

    source: Source
    rows: Columns
    n_rows: int
    files: tuple[tuple[str, int, int], ...]
    run: Run

    @property
    def labels(self) -> tuple[str, ...]:
        """All there are."""
        assert self.rows.label is not None
        return self.rows.label.levels

    def blocks(self, cuts: Cuts) -> Iterator[CodedRows]:
        """Yield the second round: the rows that count, in order, in pieces as they are read."""
        self._check()
        read, unlabelled = 0, 0
        for n, n_unlabelled, rows in _coded_blocks(self.source, cuts, self.labels, self.run):
            read, unlabelled = read + n, unlabelled + n_unlabelled
            yield rows
        self._check()
        if read != self.n_rows:
            raise _changed(self.files[0][0])
        if unlabelled and not self.source.drop_unlabelled:
            what = f"the class is missing in {unlabelled} row{'s' if unlabelled > 1 else ''}"
            raise BncliError(what, where=self.files[0][0], hint="--drop-unlabelled")

    def count(self, cuts: Cuts) -> int:
        """Return how many rows count: all, or those with a class, a weight and what else they need."""
        incomplete = self.source.drop_incomplete
        if self.rows.weights is None and not self.source.drop_unlabelled and not incomplete:
            return self.n_rows
        bare = cuts if incomplete else Cuts(self.rows.class_name, ())
        return sum(len(rows.labels) for _, _, rows in _coded_blocks(self.source, bare, self.labels, self.run))

    def row_blocks(self, cuts: Cuts) -> Iterator[CodedRows]:
        """Yield the second round in row blocks."""
        waiting: list[CodedRows] = []
        blocks = self.blocks(cuts)
        for start, stop in block_bounds(self.count(cuts)):
            while (have := sum(len(rows.labels) for rows in waiting)) < stop - start:
                found = next(blocks, None)
                if found is None:
                    raise _changed(self.files[0][0])
                waiting.append(found)
            last, size = waiting[-1], len(waiting[-1].labels) - (have - (stop - start))
            yield _joined([*waiting[:-1], _slice(last, 0, size)])
            waiting = [_slice(last, size, len(last.labels))]
        for left in (*waiting, *blocks):
            if len(left.labels):
                raise _changed(self.files[0][0])

    def columns(self, cuts: Cuts, origin: Origin) -> Columns:
        """Return the second round into memory."""
        n, start = self.n_rows, 0
        codes = [np.empty(n, _code_type(attribute)) for attribute in cuts.attributes]
        labels = np.empty(n, code_dtype(len(self.labels)))
        weights = None if self.rows.weights is None else np.empty(n)
        for rows in self.blocks(cuts):
            stop = start + len(rows.labels)
            for into, found in zip(codes, rows.codes, strict=True):
                into[start:stop] = found
            labels[start:stop] = rows.labels
            if weights is not None:
                weights[start:stop] = rows.weights
            start = stop
        attributes = {
            a.name: CodedColumn(ChunkedColumn.of(c[:start]), a) for a, c in zip(cuts.attributes, codes, strict=True)
        }
        label = CategoricalColumn(labels[:start], self.labels)
        weights = None if weights is None else weights[:start]
        return Columns(start, attributes, cuts.class_name, label, weights, origin)

    def _check(self) -> None:
        for path, size, time in self.files:
            try:
                found = os.stat(path)
            except OSError as error:
                raise BncliError("the file vanished between two readings", where=path, hint="run again") from error
            if (found.st_size, found.st_mtime_ns) != (size, time):
                raise _changed(path)


class _Coded(NamedTuple):
    """A row block: how many rows it has, how many of them lack a class, and the codes of those that count."""

    n_rows: int
    n_unlabelled: int
    rows: CodedRows


def read_columns(
    source: Source,
    *,
    threads: int = 1,
    watch: Watch = silent,
    given: Cuts | None = None,
    block_size: int = BLOCK_SIZE,
    memory: int | None = None,
) -> Columns:
    """Return the whole table, its types inferred over all rows.

    `given` cuts fix the attributes and their types instead.

    Notes tell what was left out, what looks like codes, and how many malformed rows were skipped. memory: of `Table`.
    A `.codes` file is such a table too, whose columns are coded.
    """
    run = Run(threads, memory, watch=watch)
    return first_round(source, given=given, run=run, rounds=ReadingRounds(0, None, block_size))[0]


def first_round(source: Source, *, given: Cuts | None, run: Run, rounds: ReadingRounds) -> tuple[Columns, int]:
    """Return the rows that are kept, as `read_columns` has them, and the number of all."""
    if is_codes_table(source.paths):
        found = read_coded(source)
        return found, found.n_rows
    tokens = MissingTokens.of(source.missing_tokens)
    watch = run.watch
    with Table(source, keep=True, block_size=rounds.block_size, memory=run.memory) as table:
        roles = assign_roles(source, table.names, table.name, given, table.nested)
        report_left_out(roles, watch)
        columns = start_columns(table, roles, source)
        budget = sampling.BUDGET if rounds.budget == -1 else rounds.budget
        sampler = RowSampler(rounds.seed, budget, roles, tokens)
        with BadRows(source.on_bad_row, watch) as bad:
            parts = PartTypes(columns, roles.categorical | roles.numeric, tokens) if table.n_files > 1 else None
            # Fills the columns, of whose rows the sampler may keep a part; `parts` hears of them where files are
            # several.
            blocks = _parsed_blocks(table, columns, source, tokens, run)
            growing = list(columns.values())
            for digested in blocks:
                if parts is not None and digested.schema is not None:
                    parts.declared(digested.path, digested.schema)
                bad.take(digested.bad)
                for column, block in zip(growing, digested.columns, strict=True):
                    column.add(block, digested.locate)
                    column.leading_zeros |= column.want.name in digested.leading_zeros
                if parts is not None:
                    parts.take(digested.path, digested.columns)
                sampler.took(growing, digested.n_rows)
            if parts is not None:
                parts.finish()
            sampler.finish(growing)
        _read_again(table, columns, sampler, tokens, run.threads, any_bad=bad.count > 0)
        n = sampler.n_kept
        found = assemble(columns, n, roles, table, source, given=given, watch=watch)
        return found, found.n_rows if n == sampler.n_rows else sampler.n_rows


def _parsed_blocks(
    table: Table, columns: dict[str, ColumnBuilder], source: Source, tokens: MissingTokens, run: Run
) -> Iterator[_ParsedBlock]:
    """Yield every row block, as it is kept; what is asked of the next rows knows what earlier ones have taught."""
    growing = list(columns.values())
    if run.each_file is None:
        tasks = (
            partial(_parse_and_compact, raw, [(c.want, c.shared) for c in growing], _watched(growing), tokens)
            for raw in table.raw_blocks(list(columns), run.watch)
        )
        yield from in_order(tasks, run.threads)
        return
    for path, blocks, error in run.each_file(parse_file, lambda: ([c.want for c in growing], _watched(growing))):
        for number, block in enumerate(blocks):
            bad = tuple(replace(row, path=path) for row in block.bad)
            locate = partial(_located, replace(source, paths=(path,)), number, block.wants)
            yield replace(block, path=path, bad=bad, locate=locate)
        if error is not None:
            raise error


def _parse_and_compact(
    raw: RawBlock, asked: Sequence[tuple[ColumnRequest, object]], watched: Sequence[str], tokens: MissingTokens
) -> _ParsedBlock:
    block = parse(raw, [want for want, _ in asked], tokens)
    columns = [compact_values(values, shared) for values, (_, shared) in zip(block.values, asked, strict=True)]
    zeros = (
        columns_with_leading_zeros(raw, block.n_rows, watched, tokens) if isinstance(raw, TextBlock) else frozenset()
    )
    wants, schema = tuple(want for want, _ in asked), raw.data.schema if isinstance(raw, Batch) else None
    return _ParsedBlock(raw.path, columns, block.n_rows, block.bad, block.locate, zeros, wants, schema)


def _watched(growing: Sequence[ColumnBuilder]) -> list[str]:
    """Return the columns whose leading zeros are looked for."""
    return [column.want.name for column in growing if column.may_be_codes]


def _located(source: Source, number: int, wants: Sequence[ColumnRequest], row: int) -> str:
    """Where a row of the block of that number stands: the file is read again up to it."""
    with Table(source, keep=False) as table:
        raw = next(itertools.islice(table.raw_blocks([want.name for want in wants], silent), number, None))
        return parse(raw, wants, MissingTokens.of(source.missing_tokens)).locate(row)


def _read_again(
    table: Table,
    columns: dict[str, ColumnBuilder],
    sampler: RowSampler,
    tokens: MissingTokens,
    threads: int,
    *,
    any_bad: bool,
) -> None:
    """Read the columns that turned out to be text once more where they had been read as numbers.

    any_bad: there were malformed rows, which must be the same ones again.
    """
    asked = [column.want for column in columns.values()]
    lost = {name: set(column.settle()) for name, column in columns.items()}
    again = [name for name, blocks in lost.items() if blocks]
    if not again:
        return
    # The columns that say which rows are malformed come along: strict ones, and where a number may be infinite, all.
    wants = [ColumnRequest(name, ValueKind.TEXT) for name in again]
    wants += [want for want in asked if want.strict or (any_bad and want.kind is ValueKind.NUMBER)]
    needed = set().union(*lost.values())
    raw_blocks = enumerate(table.raw_blocks([want.name for want in wants], silent))
    tasks = (partial(_numbered, i, raw, wants, tokens) for i, raw in raw_blocks if i in needed)
    for i, block in in_order(tasks, threads):
        if block.n_rows != sampler.sizes[i]:
            raise BncliError("the file changed while it was read", where=table.name, hint="run again")
        for name, values in zip(again, block.values, strict=False):
            if i in lost[name]:
                rows = sampler.rows[i]
                columns[name].replace(i, values if rows is None else values.take(pa.array(rows)))


def _numbered(i: int, raw: RawBlock, wants: Sequence[ColumnRequest], tokens: MissingTokens) -> tuple[int, RowBlock]:
    return i, parse(raw, wants, tokens)


def start_columns(table: Table, roles: ColumnRoles, source: Source, *, guess: bool = True) -> dict[str, ColumnBuilder]:
    """Return the columns in use, each with the type that is said or guessed.

    Of a text file not guessed, it is text so far.
    """
    tokens = MissingTokens.of(source.missing_tokens)
    said = roles.categorical | roles.numeric
    form = None if source.decimal is None else NumberForm(source.decimal)
    hint = table.hint()
    open_names = [name for name in roles.attributes if name not in said]
    guessed = {name: ColumnRequest(name, ValueKind.TEXT) for name in open_names}
    if guess or not isinstance(hint, TextBlock):
        guessed = _guess(hint, open_names, source, tokens)
    columns = {}
    for name in roles.attributes:
        want = _column_of_declared_type(name, roles, form) if name in said else guessed[name]
        # The text of a columnar file is meant as text, whatever it looks like; and 1.5 may be no number but 1,5.
        open_text = isinstance(hint, TextBlock) and source.decimal != ","
        free = name not in said and (open_text or want != ColumnRequest(name, ValueKind.TEXT))
        columns[name] = ColumnBuilder(want, free=free, tokens=tokens)
    if roles.class_name not in columns:  # a table of one column may be described without a class
        columns[roles.class_name] = ColumnBuilder(
            ColumnRequest(roles.class_name, ValueKind.TEXT), free=False, tokens=tokens
        )
    if roles.weights is not None:
        want = replace(want_in_form(roles.weights, form), weight=True)
        columns[roles.weights] = ColumnBuilder(want, free=False, tokens=tokens)
    return columns


def _guess(
    hint: dict[str, ColumnRequest] | TextBlock | None, names: Sequence[str], source: Source, tokens: MissingTokens
) -> dict[str, ColumnRequest]:
    """Guess the column types from the file's schema or its first rows; later rows may overrule this.

    INTEGER or NUMBER where there are more than two numbers and nothing else, TEXT elsewhere.
    """
    wants = {name: ColumnRequest(name, ValueKind.TEXT) for name in names}
    if isinstance(hint, TextBlock):
        if source.decimal != ",":
            texts = parse_block(hint, list(wants.values()), tokens).values
            kinds = kinds_of(texts, tokens.number)
            wants = {name: ColumnRequest(name, kind) for name, kind in zip(names, kinds, strict=True)}
    elif hint is not None:
        wants |= {name: hint[name] for name in names if hint[name].form is None or source.dates != "off"}
    return wants


def _column_of_declared_type(name: str, roles: ColumnRoles, form: Form | None) -> ColumnRequest:
    """Return a column whose type is said; `form` is what the user says of numbers."""
    if name in roles.in_form:
        return want_in_form(name, roles.in_form[name][0].form)
    return want_in_form(name, form) if name in roles.numeric else ColumnRequest(name, ValueKind.TEXT)


def parse_file(
    source: Source, begin: int, run: Run, wants: Sequence[ColumnRequest], watched: Sequence[str]
) -> Iterator[_ParsedBlock]:
    """Yield the row blocks of the last files of a table, which may travel."""
    tokens = MissingTokens.of(source.missing_tokens)
    with Table(source, keep=False, memory=run.memory) as table:
        for raw in table.raw_blocks([want.name for want in wants], run.watch, begin):
            found = _parse_and_compact(raw, [(want, EMPTY) for want in wants], watched, tokens)
            yield replace(found, locate=str)
            if found.bad and source.on_bad_row == "fail":
                return


def read_table(source: Source, *, given: Cuts | None, seed: int, run: Run) -> Columns | SampledTable:
    """Return the first round: the table, where its values fit the budget or can be read only once.

    Else a part of its rows.
    """
    inputs = find_inputs(source.paths, keep=False)
    if not all(one.is_regular for one in inputs):
        return first_round(source, given=given, run=run, rounds=ReadingRounds(seed, None))[0]
    files = tuple((one.path, os.stat(one.path).st_size, os.stat(one.path).st_mtime_ns) for one in inputs)
    columns, n_rows = first_round(source, given=given, run=run, rounds=ReadingRounds(seed))
    if n_rows == columns.n_rows or columns.origin is not None:
        return columns
    if given is None:
        what = f"{n_rows:,} rows are more than fit the budget of exact values"
        run.watch(Note(f"{what}: cuts and levels are learnt from {columns.n_rows:,} of them, drawn by the seed"))
    return SampledTable(source, columns, n_rows, files, run)


def code_file(
    source: Source, begin: int, run: Run, cuts: Cuts, labels: tuple[str, ...], roles: ColumnRoles
) -> Iterator[_Coded]:
    """Yield the row blocks of the files of a table from that numbered `begin`."""
    tokens = MissingTokens.of(source.missing_tokens)
    own = tokens if roles.class_name in roles.categorical else tokens_of_class(labels, tokens)
    coded = [
        EncodedSource(ColumnRequest(roles.class_name, ValueKind.TEXT), LevelLookup.of(labels, own), (roles.class_name,))
    ]
    if roles.weights is not None:
        want = ColumnRequest(roles.weights, ValueKind.NUMBER, strict=True, weight=True)
        coded.append(EncodedSource(want, None, (roles.weights,)))
    with Table(source, keep=False, memory=run.memory) as table:
        coded += EncodedSource.all_of(cuts.attributes, set(table.names), tokens)
        task = partial(
            _code, coded=coded, cuts=cuts, tokens=tokens, weights=roles.weights, whole=source.drop_incomplete
        )
        names = [one.want.name for one in coded]
        tasks = (partial(task, raw) for raw in table.raw_blocks(names, run.watch, begin))
        for block, unlabelled, rows in in_order(tasks, run.threads):
            if block.bad and source.on_bad_row == "fail":
                raise _changed(block.bad[0].path)
            yield _Coded(block.n_rows, unlabelled, rows)


def _code(
    raw: RawBlock,
    *,
    coded: Sequence[EncodedSource],
    cuts: Cuts,
    tokens: MissingTokens,
    weights: str | None,
    whole: bool = False,
) -> tuple[RowBlock, int, CodedRows]:
    """Return the rows that count, in codes; `whole`: those without missing values alone."""
    block = parse(raw, [one.want for one in coded], tokens)
    label = coded[0].columns(block.values[0])[cuts.class_name]
    assert isinstance(label, CategoricalColumn)
    first, weight = 1, None
    if weights is not None:
        found = coded[1].columns(block.values[1])[weights]
        assert isinstance(found, NumericColumn)
        first, weight = 2, np.asarray(found.values, np.float64)
    columns: dict[str, Column] = {}
    for one, values in zip(coded[first:], block.values[first:], strict=True):
        columns |= one.columns(values)
    if (label.codes < -1).any():
        raise _unknown(cuts.class_name, block)
    counts = np.ones(block.n_rows, np.bool_) if weight is None else weight > 0
    keep = counts & (label.codes >= 0)
    unlabelled = int(counts.sum() - keep.sum())
    if not keep.all():  # before they are coded: rows that do not count may have values that no cuts know
        rows = np.flatnonzero(keep)
        columns = {name: column.take(rows) for name, column in columns.items()}
        label, weight = label.take(rows), None if weight is None else weight[rows]
    codes = [_codes(columns[a.name], a, block) for a in cuts.attributes]
    if whole and codes:
        rows = np.flatnonzero(np.all([own < a.n_values for own, a in zip(codes, cuts.attributes, strict=True)], axis=0))
        codes = [own[rows] for own in codes]
        label, weight = label.take(rows), None if weight is None else weight[rows]
    return block, unlabelled, CodedRows(codes, label.codes.astype(code_dtype(len(label.levels))), weight)


def _unknown(name: str, block: RowBlock) -> BncliError:
    what = f"column '{name}' has a value that the first reading did not keep"
    return BncliError(what, where=block.locate(0), hint=f"--ignore '{name}', or --cuts with all its levels")


def _codes(column: Column, attribute: Attribute, block: RowBlock) -> Codes:
    found = encode_column(column, replace(attribute, missing=True))
    if found.unseen:
        raise _unknown(attribute.name, block)
    codes: Codes = found.codes.astype(_code_type(attribute), copy=False)
    return codes


def _code_type(attribute: Attribute) -> np.dtype[np.unsignedinteger]:
    """Return the codes, with missing values as the code after the last."""
    return code_dtype(attribute.n_values + 1)


def _changed(path: str) -> BncliError:
    return BncliError("the file changed between two readings", where=path, hint="run again")


def _error(name: str, first: str, before: str, found: str, where: str) -> BncliError:
    quoted = shlex.quote(name)
    hint = f"write it alike in all files; --categorical {quoted} reads it as names, --ignore {quoted} leaves it out"
    return BncliError(f"column '{name}' has {before} in {first}, but {found} here", where=where, hint=hint)


def _coded_blocks(source: Source, cuts: Cuts, labels: tuple[str, ...], run: Run) -> Iterator[_Coded]:
    with Table(source, keep=False, memory=run.memory) as table:
        roles = assign_roles(source, table.names, table.name, cuts, table.nested)
    if run.each_file is None:
        yield from code_file(source, 0, run, cuts, labels, roles)
        return
    for _, blocks, error in run.each_file(code_file, lambda: (cuts, labels, roles)):
        yield from blocks
        if error is not None:
            raise error


def _slice(rows: CodedRows, start: int, stop: int) -> CodedRows:
    weights = None if rows.weights is None else rows.weights[start:stop]
    return CodedRows([c[start:stop] for c in rows.codes], rows.labels[start:stop], weights)


def _joined(pieces: Sequence[CodedRows]) -> CodedRows:
    weights = [rows.weights for rows in pieces if rows.weights is not None]
    return CodedRows(
        [np.concatenate(column) for column in zip(*(rows.codes for rows in pieces), strict=True)],
        np.concatenate([rows.labels for rows in pieces]),
        np.concatenate(weights) if weights else None,
    )
