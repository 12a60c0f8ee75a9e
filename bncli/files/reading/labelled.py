"""A test set, read whole as a model reads it: its attributes coded by the schema, its class into the model's labels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from bncli.engine.data.columns import UNSEEN, CategoricalColumn, Column, Columns, NumericColumn
from bncli.engine.data.schema import Schema
from bncli.errors import BncliError, ModelError
from bncli.files.reading.ahead import in_order
from bncli.files.reading.assembly import rows_that_count
from bncli.files.reading.bad_rows import BadRows
from bncli.files.reading.batches import absent_columns, tokens_of
from bncli.files.reading.coding import Coded, coded_label
from bncli.files.reading.forms import column_read
from bncli.files.reading.reader import RawBlock, Table, parse
from bncli.files.reading.roles import missing_column
from bncli.files.reading.row_blocks import Kind, RowBlock, Want
from bncli.files.reading.source import Source, Tokens
from bncli.files.reading.text_blocks import BLOCK_SIZE
from bncli.watch import Watch, silent


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
    """The needed attributes (None: all), the class, and the weights if the source names them.

    The class is the column that the model calls so unless the source names another. Rows of weight 0 do not exist;
    rows without a class are an error unless the source drops them. Attributes that are not there are an error, or
    (where the source allows it) left out.
    """
    attributes = schema.attributes if needed is None else [schema.attributes[schema.index(name)] for name in needed]
    tokens = tokens_of(source, schema)
    with Table(source, keep=False, block_size=block_size, memory=memory) as table:
        _check_names(source, schema, table)
        own = set(table.names)
        absent = set(absent_columns(attributes, table, allow=source.allow_missing_columns))
        there = [a for a in attributes if column_read(a, own) not in absent]
        coded = _coded(source, schema, Coded.all_of(there, own, tokens), tokens)
        with BadRows(source.on_bad_row, watch) as bad:
            label, *columns = _read_all(table, coded, tokens, bad, threads, watch)
    weights = None if source.weights is None else np.asarray(_numbers(columns.pop()), np.float64)
    assert isinstance(label, CategoricalColumn)
    keep = rows_that_count(label, weights, table.name, drop_unlabelled=source.drop_unlabelled)
    names = [name for c in coded[1:] for name in c.names]
    whole = Columns(len(label.codes), dict(zip(names, columns, strict=False)), schema.class_name, label, weights)
    return whole if keep.all() else whole.take(np.flatnonzero(keep))


def _coded(source: Source, schema: Schema, attributes: Sequence[Coded], tokens: Tokens) -> list[Coded]:
    """The label, the attributes, the weights if there are any."""
    coded = [coded_label(source.class_name or schema.class_name, schema.labels, tokens), *attributes]
    if source.weights is not None:
        coded.append(Coded(Want(source.weights, Kind.NUMBER, strict=True, weight=True), None, (source.weights,)))
    return coded


def _check_names(source: Source, schema: Schema, table: Table) -> None:
    for said in (source.class_name, source.weights):
        if said is not None and said not in table.names:
            raise missing_column(said, table.names, table.name)
    if source.class_name is None and schema.class_name not in table.names:
        what = f"the data has no column '{schema.class_name}', the class of the model"
        raise ModelError(what, where=table.name, hint="--class names the column that holds the class")


def _read_all(
    table: Table, coded: Sequence[Coded], tokens: Tokens, bad: BadRows, threads: int, watch: Watch
) -> list[Column]:
    wants = [c.want for c in coded]
    raw_blocks = table.raw_blocks([want.name for want in wants], watch)
    blocks: list[list[Column]] = []
    for block, columns in in_order((partial(_code, raw, wants, coded, tokens) for raw in raw_blocks), threads):
        bad.take(block.bad)
        _check_labels(block, columns[0], wants[0].name)
        blocks.append(columns)
    if not sum(len(_numbers(block[0])) for block in blocks):
        raise BncliError("the table has no rows", where=table.name, hint="there must be rows below the header")
    return [_joined(columns) for columns in zip(*blocks, strict=True)]


def _code(
    raw: RawBlock, wants: Sequence[Want], coded: Sequence[Coded], tokens: Tokens
) -> tuple[RowBlock, list[Column]]:
    block = parse(raw, wants, tokens)
    pairs = zip(coded, block.values, strict=True)
    return block, [column for c, values in pairs for column in c.columns(values).values()]


def _check_labels(block: RowBlock, label: Column, name: str) -> None:
    unknown = np.flatnonzero(_numbers(label) == UNSEEN)
    if len(unknown):
        row = int(unknown[0])
        what = f"the class '{name}' has the value '{block.values[0][row].as_py()}', which is no label of the model"
        raise ModelError(what, where=block.locate(row))


def _joined(columns: Sequence[Column]) -> Column:
    values = np.concatenate([_numbers(column) for column in columns])
    first = columns[0]
    if isinstance(first, CategoricalColumn):
        return CategoricalColumn(values, first.levels)
    return NumericColumn(values, first.form)


def _numbers(column: Column) -> np.ndarray:
    return column.codes if isinstance(column, CategoricalColumn) else column.values
