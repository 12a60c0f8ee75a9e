"""A test set, read whole as a model reads it: its attributes coded by the schema, its class into the model's labels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from bncli.engine.data.columns import UNSEEN, CategoricalColumn, Column, Columns, NumericColumn
from bncli.engine.data.schema import Schema
from bncli.errors import BncliError, ModelError, UsageError
from bncli.files.codes import is_codes
from bncli.files.reading.ahead import in_order
from bncli.files.reading.assembly import rows_that_count
from bncli.files.reading.bad_rows import BadRows
from bncli.files.reading.batches import absent_columns, tokens_of
from bncli.files.reading.carried import carried_column, carried_wants
from bncli.files.reading.coding import Coded, coded_label
from bncli.files.reading.forms import column_read
from bncli.files.reading.reader import RawBlock, Table, parse
from bncli.files.reading.roles import missing_column
from bncli.files.reading.row_blocks import Kind, RowBlock, Values, Want
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
        coded = _coded(source, schema, Coded.all_of(there, own, tokens), tokens)
        with BadRows(source.on_bad_row, watch) as bad:
            beside = carried_wants(source.carried, [name for c in coded for name in c.names], table.names)
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


class _Pace(NamedTuple):
    threads: int
    watch: Watch


def _read_all(
    table: Table, coded: Sequence[Coded], beside: Sequence[Want], tokens: Tokens, bad: BadRows, pace: _Pace
) -> list[Column]:
    wants = [*(c.want for c in coded), *beside]
    raw_blocks = table.raw_blocks([want.name for want in wants], pace.watch)
    blocks: list[list[Column]] = []
    texts: list[Sequence[Values]] = []
    for block, columns in in_order((partial(_code, raw, wants, coded, tokens) for raw in raw_blocks), pace.threads):
        bad.take(block.bad)
        texts.append(block.values[len(coded) :])
        _check_labels(block, columns[0], wants[0].name)
        blocks.append(columns)
    if not sum(len(_numbers(block[0])) for block in blocks):
        raise BncliError("the table has no rows", where=table.name, hint="there must be rows below the header")
    carried = [carried_column(values, tokens) for values in zip(*texts, strict=True)]
    return [*(_joined(columns) for columns in zip(*blocks, strict=True)), *carried]


def _code(
    raw: RawBlock, wants: Sequence[Want], coded: Sequence[Coded], tokens: Tokens
) -> tuple[RowBlock, list[Column]]:
    block = parse(raw, wants, tokens)
    pairs = zip(coded, block.values, strict=False)  # what is carried follows
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
