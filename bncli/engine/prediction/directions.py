"""Whether a model keeps the directions of its attributes: every cell of its tables is looked at."""

from __future__ import annotations

import numpy as np

from bncli.engine.model import Ensemble, Model, Tables
from bncli.engine.parameter_spaces.directions import TOLERANCE, directions_of
from bncli.errors import BncliError


def check_directions(model: Model) -> None:
    """BncliError where the log-odds of any row would fall along an increasing attribute, or rise along another.

    That would be a defect of learning: nothing a user says makes it.
    """
    if not model.schema.directed:
        return
    predictor = model.predictor
    tables = predictor.combined if isinstance(predictor, Ensemble) else predictor.leading
    if lowest_difference(model, tables) < -TOLERANCE:
        hint = "this is a defect of bncli; learn without --increasing and --decreasing"
        raise BncliError("the model does not keep the directions that were asked for", hint=hint)


def lowest_difference(model: Model, tables: Tables) -> float:
    """How much log-odds change, at the least, from one interval of an attribute with a direction to the next.

    In the attribute's direction, over all its intervals and all values of the other attributes, unknown ones included:
    the log-odds of the label that directions are about, against each other label.
    """
    directions = directions_of(model.schema, tables.families)
    if directions is None:
        return 0.0
    return directions.lowest(np.concatenate([tables.bias[np.newaxis], *tables.weights]).T)
