"""Models: the content of a model file, and the records that it consists of.

A `Model` predicts P(y | x) by one of three kinds of predictor:

    Tables      scores that are sums of table entries, one entry per family
    Path        an average over the models of a search for regions
    Ensemble    a weighted pool of several sums of tables

Other modules dispatch on the class: `engine/prediction` compiles predictors for scoring and explains them,
`files/artifacts/predictors.py` stores them.

The other records describe how the parameters were found (`Parameters`, `Optimum`, `Restarts`, `ChosenPenalty`), what a
model needs when it is used (`DecisionRule`, `HeldOutScores`, `TrainingLogP`, `SelfTest`), and how effects were edited
by hand (`Edit`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from bncli.engine.calibration import Calibration
from bncli.engine.data.schema import Schema
from bncli.engine.data.splits import SplitRecord
from bncli.engine.kernels.arrays import Array, Index, Integers
from bncli.engine.structures.structure import Dag, Family, Regions, Structure
from bncli.recipe import Recipe


@dataclass(frozen=True)
class Model:
    """The content of a model file: how to read a row, how to score it, and how the model was made.

    - structure: the structure of the heaviest component if the predictor is an ensemble
    - n_rows: number of training rows; version: the version of bncli that learned the model
    - penalty_cv: the choice of the penalty, the arcs or both, or None if neither was to be chosen on held-out rows
    - restarts: the objectives reached from several starts, or None if there were no random starts
    - sampled_rows: number of rows from which the cut points were learned, or None if these were all rows
    - self_test: only in a model that was written to a file
    - class_weights (K,): factor of the row weights of each class, or None
    - plain_frequencies: only with class weights. For each attribute used, keyed by its index: the weight, without these
      factors, of the training rows with each code and, last, of the rows with an unknown value
    - rule: the decision rule; calibration: the map applied to the predictor's probabilities
    - log_p: summary of ln P(x) of training rows, if it was requested
    - held_out: the log-loss of held-out rows with the chosen settings, unless `penalty_cv` holds the same value
    - split: how rows were split into units or by time, or None if each row was a unit and the rows had no order
    - edits: changes of effects by hand, the oldest first
    - uncertainty: the uncertainty of the tables, if it was requested
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
    held_out: HeldOutLoss | None = None
    split: SplitRecord | None = None
    edits: tuple[Edit, ...] = ()
    uncertainty: ParameterUncertainty | None = None

    @property
    def held_out_log_loss(self) -> float | None:
        """The log-loss of held-out rows in nats per row, or None if no row was held out."""
        if self.held_out is not None:
            return self.held_out.log_loss
        return None if self.penalty_cv is None else self.penalty_cv.log_loss

    @property
    def tables(self) -> Tables:
        """The tables of the predictor, of the best step of a path, or of the heaviest component of an ensemble."""
        return self.predictor.leading

    @property
    def attributes(self) -> frozenset[int]:
        """The indices of the attributes that predictions depend on.

        If missing values are marginalized, these are all attributes of the network. For a path, they are all attributes
        of its regions, even of regions without weight.
        """
        if isinstance(self.predictor, Ensemble):
            return frozenset(a for family in self.predictor.families for a in family.attributes)
        return frozenset(self.structure.nodes if self.schema.marginalizes else self.structure.attributes)

    @property
    def structure_learned(self) -> str:
        """A description of how the structure was learned: its method, and what was chosen on held-out rows."""
        method, arcs = self.recipe.structure, () if self.penalty_cv is None else self.penalty_cv.arcs
        if isinstance(self.structure, Regions) and self.penalty_cv is not None and self.penalty_cv.structures:
            return f"{method}, chosen on held-out rows"
        if not arcs or not isinstance(self.structure, Dag):
            return str(method)
        if not self.structure.class_children and not self.structure.class_parents:
            return f"the class alone, chosen from {method} on held-out rows"
        n_left, n_learned = self.structure.n_arcs, arcs[-1].n_arcs
        if n_left == n_learned:
            return str(method)
        left = f"{n_left:,} of {n_learned:,} arcs" if n_left else "naive Bayes"
        return f"{left}, chosen from {method} on held-out rows"

    @property
    def penalty(self) -> float | None:
        """The penalty of the fit, or of an ensemble's heaviest component; None if the fit had no such setting."""
        if self.penalty_cv is not None:
            return self.penalty_cv.penalty
        if self.predictor.penalty is not None:
            return self.predictor.penalty
        return None if isinstance(self.recipe.penalty, str) else self.recipe.penalty


