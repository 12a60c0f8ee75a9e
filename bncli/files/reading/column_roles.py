"""The roles of columns: which is the class, which are attributes (with their types), and which has the row weights.

Users set roles with options and in a small JSON file, either NAME.schema.json beside the data or a file given by an
option:
`{"class", "categorical": [...], "numeric": [...], "ignore": [...], "weights"}`. Options override the file. If cuts are
supplied, they determine the attributes and their types. The checks of the class and its labels are here as well.
"""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from bncli.engine.data.columns import CategoricalColumn, Columns
from bncli.engine.data.schema import DATE_PARTS, Cuts, NumberForm, NumericAttribute
from bncli.engine.kernels.arrays import Array, Mask
from bncli.engine.prediction.edits import check_positive
from bncli.errors import BncliError, UsageError
from bncli.files.artifacts.codes import is_codes, read_codes
from bncli.files.atomic import write_bytes
from bncli.files.json_documents import dump_json, parse_json
from bncli.files.paths import cannot_read
from bncli.files.reading.byte_streams import strip_table_suffixes
from bncli.files.reading.csv_text import WRONG_DELIMITER
from bncli.files.reading.numbers import to_numbers
from bncli.files.reading.source import Source, list_names
from bncli.files.reading.values import column_of_attribute
from bncli.watch import Note, Watch

_DEFAULT_CLASS = "class"
DROP_UNLABELLED = "leave such rows out with --drop-unlabelled"
"""The hint for rows without a class."""
_N_LISTED = 8
_ROLES = {
    "class": "the class",
    "weights": "the row weights",
    "categorical": "categorical",
    "numeric": "numeric",
    "ignore": "a column to ignore",
}
_NAME_KEYS = ("class", "weights")
_LIST_KEYS = ("categorical", "numeric", "ignore")
_MAX_NUMERIC_LABELS, _MIN_ROWS_PER_LABEL = 20, 50
"""With more numeric labels than the first limit, the labels look like measurements if there are fewer rows per label
than the second limit, or if some labels are not integers."""
_OPTIONS_WITHOUT_EFFECT_ON_CODES = (
    *("format", "delimiter", "ignore", "categorical", "numeric", "weights", "schema_file", "missing_tokens"),
    *("on_bad_row", "drop_unlabelled", "dates", "decimal", "encoding", "use", "drop_incomplete", "names"),
)
_SPLIT_FIELDS = ("group", "time", "gap", "window")
"""The fields of `Source` that determine how rows are split."""


@dataclass(frozen=True)
class DeclaredRoles:
    """The roles that are given by options, or by a schema file, whose path is `place`."""

    place: str | None = None
    class_name: str | None = None
    weights: str | None = None
    categorical: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()


@dataclass(frozen=True)
class ColumnRoles:
    """The columns in use: `attributes` are in file order; the types of `categorical` and `numeric` columns are given.

    left_out: columns that could be attributes, but that are not in the cuts supplied.
    in_form: columns whose values are read in a form that the cuts state, and the attributes that each becomes.
    ignored_parts: parts of dates that are not used.
    nested: columns of structs, lists or maps that have no role and are left out, with their types.
    group, time: columns by which rows are split; they are attributes only if the user gives their type.
    """

    class_name: str
    attributes: tuple[str, ...]
    categorical: frozenset[str]
    numeric: frozenset[str]
    weights: str | None
    left_out: tuple[str, ...] = ()
    in_form: Mapping[str, tuple[NumericAttribute, ...]] = field(default_factory=dict)
    ignored_parts: frozenset[str] = frozenset()
    nested: Mapping[str, str] = field(default_factory=dict)
    group: tuple[str, ...] = ()
    time: str | None = None


