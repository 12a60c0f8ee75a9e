"""Numbers in the narrowest type that holds exactly the same numbers: a table of small integers takes a byte a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_N_TRIED = 64


def narrow_numbers(values: NDArray[Any]) -> NDArray[Any]:
    """int64 as int8, int16, int32 or (beyond) float64; float64, NaN included, as float32 if nothing is lost."""
    if values.dtype.kind == "i":
        return values.astype(_integer_type(values), copy=False)
    for part in (values[:_N_TRIED], values):
        if not _is_single(part):
            return values
    return values.astype(np.float32)


def _integer_type(values: NDArray[Any]) -> type[np.generic]:
    low, high = (values.min(), values.max()) if len(values) else (0, 0)
    for kind in (np.int8, np.int16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return kind
    return np.float64


def _is_single(values: NDArray[Any]) -> bool:
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        singles = values.astype(np.float32)
    return bool(((singles == values) | np.isnan(values)).all())


def join_numbers(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """One array of a type that holds all parts exactly; float64 if there are holes."""
    kind = np.result_type(*(part.dtype for part in parts)) if parts else np.dtype(np.float64)
    joined = np.concatenate([part.astype(kind, copy=False) for part in parts]) if parts else np.empty(0, kind)
    if kind == np.float32 and np.isnan(joined).any():
        return joined.astype(np.float64)
    return joined