class HeldOutPredictions(NamedTuple):
    """Predictions of labelled rows by models that had not learned from them.

    - log_probabilities: ln P(y | x_t), (K, N); codes: the label codes (N,)
    - weights, units: the weight and the unit of each row, (N,), or None. Parameter learners return the weights they
      used, which include class weights; `learn` returns the rows' own weights
    """

    log_probabilities: Array
    codes: Integers
    weights: Array | None
    units: Integers | None


@dataclass(frozen=True)
class Parameters:
    """The result of a parameter learner.

    - n_parameters: number of free parameters
    - cll_start, cll: conditional log-likelihood of the training rows at the start and at the end, in nats, without the
      penalty; `cll_start` is NaN if the parameters were optimized with a prior network
    - iterations, evaluations (of value and gradient), products (of the Hessian with a vector): counts of the
      optimization, or of its best start if there were `restarts`
    - held_out: the log-loss of held-out rows, or None if no row was held out
    - held_out_predictions: the predictions of these rows, or None if they were not kept
    - log_loss_unlimited: for a score card, the log-loss of the same held-out rows without the card's limits, or None
    - point: the optimum (P,) in the coordinates of the parameter space, or None if no optimizer was used
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
    held_out_predictions: HeldOutPredictions | None = None
    restarts: Restarts | None = None
    products: int = 0
    log_loss_unlimited: float | None = None
    point: Array | None = None

    @property
    def passes(self) -> int:
        """The number of passes over the rows: one per evaluation and one per Hessian product."""
        return self.evaluations + self.products

    @property
    def tables(self) -> Tables:
        """The tables of the predictor, of the best step of a path, or of the heaviest component of an ensemble."""
        return self.predictor.leading


@dataclass(frozen=True)
class Tables:
    """A sum of table entries: S[t, y] = bias[y] + sum over families f of weights[f][cell_f(t), y].

    P(y | x_t) = softmax_y S[t, y]. bias (K,) and weights[f] (cells of f, K) are float64 natural logarithms.
    """

    bias: Array
    families: tuple[Family, ...]
    weights: tuple[Array, ...]

    penalty: ClassVar[float | None] = None
    """None, because tables do not store their penalty (see `Model.penalty`)."""

    @classmethod
    def of_cells(cls, cells: Array, families: tuple[Family, ...]) -> Tables:
        """Return the tables over `families` whose entries are `cells` (K, n_cells)."""
        edges = np.cumsum([1, *(family.n_cells for family in families)])[:-1]
        bias, *weights = np.split(cells, edges, axis=1)
        return cls(bias[:, 0].copy(), families, tuple(np.ascontiguousarray(w.T) for w in weights))

    @property
    def cells(self) -> Array:
        """All entries as one array (K, n_cells): the bias, then family after family."""
        return np.concatenate([self.bias[:, np.newaxis], *(w.T for w in self.weights)], axis=1)

    @property
    def leading(self) -> Tables:
        """The tables themselves; for `Path` and `Ensemble`, the tables of one of their models."""
        return self

    @property
    def n_parameters(self) -> int:
        """The number of table entries, including the bias; an entry shared by all classes counts once."""
        sizes = (w.size if f.by_class else len(w) for f, w in zip(self.families, self.weights, strict=True))
        return self.bias.size + sum(sizes)


@dataclass(frozen=True)
class Path:
    """A weighted average of the models on a path, where each model adds a region to the one before it.

    The models are Kikuchi-Bayes classifiers that share submodels:

        P(y | x_t) = sum over steps s of weight_s softmax_y S_s[t, y],
        S_s[t, y] = sum over regions R of c_R,s ln P(v_R),    c_R,s = sum of the changes of R in steps 0..s

    c_R,s is the counting number of region R, and v_R are the values of its variables. class_logs (K,) = ln P(y);
    logs[f] (cells of f, K) = ln P(v_R) for the region of family f, where P sums to 1 over all cells and classes. No
    family has a child. The weights of the steps sum to 1.
    """

    class_logs: Array
    families: tuple[Family, ...]
    logs: tuple[Array, ...]
    steps: tuple[PathStep, ...]

    penalty: ClassVar[float | None] = None
    """None, because submodels are relative frequencies."""

    @property
    def leading(self) -> Tables:
        """The tables of the best step."""
        return self.tables(self.best)

    @property
    def n_parameters(self) -> int:
        """The number of table entries, including `class_logs`."""
        return self.class_logs.size + sum(logs.size for logs in self.logs)

    @property
    def best(self) -> int:
        """The index of the step with the highest posterior (ties: the first)."""
        posteriors = [step.log_posterior for step in self.steps]
        return posteriors.index(max(posteriors))

    def tables(self, step: int) -> Tables:
        """Return the model of one step: each submodel with a nonzero counting number, multiplied by that number."""
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


class PathStep(NamedTuple):
    """One model on a path.

    - region: attribute indices of the region that the step adds, ascending; () in step 0, which has only the class
    - changes: pairs of a family index (-1 for the class alone) and the change of its counting number, in index order
    - df: degrees of freedom of the model
    - log_likelihood: log-likelihood of the classes given the attributes, in nats; log_posterior: in nats
    - weight: weight of the step in the average over the path
    """

    region: tuple[int, ...]
    changes: tuple[tuple[int, int], ...]
    df: int
    log_likelihood: float
    log_posterior: float
    weight: float


class Pool(Enum):
    """The way in which an ensemble combines its components; the value is the word used in model files."""

    LINEAR = "linear"
    LOGARITHMIC = "logarithmic"


@dataclass(frozen=True)
class Ensemble:
    """A linear or logarithmic opinion pool of several models (Genest & Zidek 1986, Statistical Science 1).

        P(y | x_t) = softmax_y (sum over components m of weight_m S_m[t, y])        logarithmic
        P(y | x_t) = sum over components m of weight_m softmax_y S_m[t, y]          linear

    The weights of a linear pool sum to 1; the sum of the weights of a logarithmic pool is fitted. Linear pools occur in
    files of earlier versions. The heaviest component comes first. `trials` lists every candidate that was tried,
    including candidates of weight 0.
    """

    components: tuple[Component, ...]
    trials: tuple[TriedCandidate, ...] = ()
    pool: Pool = Pool.LINEAR

    @property
    def penalty(self) -> float | None:
        """The penalty of the heaviest component, or None if there are no trials."""
        return max(self.trials, key=lambda trial: trial.weight).penalty if self.trials else None

    @property
    def leading(self) -> Tables:
        """The tables of the heaviest component."""
        return self.components[0].tables

    @cached_property
    def combined(self) -> Tables:
        """A logarithmic pool as one sum of tables, in which each family that components share occurs once."""
        bias = np.sum([weight * tables.bias for weight, tables, _ in self.components], axis=0)
        sums: dict[Family, Array] = {}
        for weight, tables, _ in self.components:
            for family, entries in zip(tables.families, tables.weights, strict=True):
                sums[family] = weight * entries + sums.get(family, 0.0)
        return Tables(np.asarray(bias), tuple(sums), tuple(sums.values()))

    @property
    def families(self) -> tuple[Family, ...]:
        """The families of all components, one component after the other."""
        return tuple(family for component in self.components for family in component.tables.families)

    @property
    def n_parameters(self) -> int:
        """The number of table entries of all components."""
        return sum(component.tables.n_parameters for component in self.components)


class Component(NamedTuple):
    """One model of an ensemble: its weight, its tables, and the name of its candidate."""

    weight: float
    tables: Tables
    name: str


class TriedCandidate(NamedTuple):
    """A candidate for an ensemble: its best penalty, and its results on held-out rows at this penalty.

    log_loss is in nats per row, error is the proportion of misclassified rows; weight is 0 if the ensemble leaves the
    candidate out.
    """

    name: str
    penalty: float
    log_loss: float
    error: float
    weight: float


Predictor = Tables | Path | Ensemble


class StoppedBy(Enum):
    """The reason why an optimizer stopped: `word` is its name in JSON, and the value is its description in messages."""

    TOLERANCE = "the objective no longer improved by more than the tolerance"
    GRADIENT = "the gradient is 0 up to rounding"
    MAX_ITERATIONS = "the maximum number of iterations was reached before convergence; raise --max-iterations"
    LINE_SEARCH = "no better point could be found along the search direction"
    SEPARABLE = "the classes are separable, so there is no finite optimum; use a penalty above 0"
    CROSS_TUNING = "more iterations did not improve the held-out log-loss"
    CLOSED_FORM = "the parameters have a closed form"

    @property
    def word(self) -> str:
        return self.name.lower().replace("_", "-")


@dataclass(frozen=True)
class Optimum:
    """The point where an optimizer stopped, the objective there in nats, the gradient norm, and counts of its work.

    An evaluation computes value and gradient; `products` counts products of the Hessian with a vector.
    """

    point: Array
    value: float
    gradient_norm: float
    iterations: int
    evaluations: int
    stopped_by: StoppedBy
    products: int = 0


SAME_OPTIMUM = 1e-9
"""Objectives whose relative difference is at most this count as equal."""


class Restarts(NamedTuple):
    """The objectives reached from several starts, in nats, with the usual start first.

    An objective is the log-likelihood minus the penalty or, if `held_out` (early stopping), the log-likelihood of
    held-out rows.
    """

    objectives: tuple[float, ...]
    held_out: bool = False

    @property
    def best_start(self) -> int:
        """The index of the start with the highest objective (ties up to rounding: the first)."""
        best = 0
        for start, objective in enumerate(self.objectives):
            if objective - self.objectives[best] > SAME_OPTIMUM * abs(objective):
                best = start
        return best


@dataclass(frozen=True)
class ChosenPenalty:
    """The result of choosing the penalty, the set of arcs, or both on held-out rows.

    - penalty: the penalty of lowest held-out log-loss; or the fixed penalty, if only arcs were chosen; or a default if
      no row could be held out
    - tried: every penalty tried, in the order of the trials; empty if no row could be held out
    - arcs: the sets of arcs compared, from few arcs to many, or () if none were
    - structures: the two structures compared, the recipe's own first, or () if none were
    - shrinkage: the shrinkage of log-odds chosen on the same rows in addition to the penalty, or None
    """

    penalty: float
    tried: tuple[TriedPenalty, ...]
    arcs: tuple[TriedArcs, ...] = ()
    shrinkage: Shrinkage | None = None
    structures: tuple[TriedStructure, ...] = ()

    @property
    def log_loss(self) -> float | None:
        """The log-loss of held-out rows with the final choice, in nats per row, or None if nothing was tried."""
        if self.shrinkage is not None:
            return self.shrinkage.log_loss
        return next((trial.log_loss for trial in self.tried if trial.penalty == self.penalty), None)


class TriedPenalty(NamedTuple):
    """A penalty lambda, and the log-loss of held-out rows in nats per row."""

    penalty: float
    log_loss: float


class TriedStructure(NamedTuple):
    """A structure method, its best penalty, and the log-loss of held-out rows in nats per row."""

    structure: str
    penalty: float
    log_loss: float


ARC_SETS = ("class", "none", "supported", "all")
"""The sets of arcs that held-out rows may choose from, from few arcs to many.

