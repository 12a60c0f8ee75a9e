"""From raw columns to coded rows: where numeric columns are cut, which levels occur, and how often.

This is the first step of learning, and all of it looks at training rows only: a numeric column is cut by the chosen
discretizer, a categorical column keeps the levels that occur (with positive weight, in their order), pooled where they
are too many (`grouping`), and an attribute has a missing level where these rows have a missing value, unless missing
values are marginalized: then they count for nothing here. The class keeps every label it was read with, so that the
folds of one table agree on the classes. Frequencies are counted on the codes of the rows, and these codes are the data
set: a column is read once.

Conventions: with given cuts the attributes are those given, in the order given, and their cuts and levels are
used as they are; other columns are left out; a level that the rows have and the cuts lack is an error. An attribute to
which they give a missing level has one even where no value of these rows is missing. Columns are
worked on by several threads; the result does not depend on how many. Cost: that of the discretizer, a column each.

Levels of a category that are pooled, where the rows cannot fill them: which, and what the pooled ones are called.

A table over an attribute of hundreds of levels has more cells than there are rows, and what it learns is noise. Such an
attribute gets fewer codes: its values are pooled by what they say of the class, as far as the rows can show it
(`bncli.engine.kernels.value_grouping`). If they show nothing, one level is left, and the attribute tells nothing.

Conventions: by itself (`auto`) an attribute is looked at that has more than FEW levels and more than the square root of
the training weight, so that a table of two of its kind would have more cells than there are rows; with a number, one
with more levels than that. Missing values stay a level apart. Levels are in the order of the first value of each, and
one of several values is named by its commonest, with care that no name is a value or used twice.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bncli.catalogue import DISCRETIZERS
from bncli.engine.data.columns import (
    CategoricalColumn,
    ChunkedColumn,
    CodedColumn,
    Column,
    Columns,
    ColumnsJoinedOnDemand,
    NumericColumn,
)
from bncli.engine.data.dataset import Dataset, code_dtype
from bncli.engine.data.encoding import encode_column
from bncli.engine.data.schema import (
    Attribute,
    CategoricalAttribute,
    Cuts,
    MissingPolicy,
    NumericAttribute,
    ReadingRules,
    Schema,
)
from bncli.engine.kernels.arrays import Array, Codes, Index, Integers
from bncli.engine.kernels.binning import whole_units
from bncli.engine.kernels.value_grouping import group_values
from bncli.errors import BncliError
from bncli.watch import Note, Progress, Run

Rule = int | str | None
"""`auto`, `off` (or None), or the most groups that an attribute may have."""
FEW = 20
"""So many levels are never too many."""
_NAMED_WHOLE, _NAMED, _LONGEST, _LISTED = 3, 2, 24, 8
ROWS_PER_THREAD = 1 << 12
"""A column of fewer rows is cut on the spot: handing it to a thread costs more."""
Weights = Array | None
COLUMNS_AT_ONCE = 1 << 12
CutPoints = Callable[..., tuple[float, ...]]


class _Coded(NamedTuple):
    """An attribute, and the code of every row, shape (N,)."""

    attribute: Attribute
    codes: Codes | ChunkedColumn


def many_valued(attribute: CategoricalAttribute, rule: Rule) -> bool:
    """Return whether the rule has its levels pooled; `attribute` has those that occur, with their frequencies."""
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
    """Return the attribute with its levels pooled to at most `most`, not counted yet; as it is where each stays alone.

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
    """Return a name for each group: its value, or its commonest values and how many more there are."""
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


def _unlike(name: str, taken: set[str]) -> str:
    """Return the name, with a number if it is taken."""
    number, unlike = 1, name
    while unlike in taken:
        number += 1
        unlike = f"{name} ({number})"
    return unlike


def _joined(values: Sequence[str], n_values: int) -> str:
    """Return two or three values as they are, of more the first two."""
    shown = values[: n_values if n_values <= _NAMED_WHOLE else _NAMED]
    texts = [value if len(value) <= _LONGEST else f"{value[: _LONGEST - 3]}..." for value in shown]
    return "|".join([*texts, *([f"{n_values - len(shown)} more"] if n_values > len(shown) else [])])


