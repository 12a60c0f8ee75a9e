"""A labelled table read in batches of bounded size under given cuts: codes, classes and weights, in the order of rows.

The batches are a context, which closes the table.

Rows of weight 0 do not exist. The labels are numbered as they are met, since no batch knows those of the next.

Conventions: a text that means a missing value among numbers only, as NA, is a label until all rows are read; if the
other labels turn out to be numbers, as many rows have no class, which is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from bncli.engine.data.columns import UNSEEN, CategoricalColumn, CodedColumn, Column
from bncli.engine.data.encoding import encode_column
from bncli.engine.data.forms import NumberForm
from bncli.engine.data.schema import Attribute, Cuts, NumericAttribute
from bncli.engine.kernels.arrays import Array, Codes, Index, Mask
from bncli.errors import BncliError
from bncli.files.codes import read_codes
from bncli.files.reading.ahead import in_order
from bncli.files.reading.bad_rows import BadRows
from bncli.files.reading.coded import read_coded
from bncli.files.reading.coding import Coded
from bncli.files.reading.numerals import to_numbers
from bncli.files.reading.reader import RawBlock, Table, parse
from bncli.files.reading.roles import assign_roles, tell_left_out
from bncli.files.reading.row_blocks import Kind, RowBlock, Want
from bncli.files.reading.source import Source, Tokens
from bncli.files.reading.text_blocks import BLOCK_SIZE
from bncli.files.reading.vocabulary import strip
from bncli.watch import Run


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
        self._tokens = Tokens.of(source.missing_tokens)
        self._drops, self._run = source.drop_unlabelled, run
        self._numbers: dict[str, int] = {}
        self._n_unlabelled = 0
        self._bad = BadRows(source.on_bad_row, run.watch)
        self._table = Table(source, keep=False, block_size=block_size, memory=run.memory)
        try:
            names = self._table.names
            self._roles = assign_roles(source, names, self._table.name, cuts)
            tell_left_out(self._roles, run.watch)
            self._attributes = tuple(replace(_in_form(a, source), missing=True) for a in cuts.attributes)
            self._coded = Coded.all_of(self._attributes, set(names), self._tokens)
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
        wants.append(Want(self._roles.class_name, Kind.TEXT))
        if self._roles.weights is not None:
            wants.append(Want(self._roles.weights, Kind.NUMBER, strict=True, weight=True))
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

    def _code(self, raw: RawBlock, wants: list[Want]) -> _Part:
        block = parse(raw, wants, self._tokens)
        columns: dict[str, Column] = {}
        for coded, values in zip(self._coded, block.values, strict=False):
            columns |= coded.columns(values)
        codes = tuple(encode_column(columns[a.name], a).codes for a in self._attributes)
        return _Part(raw.path, block, columns, codes)

    def _batch(self, part: _Part) -> CodedBatch:
        """The rows that count."""
        n_coded = len(self._coded)
        encoded = part.block.values[n_coded].dictionary_encode()
        texts, is_missing = strip(encoded.dictionary, self._tokens.text)
        which = encoded.indices.to_numpy()
        weights = np.asarray(part.block.values[n_coded + 1], np.float64) if self.weighted else None
        exists = np.ones(part.block.n_rows, np.bool_) if weights is None else weights > 0
        has_class = ~is_missing[which]
        self._n_unlabelled += int(np.count_nonzero(exists & ~has_class))
        kept = np.flatnonzero(exists & has_class)
        self._check_levels(part, kept)
        if weights is not None:
            self._check_weights(part.block, weights, kept)
        return CodedBatch(
            tuple(codes[kept] for codes in part.codes),
            self._number(texts, which[kept]),
            None if weights is None else weights[kept],
            part.path,
        )

    def _number(self, texts: pa.Array, which: Index) -> Index:
        """The number of each row's label; new labels in the order of the rows."""
        met, first = np.unique(which, return_index=True)
        numbers = np.zeros(len(texts), np.intp)
        for k in met[np.argsort(first)].tolist():
            numbers[k] = self._numbers.setdefault(texts[k].as_py(), len(self._numbers))
        return numbers[which]

    def _check_levels(self, part: _Part, kept: Index) -> None:
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


class EncodedBatches:
    """The rows of a `.codes` file in batches, as `CodedBatches` gives those of another table."""

    def __init__(self, source: Source) -> None:
        self._path, self._rows = source.paths[0], read_coded(source)
        heading = read_codes(self._path).heading
        self.cuts, self.labels = heading.cuts, heading.labels
        self.weighted, self.missing_tokens = heading.weights is not None, heading.missing_tokens

    def __enter__(self) -> EncodedBatches:
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


def whole(weights: Array) -> Mask:
    """Which weights are whole numbers."""
    return np.asarray(weights == np.floor(weights))


WHOLE_WEIGHTS = "multiply all weights by the same power of ten"
"""What to do about others."""


@dataclass(frozen=True)
class _Part:
    """A row block of a file, and its attributes as columns and as codes."""

    path: str
    block: RowBlock
    columns: dict[str, Column]
    codes: tuple[Codes, ...]


def _in_form(attribute: Attribute, source: Source) -> Attribute:
    """The attribute as it is read: with the decimal mark that was typed, unless the cuts say how it is written."""
    if source.decimal is None or not isinstance(attribute, NumericAttribute) or attribute.form is not None:
        return attribute
    return replace(attribute, form=NumberForm(source.decimal))
