"""Groups of rows by the values of table columns (`--by`).

The groups of a numeric column are the model's intervals. They are its quartiles instead, with a note, if the model has
no cuts for the column, more than MOST_INTERVALS intervals, or no such numeric attribute. Under cross-validation, where
each fold has its own cuts, the intervals are learned from all rows. A categorical column has one group per level, in
the order of the column's levels, and a group of unseen values. A column of a `.codes` file keeps its own intervals or
levels. Missing values are a group. The column may be one that learning ignores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bncli.engine.data.columns import MISSING, UNSEEN, CategoricalColumn, CodedColumn, Columns, NumericColumn
from bncli.engine.data.dataset import encode_column
from bncli.engine.data.schema import Attribute, Cuts, NumericAttribute
from bncli.engine.discretizers.equal_frequency import cut_points
from bncli.engine.evaluation.groups import GroupColumn, compare_groups, measure_groups
from bncli.engine.prediction.contributions import value_names
from bncli.engine.training_data import learn_cuts
from bncli.errors import BncliError, UsageError
from bncli.files.reading.column_roles import is_codes_table, missing_column, read_schema_file, split_names
from bncli.files.reading.source import Source
from bncli.files.reading.table import read_column_names
from bncli.recipe import Recipe
from bncli.steps.evaluate.report import EvaluateReport, GroupsReport
from bncli.watch import Note, Run, Watch

MOST_INTERVALS = 12
MOST_GROUPS = 1000
QUARTERS = 4
_MOST_NAMED = 5


def carry_group_columns(source: Source, by: Sequence[str]) -> Source:
    """Return the source, changed so that the columns that define groups are also read.

    Each string in `by` names one column, or several separated by commas. Raises UsageError for a column that is known
    not to exist, that is the class, or that holds the row weights.
    """
    if not by:
        return source
    known = () if "-" in source.paths or is_codes_table(source.paths) else read_column_names(source)
    names = tuple(dict.fromkeys(name for text in by for name in ([text] if text in known else text.split(","))))
    for name in names:
        if known and name not in known and not any(name.startswith(f"{column}.") for column in known):
            raise missing_column(name, known, source.paths[0])
        if name == source.class_name:
            raise _class_error(name)
        if name == source.weights:
            raise UsageError(f"--by {name}: that column contains the row weights", hint="choose another column")
    return replace(source, carried=names)


def _class_error(name: str) -> UsageError:
    return UsageError(f"--by {name}: that is the class", hint="figures for each label are always printed")


def without_group_columns(columns: Columns, source: Source) -> Columns:
    """Return the table without the columns that were read only for groups; raise BncliError if none is left."""
    if not source.carried or is_codes_table(source.paths):
        return columns
    ignored = {*split_names(source.ignore, source.carried), *read_schema_file(source).ignore}
    if source.use:
        ignored |= {*source.carried}.difference(split_names(source.use, source.carried))
    ignored &= {*source.carried}
    attributes = {name: column for name, column in columns.attributes.items() if name not in ignored}
    if not attributes:
        raise BncliError("all columns are ignored, so there are no attributes to learn from", where=source.paths[0])
    return replace(columns, attributes=attributes)


def recipe_attributes(columns: Columns, recipe: Recipe, cuts: Cuts | None, run: Run) -> Sequence[Attribute]:
    """Return the attributes of the supplied cuts; without them, learn cuts of the numeric attributes from all rows."""
    if cuts is not None:
        return cuts.attributes
    numeric = {name: column for name, column in columns.attributes.items() if isinstance(column, NumericColumn)}
    if not numeric:
        return ()
    return learn_cuts(replace(columns, attributes=numeric, origin=None), recipe, Run(run.threads)).attributes


def group_columns(columns: Columns, source: Source, attributes: Sequence[Attribute], watch: Watch) -> list[GroupColumn]:
    """Return the groups of every column in `source.carried`.

    A numeric column has the intervals of the attribute with its name if that attribute has at least one cut and fewer
    than MOST_INTERVALS cuts. Otherwise it has its quartiles, with a note. Raises UsageError for the class, and
    BncliError for a column that was not read as a single column or has more than MOST_GROUPS values.
    """
    by_name = {attribute.name: attribute for attribute in attributes}
    return [_group_column(columns, name, by_name.get(name), source.paths[0], watch) for name in source.carried]


def _group_column(columns: Columns, name: str, known: Attribute | None, where: str, watch: Watch) -> GroupColumn:
    if name == columns.class_name:
        raise _class_error(name)
    if name not in columns.attributes:
        what = f"column {name!r} was not read as a single column of values, so it defines no groups"
        hint = "for a date, give a part such as day.month; for an identifier, add --categorical"
        raise BncliError(what, where=where, hint=hint)
    column = columns.attributes[name]
    if isinstance(column, CategoricalColumn):
        _refuse_many(name, len(np.unique(column.codes)), where)
        codes, n = column.codes.astype(np.int64), len(column.levels)
        codes[column.codes == UNSEEN] = n
        codes[column.codes == MISSING] = n + 1
        return GroupColumn(name, (*column.levels, "unseen", None), codes)
    if isinstance(column, CodedColumn):
        attribute = column.attribute
    elif isinstance(known, NumericAttribute) and 0 < len(known.cuts) < MOST_INTERVALS:
        attribute = known
    else:
        is_known = (
            ~np.isnan(column.values) if column.values.dtype.kind == "f" else np.ones(len(column.values), np.bool_)
        )
        labels = np.zeros(int(is_known.sum()), np.uint8)
        weights = None if columns.weights is None else columns.weights[is_known]
        cuts = cut_points(column.values[is_known], labels, 1, weights, bins=QUARTERS)
        attribute = NumericAttribute(name, False, (), cuts=cuts)
        why = "it is not a numeric attribute of the model"
        if isinstance(known, NumericAttribute):
            why = (
                f"the model has {len(known.cuts) + 1:,} intervals for it"
                if known.cuts
                else "the model does not cut the column"
            )
        watch(Note(f"the groups of {name} are its quartiles, because {why}"))
    # the groups are the intervals (or the levels of a coded column), then missing values
    attribute = replace(attribute, missing=False)
    _refuse_many(name, attribute.n_values, where)
    names = value_names(attribute)[: attribute.n_values]
    return GroupColumn(name, (*names, None), encode_column(column, attribute).codes)


def _refuse_many(name: str, n: int, where: str) -> None:
    if n > MOST_GROUPS:
        what = f"column {name!r} has {n:,} values, too many to report a group for each"
        raise BncliError(what, where=where, hint=f"choose a column with at most {MOST_GROUPS:,} values")


def with_groups(report: EvaluateReport, columns: Sequence[GroupColumn], watch: Watch) -> EvaluateReport:
    """Return the report with the metrics of the groups of every column.

    Notes report columns without values and, with two labels, groups whose AUC is undefined.
    """
    if not columns:
        return report
    decided, units = report.decisions.rows, report.units
    shared = report.intervals.overlap_variance
    groups = [measure_groups(column, report.labels, *report.predictions, decided, units, shared) for column in columns]
    for column, own in zip(columns, groups, strict=True):
        if [group.value for group in own] == [None]:
            watch(Note(f"the column {column.name!r} is missing in every row, so there is only one group"))
        alone = ["missing" if group.value is None else group.value for group in own if group.metrics["auc"] is None]
        if alone and len(report.labels) == 2:
            names = ", ".join(alone[:_MOST_NAMED]) + ", ..." * (len(alone) > _MOST_NAMED)
            watch(Note(f"the AUC is undefined for {column.name} = {names}: all rows of the group have the same label"))
    fairness = tuple(entry for own in groups for entry in compare_groups(own))
    return replace(report, groups=GroupsReport(tuple(group for own in groups for group in own), fairness))