def pooling_notes(attributes: Sequence[Attribute], n_rows: int) -> list[str]:
    """Return what was pooled, and what was left out because nothing can be told from it: a sentence each."""
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


def learn_dataset(
    columns: Columns,
    *,
    discretize: str | CutPoints = "mdl",
    group_levels: Rule = "off",
    given: Cuts | None = None,
    missing_policy: MissingPolicy = "level",
    reading: ReadingRules = ReadingRules(),
    run: Run = Run(),
    **options: Any,
) -> Dataset:
    """Labelled training rows in codes, under the schema learnt from them.

    The discretizer, a name or a function by the contract of `bncli.engine.discretizers`, makes the cuts, unless they
    are `given`; of its `options` those that are None have its own defaults.
    """
    if columns.label is None or (columns.label.codes < 0).any():
        raise BncliError(f"there are rows without a class {columns.class_name!r}")
    labels = columns.label.codes.astype(code_dtype(len(columns.label.levels)), copy=False)
    if given is None:
        learn = _learner(
            columns,
            labels,
            partial(_discretizer(discretize), **{key: value for key, value in options.items() if value is not None}),
            group_levels,
        )
        names = list(columns.attributes)
    else:
        learn = _adopter(columns, given)
        names = [attribute.name for attribute in given.attributes]

    without = _without_cuts(columns, labels, discretize) if given is None else frozenset()
    coded = _coder(columns, learn, without, missing_policy)
    rows = _each(coded, names, run if columns.n_rows >= ROWS_PER_THREAD else run._replace(threads=1))
    attributes = tuple(column.attribute for column in rows)
    for sentence in pooling_notes(attributes, len(labels)) if given is None else ():
        run.watch(Note(sentence))
    tokens = reading.missing_tokens if columns.origin is None else columns.origin.missing_tokens
    levels = columns.label.levels
    frequencies = tuple(ChunkedColumn.of(labels).count(len(levels), columns.weights).tolist())
    schema = Schema(
        columns.class_name, levels, attributes, tokens, reading.unseen, missing_policy, label_frequencies=frequencies
    )
    return Dataset(schema, _side_by_side(rows), labels, columns.weights, run.threads)


def _learner(columns: Columns, labels: Codes, cut_points: CutPoints, rule: Rule) -> Callable[[str], Attribute]:
    """Return the function that learns the attribute of a name."""
    assert columns.label is not None
    n_labels, weights = len(columns.label.levels), columns.weights
    units = whole_units(weights)
    most = rule if isinstance(rule, int) else None

    def learnt(name: str) -> Attribute:
        column = columns.attributes[name]
        if isinstance(column, CodedColumn):
            return column.attribute
        if isinstance(column, CategoricalColumn):
            levels = _levels(name, column, weights)
            if not many_valued(levels, rule):
                return levels
            return _counted(pooled(levels, column, labels, n_labels, units, most), levels)
        rows = _usable(column.values, weights)
        cuts = cut_points(
            column.values if rows is None else column.values[rows],
            labels if rows is None else labels[rows],
            n_labels,
            weights if weights is None or rows is None else weights[rows],
        )
        return NumericAttribute(name, False, (), cuts, column.form)

    return learnt


def _levels(name: str, column: CategoricalColumn, weights: Weights) -> CategoricalAttribute:
    """Return the attribute of the levels that occur, in their order."""
    n = len(column.levels)
    codes = column.codes.astype(np.intp)  # n itself may be more than the type of the codes holds
    codes[codes < 0] = n
    missing, frequencies = _frequencies(codes, n, weights)
    present = [code for code in range(n) if frequencies[code] > 0]
    kept = tuple(frequencies[code] for code in present) + frequencies[n:]
    return CategoricalAttribute(name, missing, kept, tuple(column.levels[code] for code in present))


def _frequencies(codes: Integers, n: int, weights: Weights, *, level: bool = False) -> tuple[bool, tuple[float, ...]]:
    """Return whether missing values (code n) are a level, and the weight of each code, theirs last if they are.

    They are where they have weight, or are said to be a `level`.
    """
    sums = ChunkedColumn.of(codes).count(n + 1, weights)  # type: ignore[arg-type]
    # rows of weight 0 do not make a level
    missing = level or bool(sums[n] > 0)
    return missing, tuple(sums[: n + missing].tolist())