def assign_roles(
    source: Source,
    names: tuple[str, ...],
    where: str,
    cuts: Cuts | None = None,
    nested: Mapping[str, str] = MappingProxyType({}),
    *,
    need_attributes: bool = True,
) -> ColumnRoles:
    """Return the role of every column.

    names, where: the columns of the table, and its name for messages. cuts: cuts that fix the attributes and their
    types, or None. nested: the types of columns of structs, lists and maps, keyed by column. Raises UsageError or
    BncliError if a given column does not exist, has two roles, is nested or contradicts the cuts, and (with
    `need_attributes`) if there is no column besides the class.
    """
    lists = (split_names(columns, names) for columns in (source.categorical, source.numeric, source.ignore))
    options = DeclaredRoles(None, source.class_name, source.weights, *lists)
    file = read_schema_file(source)
    for declared in (options, file):
        _check_roles(declared, names, where)

    # Roles of the file hold for columns that no option names.
    by_option = {*(options.class_name, options.weights), *options.categorical, *options.numeric, *options.ignore}
    declared = DeclaredRoles(
        None,
        options.class_name or (file.class_name if file.class_name not in by_option else None),
        options.weights or (file.weights if file.weights not in by_option else None),
        options.categorical + tuple(name for name in file.categorical if name not in by_option),
        options.numeric + tuple(name for name in file.numeric if name not in by_option),
        options.ignore + tuple(name for name in file.ignore if name not in by_option),
    )
    stated = {*(declared.class_name, declared.weights), *declared.categorical, *declared.numeric, *declared.ignore}
    used, unused_parts = _used_columns(source, declared, names, where)
    group, time = choose_split_columns(source, names, where, nested)

    # The class: not a column of groups or of time, nor one of structs, lists or maps, if there are others.
    all_nested, nested = nested, {name: word for name, word in nested.items() if name not in stated}
    split = {*group, *([] if time is None else [time])}
    class_name = _choose_class(
        declared,
        tuple(name for name in names if name not in nested and name not in split - {_DEFAULT_CLASS}) or names,
        cuts,
    )
    if class_name not in names:
        raise _unknown_column(class_name, names, where)

    # Refuse two roles for one column, and nested columns as the class or the weights.
    for name, use, option in (
        (class_name, "be labels", "--class"),
        (declared.weights, "be weights", "--weights"),
    ):
        if name is not None and name in all_nested:
            what = f"column '{name}' contains {all_nested[name]}s, which cannot {use}"
            raise BncliError(what, where=where, hint=f"choose a column of single values with {option}")
    for role, columns in (("ignore", declared.ignore), ("numeric", declared.numeric), ("weights", (declared.weights,))):
        if class_name in columns:
            raise UsageError(f"column '{class_name}' is the class, so it cannot also be given as {role}", where=where)
    for option, columns in (("--group", group), ("--time", (time,))):
        for role, name in (("the class", class_name), ("the row weights", declared.weights)):
            if name is not None and name in columns:
                hint = "choose another column"
                if name == class_name and declared.class_name is None:
                    hint += ", or give the class with --class"
                raise UsageError(f"{option} {name}: that column contains {role}", where=where, hint=hint)

    # The attributes are the columns that are left.
    not_used = set() if used is None else set(names) - used
    not_attributes = {class_name, declared.weights, *declared.ignore, *nested, *not_used}
    not_attributes |= split.difference(declared.categorical, declared.numeric)
    not_attributes -= {*source.carried}
    attributes = tuple(name for name in names if name not in not_attributes)
    if cuts is not None:
        roles = _roles_by_cuts(cuts, options, declared.weights, class_name, attributes, where)
        return replace(roles, group=group, time=time)
    if need_attributes and not attributes:
        hint = WRONG_DELIMITER if len(names) == 1 else ""
        raise BncliError(f"there is no column besides the class '{class_name}'", where=where, hint=hint)
    return ColumnRoles(
        class_name,
        attributes,
        frozenset(declared.categorical),
        frozenset(declared.numeric),
        declared.weights,
        ignored_parts=frozenset(declared.ignore).difference(names) | unused_parts,
        nested=nested,
        group=group,
        time=time,
    )


def split_names(typed: Sequence[str], names: Collection[str]) -> tuple[str, ...]:
    """Return the distinct names in the arguments `typed`; an argument that is not in `names` is split at commas."""
    return tuple(
        dict.fromkeys(name for text in typed for name in ([text] if text in names else map(str.strip, text.split(","))))
    )


