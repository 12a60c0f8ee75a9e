"""What a row of predictions is made of: which columns, in which order, and how their numbers look.

Columns, in order: the input columns carried through, `prediction`, for each label y a column `p_y`, where something is
decided those of `bncli.files.exports.score_layout`, and where rows are explained those of
`bncli.files.exports.score_layout`; last what was asked beyond the prediction.

Decisions as columns: `decision` (missing where there is none), `expected_cost`, `set` (labels joined by `|`).

Only those that the rule asks for: `decision` with costs, a threshold or a bound to abstain below, `expected_cost` with
costs, `set` with prediction sets.

Numbers as text, a whole column at a time.

`shortest` prints the shortest text that reads back as the same float64 (70 ns a number). `Decimals` prints
probabilities with a fixed number of decimals several times faster: the digits of the rounded number are looked up in
groups, and a group is a machine word of eight bytes,

    0.123456  =  "0.123..." from a table of 1001 words  |  ".....456" from a table of 1000 words   (. = a zero byte).

Conventions: at most 14 decimals, which a float64 between 0 and 1 always has; who wants more wants `shortest`.

Explanations of predictions as columns.

    log_odds = base + explain_1 + ... + explain_N + rest

`explain_k` is text, `size=large:+1.23`, `age<=27.5&colour=red:-0.4`, or in JSON lines an object `{"attributes":
["size"], "values": ["large"], "contribution": 1.23}`; missing in a row with fewer contributions.

Conventions: with fewer decimals every number is rounded for itself but `rest`, which takes what rounding leaves, so
that the printed numbers add up as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bncli.engine.kernels.arrays import Array, Index, Mask
from bncli.engine.model import DecisionRule
from bncli.engine.prediction.contributions import Explanation, TermText
from bncli.engine.prediction.decision_rules import ABSTAINED, Decided, Decider
from bncli.errors import UsageError

MOST_DIGITS = 14
Words = NDArray[np.uint64]


class Decimals:
    """Prints numbers between 0 and 1 with `digits` (0 to 14) decimals."""

    def __init__(self, digits: int) -> None:
        self._digits = digits
        self._whole = _words(f"{n // 1000}.{n % 1000:03d}\0\0\0" for n in range(1001))
        self._thousands = _words(f"\0\0\0\0\0{n:03d}" for n in range(1000))
        if digits > 6:
            self._upper = _words(f"{n:04d}\0\0\0\0" for n in range(10**4))
            self._lower = _words(f"\0\0\0\0{n:04d}" for n in range(10**4))

    def text(self, values: Array) -> pa.Array:
        """Return every number rounded (half to even) and printed."""
        n, digits = len(values), self._digits
        rounded = np.rint(values * 10.0**digits).astype(np.int64)
        if digits <= 6:
            words = self._leading(rounded * 10 ** (6 - digits))
        else:
            rounded *= 10 ** (MOST_DIGITS - digits)
            leading = rounded // 10**8
            words = np.stack([self._leading(leading), self._trailing(rounded - leading * 10**8)], axis=1)
        width = digits + 2 if digits else 1
        text = np.ascontiguousarray(words.view(np.uint8).reshape(n, 8 * words.size // max(n, 1))[:, :width])
        offsets = np.arange(0, (n + 1) * width, width, dtype=np.int32)
        return pa.StringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(text))

    def _leading(self, millionths: NDArray[np.int64]) -> Words:
        """Return the eight bytes `w.dddddd` of every number of millionths."""
        thousandths = millionths // 1000
        words: Words = self._whole[thousandths] | self._thousands[millionths - thousandths * 1000]
        return words

    def _trailing(self, rest: NDArray[np.int64]) -> Words:
        """Return the eight bytes `dddddddd` of every number below 10^8."""
        upper = rest // 10**4
        words: Words = self._upper[upper] | self._lower[rest - upper * 10**4]
        return words


SMALLEST = 1e-300
LARGEST = 1.0 - 2.0**-53
"""A printed probability lies between these two, so that nobody takes the logarithm of 0."""


class ExtraColumn(NamedTuple):
    """A column of what was asked beyond the prediction; `log_p` is written as probabilities are."""

    name: str
    kind: Literal["text", "log_p", "number"]


@dataclass(frozen=True)
class ScoreLayout:
    """The columns of the output.

    `digits` None: full precision; `explain`: how many contributions a row; `rule`: what is decided, None: nothing.
    """

    labels: tuple[str, ...]
    kept: tuple[str, ...] = ()
    labels_only: bool = False
    log_proba: bool = False
    digits: int | None = None
    explain: int = 0
    rule: DecisionRule | None = None
    added: tuple[ExtraColumn, ...] = ()

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
        told = (*self.decided_names, *explanation_names(self.explain), *(one.name for one in self.added))
        return (*self.kept, "prediction", *self.number_names, *told)

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
        added = [(one.name, pa.string() if one.kind == "text" else pa.float64()) for one in self.added]
        decided = [(name, pa.float64() if name == "expected_cost" else pa.string()) for name in self.decided_names]
        return pa.schema([*texts, *((name, pa.float64()) for name in self.number_names), *decided, *reasons, *added])


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
    added: tuple[pa.Array, ...] = ()

    @staticmethod
    def of(
        layout: ScoreLayout,
        kept: Sequence[pa.Array],
        log_probabilities: Array,
        explanation: Explanation | None = None,
        added: Sequence[Sequence[str] | Array] = (),
    ) -> Predictions:
        """From log P(y | x_t), shape (K, N). A tie goes to the first label."""
        codes = most_probable(log_probabilities)
        reasons = None if explanation is None else rounded(explanation, layout.digits)
        columns = tuple(_added(layout, *pair) for pair in zip(layout.added, added, strict=True))
        decided = _decided(layout, log_probabilities)
        return Predictions(tuple(kept), codes, _numbers(layout, log_probabilities), reasons, decided, columns)


def decided_names(rule: DecisionRule | None) -> tuple[str, ...]:
    """Return the columns that a rule asks for."""
    if rule is None:
        return ()
    asked = (("decision", rule.decides), ("expected_cost", rule.costs is not None), ("set", rule.sets is not None))
    return tuple(name for name, is_asked in asked if is_asked)


def decided_columns(decided: Decided, labels: tuple[str, ...], names: tuple[str, ...]) -> tuple[pa.Array, ...]:
    """Return these columns: texts, and numbers as float64."""
    made = {
        "decision": lambda: pa.array(labels, pa.string()).take(
            pa.array(decided.codes, mask=decided.codes == ABSTAINED)
        ),
        "expected_cost": lambda: pa.array(decided.expected_costs),
        "set": lambda: _sets(decided.members, labels),
    }
    return tuple(made[name]() for name in names)


def _sets(members: Mask | None, labels: tuple[str, ...]) -> pa.Array:
    assert members is not None
    distinct, place = np.unique(members, axis=1, return_inverse=True)
    texts = ["|".join(label for label, is_in in zip(labels, one, strict=True) if is_in) for one in distinct.T]
    return pa.array(texts, pa.string()).take(pa.array(place.ravel()))


def shortest(values: Array) -> pa.Array:
    """Return the shortest text of every number that reads back as the same number."""
    return pa.array(values + 0.0).cast(pa.string())  # + 0.0 makes -0 a 0


def explanation_names(most: int) -> tuple[str, ...]:
    """Return the columns of at most so many contributions; none at all for 0."""
    return ("log_odds", "base", *(f"explain_{k}" for k in range(1, most + 1)), "rest") if most else ()


def rounded(explanation: Explanation, digits: int | None) -> Explanation:
    """With so many decimals (None: all), the sum kept."""
    if digits is None:
        return explanation
    log_odds, base = np.round(explanation.log_odds, digits), np.round(explanation.base, digits)
    contributions = np.round(explanation.contributions, digits)
    rest = np.round(log_odds - base - contributions.sum(axis=0), digits)
    return replace(explanation, log_odds=log_odds, base=base, rest=rest, contributions=contributions)


def contribution_texts(explanation: Explanation) -> list[pa.Array]:
    """Return each `explain_k` as text, null where there is none."""
    return [
        pc.binary_join_element_wise(
            _worded(explanation, k, _phrase),
            pa.array(["", "+"]).take(pa.array((numbers >= 0).astype(np.int8))),
            shortest(numbers),
            "",
        )
        for k, numbers in enumerate(explanation.contributions)
    ]


def _worded(explanation: Explanation, k: int, words: Callable[[TermText], str]) -> pa.Array:
    """Return what stands before the number."""
    reasons = explanation.reasons[k]
    distinct, places = np.unique(reasons, return_inverse=True)
    texts = [None if reason < 0 else words(explanation.wordings[reason]) for reason in distinct.tolist()]
    return pa.array(texts, pa.string()).take(pa.array(places.ravel()))


def _phrase(wording: TermText) -> str:
    seen = zip(wording.attributes, wording.values, strict=True)
    return "&".join(name + value if value[:1] in "<>" else f"{name}={value}" for name, value in seen) + ":"


def contribution_objects(explanation: Explanation) -> list[pa.Array]:
    """Return each `explain_k` as a JSON object, `null` where there is none."""
    return [
        pc.binary_join_element_wise(_worded(explanation, k, _object), shortest(numbers), "}", "").fill_null("null")
        for k, numbers in enumerate(explanation.contributions)
    ]


def _object(wording: TermText) -> str:
    names, values = (json.dumps(texts, ensure_ascii=False, separators=(",", ":")) for texts in wording)
    return f'{{"attributes":{names},"values":{values},"contribution":'


def most_probable(log_probabilities: Array) -> Index:
    """Return the label predicted for every row, from log P(y | x_t), shape (K, N); a tie goes to the first."""
    codes: Index
    if len(log_probabilities) == 2:  # argmax along so short an axis is ten times slower
        codes = (log_probabilities[1] > log_probabilities[0]).astype(np.intp)
    else:
        codes = log_probabilities.argmax(axis=0)
    return codes


def rounded_costs(decided: Sequence[pa.Array], digits: int | None) -> list[pa.Array]:
    """Return the columns with numbers rounded to so many decimals (None: all)."""
    if digits is None:
        return list(decided)
    return [pc.round(column, digits) if pa.types.is_floating(column.type) else column for column in decided]


def record_batch(predictions: Predictions, layout: ScoreLayout) -> pa.RecordBatch:
    """Return the rows as Arrow has them."""
    labels = pa.array(layout.labels, pa.string()).take(pa.array(predictions.codes))
    numbers = predictions.numbers
    if layout.digits is not None:
        numbers = tuple(np.round(column, layout.digits) for column in numbers)
    columns = [column.cast(pa.string()) for column in predictions.kept]
    columns += [labels, *(pa.array(column) for column in numbers), *rounded_costs(predictions.decided, layout.digits)]
    if (why := predictions.explanation) is not None:
        columns += [pa.array(why.log_odds), pa.array(why.base), *contribution_texts(why), pa.array(why.rest)]
    columns += predictions.added
    return pa.record_batch(columns, schema=layout.arrow)


def _words(texts: Iterable[str]) -> Words:
    """Return texts of eight bytes each, read as words in the machine's own order."""
    return np.frombuffer("".join(texts).encode(), dtype=np.uint64)


def _decided(layout: ScoreLayout, log_probabilities: Array) -> tuple[pa.Array, ...]:
    if layout.decider is None:
        return ()
    return decided_columns(layout.decider.decide(log_probabilities), layout.labels, layout.decided_names)


def _added(layout: ScoreLayout, column: ExtraColumn, values: Sequence[str] | Array) -> pa.Array:
    if column.kind == "text":
        return pa.array(values, pa.string())
    numbers = np.asarray(values, np.float64)
    if column.kind == "log_p" and not layout.log_proba:
        numbers = np.clip(np.exp(numbers), SMALLEST, LARGEST)
    return pa.array(numbers if layout.digits is None else np.round(numbers, layout.digits))


def _numbers(layout: ScoreLayout, log_probabilities: Array) -> tuple[Array, ...]:
    if layout.labels_only:
        return ()
    if layout.log_proba:
        return tuple(log_probabilities)
    probabilities = np.exp(log_probabilities)
    return tuple(np.clip(probabilities, SMALLEST, LARGEST, out=probabilities))
