"""Which column is the class, which ones are attributes and of what type, which one weighs the rows.

What the user says comes from flags and from a small JSON file, NAME.schema.json beside the data or the one given by
name: `{"class", "categorical": [...], "numeric": [...], "ignore": [...], "weights"}`. Flags win over the file.
Cuts that are given fix the attributes and their types.

A `.codes` file as a table: whatever else can be said of how a table is read was settled when it was encoded.
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

from bncli.engine.data.columns import CategoricalColumn, Columns
from bncli.engine.data.number_formats import DATE_PARTS, NumberForm
from bncli.engine.data.schema import Cuts, NumericAttribute
from bncli.engine.prediction.positive_label import check_positive
from bncli.errors import BncliError, UsageError
from bncli.files.artifacts.codes import is_codes, read_codes
from bncli.files.atomic import write_bytes
from bncli.files.documents import dump_json, parse_json
from bncli.files.paths import cannot_read
from bncli.files.reading.byte_streams import TABLE_SUFFIXES, strip_compression
from bncli.files.reading.source import Source
from bncli.files.reading.values import column_read
from bncli.watch import Note, Watch

_DEFAULT_CLASS = "class"
_NAMED = 8
_NAME_KEYS = ("class", "weights")
_LIST_KEYS = ("categorical", "numeric", "ignore")


@dataclass(frozen=True)
class DeclaredRoles:
    """What one place says about columns: the flags, or a schema file (`place` is its path)."""

    place: str | None = None
    class_name: str | None = None
    weights: str | None = None
    categorical: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()


@dataclass(frozen=True)
class ColumnRoles:
    """The columns in use: attributes in file order; those whose type is said are in `categorical` or `numeric`."""

    class_name: str
    attributes: tuple[str, ...]
    categorical: frozenset[str]
    numeric: frozenset[str]
    weights: str | None
    left_out: tuple[str, ...] = ()
    """Columns that might be attributes, but given cuts do not name them."""
    in_form: Mapping[str, tuple[NumericAttribute, ...]] = field(default_factory=dict)
    """Columns that given cuts read in a form, each with the attributes that it becomes."""
    ignored_parts: frozenset[str] = frozenset()
    """Parts of dates that are not wanted."""
    nested: Mapping[str, str] = field(default_factory=dict)
    """Columns that nobody has named and that hold structs, lists or maps, so left out; what they hold."""


_FLAGS = {
    "format": "--format",
    "delimiter": "--delimiter",
    "ignore": "--ignore",
    "categorical": "--categorical",
    "numeric": "--numeric",
    "weights": "--weights",
    "schema_file": "--schema",
    "missing_tokens": "--missing",
    "on_bad_row": "--on-bad-row",
    "drop_unlabelled": "--drop-unlabelled",
    "dates": "--dates",
    "decimal": "--decimal",
    "encoding": "--encoding",
    "use": "--use",
    "drop_incomplete": "--drop-incomplete",
    "names": "--names",
}


def assign_roles(
    source: Source,
    names: tuple[str, ...],
    where: str,
    given: Cuts | None,
    nested: Mapping[str, str] = MappingProxyType({}),
) -> ColumnRoles:
    """Return every column's role, for learning; an error names a column that does not exist or that has two roles."""
    roles = roles_of(source, names, where, given, nested)
    if given is None and not roles.attributes:
        hint = "is the delimiter right? --delimiter" if len(names) == 1 else ""
        raise BncliError(f"there is no column besides the class '{roles.class_name}'", where=where, hint=hint)
    return roles


def report_left_out(roles: ColumnRoles, watch: Watch) -> None:
    """Report the columns that hold no plain values, those that the supplied cuts do not name, and odd names."""
    if looks_like_data((*roles.attributes, roles.class_name)):
        watch(Note("the column names are numbers: is the header missing? --names a,b,c gives one", warning=True))
    for word in dict.fromkeys(roles.nested.values()):
        listed = [name for name, held in roles.nested.items() if held == word]
        more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
        holds, it = ("hold", "them") if len(listed) > 1 else ("holds", "it")
        watch(Note(f"left out: {', '.join(listed[:_NAMED])}{more} {holds} {word} values; flatten {it} or --ignore"))
    if roles.left_out:
        more = f" and {len(roles.left_out) - _NAMED} more" if len(roles.left_out) > _NAMED else ""
        watch(Note(f"not in the cuts file, so left out: {', '.join(roles.left_out[:_NAMED])}{more}"))


