"""A table read for scoring by a model, in batches of bounded size, in the order of the rows.

Only the columns that the model uses must be there, and not even they where that is allowed. Text in a column of numbers
makes its row malformed; a value that the model never saw is coded UNSEEN.

Columns of a row block as a model's schema reads them: types and levels are the schema's, never guessed.

Columns that a test set is asked for beside those of its model: their values as they stand in the table.

They become numbers as in a table to learn from: where all values are numbers, and more than two different ones.

A test set, read whole as a model reads it: its attributes coded by the schema, its class into the model's labels.

A labelled table read in batches of bounded size under given cuts: codes, classes and weights, in the order of rows.

The batches are a context, which closes the table.

Rows of weight 0 do not exist. The labels are numbered as they are met, since no batch knows those of the next.

Conventions: a text that means a missing value among numbers only, as NA, is a label until all rows are read; if the
other labels turn out to be numbers, as many rows have no class, which is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bncli.engine.data.columns import MISSING, UNSEEN, CategoricalColumn, CodedColumn, Column, Columns, NumericColumn
from bncli.engine.data.encoding import encode_column
from bncli.engine.data.number_formats import Form, NumberForm
from bncli.engine.data.schema import Attribute, CategoricalAttribute, Cuts, NumericAttribute, Schema
from bncli.engine.kernels.arrays import Array, Codes, Index, Mask
from bncli.errors import BncliError, ModelError, UsageError
from bncli.files.artifacts.codes import is_codes, read_codes
from bncli.files.reading.column_assembly import rows_that_count
from bncli.files.reading.column_builder import SignedCodes, codes_of, distinct_levels, narrow_codes, sort_levels, strip
from bncli.files.reading.column_roles import assign_roles, missing_column, read_coded, report_left_out, split_names
from bncli.files.reading.csv_text import BLOCK_SIZE, BadRows, TextBlock
from bncli.files.reading.numbers import to_numbers
from bncli.files.reading.source import BadRow, ColumnRequest, MissingTokens, RowBlock, Source, ValueKind, Values
from bncli.files.reading.table import RawBlock, Table, in_order, parse
from bncli.files.reading.values import column_read, in_form, want_in_form
from bncli.watch import Run, Watch, silent


@dataclass(frozen=True)
class LevelLookup:
    """What texts mean: codes[i] is the code of texts[i]; a text that is not there is looked at without its blanks."""

    levels: tuple[str, ...]
    missing: tuple[str, ...]
    texts: pa.Array
    codes: SignedCodes

    @staticmethod
    def of(levels: tuple[str, ...], tokens: MissingTokens) -> LevelLookup:
        # A missing token wins over a level of the same text.
        levels_only = [(level, code) for code, level in enumerate(levels) if level not in tokens.text]
        texts = pa.array([*tokens.text, *(level for level, _ in levels_only)], pa.string())
        codes = [MISSING] * len(tokens.text) + [code for _, code in levels_only]
        return LevelLookup(levels, tokens.text, texts, narrow_codes(np.array(codes), len(levels)))

    def encode(self, values: pa.Array) -> SignedCodes:
        """Return the code of every value: a level's, MISSING or UNSEEN."""
        indices = pc.index_in(values, value_set=self.texts)
        if not indices.null_count:
            known: SignedCodes = self.codes[indices.to_numpy()]
            return known
        unknown = pc.is_null(indices)
        codes: SignedCodes = self.codes[indices.fill_null(0).to_numpy()]
        encoded = values.filter(unknown).dictionary_encode()
        found = codes_of(encoded.dictionary, self.levels, self.missing, UNSEEN)
        codes[unknown.to_numpy(zero_copy_only=False)] = found[encoded.indices.to_numpy()]
        return codes