def choose_split_columns(
    source: Source, names: tuple[str, ...], where: str, nested: Mapping[str, str] = MappingProxyType({})
) -> tuple[tuple[str, ...], str | None]:
    """Return the group columns, and the time column or None.

    nested: as in `assign_roles`. Raises UsageError for a column that does not exist, has both roles or is nested, and
    for --gap or --window without --time.
    """
    group, time = split_names(source.group, names), source.time
    for option in ("gap", "window"):
        if time is None and getattr(source, option) is not None:
            raise UsageError(f"--{option} has no effect without --time", hint="add --time COLUMN")
    for name in (*group, *([] if time is None else [time])):
        if name not in names:
            raise _unknown_column(name, names, where)
        if name in nested:
            option, use = ("--group", "name a group") if name in group else ("--time", "be times")
            what = f"{option} {name}: that column contains {nested[name]}s, which cannot {use}"
            raise UsageError(what, where=where, hint="choose a column of single values")
    if time is not None and time in group:
        raise UsageError(f"column '{time}' is given both with --group and with --time", hint="choose different columns")
    return group, time


def _check_roles(declared: DeclaredRoles, names: tuple[str, ...], where: str) -> None:
    """Raise UsageError (BncliError for roles from a file) if a column does not exist or has contradictory roles.

    The class may also be categorical; any other two roles contradict each other.
    """
    lists = {"categorical": declared.categorical, "numeric": declared.numeric, "ignore": declared.ignore}
    for role, column in (("class", declared.class_name), ("weights", declared.weights)):
        lists[role] = () if column is None else (column,)
    known, role_of = set(names), dict[str, str]()
    for role, columns in lists.items():
        for name in dict.fromkeys(columns):
            error = None
            if name not in known and not _is_date_part(name, names):
                error = _unknown_column(name, names, where)
            elif name not in known and role == "categorical":
                column = name.rpartition(".")[0]
                what = f"'{name}' is a number derived from the dates of '{column}', so it cannot be categorical"
                error = UsageError(what, hint=f"add --categorical {column} to keep the dates as categories")
            elif name not in known and role not in ("ignore", "numeric"):
                error = _unknown_column(name, names, where)
            elif name in role_of and {role, role_of[name]} != {"class", "categorical"}:
                both = f"both as {_ROLES[role_of[name]]} and as {_ROLES[role]}"
                error = UsageError(f"column '{name}' is given {both}", hint="choose one of them")
            if error is not None and declared.place is not None:  # an error of the data, not of the command line
                raise BncliError(error.what, where=declared.place, hint=error.hint)
            if error is not None:
                raise error
            role_of[name] = role


def _is_date_part(name: str, names: tuple[str, ...]) -> bool:
    """Return whether the name may be a part of the dates in a column, such as `signup.month`."""
    column, _, part = name.rpartition(".")
    return column in names and part in DATE_PARTS


def _unknown_column(name: str, names: tuple[str, ...], where: str) -> UsageError:
    """Build the error for a column that does not exist; if there is a single column, hint at the delimiter."""
    error = missing_column(name, names, where)
    if len(names) > 1:
        return error
    hint = f"{where} has a single column: {WRONG_DELIMITER}"
    return UsageError(error.what, where=where, hint=hint)


def missing_column(name: str, names: Iterable[str], where: str) -> UsageError:
    """Build the error for a column that does not exist, with the most similar name, if any, as a hint."""
    folded = {known.casefold(): known for known in names}
    similar = difflib.get_close_matches(name.casefold(), folded, 1, 0.5)
    hint = f"did you mean '{folded[similar[0]]}'?" if similar else ""
    return UsageError(f"there is no column '{name}'", where=where, hint=hint)


