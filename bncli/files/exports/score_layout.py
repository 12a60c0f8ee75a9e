"""The columns of predictions: their names, their order, and how their values are formatted.

The columns are, in this order:

- the input columns that are copied to the output (`--keep`)
- `prediction`, the predicted label, and one column `p_y` per label y, unless only labels are requested
- if a decision rule requires them, `decision` (missing if the rule abstains), `expected_cost` (with costs) and `set`
  (labels of the prediction set, joined by `|`)
- if rows are explained, `log_odds`, `base`, `explain_1`, ..., `explain_N`, `rest` and `towards`, where log_odds =
  base + explain_1 + ... + explain_N + rest. `explain_k` is text, such as `size=large:+1.23` or
  `age<=27.5&colour=red:-0.4`; in JSON lines it is an object `{"attributes": ["size"], "values": ["large"],
  "contribution": 1.23}`. It is missing in a row with fewer contributions. `towards` is the label that positive
  contributions favour, which is the prediction.
- extra columns that a command adds

If the number of decimals is limited, every number is rounded independently, except that `rest` absorbs the rounding
errors, so that the printed numbers still add up.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, BinaryIO, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bncli.engine.kernels.arrays import Array, Index, Mask
from bncli.engine.model import DecisionRule
from bncli.engine.prediction.contributions import Explanation, TermText
from bncli.engine.prediction.decision_rules import ABSTAINED, Decider
from bncli.errors import UsageError
from bncli.files.exports import ScoreWriter

MOST_DIGITS = 14
"""The maximum number of decimals; a float64 between 0 and 1 is accurate to at least this many."""
SMALLEST = 1e-300
LARGEST = 1.0 - 2.0**-53
"""Probabilities are clipped to [SMALLEST, LARGEST] before any rounding, so that their logarithms are finite."""
Words = NDArray[np.uint64]
ExtraValues = Sequence[Any] | Array
"""The values of an extra column, one per row: strings, lists of pairs, or numbers."""


class ExtraColumn(NamedTuple):
    """A column that a command adds to the predictions.

    A column of the kind `log_p` has log-probabilities, which are written like those of the labels. One of the kind
    `values` has, per row, pairs of an attribute and its value, which are written as `name=value` and joined by `|`. A
    column of the kind `abstain` is not written: where it is not 0, the decision is missing.
    """

    name: str
    kind: Literal["text", "values", "log_p", "number", "flag", "abstain"]


@dataclass(frozen=True)
class ScoreLayout:
    """The columns of the output.

    keep: input columns to copy. labels_only: omit the columns `p_y`. log_proba: write ln P in them. digits: number of
    decimals, None for full precision. explain: number of contributions per row. rule: the decision rule, None to write
    no decisions. Raises UsageError for a number of decimals out of range, or for two columns of the same name.
    """

    labels: tuple[str, ...]
    keep: tuple[str, ...] = ()
    labels_only: bool = False
    log_proba: bool = False
    digits: int | None = None
    explain: int = 0
    rule: DecisionRule | None = None
    extra: tuple[ExtraColumn, ...] = ()

    def __post_init__(self) -> None:
        if self.digits is not None and not 0 <= self.digits <= MOST_DIGITS:
            raise UsageError(f"--digits must be from 0 to {MOST_DIGITS}", hint="leave --digits out for full precision")
        own_columns = self.names[len(self.keep) :]
        output_columns = set(own_columns)
        if len(output_columns) < len(own_columns):
            twice = next(name for i, name in enumerate(own_columns) if name in own_columns[:i])
            raise UsageError(f"two output columns would be called {twice!r}", hint="rename a label in the data")
        for i, name in enumerate(self.keep):
            if name in self.keep[:i]:
                raise UsageError(f"--keep lists the column {name!r} twice", hint="list it once")
            if name in output_columns:
                raise UsageError(
                    f"the column {name!r} of --keep has the name of an output column", hint="rename it in the data"
                )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns, in order."""
        return tuple(self.arrow_schema.names)

    @property
    def written_extra(self) -> tuple[ExtraColumn, ...]:
        return tuple(column for column in self.extra if column.kind != "abstain")

    @property
    def decision_names(self) -> tuple[str, ...]:
        """The names of the columns that the decision rule requires."""
        rule = self.rule
        if rule is None:
            return ()
        decides = rule.decides or any(column.kind == "abstain" for column in self.extra)
        columns = {"decision": decides, "expected_cost": rule.costs is not None, "set": rule.sets is not None}
        return tuple(name for name, is_present in columns.items() if is_present)

    @cached_property
    def decider(self) -> Decider | None:
        """The decision rule compiled for rows, or None; raise BncliError if prediction sets lack held-out scores."""
        return None if self.rule is None else Decider.of(self.rule, self.labels)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns with their Arrow types."""
        text, number = pa.string(), pa.float64()
        fields = [(name, text) for name in (*self.keep, "prediction")]
        if not self.labels_only:
            fields += [(f"p_{label}", number) for label in self.labels]
        fields += [(name, number if name == "expected_cost" else text) for name in self.decision_names]
        if self.explain:
            fields += [("log_odds", number), ("base", number)]
            fields += [(f"explain_{k}", text) for k in range(1, self.explain + 1)]
            fields += [("rest", number), ("towards", text)]
        types = {"text": text, "values": text, "flag": pa.bool_()}
        fields += [(column.name, types.get(column.kind, number)) for column in self.written_extra]
        return pa.schema(fields)


@dataclass(frozen=True)
class Predictions:
    """A batch of N rows to write, rounded to `digits` decimals except for `probabilities`, which the writer rounds.

    keep: copied columns. codes (N,): the predicted labels. probabilities: one float64 column (N,) per label, clipped,
    or their logarithms; empty if only labels are written. decisions, extra: further columns of the layout.
    """

    keep: tuple[pa.Array, ...]
    codes: Index
    probabilities: tuple[Array, ...]
    explanation: Explanation | None = None
    decisions: tuple[pa.Array, ...] = ()
    extra: tuple[pa.Array, ...] = ()

    @staticmethod
    def of(
        layout: ScoreLayout,
        keep: Sequence[pa.Array],
        log_probabilities: Array,
        explanation: Explanation | None = None,
        extra: Sequence[ExtraValues] = (),
    ) -> Predictions:
        """Build the batch from ln P(y | x_t), shape (K, N), and other values; a tie goes to the first label."""
        probabilities: tuple[Array, ...] = ()
        if layout.log_proba and not layout.labels_only:
            probabilities = tuple(log_probabilities)
        elif not layout.labels_only:
            clipped = np.exp(log_probabilities)
            probabilities = tuple(np.clip(clipped, SMALLEST, LARGEST, out=clipped))
        columns = []
        abstains: Mask | None = None
        for column, values in zip(layout.extra, extra, strict=True):
            if column.kind == "abstain":
                abstains = np.asarray(values) != 0
                continue
            if column.kind == "text":
                columns.append(pa.array(values, pa.string()))
                continue
            if column.kind == "values":
                texts = ["|".join(f"{name}={value}" for name, value in pairs) for pairs in values]
                columns.append(pa.array(texts, pa.string()))
                continue
            if column.kind == "flag":
                columns.append(pa.array(np.asarray(values, np.float64) != 0))
                continue
            numbers = np.asarray(values, np.float64)
            if column.kind == "log_p" and not layout.log_proba:
                numbers = np.clip(np.exp(numbers), SMALLEST, LARGEST)
            columns.append(pa.array(numbers if layout.digits is None else np.round(numbers, layout.digits)))
        return Predictions(
            tuple(keep),
            most_probable(log_probabilities),
            probabilities,
            None if explanation is None else round_explanation(explanation, layout.digits),
            _decision_columns(layout, log_probabilities, abstains),
            tuple(columns),
        )


def most_probable(log_probabilities: Array) -> Index:
    """Return the code of each row's predicted label (N,), given ln P(y | x_t) (K, N); a tie goes to the first label."""
    codes: Index
    if len(log_probabilities) == 2:  # argmax along so short an axis is ten times slower
        codes = (log_probabilities[1] > log_probabilities[0]).astype(np.intp)
    else:
        codes = log_probabilities.argmax(axis=0)
    return codes


