"""Convert the values of a column: strings to numbers, dates, levels and codes, and numbers to narrow types.

`convert_values` gives the values of a row block the type that was requested, and `find_faults` describes the rows whose
values do not fit. Columns written in a form (`NumberForm`, `DateForm`) are converted and expanded here as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bncli.engine.data.columns import MISSING, NumericColumn
from bncli.engine.data.schema import DATE_PARTS, Attribute, DateForm, Form, NumberForm, source_column
from bncli.engine.kernels.arrays import Array, Mask
from bncli.files.reading.dates import part_of, to_seconds
from bncli.files.reading.numbers import FEW, parse_plain_numbers, to_numbers, to_numbers_in_form
from bncli.files.reading.single_values import DAY, describe_expected
from bncli.files.reading.source import BLANKS, ColumnRequest, MissingTokens, ValueKind, Values, is_text, shorten

SignedCodes = NDArray[np.signedinteger[Any]]
_N_SAMPLED = 64
_MIN_WEIGHT, _MAX_WEIGHT = 1e-100, 1e100
"""Sums of weights, and products of a few of them, stay finite within these bounds."""


def convert_values(request: ColumnRequest, values: Values, tokens: MissingTokens) -> tuple[Values, Mask | None]:
    """Return the values in the requested type, and a mask of the rows that are malformed, or None if no row is.

    Strings in a column requested as numbers are converted if all of them are numbers or missing tokens. If not, all
    values stay strings or, if the request is strict, the rows with other strings are malformed.
    """
    wrong = None
    form = request.form
    if form is not None and is_text(values):
        plain = None
        if isinstance(form, NumberForm) and form.decimal == ".":  # most such columns are plain numbers and a few words
            plain = parse_plain_numbers(values, (*tokens.number, *form.words))
        if plain is not None:
            values = plain.astype(np.float64)
        else:
            encoded = values.dictionary_encode()
            distinct, wrong = parse_in_form(form, encoded.dictionary, tokens.number)
            codes = encoded.indices.to_numpy()
            values, wrong = distinct[codes], None if wrong is None else wrong[codes]
    elif request.kind is not ValueKind.TEXT and is_text(values):
        numbers, wrong = to_numbers(values, tokens.number)
        if wrong is not None and not request.strict:
            return values, None
        values = numbers
    if request.weight:
        invalid = ~((values == 0) | ((values >= _MIN_WEIGHT) & (values <= _MAX_WEIGHT)))
        wrong = invalid if wrong is None else wrong | invalid
    return values, wrong if wrong is not None and wrong.any() else None


def find_faults(
    requests: Sequence[ColumnRequest], values: Sequence[Values], wrong: Sequence[Mask | None]
) -> dict[int, str]:
    """Return a description of the first fault of each malformed row, keyed by row index, in ascending order.

    values: the values of each requested column, before their conversion. wrong: the masks that `convert_values`
    returned.
    """
    faults: dict[int, str] = {}
    for request, column, is_wrong in zip(requests, values, wrong, strict=True):
        for row in () if is_wrong is None else np.flatnonzero(is_wrong).tolist():
            value = column[row].as_py().strip(BLANKS) if is_text(column) else str(column[row])
            shown = f"'{shorten(value)}'"
            if not request.weight:
                expected = describe_expected(request.form)
                faults.setdefault(row, f"column '{request.name}' contains {shown}, which is not {expected}")
                continue
            try:
                number = float(value or "nan")
            except ValueError:
                number = 0.0
            if np.isnan(number):
                shown = "missing"
            elif 0 < number < _MIN_WEIGHT or number > _MAX_WEIGHT:
                shown += " (weights must lie between 1e-100 and 1e100; rescale them)"
            faults.setdefault(row, f"the weight in column '{request.name}' is {shown}")
    return dict(sorted(faults.items()))


def request_in_form(name: str, form: Form | None) -> ColumnRequest:
    """Return the request to read a column of numbers written in `form`, or of plain numbers if it is None.

    Rows with any other string are malformed. With a DateForm, the numbers are the seconds of the dates.
    """
    if form is None:
        return ColumnRequest(name, ValueKind.NUMBER, strict=True)
    return ColumnRequest(name, ValueKind.TEXT, strict=True, form=form)


def column_of_attribute(attribute: Attribute, names: Collection[str]) -> str:
    """Return the column that an attribute is read from: its date column for a part of dates, otherwise its own name.

    names: the columns of the table. If they contain a date part such as `signup.month` itself, but not `signup`, the
    part is read from its own column.
    """
    source = source_column(attribute)
    return attribute.name if source not in names and attribute.name in names else source


def column_in_form(values: NDArray[np.generic], form: Form | None) -> NumericColumn:
    """Return numbers as a column with this form; a DateForm turns seconds into the part of the date that it names."""
    numbers = np.asarray(values, np.float64)
    if isinstance(form, DateForm):
        return NumericColumn(part_of(numbers, form.part, form.origin), form)
    return NumericColumn(numbers, form)


def expand_dates(seconds: Array, form: DateForm, keep: Mask) -> dict[str, NumericColumn]:
    """Return the parts of the dates that are not constant over the rows in the mask `keep`, keyed by `COLUMN.PART`.

    The columns cover all rows. The part `days` is counted from the earliest date in the rows kept.
    """
    seconds = seconds.astype(np.float64)
    present = seconds[keep & ~np.isnan(seconds)]
    origin = int(present.min() // DAY) if len(present) else 0
    columns = {}
    for part in ("hour",) if form.order == "time" else DATE_PARTS:
        column = column_in_form(seconds, replace(form, part=part, origin=origin if part == "days" else 0))
        values = column.values[keep]
        values = values[~np.isnan(values)]
        if not len(values) or not (values != values[0]).any():
            continue
        if not np.isnan(column.values).any():
            column = NumericColumn(narrow_numbers(column.values.astype(np.int64)), column.form)
        columns[f"{form.source}.{part}"] = column
    return columns


def parse_in_form(form: Form, texts: pa.Array, missing: Sequence[str]) -> tuple[Array, Mask | None]:
    """Parse strings in a form; return numbers, or seconds for a DateForm, and a mask of the strings that do not fit.

    A value is NaN if the string is missing or does not fit. The mask is None if every string fits or is missing.
    """
    if isinstance(form, NumberForm):
        missing = (*missing, *form.words)
    trimmed, is_missing = strip_texts(texts, missing)
    if isinstance(form, NumberForm):
        values, fits = to_numbers_in_form(trimmed, form)
    else:
        values, fits = to_seconds(trimmed, form.order)
    values[is_missing] = np.nan
    wrong = ~(fits | is_missing)
    return values, wrong if wrong.any() else None


def strip_texts(texts: pa.Array, missing: Sequence[str]) -> tuple[pa.Array, Mask]:
    """Return the strings without blanks at their ends, and a mask of the `missing` tokens."""
    if len(texts) <= FEW:
        stripped = [text.strip(BLANKS) for text in texts.to_pylist()]
        return pa.array(stripped, pa.string()), np.array([text in missing for text in stripped], np.bool_)
    trimmed = pc.utf8_trim(texts, characters=BLANKS)
    is_missing = pc.is_in(trimmed, value_set=pa.array(missing, pa.string())).to_numpy(zero_copy_only=False)
    return trimmed, is_missing


def distinct_levels(texts: pa.Array, missing: Sequence[str]) -> pa.Array:
    """Return the distinct strings, stripped of blanks, that are not `missing` tokens, in order of first occurrence."""
    if len(texts) <= FEW:
        stripped = dict.fromkeys(text.strip(BLANKS) for text in texts.to_pylist())
        return pa.array([text for text in stripped if text not in missing], pa.string())
    trimmed, is_missing = strip_texts(texts, missing)
    return trimmed.filter(pa.array(~is_missing)).unique()


def sort_levels(levels: pa.Array | Iterable[str]) -> tuple[str, ...]:
    """Return levels in numeric order if all are numbers (equal numbers by code point), otherwise by code point."""
    array = levels if isinstance(levels, pa.Array) else pa.array(list(levels), pa.string())
    if len(array) <= 1:  # most columns of some wide tables
        return tuple(array.to_pylist())
    numbers, wrong = to_numbers(array, ())
    texts = array.to_pylist()
    if wrong is not None:
        return tuple(sorted(texts))
    return tuple(text for _, text in sorted(zip(numbers.tolist(), texts, strict=True)))


def encode_levels(
    texts: pa.Array, levels: Sequence[str], missing: Sequence[str], unknown: int = MISSING
) -> NDArray[np.int64]:
    """Return the code of each string: the index of its level, MISSING for a missing token, or otherwise `unknown`."""
    if len(texts) <= FEW:
        code = {level: i for i, level in enumerate(levels)} | dict.fromkeys(missing, MISSING)
        return np.array([code.get(text.strip(BLANKS), unknown) for text in texts.to_pylist()], np.int64)
    trimmed, is_missing = strip_texts(texts, missing)
    indices = pc.index_in(trimmed, value_set=pa.array(levels, pa.string())).fill_null(unknown)
    codes: NDArray[np.int64] = indices.to_numpy().astype(np.int64)
    codes[is_missing] = MISSING
    return codes


def narrow_codes(codes: NDArray[Any], n_levels: int) -> SignedCodes:
    """Return the codes in the narrowest signed type that holds 0..n_levels - 1, MISSING and UNSEEN."""
    narrow: SignedCodes = codes.astype(np.min_scalar_type(-max(n_levels, 2)), copy=False)
    return narrow


def narrow_numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Return the numbers in the narrowest suitable type.

    Integers become int8, int16, int32 or, if they do not fit these, float64, which is exact only up to 2^53. float64
    becomes float32 if no number changes.
    """
    if values.dtype == np.float32:
        return values
    if values.dtype.kind == "i":
        low, high = (values.min(), values.max()) if len(values) else (0, 0)
        for kind in (np.int8, np.int16, np.int32):
            if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
                return values.astype(kind, copy=False)
        return values.astype(np.float64, copy=False)
    # The first few values decide most columns.
    if len(values) > _N_SAMPLED and _to_float32(values[:_N_SAMPLED]) is None:
        return values
    narrow = _to_float32(values)
    return values if narrow is None else narrow


def _to_float32(values: NDArray[Any]) -> NDArray[Any] | None:
    """Return the numbers as float32, or None if this would change any of them."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        narrow = values.astype(np.float32)
    is_same = narrow == values
    return narrow if is_same.all() or (is_same | np.isnan(values)).all() else None