def _used_columns(
    source: Source, declared: DeclaredRoles, names: tuple[str, ...], where: str
) -> tuple[frozenset[str] | None, frozenset[str]]:
    """Return the columns given by --use, or None for all columns, and the parts of dates that it excludes.

    If a part such as `signup.month` is named, its column is used; the other parts are excluded unless the column itself
    is named too. Raises UsageError for an unknown column and for one that is also ignored.
    """
    if not source.use:
        return None, frozenset()
    used = split_names(source.use, names)
    for name in used:
        if name not in names and not _is_date_part(name, names):
            raise _unknown_column(name, names, where)
        if name in declared.ignore:
            raise UsageError(f"column '{name}' is given both with --use and as a column to ignore")
    column_of = {name: name.rpartition(".")[0] for name in used if name not in names}
    parts = {f"{column}.{part}" for column in column_of.values() if column not in used for part in DATE_PARTS}
    return frozenset((*used, *column_of.values())), frozenset(parts.difference(column_of))


def _choose_class(declared: DeclaredRoles, names: tuple[str, ...], cuts: Cuts | None) -> str:
    """Return the class column: the class of the cuts, the given class, the column `class`, or the last usable column.

    Raises UsageError if the cuts are for a class other than the given one.
    """
    if cuts is not None:
        if declared.class_name not in (None, cuts.class_name):
            what = f"the cuts are for the class '{cuts.class_name}', not '{declared.class_name}'"
            raise UsageError(what, hint="learn cuts for this class with bncli discretize")
        return cuts.class_name
    if declared.class_name is not None:
        return declared.class_name
    if _DEFAULT_CLASS in names:
        return _DEFAULT_CLASS
    usable = [name for name in names if name not in {declared.weights, *declared.ignore}]
    return usable[-1] if usable else names[-1]


def _roles_by_cuts(
    cuts: Cuts, options: DeclaredRoles, weights: str | None, class_name: str, attributes: tuple[str, ...], where: str
) -> ColumnRoles:
    """Return the roles that follow from the cuts supplied.

    Raises UsageError if an option contradicts the cuts, and BncliError if a column is missing.
    """
    names = set(attributes)
    column_of = {a.name: column_of_attribute(a, names) for a in cuts.attributes}
    numeric = frozenset(column_of[a.name] for a in cuts.attributes if isinstance(a, NumericAttribute))
    categorical = frozenset(column_of.values()) - numeric
    for role, columns, others in (
        ("numeric", options.numeric, categorical),
        ("categorical", options.categorical, numeric),
    ):
        for name in columns:
            if name in others:
                raise UsageError(f"--{role} {name} contradicts the cuts")
    for name in column_of.values():
        if name not in names:
            hint = missing_column(name, attributes, where).hint
            raise BncliError(
                f"the cuts contain '{name}', which is not an attribute of the table", where=where, hint=hint
            )
    used = tuple(name for name in attributes if name in numeric | categorical)
    left_out = tuple(name for name in attributes if name not in numeric | categorical)
    in_form: dict[str, tuple[NumericAttribute, ...]] = {}
    for attribute in cuts.attributes:
        form = attribute.form if isinstance(attribute, NumericAttribute) else None
        if isinstance(attribute, NumericAttribute) and form is not None:
            column = column_of[attribute.name]
            if isinstance(form, NumberForm) or column == form.source:
                in_form[column] = (*in_form.get(column, ()), attribute)
    return ColumnRoles(class_name, used, categorical, numeric, weights, left_out, in_form)


def report_left_out(roles: ColumnRoles, watch: Watch) -> None:
    """Report column names that look like data, nested columns, and columns that are not in the cuts supplied."""
    if look_like_data((*roles.attributes, roles.class_name)):
        watch(Note("the column names are numbers: is the header missing? Add --names a,b,c to give one", warning=True))
    for word in dict.fromkeys(roles.nested.values()):
        names = [name for name, held in roles.nested.items() if held == word]
        columns, were, them = ("columns", "were", "them") if len(names) > 1 else ("column", "was", "it")
        what = f"{columns} {list_names(names, _N_LISTED)} {were} left out because of {word} values"
        watch(Note(f"{what}; flatten {them}, or add --ignore NAME"))
    if roles.left_out:
        watch(Note(f"columns that are not in the cuts file were left out: {list_names(roles.left_out, _N_LISTED)}"))