def looks_like_data(names: Sequence[str]) -> bool:
    """Return whether half of the names are numbers, and not those that number the columns."""
    numbers = [name for name in names if _is_number(name)]
    counted = {str(i) for i in range(len(names) + 2)}
    return len(numbers) >= 2 and 2 * len(numbers) >= len(names) and not counted.issuperset(numbers)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text)) and "_" not in text
    except ValueError:
        return False


def roles_of(
    source: Source,
    names: tuple[str, ...],
    where: str,
    given: Cuts | None = None,
    nested: Mapping[str, str] = MappingProxyType({}),
) -> ColumnRoles:
    """Return every column's role; there need be no attribute. nested: the columns of structs, lists and maps."""
    lists = (split_names(columns, names) for columns in (source.categorical, source.numeric, source.ignore))
    flags = DeclaredRoles(None, source.class_name, source.weights, *lists)
    file = read_schema_file(source)
    for said in (flags, file):
        _check(said, names, where)
    said = _merged(flags, file)
    named = {said.class_name, said.weights, *said.categorical, *said.numeric, *said.ignore}
    nested = {name: word for name, word in nested.items() if name not in named}
    use, unused_parts = _used_columns(source, said, names, where)
    class_name = _class_name(said, tuple(name for name in names if name not in nested) or names, given)
    if class_name not in names:
        raise _lacking(class_name, names, where)
    for role, columns in (("ignore", said.ignore), ("numeric", said.numeric), ("weights", (said.weights,))):
        if class_name in columns:
            raise UsageError(f"column '{class_name}' is the class and cannot be named as {role}", where=where)
    not_used = set() if use is None else {name for name in names if name not in use}
    without = {class_name, said.weights, *said.ignore, *nested, *not_used} - {*source.carried}
    attributes = tuple(name for name in names if name not in without)
    parts = frozenset(said.ignore).difference(names) | unused_parts
    if given is not None:
        return _declared(given, flags, said, class_name, attributes, where)
    said_types = frozenset(said.categorical), frozenset(said.numeric)
    return ColumnRoles(class_name, attributes, *said_types, said.weights, ignored_parts=parts, nested=nested)


def split_names(typed: Sequence[str], names: Collection[str]) -> tuple[str, ...]:
    """Return the columns of a list in which a text that is no column stands for several, parted by commas."""
    return tuple(
        dict.fromkeys(name for text in typed for name in ([text] if text in names else map(str.strip, text.split(","))))
    )


def _used_columns(
    source: Source, said: DeclaredRoles, names: tuple[str, ...], where: str
) -> tuple[frozenset[str] | None, frozenset[str]]:
    """Return the columns that alone may be attributes, None where all may be; and parts of dates that may not.

    Where a part is named, as `signup.month`, its column is one of them, and the other parts are not wanted.
    """
    if not source.use:
        return None, frozenset()
    use = split_names(source.use, names)
    for name in use:
        if name not in names and not _may_be_part(name, names, "numeric"):
            raise _lacking(name, names, where)
        if name in said.ignore:
            raise UsageError(f"column '{name}' is named both in --use and as ignore")
    named = {name: name.rpartition(".")[0] for name in use if name not in names}
    parts = {f"{column}.{part}" for column in named.values() if column not in use for part in DATE_PARTS}
    return frozenset((*use, *named.values())), frozenset(parts.difference(named))


def _check(said: DeclaredRoles, names: tuple[str, ...], where: str) -> None:
    """Every named column exists, and none has two roles in the same place."""
    lists = {"categorical": said.categorical, "numeric": said.numeric, "ignore": said.ignore}
    for role, column in (("class", said.class_name), ("weights", said.weights)):
        lists[role] = () if column is None else (column,)
    known, seen = set(names), dict[str, str]()
    for role, columns in lists.items():
        for name in dict.fromkeys(columns):
            if name not in known and not _may_be_part(name, names, role):
                raise _located(said, _lacking(name, names, where))
            if name in seen and {role, seen[name]} != {"class", "categorical"}:
                error = UsageError(f"column '{name}' is named both as {seen[name]} and as {role}")
                raise _located(said, error)
            seen[name] = role


