"""The recipe of a model as JSON: one key a learning option, read and written by the kinds of the catalogue."""

from __future__ import annotations

from typing import Any

from bncli.catalogue import KEYS, LEARNING, OMITTED_IF_NONE
from bncli.catalogue.choices import Choice, Option, key_of
from bncli.catalogue.option_kinds import ColumnNames, Integer, NumberChoice, Real, Switch
from bncli.files.documents import Node
from bncli.recipe import Recipe

_ALWAYS = ("discretize", "structure", "param")
"""Keys of every recipe ever written."""
_ENTRIES: dict[str, Choice | Option] = {key_of(entry.flag): entry for entry in LEARNING}


def recipe_json(recipe: Recipe) -> dict[str, Any]:
    """Return every option by name.

    Where one holds floats, whole numbers too are written as floats: one text a recipe.
    """
    values = {key: _written(key, value) for key, value in recipe.as_dict().items()}
    return {key: value for key, value in values.items() if value is not None or key not in OMITTED_IF_NONE}


def _written(key: str, value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    whole = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if _holds_floats(key) and (whole or isinstance(value, float)) else value


def _holds_floats(key: str) -> bool:
    kind = getattr(_ENTRIES.get(key), "kind", None)
    return isinstance(kind, Real) or (isinstance(kind, NumberChoice) and kind.type is float)


def read_recipe(node: Node) -> Recipe:
    """Return the recipe in a model's `recipe` object.

    An option that did not exist when it was written had no effect: None.
    """
    members = node.fields(_ALWAYS, [key for key in KEYS if key not in _ALWAYS])
    return Recipe.recorded(
        {
            key: (None if member.value is None and key not in _ALWAYS else read_value(key, member))
            for key, member in members.items()
        }
    )


def read_value(key: str, node: Node) -> Any:
    """Return the value of the option of this name, of the type of its kind."""
    entry = _ENTRIES.get(key)
    kind = Integer() if entry is None else getattr(entry, "kind", None)
    if isinstance(kind, Real | Integer) and node.value in kind.words:
        return node.value
    if _holds_floats(key):
        return node.number()
    if isinstance(kind, Integer | NumberChoice):
        return node.integer()
    if isinstance(kind, ColumnNames):
        return node.texts()
    return node.flag() if isinstance(kind, Switch) else node.text()
