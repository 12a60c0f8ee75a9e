"""Read rows by the schema of a model: in batches to score, or as a whole to test the model.

Types and levels come from the schema and are never guessed. A string that is not a number makes its row malformed if it
is in a numeric column. In a categorical column, a value not seen in training gets the code UNSEEN. Only the columns
that the model uses must be in the table, and not even these if the source allows missing columns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bncli.engine.data.columns import MISSING, UNSEEN, CategoricalColumn, Column, Columns, NumericColumn
from bncli.engine.data.schema import Attribute, CategoricalAttribute, Form, NumberForm, NumericAttribute, Schema
from bncli.errors import BncliError, ModelError, UsageError
from bncli.files.artifacts.codes import is_codes
from bncli.files.reading.column_builder import ColumnBuilder, encode_texts
from bncli.files.reading.column_roles import choose_split_columns, missing_column, split_names, usable_rows
from bncli.files.reading.csv_text import TextBlock
from bncli.files.reading.numbers import to_numbers
from bncli.files.reading.source import (
    BadRow,
    ColumnRequest,
    MissingTokens,
    RowBlock,
    Source,
    ValueKind,
    Values,
    list_names,
)
from bncli.files.reading.split_columns import check_split, read_split_columns
from bncli.files.reading.table import BadRows, RawBlock, Table, parse, run_in_order
from bncli.files.reading.values import (
    SignedCodes,
    column_in_form,
    column_of_attribute,
    distinct_levels,
    encode_levels,
    narrow_codes,
    request_in_form,
    sort_levels,
)
from bncli.watch import Run, Watch, silent

_N_NAMED = 3


@dataclass(frozen=True)
class LevelLookup:
    """A lookup of the codes of strings for given levels: codes[i] is the code of texts[i].

    A string that is not in `texts` is stripped of blanks and looked up again.
    """

    levels: tuple[str, ...]
    missing: tuple[str, ...]
    texts: pa.Array
    codes: SignedCodes

    @staticmethod
    def of(levels: tuple[str, ...], tokens: MissingTokens) -> LevelLookup:
        # A missing token overrides a level with the same text.
        levels_only = [(level, code) for code, level in enumerate(levels) if level not in tokens.text]
        texts = pa.array([*tokens.text, *(level for level, _ in levels_only)], pa.string())
        codes = [MISSING] * len(tokens.text) + [code for _, code in levels_only]
        return LevelLookup(levels, tokens.text, texts, narrow_codes(np.array(codes), len(levels)))

    def encode(self, values: pa.Array) -> SignedCodes:
        """Return the code of each string, (N,): the code of its level, MISSING or UNSEEN."""
        if pa.types.is_dictionary(values.type):
            codes: SignedCodes = self.encode(values.dictionary)[values.indices.to_numpy()]
            return codes
        indices = pc.index_in(values, value_set=self.texts)
        if not indices.null_count:
            known: SignedCodes = self.codes[indices.to_numpy()]
            return known
        unknown = pc.is_null(indices)
        codes = self.codes[indices.fill_null(0).to_numpy()]
        encoded = values.filter(unknown).dictionary_encode()
        stripped_codes = encode_levels(encoded.dictionary, self.levels, self.missing, UNSEEN)
        codes[unknown.to_numpy(zero_copy_only=False)] = stripped_codes[encoded.indices.to_numpy()]
        return codes


@dataclass(frozen=True)
class ColumnEncoder:
    """A column to read, and the attributes that it becomes: one, or several parts of the same dates.

    - lookup: the codes of the levels, or None for numbers
    - names, forms: the name and the form of each attribute; the form is None for plain numbers and for text
    """

    request: ColumnRequest
    lookup: LevelLookup | None
    names: tuple[str, ...]
    forms: tuple[Form | None, ...] = (None,)

    @staticmethod
    def all_of(attributes: Iterable[Attribute], names: Collection[str], tokens: MissingTokens) -> list[ColumnEncoder]:
        """Return the encoders of the attributes for a table with the columns `names`; each date column is read once."""
        encoders: list[ColumnEncoder] = []
        parts_of: dict[str, list[NumericAttribute]] = {}
        for attribute in attributes:
            column, name = column_of_attribute(attribute, names), attribute.name
            if isinstance(attribute, CategoricalAttribute):
                lookup = LevelLookup.of(tuple(attribute.code_of), tokens)
                encoders.append(ColumnEncoder(ColumnRequest(name, ValueKind.TEXT), lookup, (name,)))
            elif column != name:
                parts_of.setdefault(column, []).append(attribute)
            else:
                form = attribute.form if isinstance(attribute.form, NumberForm) else None
                encoders.append(ColumnEncoder(request_in_form(name, form), None, (name,), (form,)))
        for column, parts in parts_of.items():
            forms = tuple(attribute.form for attribute in parts)
            names_of_parts = tuple(attribute.name for attribute in parts)
            encoders.append(ColumnEncoder(request_in_form(column, forms[0]), None, names_of_parts, forms))
        return encoders

    @staticmethod
    def of_label(name: str, labels: tuple[str, ...], tokens: MissingTokens, *, as_text: bool = False) -> ColumnEncoder:
        """Return the encoder of the class in the column `name`.

        If all labels are numbers, the missing tokens for numbers apply, as in the training table, unless the class was
        declared categorical (`as_text`).
        """
        if not as_text and to_numbers(pa.array(labels, pa.string()), ())[1] is None:
            tokens = MissingTokens(tokens.number, tokens.number)
        return ColumnEncoder(ColumnRequest(name, ValueKind.TEXT), LevelLookup.of(labels, tokens), (name,))

    @staticmethod
    def of_weights(name: str) -> ColumnEncoder:
        return ColumnEncoder(ColumnRequest(name, ValueKind.NUMBER, strict=True, weight=True), None, (name,))

    def columns(self, values: Values) -> dict[str, Column]:
        """Return the attributes, keyed by name, that the values of the column become."""
        if self.lookup is None:
            return {name: column_in_form(values, form) for name, form in zip(self.names, self.forms, strict=True)}
        return {self.names[0]: CategoricalColumn(self.lookup.encode(values), self.lookup.levels)}


def parse_encoded(
    raw: RawBlock, encoders: Sequence[ColumnEncoder], requests: Sequence[ColumnRequest], tokens: MissingTokens
) -> tuple[RowBlock, list[dict[str, Column]]]:
    """Parse a raw block; return the requested columns, and for each encoder its encoded columns, keyed by name.

    `requests` must begin with the requests of the encoders, in the same order.
    """
    block = parse(raw, requests, tokens, len(encoders))
    return block, [encoder.columns(values) for encoder, values in zip(encoders, block.values, strict=False)]


@dataclass(frozen=True)
class Batch:
    """Consecutive rows: the attributes read, and the kept columns as strings, as they are in the file.

    locate: a function that returns the location of row t, such as `FILE line L`.
    """

    columns: Columns
    kept: tuple[pa.Array, ...]
    locate: Callable[[int], str]

    def slice(self, start: int, stop: int) -> Batch:
        if (start, stop) == (0, self.columns.n_rows):
            return self
        kept = tuple(texts.slice(start, stop - start) for texts in self.kept)
        return Batch(self.columns.take(np.arange(start, stop)), kept, lambda row: self.locate(start + row))


class Batches:
    """An open table to score, iterated once in batches of bounded size, in the order of the rows.

    - needed: the names of the attributes to read; if it includes the class, the class is read if the table has it
    - keep, copied_names: the columns to copy to the output as strings
    - texts: attributes whose strings are kept too, if they are read
    - kept_names: the names of all columns kept as strings, in the order of `Batch.kept`
    - absent: columns of needed attributes that the table lacks; ModelError is raised unless the source allows them
    - bad_rows: receives the malformed rows

    Raises ModelError also for a `.codes` file, and UsageError if a column in `keep` does not exist.
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
    ) -> None:
        if coded := next(filter(is_codes, source.paths), None):
            what = "this file contains codes, but a model scores the values of a table"
            raise ModelError(what, where=coded, hint="score the original table")
        stated = schema.missing_tokens if source.missing_tokens is None else source.missing_tokens
        self._tokens = MissingTokens.of(stated)
        self._class_name = schema.class_name
        self._run = run
        self.bad_rows = BadRows(source.on_bad_row, run.watch)
        self._table = Table(source, keep=False, memory=run.memory)
        try:
            names = set(self._table.names)
            attributes = [schema.attributes[schema.index(name)] for name in needed if name != schema.class_name]
            self.absent = _absent_columns(attributes, self._table, allow=source.allow_missing_columns)
            read = [attribute for attribute in attributes if column_of_attribute(attribute, names) in names]
            self._encoders = ColumnEncoder.all_of(read, names, self._tokens)
            if schema.class_name in needed and schema.class_name in names:
                self._encoders.append(ColumnEncoder.of_label(schema.class_name, schema.labels, self._tokens))
            self.copied_names = self._table.names if keep == "all" else split_names(keep, names)
            for name in self.copied_names:
                if name not in names:
                    raise missing_column(name, self._table.names, self._table.name)
            others = {attribute.name for attribute in read}.difference(self.copied_names)
            self.kept_names = (*self.copied_names, *(name for name in texts if name in others))
        except BaseException:
            self._table.close()
            raise

    def __iter__(self) -> Iterator[Batch]:
        with self.bad_rows:
            for batch, bad in self.with_bad_rows():
                self.bad_rows.take(bad)
                if batch.columns.n_rows:
                    yield batch

    def with_bad_rows(self, begin: int = 0) -> Iterator[tuple[Batch, tuple[BadRow, ...]]]:
        """Yield each batch, starting at file `begin`, with its malformed rows, which the caller must handle."""
        with self._table:
            yield from run_in_order(self._tasks(begin), self._run.threads)

    def _tasks(self, begin: int) -> Iterator[Callable[[], tuple[Batch, tuple[BadRow, ...]]] | None]:
        requests = [encoder.request for encoder in self._encoders]
        requests += [ColumnRequest(name, ValueKind.TEXT) for name in self.kept_names]
        names = [request.name for request in requests] or list(self._table.names[:1])
        for raw in self._table.raw_blocks(names, self._run.watch, begin):
            yield partial(self._read_batch, raw, requests)
            if isinstance(raw, TextBlock) and raw.paused:
                yield None

    def _read_batch(self, raw: RawBlock, requests: Sequence[ColumnRequest]) -> tuple[Batch, tuple[BadRow, ...]]:
        block, parts = parse_encoded(raw, self._encoders, requests, self._tokens)
        attributes = {name: column for columns in parts for name, column in columns.items()}
        label = attributes.pop(self._class_name, None)
        assert label is None or isinstance(label, CategoricalColumn)
        columns = Columns(block.n_rows, attributes, self._class_name, label)
        return Batch(columns, block.values[len(self._encoders) :], block.locate), block.bad

    def __enter__(self) -> Batches:
        return self

    def __exit__(self, *_: object) -> None:
        self._table.close()


