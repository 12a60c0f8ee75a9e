"""Every parameter space in which the conditional likelihood is maximised, as its learner makes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bncli.catalogue import PARAMETERS
from bncli.engine.counting.counts import Counts
from bncli.engine.data.dataset import Dataset
from bncli.engine.model import ChosenPenalty, Parameters
from bncli.engine.parameters.coordinates import Coordinates, Softmax
from bncli.engine.parameters.likelihood import ConditionalLikelihood
from bncli.engine.parameters.optimization import OptimizerSettings
from bncli.engine.parameters.penalty_choice import SpaceOf, held_out_folds, penalty_path
from bncli.engine.structures.structure import Dag
from bncli.watch import Watch, silent

SPACES: dict[str, dict[str, Any]] = {
    "discriminative": {},
    "discriminative with lower orders": {"lower_orders": True},
    "weighted 1": {"level": 1},
    "weighted 2": {"level": 2},
    "weighted 3": {"level": 3},
    "weighted 4": {"level": 4},
    "extended": {},
    "lr": {},
    "lr_roos": {},
}
"""Name (the learner's module first) and the learner's own options."""

RICH_SPACES = ("discriminative", "discriminative with lower orders", "weighted 4", "extended", "lr", "lr_roos")
"""Those that reach the same optimum."""


def how(**changes: Any) -> OptimizerSettings:
    """An optimization without penalty from the generative start, to high precision, unless changed."""
    defaults: dict[str, Any] = {
        "init": "generative",
        "penalty": 0.0,
        "penalty_center": 0.0,
        "optimizer": "lbfgs",
        "tolerance": 1e-12,
        "max_iterations": 2000,
    }
    return OptimizerSettings(**{**defaults, **changes})


def word_of(name: str) -> str:
    """Return the word after --param of a space."""
    return name.split()[0].replace("_", "-")


def fit(
    name: str, data: Dataset, dag: Dag, smoothing: str = "m-estimate:1", watch: Any = None, **changes: Any
) -> Parameters:
    """Parameters learned in the space called `name`."""
    learn = PARAMETERS.load(word_of(name), "learn")
    more = {} if watch is None else {"watch": watch}
    learnt: Parameters = learn(Counts(data), dag, smoothing=smoothing, settings=how(**changes), **SPACES[name], **more)
    return learnt


@dataclass(frozen=True)
class Caught:
    """A space with the likelihood that is to be maximised in it."""

    likelihood: ConditionalLikelihood
    space: Coordinates

    def cll(self, p: NDArray[np.float64]) -> float:
        return self.likelihood.value_and_gradient(self.space.tables(p))[0]


def catch(name: str, data: Dataset, dag: Dag, smoothing: str = "m-estimate:1") -> Caught:
    """The space that the learner called `name` optimizes in."""
    space = PARAMETERS.load(word_of(name), "build_space")(Counts(data), dag, smoothing=smoothing, **SPACES[name])
    return Caught(space.likelihood, space.coordinates)


def push(space: Coordinates, p: NDArray[np.float64], v: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the derivative of the tables at p along v, which is that of the tables themselves if they are linear."""
    return space.push(p, v) if isinstance(space, Softmax) else space.tables(v)


def choose_penalty(
    data: Dataset, space_of: SpaceOf, *, center: float, seed: int, watch: Watch = silent
) -> ChosenPenalty:
    """The penalty chosen on folds that keep the codes of the data."""
    return penalty_path(held_out_folds(data, seed), space_of, center=center, watch=watch)
