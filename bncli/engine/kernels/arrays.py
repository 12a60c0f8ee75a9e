"""The types of arrays by the names that signatures use: what an array holds, not its shape, which docstrings give."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""Numbers: counts, weights, logarithms of probabilities, parameters."""

Index = NDArray[np.intp]
"""Positions: of rows, cells, attributes, classes."""

Mask = NDArray[np.bool_]

Codes = NDArray[np.unsignedinteger]
"""Codes of values, in the narrowest unsigned type that holds them."""

Integers = NDArray[np.integer]
"""Whole numbers of any type."""
