"""Tables and a view that score the rows of a table inside a database: SQLite, DuckDB or PostgreSQL.

    STEM_weights(cell, s0, ...)         the numbers of all tables, a column a score
    STEM_levels(input, level, code)     the texts that training knew
    STEM_scores                         the view: KEY, prediction, p_<label>, of a model that decides decision; the cuts
                                        of numbers stand in it

STEM is the name of the model with `_` for what is no letter, digit or `_`. The first line of the file says, for
programs, how it was written. The statements are run before the file is kept: `bncli.files.exports.sql_databases`.

Conventions: labels whose columns would have one name, capitals aside, get `_2`, `_3`, ... behind it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from bncli.errors import ModelError
from bncli.files.exports import ProgramFormat
from bncli.files.exports.programs import ProgramTarget, text_of
from bncli.files.exports.sql_dialects import BEGINNING, BY_WORD, DIALECTS, Dialect, identifier, literal, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bncli.engine.model import DecisionRule
    from bncli.engine.prediction.portable import Input, PortableScorer
    from bncli.files.exports.sql_layers import SqlModel


DEFAULTS = {"dialect": DIALECTS[0], "input": "input", "key": "id"}
ROWS = 500
"""Of a statement that inserts."""
_OF_DECISIONS = '-- The column "decision" is NULL where nothing is decided.'


def write_sql(scorer: PortableScorer, target: ProgramTarget) -> str:
    """Return the text of the file; ModelError where a name or a number of columns is more than the database has."""
    from bncli.files.exports.sql_layers import query, sql_model

    target = target._replace(options={**DEFAULTS, **target.options})
    dialect = BY_WORD[target.options["dialect"]]
    stem = dialect.shortened(re.sub(r"\W", "_", target.name), spare=len("_weights"))
    _check_names(scorer, target, dialect, stem)
    model = sql_model(scorer)
    columns = label_columns(scorer.labels, dialect, target.options["key"])
    layers = query(scorer, model, dialect, target, stem)
    key, decided = target.options["key"], _decided(scorer.labels, target.rule)
    parts = [
        *_header(scorer, target, dialect, columns, stem),
        "BEGIN;",
        *_levels(scorer.inputs, dialect, stem),
        *_weights(model, stem),
        f"CREATE VIEW {identifier(f'{stem}_scores')} AS\n{layers.text()}",
        _selection(scorer.labels, columns, key, layers.texts[-1][0], decided) + ";",
        "COMMIT;",
    ]
    return "\n".join(parts) + "\n"


def _check_names(scorer: PortableScorer, target: ProgramTarget, dialect: Dialect, stem: str) -> None:
    table, key = target.options["input"], target.options["key"]
    levels = (level for one in scorer.inputs for level in one.codes or ())
    names = [one.name for one in scorer.inputs]
    for text in (table, key, *names, *scorer.labels, *levels):
        if "\0" in text:
            raise ModelError(f"{text!r} cannot be written as SQL: it holds the character NUL")
    own = {dialect.same_name(f"{stem}_{part}") for part in ("scores", "weights", "levels")}
    if dialect.same_name(table) in own:
        raise ModelError(f"--input {table} is a table that the file makes", hint="name another, or the model's file")
    if dialect.same_name(key) in ("prediction", *(["decision"] if target.rule is not None else [])):
        raise ModelError(f"--key {key}: the view has another column of that name")
    known: dict[str, str] = {}
    if dialect.same_name(key) in map(dialect.same_name, names):
        what = f"--key {key}: the model uses that column, which does not tell rows apart"
        raise ModelError(what, hint="name another column of the table, such as a number of the row")
    for name in names:
        other = known.setdefault(dialect.same_name(name), name)
        if other != name:
            what = f"{dialect.product} cannot tell the columns {other!r} and {name!r} apart"
            raise ModelError(what, hint="rename one of them in the data and learn again, or take another --dialect")


def label_columns(labels: Sequence[str], dialect: Dialect, key: str) -> list[str]:
    """Return the name of every label's column, all distinct, capitals aside."""
    taken, found = {key.lower(), "prediction"}, []
    for label in labels:
        name, again = dialect.shortened(f"p_{label}"), 2
        while name.lower() in taken:
            name, again = dialect.shortened(f"p_{label}", spare=len(f"_{again}")) + f"_{again}", again + 1
        taken.add(name.lower())
        found.append(name)
    return found


