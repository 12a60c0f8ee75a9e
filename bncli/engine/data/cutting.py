"""Learn a schema from raw columns, and encode the columns with it: the first step of learning.

Only training rows are used. A numeric column is cut by the chosen discretizer. A categorical column keeps the levels
that occur with positive weight, in their order, pooled if there are too many. An attribute has a missing level if these
rows have a missing value, unless missing values are marginalized; then their weight is kept separately. The class keeps
every label it was read with, so that the folds of one table agree on the classes. Frequencies are counted on the codes
of the rows, and the data set consists of the same codes, so a column is encoded once.

Pooling: a table over an attribute of hundreds of levels has more cells than there are rows, and it fits noise. The
levels of such an attribute are pooled, except where the rows show that their class proportions differ
(`bncli.engine.kernels.value_grouping`). If they show no difference, one level is left, and the attribute is not
informative unless it has a missing level. With the rule `auto`, an attribute is pooled if it has more than FEW levels
and more than the square root of the training weight, because a table of two such attributes would have more cells than
there are rows. With an integer as the rule, an attribute is pooled if it has more levels than that, and at most that
many are left.

With `shrinks` (interactions and `--structure auto`), the rule `auto` pools only levels of weight below LEAST_ROWS, and
those beyond the MOST_KEPT most frequent. The effects of the others are shrunk by their penalty
(`bncli.engine.parameters.level_effects`), which lowers the log-loss by 1 to 2 % on tables whose attributes have 30 to
1,000 levels (`tests/published/levels.md`). If the class proportions do not vary between levels beyond chance, one level
is left here, too.

Missing values stay a separate level. After pooling, the levels are ordered by the first value of each, but with
`shrinks` those that were pooled come last. A level of several values is named after its most frequent ones; such a name
is never a value and is never used twice.

Conventions: with supplied cuts the attributes are those of the cuts, in their order, and their cuts and levels are used
as they are. Other columns are left out. A level that occurs in the rows but not in the cuts is an error. An attribute
that has a missing level in the cuts keeps it even if no value of these rows is missing. Columns are encoded by several
threads; the result does not depend on their number. Cost: one run of the discretizer per column.

Monotonicity constraints: as a numeric attribute increases, the log-odds of a label never decrease, or never increase.

The direction of a constraint is stored with the attribute in the schema, and the label in the schema itself, so that
every learner finds both there. With two labels, the label is the second one unless another is named.
"""

from __future__ import annotations

import importlib
import itertools
import shlex
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bncli.catalogue import DISCRETIZERS
from bncli.engine.data.columns import (
    ROWS_AT_A_TIME,
    CategoricalColumn,
    ChunkedColumn,
    CodedColumn,
    Columns,
    ColumnsJoinedOnDemand,
    KnownCuts,
    NumericColumn,
    is_constant,
    unknown_label_error,
)
from bncli.engine.data.dataset import Dataset, code_dtype, encode_column
from bncli.engine.data.schema import (
    Attribute,
    CategoricalAttribute,
    Cuts,
    MissingPolicy,
    NumericAttribute,
    ReadingRules,
    Schema,
)
from bncli.engine.kernels.arrays import Array, Codes, Integers
from bncli.engine.kernels.binning import round_cuts, whole_units
from bncli.engine.kernels.information import evidence_of_effects
from bncli.engine.kernels.value_grouping import group_values
from bncli.errors import BncliError, UsageError
from bncli.watch import Note, Progress, Run

PoolingRule = int | str | None
"""`auto`, `off` (or None), or the maximum number of levels that an attribute may have without being pooled."""
CutPoints = Callable[..., tuple[float, ...]]
"""A discretizer, as `bncli.engine.discretizers` describes it."""
FEW = 20
"""With the rule `auto`, attributes of at most this many levels are not pooled."""
LEAST_ROWS, MOST_KEPT = 2.0, 1_000
"""With `shrinks`, the MOST_KEPT most frequent levels are not pooled, except those of weight below LEAST_ROWS."""
LEAST_EVIDENCE = 2.0
"""With `shrinks`, all levels are pooled if varying effects raise the log-likelihood by fewer nats than this."""
MOST_NAMED_WHOLE, NAMED, LONGEST_VALUE = 3, 2, 24
"""A pooled level of at most MOST_NAMED_WHOLE values is named after all of them, a larger one after NAMED of them.

Values of more than LONGEST_VALUE characters are shortened to this length in the name.
"""
MOST_LISTED = 8
"""The maximum number of attributes that a note lists."""
ROWS_PER_THREAD = 1 << 12
"""Columns of fewer rows are cut in the calling thread: handing them to others costs more."""
COLUMNS_AT_A_TIME = 1 << 12


