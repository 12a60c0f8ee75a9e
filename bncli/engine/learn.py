"""From columns to a model: cut, encode, structure, parameters. Read this file first.

    columns --cutting--> schema --encoding--> coded rows --counts--> structure --> (penalty) --> parameters --> Model

Methods are looked up by the word the user types: `--structure tan` is `structure_learners/tan.py`.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from bncli import __version__
from bncli.catalogue import MARGINALIZED, structure_options
from bncli.engine.counting.counts import Counts
from bncli.engine.data.columns import Columns
from bncli.engine.data.cutting import learn_schema
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.encoding import encode
from bncli.engine.data.schema import Cuts, MissingPolicy, Reading
from bncli.engine.model import ChosenPenalty, Model, Parameters
from bncli.engine.structures.named_structure import NamedStructure
from bncli.engine.structures.structure import Structure
from bncli.engine.training.memory_estimate import refuse_large, refuse_wide
from bncli.engine.training.optimization import Ascent
from bncli.engine.training.penalty_cv import choose_penalty
from bncli.errors import BncliError
from bncli.recipe import Recipe
from bncli.watch import Run, Stage, Watch, silent


@dataclass(frozen=True)
class Given:
    """What is supplied instead of being learnt, and taken as it is; None: it is learnt."""

    cuts: Cuts | None = None
    structure: NamedStructure | None = None


@dataclass(frozen=True)
class Learnt:
    """A model, and how its parameters were reached.

    `missing` counts the missing values of informative attributes that are marginalized.
    """

    model: Model
    parameters: Parameters
    missing: int


def learn(
    columns: Columns,
    recipe: Recipe,
    *,
    given: Given = Given(),
    reading: Reading = Reading(),
    run: Run = Run(),
) -> Learnt:
    """Learn a model from labelled rows; where cuts or a structure are given, the recipe names what made them.

    Raises BncliError where there are no rows to learn from, or where the network would take more than `run.memory`.
    """
    _refuse_improbable(recipe)
    if recipe.param == "auto":
        from bncli.engine.auto.learning import learn_auto  # many modules that no other method needs

        return Learnt(*learn_auto(columns, recipe, reading, run), missing=0)
    data = _coded(columns, recipe, given.cuts, reading, run)
    del columns  # codes are all that is needed from here; the raw table may be freed
    counts, schema = Counts(data), data.schema
    run.watch(Stage("structure"))
    structure = learn_structure(counts, recipe, run) if given.structure is None else given.structure.resolve(schema)
    refuse_large(structure, schema, recipe, run.memory)
    parameters = learn_parameters(counts, structure, recipe, run.watch)
    penalty, path = parameters.penalty_cv, parameters.path
    model = Model(schema, structure, parameters.tables, recipe, data.n_rows, __version__, penalty, path)
    return Learnt(model, parameters, sum(data.holes))


def _coded(columns: Columns, recipe: Recipe, cuts: Cuts | None, reading: Reading, run: Run) -> Dataset:
    """The rows under the schema learnt from them."""
    run.watch(Stage("discretize"))
    schema = learn_schema(
        columns,
        discretize=recipe.discretize,
        bins=recipe.bins,
        given=cuts,
        missing_policy=missing_policy(recipe),
        reading=reading,
        run=run,
    )
    data = encode(columns, schema, threads=run.threads)
    if data.n_rows == 0:
        raise BncliError("there are no rows to learn from", hint="every row is unlabelled, of weight 0, or skipped")
    return data


def missing_policy(recipe: Recipe) -> MissingPolicy:
    """What a missing value is."""
    return "marginalize" if recipe.missing_policy == "marginalize" else "level"


def _refuse_improbable(recipe: Recipe) -> None:
    """Only where parameters are the probabilities of a network can anything be marginalized."""
    if recipe.missing_policy == "marginalize" and recipe.param not in MARGINALIZED:
        what = f"missing values cannot be marginalized with the parameters {recipe.param!r}, which are no probabilities"
        raise BncliError(what, hint=f"use --param {', '.join(MARGINALIZED)}, or --missing-policy level")


def learn_structure(counts: Counts, recipe: Recipe, run: Run = Run()) -> Structure:
    """The structure that the recipe asks for; BncliError where its search would take more than `run.memory`."""
    refuse_wide(counts.data.schema, recipe, run.memory)
    search = _method("structure_learners", recipe.structure).learn
    options = {name: getattr(recipe, name) for name in structure_options(recipe.structure)}
    if "clock" in inspect.signature(search).parameters:
        options["clock"] = run.clock
    return search(counts, watch=run.watch, **options)  # type: ignore[no-any-return]


def learn_parameters(counts: Counts, structure: Structure, recipe: Recipe, watch: Watch = silent) -> Parameters:
    """The parameters that the recipe asks for."""
    method = _method("parameter_learners", recipe.param)
    chosen = None
    if recipe.penalty == "cv":
        watch(Stage("penalty"))
        space_of = partial(method.space, structure=structure, **_options(method.space, recipe))
        center = float(recipe.penalty_center or 0.0)
        chosen = choose_penalty(counts.data, space_of, center=center, seed=recipe.seed or 0, watch=watch)
    watch(Stage("parameters"))
    options = _options(method.learn, recipe)
    if recipe.optimizer is not None:
        options["ascent"] = _ascent(recipe, chosen)
    parameters: Parameters = method.learn(counts, structure, watch=watch, **options)
    return replace(parameters, penalty_cv=chosen)


def _options(function: Callable[..., Any], recipe: Recipe) -> dict[str, Any]:
    """The options of the recipe that the function takes, without those that have no effect."""
    fields = inspect.signature(function).parameters.keys() - {"structure"}
    return {name: value for name in sorted(fields) if (value := getattr(recipe, name, None)) is not None}


def _ascent(recipe: Recipe, chosen: ChosenPenalty | None) -> Ascent:
    return Ascent(
        init=str(recipe.init),
        penalty=float(recipe.penalty or 0.0) if chosen is None else chosen.penalty,
        penalty_center=float(recipe.penalty_center or 0.0),
        optimizer=str(recipe.optimizer),
        tolerance=float(recipe.tolerance or 0.0),
        max_iterations=int(recipe.max_iterations or 0),
    )


def _method(folder: str, word: str) -> Any:
    return importlib.import_module(f"bncli.engine.{folder}.{word.replace('-', '_')}")
