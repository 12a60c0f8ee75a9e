"""Effects as the free parameters of an optimization: p = (K, effects) flat, every class with effects of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bncli.engine.kernels.arrays import Array, Index
from bncli.engine.parameter_spaces.effect_projection import projected
from bncli.engine.parameter_spaces.effects import Effects


@dataclass(frozen=True)
class EffectCoordinates:
    """`generative_cells` makes the generative tables (K, n_cells), only where the optimization starts from them.

    Where effects cannot say all of these tables (see `effect_projection`) the start is what they can say.
    """

    effects: Effects
    n_labels: int
    generative_cells: Callable[[], Array]

    @property
    def n_parameters(self) -> int:
        return self.n_labels * self.effects.n_effects

    @property
    def generative(self) -> Array:
        return projected(self.effects, self.generative_cells()).ravel()

    def tables(self, p: Array) -> Array:
        return self.effects.tables(p.reshape(self.n_labels, -1))

    def pull_back(self, p: Array, d_tables: Array) -> Array:
        return self.effects.sums(d_tables).ravel()

    def push(self, p: Array, v: Array) -> Array:
        return self.tables(v)

    @property
    def sharing(self) -> Effects:
        return self.effects

    @property
    def is_scaled(self) -> bool:
        return True

    @property
    def scale(self) -> Array:
        return np.ones((1, self.effects.n_effects))

    def curvature(self, p: Array, mass: Array) -> Array:
        return mass

    def jacobian(self, p: Array, cells: Index) -> Array:
        return np.eye(len(cells))[np.newaxis]