def learn_dataset(
    columns: Columns,
    *,
    discretize: str | CutPoints = "mdl",
    group_levels: PoolingRule = "off",
    shrinks: bool = False,
    few_digits: bool = False,
    cuts: Cuts | None = None,
    missing_policy: MissingPolicy = "level",
    reading: ReadingRules = ReadingRules(),
    run: Run = Run(),
    **options: Any,
) -> Dataset:
    """Learn a schema from labelled training rows, and return the rows encoded with it.

    - discretize, options: the name or the function of the discretizer, which makes the cuts unless `cuts` are supplied,
      and its options; None as the value of an option means its default
    - shrinks: whether the learner shrinks the effects of many levels
    - few_digits: whether cuts are rounded to few digits, such that each still separates the same rows

    Raises BncliError for rows without a class, and if the cuts do not fit the columns.
    """
    if columns.label is None or (columns.label.codes < 0).any():
        raise BncliError(f"the class {columns.class_name!r} is missing in some rows")
    levels = columns.label.levels
    labels = columns.label.codes.astype(code_dtype(len(levels)), copy=False)
    module, cut_points = None, discretize if callable(discretize) else None
    # with supplied cuts nothing is cut, and the recipe may name no discretizer
    if cut_points is None and cuts is None:
        module = importlib.import_module(DISCRETIZERS.module_of(str(discretize)))
        cut_points = module.cut_points
    zeros, known = np.broadcast_to(np.zeros(1, np.uint8), columns.n_rows), columns.known_cuts
    encoder = _ColumnEncoder(
        columns,
        labels,
        cut_points and partial(cut_points, **{key: value for key, value in options.items() if value is not None}),
        group_levels,
        shrinks and group_levels == "auto",
        few_digits,
        whole_units(columns.weights),
        None if cuts is None else {attribute.name: attribute for attribute in cuts.attributes},
        frozenset() if cuts is not None else _surely_uncut(columns, labels, module),
        zeros,
        (float(ChunkedColumn((zeros,)).count(1, columns.weights)[0]),),
        missing_policy,
        known if known is not None and known.discretizer == discretize and not any(options.values()) else None,
    )
    names = list(columns.attributes if encoder.supplied is None else encoder.supplied)
    n_threads = run.threads if columns.n_rows >= ROWS_PER_THREAD else 1
    attributes, codes_of_rows = list[Attribute](), list[Codes | ChunkedColumn]()
    with ThreadPoolExecutor(n_threads) if n_threads > 1 else nullcontext() as pool:
        encoded = (map if pool is None else pool.map)(encoder.encode, names)
        for name, (attribute, own) in zip(names, encoded, strict=True):
            attributes.append(attribute)
            codes_of_rows.append(own)
            run.watch(Progress(len(attributes), len(names), name))
    for sentence in pooling_notes(attributes, len(labels)) if cuts is None else ():
        run.watch(Note(sentence))
    tokens = reading.missing_tokens if columns.origin is None else columns.origin.missing_tokens
    # labels without rows have the frequency 0
    frequencies = tuple(ChunkedColumn((labels,)).count(len(levels), columns.weights).tolist())
    schema = Schema(
        columns.class_name,
        levels,
        tuple(attributes),
        tokens,
        reading.unseen,
        missing_policy,
        label_frequencies=frequencies,
    )
    codes: tuple[Codes, ...] | ColumnsJoinedOnDemand
    if any(isinstance(own, ChunkedColumn) for own in codes_of_rows):
        codes = ColumnsJoinedOnDemand(
            [own if isinstance(own, ChunkedColumn) else ChunkedColumn((own,)) for own in codes_of_rows]
        )
    else:
        codes = tuple(codes_of_rows)  # type: ignore[arg-type]
    return Dataset(schema, codes, labels, columns.weights, run.threads, columns.split_by)


