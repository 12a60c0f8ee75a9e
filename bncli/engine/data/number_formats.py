"""How the values of a numeric attribute are written in a table, if not as plain numbers: a date part, a national form.

To the engine a form is data, carried from a column to its attribute and into model files. Files are read by it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

DateOrder = Literal["ymd", "dmy", "mdy", "yymd", "time"]
DatePart = Literal["year", "month", "day", "weekday", "hour", "days"]
DATE_ORDERS: tuple[DateOrder, ...] = ("ymd", "dmy", "mdy", "yymd", "time")
DATE_PARTS: tuple[DatePart, ...] = ("year", "month", "day", "weekday", "hour", "days")
"""The parts that replace a date column, in this order."""


@dataclass(frozen=True)
class NumberForm:
    """A number with the decimal mark `decimal`, possibly thousands marks, and possibly a currency or percent sign.

    words: texts of the column that are no numbers, such as "k.A."; they are read as missing values.
    """

    decimal: str
    affix: str = ""
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class DateForm:
    """A part of the date, or the time of the day, in the column `source`, by the clock that the text shows.

    order: whether day or month comes first in a date of three numbers with the year last; `ymd` if there was no such
    date, `yymd` if the year comes first and has two digits, `time` for times of the day. weekday: 1 is Monday. days:
    since `origin` (days since 1970-01-01).
    """

    source: str
    part: DatePart
    order: DateOrder
    origin: int = 0

    def of_part(self, part: DatePart, origin: int = 0) -> DateForm:
        """Return the form of another part of the same date; only `days` has an origin."""
        return replace(self, part=part, origin=origin)


Form = NumberForm | DateForm