@dataclass(frozen=True)
class EncodedSource:
    """A column as it is asked for, and the attributes that it codes: one, or several made from the same dates.

    `forms` has one for every name, None for plain numbers and for text; `vocabulary` is None for numbers.
    """

    want: ColumnRequest
    vocabulary: LevelLookup | None
    names: tuple[str, ...]
    forms: tuple[Form | None, ...] = (None,)

    @staticmethod
    def of(attribute: Attribute, tokens: MissingTokens) -> EncodedSource:
        """Return the attribute read from a column of its own name."""
        if isinstance(attribute, CategoricalAttribute):
            vocabulary = LevelLookup.of(tuple(attribute.code_of), tokens)
            return EncodedSource(ColumnRequest(attribute.name, ValueKind.TEXT), vocabulary, (attribute.name,))
        form = attribute.form if isinstance(attribute.form, NumberForm) else None
        return EncodedSource(want_in_form(attribute.name, form), None, (attribute.name,), (form,))

    @staticmethod
    def all_of(attributes: Iterable[Attribute], names: Collection[str], tokens: MissingTokens) -> list[EncodedSource]:
        """Return the attributes as they are read from a table with columns of these names, each column once."""
        coded: list[EncodedSource] = []
        dates: dict[str, list[NumericAttribute]] = {}
        for attribute in attributes:
            source = column_read(attribute, names)
            if source != attribute.name and isinstance(attribute, NumericAttribute):
                dates.setdefault(source, []).append(attribute)
            else:
                coded.append(EncodedSource.of(attribute, tokens))
        for source, parts in dates.items():
            forms = tuple(attribute.form for attribute in parts)
            coded.append(EncodedSource(want_in_form(source, forms[0]), None, tuple(part.name for part in parts), forms))
        return coded

    def columns(self, values: Values) -> dict[str, Column]:
        """Return the values of a row block as columns: float64 with NaN where missing, or codes into the levels."""
        if self.vocabulary is None:
            return {name: in_form(values, form) for name, form in zip(self.names, self.forms, strict=True)}
        return {self.names[0]: CategoricalColumn(self.vocabulary.encode(values), self.vocabulary.levels)}


_N_NAMED = 3


@dataclass(frozen=True)
class Batch:
    """Some consecutive rows: the coded attributes, and the kept columns as the text they were.

    `locate(row)` tells where a row stands: `FILE line L`.
    """

    columns: Columns
    kept: tuple[pa.Array, ...]
    locate: Callable[[int], str]

    def slice(self, start: int, stop: int) -> Batch:
        """Return the rows from `start` to before `stop`."""
        if (start, stop) == (0, self.columns.n_rows):
            return self
        kept = tuple(texts.slice(start, stop - start) for texts in self.kept)
        return Batch(self.columns.take(np.arange(start, stop)), kept, lambda row: self.locate(start + row))


_Parsed = tuple[Batch, tuple[BadRow, ...]]


class Batches:
    """An opened table whose header fits the model; iterate once.

    `kept_names` belong to `Batch.kept`; the first of them are those to keep, `carried_names`.

    bad_rows: what takes the malformed rows.

    needed: attributes that are read, and the class, if it is to be read as well where it is there.

    `texts`: needed columns that are kept behind the others, where they are there. `absent`: needed columns that are not
    there, an error unless the source allows it; batches lack them.
    """

    def __init__(
        self,
        source: Source,
        schema: Schema,
        needed: Sequence[str],
        *,
        keep: Sequence[str] | Literal["all"] = (),
        texts: Sequence[str] = (),
        run: Run = Run(),
        block_size: int = BLOCK_SIZE,
    ) -> None:
        if coded := next(filter(is_codes, source.paths), None):
            what = "these are rows in codes, and a model scores the values of a table"
            raise ModelError(what, where=coded, hint="score the table that was encoded")
        self._tokens = tokens_of(source, schema)
        self._class_name = schema.class_name
        self._run = run
        self.bad_rows = BadRows(source.on_bad_row, run.watch)
        self._table = Table(source, keep=False, block_size=block_size, memory=run.memory)
        try:
            columns = set(self._table.names)
            attributes = [schema.attributes[schema.index(name)] for name in needed if name != schema.class_name]
            self.absent = absent_columns(attributes, self._table, allow=source.allow_missing_columns)
            read = [attribute for attribute in attributes if column_read(attribute, columns) in columns]
            self._coded = EncodedSource.all_of(read, columns, self._tokens)
            if schema.class_name in needed and schema.class_name in columns:
                self._coded.append(coded_label(schema.class_name, schema.labels, self._tokens))
            there = {attribute.name for attribute in read}
            kept = self._kept_names(keep)
            more = there - set(kept)
            self.carried_names = kept
            self.kept_names = (*kept, *(name for name in texts if name in more))
        except BaseException:
            self.close()
            raise

    def _kept_names(self, keep: Sequence[str] | Literal["all"]) -> tuple[str, ...]:
        names = self._table.names
        if keep == "all":
            return names
        known, kept = set(names), split_names(keep, names)
        for name in kept:
            if name not in known:
                raise missing_column(name, names, self._table.name)
        return kept

    @property
    def n_skipped(self) -> int:
        """Number of malformed rows left out so far."""
        return self.bad_rows.count

    def __iter__(self) -> Iterator[Batch]:
        with self.bad_rows:
            for batch, bad in self.with_bad_rows():
                self.bad_rows.take(bad)
                if batch.columns.n_rows:
                    yield batch

    def with_bad_rows(self, begin: int = 0) -> Iterator[_Parsed]:
        """Every batch of the files from that numbered `begin`, with its malformed rows, which are left to who asks."""
        wants = [coded.want for coded in self._coded] + [
            ColumnRequest(name, ValueKind.TEXT) for name in self.kept_names
        ]
        names = [want.name for want in wants] or list(self._table.names[:1])
        with self._table:
            yield from in_order(self._tasks(names, wants, begin), self._run.threads)

    def _tasks(
        self, names: Sequence[str], wants: Sequence[ColumnRequest], begin: int
    ) -> Iterator[Callable[[], _Parsed] | None]:
        for raw in self._table.raw_blocks(names, self._run.watch, begin):
            yield partial(self._batch, raw, wants)
            if isinstance(raw, TextBlock) and raw.paused:
                yield None

    def _batch(self, raw: RawBlock, wants: Sequence[ColumnRequest]) -> _Parsed:
        block = parse(raw, wants, self._tokens)
        n_coded = len(self._coded)
        attributes: dict[str, Column] = {}
        for coded, values in zip(self._coded, block.values[:n_coded], strict=True):
            attributes |= coded.columns(values)
        label = attributes.pop(self._class_name, None)
        assert label is None or isinstance(label, CategoricalColumn)
        columns = Columns(block.n_rows, attributes, self._class_name, label)
        return Batch(columns, block.values[n_coded:], block.locate), block.bad

    def close(self) -> None:
        self._table.close()

    def __enter__(self) -> Batches:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Pace(NamedTuple):
    threads: int
    watch: Watch