@dataclass(frozen=True)
class _ColumnEncoder:
    """An encoder of columns, which learns the attribute of each or takes the supplied one.

    - cut_points: the discretizer with its options; not used, and possibly None, if attributes are supplied
    - units: the weights of the rows as integer multiples of a unit, and the unit (`whole_units`)
    - supplied: the supplied attributes, keyed by name, or None to learn them
    - uncut: numeric columns without missing values that are known to have no cut
    - zeros: the codes (N,) of an uninformative attribute, as a view of a single 0
    - total_weight: the weight of all rows, as the frequencies of an attribute with a single code
    """

    columns: Columns
    labels: Codes
    cut_points: CutPoints | None
    rule: PoolingRule
    shrinks: bool
    few_digits: bool
    units: tuple[NDArray[np.int64] | None, float]
    supplied: Mapping[str, Attribute] | None
    uncut: frozenset[str]
    zeros: Codes
    total_weight: tuple[float]
    missing_policy: MissingPolicy
    known_cuts: KnownCuts | None = None

    def encode(self, name: str) -> tuple[Attribute, Codes | ChunkedColumn]:
        """Return the attribute with its frequencies, and its code in every row, (N,); all 0 if it is uninformative."""
        weights, column = self.columns.weights, self.columns.attributes.get(name)
        if name in self.uncut:
            # one interval that holds all rows
            attribute: Attribute = NumericAttribute(name, False, self.total_weight, (), column.form)  # type: ignore[union-attr]
            return attribute, self.zeros
        if self.supplied is None and is_constant(column) and self.total_weight[0] > 0:
            return CategoricalAttribute(name, False, self.total_weight, column.levels), self.zeros
        attribute = self._learn(name) if self.supplied is None else self._adopt(name)
        codes: Codes | ChunkedColumn | None = None
        if isinstance(column, CodedColumn):
            n, sums = attribute.n_values, column.codes.count(attribute.n_values + 1, weights)
            missing = attribute.missing or bool(sums[n] > 0)
            attribute = replace(attribute, missing=missing, frequencies=tuple(sums[: n + missing].tolist()))
            codes = column.codes
        elif isinstance(attribute, NumericAttribute):
            assert isinstance(column, NumericColumn)
            if not (attribute.cuts or attribute.missing or _has_missing(column)):
                return replace(attribute, frequencies=self.total_weight), self.zeros
            codes = encode_column(column, attribute).codes
            missing, frequencies = _frequencies(codes, attribute.n_values, weights, level=attribute.missing)
            attribute = replace(attribute, missing=missing, frequencies=frequencies)
        if self.missing_policy == "marginalize":
            observed, lost = attribute.frequencies[: attribute.n_values], attribute.frequencies[attribute.n_values :]
            attribute = replace(attribute, missing=False, frequencies=observed, missing_weight=sum(lost))
        if codes is None:
            assert column is not None
            codes = encode_column(column, attribute).codes
        return attribute, codes if attribute.informative else self.zeros

    def _learn(self, name: str) -> Attribute:
        """Learn the attribute of a column; its frequencies are counted here only if it is categorical and not coded."""
        column, weights = self.columns.attributes[name], self.columns.weights
        if isinstance(column, CodedColumn):
            return column.attribute
        if isinstance(column, CategoricalColumn):
            levels = _occurring_levels(name, column, weights)
            if not needs_pooling(levels, self.rule):
                return levels
            assert self.columns.label is not None
            most = self.rule if isinstance(self.rule, int) else None
            n_labels = len(self.columns.label.levels)
            pooled = _pool_levels(levels, column, self.labels, n_labels, self.units, most, shrinks=self.shrinks)
            return _with_frequencies(pooled, levels)
        if not self.few_digits and self.known_cuts is not None:
            known = self.known_cuts.of(self.columns, name)
            if known is not None:
                return NumericAttribute(name, False, (), known, column.form)
        # the rows that have a value and a weight
        values, labels = column.values, self.labels
        usable = ~np.isnan(values) if values.dtype.kind == "f" else np.ones(len(values), np.bool_)
        if weights is not None:
            usable &= weights > 0
        if not usable.all():
            rows = np.flatnonzero(usable)
            values, labels, weights = values[rows], labels[rows], None if weights is None else weights[rows]
        assert self.columns.label is not None
        assert self.cut_points is not None
        cuts = self.cut_points(values, labels, len(self.columns.label.levels), weights)
        return NumericAttribute(name, False, (), round_cuts(cuts, values) if self.few_digits else cuts, column.form)

    def _adopt(self, name: str) -> Attribute:
        """Return the supplied attribute, with frequencies if its column is categorical and not coded.

        Raises BncliError if the column is missing or does not fit.
        """
        assert self.supplied is not None
        attribute, column = self.supplied[name], self.columns.attributes.get(name)
        if column is None:
            raise BncliError(f"the cuts contain the attribute {name!r}, which is not a column of the table")
        if isinstance(column, CodedColumn):
            if column.attribute != attribute:
                raise BncliError(f"the codes of column {name!r} do not match the cuts")
            return attribute
        if isinstance(attribute, NumericAttribute) and isinstance(column, NumericColumn):
            return attribute
        if isinstance(attribute, CategoricalAttribute) and isinstance(column, CategoricalColumn):
            occurring = _occurring_levels(name, column, self.columns.weights)
            for level in occurring.levels:
                if level not in attribute.code_of:
                    raise BncliError(f"column {name!r} has the value {level!r}, which is not a level of the cuts")
            return _with_frequencies(attribute, occurring)
        kind = "numeric" if isinstance(column, NumericColumn) else "categorical"
        raise BncliError(f"column {name!r} is {kind} in the table but not in the cuts")


