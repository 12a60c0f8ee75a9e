"""A structure or cuts file that stands in for learning also says which column is the class.

Who does not type `--class` may not know that: an error about that column names the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bncli.engine.structure import NamedDag
from bncli.errors import UsageError


def file_with_class(structure: NamedDag | None, cuts: str | None) -> str | None:
    """Which file says what the class is: that of the structure, if it does, else the cuts file, if there is one."""
    return cuts if structure is None or structure.class_name is None else structure.where


@contextmanager
def class_named_by(path: str | None, class_name: str | None) -> Iterator[None]:
    """Inside, a usage error that speaks of the column `class_name` says that the file at `path` (if any) named it."""
    try:
        yield
    except UsageError as error:
        if path is None or class_name is None or f"'{class_name}'" not in error.what:
            raise
        advice = f"; {error.hint}" if error.hint else ""
        hint = f"{path} names it as the class{advice}"
        raise UsageError(error.what, where=error.where, hint=hint) from error
