"""Figures by group: from columns of a table to groups of its rows.

Numbers are cut as the model cuts them; where it has no cuts for them, or more than MOST_INTERVALS, or does not know the
column, they are cut at their quartiles, which a note tells. Under cross-validation, where each fold cuts anew, the cuts
are those of all rows. A categorical column has a group a level, as they stand in the table; missing values are a group
of their own. A column may be one that is ignored in learning, or that the model does not know.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from bncli.engine.data.columns import MISSING, UNSEEN, CategoricalColumn, CodedColumn, Columns, NumericColumn
from bncli.engine.data.encoding import encode_column
from bncli.engine.data.schema import Attribute, Cuts, NumericAttribute
from bncli.engine.discretizers.equal_frequency import cut_points
from bncli.engine.evaluation.groups import GroupColumn, compare_groups, measure_groups
from bncli.engine.model import Model
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


def carrying(source: Source, asked: Sequence[str]) -> Source:
    """Return the source that reads the columns too that are asked for, each alone or several with commas between.

    UsageError for one that the table lacks, that is the class, or that weighs the rows.
    """
    if not asked:
        return source
    names = () if "-" in source.paths or is_codes_table(source.paths) else read_column_names(source)
    by = tuple(dict.fromkeys(name for text in asked for name in ([text] if text in names else text.split(","))))
    for name in by:
        if names and name not in names and not any(name.startswith(f"{column}.") for column in names):
            raise missing_column(name, names, source.paths[0])
        if name == source.class_name:
            raise _of_the_class(name)
        if name == source.weights:
            raise UsageError(f"--by {name}: that column weighs the rows", hint="name another column")
    return replace(source, carried=by)


def _of_the_class(name: str) -> UsageError:
    return UsageError(f"--by {name}: that is the class", hint="the figures of each label are told anyway")


def without_group_columns(columns: Columns, source: Source) -> Columns:
    """Return the table without the columns that are carried for their groups alone."""
    if not source.carried or is_codes_table(source.paths):
        return columns
    ignored = {*split_names(source.ignore, source.carried), *read_schema_file(source).ignore}
    if source.use:
        ignored |= {*source.carried}.difference(split_names(source.use, source.carried))
    ignored &= {*source.carried}
    kept = {name: column for name, column in columns.attributes.items() if name not in ignored}
    if not kept:
        raise BncliError("there is no column to learn from besides those to be ignored", where=source.paths[0])
    return replace(columns, attributes=kept)


def recipe_cuts(columns: Columns, recipe: Recipe, cuts: Cuts | None, run: Run) -> dict[str, Attribute]:
    """Return the attributes by name with the supplied cuts, or with those of the recipe on all rows."""
    if cuts is not None:
        return {attribute.name: attribute for attribute in cuts.attributes}
    numeric = {name: column for name, column in columns.attributes.items() if isinstance(column, NumericColumn)}
    if not numeric:
        return {}
    found = learn_cuts(replace(columns, attributes=numeric, origin=None), recipe, Run(run.threads))
    return {attribute.name: attribute for attribute in found.attributes}


def attributes_of(model: Model) -> dict[str, Attribute]:
    """Return those of a model by name."""
    return {attribute.name: attribute for attribute in model.schema.attributes}


def group_columns(
    columns: Columns, source: Source, known: Callable[[], dict[str, Attribute]], watch: Watch
) -> list[GroupColumn]:
    """Return the groups of every column carried, numbers by the cuts of those attributes that are `known`."""
    attributes = known() if source.carried else {}
    return [_grouped(columns, name, attributes.get(name), source.paths[0], watch) for name in source.carried]


def _grouped(columns: Columns, name: str, known: Attribute | None, where: str, watch: Watch) -> GroupColumn:
    if name == columns.class_name:
        raise _of_the_class(name)
    if name not in columns.attributes:
        what = f"column {name!r} was not read as one column of values, so it makes no groups"
        hint = "of a date name a part, as in day.month; of an identifier every row is another; see --categorical"
        raise BncliError(what, where=where, hint=hint)
    column = columns.attributes[name]
    if isinstance(column, CategoricalColumn):
        return _by_level(name, column, where)
    attribute = column.attribute if isinstance(column, CodedColumn) else known
    if not isinstance(column, CodedColumn) and (
        not isinstance(attribute, NumericAttribute) or not 0 < len(attribute.cuts) < MOST_INTERVALS
    ):
        there = ~np.isnan(column.values) if column.values.dtype.kind == "f" else np.ones(len(column.values), np.bool_)
        labels = np.zeros(int(there.sum()), np.uint8)
        own = None if columns.weights is None else columns.weights[there]
        attribute = NumericAttribute(
            name, False, (), cuts=cut_points(column.values[there], labels, 1, own, bins=QUARTERS)
        )
        watch(Note(f"the groups of {name} are its quarters: {_why(known)}"))
    assert attribute is not None
    # The intervals, then missing values; a coded column may have levels.
    plain = replace(attribute, missing=False)
    _refuse_many(name, plain.n_values, where)
    codes = encode_column(column, plain).codes
    return GroupColumn(name, (*value_names(plain)[: plain.n_values], None), codes)


def _by_level(name: str, column: CategoricalColumn, where: str) -> GroupColumn:
    _refuse_many(name, len(np.unique(column.codes)), where)
    codes, n = column.codes.astype(np.int64), len(column.levels)
    codes[column.codes == UNSEEN] = n
    codes[column.codes == MISSING] = n + 1
    return GroupColumn(name, (*column.levels, "unseen", None), codes)


def _refuse_many(name: str, n: int, where: str) -> None:
    if n > MOST_GROUPS:
        what = f"column {name!r} has {n:,} values, and a group for each says nothing of any"
        raise BncliError(what, where=where, hint=f"name a column of at most {MOST_GROUPS:,}")


def _why(known: Attribute | None) -> str:
    if not isinstance(known, NumericAttribute):
        return "it is no attribute that is cut"
    return "the model does not cut it" if not known.cuts else f"the model has {len(known.cuts) + 1:,} intervals of it"


def with_groups(report: EvaluateReport, grouped: Sequence[GroupColumn]) -> EvaluateReport:
    """Return the report with the figures of all groups of its rows."""
    if not grouped:
        return report
    found = [measure_groups(column, report.labels, *report.pooled, report.decisions.rows) for column in grouped]
    fairness = tuple(one for groups in found for one in compare_groups(groups))
    return replace(report, groups=GroupsReport(tuple(group for groups in found for group in groups), fairness))