def _surely_uncut(columns: Columns, labels: Codes, module: Any) -> frozenset[str]:
    """Return the numeric columns without missing values in which the discretizer's function `uncut` rules out any cut.

    The result is empty if the discretizer has no such function, if rows are weighted, or if there are more rows than
    the discretizer's FEW_ROWS.
    """
    if not hasattr(module, "uncut") or columns.weights is not None or columns.label is None:
        return frozenset()
    if columns.n_rows > module.FEW_ROWS:
        return frozenset()
    complete = [
        (name, column.values)
        for name, column in columns.attributes.items()
        if isinstance(column, NumericColumn) and not _has_missing(column)
    ]
    uncut: list[str] = []
    for first in range(0, len(complete), COLUMNS_AT_A_TIME):
        names, values = zip(*complete[first : first + COLUMNS_AT_A_TIME], strict=True)
        stacked = np.stack([np.asarray(column, np.float64) for column in values])
        uncut += itertools.compress(names, module.uncut(stacked, labels, len(columns.label.levels)))
    return frozenset(uncut)


def _has_missing(column: NumericColumn) -> bool:
    return column.values.dtype.kind == "f" and bool(np.isnan(column.values).any())


def _occurring_levels(name: str, column: CategoricalColumn, weights: Array | None) -> CategoricalAttribute:
    """Return an attribute with the levels that occur with positive weight, in their order, and their frequencies."""
    n = len(column.levels)
    if weights is None:
        counts = np.zeros(n + 2, np.int64)  # of UNSEEN, MISSING and the levels
        for first in range(0, len(column.codes), ROWS_AT_A_TIME):
            own = column.codes[first : first + ROWS_AT_A_TIME].astype(np.intp)
            own += 2
            counts += np.bincount(own, minlength=n + 2)
        missing = bool(counts[:2].any())
        frequencies = tuple(np.append(counts[2:], counts[:2].sum()).astype(np.float64).tolist())[: n + missing]
    else:
        codes = column.codes.astype(np.intp)  # the type of the codes may be too narrow for n itself
        codes[codes < 0] = n
        missing, frequencies = _frequencies(codes, n, weights)
    present = [code for code in range(n) if frequencies[code] > 0]
    weight = tuple(frequencies[code] for code in present) + frequencies[n:]
    return CategoricalAttribute(name, missing, weight, tuple(column.levels[code] for code in present))


def _frequencies(
    codes: Integers, n: int, weights: Array | None, *, level: bool = False
) -> tuple[bool, tuple[float, ...]]:
    """Return whether missing values (code n) are a level, and the weight of each code, including n if they are.

    codes, weights: (N,), where the weights may be None; codes are at most n. Missing values are a level if their rows
    have weight, or if `level` is True.
    """
    # (n + 1,): one more than the values, for missing ones
    sums = ChunkedColumn((codes,)).count(n + 1, weights)  # type: ignore[arg-type]
    # rows of weight 0 do not make a level
    missing = level or bool(sums[n] > 0)
    return missing, tuple(sums[: n + missing].tolist())