def round_explanation(explanation: Explanation, digits: int | None) -> Explanation:
    """Round an explanation to `digits` decimals, or not at all if it is None; the rounded numbers still add up."""
    if digits is None:
        return explanation
    log_odds, base = np.round(explanation.log_odds, digits), np.round(explanation.base, digits)
    contributions = np.round(explanation.contributions, digits)
    rest = np.round(log_odds - base - contributions.sum(axis=0), digits)
    return replace(explanation, log_odds=log_odds, base=base, rest=rest, contributions=contributions)


def _decision_columns(layout: ScoreLayout, log_probabilities: Array, abstains: Mask | None) -> tuple[pa.Array, ...]:
    if layout.decider is None:
        return ()
    decided = layout.decider.decide(log_probabilities)
    columns = []
    for name in layout.decision_names:
        if name == "decision":
            undecided = decided.codes == ABSTAINED
            codes = pa.array(decided.codes, mask=undecided if abstains is None else undecided | abstains)
            columns.append(pa.array(layout.labels, pa.string()).take(codes))
        elif name == "expected_cost":
            costs = pa.array(decided.expected_costs)
            columns.append(costs if layout.digits is None else pc.round(costs, layout.digits))
        else:
            assert decided.members is not None
            # There are few distinct sets, so their texts are made once.
            distinct, place = np.unique(decided.members, axis=1, return_inverse=True)
            texts = [
                "|".join(label for label, is_in in zip(layout.labels, members, strict=True) if is_in)
                for members in distinct.T
            ]
            columns.append(pa.array(texts, pa.string()).take(pa.array(place.ravel())))
    return tuple(columns)


