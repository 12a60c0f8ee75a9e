"""The figures of every fold of a comparison as CSV, a line a fold; what is not defined is an empty field."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

from bncli.files.atomic import write_bytes


def write_outcomes(path: str, names: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    """A header of names, then the values of every row under them."""
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_bytes(path, text.getvalue().encode("utf-8", "backslashreplace"))
