"""What learning ends in: tables that score, and the record that a model file holds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.engine.schema import Schema
from bncli.engine.structure import Family, Structure
from bncli.recipe import Recipe


@dataclass(frozen=True)
class Tables:
    """The scorer: S[t, y] = bias[y] + sum over families f of weights[f][cell_f(t), y]; P(y | x_t) = softmax_y S[t, y].

    bias (K,), weights[f] (cells of f, K), both float64, natural logs.
    """

    bias: NDArray[np.float64]
    families: tuple[Family, ...]
    weights: tuple[NDArray[np.float64], ...]

    @property
    def n_parameters(self) -> int:
        """Number of table entries, the bias included; a column that all classes share counts once."""
        sizes = (w.size if f.by_class else len(w) for f, w in zip(self.families, self.weights, strict=True))
        return self.bias.size + sum(sizes)


class StoppedBy(Enum):
    """Why an optimiser stopped: the name (with hyphens) is the JSON word, the value is the sentence printed."""

    TOLERANCE = "the objective no longer improved by more than the tolerance"
    GRADIENT = "the gradient vanished"
    MAX_ITERATIONS = "the cap on iterations was reached before convergence; raise --max-iterations"
    LINE_SEARCH = "no better point could be found along the search direction"
    SEPARABLE = "the classes are separable, so there is no finite optimum; use a penalty above 0"
    CROSS_TUNING = "more iterations did not help rows that were held out"
    CLOSED_FORM = "the parameters have a closed form"

    @property
    def word(self) -> str:
        return self.name.lower().replace("_", "-")


@dataclass(frozen=True)
class Optimum:
    """Where an optimiser ended: point, objective (to be minimised, nats), gradient norm, and what it took."""

    point: NDArray[np.float64]
    value: float
    gradient_norm: float
    iterations: int
    evaluations: int
    stopped_by: StoppedBy


class Tried(NamedTuple):
    """A penalty lambda, and the log-loss a row, in nats, of rows that were held out."""

    penalty: float
    log_loss: float


@dataclass(frozen=True)
class ChosenPenalty:
    """A penalty that cross-validation chose, and all that were tried, in the order in which they were."""

    penalty: float
    tried: tuple[Tried, ...]


@dataclass(frozen=True)
class Parameters:
    """What a parameter learner returns; n_parameters are the free ones.

    cll_start and cll are conditional log-likelihoods of the training rows, nats, without penalty.
    """

    tables: Tables
    n_parameters: int
    cll_start: float
    cll: float
    iterations: int
    evaluations: int
    stopped_by: StoppedBy
    penalty_cv: ChosenPenalty | None = None


@dataclass(frozen=True)
class Model:
    """Everything that a model file holds: how to read a row, how to score it, and how it was made.

    n_rows counts the training rows; version is the version of bncli that learnt it. penalty_cv is there if the recipe
    leaves the penalty to cross-validation.
    """

    schema: Schema
    structure: Structure
    tables: Tables
    recipe: Recipe
    n_rows: int
    version: str
    penalty_cv: ChosenPenalty | None = None

    @property
    def penalty(self) -> float | None:
        """The lambda of the fit; None for parameters in closed form."""
        if self.penalty_cv is not None:
            return self.penalty_cv.penalty
        return None if isinstance(self.recipe.penalty, str) else self.recipe.penalty