def record_batch(predictions: Predictions, layout: ScoreLayout) -> pa.RecordBatch:
    """Convert predictions to an Arrow record batch."""
    labels = pa.array(layout.labels, pa.string()).take(pa.array(predictions.codes))
    probabilities = predictions.probabilities
    if layout.digits is not None:
        probabilities = tuple(np.round(column, layout.digits) for column in probabilities)
    columns = [column.cast(pa.string()) for column in predictions.keep]
    columns += [labels, *(pa.array(column) for column in probabilities), *predictions.decisions]
    if (why := predictions.explanation) is not None:
        columns += [pa.array(why.log_odds), pa.array(why.base), *contribution_texts(why), pa.array(why.rest), labels]
    columns += predictions.extra
    return pa.record_batch(columns, schema=layout.arrow_schema)


def contribution_texts(explanation: Explanation) -> list[pa.Array]:
    """Return each column `explain_k` as strings, null in a row with fewer contributions."""
    return [
        pc.binary_join_element_wise(
            _per_row(explanation, k, _term_text),
            pa.array(["", "+"]).take(pa.array((numbers >= 0).astype(np.int8))),
            shortest(numbers),
            "",
        )
        for k, numbers in enumerate(explanation.contributions)
    ]


def contribution_objects(explanation: Explanation) -> list[pa.Array]:
    """Return each column `explain_k` as JSON objects, `null` in a row with fewer contributions."""
    return [
        pc.binary_join_element_wise(_per_row(explanation, k, _term_json), shortest(numbers), "}", "").fill_null("null")
        for k, numbers in enumerate(explanation.contributions)
    ]


def _per_row(explanation: Explanation, k: int, describe: Callable[[TermText], str]) -> pa.Array:
    """Return the string before the number of each row's k-th contribution, or null; formatted once per term."""
    terms, term_numbers = np.unique(explanation.term_of[k], return_inverse=True)
    texts = [None if term < 0 else describe(explanation.terms[term]) for term in terms.tolist()]
    return pa.array(texts, pa.string()).take(pa.array(term_numbers.ravel()))


def _term_text(term: TermText) -> str:
    pairs = zip(term.attributes, term.values, strict=True)
    return "&".join(name + value if value[:1] in "<>" else f"{name}={value}" for name, value in pairs) + ":"


def _term_json(term: TermText) -> str:
    names, values = (json.dumps(texts, ensure_ascii=False, separators=(",", ":")) for texts in term)
    return f'{{"attributes":{names},"values":{values},"contribution":'


def shortest(values: Array) -> pa.Array:
    """Format each number as the shortest string that reads back as the same float64 (about 70 ns per number)."""
    return pa.array(values + 0.0).cast(pa.string())  # + 0.0 turns -0 into 0


