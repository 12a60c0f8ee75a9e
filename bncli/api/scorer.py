"""A model as a function of one row: what `model.scorer()` returns."""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from bncli.engine.data.schema import DateForm, source_column
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Model
from bncli.engine.prediction.scoring import RowLookUp, compile_scorer
from bncli.errors import ModelError, UsageError
from bncli.files.reading.single_values import ValueEncoder
from bncli.files.reading.source import list_names

LEAST, LARGEST = 1e-300, 1.0 - 2.0**-53
"""The bounds of the probabilities that bncli writes."""
_EXACT = 1 << 53
"""Integers up to this one are exact in float64."""
_N_NAMED = 3
_PLAIN = (str, int, bool, type(None), np.int64, np.str_, np.bool_)
_REAL = (float, np.float64)


class _Encoder(NamedTuple):
    """The encoder of a column: cuts for plain numbers (or None), codes of strings, and a function for other values."""

    cuts: tuple[float, ...] | None
    codes: Mapping[str, int]
    encode: Callable[[Any], int]

    @staticmethod
    def of(encoder: ValueEncoder) -> _Encoder:
        return _Encoder(encoder.cuts if encoder.form is None else None, encoder.codes, encoder.encode)


class Scorer:
    """A function from one row to the probabilities of the labels, made by `Model.scorer`; a call takes microseconds.

    classes_: the labels (K,), in the order of the probabilities. columns: the columns that the model uses, in the order
    of the table that it was fitted on. all_columns: also those that it does not use.

    A scorer does not change. It can be used by several threads, and pickled.
    """

    def __init__(self, model: Model) -> None:
        schema, compiled = model.schema, compile_scorer(model)
        attributes = [schema.attributes[i] for i in compiled.used]
        self._model = model
        self._look_up = RowLookUp(compiled, [attribute.cardinality for attribute in attributes])
        self.classes_ = np.array(schema.labels, dtype=object)
        self.columns = tuple(dict.fromkeys(map(source_column, attributes)))
        self.all_columns = tuple(dict.fromkeys(map(source_column, schema.attributes)))
        self._values_of_columns = _getter(self.columns)
        self._used_of_all = _getter([self.all_columns.index(name) for name in self.columns])
        self._full_encoders = [ValueEncoder.of(attribute, schema) for attribute in attributes]
        self._encoders = [_Encoder.of(encoder) for encoder in self._full_encoders]
        # several attributes may be parts of one date
        self._sources = [source_column(attribute) for attribute in attributes]
        positions = [self.columns.index(source) for source in self._sources]
        self._parts_of = None if positions == list(range(len(positions))) else _getter(positions)

    def __call__(self, row: Mapping[str, Any] | Sequence[Any]) -> list[float]:
        """Return the probability of each label, as `score` gives it, in the order of `classes_`.

        row: a dict of values by column, in which names that the model does not use are ignored; or the values of
        `columns`, or of `all_columns`, in this order. A value is a number, a string, a date, or None if it is missing.

        Raises BncliError for a row that lacks a column, and for a value that its column cannot have.
        """
        encoders = self._encoders
        if isinstance(row, Mapping):
            try:
                values = self._values_of_columns(row)
            except KeyError:
                values, encoders = self._values_of_parts(row)
            else:
                values = values if self._parts_of is None else self._parts_of(values)
        else:
            values = self._values_in_order(row)
        codes = []
        for value, (cuts, known, encode) in zip(values, encoders, strict=True):
            kind = type(value)
            if kind is str:
                code = known.get(value)
                codes.append(encode(value) if code is None else code)
            elif cuts is not None and (
                (kind is float and value - value == 0.0) or (kind is int and -_EXACT <= value <= _EXACT)
            ):
                codes.append(bisect_left(cuts, value))
            else:
                codes.append(encode(value))
        probabilities: list[float] = bounded(np.exp(self._look_up.log_p(codes))).tolist()
        return probabilities

    def plain_row(self, table: Any) -> Mapping[str, Any] | None:
        """Return the row of a one-row table as a dict, or None if it can be scored only by reading it as a table.

        A dict is returned if all values mean the same in every table: strings, integers, Booleans, missing values, and
        other numbers in numeric columns.
        """
        if isinstance(table, Mapping):
            names, columns = table.keys(), table.values()
            if not all(isinstance(column, (list, tuple, np.ndarray)) and len(column) == 1 for column in columns):
                return None
            values: Sequence[Any] = [column[0] for column in columns]
        elif hasattr(table, "itertuples") and len(table) == 1:  # pandas
            array = table.to_numpy()
            if array.dtype.kind in "mM":  # as a list these would be whole numbers
                return None
            names, values = table.columns, array[0].tolist()
        elif hasattr(table, "to_pylist") and getattr(table, "num_rows", 0) == 1:  # pyarrow
            names, values = table.schema.names, [column[0].as_py() for column in table.columns]
        else:
            return None
        row = dict(zip(map(str, names), values, strict=True))
        if len(row) < len(values) or any(source not in row for source in self._sources):  # a name may be repeated
            return None
        for source, encoder in zip(self._sources, self._full_encoders, strict=True):
            value = row[source]
            kind = type(value)
            if kind not in _PLAIN and (kind not in _REAL or (encoder.cuts is None and value == value)):
                return None
        return row

    def __reduce__(self) -> tuple[Any, ...]:
        return Scorer, (self._model,)

    def __repr__(self) -> str:
        n, k = len(self.columns), len(self.classes_)
        return f"<bncli.Scorer {self._model.schema.class_name}: {n} columns, {k} labels>"

    def _values_in_order(self, row: Any) -> Sequence[Any]:
        """Return the value of each attribute used; the row is in the order of `columns` or of `all_columns`.

        Raises UsageError if the row is not a sequence, and ModelError if it has another number of values.
        """
        if isinstance(row, np.ndarray) and row.ndim == 1:
            row = row.tolist()
        if isinstance(row, (str, bytes)) or not isinstance(row, Sequence):
            what = f"the row is of type {type(row).__name__}, not a dict or a sequence"
            raise UsageError(what, hint="give a dict of values by column, or a list of values in column order")
        if len(row) != len(self.columns):
            if len(row) != len(self.all_columns):
                n = f"{len(self.columns)}"
                n += "" if len(self.columns) == len(self.all_columns) else f" or {len(self.all_columns)}"
                what = f"the row has {len(row)} values instead of {n}"
                raise ModelError(what, hint="scorer.columns and scorer.all_columns list the columns in order")
            row = self._used_of_all(row)
        values: Sequence[Any] = row if self._parts_of is None else self._parts_of(row)
        return values

    def _values_of_parts(self, row: Mapping[str, Any]) -> tuple[list[Any], list[_Encoder]]:
        """Return the values and the encoders of the attributes, for a row that lacks some of the columns.

        A row may have parts of a date, such as `signup.month`, in place of the date. Raises ModelError if any attribute
        has neither its column nor such a part.
        """
        values, encoders, absent = [], [], []
        for source, encoder in zip(self._sources, self._full_encoders, strict=True):
            if source in row:
                values.append(row[source])
            elif isinstance(encoder.form, DateForm) and encoder.name in row:
                values.append(row[encoder.name])
                encoder = replace(encoder, form=None)
            else:
                absent.append(source)
            encoders.append(_Encoder.of(encoder))
        if absent:
            named = list_names([f"'{name}'" for name in dict.fromkeys(absent)], _N_NAMED)
            similar = difflib.get_close_matches(absent[0], [str(name) for name in row], 1, 0.5)
            hint = f"did you mean '{similar[0]}'?" if similar else "a missing value is None"
            plural = "s" if len(set(absent)) > 1 else ""
            raise ModelError(f"the row has no column{plural} {named}, which the model uses", hint=hint)
        return values, encoders


def bounded(probabilities: Array) -> Array:
    """Clip probabilities to the range from LEAST to LARGEST, which bncli writes."""
    return np.asarray(np.minimum(np.maximum(probabilities, LEAST), LARGEST))


def _getter(keys: Sequence[Any]) -> Callable[[Any], Sequence[Any]]:
    """Return a function from a row to the sequence of its values at these keys."""
    if len(keys) > 1:
        return itemgetter(*keys)
    return lambda row: [row[key] for key in keys]
