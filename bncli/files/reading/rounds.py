"""A table larger than memory, read in two rounds.

The first reads all rows, finds types, levels and missing values, and keeps the values while they fit a budget, then a
sample of the rows (`sampling`). On these cuts are learnt. The second reads the table again and keeps one code a value.
A file that is another than in the first round is an error.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from bncli.engine.data.columns import CategoricalColumn, CodedColumn, Column, Columns, NumericColumn, Origin
from bncli.engine.data.dataset import block_bounds, code_dtype
from bncli.engine.data.encoding import encode_column
from bncli.engine.data.parts import Parts
from bncli.engine.data.schema import Attribute, Cuts
from bncli.engine.kernels.arrays import Codes
from bncli.errors import BncliError
from bncli.files.codes import CodedRows
from bncli.files.reading.ahead import in_order
from bncli.files.reading.coding import Coded, Vocabulary, tokens_of_class
from bncli.files.reading.inputs import find_inputs
from bncli.files.reading.learning import Rounds, first_round
from bncli.files.reading.reader import RawBlock, Table, parse
from bncli.files.reading.roles import Roles, assign_roles
from bncli.files.reading.row_blocks import Kind, RowBlock, Want
from bncli.files.reading.source import Source, Tokens
from bncli.watch import Note, Run


@dataclass(frozen=True)
class Sampled:
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
        """The second round: the rows that count, in order, in pieces as they are read."""
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

    def count(self) -> int:
        """How many rows count: all, or those with a class and a weight, for which these columns are read."""
        if self.rows.weights is None and not self.source.drop_unlabelled:
            return self.n_rows
        bare = Cuts(self.rows.class_name, ())
        return sum(len(rows.labels) for _, _, rows in _coded_blocks(self.source, bare, self.labels, self.run))

    def row_blocks(self, cuts: Cuts) -> Iterator[CodedRows]:
        """The second round in row blocks."""
        waiting: list[CodedRows] = []
        blocks = self.blocks(cuts)
        for start, stop in block_bounds(self.count()):
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
        """The second round into memory."""
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
        attributes = {a.name: CodedColumn(Parts.of(c[:start]), a) for a, c in zip(cuts.attributes, codes, strict=True)}
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


def _changed(path: str) -> BncliError:
    return BncliError("the file changed between two readings", where=path, hint="run again")


def read_table(source: Source, *, given: Cuts | None, seed: int, run: Run) -> Columns | Sampled:
    """The first round: the table, where its values fit the budget or can be read only once; else a part of its rows."""
    inputs = find_inputs(source.paths, keep=False)
    if not all(one.is_regular for one in inputs):
        return first_round(source, given=given, run=run, rounds=Rounds(seed, None))[0]
    files = tuple((one.path, os.stat(one.path).st_size, os.stat(one.path).st_mtime_ns) for one in inputs)
    columns, n_rows = first_round(source, given=given, run=run, rounds=Rounds(seed))
    if n_rows == columns.n_rows or columns.origin is not None:
        return columns
    if given is None:
        what = f"{n_rows:,} rows are more than fit the budget of exact values"
        run.watch(Note(f"{what}: cuts and levels are learnt from {columns.n_rows:,} of them, drawn by the seed"))
    return Sampled(source, columns, n_rows, files, run)


def _code_type(attribute: Attribute) -> np.dtype[np.unsignedinteger]:
    """A missing value has the code after the last."""
    return code_dtype(attribute.n_values + 1)


class _Coded(NamedTuple):
    """A row block: how many rows it has, how many of them lack a class, and the codes of those that count."""

    n_rows: int
    n_unlabelled: int
    rows: CodedRows


def _coded_blocks(source: Source, cuts: Cuts, labels: tuple[str, ...], run: Run) -> Iterator[_Coded]:
    with Table(source, keep=False, memory=run.memory) as table:
        roles = assign_roles(source, table.names, table.name, cuts)
    if run.each_file is None:
        yield from code_file(source, 0, run, cuts, labels, roles)
        return
    for _, blocks, error in run.each_file(code_file, lambda: (cuts, labels, roles)):
        yield from blocks
        if error is not None:
            raise error


def code_file(
    source: Source, begin: int, run: Run, cuts: Cuts, labels: tuple[str, ...], roles: Roles
) -> Iterator[_Coded]:
    """The row blocks of the files of a table from that numbered `begin`."""
    tokens = Tokens.of(source.missing_tokens)
    own = tokens if roles.class_name in roles.categorical else tokens_of_class(labels, tokens)
    coded = [Coded(Want(roles.class_name, Kind.TEXT), Vocabulary.of(labels, own), (roles.class_name,))]
    if roles.weights is not None:
        want = Want(roles.weights, Kind.NUMBER, strict=True, weight=True)
        coded.append(Coded(want, None, (roles.weights,)))
    with Table(source, keep=False, memory=run.memory) as table:
        coded += Coded.all_of(cuts.attributes, set(table.names), tokens)
        task = partial(_code, coded=coded, cuts=cuts, tokens=tokens, weights=roles.weights)
        names = [one.want.name for one in coded]
        tasks = (partial(task, raw) for raw in table.raw_blocks(names, run.watch, begin))
        for block, unlabelled, rows in in_order(tasks, run.threads):
            if block.bad and source.on_bad_row == "fail":
                raise _changed(block.bad[0].path)
            yield _Coded(block.n_rows, unlabelled, rows)


def _code(
    raw: RawBlock, *, coded: Sequence[Coded], cuts: Cuts, tokens: Tokens, weights: str | None
) -> tuple[RowBlock, int, CodedRows]:
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
    return block, unlabelled, CodedRows(codes, label.codes.astype(code_dtype(len(label.levels))), weight)


def _codes(column: Column, attribute: Attribute, block: RowBlock) -> Codes:
    found = encode_column(column, replace(attribute, missing=True))
    if found.unseen:
        raise _unknown(attribute.name, block)
    codes: Codes = found.codes.astype(_code_type(attribute), copy=False)
    return codes


def _unknown(name: str, block: RowBlock) -> BncliError:
    what = f"column '{name}' has a value that the first reading did not keep"
    return BncliError(what, where=block.locate(0), hint=f"--ignore '{name}', or --cuts with all its levels")


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