def _may_be_part(name: str, names: tuple[str, ...], role: str) -> bool:
    """Return whether it may be a part of the dates in a column, as `signup.month`; that is always a number."""
    source, _, part = name.rpartition(".")
    if source not in names or part not in DATE_PARTS:
        return False
    if role == "categorical":
        what = f"'{name}' can only be a number made from the dates of '{source}'"
        raise UsageError(what, hint=f"--categorical {source} keeps the dates as names")
    return role in ("ignore", "numeric")


def _located(said: DeclaredRoles, error: BncliError) -> BncliError:
    """Return the error of a schema file as one of the data, not of the command line."""
    return error if said.place is None else BncliError(error.what, where=said.place, hint=error.hint)


def _lacking(name: str, names: tuple[str, ...], where: str) -> UsageError:
    """Return a header of a single column most often means that it was cut at the wrong delimiter."""
    error = missing_column(name, names, where)
    if len(names) > 1:
        return error
    return UsageError(error.what, where=where, hint=f"{where} has a single column: is the delimiter right? --delimiter")


def _merged(flags: DeclaredRoles, file: DeclaredRoles) -> DeclaredRoles:
    """Return the flags, and what the file says of columns that no flag names."""
    flagged = {*flags.categorical, *flags.numeric, *flags.ignore, flags.class_name, flags.weights}

    def rest(columns: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name for name in columns if name not in flagged)

    return DeclaredRoles(
        None,
        flags.class_name or (file.class_name if file.class_name not in flagged else None),
        flags.weights or (file.weights if file.weights not in flagged else None),
        flags.categorical + rest(file.categorical),
        flags.numeric + rest(file.numeric),
        flags.ignore + rest(file.ignore),
    )


def _class_name(said: DeclaredRoles, names: tuple[str, ...], given: Cuts | None) -> str:
    if given is not None:
        if said.class_name not in (None, given.class_name):
            what = f"the cuts are for the class '{given.class_name}', not '{said.class_name}'"
            raise UsageError(what, hint="learn cuts for this class with bncli discretize")
        return given.class_name
    if said.class_name is not None:
        return said.class_name
    if _DEFAULT_CLASS in names:
        return _DEFAULT_CLASS
    without = {said.weights, *said.ignore}
    usable = [name for name in names if name not in without]
    return usable[-1] if usable else names[-1]


def _declared(
    given: Cuts, flags: DeclaredRoles, said: DeclaredRoles, class_name: str, attributes: tuple[str, ...], where: str
) -> ColumnRoles:
    there = set(attributes)
    read = {a.name: column_read(a, there) for a in given.attributes}
    numeric = frozenset(read[a.name] for a in given.attributes if isinstance(a, NumericAttribute))
    categorical = frozenset(read.values()) - numeric
    for role, columns, other in (("numeric", flags.numeric, categorical), ("categorical", flags.categorical, numeric)):
        for name in columns:
            if name in other:
                raise UsageError(f"--{role} {name} contradicts the cuts, which take it the other way")
    for name in read.values():
        if name not in there:
            hint = missing_column(name, attributes, where).hint
            raise BncliError(f"the cuts name '{name}', which is no attribute here", where=where, hint=hint)
    named = numeric | categorical
    used = tuple(name for name in attributes if name in named)
    left_out = tuple(name for name in attributes if name not in named)
    in_form = _in_form(given, read)
    return ColumnRoles(class_name, used, categorical, numeric, said.weights, left_out, in_form)


def _in_form(given: Cuts, read: Mapping[str, str]) -> dict[str, tuple[NumericAttribute, ...]]:
    """Return the attributes with a form, by the column they are read from."""
    found: dict[str, tuple[NumericAttribute, ...]] = {}
    for attribute in given.attributes:
        form = attribute.form if isinstance(attribute, NumericAttribute) else None
        if isinstance(attribute, NumericAttribute) and form is not None:
            column = read[attribute.name]
            if isinstance(form, NumberForm) or column == form.source:
                found[column] = (*found.get(column, ()), attribute)
    return found