class FixedDecimals:
    """A formatter of numbers between 0 and 1 with 0 to 14 decimals, several times faster than `shortest`.

    The digits of the rounded number are looked up in groups, and each group is a machine word of eight bytes:

        0.123456  =  "0.123___" from a table of 1001 words  |  "_____456" from a table of 1000 words   (_ = a zero byte)
    """

    def __init__(self, digits: int) -> None:
        self._digits = digits
        self._whole = _to_words(f"{n // 1000}.{n % 1000:03d}\0\0\0" for n in range(1001))
        self._thousands = _to_words(f"\0\0\0\0\0{n:03d}" for n in range(1000))
        if digits > 6:
            self._upper = _to_words(f"{n:04d}\0\0\0\0" for n in range(10**4))
            self._lower = _to_words(f"\0\0\0\0{n:04d}" for n in range(10**4))

    def text(self, values: Array) -> pa.Array:
        """Format each number with fixed decimals, rounded half to even."""
        n, digits = len(values), self._digits
        rounded = np.rint(values * 10.0**digits).astype(np.int64)
        if digits <= 6:
            words = self._leading_word(rounded * 10 ** (6 - digits))
        else:
            rounded *= 10 ** (MOST_DIGITS - digits)
            leading = rounded // 10**8
            rest = rounded - leading * 10**8
            upper = rest // 10**4
            trailing = self._upper[upper] | self._lower[rest - upper * 10**4]
            words = np.stack([self._leading_word(leading), trailing], axis=1)
        width = digits + 2 if digits else 1
        text = np.ascontiguousarray(words.view(np.uint8).reshape(n, 8 * words.size // max(n, 1))[:, :width])
        offsets = np.arange(0, (n + 1) * width, width, dtype=np.int32)
        return pa.StringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(text))

    def _leading_word(self, millionths: NDArray[np.int64]) -> Words:
        """Return a machine word per value in millionths: the eight ASCII bytes of the value with six decimals."""
        thousandths = millionths // 1000
        words: Words = self._whole[thousandths] | self._thousands[millionths - thousandths * 1000]
        return words


def _to_words(texts: Iterable[str]) -> Words:
    """Convert strings of eight ASCII characters to machine words."""
    return np.frombuffer("".join(texts).encode(), dtype=np.uint64)


class LineFormat(NamedTuple):
    """A format of lines of text, as functions.

    header: returns the bytes before the first row, given the column names. escape: escapes a column of strings.
    contributions: returns the columns `explain_k` as escaped strings. join: returns the bytes of the rows, given the
    column names and the columns, whose numbers are formatted and whose strings are escaped.
    """

    header: Callable[[Sequence[str]], bytes]
    escape: Callable[[pa.Array], pa.Array]
    contributions: Callable[[Explanation], list[pa.Array]]
    join: Callable[[Sequence[str], Sequence[pa.Array]], pa.Buffer]


class TextScores(ScoreWriter):
    """A writer of predictions as lines of text; with `digits`, probabilities (but not ln P) have fixed decimals."""

    def __init__(self, file: BinaryIO, layout: ScoreLayout, piped: bool, lines: LineFormat) -> None:
        self._file = file
        self._layout = layout
        self._names = layout.names
        self._lines = lines
        self._labels = lines.escape(pa.array(layout.labels, pa.string()))
        fixed = layout.digits is not None and not layout.log_proba
        self._decimals = FixedDecimals(layout.digits or 0) if fixed else None
        file.write(lines.header(layout.names))

    def piece(self, predictions: Predictions) -> pa.Buffer:
        """Format a batch as the bytes of its lines."""
        escape = self._lines.escape
        columns = [escape(column) for column in predictions.keep]
        labels = self._labels.take(pa.array(predictions.codes))
        columns.append(labels)
        columns += [self._probability_text(numbers) for numbers in predictions.probabilities]
        for column in predictions.decisions:
            is_number = pa.types.is_floating(column.type)
            columns.append(shortest(column.to_numpy(zero_copy_only=False)) if is_number else escape(column))
        if (why := predictions.explanation) is not None:
            log_odds, base, rest = map(shortest, (why.log_odds, why.base, why.rest))
            columns += [log_odds, base, *self._lines.contributions(why), rest, labels]
        for extra, column in zip(self._layout.written_extra, predictions.extra, strict=True):
            if extra.kind in ("text", "values"):
                columns.append(escape(column))
            elif extra.kind == "flag":
                columns.append(column.cast(pa.string()))
            elif extra.kind == "log_p":
                columns.append(self._probability_text(column.to_numpy()))
            else:
                columns.append(shortest(column.to_numpy()))
        return self._lines.join(self._names, columns)

    def _probability_text(self, numbers: Array) -> pa.Array:
        if self._decimals is not None:
            return self._decimals.text(numbers)
        return shortest(numbers if self._layout.digits is None else np.round(numbers, self._layout.digits))

    def write(self, piece: pa.Buffer) -> None:
        self._file.write(piece)
        self._file.flush()

    def finish(self) -> None:
        self._file.flush()


def text_bytes(values: pa.Array) -> NDArray[np.uint8]:
    """Return the bytes of all strings of a column, concatenated."""
    _, offsets, data = values.buffers()
    if data is None:
        return np.empty(0, np.uint8)
    bounds = memoryview(offsets).cast("i")
    return np.frombuffer(data, np.uint8)[bounds[values.offset] : bounds[values.offset + len(values)]]


def all_bytes(lines: pa.Array) -> pa.Buffer:
    """Return the bytes of all strings of an array without copying them; the array must not be a slice."""
    _, offsets, data = lines.buffers()
    if not len(lines):
        return pa.py_buffer(b"")
    return data.slice(0, memoryview(offsets).cast("i")[len(lines)])