def _counted(attribute: CategoricalAttribute, occurring: CategoricalAttribute) -> CategoricalAttribute:
    """Return the attribute with the frequencies of the values that occur, each of which it knows."""
    missing = occurring.missing or attribute.missing
    counted = np.zeros(attribute.n_values + missing)
    for level, weight in zip(occurring.levels, occurring.frequencies, strict=False):
        counted[attribute.code_of[level]] += weight
    if occurring.missing:
        # the missing level is the last code of either
        counted[-1] = occurring.frequencies[-1]
    return replace(attribute, missing=missing, frequencies=tuple(counted.tolist()))


def _usable(values: NDArray[np.generic], weights: Weights) -> Index | None:
    """Return the rows that have a value and a weight; None for all of them."""
    usable = ~np.isnan(values) if values.dtype.kind == "f" else np.ones(len(values), np.bool_)
    if weights is not None:
        usable &= weights > 0
    return None if usable.all() else np.flatnonzero(usable)


def _discretizer(method: str | CutPoints) -> CutPoints:
    if not isinstance(method, str):
        return method
    return _module(method).cut_points  # type: ignore[no-any-return]


def _module(method: str) -> Any:
    return importlib.import_module(DISCRETIZERS.module_of(method))


def _adopter(columns: Columns, given: Cuts) -> Callable[[str], Attribute]:
    """Return the function that meets a given attribute with the rows."""
    by_name = {attribute.name: attribute for attribute in given.attributes}

    def adopted(name: str) -> Attribute:
        attribute, column = by_name[name], columns.attributes.get(name)
        if column is None:
            raise BncliError(f"the cuts have an attribute {name!r} that is not a column of the data")
        if isinstance(column, CodedColumn):
            if column.attribute != attribute:
                raise BncliError(f"the codes of column {name!r} are not those of the cuts")
            return attribute
        if isinstance(attribute, NumericAttribute) and isinstance(column, NumericColumn):
            return attribute
        if isinstance(attribute, CategoricalAttribute) and isinstance(column, CategoricalColumn):
            return _supplied_levels(attribute, column, columns.weights)
        raise BncliError(f"column {name!r} is {_kind(column)} in the data and not in the cuts")

    return adopted


def _supplied_levels(
    attribute: CategoricalAttribute, column: CategoricalColumn, weights: Weights
) -> CategoricalAttribute:
    occurring = _levels(attribute.name, column, weights)
    for level in occurring.levels:
        if level not in attribute.code_of:
            raise BncliError(f"column {attribute.name!r} has the value {level!r}, which is not a level of the cuts")
    return _counted(attribute, occurring)


def _kind(column: Column | CodedColumn) -> str:
    return "numeric" if isinstance(column, NumericColumn) else "categorical"


def _without_cuts(columns: Columns, labels: Codes, discretize: str | CutPoints) -> frozenset[str]:
    """Complete columns of few rows that the discretizer tells at once to have no cut, where it can."""
    module: Any = None if callable(discretize) else _module(discretize)
    if not hasattr(module, "uncut") or columns.weights is not None or columns.label is None:
        return frozenset()
    if columns.n_rows > module.FEW_ROWS:
        return frozenset()
    numbers = [name for name, c in columns.attributes.items() if isinstance(c, NumericColumn) and not _lacks(c)]
    found: list[str] = []
    for first in range(0, len(numbers), COLUMNS_AT_ONCE):
        names = numbers[first : first + COLUMNS_AT_ONCE]
        values = np.stack([np.asarray(_numbers(columns, name), np.float64) for name in names])
        found += itertools.compress(names, module.uncut(values, labels, len(columns.label.levels)))
    return frozenset(found)


def _lacks(column: Column | CodedColumn) -> bool:
    """Return whether values of a column of numbers are missing."""
    assert isinstance(column, NumericColumn)
    return column.values.dtype.kind == "f" and bool(np.isnan(column.values).any())


def _numbers(columns: Columns, name: str) -> NDArray[np.generic]:
    column = columns.attributes[name]
    assert isinstance(column, NumericColumn)
    return column.values


