"""Values as a user types them: read by the kinds of the catalogue, and named in the error when they are not that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from bncli.option_kinds import (
    ClassNumbers,
    CostNumbers,
    Criterion,
    Kind,
    Label,
    Names,
    Number,
    Prior,
    Real,
    Switch,
    Whole,
    Word,
)

if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType


class KindType(_ParamType):
    """The type of an option whose value is of a kind."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.name = metavar(kind) or "flag"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value that was typed; a default that is one already stays. A file stands for what it holds."""
        try:
            if isinstance(self.kind, ClassNumbers):
                from bncli.files.label_numbers import numbers_stated

                value = numbers_stated(value)
            if isinstance(self.kind, CostNumbers):
                from bncli.files.label_numbers import costs_stated

                value = costs_stated(value)
            return self.kind.read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class SizesType(_ParamType):
    """The type of an option that takes ascending numbers of rows, and at the end perhaps `all`: 50,100,200,all."""

    name = "N,N,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int | str, ...]:
        """The sizes that were typed."""
        *words, last = [word.strip() for word in str(value).split(",")]
        sizes: list[int] = []
        for word in words if last == "all" else [*words, last]:
            if word == "all":
                self.fail("'all' is the largest size, and stands at the end", param, ctx)
            try:
                size = int(Whole(1).read(word))
            except ValueError as error:
                self.fail(f"{error}; say for example 50,100,200,all", param, ctx)
            if sizes and size <= sizes[-1]:
                how = "twice" if size == sizes[-1] else f"after {sizes[-1]}"
                self.fail(f"{size} stands {how}: sizes must ascend, each of them once", param, ctx)
            sizes.append(size)
        return (*sizes, last) if last == "all" else tuple(sizes)


def metavar(kind: Kind) -> str:
    """What stands for a value of a kind in the help."""
    if isinstance(kind, Word):
        return "|".join(kind.words)
    if isinstance(kind, Number):
        return "|".join(kind.numbers)
    if isinstance(kind, Switch):
        return ""
    if isinstance(kind, Prior):
        return "A,B[:DRAWS]"
    if isinstance(kind, CostNumbers):
        return "FILE|TRUE:DECIDED=C"
    if isinstance(kind, Criterion):
        return "P|CRITERION"
    if isinstance(kind, Names):
        return "COLUMN"
    if isinstance(kind, Label):
        return "LABEL"
    if isinstance(kind, ClassNumbers):
        return "|".join((*kind.words, "FILE"))
    return "|".join((*kind.words, "N")) if isinstance(kind, Whole) else "|".join(("NUMBER", *kind.words))


def whole(least: int, most: int = 10**18) -> KindType:
    """The type of an option that takes a whole number of at least `least` and at most `most`."""
    return KindType(Whole(least, most))


real = KindType(Real())
"""The type of an option that takes a finite number of at least 0."""

share = KindType(Real(below=1))
"""The type of an option that takes a number of at least 0 and below 1."""
