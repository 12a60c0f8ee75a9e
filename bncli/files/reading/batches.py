"""A table read for scoring by a model, in batches of bounded size, in the order of the rows.

Only the columns that the model uses must be there, and not even they where that is allowed. Text in a column of numbers
makes its row malformed; a value that the model never saw is coded UNSEEN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import pyarrow as pa

from bncli.engine.data.columns import CategoricalColumn, Column, Columns
from bncli.engine.data.schema import Attribute, Schema
from bncli.errors import ModelError
from bncli.files.codes import is_codes
from bncli.files.reading.ahead import in_order
from bncli.files.reading.bad_rows import BadRows
from bncli.files.reading.coding import Coded, coded_label
from bncli.files.reading.forms import column_read
from bncli.files.reading.reader import RawBlock, Table, parse
from bncli.files.reading.roles import missing_column
from bncli.files.reading.row_blocks import BadRow, Kind, Want
from bncli.files.reading.source import Source, Tokens
from bncli.files.reading.text_blocks import BLOCK_SIZE, TextBlock
from bncli.watch import Run

_N_NAMED = 3


@dataclass(frozen=True)
class Batch:
    """Some consecutive rows: the coded attributes, and the kept columns as the text they were.

    `locate(row)` tells where a row stands: `FILE line L`.
    """

    columns: Columns
    kept: tuple[pa.Array, ...]
    locate: Callable[[int], str]


_Parsed = tuple[Batch, tuple[BadRow, ...]]


class Batches:
    """An opened table whose header fits the model; iterate once. `kept_names` belong to `Batch.kept`.

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
            self._coded = Coded.all_of(read, columns, self._tokens)
            if schema.class_name in needed and schema.class_name in columns:
                self._coded.append(coded_label(schema.class_name, schema.labels, self._tokens))
            there = {attribute.name for attribute in read}
            kept = self._kept_names(keep)
            more = there - set(kept)
            self.kept_names = (*kept, *(name for name in texts if name in more))
        except BaseException:
            self.close()
            raise

    def _kept_names(self, keep: Sequence[str] | Literal["all"]) -> tuple[str, ...]:
        names = self._table.names
        if keep == "all":
            return names
        known = set(names)
        for name in keep:
            if name not in known:
                raise missing_column(name, names, self._table.name)
        return tuple(keep)

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
        wants = [coded.want for coded in self._coded] + [Want(name, Kind.TEXT) for name in self.kept_names]
        names = [want.name for want in wants] or list(self._table.names[:1])
        with self._table:
            yield from in_order(self._tasks(names, wants, begin), self._run.threads)

    def _tasks(self, names: Sequence[str], wants: Sequence[Want], begin: int) -> Iterator[Callable[[], _Parsed] | None]:
        for raw in self._table.raw_blocks(names, self._run.watch, begin):
            yield partial(self._batch, raw, wants)
            if isinstance(raw, TextBlock) and raw.paused:
                yield None

    def _batch(self, raw: RawBlock, wants: Sequence[Want]) -> _Parsed:
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


def tokens_of(source: Source, schema: Schema) -> Tokens:
    """The missing tokens: the user's, else the model's."""
    return Tokens.of(schema.missing_tokens if source.missing_tokens is None else source.missing_tokens)


def absent_columns(attributes: Iterable[Attribute], table: Table, *, allow: bool) -> tuple[str, ...]:
    """The columns that the model uses and the table lacks; ModelError if there are any, unless that is allowed."""
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


def read_batches(
    source: Source,
    schema: Schema,
    needed: Sequence[str],
    *,
    keep: Sequence[str] | Literal["all"] = (),
    run: Run = Run(),
    block_size: int = BLOCK_SIZE,
) -> Iterator[Batch]:
    """The rows in order, in batches; see `Batches`, which tells more about the table."""
    yield from Batches(source, schema, needed, keep=keep, run=run, block_size=block_size)
