"""From the values that a file holds to the values that are wanted, and what is wrong with those that do not fit.

Columns that are written in a form: their text as numbers, and the columns that the parts of a date make.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bncli.engine.data.columns import NumericColumn
from bncli.engine.data.number_formats import DATE_PARTS, DateForm, Form, NumberForm
from bncli.engine.data.schema import Attribute, source_column
from bncli.engine.kernels.arrays import Array, Mask
from bncli.files.reading.column_builder import narrow_numbers, strip
from bncli.files.reading.dates import DAY, part_of, to_seconds
from bncli.files.reading.numbers import all_numbers, to_numbers, to_numbers_by
from bncli.files.reading.source import BLANKS, ColumnRequest, MissingTokens, ValueKind, Values, is_text

_N_SHOWN = 40
_LEAST_WEIGHT, _MOST_WEIGHT = 1e-100, 1e100
"""Sums of weights, and products of a few of them, stay finite."""


def read_by(form: Form, texts: pa.Array, missing: Sequence[str]) -> tuple[Array, Mask | None]:
    """Return the number, or the seconds of the date, of each text.

    A mask of the texts that are neither that nor missing.
    """
    if isinstance(form, NumberForm) and form.decimal == ".":  # most such columns are plain numbers and a few words
        numbers = all_numbers(texts, (*missing, *form.words))
        if numbers is not None:
            return numbers.astype(np.float64), None
    encoded = texts.dictionary_encode()
    distinct, wrong = read_distinct(form, encoded.dictionary, missing)
    codes = encoded.indices.to_numpy()
    return distinct[codes], None if wrong is None else wrong[codes]


def read_distinct(form: Form, texts: pa.Array, missing: Sequence[str]) -> tuple[Array, Mask | None]:
    """As `read_by`, looking at every text."""
    if isinstance(form, NumberForm):
        missing = (*missing, *form.words)
    trimmed, is_missing = strip(texts, missing)
    values, fits = to_numbers_by(trimmed, form) if isinstance(form, NumberForm) else to_seconds(trimmed, form.order)
    values[is_missing] = np.nan
    wrong = ~(fits | is_missing)
    return values, wrong if wrong.any() else None


def form_in_words(form: Form) -> str:
    """Return what a value should have been that is not in this form."""
    if isinstance(form, NumberForm):
        return f"a number with a decimal {'comma' if form.decimal == ',' else 'point'}"
    return {
        "time": "a time of the day",
        "ymd": "a date, the year first",
        "dmy": "a date, the day first",
        "mdy": "a date, the month first",
        "yymd": "a date, the year first, of two digits",
    }[form.order]


def want_in_form(name: str, form: Form | None) -> ColumnRequest:
    """Return the column asked for as numbers, written in this form; a row that is not is malformed."""
    return (
        ColumnRequest(name, ValueKind.NUMBER, strict=True)
        if form is None
        else ColumnRequest(name, ValueKind.TEXT, strict=True, form=form)
    )


def column_read(attribute: Attribute, names: Collection[str]) -> str:
    """Return the column that an attribute is read from: that of its dates, else one of its own name."""
    source = source_column(attribute)
    return attribute.name if source not in names and attribute.name in names else source


def in_form(values: NDArray[np.generic], form: Form | None) -> NumericColumn:
    """Return the column of one attribute, from the numbers or seconds that its source was read as."""
    if isinstance(form, DateForm):
        return NumericColumn(part_of(np.asarray(values, np.float64), form.part, form.origin), form)
    return NumericColumn(np.asarray(values, np.float64), form)


def parts_of_dates(seconds: Array, form: DateForm, keep: Mask) -> dict[str, NumericColumn]:
    """Return the parts that vary over the rows to keep, by name; `days` counts from the earliest of them."""
    seconds = seconds.astype(np.float64)
    present = seconds[keep & ~np.isnan(seconds)]
    origin = int(present.min() // DAY) if len(present) else 0
    columns = {}
    for part in ("hour",) if form.order == "time" else DATE_PARTS:
        of_part = form.of_part(part, origin if part == "days" else 0)
        column = in_form(seconds, of_part)
        values = column.values[keep]
        if _varies(values[~np.isnan(values)]):
            columns[f"{form.source}.{part}"] = _narrow(column)
    return columns


def _varies(values: NDArray[np.generic]) -> bool:
    return bool(len(values)) and bool((values != values[0]).any())


def _narrow(column: NumericColumn) -> NumericColumn:
    """Whole numbers in the narrowest type, where none is missing."""
    if np.isnan(column.values).any():
        return column
    return NumericColumn(narrow_numbers(column.values.astype(np.int64)), column.form)


def resolve(want: ColumnRequest, values: Values, tokens: MissingTokens) -> tuple[Values, Mask | None]:
    """Return the values as they are wanted, and a mask of the rows that are malformed by them (None: none is).

    Text that should have been numbers becomes numbers if it can; if not, it stays text or is at fault, as `want` says.
    """
    wrong = None
    if want.form is not None and is_text(values):
        values, wrong = read_by(want.form, values, tokens.number)
    elif want.kind is not ValueKind.TEXT and is_text(values):
        numbers, wrong = to_numbers(values, tokens.number)
        if wrong is not None and not want.strict:
            return values, None
        values = numbers
    if want.weight:
        unfit = ~((values == 0) | ((values >= _LEAST_WEIGHT) & (values <= _MOST_WEIGHT)))
        wrong = unfit if wrong is None else wrong | unfit
    return values, wrong if wrong is not None and wrong.any() else None


def find_faults(
    wants: Sequence[ColumnRequest], found: Sequence[Values], wrongs: Sequence[Mask | None]
) -> dict[int, str]:
    """Return what is wrong with each malformed row, by its first column that is at fault; rows ascending."""
    faults: dict[int, str] = {}
    for want, values, wrong in zip(wants, found, wrongs, strict=True):
        for row in () if wrong is None else np.flatnonzero(wrong):
            faults.setdefault(int(row), _fault(want, values, int(row)))
    return dict(sorted(faults.items()))


def _fault(want: ColumnRequest, values: Values, row: int) -> str:
    value = values[row].as_py().strip(BLANKS) if is_text(values) else str(values[row])
    shown = f"'{value}'" if len(value) <= _N_SHOWN else f"'{value[:_N_SHOWN]}...'"
    if want.weight:
        return f"the weight in column '{want.name}' is {_weight_fault(value, shown)}"
    meant = "not a finite number" if want.form is None else f"not {form_in_words(want.form)}"
    return f"column '{want.name}' holds {shown}, which is {meant}"


def _weight_fault(value: str, shown: str) -> str:
    try:
        number = float(value or "nan")
    except ValueError:
        return shown
    if np.isnan(number):
        return "missing"
    if 0 < number < _LEAST_WEIGHT or number > _MOST_WEIGHT:
        return f"{shown} (weights must lie between 1e-100 and 1e100; rescale them)"
    return shown
