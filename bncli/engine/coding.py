"""From columns to coded rows: the schema that a recipe has learnt from them, and its cuts."""

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


def coded(columns: Columns, recipe: Recipe, cuts: Cuts | None, reading: ReadingRules, run: Run) -> Dataset:
    """Return the rows under the schema learnt from them."""
    run.watch(Stage("discretize"))
    data = learn_dataset(
        columns,
        discretize=recipe.discretize,
        group_levels=recipe.group_levels,
        given=cuts,
        missing_policy=missing_policy(recipe),
        reading=reading,
        run=run,
        **recipe.options(DISCRETIZERS.method(recipe.discretize)),
    )
    if data.n_rows == 0:
        raise BncliError("there are no rows to learn from", hint="every row is unlabelled, of weight 0, or skipped")
    return set_directions(data, recipe.increasing or (), recipe.decreasing or (), recipe.towards)


def cuts_of_schema(schema: Schema, recipe: Recipe) -> Cuts:
    """Return the cuts of a schema that was learnt by a recipe, with the options that they were made by."""
    rule = recipe.group_levels if schema.pooled else None
    made = recipe.options(DISCRETIZERS.method(recipe.discretize)) | {"group_levels": rule}
    return cuts_of(schema, recipe.discretize, {key: value for key, value in made.items() if value is not None})


def learn_cuts(columns: Columns, recipe: Recipe, run: Run = Run()) -> Cuts:
    """Return the cuts and levels that learning by the recipe would begin with."""
    class_weights = parse_class_weights(recipe.class_weights, columns)
    if class_weights is not None:
        columns = apply_class_weights(columns, class_weights)
    if recipe.param == "auto":
        from bncli.engine.ensembles.grids import fine_dataset

        schema = fine_dataset(columns, ReadingRules(), run, recipe.group_levels).schema
    else:
        schema = coded(columns, recipe, None, ReadingRules(), run).schema
    return cuts_of_schema(schema, recipe)


def missing_policy(recipe: Recipe) -> MissingPolicy:
    """Return what a missing value is."""
    return "marginalize" if recipe.missing_policy == "marginalize" else "level"
