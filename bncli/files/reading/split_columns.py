"""The columns of `--group` and `--time`: which rows of a table belong together, and the order of rows in time.

Rows with equal values in all group columns are one unit. A row that lacks a value in at least one of them is a unit of
its own. The time column holds dates, times or numbers, which are recognised as in attributes; every row must have a
value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from bncli.engine.data.columns import Columns
from bncli.engine.data.schema import DATE_ORDERS, DateForm
from bncli.engine.data.splits import SplitBy
from bncli.engine.kernels.arrays import Array, Index, distinct
from bncli.errors import BncliError, UsageError
from bncli.files.reading.column_builder import ColumnBuilder
from bncli.files.reading.column_meaning import fitting_orders, recognize_format
from bncli.files.reading.dates import to_seconds
from bncli.files.reading.numbers import to_numbers
from bncli.files.reading.source import MissingTokens, Source, ValueKind, shorten
from bncli.files.reading.table import Table
from bncli.files.reading.values import distinct_levels
from bncli.watch import Note, Watch

SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
"""The length of each unit of `--gap` in seconds."""


def read_split_columns(
    columns: Mapping[str, ColumnBuilder], group: Sequence[str], time: str | None, table: Table, source: Source
) -> SplitBy | None:
    """Return the groups and times by which rows are split, or None without `--group` and `--time`.

    The builders keep their blocks. Raises UsageError for a `--gap` that is invalid or does not suit the time column,
    and BncliError if a row has no time, or if the time column holds neither numbers nor dates in one format.
    """
    if not group and time is None:
        return None
    units = times = None
    is_date = False
    if group:
        units = _units([_group_codes(columns[name].copy()) for name in group])
    gap = 0.0
    if time is not None:
        times, is_date = _times(columns[time].copy(), time, table, source)
        if source.gap is not None:
            match = re.fullmatch(rf"(\d+(?:\.\d+)?)({'|'.join(SECONDS)})?", source.gap.strip())
            if match is None or not float(match[1]):
                what = f"--gap takes a duration such as 30d or 12h, or a number above 0, not {source.gap!r}"
                raise UsageError(
                    what,
                    hint=f"the units are {', '.join(SECONDS)}; for a column of numbers, give a number without a unit",
                )
            gap, has_unit = float(match[1]) * SECONDS.get(match[2], 1), match[2] is not None
            if has_unit != is_date:
                holds, example = ("dates", "30d or 12h") if is_date else ("numbers", "30")
                raise UsageError(
                    f"--gap {source.gap}: column '{time}' contains {holds}", hint=f"give for example {example}"
                )
    names = (*group, *([] if time is None else [time]))
    return SplitBy(units, times, gap, names, is_date)


def check_split(rows: Columns, source: Source, where: str, watch: Watch) -> None:
    """Raise BncliError if the rows cannot be split; report rows without a group, and labels in only one group.

    rows: the usable rows of the table.
    """
    by = rows.split_by
    if by is None:
        return
    if by.units is not None:
        names = ", ".join(map(repr, by.group_columns))
        if len(distinct(by.units)) == 1:
            what = f"all rows belong to one group: they have the same value in {names}"
            raise BncliError(what, where=where, hint="group by another column")
        if n_missing := int((by.units < 0).sum()):
            lack, each = ("row lacks", "it is") if n_missing == 1 else ("rows lack", "each is")
            watch(Note(f"{n_missing:,} {lack} a value in {names}; {each} treated as a separate group"))
        assert rows.label is not None
        rows_of = {label: by.units[rows.label.codes == code] for code, label in enumerate(rows.label.levels)}
        rows_of = {label: own for label, own in rows_of.items() if len(own)}
        in_one_group = [label for label, own in rows_of.items() if len(own) > 1 and (own == own[0]).all()]
        if len(in_one_group) == len(rows_of) > 1:
            what = f"each label of '{rows.class_name}' has all its rows in one group of {names}"
            why = "so held-out rows have labels that were not learned, and their metrics do not describe the model"
            watch(Note(f"{what}, {why}; group by another column", warning=True))
            in_one_group = []
        for label in in_one_group:
            what = f"all {len(rows_of[label]):,} rows of the label '{label}' belong to one group"
            watch(Note(f"{what}: the label is never both in training and in held-out rows", warning=True))
    if by.times is not None:
        span = float(by.times.max() - by.times.min())
        if not span:
            raise BncliError(
                f"column '{by.columns[-1]}' has the same time in every row", where=where, hint="choose another column"
            )
        if by.gap >= span:
            length = f"{span / SECONDS['d']:.3g} days" if by.is_date else f"{span:.6g}"
            what = f"--gap {source.gap} is longer than the table, in which '{by.columns[-1]}' spans {length}"
            raise BncliError(what, where=where, hint="shorten --gap")


def _group_codes(column: ColumnBuilder) -> Index:
    """Return a code for the value in each row, (N,), or -1 if it is missing."""
    if column.request.kind is ValueKind.TEXT:
        return column.categorical().codes.astype(np.intp)
    values = column.numeric().values
    codes = np.unique(values, return_inverse=True)[1]
    return np.where(np.isnan(values), -1, codes) if values.dtype.kind == "f" else codes


def _units(columns: list[Index]) -> Index:
    """Return the identifier of each row's unit, (N,); a row that lacks a value has a negative one of its own."""
    units, is_missing = columns[0], columns[0] < 0
    for codes in columns[1:]:
        is_missing |= codes < 0
        units = np.unique(units * (int(codes.max()) + 2) + codes, return_inverse=True)[1]
    units = units.copy()
    units[is_missing] = -1 - np.arange(int(is_missing.sum()))
    return units


def _times(column: ColumnBuilder, name: str, table: Table, source: Source) -> tuple[Array, bool]:
    """Return the time of each row, (N,), in seconds if the column holds dates or times, and whether it does.

    Raises BncliError if a row has no time, or if the values are neither numbers nor dates in one format.
    """
    tokens = MissingTokens.of(source.missing_tokens)
    form = column.request.form
    if column.request.kind is ValueKind.TEXT and form is None:
        present = distinct_levels(column.texts(), tokens.number)
        if to_numbers(present, ())[1] is not None:
            source = replace(source, dates="auto") if source.dates == "off" else source
            recognized = recognize_format(name, present, tokens, source, table.delimiter)
            if recognized is not None:
                form = recognized.form
            elif orders := fitting_orders(present, source.dates):  # one or two distinct dates
                form = DateForm(name, "days", orders[0])
            else:
                seconds = [to_seconds(present, order)[1] for order in DATE_ORDERS]
                fits = max(seconds, key=lambda mask: int(mask.sum()))
                shown, place = present[int(np.argmin(fits))].as_py(), ""
                if column.non_numeric is not None and not fits.any():
                    shown, place = column.non_numeric.text, column.non_numeric.where
                what = f"--time {name}: the column contains neither numbers nor dates in one format, for example "
                what += f"'{shorten(shown)}'{f' ({place})' if place else ''}"
                raise BncliError(what, where=table.name, hint="correct the value, or add --dates dmy or mdy")
        values = column.numeric(form).values
    else:
        values = column.numeric().values
    times = np.asarray(values, np.float64)
    if n_missing := int(np.isnan(times).sum()):
        rows = "1 row has" if n_missing == 1 else f"{n_missing:,} rows have"
        raise BncliError(
            f"--time {name}: {rows} no time", where=table.name, hint="fill in the times, or remove these rows"
        )
    return times, isinstance(form, DateForm)
