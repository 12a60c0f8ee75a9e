"""What a row of predictions is made of: which columns, in which order, and how their numbers look.

Columns, in order: the input columns carried through, `prediction`, for each label y a column `p_y`, where something is
decided those of `bncli.files.decided_columns`, and where rows are explained those of `bncli.files.explanations`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bncli.engine.data.decision_rule import Rule
from bncli.engine.decisions.deciding import Decider
from bncli.engine.explanation.contributions import Explanation
from bncli.engine.kernels.arrays import Array, Index
from bncli.errors import UsageError
from bncli.files.decided_columns import decided_columns, decided_names
from bncli.files.decimals import MOST_DIGITS
from bncli.files.explanations import contribution_texts, explanation_names, rounded

SMALLEST = 1e-300
LARGEST = 1.0 - 2.0**-53
"""A printed probability lies between these two, so that nobody takes the logarithm of 0."""


@dataclass(frozen=True)
class Layout:
    """The columns of the output.

    `digits` None: full precision; `explain`: how many contributions a row; `rule`: what is decided, None: nothing.
    """

    labels: tuple[str, ...]
    kept: tuple[str, ...] = ()
    labels_only: bool = False
    log_proba: bool = False
    digits: int | None = None
    explain: int = 0
    rule: Rule | None = None

    def __post_init__(self) -> None:
        if self.digits is not None and not 0 <= self.digits <= MOST_DIGITS:
            raise UsageError(f"--digits takes 0 to {MOST_DIGITS}", hint="leave it out for full precision")
        for i, name in enumerate(self.kept):
            if name in self.kept[:i]:
                raise UsageError(f"the column {name!r} is kept twice", hint="name it once")
            if name in self.names[len(self.kept) :]:
                raise UsageError(
                    f"the kept column {name!r} has the name of an output column", hint="rename it in the data"
                )

    @property
    def number_names(self) -> tuple[str, ...]:
        return () if self.labels_only else tuple(f"p_{label}" for label in self.labels)

    @property
    def names(self) -> tuple[str, ...]:
        """Every column, in order."""
        return (*self.kept, "prediction", *self.number_names, *self.decided_names, *explanation_names(self.explain))

    @property
    def decided_names(self) -> tuple[str, ...]:
        return decided_names(self.rule)

    @cached_property
    def decider(self) -> Decider | None:
        """What decides; BncliError where the rule asks for sets that the rows held out do not give."""
        return None if self.rule is None else Decider.of(self.rule, self.labels)

    @property
    def arrow(self) -> pa.Schema:
        """The columns as Arrow has them."""
        texts = [(name, pa.string()) for name in (*self.kept, "prediction")]
        reasons = [
            (name, pa.string() if name.startswith("explain_") else pa.float64())
            for name in explanation_names(self.explain)
        ]
        decided = [(name, pa.float64() if name == "expected_cost" else pa.string()) for name in self.decided_names]
        return pa.schema([*texts, *((name, pa.float64()) for name in self.number_names), *decided, *reasons])


@dataclass(frozen=True)
class Predictions:
    """A batch of rows before it is written: codes (N,) of the predicted labels; numbers: a float64 column each.

    decided: the columns of the layout's rule, texts and float64.
    """

    kept: tuple[pa.Array, ...]
    codes: Index
    numbers: tuple[Array, ...]
    explanation: Explanation | None = None
    decided: tuple[pa.Array, ...] = ()

    @staticmethod
    def of(
        layout: Layout,
        kept: Sequence[pa.Array],
        log_probabilities: Array,
        explanation: Explanation | None = None,
    ) -> Predictions:
        """From log P(y | x_t), shape (K, N). A tie goes to the first label."""
        codes = most_probable(log_probabilities)
        reasons = None if explanation is None else rounded(explanation, layout.digits)
        decided = _decided(layout, log_probabilities)
        return Predictions(tuple(kept), codes, _numbers(layout, log_probabilities), reasons, decided)


def _decided(layout: Layout, log_probabilities: Array) -> tuple[pa.Array, ...]:
    if layout.decider is None:
        return ()
    return decided_columns(layout.decider.decide(log_probabilities), layout.labels, layout.decided_names)


def _numbers(layout: Layout, log_probabilities: Array) -> tuple[Array, ...]:
    if layout.labels_only:
        return ()
    if layout.log_proba:
        return tuple(log_probabilities)
    probabilities = np.exp(log_probabilities)
    return tuple(np.clip(probabilities, SMALLEST, LARGEST, out=probabilities))


def most_probable(log_probabilities: Array) -> Index:
    """The label predicted for every row, from log P(y | x_t), shape (K, N); a tie goes to the first."""
    codes: Index
    if len(log_probabilities) == 2:  # argmax along so short an axis is ten times slower
        codes = (log_probabilities[1] > log_probabilities[0]).astype(np.intp)
    else:
        codes = log_probabilities.argmax(axis=0)
    return codes


def rounded_costs(decided: Sequence[pa.Array], digits: int | None) -> list[pa.Array]:
    """The columns with numbers rounded to so many decimals (None: all)."""
    if digits is None:
        return list(decided)
    return [pc.round(column, digits) if pa.types.is_floating(column.type) else column for column in decided]


def record_batch(predictions: Predictions, layout: Layout) -> pa.RecordBatch:
    """The rows as Arrow has them."""
    labels = pa.array(layout.labels, pa.string()).take(pa.array(predictions.codes))
    numbers = predictions.numbers
    if layout.digits is not None:
        numbers = tuple(np.round(column, layout.digits) for column in numbers)
    columns = [column.cast(pa.string()) for column in predictions.kept]
    columns += [labels, *(pa.array(column) for column in numbers), *rounded_costs(predictions.decided, layout.digits)]
    if (why := predictions.explanation) is not None:
        columns += [pa.array(why.log_odds), pa.array(why.base), *contribution_texts(why), pa.array(why.rest)]
    return pa.record_batch(columns, schema=layout.arrow)
