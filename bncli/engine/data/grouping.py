"""Levels of a category that are pooled, where the rows cannot fill them: which, and what the pooled ones are called.

A table over an attribute of hundreds of levels has more cells than there are rows, and what it learns is noise. Such an
attribute gets fewer codes: its values are pooled by what they say of the class, as far as the rows can show it
(`bncli.engine.kernels.value_grouping`). If they show nothing, one level is left, and the attribute tells nothing.

Conventions: by itself (`auto`) an attribute is looked at that has more than FEW levels and more than the square root of
the training weight, so that a table of two of its kind would have more cells than there are rows; with a number, one
with more levels than that. Missing values stay a level apart. Levels are in the order of the first value of each, and
one of several values is named by its commonest, with care that no name is a value or used twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bncli.engine.data.columns import CategoricalColumn
from bncli.engine.data.schema import Attribute, CategoricalAttribute
from bncli.engine.kernels.arrays import Codes
from bncli.engine.kernels.value_grouping import group_values

Rule = int | str | None
"""`auto`, `off` (or None), or the most groups that an attribute may have."""

FEW = 20
"""So many levels are never too many."""
_NAMED_WHOLE, _NAMED, _LONGEST, _LISTED = 3, 2, 24, 8


def many_valued(attribute: CategoricalAttribute, rule: Rule) -> bool:
    """Whether the rule has its levels pooled; `attribute` has those that occur, with their frequencies."""
    if rule in (None, "off"):
        return False
    n = attribute.n_values
    return n > rule if isinstance(rule, int) else n > FEW and n * n > sum(attribute.frequencies)


def pooled(
    attribute: CategoricalAttribute,
    column: CategoricalColumn,
    labels: Codes,
    n_labels: int,
    weights: tuple[NDArray[np.int64] | None, float],
    most: int | None,
) -> CategoricalAttribute:
    """The attribute with its levels pooled to at most `most`, not counted yet; as it is where each stays alone.

    labels (N,): the class of every row; weights: that of every row in whole units, and the unit.
    """
    units, unit = weights
    position = {level: code for code, level in enumerate(attribute.levels)}
    n = attribute.n_values
    # levels without weight, and the codes of no level, fall into a row of their own
    code = np.array([*(position.get(level, n) for level in column.levels), n, n])[column.codes]
    cells = np.bincount(code * n_labels + labels, units, (n + 1) * n_labels)
    counts = np.rint(cells).astype(np.int64).reshape(n + 1, n_labels)[:n]
    groups = group_values(counts, unit, most).groups
    if int(groups.max()) + 1 == n:
        return attribute
    members = [np.flatnonzero(groups == g).tolist() for g in range(int(groups.max()) + 1)]
    values = tuple(tuple(attribute.levels[code] for code in group) for group in members)
    return replace(attribute, frequencies=(), levels=_names(attribute, members), groups=values)


def _names(attribute: CategoricalAttribute, members: Sequence[list[int]]) -> tuple[str, ...]:
    """A name for each group: its value, or its commonest values and how many more there are."""
    taken = set(attribute.levels)
    names = []
    for group in members:
        name = attribute.levels[group[0]]
        if len(group) > 1:
            commonest = sorted(group, key=lambda code: (-attribute.frequencies[code], code))
            name = _unlike(
                _joined([attribute.levels[code] for code in commonest[: _NAMED_WHOLE + 1]], len(group)), taken
            )
        taken.add(name)
        names.append(name)
    return tuple(names)


def _joined(values: Sequence[str], n_values: int) -> str:
    """Two or three values as they are, of more the first two."""
    shown = values[: n_values if n_values <= _NAMED_WHOLE else _NAMED]
    texts = [value if len(value) <= _LONGEST else f"{value[: _LONGEST - 3]}..." for value in shown]
    return "|".join([*texts, *([f"{n_values - len(shown)} more"] if n_values > len(shown) else [])])


def _unlike(name: str, taken: set[str]) -> str:
    """The name, with a number if it is taken."""
    number, unlike = 1, name
    while unlike in taken:
        number += 1
        unlike = f"{name} ({number})"
    return unlike


def told(attributes: Sequence[Attribute], n_rows: int) -> list[str]:
    """What was pooled, and what was left out because nothing can be told from it: a sentence each."""
    found = [a for a in attributes if isinstance(a, CategoricalAttribute) and a.groups]
    kept = [f"{a.name} {_size(a)} -> {a.n_values} group{'s' * (a.n_values > 1)}" for a in found if a.informative]
    idle = [f"'{a.name}' ({_size(a)} values)" for a in found if not a.informative]
    sentences = []
    if kept:
        sentences.append(f"levels pooled by what they say of the class: {_few(kept)} (--group-levels off keeps them)")
    if idle:
        verb = "tells" if len(idle) == 1 else "tell"
        why = f"{verb} nothing about the class that {n_rows:,} rows could show: left out"
        sentences.append(f"{_few(idle)} {why} (--group-levels off keeps {'it' if len(idle) == 1 else 'them'})")
    return sentences


def _size(attribute: CategoricalAttribute) -> int:
    return sum(map(len, attribute.groups))


def _few(texts: Sequence[str]) -> str:
    return ", ".join(texts[:_LISTED]) + (f" and {len(texts) - _LISTED} more" if len(texts) > _LISTED else "")
