"""What learning ends in: tables that score, and the record that a model file holds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from bncli.engine.data.schema import Schema
from bncli.engine.kernels.arrays import Array
from bncli.engine.structures.structure import Family, Structure
from bncli.recipe import Recipe


@dataclass(frozen=True)
class Tables:
    """The scorer: S[t, y] = bias[y] + sum over families f of weights[f][cell_f(t), y]; P(y | x_t) = softmax_y S[t, y].

    bias (K,), weights[f] (cells of f, K), both float64, natural logs.
    """

    bias: Array
    families: tuple[Family, ...]
    weights: tuple[Array, ...]

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
        """The model of one step: regions whose counting number is not 0, each submodel times its number."""
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

    point: Array
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

    cll_start and cll are conditional log-likelihoods of the training rows, nats, without penalty. `path` is there where
    the classifier is an average over one; `tables` are then those of its best step.
    """

    tables: Tables
    n_parameters: int
    cll_start: float
    cll: float
    iterations: int
    evaluations: int
    stopped_by: StoppedBy
    penalty_cv: ChosenPenalty | None = None
    path: Path | None = None


class Member(NamedTuple):
    """One of the models that a blend averages: its share in the average, its tables, and what it is called."""

    weight: float
    tables: Tables
    name: str


class TriedCandidate(NamedTuple):
    """A candidate for a blend: its best penalty, the log-loss of held-out rows there in nats, its share (0: left out).

    `error` is the share of these rows that it classified wrong.
    """

    name: str
    penalty: float
    log_loss: float
    error: float
    weight: float


@dataclass(frozen=True)
class Model:
    """Everything that a model file holds: how to read a row, how to score it, and how it was made.

    n_rows counts the training rows; version is the version of bncli that learnt it. penalty_cv is there if the recipe
    leaves the penalty to cross-validation. Where there is a `path`, it is what scores, and `tables` are those of its
    best step. Where there is a `blend`, P(y | x) is the weighted average of what its members say;
    `tables` and `structure` are those of the heaviest, which comes first, and `trials` tells of every candidate.
    """

    schema: Schema
    structure: Structure
    tables: Tables
    recipe: Recipe
    n_rows: int
    version: str
    penalty_cv: ChosenPenalty | None = None
    path: Path | None = None
    blend: tuple[Member, ...] | None = None
    trials: tuple[TriedCandidate, ...] = ()

    @property
    def penalty(self) -> float | None:
        """The lambda of the fit, or of the heaviest member of a blend; None for parameters in closed form."""
        if self.penalty_cv is not None:
            return self.penalty_cv.penalty
        if self.trials:
            return max(self.trials, key=lambda trial: trial.weight).penalty
        return None if isinstance(self.recipe.penalty, str) else self.recipe.penalty