def _coder(
    columns: Columns, learn: Callable[[str], Attribute], without_cuts: frozenset[str], missing_policy: MissingPolicy
) -> Callable[[str], _Coded]:
    """Return the function that learns and codes the column of a name."""
    # What every complete column of numbers without a cut comes to: one interval that holds all rows.
    nothing = np.broadcast_to(np.zeros(1, np.uint8), columns.n_rows)
    _, frequencies = _frequencies(nothing, 1, columns.weights)
    uncut = _Coded(NumericAttribute("", False, frequencies), nothing)

    def coded(name: str) -> _Coded:
        if name in without_cuts:
            form = columns.attributes[name].form  # type: ignore[union-attr]
            return _Coded(NumericAttribute(name, False, uncut.attribute.frequencies, (), form), uncut.codes)
        attribute, column = learn(name), columns.attributes[name]
        if isinstance(column, CodedColumn):
            return _counted_codes(column, columns.weights, missing_policy)
        if isinstance(attribute, NumericAttribute) and not (attribute.cuts or attribute.missing or _lacks(column)):
            return _Coded(replace(attribute, frequencies=uncut.attribute.frequencies), uncut.codes)
        return _coded(attribute, column, columns.weights, missing_policy)

    return coded


def _counted_codes(column: CodedColumn, weights: Weights, missing_policy: MissingPolicy) -> _Coded:
    """Return the codes where they lie, under their attribute with its frequencies."""
    bare = column.attribute
    sums = column.codes.count(bare.n_values + 1, weights)
    missing = bare.missing or bool(sums[bare.n_values] > 0)
    attribute = replace(bare, missing=missing, frequencies=tuple(sums[: bare.n_values + missing].tolist()))
    if missing_policy == "marginalize":
        attribute = _without_missing_level(attribute)
    nothing = np.broadcast_to(np.zeros(1, np.uint8), len(column.codes))
    return _Coded(attribute, column.codes if attribute.informative else nothing)


def _without_missing_level(attribute: Attribute) -> Attribute:
    seen, missing = attribute.frequencies[: attribute.n_values], attribute.frequencies[attribute.n_values :]
    return replace(attribute, missing=False, frequencies=seen, missing_weight=sum(missing))


def _coded(
    attribute: Attribute, column: Column | CodedColumn, weights: Weights, missing_policy: MissingPolicy
) -> _Coded:
    """Return the column under its attribute: intervals are counted on their codes, levels were counted to be found.

    An attribute that tells nothing is all zeros and takes no memory.
    """
    if isinstance(attribute, NumericAttribute):
        codes = encode_column(column, attribute).codes
        missing, frequencies = _frequencies(codes, attribute.n_values, weights, level=attribute.missing)
        attribute = replace(attribute, missing=missing, frequencies=frequencies)
    if missing_policy == "marginalize":
        attribute = _without_missing_level(attribute)
    if isinstance(attribute, CategoricalAttribute):
        codes = encode_column(column, attribute).codes
    return _Coded(attribute, codes if attribute.informative else np.broadcast_to(np.zeros(1, np.uint8), len(codes)))


def _each(coded: Callable[[str], _Coded], names: list[str], run: Run) -> list[_Coded]:
    """Return `coded` of every name, in order; progress is told from the calling thread."""
    rows: list[_Coded] = []
    with ThreadPoolExecutor(run.threads) if run.threads > 1 else nullcontext() as pool:
        for name, column in zip(names, (map if pool is None else pool.map)(coded, names), strict=True):
            rows.append(column)
            run.watch(Progress(len(rows), len(names), name))
    return rows


def _side_by_side(rows: list[_Coded]) -> tuple[Codes, ...] | ColumnsJoinedOnDemand:
    """Return arrays, or what stands for them where any column lies in parts."""
    if not any(isinstance(column.codes, ChunkedColumn) for column in rows):
        return tuple(column.codes for column in rows)  # type: ignore[misc]
    return ColumnsJoinedOnDemand(
        [c.codes if isinstance(c.codes, ChunkedColumn) else ChunkedColumn.of(c.codes) for c in rows]
    )


def cuts_of(schema: Schema, method: str, options: Mapping[str, Any]) -> Cuts:
    """Return the cuts and levels of a schema, missing levels among them, without the frequencies in its rows."""
    bare = tuple(replace(attribute, frequencies=(), missing_weight=0.0) for attribute in schema.attributes)
    return Cuts(schema.class_name, bare, method, dict(options))
