"""How was it made? The recipe, fingerprints of the files, versions, and the command lines that make it again."""

from __future__ import annotations

import hashlib
import platform
import shlex
from collections.abc import Sequence
from typing import Any

import numpy as np

from bncli import __version__
from bncli.choices import flag_of
from bncli.engine.data.schema import CategoricalAttribute
from bncli.engine.model import Model
from bncli.errors import BncliError
from bncli.files.formats.report.blocks import Block, Grid, Listing, Prose, Section
from bncli.recipe import Recipe
from bncli.steps.reporting.words import count

QUESTION = "How was it made?"
_BLOCK = 1 << 20


def making_section(model: Model, files: Sequence[tuple[str, str]], lines: Sequence[str]) -> Section:
    """Of a model, of files (what it is, its path), and the command lines besides the one that learnt it."""
    schema = model.schema
    facts = [
        ("class", schema.class_name),
        ("training rows", f"{model.n_rows:,}"),
        ("columns", f"{len(schema.attributes):,}, of which the model looks at {len(model.attributes):,}"),
        ("missing values", "count as a value of their own" if not schema.marginalizes else "are marginalized"),
        ("learnt by", f"bncli {model.version}"),
        ("this page by", f"bncli {__version__}, Python {platform.python_version()}, NumPy {np.__version__}"),
    ]
    blocks: list[Block] = [Grid("The model", ("what", "value"), facts)]
    marks = [(what, path, print_) for what, path in files if (print_ := fingerprint(path)) is not None]
    if marks:
        blocks.append(Grid("Fingerprints", ("file", "path", "SHA-256"), marks))
    blocks.append(_recipe(model.recipe))
    command = fit_command(model)
    if command is None:
        blocks.append(Prose("The recipe cannot be typed as one command: a file was supplied for a part of it.", "gap"))
    else:
        blocks.append(Prose("The command lines that make it again, with the training table in place of TRAIN:"))
    blocks.append(Listing([*([] if command is None else [command]), *lines]))
    return Section("made", QUESTION, tuple(blocks))


def evaluation_making(files: Sequence[str], recipe: Recipe | None, what: str = "data") -> Section:
    """Of an evaluation: files and what they are, and the recipe of what was learnt in it."""
    facts = [("this page by", f"bncli {__version__}, Python {platform.python_version()}, NumPy {np.__version__}")]
    blocks: list[Block] = [Grid("Versions", ("what", "value"), facts)]
    marks = [(what, path, print_) for path in files if (print_ := fingerprint(path)) is not None]
    if marks:
        blocks.append(Grid("Fingerprints", ("file", "path", "SHA-256"), marks))
    return Section("made", QUESTION, (*blocks, *([] if recipe is None else [_recipe(recipe)])))


def fingerprint(path: str) -> str | None:
    """The SHA-256 of a file; None of what is no file that can be read twice."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            if not file.seekable():
                return None
            while block := file.read(_BLOCK):
                digest.update(block)
    except OSError:
        return None
    return digest.hexdigest()


def _recipe(recipe: Recipe) -> Grid:
    set_ = [(flag_of(key), str(value)) for key, value in recipe.as_dict().items() if value is not None]
    return Grid(f"The recipe: {count(len(set_), 'option')} that had a part", ("option", "value"), set_)


def fit_command(model: Model) -> str | None:
    """The shortest `bncli fit` that means the recipe of a model; None where none does."""
    # a model in which no levels are pooled does not say whether they might have been: without the rule they are not
    has_names = any(isinstance(one, CategoricalAttribute) for one in model.schema.attributes)
    recipe = model.recipe.replaced(group_levels=model.recipe.group_levels or ("off" if has_names else "auto"))
    words = {key: value for key, value in recipe.as_dict().items() if value is not None and _typable(key, value)}
    if not _means(words, recipe):
        words.pop("smoothing", None)  # it is recorded of a start that is not made, too, where it cannot be typed
    if not _means(words, recipe):
        return None
    for key in reversed(list(words)):
        fewer = {other: value for other, value in words.items() if other != key}
        if _means(fewer, recipe):
            words = fewer
    typed: list[str] = []
    for key, value in words.items():
        typed += [flag_of(key)] if value is True else [flag_of(key), str(value)]
    return shlex.join(["bncli", "fit", "TRAIN", "--class", model.schema.class_name, *typed, "-o", "MODEL.bnc"])


def _typable(key: str, value: Any) -> bool:
    return (key, value) != ("discretize", "auto")


def _means(words: dict[str, Any], recipe: Recipe) -> bool:
    try:
        return Recipe.of(**words) == recipe
    except BncliError:
        return False
