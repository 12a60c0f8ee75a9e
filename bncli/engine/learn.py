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
from bncli.catalogue import structure_options
from bncli.engine.ascent import Ascent
from bncli.engine.columns import Columns
from bncli.engine.counts import Counts
from bncli.engine.cutting import learn_schema
from bncli.engine.encoding import encode
from bncli.engine.forecast import refuse_large, refuse_wide
from bncli.engine.model import ChosenPenalty, Model, Parameters
from bncli.engine.penalty_cv import choose_penalty
from bncli.engine.schema import Cuts
from bncli.engine.structure import Dag, NamedDag, Structure
from bncli.errors import BncliError
from bncli.recipe import Recipe
from bncli.watch import Stage, Watch, silent


@dataclass(frozen=True)
class Learnt:
    """A model, and how its parameters were reached."""

    model: Model
    parameters: Parameters


def learn(
    columns: Columns,
    recipe: Recipe,
    *,
    cuts: Cuts | None = None,
    structure: NamedDag | None = None,
    missing_tokens: tuple[str, ...] | None = None,
    unseen: Literal["average", "error"] = "average",
    threads: int = 1,
    memory: int | None = None,
    watch: Watch = silent,
) -> Learnt:
    """Learn a model from labelled rows; given `cuts` or a given `structure` are taken as they are.

    The recipe then names the methods that made them. Raises BncliError where there are no rows to learn from, or where
    the network would take more than `memory` bytes.
    """
    watch(Stage("discretize"))
    schema = learn_schema(
        columns,
        discretize=recipe.discretize,
        bins=recipe.bins,
        given=cuts,
        missing_tokens=missing_tokens,
        unseen=unseen,
        threads=threads,
        watch=watch,
    )
    data = encode(columns, schema, threads=threads)
    del columns  # codes are all that is needed from here; the raw table may be freed
    if data.n_rows == 0:
        raise BncliError("there are no rows to learn from", hint="every row is unlabelled, of weight 0, or skipped")
    counts = Counts(data)
    watch(Stage("structure"))
    dag = learn_structure(counts, recipe, memory, watch) if structure is None else structure.resolve(schema)
    refuse_large(dag, schema, recipe, memory)
    parameters = learn_parameters(counts, dag, recipe, watch)
    model = Model(schema, dag, parameters.tables, recipe, data.n_rows, __version__, parameters.penalty_cv)
    return Learnt(model, parameters)


def learn_structure(counts: Counts, recipe: Recipe, memory: int | None = None, watch: Watch = silent) -> Dag:
    """The structure that the recipe asks for; BncliError where its search would take more than `memory` bytes."""
    refuse_wide(counts.data.schema, recipe, memory)
    options = {name: getattr(recipe, name) for name in structure_options(recipe.structure)}
    return _method("structure_learners", recipe.structure).learn(counts, watch=watch, **options)  # type: ignore[no-any-return]


def learn_parameters(counts: Counts, structure: Structure, recipe: Recipe, watch: Watch = silent) -> Parameters:
    """The parameters that the recipe asks for."""
    method = _method("parameter_learners", recipe.param)
    names = ("smoothing", "pseudo_counts", "level")
    options: dict[str, Any] = {name: value for name in names if (value := getattr(recipe, name)) is not None}
    chosen = None
    if recipe.penalty == "cv":
        watch(Stage("penalty"))
        space_of = partial(method.space, structure=structure, **options)
        center = float(recipe.penalty_center or 0.0)
        chosen = choose_penalty(counts.data, space_of, center=center, seed=recipe.seed or 0, watch=watch)
    watch(Stage("parameters"))
    if recipe.optimizer is not None:
        options["ascent"] = _ascent(recipe, chosen)
    parameters: Parameters = method.learn(counts, structure, watch=watch, **options)
    return replace(parameters, penalty_cv=chosen)


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
