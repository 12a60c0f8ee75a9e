"""Check a training table before learning, and warn about findings that make held-out figures misleading.

Columns that learning leaves out, such as identifiers and those of --ignore, are read as well: they may identify rows
that belong together. They are not read from inputs that can be read only once, from tables of more than MOST_ROWS rows,
or if more than MOST_COLUMNS columns are left out.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from bncli.engine.data.columns import Column, Columns, KnownCuts, NumericColumn
from bncli.engine.data.number_formats import DateForm
from bncli.engine.evaluation.table_checks import TableCheck, check_table
from bncli.errors import BncliError
from bncli.files.reading.column_roles import is_codes_table
from bncli.files.reading.source import Source
from bncli.files.reading.table import read_column_names
from bncli.files.reading.training_rows import read_columns
from bncli.watch import Note, Run

MOST_ROWS = 200_000
MOST_COLUMNS = 20


def check_training_table(
    table: Columns, source: Source, run: Run, *, known_cuts: KnownCuts | None = None
) -> TableCheck | None:
    """Return the check of a table, or None if it cannot be checked, and send a warning for each finding.

    known_cuts: as in `check_table`.
    """
    check = check_table(table, _read_left_out(table, source, run), run.threads, known_cuts=known_cuts)
    for finding in () if check is None else check.findings:
        run.watch(Note(finding.message, warning=True))
    return check


def is_read_twice(source: Source) -> bool:
    """Return whether the table is in files that can be read a second time."""
    return all(os.path.isfile(path) or os.path.isdir(path) for path in source.paths)


def _read_left_out(table: Columns, source: Source, run: Run) -> Mapping[str, Column]:
    if (
        table.n_rows > MOST_ROWS
        or source.group
        or source.drop_incomplete
        or is_codes_table(source.paths)
        or not is_read_twice(source)
    ):
        return {}
    dates = {
        column.form.source
        for column in table.as_read.values()
        if isinstance(column, NumericColumn) and isinstance(column.form, DateForm)
    }
    known = {*table.attributes, *dates, table.class_name, source.weights, source.time}
    try:
        names = tuple(name for name in read_column_names(source) if name not in known)
        if not 0 < len(names) <= MOST_COLUMNS:
            return {}
        policy = "skip" if source.bad_rows_file is not None else source.on_bad_row
        again = replace(
            source, use=names, carried=names, categorical=names, numeric=(), ignore=(), on_bad_row=policy,
            class_name=table.class_name, group=(), time=None, gap=None, window=None,
        )  # fmt: skip
        rows = read_columns(again, threads=run.threads)
    except BncliError:  # a failed check must not end the run
        return {}
    return rows.as_read if rows.n_rows == table.n_rows else {}