class CodedBatch(NamedTuple):
    """Rows of one file; codes[i] (rows,) of attribute i, a missing value the last; labels (rows,) as met so far."""

    codes: tuple[Codes, ...]
    labels: Index
    weights: Array | None
    path: str


class CodedBatches:
    """An opened table whose header fits the cuts; iterate once, inside it. `labels` are those met so far.

    Raises BncliError for a value that is not among the levels, a weight that is no whole number and, at the end, for
    rows without a class (unless the source drops them).
    """

    def __init__(self, source: Source, cuts: Cuts, *, run: Run = Run(), block_size: int = BLOCK_SIZE) -> None:
        self.missing_tokens = source.missing_tokens
        self._tokens = MissingTokens.of(source.missing_tokens)
        self._drops, self._run = source.drop_unlabelled, run
        self._drops_incomplete = source.drop_incomplete
        self._numbers: dict[str, int] = {}
        self._n_unlabelled = 0
        self._bad = BadRows(source.on_bad_row, run.watch)
        self._table = Table(source, keep=False, block_size=block_size, memory=run.memory)
        try:
            names = self._table.names
            self._roles = assign_roles(source, names, self._table.name, cuts, self._table.nested)
            report_left_out(self._roles, run.watch)
            self._attributes = tuple(replace(_in_form(a, source), missing=True) for a in cuts.attributes)
            self._coded = EncodedSource.all_of(self._attributes, set(names), self._tokens)
        except BaseException:
            self._table.close()
            raise

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self._numbers)

    @property
    def weighted(self) -> bool:
        return self._roles.weights is not None

    def __iter__(self) -> Iterator[CodedBatch]:
        wants = [coded.want for coded in self._coded]
        wants.append(ColumnRequest(self._roles.class_name, ValueKind.TEXT))
        if self._roles.weights is not None:
            wants.append(ColumnRequest(self._roles.weights, ValueKind.NUMBER, strict=True, weight=True))
        with self._bad:
            raw_blocks = self._table.raw_blocks([want.name for want in wants], self._run.watch)
            for part in in_order((partial(self._code, raw, wants) for raw in raw_blocks), self._run.threads):
                self._bad.take(part.block.bad)
                yield self._batch(part)
        self._check_classes()

    def __enter__(self) -> CodedBatches:
        return self

    def __exit__(self, *_: object) -> None:
        self._table.close()

    def _code(self, raw: RawBlock, wants: list[ColumnRequest]) -> _Part:
        block = parse(raw, wants, self._tokens)
        columns: dict[str, Column] = {}
        for coded, values in zip(self._coded, block.values, strict=False):
            columns |= coded.columns(values)
        codes = tuple(encode_column(columns[a.name], a).codes for a in self._attributes)
        return _Part(raw.path, block, columns, codes)

    def _batch(self, part: _Part) -> CodedBatch:
        """Return the rows that count."""
        n_coded = len(self._coded)
        encoded = part.block.values[n_coded].dictionary_encode()
        texts, is_missing = strip(encoded.dictionary, self._tokens.text)
        which = encoded.indices.to_numpy()
        weights = np.asarray(part.block.values[n_coded + 1], np.float64) if self.weighted else None
        exists = np.ones(part.block.n_rows, np.bool_) if weights is None else weights > 0
        if self._drops_incomplete:
            for codes, attribute in zip(part.codes, self._attributes, strict=True):
                exists &= codes < attribute.n_values
        has_class = ~is_missing[which]
        self._n_unlabelled += int(np.count_nonzero(exists & ~has_class))
        kept = np.flatnonzero(exists & has_class)
        for name, column in part.columns.items():
            if not isinstance(column, CategoricalColumn):
                continue
            unknown = kept[column.codes[kept] == UNSEEN]
            if len(unknown):
                row = int(unknown[0])
                place = next(p for p, coded in enumerate(self._coded) if name in coded.names)
                value = part.block.values[place][row].as_py().strip()
                what = f"column '{name}' has the value '{value}', which is not among its levels in the cuts"
                raise BncliError(what, where=part.block.locate(row), hint="learn the cuts on data that holds it")
        if weights is not None:
            self._check_weights(part.block, weights, kept)
        return CodedBatch(
            tuple(codes[kept] for codes in part.codes),
            self._number(texts, which[kept]),
            None if weights is None else weights[kept],
            part.path,
        )

    def _number(self, texts: pa.Array, which: Index) -> Index:
        """Return the number of each row's label; new labels in the order of the rows."""
        met, first = np.unique(which, return_index=True)
        numbers = np.zeros(len(texts), np.intp)
        for k in met[np.argsort(first)].tolist():
            numbers[k] = self._numbers.setdefault(texts[k].as_py(), len(self._numbers))
        return numbers[which]

    def _check_weights(self, block: RowBlock, weights: Array, kept: Index) -> None:
        broken = kept[~whole(weights[kept])]
        if len(broken):
            row = int(broken[0])
            what = f"the weight {float(weights[row])!r} is no whole number, and counts are exact only of whole ones"
            raise BncliError(what, where=block.locate(row), hint=WHOLE_WEIGHTS)

    def _check_classes(self) -> None:
        """Rows without a class are told together, when all are read."""
        where, name = self._table.name, self._roles.class_name
        n = self._n_unlabelled
        if n and not self._drops:
            raise BncliError(f"the class is missing in {n} row{'s' * (n != 1)}", where=where, hint="--drop-unlabelled")
        doubtful = [label for label in self._numbers if label in self._tokens.number]
        numbers = [label for label in self._numbers if label not in doubtful]
        if not doubtful or not numbers:
            return
        if to_numbers(pa.array(numbers, pa.string()), ())[1] is None:
            what = f"the class '{name}' is a number, and '{doubtful[0]}' in some rows, which means that it is missing"
            raise BncliError(what, where=where, hint=f"--missing +{doubtful[0]} --drop-unlabelled leaves them out")