def look_like_data(names: Sequence[str]) -> bool:
    """Return whether the header looks like a row of data.

    It does if at least two names, and at least half of all names, are numbers. Names 0, 1, 2, ... may be column
    positions and do not count if all the numbers are of this kind.
    """
    numbers = []
    for name in names:
        try:
            if math.isfinite(float(name)) and "_" not in name:
                numbers.append(name)
        except ValueError:
            continue
    positions = {str(i) for i in range(len(names) + 2)}
    return len(numbers) >= 2 and 2 * len(numbers) >= len(names) and not positions.issuperset(numbers)


def read_schema_file(source: Source) -> DeclaredRoles:
    """Return the roles in the schema file, or no roles without one; raise BncliError if it is unreadable or invalid."""
    path, data = source.schema_file, source.paths
    if not path and len(data) == 1 and data[0] != "-" and not os.path.isdir(data[0]):
        # NAME.schema.json beside a single data file
        stem = strip_table_suffixes(data[0])
        path = f"{stem}.schema.json" if os.path.isfile(f"{stem}.schema.json") else None
    if not path:
        return DeclaredRoles()
    try:
        with open(path, "rb") as file:
            content = parse_json(file.read(), path).value
    except OSError as error:
        raise cannot_read(path, error) from error
    if not isinstance(content, dict):
        raise BncliError(
            'a schema file must be one JSON object, such as {"class": "name", "categorical": [...]}', where=path
        )
    for key in content:
        if key not in (*_NAME_KEYS, *_LIST_KEYS):
            similar = difflib.get_close_matches(key, (*_NAME_KEYS, *_LIST_KEYS), 1)
            hint = f"did you mean '{similar[0]}'?" if similar else ""
            raise BncliError(f"unknown key '{key}'", where=path, hint=hint)
    for key in _NAME_KEYS:
        if not isinstance(content.get(key), (str, type(None))):
            raise BncliError(f"'{key}' must be a column name", where=path)
    for key in _LIST_KEYS:
        value = content.get(key, [])
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise BncliError(f"'{key}' must be a list of column names", where=path)
    lists = {key: tuple(content.get(key, ())) for key in _LIST_KEYS}
    return DeclaredRoles(path, content.get("class"), content.get("weights"), **lists)


def write_schema_file(path: str, roles: DeclaredRoles) -> None:
    """Write a file from which `read_schema_file` reads these roles."""
    content: dict[str, Any] = {} if roles.class_name is None else {"class": roles.class_name}
    content |= {key: list(getattr(roles, key)) for key in _LIST_KEYS}
    content |= {} if roles.weights is None else {"weights": roles.weights}
    write_bytes(path, dump_json(content).encode())


def is_codes_table(paths: Sequence[str]) -> bool:
    """Return whether the paths name a single `.codes` file."""
    return len(paths) == 1 and is_codes(paths[0])


def read_coded(source: Source) -> Columns:
    """Read the rows of a `.codes` file; raise UsageError for options that apply only when a table is encoded.

    UsageError is also raised if the source names a class other than that of the file.
    """
    default = Source(source.paths)
    for key in _OPTIONS_WITHOUT_EFFECT_ON_CODES:
        if getattr(source, key) != getattr(default, key):
            word = {"schema_file": "schema", "missing_tokens": "missing"}.get(key, key)
            option = f"--{word.replace('_', '-')}"
            what = f"{option} has no effect on {source.paths[0]}, whose rows are codes"
            raise UsageError(what, hint="use it with bncli encode")
    for key in _SPLIT_FIELDS:
        if getattr(source, key) != getattr(default, key):
            what = f"--{key} has no effect on {source.paths[0]}, whose rows are codes without that column"
            raise UsageError(what, hint="give the original table")
    codes = read_codes(source.paths[0])
    if source.class_name not in (None, codes.header.cuts.class_name):
        what = f"the class of {codes.path} is '{codes.header.cuts.class_name}'"
        raise UsageError(what, hint=f"encode the table again with --class '{source.class_name}'")
    return put_positive_second(codes.columns(), source.positive)


