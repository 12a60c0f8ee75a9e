"""Any model as an average of sums of tables: what there is to explain.

    P(y | x) = sum over models s of w_s softmax_y S_s[x, y],    S_s = sum over terms p of numbers[s, p] G_p

A term is a constant and contrast tensors (`explanation.contrasts`). A model without an average has one term,
a linear pool one for each component. A path of Kikuchi-Bayes models has one for the class alone and one a region; there
`numbers` are the counting numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

import numpy as np

from bncli.engine.data.schema import Schema
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Ensemble, Path, Pool, Predictor, Tables
from bncli.engine.prediction.factors import LEAST_WEIGHT, SubmodelTensors
from bncli.engine.prediction.purification import (
    MOST_ATTRIBUTES,
    ContrastTensor,
    PureTable,
    Score,
    are_many,
    contrasts,
    is_small,
    ordered_tensor,
    tensor_of,
)
from bncli.engine.structures.structure import Family
from bncli.errors import BncliError


@dataclass(frozen=True)
class Mixture:
    """weights (S,) sum to 1; numbers (S, P); terms: P scores. Where each term is a model, `models` (P,) are these."""

    weights: Array
    numbers: Array
    terms: tuple[Score, ...]
    models: tuple[Tables, ...] = ()

    def averaged(self) -> Score:
        """Return the average of the models' scores by their weights; not the score of their averaged probabilities."""
        shares = self.weights @ self.numbers
        constant = np.sum([share * term.constant for share, term in zip(shares, self.terms, strict=True)], axis=0)
        tensors = (
            ContrastTensor(tensor.attributes, tensor.groupings, share * tensor.values)
            for share, term in zip(shares, self.terms, strict=True)
            for tensor in term.tensors
        )
        tables = (
            table.times(float(share)) for share, term in zip(shares, self.terms, strict=True) for table in term.tables
        )
        return Score(np.asarray(constant), tuple(tensors), tuple(tables))


@singledispatch
def mixture_of(predictor: Predictor, schema: Schema) -> Mixture:
    """Return what there is to explain of a predictor, by its kind; BncliError for a table over too many attributes."""
    raise TypeError(f"there is no explanation of {type(predictor).__name__}")


@mixture_of.register
def _(tables: Tables, schema: Schema) -> Mixture:
    return Mixture(np.ones(1), np.eye(1), (_score(tables, schema),))


@mixture_of.register
def _(ensemble: Ensemble, schema: Schema) -> Mixture:
    """Return the terms of a pool: one sum of tables if logarithmic, one term per component if linear."""
    if ensemble.pool is Pool.LOGARITHMIC:
        return mixture_of(ensemble.combined, schema)
    models = tuple(component.tables for component in ensemble.components)
    terms = tuple(_score(tables, schema) for tables in models)
    weights = np.array([component.weight for component in ensemble.components])
    return Mixture(weights / weights.sum(), np.eye(len(terms)), terms, models)


def _score(tables: Tables, schema: Schema) -> Score:
    """Return the tables without families that lack the class: these are equal for all classes."""
    families = [(f, w) for f, w in zip(tables.families, tables.weights, strict=True) if f.by_class]
    small = [(is_small(family) and len(family.attributes) <= MOST_ATTRIBUTES) for family, _ in families]
    if not are_many([f for (f, _), chosen in zip(families, small, strict=True) if chosen], schema.cardinalities):
        small = [False] * len(small)
    joined = list(zip(families, small, strict=True))
    tensors = tuple(tensor_of(_checked(family), w, schema) for (family, w), alone in joined if not alone)
    pure = tuple(PureTable.of(family, w, schema) for (family, w), many in joined if many)
    constant = contrasts(tables.bias) + sum(table.constant for table in pure)
    return Score(np.asarray(constant), tensors, pure)


def _checked(family: Family) -> Family:
    """Return the family, unless it has too many terms."""
    if len(family.attributes) > MOST_ATTRIBUTES:
        what = f"the effects inside a table over {len(family.attributes)} attributes cannot be told apart"
        raise BncliError(what, hint=f"learn a model with tables over at most {MOST_ATTRIBUTES} attributes")
    return family


@mixture_of.register
def _(path: Path, _: Schema) -> Mixture:
    """Return the steps with weight; a region is a term if one of them counts it."""
    rows: list[Array] = []
    weights: list[float] = []
    numbers = np.zeros(len(path.families) + 1)
    for step in path.steps:
        for family, change in step.changes:
            numbers[family] += change  # -1, the class alone, is the last
        if step.weight >= LEAST_WEIGHT:
            rows.append(numbers.copy())
            weights.append(step.weight)
    table = np.array(rows)
    counted = [f for f in range(len(path.families)) if table[:, f].any()]
    submodels = SubmodelTensors(path)
    terms = [_region(path, submodels, f) for f in counted]
    alone = Score(contrasts(path.class_logs), ())
    return Mixture(np.array(weights) / sum(weights), table[:, [*counted, -1]], (*terms, alone))


def _region(path: Path, submodels: SubmodelTensors, f: int) -> Score:
    family = _checked(path.families[f])
    values = contrasts(submodels.expanded(f))
    return Score(np.zeros(values.shape[-1]), (ordered_tensor(family.attributes, (None,) * len(family.shape), values),))
