"""Tables and a view that score the rows of a table inside a database: SQLite, DuckDB or PostgreSQL.

    STEM_weights(cell, s0, ...)         the numbers of all tables of the model, one column per score
    STEM_levels(input, level, code)     the levels of text columns
    STEM_scores                         the view: KEY, prediction, p_<label>, and decision if the model decides

The cuts of numeric columns stand in the view itself. STEM is the name of the model, with `_` in place of characters
that are not letters, digits or `_`. The first line of the file describes it for programs. Before the file is written
its statements are run (`sql_databases.py`).

If the columns of two labels would have the same name in any case, the later ones end in `_2`, `_3`, ...
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from bncli.errors import ModelError
from bncli.files.exports import ProgramFormat
from bncli.files.exports.programs import ProgramTarget, literal
from bncli.files.exports.sql_dialects import (
    BY_WORD,
    DIALECTS,
    HEADER_PREFIX,
    Dialect,
    number_constant,
    quote_identifier,
    quote_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bncli.engine.kernels.arrays import Array
    from bncli.engine.model import DecisionRule
    from bncli.engine.prediction.portable import Input, PortableScorer

DEFAULTS = {"dialect": DIALECTS[0], "input": "input", "key": "id"}
ROWS_PER_INSERT = 500
_ABOUT_DECISIONS = '-- The column "decision" is NULL if the model abstains.'


def sql_text(scorer: PortableScorer, target: ProgramTarget) -> str:
    """Return the text of the file; raise ModelError if the database cannot hold its names or that many columns."""
    from bncli.files.exports.sql_layers import query_layers, sql_model

    target = target._replace(options={**DEFAULTS, **target.options})
    dialect, key = BY_WORD[target.options["dialect"]], target.options["key"]
    stem = dialect.shorten(re.sub(r"\W", "_", target.name), spare=len("_weights"))
    _check_names(scorer, target, dialect, stem)
    model = sql_model(scorer)
    columns = label_columns(scorer.labels, dialect, key)
    layers = query_layers(scorer, model, dialect, target, stem)
    # The view shows the last layer; a tie goes to the first label.
    labels = [quote_text(label) for label in scorer.labels]
    tests = " ".join(f"WHEN q{y} = best THEN {label}" for y, label in enumerate(labels))
    selected = [f"row_key AS {quote_identifier(key)}", f"CASE {tests} END AS prediction"]
    selected += [f"q{y} / t AS {quote_identifier(column)}" for y, column in enumerate(columns)]
    if target.rule is not None:
        selected.append(f"{_decision(labels, target.rule)} AS decision")
    parts = [
        *_header(scorer, target, dialect, columns, stem),
        "BEGIN;",
        *_tables(scorer.inputs, model.numbers, dialect, stem),
        f"CREATE VIEW {quote_identifier(f'{stem}_scores')} AS\n{layers.text()}",
        "SELECT\n  " + ",\n  ".join(selected) + f"\nFROM {layers.texts[-1][0]};",
        "COMMIT;",
    ]
    return "\n".join(parts) + "\n"


def _check_names(scorer: PortableScorer, target: ProgramTarget, dialect: Dialect, stem: str) -> None:
    """Raise ModelError for a name that is not valid in the database, or that it cannot distinguish from another."""
    table, key = target.options["input"], target.options["key"]
    levels = (level for column in scorer.inputs for level in column.codes or ())
    names = [column.name for column in scorer.inputs]
    for text in (table, key, *names, *scorer.labels, *levels):
        if "\0" in text:
            raise ModelError(f"{text!r} cannot be written as SQL: it contains a NUL character")
    own = {dialect.fold_name(f"{stem}_{part}") for part in ("scores", "weights", "levels")}
    if dialect.fold_name(table) in own:
        raise ModelError(
            f"--input {table} is the name of a table or view that the file creates",
            hint="choose another name for the input or for the output file",
        )
    if dialect.fold_name(key) in ("prediction", *(["decision"] if target.rule is not None else [])):
        raise ModelError(f"--key {key}: the view has another column of that name", hint="rename the key column")
    if dialect.fold_name(key) in map(dialect.fold_name, names):
        what = f"--key {key}: the model uses that column as an attribute, so it cannot identify rows"
        raise ModelError(what, hint="choose another column of the table, such as a row number")
    known: dict[str, str] = {}
    for name in names:
        other = known.setdefault(dialect.fold_name(name), name)
        if other != name:
            what = f"{dialect.product} does not distinguish the columns {other!r} and {name!r}"
            raise ModelError(what, hint="rename one of them in the data and learn again, or use another --dialect")


def label_columns(labels: Sequence[str], dialect: Dialect, key: str) -> list[str]:
    """Return the name of each label's column; no two differ only in case."""
    taken, columns = {key.lower(), "prediction"}, []
    for label in labels:
        name, number = dialect.shorten(f"p_{label}"), 2
        while name.lower() in taken:
            name = dialect.shorten(f"p_{label}", spare=len(f"_{number}")) + f"_{number}"
            number += 1
        taken.add(name.lower())
        columns.append(name)
    return columns