def put_positive_second(table: Columns, positive: str | None) -> Columns:
    """Return the table with `positive` as the second of its two labels.

    The table is returned unchanged if `positive` is None or if it has no class column. Raises UsageError if it is not a
    label, or if there are not two labels.
    """
    if positive is None or table.label is None:
        return table
    levels, codes = table.label.levels, table.label.codes
    check_positive(positive, table.class_name, levels)
    if levels[1] == positive:
        return table
    swapped = np.where(codes < 0, codes, 1 - codes).astype(codes.dtype)
    return replace(table, label=CategoricalColumn(swapped, levels[::-1]))


def usable_rows(
    label: CategoricalColumn, weights: Array | None, where: str, *, drop_unlabelled: bool, keep_unlabelled: bool = False
) -> Mask:
    """Return a mask of the rows with a positive weight and, unless `keep_unlabelled`, a class.

    Raises BncliError if no row has a positive weight, or if no row with a positive weight has a class. A row without a
    class is an error too, unless `drop_unlabelled` leaves it out or `keep_unlabelled` keeps it.
    """
    keep = np.ones(len(label.codes), np.bool_) if weights is None else weights > 0
    if not keep.any():
        raise BncliError("every row has weight 0", where=where)
    unlabelled = keep & (label.codes < 0)
    n_unlabelled = int(unlabelled.sum())
    if n_unlabelled == keep.sum():
        raise BncliError("the class is missing in every row", where=where, hint="choose another column with --class")
    if keep_unlabelled:
        return keep
    if n_unlabelled and not drop_unlabelled:
        rows = "row" if n_unlabelled == 1 else "rows"
        raise BncliError(f"the class is missing in {n_unlabelled} {rows}", where=where, hint=DROP_UNLABELLED)
    return keep & ~unlabelled


def check_labels(class_name: str, labels: tuple[str, ...], n_rows: int, where: str) -> None:
    """Raise BncliError for a class with a single label, or with too many labels for the number of rows."""
    if len(labels) == 1:
        what = f"the class '{class_name}' has only one value, '{labels[0]}'"
        raise BncliError(what, where=where, hint="choose another column with --class")
    if are_too_many_labels(len(labels), n_rows):
        is_number = to_numbers(pa.array(labels, pa.string()), ())[1] is None
        advice = "its values are numbers, so cut them into a few intervals first, or " if is_number else ""
        what = f"the class '{class_name}' has {len(labels)} labels in {n_rows} rows"
        raise BncliError(what, where=where, hint=f"{advice}choose another column with --class")


def are_too_many_labels(n_labels: int, n_rows: int) -> bool:
    """Return whether a class has fewer than two rows per label on average; two labels are never too many."""
    return n_labels > 2 and 2 * n_labels > n_rows


def warn_about_numeric_labels(class_name: str, labels: tuple[str, ...], n_rows: int, watch: Watch) -> None:
    """Warn if the labels look like measurements."""
    if look_like_measurements(labels, n_rows):
        what = f"the class '{class_name}' looks like a numeric variable, not a class: {len(labels):,} different numbers"
        advice = "cut its values into a few intervals first, or choose another column with --class"
        codes = f"if they are codes, add --categorical '{class_name}'"
        watch(Note(f"{what} in {n_rows:,} rows; {advice} ({codes})", warning=True))


def look_like_measurements(labels: tuple[str, ...], n_rows: int) -> bool:
    """Return whether labels look like measurements: many different numbers, with few rows each or not all integers."""
    if len(labels) <= _MAX_NUMERIC_LABELS:
        return False
    numbers, wrong = to_numbers(pa.array(labels, pa.string()), ())
    if wrong is not None:
        return False
    return bool(n_rows < _MIN_ROWS_PER_LABEL * len(labels) or (numbers != np.floor(numbers)).any())
