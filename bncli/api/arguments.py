"""Checks of the numbers that callers from Python pass as arguments; nothing here needs pyarrow."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bncli.errors import UsageError


def check_integer(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Return the value of an argument as an int; raise UsageError unless it is an integer from `least` to `most`."""
    is_integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not is_integer or value < least or (most is not None and value > most):
        limits = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise UsageError(f"{name} is {value!r}; it should be a whole number {limits}")
    return int(value)


def check_real(name: str, value: Any, low: float, high: float = math.inf, *, or_equal: bool = False) -> float:
    """Return the value of an argument as a float.

    Raises UsageError unless it is a number between `low` and `high`; with `or_equal` it may also be one of these.
    """
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not is_number or not (low <= value <= high if or_equal else low < value < high):
        limits = f"between {low:g} and {high:g}" if high < math.inf else f"above {low:g}"
        raise UsageError(f"{name} is {value!r}; it should be a number {limits}")
    return float(value)
