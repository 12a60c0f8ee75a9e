"""From the values that a file holds to the values that are wanted, and what is wrong with those that do not fit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bncli.engine.kernels.arrays import Mask
from bncli.files.reading.forms import form_in_words, read_by
from bncli.files.reading.numerals import to_numbers
from bncli.files.reading.row_blocks import Kind, Values, Want, is_text
from bncli.files.reading.source import BLANKS, Tokens

_N_SHOWN = 40
_LEAST_WEIGHT, _MOST_WEIGHT = 1e-100, 1e100
"""Sums of weights, and products of a few of them, stay finite."""


def resolve(want: Want, values: Values, tokens: Tokens) -> tuple[Values, Mask | None]:
    """The values as they are wanted, and a mask of the rows that are malformed by them (None: none is).

    Text that should have been numbers becomes numbers if it can; if not, it stays text or is at fault, as `want` says.
    """
    wrong = None
    if want.form is not None and is_text(values):
        values, wrong = read_by(want.form, values, tokens.number)
    elif want.kind is not Kind.TEXT and is_text(values):
        numbers, wrong = to_numbers(values, tokens.number)
        if wrong is not None and not want.strict:
            return values, None
        values = numbers
    if want.weight:
        unfit = ~((values == 0) | ((values >= _LEAST_WEIGHT) & (values <= _MOST_WEIGHT)))
        wrong = unfit if wrong is None else wrong | unfit
    return values, wrong if wrong is not None and wrong.any() else None


def find_faults(wants: Sequence[Want], found: Sequence[Values], wrongs: Sequence[Mask | None]) -> dict[int, str]:
    """What is wrong with each malformed row, by its first column that is at fault; rows ascending."""
    faults: dict[int, str] = {}
    for want, values, wrong in zip(wants, found, wrongs, strict=True):
        for row in () if wrong is None else np.flatnonzero(wrong):
            faults.setdefault(int(row), _fault(want, values, int(row)))
    return dict(sorted(faults.items()))


def _fault(want: Want, values: Values, row: int) -> str:
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
