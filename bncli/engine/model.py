"""What learning ends in: predictors of three kinds, and the record that a model file holds.

A predictor yields P(y | x): the sum of one table entry a family (`Tables`), an average over the models of a search for
regions (`Path`), or models of several kinds together (`Ensemble`). What a predictor is asked for by its kind is told by
the attributes and methods that the three have in common, and beyond this room by functions that dispatch on the kind:
`engine/prediction` compiles it for scoring, `engine/explanation` makes it a mixture, `files/predictors` stores it.

A penalty that rows held out have chosen, and what they told on the way.

What a model records of how to decide: costs, a threshold, when to abstain, prediction sets. Never its probabilities.

All of it is read by `engine/decisions`, which has the formulas.

How probable training rows are to the network learnt from them: ln P(x), beside which new rows are looked at.

Made-up rows that a model carries, with what it said of them when it was made (`prediction.verification`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, singledispatch
from typing import ClassVar, NamedTuple

import numpy as np

from bncli.engine.calibration import Calibration
from bncli.engine.data.schema import Schema
from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.structures.structure import Dag, Family, Structure
from bncli.recipe import Recipe


class TriedPenalty(NamedTuple):
    """A penalty lambda, and the log-loss a row, in nats, of rows that were held out."""

    penalty: float
    log_loss: float


class TriedArcs(NamedTuple):
    """A choice among the arcs that a search found (`class`, `none`, `supported`, `all`), and how many arcs that leaves.

    `penalty` is the best lambda with them, `log_loss` that of held-out rows there, in nats.
    """

    arcs: str
    n_arcs: int
    penalty: float
    log_loss: float


class Shrinkage(NamedTuple):
    """How far tables are shrunk towards the class frequencies: the factor that is left of their log-odds, below 1.

    `log_loss` is that of held-out rows then, in nats.
    """

    factor: float
    log_loss: float


@dataclass(frozen=True)
class ChosenPenalty:
    """A penalty that cross-validation chose, and all that were tried, in the order in which they were.

    `arcs` are the choices of arcs that competed on the same rows, if any did; `shrinkage` is what these rows asked for
    beside the penalty, None for nothing.
    """

    penalty: float
    tried: tuple[TriedPenalty, ...]
    arcs: tuple[TriedArcs, ...] = ()
    shrinkage: Shrinkage | None = None

    @property
    def log_loss(self) -> float | None:
        """That of rows that were held out, as the model is in the end; None where none were."""
        if self.shrinkage is not None:
            return self.shrinkage.log_loss
        return next((one.log_loss for one in self.tried if one.penalty == self.penalty), None)


class HeldOutLoss(NamedTuple):
    """Mean losses of rows that were held out while something was chosen by them: of the model, and of the base.

    The base is to answer with the class frequencies of the rows learnt from, whatever the row. Nats a row.
    """

    log_loss: float
    base_log_loss: float


Numbers = tuple[float, ...]


class Threshold(NamedTuple):
    """The second of two labels is decided for from this probability on; `chosen` by what, "" where it was typed."""

    value: float
    chosen: str = ""


class PredictionSets(NamedTuple):
    """Prediction sets that miss the true label in a share alpha of the rows, or (`by_class`) of the rows of each."""

    alpha: float
    by_class: bool = False


@dataclass(frozen=True)
class HeldOutScores:
    """What rows that were held out got for their own label: by label P(y_t | x_t), ascending, and the rows' weights.

    `split`: the model has seen none of these rows; else each was predicted by a model of a fold that had not. Of very
    many rows a sample is kept.
    """

    probabilities: tuple[Numbers, ...]
    weights: tuple[Numbers, ...] | None
    split: bool


@dataclass(frozen=True)
class DecisionRule:
    """How to decide; what is None is not asked for. costs[true][decision]."""

    costs: tuple[Numbers, ...] | None = None
    threshold: Threshold | None = None
    abstain_below: float | None = None
    sets: PredictionSets | None = None
    held_out: HeldOutScores | None = None

    @property
    def decides(self) -> bool:
        """Whether a row gets a label, or none, by it; sets alone decide nothing."""
        return (self.costs, self.threshold, self.abstain_below) != (None, None, None)


QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


class TrainingLogP(NamedTuple):
    """The mean of ln P(x), in nats, over so many training rows, and what a share of QUANTILES do not exceed."""

    rows: int
    mean: float
    quantiles: tuple[float, ...]

    @property
    def lowest(self) -> float:
        """That of the first of QUANTILES."""
        return self.quantiles[0]


class SelfTest(NamedTuple):
    """codes (attributes, rows) of the attributes that the model looks at, as in the schema; P(y | x_t) (K, rows).

    The code of an unknown value is the cardinality of its attribute.
    """

    codes: Index
    probabilities: Array

    @property
    def n_rows(self) -> int:
        return len(self.probabilities.T)


@dataclass(frozen=True)
class Tables:
    """The scorer: S[t, y] = bias[y] + sum over families f of weights[f][cell_f(t), y]; P(y | x_t) = softmax_y S[t, y].

    bias (K,), weights[f] (cells of f, K), both float64, natural logs.
    """

    bias: Array
    families: tuple[Family, ...]
    weights: tuple[Array, ...]

    penalty: ClassVar[float | None] = None
    """It is not the tables that know of it: see `Model.penalty`."""

    @property
    def leading(self) -> Tables:
        """The tables of the one model that stands for all: themselves."""
        return self

    @property
    def n_parameters(self) -> int:
        """Number of table entries, the bias included; a column that all classes share counts once."""
        sizes = (w.size if f.by_class else len(w) for f, w in zip(self.families, self.weights, strict=True))
        return self.bias.size + sum(sizes)


class PathStep(NamedTuple):
    """One model on a path: what was added, how the counting numbers change, and what the model is worth.

    region: attribute indices, ascending; () in step 0, the class alone. changes: (index of a family of the path, or -1
    for the class alone; change of its counting number), in that order. Log-likelihood of the classes given the
    attributes and log posterior in nats; weight is the share in the average over the path.
    """

    region: tuple[int, ...]
    changes: tuple[tuple[int, int], ...]
    df: int
    log_likelihood: float
    log_posterior: float
    weight: float


@dataclass(frozen=True)
class Path:
    """Models that grow region by region, each region's submodel once: an average of Kikuchi-Bayes classifiers.

        P(y | x_t) = sum over steps s of weight_s softmax_y S_s[t, y],
        S_s[t, y] = sum over regions R of c_R,s ln P(v_R),    c_R,s = sum of the changes of R in steps 0..s

    class_logs (K,) = ln P(y); logs[f] (cells of f, K) = ln P(v_R), normalised over all cells and classes. No family has
    a child. Weights sum to 1.
    """

    class_logs: Array
    families: tuple[Family, ...]
    logs: tuple[Array, ...]
    steps: tuple[PathStep, ...]

    penalty: ClassVar[float | None] = None
    """Submodels are relative frequencies."""

    @property
    def leading(self) -> Tables:
        """The tables of the best step."""
        return self.tables(self.best)

    @property
    def n_parameters(self) -> int:
        """Number of table entries, those of the class included."""
        return self.class_logs.size + sum(logs.size for logs in self.logs)

    @property
    def best(self) -> int:
        """The step of the highest posterior, the first of equals."""
        posteriors = [step.log_posterior for step in self.steps]
        return posteriors.index(max(posteriors))

    def tables(self, step: int) -> Tables:
        """Return the model of one step: regions whose counting number is not 0, each submodel times its number."""
        numbers: dict[int, int] = {}
        for earlier in self.steps[: step + 1]:
            for family, change in earlier.changes:
                numbers[family] = numbers.get(family, 0) + change
        used = [f for f in range(len(self.families)) if numbers.get(f)]
        return Tables(
            numbers.get(-1, 0) * self.class_logs,
            tuple(self.families[f] for f in used),
            tuple(numbers[f] * self.logs[f] for f in used),
        )


class Component(NamedTuple):
    """One of the models of an ensemble: its weight there, its tables, and what it is called."""

    weight: float
    tables: Tables
    name: str


class TriedCandidate(NamedTuple):
    """A candidate for an ensemble: best penalty, log-loss of held-out rows there in nats, weight (0: left out).

    `error` is the share of these rows that it classified wrong.
    """

    name: str
    penalty: float
    log_loss: float
    error: float
    weight: float


class Pool(Enum):
    """How an ensemble combines what its components say; the value is the word in a model file."""

    LINEAR = "linear"
    LOGARITHMIC = "logarithmic"


@dataclass(frozen=True)
class Ensemble:
    """A pool of the opinions of its components (Genest & Zidek 1986, Statistical Science 1).

        P(y | x_t) = softmax_y (sum over components m of weight_m S_m[t, y])        logarithmic
        P(y | x_t) = sum over components m of weight_m softmax_y S_m[t, y]          linear

    The logarithmic pool is one sum of tables, and its weights sum to whatever fits best; those of the linear one, which
    models learnt by earlier versions have, sum to 1. The heaviest component comes first; `trials` tells of every
    candidate, those left out included.
    """

    components: tuple[Component, ...]
    trials: tuple[TriedCandidate, ...] = ()
    pool: Pool = Pool.LINEAR

    @property
    def penalty(self) -> float | None:
        """The lambda of the heaviest component."""
        return max(self.trials, key=lambda trial: trial.weight).penalty if self.trials else None

    @property
    def leading(self) -> Tables:
        """The tables of the heaviest component."""
        return self.components[0].tables

    @cached_property
    def combined(self) -> Tables:
        """A logarithmic pool as the one sum of tables that it is; families that components share are added up."""
        bias = np.sum([weight * tables.bias for weight, tables, _ in self.components], axis=0)
        sums: dict[Family, Array] = {}
        for weight, tables, _ in self.components:
            for family, entries in zip(tables.families, tables.weights, strict=True):
                sums[family] = weight * entries + sums.get(family, 0.0)
        return Tables(np.asarray(bias), tuple(sums), tuple(sums.values()))

    @property
    def families(self) -> tuple[Family, ...]:
        """Those of all components, one after the other."""
        return tuple(family for component in self.components for family in component.tables.families)

    @property
    def n_parameters(self) -> int:
        """Number of table entries of all components."""
        return sum(component.tables.n_parameters for component in self.components)


Predictor = Tables | Path | Ensemble


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
    """Where an optimiser ended: point, objective (to be minimised, nats), gradient norm, and what it took.

    An evaluation gives value and gradient; `products` are those with the Hessian.
    """

    point: Array
    value: float
    gradient_norm: float
    iterations: int
    evaluations: int
    stopped_by: StoppedBy
    products: int = 0


SAME_END = 1e-9
"""Objectives that differ by less than this share are those of one optimum."""


class Restarts(NamedTuple):
    """Where the starts of an optimization ended, the usual one first, then random ones: objectives, to be maximised.

    In nats, the penalty taken off. `held_out`: log-likelihoods of held-out rows, by which early stopping chooses.
    """

    objectives: tuple[float, ...]
    held_out: bool = False

    @property
    def best(self) -> float:
        """The objective of the start that is kept."""
        return self.objectives[self.kept]

    @property
    def kept(self) -> int:
        """The start of the highest objective; of those that differ by rounding alone the first."""
        kept = 0
        for start, objective in enumerate(self.objectives):
            if objective - self.objectives[kept] > SAME_END * abs(objective):
                kept = start
        return kept

    @property
    def spread(self) -> float:
        """From the lowest to the highest."""
        return max(self.objectives) - min(self.objectives)


@dataclass(frozen=True)
class Parameters:
    """What a parameter learner returns; n_parameters are the free ones.

    cll_start and cll are conditional log-likelihoods of the training rows, nats, without penalty. `held_out` is None
    where no row was. `products` are those with the Hessian. With `restarts` all figures are those of the start that is
    kept.
    """

    predictor: Predictor
    n_parameters: int
    cll_start: float
    cll: float
    iterations: int
    evaluations: int
    stopped_by: StoppedBy
    penalty_cv: ChosenPenalty | None = None
    held_out: HeldOutLoss | None = None
    restarts: Restarts | None = None
    products: int = 0

    @property
    def passes(self) -> int:
        """What the optimization cost in passes over the rows: an evaluation is one, and so is a product."""
        return self.evaluations + self.products

    @property
    def tables(self) -> Tables:
        """Those of the leading model."""
        return self.predictor.leading


@dataclass(frozen=True)
class Model:
    """Everything that a model file holds: how to read a row, how to score it, and how it was made.

    n_rows counts the training rows; version is the version of bncli that learnt it. penalty_cv is there if the recipe
    leaves the penalty to cross-validation, restarts if it asks for random starts, self_test once it is written. The
    structure of an ensemble is that of its heaviest component. sampled_rows: as of `Cuts`. class_weights: by what the
    rows of each label were multiplied; None where each counted as it was. plain_frequencies: then, of each
    attribute used, what rows with each value and with none weighed before that. calibration: what is done to the
    probabilities of the predictor. rule: how to decide by the probabilities. log_p: ln P(x) of training rows, where
    that was asked for.
    """

    schema: Schema
    structure: Structure
    predictor: Predictor
    recipe: Recipe
    n_rows: int
    version: str
    penalty_cv: ChosenPenalty | None = None
    restarts: Restarts | None = None
    sampled_rows: int | None = None
    self_test: SelfTest | None = None
    class_weights: tuple[float, ...] | None = None
    plain_frequencies: Mapping[int, tuple[float, ...]] | None = None
    rule: DecisionRule | None = None
    calibration: Calibration | None = None
    log_p: TrainingLogP | None = None

    @property
    def tables(self) -> Tables:
        """Those of the leading model: the best step of a path, the heaviest component of an ensemble."""
        return self.predictor.leading

    @property
    def attributes(self) -> frozenset[int]:
        """The attributes that the model looks at; where missing values are marginalized, all of its network."""
        return _attributes(self.predictor, self)

    @property
    def structure_learned(self) -> str:
        """What the structure is in words: the method's, or what held-out rows left of it."""
        method, arcs = self.recipe.structure, () if self.penalty_cv is None else self.penalty_cv.arcs
        if not arcs or not isinstance(self.structure, Dag):
            return str(method)
        if not self.structure.class_children and not self.structure.class_parents:
            return f"the class alone, chosen from {method} by held-out rows"
        kept, found = self.structure.n_arcs, arcs[-1].n_arcs
        if kept == found:
            return str(method)
        left = f"{kept:,} of {found:,} arcs" if kept else "naive Bayes"
        return f"{left}, chosen from {method} by held-out rows"

    @property
    def penalty(self) -> float | None:
        """The lambda of the fit, or of the heaviest component of an ensemble; None for parameters in closed form."""
        if self.penalty_cv is not None:
            return self.penalty_cv.penalty
        if self.predictor.penalty is not None:
            return self.predictor.penalty
        return None if isinstance(self.recipe.penalty, str) else self.recipe.penalty


@singledispatch
def _attributes(_: Predictor, model: Model) -> frozenset[int]:
    """Return those of the structure: a path may use fewer, where its last regions have no weight."""
    return frozenset(model.structure.nodes if model.schema.marginalizes else model.structure.attributes)


@_attributes.register
def _(ensemble: Ensemble, _: Model) -> frozenset[int]:
    return frozenset(a for family in ensemble.families for a in family.attributes)