def _header(
    scorer: PortableScorer, target: ProgramTarget, dialect: Dialect, columns: Sequence[str], stem: str
) -> Iterator[str]:
    known = {name: target.options[name] for name in DEFAULTS}
    yield BEGINNING + text_of({**known, "view": f"{stem}_scores", "columns": list(columns)})
    yield f"-- P({text_of(scorer.class_name)} | row) by the model {text_of(target.name)}, for {dialect.product}."
    yield f"-- The table {text_of(known['input'])} has the columns of the data and the key {text_of(known['key'])}."
    view = identifier(f"{stem}_scores")
    yield f"--     SELECT * FROM {view}"
    yield "-- To take it away again:"
    yield f"--     DROP VIEW {view}; " + " ".join(
        f"DROP TABLE {identifier(f'{stem}_{part}')};" for part in ("levels", "weights")
    )
    for label, column in zip(scorer.labels, columns, strict=True):
        if column != f"p_{label}":
            yield f"-- The column {text_of(column)} is of the label {text_of(label)}."
    if target.rule is not None:
        yield _OF_DECISIONS


def _levels(inputs: Sequence[Input], dialect: Dialect, stem: str) -> Iterator[str]:
    table = identifier(f"{stem}_levels")
    level = 'level text COLLATE "C"' if dialect.has_arrays else "level TEXT"
    columns = f"input integer NOT NULL, {level} NOT NULL, code integer NOT NULL, PRIMARY KEY (input, level)"
    yield f"CREATE TABLE {table} ({columns}){'' if dialect.has_arrays else ' WITHOUT ROWID'};"
    rows = [f"({p}, {literal(t)}, {code})" for p, one in enumerate(inputs) for t, code in (one.codes or {}).items()]
    yield from _inserts(table, rows)


def _weights(model: SqlModel, stem: str) -> Iterator[str]:
    table = identifier(f"{stem}_weights")
    columns = ", ".join(f"s{r} double precision NOT NULL" for r in range(len(model.numbers)))
    yield f"CREATE TABLE {table} (cell integer PRIMARY KEY, {columns});"
    cells = enumerate(model.numbers.T.tolist(), start=1)
    yield from _inserts(table, [f"({cell}, {', '.join(map(number, entries))})" for cell, entries in cells])


def _inserts(table: str, rows: Sequence[str]) -> Iterator[str]:
    for first in range(0, len(rows), ROWS):
        yield f"INSERT INTO {table} VALUES\n" + ",\n".join(rows[first : first + ROWS]) + ";"


def _decided(labels: Sequence[str], rule: DecisionRule | None) -> str:
    """Return the expression of the decision, "" without a rule; d0, ..., `cheapest` as in `sql_layers.add_costs`."""
    if rule is None:
        return ""
    if rule.costs is not None:
        cases = " ".join(f"WHEN d{y} = cheapest THEN {literal(label)}" for y, label in enumerate(labels))
    elif rule.threshold is not None:
        no, yes = map(literal, labels)
        cases = f"WHEN q1 / t >= {number(rule.threshold.value)} THEN {yes} ELSE {no}"
    else:
        cases = " ".join(f"WHEN q{y} = best THEN {literal(label)}" for y, label in enumerate(labels))
    none = "" if rule.abstain_below is None else f"WHEN best / t < {number(rule.abstain_below)} THEN NULL "
    return f"CASE {none}{cases} END"


def _selection(labels: Sequence[str], columns: Sequence[str], key: str, source: str, decided: str) -> str:
    """Return what the view shows of the last layer; the first of labels that are equally probable."""
    tests = " ".join(f"WHEN q{y} = best THEN {literal(label)}" for y, label in enumerate(labels))
    shown = [f"row_key AS {identifier(key)}", f"CASE {tests} END AS prediction"]
    shown += [f"q{y} / t AS {identifier(column)}" for y, column in enumerate(columns)]
    shown += [f"{decided} AS decision"] if decided else []
    return "SELECT\n  " + ",\n  ".join(shown) + f"\nFROM {source}"


def run_sql(text: str, rows: list[dict[str, Any]]) -> list[list[float]] | None:
    """Return what the view says of the rows, by the database that is at hand; None where there is none."""
    from bncli.files.exports.sql_databases import run

    return run(text, rows)


def decide_sql(text: str, rows: list[dict[str, Any]]) -> list[str | None] | None:
    """Return what the view decides for the rows, by the database that is at hand; None where there is none."""
    from bncli.files.exports.sql_databases import decisions

    return decisions(text, rows)


def remark(text: str) -> str | None:
    """Where another database ran it than it is for."""
    from bncli.files.exports.sql_databases import dialect_of, engine_of

    dialect = dialect_of(text)
    engine = engine_of(dialect)
    if engine in (None, dialect.product):
        return None
    return f"{dialect.product} is not at hand: {engine} ran what was written, which takes the same statements"


FORMAT = ProgramFormat(
    "sql",
    "tables and a view that score rows in a database",
    (".sql",),
    write_sql,
    run_sql,
    "the database",
    remark=remark,
    decide=decide_sql,
    decides=lambda text: f"\n{_OF_DECISIONS}\n" in text,
)