ROWS_AT_ONCE = 1 << 16


class CodesFileBatches:
    """The rows of a `.codes` file in batches, as `CodedBatches` gives those of another table."""

    def __init__(self, source: Source) -> None:
        self._path, self._rows = source.paths[0], read_coded(source)
        heading = read_codes(self._path).header
        self.cuts, self.labels = heading.cuts, heading.labels
        self.weighted, self.missing_tokens = heading.weights is not None, heading.missing_tokens

    def __enter__(self) -> CodesFileBatches:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open but what is mapped."""

    def __iter__(self) -> Iterator[CodedBatch]:
        rows, columns = self._rows, [c for c in self._rows.attributes.values() if isinstance(c, CodedColumn)]
        assert rows.label is not None
        for start in range(0, rows.n_rows, ROWS_AT_ONCE):
            stop = min(start + ROWS_AT_ONCE, rows.n_rows)
            weights = None if rows.weights is None else rows.weights[start:stop]
            if weights is not None and not whole(weights).all():
                raise BncliError("there are weights that are no whole numbers", where=self._path, hint=WHOLE_WEIGHTS)
            codes = tuple(column.codes.rows(start, stop) for column in columns)
            yield CodedBatch(codes, rows.label.codes[start:stop].astype(np.intp), weights, self._path)


WHOLE_WEIGHTS = "multiply all weights by the same power of ten"
"""What to do about others."""


@dataclass(frozen=True)
class _Part:
    """A row block of a file, and its attributes as columns and as codes."""

    path: str
    block: RowBlock
    columns: dict[str, Column]
    codes: tuple[Codes, ...]


def coded_label(name: str, labels: tuple[str, ...], tokens: MissingTokens) -> EncodedSource:
    """Return the class in the column `name`, coded into these labels."""
    return EncodedSource(
        ColumnRequest(name, ValueKind.TEXT), LevelLookup.of(labels, tokens_of_class(labels, tokens)), (name,)
    )


def tokens_of_class(labels: tuple[str, ...], tokens: MissingTokens) -> MissingTokens:
    """Where all labels are numbers the missing tokens are those of numbers, as in the table that was learnt from."""
    _, wrong = to_numbers(pa.array(labels, pa.string()), ())
    return MissingTokens(tokens.number, tokens.number) if wrong is None else tokens


def tokens_of(source: Source, schema: Schema) -> MissingTokens:
    """Return the missing tokens: the user's, else the model's."""
    return MissingTokens.of(schema.missing_tokens if source.missing_tokens is None else source.missing_tokens)


def absent_columns(attributes: Iterable[Attribute], table: Table, *, allow: bool) -> tuple[str, ...]:
    """Return the columns that the model uses and the table lacks.

    ModelError if there are any, unless that is allowed.
    """
    there = set(table.names)
    columns = dict.fromkeys(column_read(attribute, there) for attribute in attributes)
    missing = tuple(name for name in columns if name not in there)
    if missing and not allow:
        named = ", ".join(f"'{name}'" for name in missing[:_N_NAMED])
        more = f" and {len(missing) - _N_NAMED} more" if len(missing) > _N_NAMED else ""
        nearest = missing_column(missing[0], table.names, "").hint
        hint = nearest or "with --allow-missing-columns its values count as unknown"
        what = f"the data has no column {named}{more}, which the model uses"
        raise ModelError(what, where=table.name, hint=hint)
    return missing


def kept_column_requests(names: Sequence[str], known: Sequence[str], table: Sequence[str]) -> list[ColumnRequest]:
    """Return how those of the names are asked for that the table has and that are not read anyway."""
    return [ColumnRequest(name, ValueKind.TEXT) for name in names if name in table and name not in known]


def kept_text_column(blocks: Sequence[pa.Array], tokens: MissingTokens) -> Column:
    """Return the texts of all row blocks as one column."""
    encoded = pa.chunked_array(blocks, pa.string()).combine_chunks().dictionary_encode()
    texts = encoded.dictionary
    numbers, wrong = to_numbers(texts, tokens.number)
    rows = encoded.indices.to_numpy()
    if wrong is None and len(np.unique(numbers[~np.isnan(numbers)])) > 2:
        return NumericColumn(numbers[rows])
    levels = sort_levels(distinct_levels(texts, tokens.text))
    codes = codes_of(texts, levels, tokens.text)[rows]
    return CategoricalColumn(narrow_codes(codes, len(levels)), levels)


def read_labelled(
    source: Source,
    schema: Schema,
    needed: Sequence[str] | None = None,
    *,
    threads: int = 1,
    watch: Watch = silent,
    block_size: int = BLOCK_SIZE,
    memory: int | None = None,
) -> Columns:
    """Return the needed attributes (None: all), the class, and the weights if the source names them.

    The class is the column that the model calls so unless the source names another. Rows of weight 0 do not exist;
    rows without a class are an error unless the source drops them. Attributes that are not there are an error, or
    (where the source allows it) left out. What is to be carried comes as it stands in the table.
    """
    if path := next(filter(is_codes, source.paths), None):
        what = "these are rows in codes, and a model is tested on the values of a table"
        raise UsageError(what, where=path, hint="name the table that was encoded")
    attributes = schema.attributes if needed is None else [schema.attributes[schema.index(name)] for name in needed]
    tokens = tokens_of(source, schema)
    with Table(source, keep=False, block_size=block_size, memory=memory) as table:
        _check_names(source, schema, table)
        own = set(table.names)
        absent = set(absent_columns(attributes, table, allow=source.allow_missing_columns))
        there = [a for a in attributes if column_read(a, own) not in absent]
        coded = _coded(source, schema, EncodedSource.all_of(there, own, tokens), tokens)
        with BadRows(source.on_bad_row, watch) as bad:
            beside = kept_column_requests(source.carried, [name for c in coded for name in c.names], table.names)
            label, *columns = _read_all(table, coded, beside, tokens, bad, _Pace(threads, watch))
    names = [*(name for c in coded[1:] for name in c.names), *(want.name for want in beside)]
    weights = None
    if source.weights is not None:
        place = len(names) - len(beside) - 1
        weights = np.asarray(_numbers(columns.pop(place)), np.float64)
        names.pop(place)
    assert isinstance(label, CategoricalColumn)
    keep = rows_that_count(label, weights, table.name, drop_unlabelled=source.drop_unlabelled)
    whole = Columns(len(label.codes), dict(zip(names, columns, strict=True)), schema.class_name, label, weights)
    return whole if keep.all() else whole.take(np.flatnonzero(keep))


def _check_names(source: Source, schema: Schema, table: Table) -> None:
    for said in (source.class_name, source.weights):
        if said is not None and said not in table.names:
            raise missing_column(said, table.names, table.name)
    if source.class_name is None and schema.class_name not in table.names:
        what = f"the data has no column '{schema.class_name}', the class of the model"
        raise ModelError(what, where=table.name, hint="--class names the column that holds the class")


def _coded(
    source: Source, schema: Schema, attributes: Sequence[EncodedSource], tokens: MissingTokens
) -> list[EncodedSource]:
    """Return the label, the attributes, the weights if there are any."""
    coded = [coded_label(source.class_name or schema.class_name, schema.labels, tokens), *attributes]
    if source.weights is not None:
        coded.append(
            EncodedSource(
                ColumnRequest(source.weights, ValueKind.NUMBER, strict=True, weight=True), None, (source.weights,)
            )
        )
    return coded


def _read_all(
    table: Table,
    coded: Sequence[EncodedSource],
    beside: Sequence[ColumnRequest],
    tokens: MissingTokens,
    bad: BadRows,
    pace: _Pace,
) -> list[Column]:
    wants = [*(c.want for c in coded), *beside]
    raw_blocks = table.raw_blocks([want.name for want in wants], pace.watch)
    blocks: list[list[Column]] = []
    texts: list[Sequence[Values]] = []
    for block, columns in in_order((partial(_code, raw, wants, coded, tokens) for raw in raw_blocks), pace.threads):
        bad.take(block.bad)
        texts.append(block.values[len(coded) :])
        label = columns[0]
        name = wants[0].name
        unknown = np.flatnonzero(_numbers(label) == UNSEEN)
        if len(unknown):
            row = int(unknown[0])
            what = f"the class '{name}' has the value '{block.values[0][row].as_py()}', which is no label of the model"
            raise ModelError(what, where=block.locate(row))
        blocks.append(columns)
    if not sum(len(_numbers(block[0])) for block in blocks):
        raise BncliError("the table has no rows", where=table.name, hint="there must be rows below the header")
    carried = [kept_text_column(values, tokens) for values in zip(*texts, strict=True)]
    return [*(_joined(columns) for columns in zip(*blocks, strict=True)), *carried]


def _code(
    raw: RawBlock, wants: Sequence[ColumnRequest], coded: Sequence[EncodedSource], tokens: MissingTokens
) -> tuple[RowBlock, list[Column]]:
    block = parse(raw, wants, tokens)
    pairs = zip(coded, block.values, strict=False)  # what is carried follows
    return block, [column for c, values in pairs for column in c.columns(values).values()]


def _numbers(column: Column) -> np.ndarray:
    return column.codes if isinstance(column, CategoricalColumn) else column.values


def _joined(columns: Sequence[Column]) -> Column:
    values = np.concatenate([_numbers(column) for column in columns])
    first = columns[0]
    if isinstance(first, CategoricalColumn):
        return CategoricalColumn(values, first.levels)
    return NumericColumn(values, first.form)


def whole(weights: Array) -> Mask:
    """Return which weights are whole numbers."""
    return np.asarray(weights == np.floor(weights))


def _in_form(attribute: Attribute, source: Source) -> Attribute:
    """Return the attribute as read: with the typed decimal mark, unless the cuts say how it is written."""
    if source.decimal is None or not isinstance(attribute, NumericAttribute) or attribute.form is not None:
        return attribute
    return replace(attribute, form=NumberForm(source.decimal))
