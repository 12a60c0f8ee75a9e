"""How a table writes the values of a numeric attribute, if not as plain numbers: date parts, decimal commas and so on.

The engine only passes a form on, from a column to its attribute and to model files. The readers of tables interpret it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DateOrder = Literal["ymd", "dmy", "mdy", "yymd", "time"]
DatePart = Literal["year", "month", "day", "weekday", "hour", "days"]
DATE_ORDERS: tuple[DateOrder, ...] = ("ymd", "dmy", "mdy", "yymd", "time")
DATE_PARTS: tuple[DatePart, ...] = ("year", "month", "day", "weekday", "hour", "days")
"""The parts that replace a date column, in this order."""


@dataclass(frozen=True)
class NumberForm:
    """A number with the decimal mark `decimal`, perhaps thousands separators, and a currency or percent sign `affix`.

    words: texts of the column that are not numbers, such as "k.A."; they are read as missing values.
    """

    decimal: str
    affix: str = ""
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class DateForm:
    """A part of the date, or the time of day, in the column `source`, in local time as written.

    - order: `dmy` or `mdy` for dates of three numbers with the year last; `ymd` if the column has no such date, `yymd`
      if the year comes first and has two digits, `time` for times of day
    - part: `weekday` counts from Monday = 1; `days` counts from the day `origin`, itself in days since 1970-01-01
    """

    source: str
    part: DatePart
    order: DateOrder
    origin: int = 0


Form = NumberForm | DateForm
