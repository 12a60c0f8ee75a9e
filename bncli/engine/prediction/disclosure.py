"""Disclosure control: what a model file reveals about small numbers of training rows, and how rare values are pooled.

A model stores the training weight of every level, interval and missing level, and of every label. Values with a weight
below a minimum are listed. Tables hold no counts. For a cell, a combination of codes a, b, ... of a table over m
attributes, the file implies the Frechet bounds

    max(0, n_a + n_b + ... - (m - 1) N)  <=  rows of the cell  <=  min(n_a, n_b, ...)

so each cell is certainly below the minimum, certainly not below it, or unknown.

Pooling. Intervals below the minimum are joined with the neighbour of smaller weight, starting with the lightest
interval. Levels below it become one level, `other`, together with the next rarest levels if their total is below it
too. A missing level below it is removed: a missing value is then unknown. Tables are averaged over the joined codes,
weighted by their training weights. The tables of a network remain probabilities, which are added up along a child's
axis and averaged along a parent's axis. Prediction sets, held-out probabilities, uncertainty, quantiles of ln P(x) and
frequencies without class weights are removed from the model, and the self-test is made anew.

Conventions: training weights, which include class weights, count as rows. Cost: a pass over the tables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bncli.catalogue import MARGINALIZED
from bncli.engine.data.schema import Attribute, NumericAttribute, Schema
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Ensemble, Model, Path, Tables
from bncli.engine.prediction.contributions import value_names
from bncli.engine.prediction.verification import with_self_test
from bncli.engine.structures.structure import Family, Grouping, Regions
from bncli.errors import ModelError

OTHER = "other"


class RareValue(NamedTuple):
    """A level, interval, missing value or label whose training weight `rows` is below the minimum.

    where: the parts of the file that show it.
    """

    attribute: str
    value: str
    rows: float
    where: tuple[str, ...]


class CellsOfTable(NamedTuple):
    """The numbers of cells of a table.

    cells: all cells. below: cells that are certainly below the minimum. unknown: cells that may or may not be below it.
    """

    attributes: tuple[str, ...]
    cells: int
    below: int
    unknown: int


@dataclass(frozen=True)
class Disclosure:
    """The information that a model file discloses about groups of fewer than `min_rows` training rows.

    held_out: the number of held-out rows whose individual probabilities the file stores, for thresholds and prediction
    sets.
    """

    min_rows: int
    values: tuple[RareValue, ...]
    tables: tuple[CellsOfTable, ...]
    held_out: int


def find_disclosure(model: Model, min_rows: int) -> Disclosure:
    """Return the information that a model file discloses about groups of fewer than `min_rows` training rows."""
    schema = model.schema
    used = model.attributes
    values = [
        RareValue(schema.class_name, label, n, ("frequencies",))
        for label, n in zip(schema.labels, schema.label_frequencies, strict=bool(schema.label_frequencies))
        if n < min_rows
    ]
    for i, attribute in enumerate(schema.attributes):
        where = ("frequencies", "tables", "explanations") if i in used else ("frequencies",)
        frequencies = zip(value_names(attribute), attribute.frequencies, strict=False)
        values += [RareValue(attribute.name, value, n, where) for value, n in frequencies if n < min_rows]
        if 0 < attribute.missing_weight < min_rows:
            values.append(RareValue(attribute.name, "missing", attribute.missing_weight, ("frequencies",)))
    parts = (
        [model.predictor]
        if isinstance(model.predictor, (Tables, Path))
        else [component.tables for component in model.predictor.components]
    )
    families = dict.fromkeys(family for part in parts for family in part.families)
    tables = tuple(_cells(family, schema, min_rows) for family in families)
    held_out = None if model.rule is None else model.rule.held_out
    n_held_out = 0 if held_out is None else sum(map(len, held_out.probabilities))
    return Disclosure(min_rows, tuple(values), tables, n_held_out)


def _cells(family: Family, schema: Schema, min_rows: int) -> CellsOfTable:
    sums, least, totals = np.zeros(family.shape), np.full(family.shape, np.inf), []
    for axis, (a, grouping) in enumerate(family.binned_attributes):
        weights = np.array(schema.attributes[a].frequencies)
        if grouping is not None:
            weights = np.bincount(grouping, weights)
        totals.append(float(weights.sum()) + schema.attributes[a].missing_weight)
        # the attribute's weights along its own axis
        along = weights.reshape([-1 if i == axis else 1 for i in range(len(family.shape))])
        sums, least = sums + along, np.minimum(least, along)
    # N is the largest total: if a missing level was removed, the total of the attribute lacks the rows of this level
    at_least = np.maximum(sums - (len(family.shape) - 1) * max(totals), 0.0)
    names = tuple(schema.attributes[a].name for a in family.attributes)
    below = int((least < min_rows).sum())
    return CellsOfTable(names, family.n_cells, below, family.n_cells - below - int((at_least >= min_rows).sum()))


class PooledValues(NamedTuple):
    """Values of an attribute that were pooled into the value `into`, or a removed missing level (`into` is None)."""

    attribute: str
    values: tuple[str, ...]
    into: str | None


def pool_rare_values(model: Model, min_rows: int) -> tuple[Model, tuple[PooledValues, ...]]:
    """Pool the values with fewer than `min_rows` training rows; return the new model and the pooled values.

    Raises ModelError for an average over regions, whose tables cannot be averaged one by one, and for a label with
    fewer than `min_rows` rows.
    """
    schema = model.schema
    for label, n in zip(schema.labels, schema.label_frequencies, strict=bool(schema.label_frequencies)):
        if n < min_rows:
            what = f"the label {label!r} has only {n:g} training rows, and labels cannot be pooled"
            raise ModelError(what, hint="fit again without rows of this label, or lower --min-rows")
    if isinstance(model.predictor, Path):
        raise ModelError(
            "an average over regions cannot be pooled", hint="learn with --param kmap, or leave --min-rows out"
        )
    # decided once per attribute, from its frequencies, for all tables
    groupings = [_pooled_codes(attribute, min_rows) for attribute in schema.attributes]
    attributes, pooled = [], list[PooledValues]()
    for attribute, grouping in zip(schema.attributes, groupings, strict=True):
        joined = attribute if grouping is None else _join_codes(attribute, grouping)
        missing_weight = joined.missing_weight if joined.missing_weight >= min_rows else 0.0
        attributes.append(replace(joined, missing_weight=missing_weight))
        names, new_names = value_names(attribute), value_names(joined)
        for code in sorted(set(grouping or ())):
            # the values that share a new code; -1 is the missing level that is removed
            members = tuple(name for name, own in zip(names, grouping or (), strict=False) if own == code)
            if code < 0 or len(members) > 1:
                pooled.append(PooledValues(attribute.name, members, None if code < 0 else new_names[code]))
    new_schema = replace(schema, attributes=tuple(attributes))
    is_network = model.recipe.param in MARGINALIZED and isinstance(model.predictor, Tables)

    def pool(tables: Tables) -> Tables:
        pairs = [
            _pool_table(family, weights, schema, new_schema, groupings, is_network)
            for family, weights in zip(tables.families, tables.weights, strict=True)
        ]
        return Tables(tables.bias, tuple(family for family, _ in pairs), tuple(weights for _, weights in pairs))

    predictor: Tables | Ensemble
    if isinstance(model.predictor, Ensemble):
        components = tuple(c._replace(tables=pool(c.tables)) for c in model.predictor.components)
        predictor = replace(model.predictor, components=components)
    else:
        predictor = pool(model.predictor)
    structure = model.structure
    if isinstance(structure, Regions):
        structure = replace(structure, bins=(), groupings=(), binnings=())
    rule = None if model.rule is None else replace(model.rule, sets=None, held_out=None)
    changed = replace(
        model,
        schema=new_schema,
        structure=structure,
        predictor=predictor,
        rule=rule,
        log_p=None,
        plain_frequencies=None,
        self_test=None,
        uncertainty=None,
    )
    return with_self_test(changed), tuple(pooled)


def _pooled_codes(attribute: Attribute, min_rows: int) -> Grouping | None:
    """Return for every code its new code, or -1 for a missing level that is removed; None if nothing is pooled."""
    weights = list(attribute.frequencies[: attribute.n_values])
    if isinstance(attribute, NumericAttribute):
        groups = [[code] for code in range(len(weights))]
        while len(groups) > 1 and min(weights) < min_rows:
            g = weights.index(min(weights))
            sides = [n for n in (g - 1, g + 1) if 0 <= n < len(groups)]
            # the lighter neighbour; equal ones: the lower
            left = min(g, min(sides, key=lambda n: weights[n]))
            groups[left : left + 2] = [groups[left] + groups[left + 1]]
            weights[left : left + 2] = [weights[left] + weights[left + 1]]
    else:
        order = sorted(range(len(weights)), key=lambda code: weights[code])
        n_rare = sum(w < min_rows for w in weights)
        while 0 < n_rare < len(order) and sum(weights[code] for code in order[:n_rare]) < min_rows:
            n_rare += 1
        rare = sorted(order[:n_rare])
        groups = [[code] for code in range(len(weights)) if code not in rare] + ([rare] if rare else [])
    new_code = {code: g for g, group in enumerate(groups) for code in group}
    grouping = [new_code[code] for code in range(attribute.n_values)]
    if attribute.missing:
        grouping.append(len(groups) if attribute.frequencies[-1] >= min_rows else -1)
    return None if grouping == list(range(attribute.cardinality)) else tuple(grouping)


def _join_codes(attribute: Attribute, grouping: Grouping) -> Attribute:
    """Return the attribute with the codes of each group joined; a missing level in group -1 is removed."""
    n_codes = max(grouping) + 1
    frequencies = np.zeros(n_codes)
    for code, n in zip(grouping, attribute.frequencies, strict=True):
        if code >= 0:
            frequencies[code] += n
    missing = attribute.missing and grouping[-1] >= 0
    attribute = replace(attribute, frequencies=tuple(frequencies.tolist()), missing=missing)
    # without the missing level
    values = grouping[: attribute.n_values]
    if list(values) == list(range(attribute.n_values)):
        return attribute
    if isinstance(attribute, NumericAttribute):
        # cut i lies between the intervals i and i + 1; it stays if these are in different groups
        cuts = tuple(cut for i, cut in enumerate(attribute.cuts) if values[i] != values[i + 1])
        return replace(attribute, cuts=cuts)
    old_groups = attribute.groups or tuple((level,) for level in attribute.levels)
    members: list[list[int]] = [[] for _ in range(n_codes - missing)]
    for code, new in enumerate(values):
        members[new].append(code)
    levels, groups = [], []
    for codes in members:
        groups.append(tuple(value for code in codes for value in old_groups[code]))
        name = attribute.levels[codes[0]]
        if len(codes) > 1:
            name = OTHER
            while name in attribute.code_of:
                name += "_"
        levels.append(name)
    return replace(attribute, levels=tuple(levels), groups=tuple(groups))


def _pool_table(
    family: Family,
    weights: Array,
    schema: Schema,
    new_schema: Schema,
    groupings: Sequence[Grouping | None],
    is_network: bool,
) -> tuple[Family, Array]:
    """Pool a table; return the family over the pooled codes, without coarser binnings, and the new table (cells, K)."""
    tensor = weights.reshape(*family.shape, -1)
    for axis, (a, binning) in enumerate(family.binned_attributes):
        if binning is not None:
            tensor = tensor.take(binning, axis=axis)
        grouping = groupings[a]
        if grouping is None:
            continue
        old = np.array(schema.attributes[a].frequencies)
        slices = []
        for code in range(max(grouping) + 1):
            members = [c for c, new in enumerate(grouping) if new == code]
            shares = (
                old[members] / old[members].sum() if old[members].sum() > 0 else np.full(len(members), 1 / len(members))
            )
            part = tensor.take(members, axis=axis)
            if is_network:
                is_child = axis == 0 and family.child is not None
                along = np.log(np.maximum(shares, 1e-300)).reshape([-1 if i == axis else 1 for i in range(tensor.ndim)])
                # probabilities of the child's joined values add up; given a parent's joined values they are averaged
                slices.append(np.logaddexp.reduce(part if is_child else part + along, axis=axis))
            else:
                slices.append(np.tensordot(part, shares, axes=(axis, 0)))
        tensor = np.stack(slices, axis=axis)
        if is_network and axis == 0 and family.child is not None and -1 in grouping:
            # the probability of the removed value is distributed over the others
            tensor = tensor - np.logaddexp.reduce(tensor, axis=axis, keepdims=True)
    pooled = Family.over(family.attributes, new_schema.cardinalities, family.child, family.by_class)
    return pooled, np.ascontiguousarray(tensor.reshape(math.prod(pooled.shape), -1))