def _with_frequencies(attribute: CategoricalAttribute, occurring: CategoricalAttribute) -> CategoricalAttribute:
    """Return the attribute with frequencies summed from `occurring`, whose levels are its levels or pooled values."""
    missing = occurring.missing or attribute.missing
    counted = np.zeros(attribute.n_values + missing)
    for level, weight in zip(occurring.levels, occurring.frequencies, strict=False):
        counted[attribute.code_of[level]] += weight
    if occurring.missing:
        # the missing level is the last code of either
        counted[-1] = occurring.frequencies[-1]
    return replace(attribute, missing=missing, frequencies=tuple(counted.tolist()))


def needs_pooling(attribute: CategoricalAttribute, rule: PoolingRule) -> bool:
    """Return whether the rule pools the levels of an attribute, given its levels and frequencies in training rows."""
    if rule in (None, "off"):
        return False
    return attribute.n_values > rule if isinstance(rule, int) else has_many_levels(attribute)


def has_many_levels(attribute: Attribute) -> bool:
    """Return whether an attribute is categorical, with more than FEW levels, and more than sqrt(its total weight)."""
    n = attribute.n_values
    return isinstance(attribute, CategoricalAttribute) and n > FEW and n * n > sum(attribute.frequencies)


def _pool_levels(
    attribute: CategoricalAttribute,
    column: CategoricalColumn,
    labels: Codes,
    n_labels: int,
    units: tuple[NDArray[np.int64] | None, float],
    most: int | None,
    *,
    shrinks: bool,
) -> CategoricalAttribute:
    """Pool the levels of an attribute; return it without frequencies, or unchanged if no levels are pooled.

    - labels: the class of every row, (N,)
    - units: the weights of the rows and their unit, as `whole_units` returns them
    - most: the maximum number of levels left, or None; it has no effect if `shrinks`
    - shrinks: whether only rare levels are pooled, or all if the class does not depend on the levels
    """
    weights, unit = units
    position = {level: code for code, level in enumerate(attribute.levels)}
    n = attribute.n_values
    # levels without weight, and the codes of missing and unseen values, fall into a row of their own
    code = np.array([*(position.get(level, n) for level in column.levels), n, n])[column.codes]
    cells = np.bincount(code * n_labels + labels, weights, (n + 1) * n_labels)
    counts = np.rint(cells).astype(np.int64).reshape(n + 1, n_labels)[:n]
    if not shrinks:
        groups = group_values(counts, unit, most)
    elif evidence_of_effects(counts * np.float64(unit)) < LEAST_EVIDENCE:
        # the class does not depend on the levels beyond chance
        groups = np.zeros(n, np.intp)
    else:
        # only rare levels share groups: those that are not among the most frequent (equal ones in their order)
        sums = counts.sum(axis=1) * unit
        kept = np.argsort(-sums, kind="stable")[:MOST_KEPT]
        rare = np.setdiff1d(np.arange(n), kept[sums[kept] >= LEAST_ROWS])
        groups = np.arange(n)
        if len(rare):
            # numbers beyond those of single levels, renumbered
            groups[rare] = n + group_values(counts[rare], unit)
        groups = np.unique(groups, return_inverse=True)[1]
    if int(groups.max()) + 1 == n:
        return attribute
    members = [np.flatnonzero(groups == g).tolist() for g in range(int(groups.max()) + 1)]
    values = tuple(tuple(attribute.levels[code] for code in group) for group in members)
    return replace(attribute, frequencies=(), levels=_name_groups(attribute, members), groups=values)


def _name_groups(attribute: CategoricalAttribute, members: Sequence[list[int]]) -> tuple[str, ...]:
    """Return a name for each group of level codes: its only value, or its most frequent values and how many others."""
    taken = set(attribute.levels)
    names = []
    for group in members:
        name = attribute.levels[group[0]]
        if len(group) > 1:
            by_frequency = sorted(group, key=lambda code: (-attribute.frequencies[code], code))
            values = [attribute.levels[code] for code in by_frequency]
            named = values if len(values) <= MOST_NAMED_WHOLE else values[:NAMED]
            parts = [v if len(v) <= LONGEST_VALUE else f"{v[: LONGEST_VALUE - 3]}..." for v in named]
            if len(values) > len(named):
                parts.append(f"{len(values) - len(named)} more")
            joined = name = "|".join(parts)
            number = 1
            while name in taken:
                number += 1
                name = f"{joined} ({number})"
        taken.add(name)
        names.append(name)
    return tuple(names)


