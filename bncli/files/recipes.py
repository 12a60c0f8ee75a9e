"""The recipe of a model as JSON: one key a field of `Recipe`, with the types that its fields declare."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any, get_args, get_type_hints

from bncli.files.documents import Node
from bncli.recipe import Recipe


def recipe_json(recipe: Recipe) -> dict[str, Any]:
    """Every field by name; where a field holds floats, whole numbers too are written as floats: one text a recipe."""
    hints = get_type_hints(Recipe)
    return {
        name: float(value) if isinstance(value, int) and float in _kinds(hints[name]) else value
        for name, value in asdict(recipe).items()
    }


def read_recipe(node: Node) -> Recipe:
    """The recipe in a model's `recipe` object; an option that did not exist when it was written had no effect: None."""
    hints = get_type_hints(Recipe)
    optional = [field.name for field in fields(Recipe) if type(None) in _kinds(hints[field.name])]
    members = node.fields([name for name in hints if name not in optional], optional)
    values: dict[str, Any] = dict.fromkeys(optional)
    values.update((name, _read_value(member, _kinds(hints[name]))) for name, member in members.items())
    return Recipe(**values)


def _kinds(hint: Any) -> tuple[Any, ...]:
    """The types that a field may have; one that lists words (`Literal`) is a type of its own."""
    return get_args(hint) or (hint,)


def _read_value(node: Node, kinds: tuple[Any, ...]) -> Any:
    if node.value is None and type(None) in kinds:
        return None
    if node.value in [word for kind in kinds for word in get_args(kind)]:
        return node.value
    if float in kinds:
        return node.number()
    if int in kinds:
        return node.integer()
    return node.flag() if bool in kinds else node.text()
