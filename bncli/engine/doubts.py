"""What speaks against a model that has just been learnt: no attribute used, nothing gained, more numbers than rows.

Each doubt is one line for whoever learns: what is wrong, of which column, and what to do. It is told as a warning.

Conventions. More parameters than rows are usual with many attributes or classes, and harmless where a penalty holds
them down. They are a doubt where one column of more than MANY values makes most of them, and where they are more than
FAR times the rows without a penalty. An ensemble chose its tables by rows held out, and is only judged by these. A
held-out loss within a share NOISE of that of the class frequencies is no gain.
"""

from __future__ import annotations

from collections.abc import Iterator

from bncli.engine.chosen_penalty import HeldOut
from bncli.engine.data.schema import CategoricalAttribute, NumericAttribute
from bncli.engine.model import Ensemble, Model, Parameters

MANY = 20
FAR = 50
NOISE = 1e-3


def doubts_about(model: Model, parameters: Parameters) -> Iterator[str]:
    """Every doubt in a line, the gravest first."""
    if not model.attributes:
        yield _uses_nothing(model)
    elif parameters.held_out is not None and gains_nothing(parameters.held_out):
        yield _gains_nothing(model, parameters.held_out)
    if model.attributes and not isinstance(model.predictor, Ensemble) and parameters.n_parameters > model.n_rows:
        yield from _exceed(model, parameters.n_parameters)


def gains_nothing(held_out: HeldOut) -> bool:
    """Whether the class frequencies do as well."""
    return held_out.log_loss >= held_out.base_log_loss * (1 - NOISE)


def _uses_nothing(model: Model) -> str:
    schema = model.schema
    n = len(schema.attributes)
    which = "the only attribute" if n == 1 else f"any of the {n:,} attributes"
    what = f"the model does not use {which}: every row gets the class frequencies of {schema.class_name!r}"
    if any(a.informative for a in schema.attributes):
        return f"{what}, which were better on rows held out; is it the class that you mean (--class)?"
    uncut = any(isinstance(a, NumericAttribute) and not a.informative for a in schema.attributes)
    cut = (
        "--discretize equal-frequency cuts numbers all the same; " if uncut and model.recipe.discretize == "mdl" else ""
    )
    return f"{what}; {cut}is it the class that you mean (--class)?"


def _gains_nothing(model: Model, held_out: HeldOut) -> str:
    losses = f"log-loss {held_out.log_loss:.4g} a row, theirs {held_out.base_log_loss:.4g}"
    other = "" if isinstance(model.predictor, Ensemble) else "try --structure auto, or "
    return (
        f"on rows held out the model is no better than the class frequencies alone ({losses}); "
        f"{other}look for attributes that tell more about {model.schema.class_name!r}"
    )


def _exceed(model: Model, n_parameters: int) -> Iterator[str]:
    """Names the column whose families hold the most cells (ties: the first) or, if none is to blame, the largest."""
    families, schema = model.predictor.families, model.schema
    cells = [0] * len(schema.attributes)
    for family in families:  # not attribute by attribute: there may be very many
        for i in family.attributes:
            cells[i] += family.n_cells
    most = max(range(len(cells)), key=cells.__getitem__)
    share = cells[most] / sum(family.n_cells for family in families)
    what = f"{n_parameters:,} parameters from {model.n_rows:,} rows"
    nb = "" if model.recipe.structure == "nb" else " or learn --structure nb"
    is_category = isinstance(schema.attributes[most], CategoricalAttribute)
    if is_category and schema.cardinalities[most] > MANY and 2 * share > 1:
        name, n_values = schema.attributes[most].name, schema.cardinalities[most]
        advice = f"leave it out (--ignore {name!r}){',' if nb else ' or'} pool its values (--group-levels){nb}"
        yield f"{what}: {100 * share:.0f} % of them are about {name!r} and its {n_values:,} values; {advice}"
    elif n_parameters > FAR * model.n_rows and not model.penalty:
        largest = max(families, key=lambda f: f.n_cells).attributes
        names = ", ".join(repr(schema.attributes[i].name) for i in largest)
        held_down = "--param discriminative" if model.recipe.penalty is None else "--penalty cv"
        yield f"{what}, and no penalty: the largest table is over {names}; learn with {held_down}{nb}"
