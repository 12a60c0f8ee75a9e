"""Numbers as a user types them: finite, in range, and named in the error when they are not."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import click

_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")


def whole(least: int, most: int = 10**18) -> Callable[[str], int]:
    """The type of an option that takes a whole number of at least `least` and at most `most`."""

    def convert(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,4000}", text.strip()) or int(text) < least:
            raise click.BadParameter(f"{text!r} is not a whole number of at least {least}")
        if int(text) > most:
            raise click.BadParameter(f"{text} is too much: the most is {most}")
        return int(text)

    return convert


def real(text: str) -> float:
    """The type of an option that takes a finite number of at least 0."""
    number = decimal(text.strip())
    if number is None or number < 0:
        raise click.BadParameter(f"{text!r} is not a finite number of at least 0")
    return number


def positive(text: str) -> float:
    """The type of an option that takes a finite number above 0."""
    number = decimal(text.strip())
    if number is None or number <= 0:
        raise click.BadParameter(f"{text!r} is not a finite number above 0")
    return number


def share(text: str) -> float:
    """The type of an option that takes a number of at least 0 and below 1."""
    number = decimal(text.strip())
    if number is None or not 0 <= number < 1:
        raise click.BadParameter(f"{text!r} is not a number of at least 0 and below 1")
    return number


def real_or(word: str) -> Callable[[str], float | str]:
    """The type of an option that takes a finite number of at least 0, or `word`."""

    def convert(text: str) -> float | str:
        if text.strip() == word:
            return word
        number = decimal(text.strip())
        if number is None or number < 0:
            raise click.BadParameter(f"{text!r} is not a finite number of at least 0, nor {word}")
        return number

    return convert


def decimal(text: str) -> float | None:
    """The number that `text` writes in decimal digits; None if it writes none or one that is not finite."""
    if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        return None
    return float(text)
