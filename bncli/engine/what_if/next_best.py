"""What to ask next: the missing attribute whose answer is expected to tell most of the class.

Of a row that shows e and lacks attribute j, the answer is worth

    I(Y; X_j | e) = sum over v of P(v | e) [ H(Y | e) - H(Y | e, X_j = v) ]

nats: the expected fall of the entropy of the class (value of information, Howard 1966; Heckerman, Horvitz & Nathwani
1992). Exact: what else is missing is marginalized.

Conventions: the lower index wins a tie. Where no answer is worth more than 1e-12 nats nothing is named. A value that
training never had is not missing: asking again would tell nothing. Cost: a look-up of the row for each value of each
missing attribute; rows that lack what others depend on go through inference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.schema import source_column
from bncli.engine.kernels.arrays import Array, Codes, Index
from bncli.engine.model import Model
from bncli.engine.networks.joint_model import JointModel
from bncli.errors import ModelError

LEAST_GAIN = 1e-12
"""Nats."""


class NextBest:
    """A model made ready; ModelError where it cannot marginalize. `used`: the schema's attributes of the codes.

    shift (K,): that of another prior, added to ln P(y, x); None for the model's own.
    """

    def __init__(self, model: Model, used: Sequence[int], shift: Array | None = None) -> None:
        schema = model.schema
        attributes = [schema.attributes[i] for i in used]
        levels = [attribute.name for attribute in attributes if attribute.missing]
        if levels:
            what = f"a missing {levels[0]!r} is a value of its own to the model, which does not ask for what is missing"
            raise ModelError(what, hint="learn it with --missing-policy marginalize")
        self._joint = JointModel(model, used)
        self._shift = 0.0 if shift is None else shift[:, np.newaxis]
        self._cardinalities = [attribute.cardinality for attribute in attributes]
        self.names = tuple(source_column(attribute) for attribute in attributes)

    def gains(self, codes: Sequence[Codes], missing: Sequence[NDArray[np.bool_]]) -> Array:
        """I(Y; X_j | e_t) in nats, shape (used, N), 0 where attribute j is not missing in row t; missing[j] (N,)."""
        gains = np.zeros((len(codes), len(codes[0]) if codes else 0))
        for j, lacks in enumerate(missing):
            rows = np.flatnonzero(lacks)
            if len(rows):
                gains[j, rows] = self._gain(j, [column[rows] for column in codes])
        return gains

    def ask(self, codes: Sequence[Codes], missing: Sequence[NDArray[np.bool_]]) -> list[str]:
        """The column to ask for of every row, the empty text where nothing is missing or would tell anything."""
        gains = self.gains(codes, missing)
        if not len(gains):
            return []
        best: Index = gains.argmax(axis=0)
        told = gains.max(axis=0) > LEAST_GAIN
        return [self.names[j] if tells else "" for j, tells in zip(best.tolist(), told.tolist(), strict=True)]

    def _gain(self, j: int, codes: list[Codes]) -> Array:
        """Of attribute j for rows that lack it."""
        given: list[Codes] = list(codes)
        joints = []
        for value in range(self._cardinalities[j]):
            given[j] = np.full_like(codes[j], value)
            joints.append(self._joint.log_joint(given) + self._shift)
        p = _normalised(np.stack(joints))
        of_class, of_value = p.sum(axis=0, keepdims=True), p.sum(axis=1, keepdims=True)
        ratio = np.divide(p, of_class * of_value, out=np.ones_like(p), where=p > 0)
        return np.asarray(np.maximum((p * np.log(ratio)).sum(axis=(0, 1)), 0.0))


def _normalised(log_p: Array) -> NDArray[Any]:
    """(values, K, N) that sum to 1 in every row."""
    p = np.exp(log_p - log_p.max(axis=(0, 1)))
    return np.asarray(p / p.sum(axis=(0, 1)))
