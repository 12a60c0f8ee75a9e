"""From raw columns to a schema: where numeric columns are cut, which levels occur, and how often.

This is the first step of learning, and all of it looks at training rows only: a numeric column is cut by the chosen
discretizer, a categorical column keeps the levels that occur (with positive weight, in their order), and an
attribute has a missing level where these rows have a hole, unless holes are to be summed out: then they count for
nothing here. The class keeps every label it was read with, so that the folds of one table agree on the classes.

Decided here: with given cuts the attributes are those given, in the order given, and their cuts and levels are
used as they are; other columns are left out; a level that the rows have and the cuts lack is an error. Columns are
worked on by several threads; the result does not depend on how many. Cost: that of the discretizer, a column each.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bncli.catalogue import DISCRETIZERS
from bncli.engine.data.columns import CategoricalColumn, Column, Columns, NumericColumn
from bncli.engine.data.dataset import code_dtype
from bncli.engine.data.schema import Attribute, CategoricalAttribute, Cuts, MissingPolicy, NumericAttribute, Schema
from bncli.engine.kernels.arrays import Array, Index, Integers
from bncli.engine.kernels.binning import interval_codes
from bncli.errors import BncliError
from bncli.watch import Progress, Watch, silent

Weights = Array | None
CutPoints = Callable[..., tuple[float, ...]]


def learn_schema(
    columns: Columns,
    *,
    discretize: str = "mdl",
    given: Cuts | None = None,
    missing_tokens: Sequence[str] | None = None,
    unseen: Literal["average", "error"] = "average",
    missing_policy: MissingPolicy = "level",
    threads: int = 1,
    watch: Watch = silent,
    **options: Any,
) -> Schema:
    """The schema of labelled training rows, cut by `discretize` with its `options` (None: default) unless `given`."""
    if columns.label is None or (columns.label.codes < 0).any():
        raise BncliError(f"there are rows without a class {columns.class_name!r}")
    if given is None:
        cut = _cutter(columns, discretize, {key: value for key, value in options.items() if value is not None})
        names = list(columns.attributes)
    else:
        cut = _adopter(columns, given)
        names = [attribute.name for attribute in given.attributes]
    tokens = None if missing_tokens is None else tuple(missing_tokens)
    attributes = tuple(_each(cut, names, threads, watch))
    if missing_policy == "marginalize":
        attributes = tuple(map(_without_missing_level, attributes))
    return Schema(columns.class_name, columns.label.levels, attributes, tokens, unseen, missing_policy)


def _without_missing_level(attribute: Attribute) -> Attribute:
    seen, holes = attribute.frequencies[: attribute.n_values], attribute.frequencies[attribute.n_values :]
    return replace(attribute, missing=False, frequencies=seen, holes=sum(holes))


def cuts_of(schema: Schema, method: str, options: Mapping[str, Any]) -> Cuts:
    """The cuts and levels of a schema, without what it knows of its rows."""
    bare = tuple(replace(attribute, missing=False, frequencies=(), holes=0.0) for attribute in schema.attributes)
    return Cuts(schema.class_name, bare, method, dict(options))


def _each(cut: Callable[[str], Attribute], names: list[str], threads: int, watch: Watch) -> list[Attribute]:
    """`cut` of every name, in order; progress is told from the calling thread."""
    attributes: list[Attribute] = []
    with ThreadPoolExecutor(max(threads, 1)) as pool:
        for name, attribute in zip(names, pool.map(cut, names), strict=True):
            attributes.append(attribute)
            watch(Progress(len(attributes), len(names), name))
    return attributes


def _cutter(columns: Columns, method: str, options: Mapping[str, Any]) -> Callable[[str], Attribute]:
    """The function that learns the attribute of a name."""
    module = importlib.import_module(DISCRETIZERS.module_of(method))
    cut_points: CutPoints = module.cut_points
    assert columns.label is not None
    n_labels, weights = len(columns.label.levels), columns.weights
    labels = columns.label.codes.astype(code_dtype(n_labels))

    def learnt(name: str) -> Attribute:
        column = columns.attributes[name]
        if isinstance(column, CategoricalColumn):
            return _levels(name, column, weights)
        rows = _usable(column.values, weights)
        cuts = cut_points(
            column.values if rows is None else column.values[rows],
            labels if rows is None else labels[rows],
            n_labels,
            weights if weights is None or rows is None else weights[rows],
            **options,
        )
        return _intervals(name, column, cuts, weights)

    return learnt


def _usable(values: NDArray[np.generic], weights: Weights) -> Index | None:
    """The rows that have a value and a weight; None for all of them."""
    usable = ~np.isnan(values) if values.dtype.kind == "f" else np.ones(len(values), np.bool_)
    if weights is not None:
        usable &= weights > 0
    return None if usable.all() else np.flatnonzero(usable)


def _intervals(name: str, column: NumericColumn, cuts: tuple[float, ...], weights: Weights) -> NumericAttribute:
    """The attribute with these cuts, its frequencies counted on the rows."""
    n = len(cuts) + 1
    codes = interval_codes(column.values, cuts, code_dtype(n + 1))
    if column.values.dtype.kind == "f":
        codes[np.isnan(column.values)] = n
    missing, frequencies = _frequencies(codes, n, weights)
    return NumericAttribute(name, missing, frequencies, cuts)


def _levels(name: str, column: CategoricalColumn, weights: Weights) -> CategoricalAttribute:
    """The attribute of the levels that occur, in their order."""
    n = len(column.levels)
    missing, frequencies = _frequencies(np.where(column.codes < 0, n, column.codes), n, weights)
    present = [code for code in range(n) if frequencies[code] > 0]
    kept = tuple(frequencies[code] for code in present) + frequencies[n:]
    return CategoricalAttribute(name, missing, kept, tuple(column.levels[code] for code in present))


def _frequencies(codes: Integers, n: int, weights: Weights) -> tuple[bool, tuple[float, ...]]:
    """Whether holes (code n) have weight, and the weight of each code, that of the holes last if they have any."""
    sums = np.bincount(codes, weights, n + 1).astype(np.float64)
    missing = bool(sums[n] > 0)
    return missing, tuple(sums[: n + missing].tolist())


def _adopter(columns: Columns, given: Cuts) -> Callable[[str], Attribute]:
    """The function that meets a given attribute with the rows."""
    by_name = {attribute.name: attribute for attribute in given.attributes}

    def adopted(name: str) -> Attribute:
        attribute, column = by_name[name], columns.attributes.get(name)
        if column is None:
            raise BncliError(f"the cuts have an attribute {name!r} that is not a column of the data")
        if isinstance(attribute, NumericAttribute) and isinstance(column, NumericColumn):
            return _intervals(name, column, attribute.cuts, columns.weights)
        if isinstance(attribute, CategoricalAttribute) and isinstance(column, CategoricalColumn):
            return _given_levels(attribute, column, columns.weights)
        raise BncliError(f"column {name!r} is {_kind(column)} in the data and not in the cuts")

    return adopted


def _given_levels(attribute: CategoricalAttribute, column: CategoricalColumn, weights: Weights) -> CategoricalAttribute:
    occurring = _levels(attribute.name, column, weights)
    position = {level: code for code, level in enumerate(attribute.levels)}
    counted = np.zeros(len(position) + occurring.missing)
    for level, weight in zip(occurring.levels, occurring.frequencies, strict=False):
        if level not in position:
            raise BncliError(f"column {attribute.name!r} has the value {level!r}, which is not a level of the cuts")
        counted[position[level]] = weight
    if occurring.missing:
        counted[-1] = occurring.frequencies[-1]
    return replace(attribute, missing=occurring.missing, frequencies=tuple(counted.tolist()))


def _kind(column: Column) -> str:
    return "numeric" if isinstance(column, NumericColumn) else "categorical"