def _decision(labels: Sequence[str], rule: DecisionRule) -> str:
    """Return the expression of the decision between quoted labels; `add_costs` defines its d0, ... and `cheapest`."""
    if rule.costs is not None:
        cases = " ".join(f"WHEN d{y} = cheapest THEN {label}" for y, label in enumerate(labels))
    elif rule.threshold is not None:
        no, yes = labels
        cases = f"WHEN q1 / t >= {number_constant(rule.threshold.value)} THEN {yes} ELSE {no}"
    else:
        cases = " ".join(f"WHEN q{y} = best THEN {label}" for y, label in enumerate(labels))
    abstain = ""
    if rule.abstain_below is not None:
        abstain = f"WHEN best / t < {number_constant(rule.abstain_below)} THEN NULL "
    return f"CASE {abstain}{cases} END"


def _header(
    scorer: PortableScorer, target: ProgramTarget, dialect: Dialect, columns: Sequence[str], stem: str
) -> Iterator[str]:
    options = {name: target.options[name] for name in DEFAULTS}
    table, key = literal(options["input"]), literal(options["key"])
    view = quote_identifier(f"{stem}_scores")
    drops = " ".join(f"DROP TABLE {quote_identifier(f'{stem}_{part}')};" for part in ("levels", "weights"))
    yield HEADER_PREFIX + literal({**options, "view": f"{stem}_scores", "columns": list(columns)})
    yield f"-- P({literal(scorer.class_name)} | row) by the model {literal(target.name)}, for {dialect.product}."
    yield f"-- SELECT * FROM {view} scores the rows of the table or view {table}, which must have the columns"
    yield f"--     {key}, the key, which identifies rows"
    for each in scorer.inputs:
        yield f"--     {literal(each.name)}, {'numbers' if each.codes is None else 'text'}"
    yield "-- To remove everything that this file creates:"
    yield f"--     DROP VIEW {view}; {drops}"
    for label, column in zip(scorer.labels, columns, strict=True):
        if column != f"p_{label}":
            yield f"-- The column {literal(column)} is the probability of the label {literal(label)}."
    if target.rule is not None:
        yield _ABOUT_DECISIONS


def _tables(inputs: Sequence[Input], numbers: Array, dialect: Dialect, stem: str) -> Iterator[str]:
    """Yield the statements that create and fill the tables of levels and of numbers (R, cells)."""
    table = quote_identifier(f"{stem}_levels")
    level = 'level text COLLATE "C"' if dialect.has_arrays else "level TEXT"
    columns = f"input integer NOT NULL, {level} NOT NULL, code integer NOT NULL, PRIMARY KEY (input, level)"
    yield f"CREATE TABLE {table} ({columns}){'' if dialect.has_arrays else ' WITHOUT ROWID'};"
    rows = [
        f"({p}, {quote_text(t)}, {code})" for p, column in enumerate(inputs) for t, code in (column.codes or {}).items()
    ]
    yield from _inserts(table, rows)
    table = quote_identifier(f"{stem}_weights")
    columns = ", ".join(f"s{r} double precision NOT NULL" for r in range(len(numbers)))
    yield f"CREATE TABLE {table} (cell integer PRIMARY KEY, {columns});"
    cells = enumerate(numbers.T.tolist(), start=1)
    rows = [f"({cell}, {', '.join(map(number_constant, entries))})" for cell, entries in cells]
    yield from _inserts(table, rows)


def _inserts(table: str, rows: Sequence[str]) -> Iterator[str]:
    for first in range(0, len(rows), ROWS_PER_INSERT):
        yield f"INSERT INTO {table} VALUES\n" + ",\n".join(rows[first : first + ROWS_PER_INSERT]) + ";"


def run_sql(text: str, rows: list[dict[str, Any]]) -> list[list[float]] | None:
    """Return the probabilities that the view gives the rows, or None if no database that can run it is installed."""
    from bncli.files.exports.sql_databases import score_in_database

    return score_in_database(text, rows)


def decide_sql(text: str, rows: list[dict[str, Any]]) -> list[str | None] | None:
    """Return the decisions of the view for the rows, or None if no database that can run it is installed."""
    from bncli.files.exports.sql_databases import decide_in_database

    return decide_in_database(text, rows)


def remark(text: str) -> str | None:
    """Return a note if another database ran the statements than the one they are written for, else None."""
    from bncli.files.exports.sql_databases import dialect_of, engine_of

    dialect = dialect_of(text)
    engine = engine_of(dialect)
    if engine in (None, dialect.product):
        return None
    return f"{dialect.product} is not installed, so the export was run by {engine}, which accepts the same statements"


FORMAT = ProgramFormat(
    "sql",
    "tables and a view that score rows in a database",
    (".sql",),
    sql_text,
    run_sql,
    "the database",
    remark=remark,
    decide=decide_sql,
    decides=lambda text: f"\n{_ABOUT_DECISIONS}\n" in text,
)