def _absent_columns(attributes: Iterable[Attribute], table: Table, *, allow: bool) -> tuple[str, ...]:
    """Return the columns of the attributes that the table lacks; unless `allow`, raise ModelError if there are any."""
    names = set(table.names)
    columns = dict.fromkeys(column_of_attribute(attribute, names) for attribute in attributes)
    absent = tuple(name for name in columns if name not in names)
    if absent and not allow:
        named = list_names([f"'{name}'" for name in absent], _N_NAMED)
        similar = missing_column(absent[0], table.names, "").hint
        plural, its = ("s", "their") if len(absent) > 1 else ("", "its")
        hint = similar or f"add --allow-missing-columns to treat {its} values as unknown"
        what = f"the table has no column{plural} {named}, which the model uses"
        raise ModelError(what, where=table.name, hint=hint)
    return absent


def read_labelled(
    source: Source,
    schema: Schema,
    needed: Sequence[str] | None = None,
    *,
    keep_unlabelled: bool = False,
    threads: int = 1,
    watch: Watch = silent,
    memory: int | None = None,
) -> Columns:
    """Read a test set: the needed attributes, the class, and the weights if the source names a column of weights.

    needed: names of attributes, or None for all. The class is in the column of the model's class name unless the source
    names another column. Rows of weight 0 are dropped. Rows without a class are an error, unless the source drops them
    or `keep_unlabelled` keeps them with the label MISSING. Raises ModelError for a label that the model does not have,
    and for missing columns unless the source allows them. Columns in `source.carried` are returned too, with their own
    types, and the columns of groups and of time as `split_by`.
    """
    if path := next(filter(is_codes, source.paths), None):
        what = "this file contains codes, but a model is tested on the values of a table"
        raise UsageError(what, where=path, hint="give the original table")
    attributes = schema.attributes if needed is None else [schema.attributes[schema.index(name)] for name in needed]
    tokens = MissingTokens.of(schema.missing_tokens if source.missing_tokens is None else source.missing_tokens)
    class_column = source.class_name or schema.class_name
    with Table(source, keep=False, memory=memory) as table:
        for stated in (source.class_name, source.weights):
            if stated is not None and stated not in table.names:
                raise missing_column(stated, table.names, table.name)
        if class_column not in table.names:
            what = f"the table has no column '{class_column}', the class of the model"
            raise ModelError(what, where=table.name, hint="give the column that contains the class with --class")

        # Which columns are read, and as what.
        names = set(table.names)
        group, time = choose_split_columns(source, table.names, table.name, table.nested)
        builders = {
            name: ColumnBuilder(ColumnRequest(name, ValueKind.TEXT), is_free=False, tokens=tokens)
            for name in (*group, *([] if time is None else [time]))
        }
        absent = set(_absent_columns(attributes, table, allow=source.allow_missing_columns))
        present = [a for a in attributes if column_of_attribute(a, names) not in absent]
        # The label comes first and the weights last; their columns may have the names of attributes.
        encoders = [ColumnEncoder.of_label(class_column, schema.labels, tokens)]
        encoders += ColumnEncoder.all_of(present, names, tokens)
        encoders += [] if source.weights is None else [ColumnEncoder.of_weights(source.weights)]
        encoded_names = {name for encoder in encoders for name in encoder.names}
        carried = [name for name in source.carried if name in names and name not in encoded_names]
        # block.values below has the columns in this order: encoded, carried, those of groups and time
        requests = [encoder.request for encoder in encoders]
        requests += [ColumnRequest(name, ValueKind.TEXT) for name in (*carried, *builders)]

        # Read and encode the blocks of rows.
        blocks: list[list[tuple[str, Column]]] = []
        carried_blocks: list[Sequence[Values]] = []
        with BadRows(source.on_bad_row, watch) as bad_rows:
            raw_blocks = table.raw_blocks([request.name for request in requests], watch)
            tasks = (partial(parse_encoded, raw, encoders, requests, tokens) for raw in raw_blocks)
            for block, parts in run_in_order(tasks, threads):
                bad_rows.take(block.bad)
                unseen = np.flatnonzero(_values(parts[0][class_column]) == UNSEEN)
                if len(unseen):
                    row = int(unseen[0])
                    value = block.values[0][row].as_py()
                    what = f"the class '{class_column}' has the value '{value}', which is not a label of the model"
                    raise ModelError(
                        what, where=block.locate(row), hint="correct the value, or fit again with rows of that label"
                    )
                blocks.append([item for columns in parts for item in columns.items()])
                carried_blocks.append(block.values[len(encoders) : len(encoders) + len(carried)])
                for builder, values in zip(
                    builders.values(), block.values[len(encoders) + len(carried) :], strict=True
                ):
                    builder.add(encode_texts(values, builder.shared), block.locate)
            if not sum(len(_values(columns[0][1])) for columns in blocks):
                raise BncliError("the table has no rows", where=table.name, hint="add rows below the header")
        split_by = read_split_columns(builders, group, time, table, source)

    # Join the blocks of each column.
    joined: list[tuple[str, Column]] = []
    for items in zip(*blocks, strict=True):  # the name and the values of a column in every block
        (name, first), values = items[0], np.concatenate([_values(column) for _, column in items])
        if isinstance(first, CategoricalColumn):
            joined.append((name, CategoricalColumn(values, first.levels)))
        else:
            joined.append((name, NumericColumn(values, first.form)))
    label = joined.pop(0)[1]
    weights = None if source.weights is None else np.asarray(_values(joined.pop()[1]), np.float64)
    assert isinstance(label, CategoricalColumn)
    columns = dict(joined)
    for name, texts_of_blocks in zip(carried, zip(*carried_blocks, strict=True), strict=True):
        columns[name] = _carried_column(texts_of_blocks, tokens)

    # Drop the rows that cannot be used.
    keep = usable_rows(
        label, weights, table.name, drop_unlabelled=source.drop_unlabelled, keep_unlabelled=keep_unlabelled
    )
    rows = Columns(len(label.codes), columns, schema.class_name, label, weights, split_by=split_by)
    rows = rows if keep.all() else rows.take(np.flatnonzero(keep))
    check_split(rows, source, table.name, watch)
    return rows


def _carried_column(blocks: Sequence[pa.Array], tokens: MissingTokens) -> Column:
    """Return the strings of all row blocks as a column.

    It is numeric if all values that are not missing are numbers, and more than two of them are distinct.
    """
    encoded = pa.chunked_array(blocks, pa.string()).combine_chunks().dictionary_encode()
    texts, rows = encoded.dictionary, encoded.indices.to_numpy()
    numbers, wrong = to_numbers(texts, tokens.number)
    if wrong is None and len(np.unique(numbers[~np.isnan(numbers)])) > 2:
        return NumericColumn(numbers[rows])
    levels = sort_levels(distinct_levels(texts, tokens.text))
    codes = encode_levels(texts, levels, tokens.text)[rows]
    return CategoricalColumn(narrow_codes(codes, len(levels)), levels)


def _values(column: Column) -> np.ndarray:
    return column.codes if isinstance(column, CategoricalColumn) else column.values
