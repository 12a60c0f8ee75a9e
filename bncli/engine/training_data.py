"""Discretize and encode training rows according to a recipe: the first step of learning, shared with other commands."""

from __future__ import annotations

from bncli.catalogue import DISCRETIZERS
from bncli.engine.data.class_weights import apply_class_weights, parse_class_weights
from bncli.engine.data.columns import Columns
from bncli.engine.data.cutting import cuts_of, learn_dataset
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.monotone_directions import set_directions
from bncli.engine.data.schema import Cuts, MissingPolicy, ReadingRules, Schema
from bncli.errors import BncliError
from bncli.recipe import Recipe
from bncli.watch import Run, Stage


def encode_training_rows(
    columns: Columns, recipe: Recipe, cuts: Cuts | None, reading_rules: ReadingRules, run: Run
) -> Dataset:
    """Learn a schema from the rows, unless `cuts` are supplied, and return the rows encoded with it.

    Raises BncliError if there are no rows.
    """
    run.watch(Stage("discretize"))
    data = learn_dataset(
        columns,
        discretize=recipe.discretize,
        group_levels=recipe.group_levels,
        shrinks=recipe.structure == "interactions",
        few_digits=recipe.structure == "card",
        cuts=cuts,
        missing_policy=missing_policy(recipe),
        reading=reading_rules,
        run=run,
        **recipe.options(DISCRETIZERS.method(recipe.discretize)),
    )
    if data.n_rows == 0:
        raise BncliError(
            "there are no rows to learn from", hint="every row is unlabelled, has weight 0, or was skipped"
        )
    return set_directions(data, recipe.increasing or (), recipe.decreasing or (), recipe.towards)


def learn_cuts(columns: Columns, recipe: Recipe, run: Run = Run()) -> Cuts:
    """Return the cut points and levels that `learn` would make from these columns."""
    class_weights = parse_class_weights(recipe.class_weights, columns)
    if class_weights is not None:
        columns = apply_class_weights(columns, class_weights)
    if recipe.param == "auto":
        from bncli.engine.ensembles.candidates import fine_dataset

        schema = fine_dataset(columns, ReadingRules(), run, recipe.group_levels).schema
    else:
        schema = encode_training_rows(columns, recipe, None, ReadingRules(), run).schema
    return cuts_of_schema(schema, recipe)


def cuts_of_schema(schema: Schema, recipe: Recipe) -> Cuts:
    """Return the cut points and levels of a schema learned with the recipe, and the options that made them."""
    rule = recipe.group_levels if schema.pooled else None
    options = recipe.options(DISCRETIZERS.method(recipe.discretize)) | {"group_levels": rule}
    return cuts_of(schema, recipe.discretize, {key: value for key, value in options.items() if value is not None})


def missing_policy(recipe: Recipe) -> MissingPolicy:
    """Return "marginalize" or "level"; None, in recipes of models older than the option, means "level"."""
    return "marginalize" if recipe.missing_policy == "marginalize" else "level"