def with_positive(table: Columns, positive: str | None) -> Columns:
    """Return the table with the two labels in the order that makes `positive` the second; None: as they are.

    UsageError for a label that is none, and for a class of more than two.
    """
    if positive is None or table.label is None:
        return table
    levels, codes = table.label.levels, table.label.codes
    check_positive(positive, table.class_name, levels)
    if levels[1] == positive:
        return table
    swapped = np.where(codes < 0, codes, 1 - codes).astype(codes.dtype)
    return replace(table, label=CategoricalColumn(swapped, levels[::-1]))


def read_schema_file(source: Source) -> DeclaredRoles:
    """Return what the schema file says; nothing if there is none."""
    path = source.schema_file or _next_to(source.paths)
    if path is None:
        return DeclaredRoles()
    content = _load(path)
    for key in content:
        if key not in (*_NAME_KEYS, *_LIST_KEYS):
            near = difflib.get_close_matches(key, (*_NAME_KEYS, *_LIST_KEYS), 1)
            raise BncliError(f"unknown key '{key}'", where=path, hint=f"did you mean '{near[0]}'?" if near else "")
    for key in _NAME_KEYS:
        if not isinstance(content.get(key), (str, type(None))):
            raise BncliError(f"'{key}' must be a column name", where=path)
    for key in _LIST_KEYS:
        value = content.get(key, [])
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise BncliError(f"'{key}' must be a list of column names", where=path)
    lists = {key: tuple(content.get(key, ())) for key in _LIST_KEYS}
    return DeclaredRoles(path, content.get("class"), content.get("weights"), **lists)


def _next_to(paths: Sequence[str]) -> str | None:
    if len(paths) != 1 or paths[0] == "-" or os.path.isdir(paths[0]):
        return None
    stem = strip_compression(paths[0])
    for suffix in TABLE_SUFFIXES:
        stem = stem[: -len(suffix)] if stem.lower().endswith(suffix) else stem
    path = f"{stem}.schema.json"
    return path if os.path.isfile(path) else None


def _load(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            content = parse_json(file.read(), path).value
    except OSError as error:
        raise cannot_read(path, error) from error
    if not isinstance(content, dict):
        raise BncliError('a schema file holds one JSON object, as {"class": "name", "categorical": [...]}', where=path)
    return content


def write_schema_file(path: str, said: DeclaredRoles) -> None:
    """Write what `read_schema_file` reads, but for the file's place."""
    content: dict[str, Any] = {} if said.class_name is None else {"class": said.class_name}
    content |= {key: list(getattr(said, key)) for key in _LIST_KEYS}
    content |= {} if said.weights is None else {"weights": said.weights}
    write_bytes(path, dump_json(content).encode())


def missing_column(name: str, names: Iterable[str], where: str) -> UsageError:
    """Return the error that names the column nearest to one that does not exist."""
    near = difflib.get_close_matches(name, list(names), 1, 0.5)
    return UsageError(f"there is no column '{name}'", where=where, hint=f"did you mean '{near[0]}'?" if near else "")


def is_codes_table(paths: Sequence[str]) -> bool:
    """Return whether the paths name one file of codes."""
    return len(paths) == 1 and is_codes(paths[0])


def read_coded(source: Source) -> Columns:
    """Return the rows of the `.codes` file that is the source; UsageError for what was said of it in vain."""
    plain = Source(source.paths)
    for key, flag in _FLAGS.items():
        if getattr(source, key) != getattr(plain, key):
            what = f"{flag} has no effect on {source.paths[0]}, whose rows are codes"
            raise UsageError(what, hint="say it when the table is encoded")
    found = read_codes(source.paths[0])
    if source.class_name not in (None, found.header.cuts.class_name):
        what = f"the class of {found.path} is '{found.header.cuts.class_name}'"
        raise UsageError(what, hint=f"encode the table again with --class '{source.class_name}'")
    return with_positive(found.columns(), source.positive)
