"""The schema of a model: names, cuts or levels of its columns, frequencies of their codes, and how to read new rows.

The values of a numeric attribute may be written in a form other than plain numbers, for example as dates or with
decimal commas. The engine only passes such a form on, from a column to its attribute and to model files; the readers of
tables interpret it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

DateOrder = Literal["ymd", "dmy", "mdy", "yymd", "time"]
DatePart = Literal["year", "month", "day", "weekday", "hour", "days"]
DATE_ORDERS: tuple[DateOrder, ...] = ("ymd", "dmy", "mdy", "yymd", "time")
DATE_PARTS: tuple[DatePart, ...] = ("year", "month", "day", "weekday", "hour", "days")
"""The parts that replace a date column, in this order, without constant ones; times of day have only the hour."""


@dataclass(frozen=True)
class NumberForm:
    """The form of numbers with the decimal mark `decimal`, optional thousands separators, and a sign `affix` or "".

    - affix: a currency or percent sign
    - words: strings of the column that are not numbers, such as "k.A."; they are read as missing values
    """

    decimal: str
    affix: str = ""
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class DateForm:
    """The form of one part of the dates, or times of day, in the column `source`, in local time as written.

    - order: `dmy` or `mdy` for dates of three numbers with the year last; `ymd` if the column has no such date, `yymd`
      if the year comes first and has two digits, `time` for times of day
    - part: `weekday` is 1 for Monday; `days` is the number of days since `origin`, which is in days since 1970-01-01
    """

    source: str
    part: DatePart
    order: DateOrder
    origin: int = 0


Form = NumberForm | DateForm


@dataclass(frozen=True)
class _Attribute:
    name: str
    missing: bool
    frequencies: tuple[float, ...]
    missing_weight: float = field(default=0.0, kw_only=True)
    """Training weight of the rows in which the attribute was unobserved; 0 unless missing values are marginalized."""

    @property
    def n_values(self) -> int:
        """The number of intervals or levels, not counting the missing level."""
        raise TypeError(type(self).__name__)

    @property
    def cardinality(self) -> int:
        """The number of codes: one per value, and a last one for the missing level if there is one."""
        return self.n_values + self.missing

    @property
    def informative(self) -> bool:
        """Whether the attribute has more than one code; other attributes take no part in the structure."""
        return self.cardinality > 1


@dataclass(frozen=True)
class NumericAttribute(_Attribute):
    """Intervals (-inf, c1], (c1, c2], ..., (cm, inf) coded 0..m; `frequencies` is the training weight of each code.

    `form` is how tables write the values, or None for plain numbers. `direction` is a monotonicity constraint: with 1,
    the log-odds of the label `Schema.towards` never decrease as the attribute increases; with -1, they never increase;
    0 means no constraint.
    """

    cuts: tuple[float, ...] = ()
    form: Form | None = None
    direction: int = field(default=0, kw_only=True)

    @property
    def n_values(self) -> int:
        return len(self.cuts) + 1


@dataclass(frozen=True)
class CategoricalAttribute(_Attribute):
    """Levels coded 0, 1, ... in their order; `frequencies` is the training weight of each code.

    A level may stand for several values that were pooled. In this case `groups` lists the values of every level; the
    only value of a level that was not pooled is the level itself. `groups` is empty if nothing was pooled. The name of
    a pooled level is never a value.
    """

    levels: tuple[str, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()

    @property
    def n_values(self) -> int:
        return len(self.levels)

    @cached_property
    def code_of(self) -> Mapping[str, int]:
        """The code of every level, and of every value that was pooled, keyed by its string.

        A pooled level's name has a code too, so that rows simulated from a model, and binned tables, can be read.
        """
        codes = {level: code for code, level in enumerate(self.levels)}
        codes.update((value, code) for code, group in enumerate(self.groups) for value in group)
        return codes


Attribute = NumericAttribute | CategoricalAttribute


def source_column(attribute: Attribute) -> str:
    """Return the table column that an attribute is made from: the date column for a date part, otherwise its name."""
    form = attribute.form if isinstance(attribute, NumericAttribute) else None
    return form.source if isinstance(form, DateForm) else attribute.name


def direction_of(schema: Schema, i: int) -> int:
    """Return the monotonicity constraint of attribute i: 1 (increasing), -1 (decreasing), or 0 (none)."""
    attribute = schema.attributes[i]
    return attribute.direction if isinstance(attribute, NumericAttribute) else 0


MissingPolicy = Literal["level", "marginalize"]
Unseen = Literal["average", "error"]


@dataclass(frozen=True)
class ReadingRules:
    """The rules by which a model reads new rows; stored in its schema, without effect on learning.

    - missing_tokens: the strings that mean a missing value, or None for the reader's defaults
    - unseen: "average" treats a value that did not occur in training as unknown; "error" makes it an error
    """

    missing_tokens: tuple[str, ...] | None = None
    unseen: Unseen = "average"


@dataclass(frozen=True)
class Cuts:
    """Cuts and levels without frequencies, and how they were made.

    An attribute with a missing level (`missing`) keeps it for any rows; the other attributes get one if rows have
    missing values. `method` is a discretizer's name, or `file` for cuts written by hand; `options` are the
    discretizer's options. `sampled_rows` is the number of sampled rows from which the cuts were learned, or None if
    they were learned from all rows.
    """

    class_name: str
    attributes: tuple[Attribute, ...]
    method: str = "file"
    options: Mapping[str, int | float | str | bool] = field(default_factory=dict)
    sampled_rows: int | None = None


@dataclass(frozen=True)
class Schema:
    """The class and its labels, the attributes (including uninformative ones), and the rules for reading rows.

    - missing_tokens, unseen: as in `ReadingRules`
    - missing_policy: with `level`, a missing value is one more level of an attribute that had missing values in
      training; with `marginalize`, it is treated as unobserved in training and in scoring, no attribute has a missing
      level, and the code of a missing value is the cardinality
    - label_frequencies: the training weight of each label; empty if it was not counted
    - towards: the label whose log-odds against every other label satisfy the attributes' monotonicity constraints; None
      means the second of two labels
    """

    class_name: str
    labels: tuple[str, ...]
    attributes: tuple[Attribute, ...]
    missing_tokens: tuple[str, ...] | None = None
    unseen: Unseen = "average"
    missing_policy: MissingPolicy = "level"
    label_frequencies: tuple[float, ...] = ()
    towards: str | None = None

    @property
    def marginalizes(self) -> bool:
        """Whether missing values are marginalized."""
        return self.missing_policy == "marginalize"

    @property
    def pooled(self) -> bool:
        """Whether levels of any attribute were pooled."""
        return any(isinstance(attribute, CategoricalAttribute) and attribute.groups for attribute in self.attributes)

    @cached_property
    def cardinalities(self) -> tuple[int, ...]:
        """The number of codes of each attribute."""
        return tuple(attribute.cardinality for attribute in self.attributes)

    @cached_property
    def informative(self) -> tuple[int, ...]:
        """The indices of the attributes that a structure may use."""
        return tuple(i for i, attribute in enumerate(self.attributes) if attribute.informative)

    @property
    def directed(self) -> bool:
        """Whether any attribute has a monotonicity constraint."""
        return any(direction_of(self, i) for i in range(len(self.attributes)))

    @property
    def direction_label(self) -> int:
        """The position of the label whose log-odds the monotonicity constraints refer to."""
        return 1 if self.towards is None else self.labels.index(self.towards)

    def index(self, name: str) -> int:
        """Return the position of the attribute called `name`; raise KeyError if there is none."""
        return self._positions[name]

    @cached_property
    def _positions(self) -> dict[str, int]:
        """The position of the first attribute of each name."""
        return {attribute.name: i for i, attribute in reversed(list(enumerate(self.attributes)))}
