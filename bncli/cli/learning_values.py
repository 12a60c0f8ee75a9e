"""What a learning option stands for once it is typed or left out: its value, its default, or a refusal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from bncli import catalogue
from bncli.catalogue import SMOOTHING_NUMBERS, SMOOTHINGS
from bncli.choices import Choice
from bncli.cli.numbers import decimal, positive, real, real_or, whole
from bncli.errors import UsageError

_MOST_ROWS = 1e15
"""Above it, added rows drown all counts in rounding."""

PENALTY = real_or("cv")

TYPES: dict[str, Any] = {
    "--bins": whole(2, 10_000),
    "--k": whole(0, 1000),
    "--loss": click.Choice(["rmse", "error", "log-loss"]),
    "--max-parents": whole(0, 1000),
    "--epsilon": real,
    "--pseudo-counts": positive,
    "--coding": click.Choice(["cells", "thermometer"]),
    "--level": click.Choice(["1", "2", "3", "4"]),
    "--init": click.Choice(["zero", "generative"]),
    "--penalty": PENALTY,
    "--penalty-center": click.Choice(["0", "1"]),
    "--early-stop": click.Choice(["cv", "none"]),
    "--tolerance": real,
    "--max-iterations": whole(0),
    "--max-order": whole(2, 16),
    "--theta": positive,
    "--max-seconds": positive,
    "--max-candidates": whole(1),
    "--metric": click.Choice(["log-loss", "error", "rmse"]),
    "--time-limit": positive,
}


def key_of(name: str) -> str:
    """The key of a flag among what was typed."""
    return name.removeprefix("--").replace("-", "_")


def word(typed: Mapping[str, Any], choice: Choice, default: str = "") -> str:
    """The method chosen, else `default` or the usual one; one that does not exist is an error with the nearest name."""
    chosen = typed.get(key_of(choice.flag)) or default or choice.default
    if choice.method(chosen) is None:
        raise unknown(choice, chosen)
    return str(chosen)


def unknown(choice: Choice, word: str, also: str = "") -> UsageError:
    from difflib import get_close_matches

    near = get_close_matches(word, choice.words, n=1)
    hint = f"did you mean {near[0]}?" if near else f"the choices are {', '.join(choice.words)}{also}"
    return UsageError(f"{choice.flag} knows no {word!r}", hint=hint)


def value(typed: Mapping[str, Any], key: str, choice: Choice, word: str) -> Any:
    """The value of an option, its default when it was not typed, None where the method does not take it."""
    name = f"--{key.replace('_', '-')}"
    if name not in choice.options_of(word):
        return None
    if name in _SWITCHES:
        return bool(typed.get(key))
    chosen, usual = typed.get(key), default(name, word)
    if chosen is None and usual:
        chosen = usual if isinstance(TYPES[name], click.Choice) else TYPES[name](usual)
    return int(chosen) if key == "level" and chosen is not None else chosen


_SWITCHES = {option.flag for option in catalogue.OPTIONS if not option.value}


def default(name: str, word: str = "") -> str:
    """The default of an option with the method `word`."""
    usual = {choice.flag: choice.default for choice in catalogue.CHOICES}
    usual.update((option.flag, option.default) for option in catalogue.OPTIONS)
    return catalogue.OTHER_DEFAULTS.get((word, name), usual[name])


def smoothing_rule(text: str) -> str:
    """`NAME`, or `NAME:NUMBER` with the number written out in the shortest way; UsageError for anything else."""
    return rule(text, SMOOTHINGS, SMOOTHING_NUMBERS)


def rule(text: str, choice: Choice, numbers: Mapping[str, str]) -> str:
    """The same for any choice; `numbers` holds the methods that take one, and their defaults."""
    name, colon, number = text.partition(":")
    if choice.method(name) is None:
        raise unknown(choice, name)
    if name not in numbers:
        if colon:
            raise UsageError(f"{choice.flag} {name} takes no number", hint=f"leave out ':{number}'")
        return name
    strength = decimal(number if colon else numbers[name])
    if strength is None or strength <= 0:
        raise UsageError(f"{choice.flag} {name} takes a number above 0, not {number!r}", hint=f"for example {name}:5")
    if strength > _MOST_ROWS:
        raise UsageError(f"{choice.flag} {name} takes a number up to {_MOST_ROWS:.0e}, not {number}")
    return f"{name}:{written(strength)}"


def written(number: float) -> str:
    """The number in the shortest way."""
    return repr(number).removesuffix(".0")
