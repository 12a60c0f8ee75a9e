"""From columns to a model: cut, encode, structure, parameters. Read this file first.

    columns --cutting--> schema --encoding--> coded rows --counts--> structure --> (penalty) --> parameters --> Model

Methods are looked up by the word the user types: `--structure tan` is `structure_learners/tan.py`.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from bncli import __version__
from bncli.catalogue import DISCRETIZERS, MARGINALIZED, OPTIMIZERS, PARAMETERS, STRUCTURES
from bncli.choices import Choice, Method
from bncli.engine.counting.counts import Counts
from bncli.engine.data.columns import Columns
from bncli.engine.data.cutting import learn_schema
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.encoding import encode
from bncli.engine.data.schema import Cuts, MissingPolicy
from bncli.engine.model import ChosenPenalty, Model, Parameters
from bncli.engine.structures.named_structure import NamedStructure
from bncli.engine.structures.structure import Structure
from bncli.engine.training.memory_estimate import refuse_large, refuse_wide
from bncli.engine.training.optimization import Ascent
from bncli.engine.training.penalty_cv import choose_penalty
from bncli.errors import BncliError
from bncli.recipe import Recipe
from bncli.watch import Clock, Stage, Watch, silent


@dataclass(frozen=True)
class Learnt:
    """A model, and how its parameters were reached.

    `holes` counts the missing values of informative attributes that are summed out.
    """

    model: Model
    parameters: Parameters
    holes: int


def learn(
    columns: Columns,
    recipe: Recipe,
    *,
    cuts: Cuts | None = None,
    structure: NamedStructure | None = None,
    missing_tokens: tuple[str, ...] | None = None,
    unseen: Literal["average", "error"] = "average",
    threads: int = 1,
    memory: int | None = None,
    clock: Clock | None = None,
    watch: Watch = silent,
) -> Learnt:
    """Learn a model from labelled rows; given `cuts` or a given `structure` are taken as they are.

    The recipe then names the methods that made them. `clock` is what a limit of the recipe in seconds is kept by.
    Raises BncliError where there are no rows to learn from, or where the network would take more than `memory` bytes.
    """
    _refuse_improbable(recipe)
    reading: dict[str, Any] = {"missing_tokens": missing_tokens, "unseen": unseen, "threads": threads}
    if recipe.param == "auto":
        from bncli.engine.auto.learning import learn_auto  # many modules that no other method needs

        return Learnt(*learn_auto(columns, recipe, **reading, clock=clock, watch=watch), holes=0)
    data = _coded(columns, recipe, cuts, reading, watch)
    del columns  # codes are all that is needed from here; the raw table may be freed
    counts, schema = Counts(data), data.schema
    watch(Stage("structure"))
    found = learn_structure(counts, recipe, memory, watch, clock) if structure is None else structure.resolve(schema)
    refuse_large(found, schema, recipe, memory)
    parameters = learn_parameters(counts, found, recipe, watch)
    penalty, path = parameters.penalty_cv, parameters.path
    model = Model(schema, found, parameters.tables, recipe, data.n_rows, __version__, penalty, path)
    return Learnt(model, parameters, sum(data.holes))


def _coded(columns: Columns, recipe: Recipe, cuts: Cuts | None, reading: dict[str, Any], watch: Watch) -> Dataset:
    """The rows under the schema learnt from them; `reading`: further arguments of `learn_schema`."""
    watch(Stage("discretize"))
    schema = learn_schema(
        columns,
        discretize=recipe.discretize,
        given=cuts,
        missing_policy=missing_policy(recipe),
        watch=watch,
        **reading,
        **recipe.options(DISCRETIZERS.method(recipe.discretize)),
    )
    data = encode(columns, schema, threads=reading["threads"])
    if data.n_rows == 0:
        raise BncliError("there are no rows to learn from", hint="every row is unlabelled, of weight 0, or skipped")
    return data


def missing_policy(recipe: Recipe) -> MissingPolicy:
    """What a hole is."""
    return "marginalize" if recipe.missing_policy == "marginalize" else "level"


def _refuse_improbable(recipe: Recipe) -> None:
    """Only where parameters are the probabilities of a network can anything be summed out."""
    if recipe.missing_policy == "marginalize" and recipe.param not in MARGINALIZED:
        what = f"missing values cannot be summed out with the parameters {recipe.param!r}, which are not probabilities"
        raise BncliError(what, hint=f"use --param {', '.join(MARGINALIZED)}, or --missing-policy level")


def learn_structure(
    counts: Counts,
    recipe: Recipe,
    memory: int | None = None,
    watch: Watch = silent,
    clock: Clock | None = None,
) -> Structure:
    """The structure that the recipe asks for; BncliError where its search would take more than `memory` bytes.

    `clock` tells seconds: without one, a search that the recipe limits in time is not limited.
    """
    refuse_wide(counts.data.schema, recipe, memory)
    method = _method(STRUCTURES, recipe.structure)
    timed = {"clock": clock} if method.clock else {}
    search = _module(STRUCTURES, recipe.structure).learn
    return search(counts, watch=watch, **recipe.options(method), **timed)  # type: ignore[no-any-return]


def learn_parameters(counts: Counts, structure: Structure, recipe: Recipe, watch: Watch = silent) -> Parameters:
    """The parameters that the recipe asks for."""
    method, module = _method(PARAMETERS, recipe.param), _module(PARAMETERS, recipe.param)
    options, chosen = recipe.options(method), None
    if recipe.penalty == "cv":
        watch(Stage("penalty"))
        space_of = partial(module.space, structure=structure, **options)
        chosen = choose_penalty(
            counts.data, space_of, center=float(recipe.penalty_center), seed=recipe.seed, watch=watch
        )
    watch(Stage("parameters"))
    ascent = {} if recipe.optimizer is None else {"ascent": _ascent(recipe, chosen)}
    parameters: Parameters = module.learn(counts, structure, watch=watch, **options, **ascent)
    return replace(parameters, penalty_cv=chosen)


def _ascent(recipe: Recipe, chosen: ChosenPenalty | None) -> Ascent:
    """How to climb; what parameters with an optimizer have no use for is left at zero."""
    return Ascent(
        init=str(recipe.init),
        penalty=float(recipe.penalty or 0.0) if chosen is None else chosen.penalty,
        penalty_center=float(recipe.penalty_center or 0.0),
        optimizer=recipe.optimizer,
        tolerance=recipe.tolerance,
        max_iterations=recipe.max_iterations,
        early_stop=recipe.early_stop or "none",
        seed=recipe.seed or 0,
        options=recipe.options(_method(OPTIMIZERS, recipe.optimizer)),
    )


def _method(choice: Choice, word: str) -> Method:
    method = choice.method(word)
    assert method is not None, f"{choice.flag} {word}"
    return method


def _module(choice: Choice, word: str) -> Any:
    return importlib.import_module(choice.module_of(word))
