"""A structure or cuts file that stands in for learning also says how it was made and which column is the class.

Who does not type `--class` may not know that: an error about that column names the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from bncli.catalogue import STRUCTURES
from bncli.engine.structures.named_structure import NamedRegions, NamedStructure
from bncli.errors import BncliError, UsageError
from bncli.files.structure import read_structure
from bncli.recipe import Recipe


def kind_of_structure(path: str) -> str:
    """The method whose parameters go with the structure in a file: kikuchi or interactions; "" for a network.

    A pipe, which is read but once, counts as a network.
    """
    structure = read_structure(path) if os.path.isfile(path) else None
    if not isinstance(structure, NamedRegions):
        return ""
    return "interactions" if structure.bins else "kikuchi"


def recipe_for(recipe: Recipe, structure: NamedStructure | None) -> Recipe:
    """The recipe with the methods that made a given structure.

    Regions have a theta too: that of the recipe, else that of the file, else the default.
    """
    if structure is None:
        return recipe
    recipe = recipe.with_structure(structure.method, structure.options)
    if not isinstance(structure, NamedRegions) or structure.bins:
        return recipe
    theta = _THETA if recipe.theta is None else recipe.theta
    if not theta > 0:
        raise BncliError(f"the structure's option 'theta' is {theta}", where=structure.where, hint="it should exceed 0")
    return recipe.replaced(theta=theta)


_THETA = next(float(dict(method.defaults)["--theta"]) for method in STRUCTURES.methods if method.word == "kikuchi")


def file_with_class(structure: NamedStructure | None, cuts: str | None) -> str | None:
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