def pooling_notes(attributes: Sequence[Attribute], n_rows: int) -> list[str]:
    """Return up to two notes: which levels were pooled, and which attributes were left out because of that."""
    grouped = [a for a in attributes if isinstance(a, CategoricalAttribute) and a.groups]
    n_values = {a.name: sum(map(len, a.groups)) for a in grouped}
    pooled = [
        f"{a.name} {n_values[a.name]} -> {a.n_values} group{'s' * (a.n_values > 1)}" for a in grouped if a.informative
    ]
    idle = [f"'{a.name}' ({n_values[a.name]} values)" for a in grouped if not a.informative]
    sentences = []
    if pooled:
        sentences.append(
            f"levels with similar information about the class were pooled: {_list_few(pooled)} (--group-levels off "
            "keeps them)"
        )
    if idle:
        was, it, shows = ("was", "it", "shows") if len(idle) == 1 else ("were", "they", "show")
        why = f"{was} left out because {it} {shows} no relation to the class in {n_rows:,} rows"
        sentences.append(f"{_list_few(idle)} {why} (--group-levels off keeps {it if it == 'it' else 'them'})")
    return sentences


def _list_few(texts: Sequence[str]) -> str:
    return ", ".join(texts[:MOST_LISTED]) + (
        f" and {len(texts) - MOST_LISTED} more" if len(texts) > MOST_LISTED else ""
    )


def cuts_of(schema: Schema, method: str, options: Mapping[str, Any]) -> Cuts:
    """Return the cuts and levels of a schema, including missing levels, without frequencies."""
    bare = tuple(replace(attribute, frequencies=(), missing_weight=0.0) for attribute in schema.attributes)
    return Cuts(schema.class_name, bare, method, dict(options))


def set_directions(data: Dataset, increasing: Sequence[str], decreasing: Sequence[str], towards: str | None) -> Dataset:
    """Return the data with monotonicity constraints on these attributes in the schema, and the label they refer to.

    The data are returned unchanged if no attribute is named. Otherwise, raises UsageError for a name that is not a
    numeric attribute, for a label that the class does not have, if there are more than two labels and `towards` is
    None, and if there is only one label.
    """
    if not increasing and not decreasing:
        return data
    schema = data.schema
    n = len(schema.labels)
    if towards is not None and towards not in schema.labels:
        raise unknown_label_error(towards, schema.labels, "--towards", schema.class_name)
    flag = "--increasing" if increasing else "--decreasing"
    if n < 2:
        what = f"{flag} needs a class with at least two labels, but {schema.class_name!r} has {n}"
        raise UsageError(what, hint=f"leave {flag} out")
    if n > 2 and towards is None:
        what = f"{flag} refers to one label, but {schema.class_name!r} has {n} labels"
        raise UsageError(
            what, hint=f"choose it, as in --towards {shlex.quote(schema.labels[-1])} (bncli help monotone)"
        )
    attributes = list(schema.attributes)
    for flag, names, direction in (("--increasing", increasing, 1), ("--decreasing", decreasing, -1)):
        for name in names:
            try:
                i = schema.index(name)
            except KeyError:
                if name == schema.class_name:
                    raise UsageError(f"{flag} {name}: this column is the class", hint="name an attribute") from None
                near = get_close_matches(name, [attribute.name for attribute in schema.attributes], 1, 0.5)
                hint = f"did you mean {near[0]!r}?" if near else "name a column that is used as an attribute"
                raise UsageError(f"{flag} {name}: there is no such attribute", hint=hint) from None
            attribute = attributes[i]
            if not isinstance(attribute, NumericAttribute):
                hint = "only numeric columns have directions; add --numeric NAME to read a column as numbers"
                raise UsageError(f"{flag} {name}: this column is categorical", hint=hint)
            attributes[i] = replace(attribute, direction=direction)
    return replace(data, schema=replace(schema, attributes=tuple(attributes), towards=towards))
