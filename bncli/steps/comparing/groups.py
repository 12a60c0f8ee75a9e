"""Data sets in groups by their number of rows: everything over all of them is then told of each group too.

Conventions: bounds b_1 < b_2 < ... make the groups `rows<b_1`, `b_1<=rows<b_2`, ..., `rows>=b_n`; the rows are those of
the whole table. A group without a data set is refused, for a bound outside the tables is most likely a slip.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bncli.errors import UsageError

Groups = Mapping[str, tuple[str, ...]]
"""The data sets of each group, by its name."""


def groups_by_rows(bounds: Sequence[int], sizes: Mapping[str, int]) -> Groups:
    """The groups between ascending bounds, from the rows of every data set; none without a bound."""
    if not bounds:
        return {}
    edges = [0, *bounds]
    groups = {}
    for least, below in zip(edges, [*bounds, None], strict=True):
        tables = tuple(data for data, n in sizes.items() if n >= least and (below is None or n < below))
        if not tables:
            raise UsageError(f"no table has {_told(least, below)}: {_span(sizes)}", hint="move the bound of --groups")
        groups[_name(least, below)] = tables
    return groups


def _name(least: int, below: int | None) -> str:
    if below is None:
        return f"rows>={least}"
    return f"{least}<=rows<{below}" if least else f"rows<{below}"


def _told(least: int, below: int | None) -> str:
    if below is None:
        return f"{least:,} rows or more"
    return f"{least:,} rows or more and fewer than {below:,}" if least else f"fewer than {below:,} rows"


def _span(sizes: Mapping[str, int]) -> str:
    """Which tables have how many rows: all of a few, else the smallest and the largest."""
    ascending = sorted(sizes, key=lambda data: sizes[data])
    if len(ascending) <= _FEW:
        return ", ".join(f"{data} has {sizes[data]:,}" for data in ascending)
    first, last = ascending[0], ascending[-1]
    return f"they have from {sizes[first]:,} ({first}) to {sizes[last]:,} ({last})"


_FEW = 4
