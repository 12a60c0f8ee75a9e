"""A column of numbers that a few non-numeric values turn into text, most often by a slip of the pen.

One `1.2x` among thousands of numbers makes a column categorical, or lets it look like an identifier. That is what the
file says, so it is done; but hardly ever is it meant, so the user is told. Only columns whose type nobody has named are
looked at. Conventions: at least 90 % of the values that are present, and at least 20 of them, must be numbers.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from bncli.engine.kernels.arrays import Mask
from bncli.files.reading.numerals import to_numbers
from bncli.files.reading.source import BLANKS, Tokens
from bncli.files.reading.vocabulary import CodedTexts

_LEAST_SHARE = 0.9
_LEAST_NUMBER = 20
_N_SHOWN = 40


class NonNumeric(NamedTuple):
    """The first text of a column that is no number; where it stands (empty: not looked for)."""

    text: str
    where: str


def first_non_numeric(block: CodedTexts, wrong: Mask, locate: Callable[[int], str]) -> NonNumeric:
    """The first row whose text is `wrong`. Its line is only sought among numbers: that takes a walk over the block."""
    is_wrong = wrong[block.codes]
    row = int(np.argmax(is_wrong))
    text = block.texts[int(block.codes[row])].as_py().strip(BLANKS)
    return NonNumeric(text, locate(row) if is_wrong.mean() <= 1 - _LEAST_SHARE else "")


def doubts_about(name: str, non_numeric: NonNumeric | None, blocks: Sequence[Any], tokens: Tokens) -> list[str]:
    """A note for the user if the column of text was most likely meant to be numbers."""
    if non_numeric is None:
        return []
    text = non_numeric.text if len(non_numeric.text) <= _N_SHOWN else non_numeric.text[:_N_SHOWN] + "..."
    count = _count_numbers(blocks, tokens)
    if _are_most(count):
        place = f" ({non_numeric.where})" if non_numeric.where else ""
        what = f"column '{name}': {count[0]} of {count[1]} values are numbers, but '{text}'{place} is not"
        ways = f"--numeric {shlex.quote(name)} reads it as numbers, --missing {shlex.quote(f'+{text}')} as missing"
        return [f"{what}; {ways}"]
    return []


def _are_most(count: tuple[int, int]) -> bool:
    n_numbers, n_present = count
    return n_numbers >= max(_LEAST_NUMBER, _LEAST_SHARE * n_present)


def _count_numbers(blocks: Sequence[Any], tokens: Tokens) -> tuple[int, int]:
    """How many values are numbers, and how many are present; counting ends early where numbers cannot be most."""
    tolerable = (1 - _LEAST_SHARE) * sum(len(block.codes) for block in blocks) + 1
    marks: dict[int, tuple[Mask, Mask]] = {}
    n_numbers = n_present = 0
    for block in blocks:
        if id(block.texts) not in marks:
            marks[id(block.texts)] = _marks(block.texts, tokens)
        is_number, is_present = marks[id(block.texts)]
        times = np.bincount(block.codes, minlength=len(block.texts))
        n_numbers += int(times[is_number].sum())
        n_present += int(times[is_present].sum())
        if n_present - n_numbers > tolerable:
            break
    return n_numbers, n_present


def _marks(texts: pa.Array, tokens: Tokens) -> tuple[Mask, Mask]:
    """Of each text: whether it is a number, whether it is not missing."""
    numbers, wrong = to_numbers(texts, tokens.number)
    is_number = ~np.isnan(numbers)
    return is_number, is_number if wrong is None else is_number | wrong