`class` has no arcs at all, `none` has no arcs between attributes, `supported` keeps the first m parents of each
attribute, for the m with the highest BIC, and `all` has all arcs that were learned.
"""


class TriedArcs(NamedTuple):
    """One of ARC_SETS, and the number of arcs between attributes in it.

    `penalty` is the best penalty with these arcs, and `log_loss` is the log-loss of held-out rows at that penalty, in
    nats per row.
    """

    arcs: str
    n_arcs: int
    penalty: float
    log_loss: float


class Shrinkage(NamedTuple):
    """A factor below 1 by which log-odds are shrunk towards the log-odds of the class frequencies.

    `log_loss` is the log-loss of held-out rows with this factor, in nats per row.
    """

    factor: float
    log_loss: float


class HeldOutLoss(NamedTuple):
    """The log-loss of held-out rows in nats per row, for the settings of the model and for the class frequencies.

    Each row is predicted by a model that was learned without it, although the settings, such as the penalty, may have
    been chosen on the same rows. rows, units: the numbers of rows and units held out, or None for a model loaded from a
    file, which does not store them.
    """

    log_loss: float
    base_log_loss: float
    rows: int | None = None
    units: int | None = None


@dataclass(frozen=True)
class DecisionRule:
    """A rule that turns probabilities into decisions: costs[true][decision], a threshold, abstention, prediction sets.

    Parts that are not used are None. Prediction sets, and thresholds that were not given as a number, are derived from
    the `held_out` scores. A row is not decided if its highest probability is below `abstain_below`.
    """

    costs: tuple[tuple[float, ...], ...] | None = None
    threshold: Threshold | None = None
    abstain_below: float | None = None
    sets: PredictionSets | None = None
    held_out: HeldOutScores | None = None

    @property
    def decides(self) -> bool:
        """Whether the rule assigns labels to rows or abstains; prediction sets alone do not."""
        return (self.costs, self.threshold, self.abstain_below) != (None, None, None)


class Threshold(NamedTuple):
    """The lowest probability at which the second of two labels is predicted.

    `chosen` is the criterion by which the threshold was found, or "" if its value was given.
    """

    value: float
    chosen: str = ""


class PredictionSets(NamedTuple):
    """The parameters of prediction sets that miss the true label in at most a fraction alpha of the rows on average.

    With `by_class`, this holds for the rows of each class.
    """

    alpha: float
    by_class: bool = False


@dataclass(frozen=True)
class HeldOutScores:
    """The predicted probabilities of the true labels of held-out rows, or of a sample if there are very many rows.

    - probabilities: for each label, P(y_t | x_t) of the rows with this label, ascending
    - weights: the weights of these rows, in the same order, or None if all are 1
    - split: whether the model itself was learned without these rows; otherwise they were predicted in cross-validation
    """

    probabilities: tuple[tuple[float, ...], ...]
    weights: tuple[tuple[float, ...], ...] | None
    split: bool


QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


class TrainingLogP(NamedTuple):
    """The mean of ln P(x) over a number of training rows, and its quantiles at QUANTILES, in nats."""

    rows: int
    mean: float
    quantiles: tuple[float, ...]


class UncertaintyMethod(Enum):
    """The method by which the uncertainty of tables was computed; the value is the word used in model files."""

    POSTERIOR = "posterior"
    LAPLACE = "laplace"
    LAPLACE_DIAGONAL = "laplace-diagonal"
    SPREAD = "spread"

    @property
    def is_diagonal(self) -> bool:
        return self in (UncertaintyMethod.POSTERIOR, UncertaintyMethod.LAPLACE_DIAGONAL)


@dataclass(frozen=True)
class ParameterUncertainty:
    """The uncertainty of a model's tables, from which the intervals of predicted probabilities follow.

    `entries` has one of two forms, depending on the method. Its last axis runs over the cells as in `Tables.cells`: the
    bias, then family after family. For an ensemble, these are the families of all components, multiplied by the
    components' weights.

    - diagonal methods, (K, n_cells): the variances of the entries, which are treated as independent. If the model
      marginalizes missing values, (K, 2 n_cells): the variances, followed by the covariance of each entry with the
      other entries of its distribution, with its sign reversed
    - other methods, (R, K - 1, n_cells): R deviations of the entries of the second and later classes minus the entries
      of the first class; the covariance of two of these differences is the sum over r of the products of their
      deviations
    """

    method: UncertaintyMethod
    entries: Array

    def summary(self) -> dict[str, str | int]:
        """Return the method, and the size of `entries` in bytes."""
        return {"method": self.method.value, "bytes": self.entries.nbytes}


class RefitLoss(NamedTuple):
    """The number of rows a model was refitted to after an edit, and the held-out log-loss after and before the edit.

    Log-losses are in nats per row, cross-validated with and without the edit.
    """

    rows: int
    log_loss: float
    log_loss_before: float


EDIT_ACTIONS = ("set", "flatten", "smooth", "monotone up", "monotone down")


@dataclass(frozen=True)
class Edit:
    """A change of an effect by hand, and what it replaced.

    - effect: the names of its attributes; action: one of EDIT_ACTIONS
    - label: the label whose log-odds were edited, or None for actions that treat all labels alike
    - cells: names of the values concerned; values, before (cells, K): log-odds of each label against the geometric mean
      of the others, after and before the edit, divided by `temperature`
    - why, by, when: the reason, the author and the date as given, or ""
    - refit: the result of refitting the model after the edit, or None
    - added: whether the edit added a table to the model, as its last one
    - previous: the replaced arrays of the predictor, keyed by position (0 is the bias)
    - previous_test: the probabilities of the self-test before the edit, or None
    """

    effect: tuple[str, ...]
    action: str
    label: str | None
    cells: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    before: tuple[tuple[float, ...], ...]
    temperature: float
    why: str
    by: str
    when: str
    refit: RefitLoss | None
    previous: Mapping[int, Array]
    previous_test: Array | None
    added: bool = False


class SelfTest(NamedTuple):
    """A self-test: artificial rows, and the model's predictions for them when it was made (`prediction.verification`).

    - codes: the codes of the attributes that the model uses, in ascending order of their indices, (attributes, rows);
      the code of an unknown value is the cardinality of its attribute
    - probabilities: P(y | x_t), (K, rows)
    """

    codes: Index
    probabilities: Array

    @property
    def n_rows(self) -> int:
        return len(self.probabilities.T)
