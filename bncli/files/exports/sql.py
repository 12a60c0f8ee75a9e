"""Tables and a view that score the rows of a table inside a database: SQLite, DuckDB or PostgreSQL.

    STEM_weights(cell, s0, ...)         the entries of all tables of the model, one column per score
    STEM_levels(input, level, code)     the levels of text columns
    STEM_scores                         the view: KEY, prediction, p_<label>, and decision if there is a decision rule

The cuts of numeric columns are part of the view. STEM is the name of the model, with `_` in place of characters
that are not letters, digits or `_`. The first line of the file describes it for programs.

Before the file is written, its statements are tested in a database: in SQLite in memory, in DuckDB if it is installed,
or in a temporary PostgreSQL server, which can be reached only through a socket in its temporary folder. If PostgreSQL
is not installed, DuckDB runs the statements for PostgreSQL unchanged.

If the column of a label would have the name of the key or of an earlier column, even with different case, its name ends
in `_2`, `_3`, ...
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from bncli.errors import BncliError, ModelError
from bncli.files.exports import ProgramFormat
from bncli.files.exports.programs import ProgramTarget, literal
from bncli.files.exports.sql_layers import (
    BY_WORD,
    DIALECTS,
    HEADER_PREFIX,
    Dialect,
    number_constant,
    query_layers,
    quote_identifier,
    quote_text,
    sql_model,
)

if TYPE_CHECKING:
    from pathlib import Path

    from bncli.engine.kernels.arrays import Array
    from bncli.engine.prediction.portable import Input, PortableScorer

DEFAULTS = {"dialect": DIALECTS[0], "input": "input", "key": "id"}
ROWS_PER_INSERT = 500
_ABOUT_DECISIONS = '-- The column "decision" is NULL if the model abstains.'
Rows = Sequence[dict[str, Any]]


def sql_text(scorer: PortableScorer, target: ProgramTarget) -> str:
    """Return the SQL script.

    Raises ModelError if the model has too many table entries, or if the database does not allow its names or its number
    of columns.
    """
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
    if (rule := target.rule) is not None:
        # `add_costs` defines the columns d0, ... and `cheapest`.
        cases = tests
        if rule.costs is not None:
            cases = " ".join(f"WHEN d{y} = cheapest THEN {label}" for y, label in enumerate(labels))
        elif rule.threshold is not None:
            no, yes = labels
            cases = f"WHEN q1 / t >= {number_constant(rule.threshold.value)} THEN {yes} ELSE {no}"
        abstain = ""
        if rule.abstain_below is not None:
            abstain = f"WHEN best / t < {number_constant(rule.abstain_below)} THEN NULL "
        selected.append(f"CASE {abstain}{cases} END AS decision")
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
    """Return the column name of each label; the names, the key and `prediction` differ even if case is ignored."""
    taken, columns = {key.lower(), "prediction"}, []
    for label in labels:
        name, number = dialect.shorten(f"p_{label}"), 2
        while name.lower() in taken:
            name = dialect.shorten(f"p_{label}", spare=len(f"_{number}")) + f"_{number}"
            number += 1
        taken.add(name.lower())
        columns.append(name)
    return columns


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
    """Yield the statements that create and fill the tables of levels and of `numbers` (scores, cells)."""
    levels, weights = (quote_identifier(f"{stem}_{part}") for part in ("levels", "weights"))
    level = 'level text COLLATE "C"' if dialect.has_arrays else "level TEXT"
    columns = f"input integer NOT NULL, {level} NOT NULL, code integer NOT NULL, PRIMARY KEY (input, level)"
    create_levels = f"CREATE TABLE {levels} ({columns}){'' if dialect.has_arrays else ' WITHOUT ROWID'};"
    level_rows = [
        f"({p}, {quote_text(t)}, {code})" for p, column in enumerate(inputs) for t, code in (column.codes or {}).items()
    ]
    columns = ", ".join(f"s{r} double precision NOT NULL" for r in range(len(numbers)))
    create_weights = f"CREATE TABLE {weights} (cell integer PRIMARY KEY, {columns});"
    cells = enumerate(numbers.T.tolist(), start=1)
    weight_rows = [f"({cell}, {', '.join(map(number_constant, entries))})" for cell, entries in cells]
    for create, table, rows in ((create_levels, levels, level_rows), (create_weights, weights, weight_rows)):
        yield create
        for first in range(0, len(rows), ROWS_PER_INSERT):
            yield f"INSERT INTO {table} VALUES\n" + ",\n".join(rows[first : first + ROWS_PER_INSERT]) + ";"


class _InputTable(NamedTuple):
    """The table that the view reads: a key column with row numbers, and the columns of the rows.

    create: the statement that creates it. name: its quoted name. columns: the names of the columns in the rows. select:
    the query of the view.
    """

    create: str
    name: str
    columns: list[str]
    select: str


def run_sql(text: str, rows: Rows) -> list[list[float]] | None:
    """Return the probabilities (labels) of each row, or None if no database that can run the script is installed."""
    scored, n_labels = _run_view(text, rows), len(_read_header(text)[0]["columns"])
    return None if scored is None else [[float(p) for p in row[2 : 2 + n_labels]] for row in scored]


def decide_sql(text: str, rows: Rows) -> list[str | None] | None:
    """Return each row's decision (None if the rule abstains), or None if no database can run the script."""
    scored = _run_view(text, rows)
    return None if scored is None else [row[-1] or None for row in scored]  # PostgreSQL writes NULL as an empty field


def remark(text: str) -> str | None:
    """Return a note if the script is run by a database other than the one it is written for, otherwise None."""
    dialect = _read_header(text)[1]
    engine = _engine_of(dialect)
    if engine in (None, dialect.product):
        return None
    return f"{dialect.product} is not installed, so the export was run by {engine}, which accepts the same statements"


def _engine_of(dialect: Dialect) -> str | None:
    """Return the name of the installed database that runs the dialect, or None."""
    if dialect.word == "sqlite" or (dialect.word == "postgres" and postgres_programs()):
        return dialect.product
    try:
        import duckdb  # noqa: F401
    except ImportError:
        return None
    return "DuckDB"


def _read_header(text: str) -> tuple[dict[str, Any], Dialect]:
    """Parse the first line of the file, and return it with the dialect that it names."""
    import json

    header: dict[str, Any] = json.loads(text.split("\n", 1)[0].removeprefix(HEADER_PREFIX))
    return header, BY_WORD[header["dialect"]]


def _run_view(text: str, rows: Rows) -> list[Sequence[Any]] | None:
    """Run the script, and return the rows of its view in input order, or None if no database can run it."""
    header, dialect = _read_header(text)
    engine = _engine_of(dialect)
    if engine is None:
        return None
    kinds: dict[str, str] = {}
    for row in rows:
        for name, value in row.items():
            kinds[name] = "double precision" if isinstance(value, float) else kinds.get(name, "text")
    columns = [f"{quote_identifier(header['key'])} integer"]
    columns += [f"{quote_identifier(dialect.shorten(name))} {kind}" for name, kind in kinds.items()]
    table_name = quote_identifier(header["input"])
    create = f"CREATE TABLE {table_name} ({', '.join(columns)})"
    table = _InputTable(create, table_name, list(kinds), f"SELECT * FROM {quote_identifier(header['view'])}")
    engines = {"SQLite": _run_sqlite, "DuckDB": _run_duckdb, "PostgreSQL": _run_postgres}
    return sorted(engines[engine](text, rows, table), key=lambda scored: int(scored[0]))


def _run_sqlite(text: str, rows: Rows, table: _InputTable) -> list[Sequence[Any]]:
    import math
    import sqlite3
    from concurrent.futures import ThreadPoolExecutor

    marks = ", ".join("?" * (len(table.columns) + 1))
    # The query runs in another thread, because only this one receives ^C.
    base = sqlite3.connect(":memory:", check_same_thread=False)
    with closing(base), _database_errors("SQLite", sqlite3.Error), ThreadPoolExecutor(1) as executor:
        try:
            base.execute("SELECT exp(1.0)")
        except sqlite3.OperationalError:  # SQLite was built without mathematical functions
            base.create_function("exp", 1, math.exp, deterministic=True)
            base.create_function("ln", 1, math.log, deterministic=True)
        base.execute(table.create)
        numbered = ([i, *(row[name] for name in table.columns)] for i, row in enumerate(rows))
        base.executemany(f"INSERT INTO {table.name} VALUES ({marks})", numbered)
        base.executescript(text)
        query = executor.submit(lambda: base.execute(table.select).fetchall())
        try:
            return query.result()
        except KeyboardInterrupt:
            base.interrupt()
            raise


def _run_duckdb(text: str, rows: Rows, table: _InputTable) -> list[Sequence[Any]]:
    import duckdb
    import pyarrow as pa

    columns = [pa.array([row[name] for row in rows]) for name in table.columns]
    with closing(duckdb.connect()) as base, _database_errors("DuckDB", duckdb.Error):
        base.execute(table.create)
        names = [f"c{i}" for i in range(len(columns) + 1)]
        base.register("bncli_rows", pa.table([pa.array(range(len(rows))), *columns], names))
        base.execute(f"INSERT INTO {table.name} SELECT * FROM bncli_rows")
        base.execute(text)
        return list(base.execute(table.select).fetchall())


def _run_postgres(text: str, rows: Rows, table: _InputTable) -> list[Sequence[Any]]:
    import csv
    import io

    from bncli.files.atomic import temporary_folder

    lines = []
    for i, row in enumerate(rows):
        fields = [str(i)]
        for value in (row[name] for name in table.columns):
            if isinstance(value, str):
                fields.append('"' + value.replace('"', '""') + '"')
            else:
                fields.append("" if value is None else repr(value))  # an empty field is NULL
        lines.append(",".join(fields) + "\n")
    with temporary_folder() as folder, postgres_server(folder) as psql:
        run_psql(psql, f"{table.create};\n{text}")
        run_psql([*psql, "-c", f"COPY {table.name} FROM STDIN (FORMAT csv)"], "".join(lines))
        query = f"COPY ({table.select}) TO STDOUT (FORMAT csv)"
        return list(csv.reader(io.StringIO(run_psql([*psql, "-c", query], ""))))


@contextmanager
def _database_errors(product: str, kind: type[Exception]) -> Iterator[None]:
    try:
        yield
    except kind as error:
        raise _rejected(product, str(error)) from error


def _rejected(product: str, message: str) -> BncliError:
    """Return an error with the first line of the database's message."""
    line = next((line.strip() for line in message.splitlines() if line.strip()), "no reason given")
    return BncliError(f"{product} rejects the exported statements: {line[:300]}")


def run_psql(command: Sequence[str], stdin: str) -> str:
    """Run psql and return its output; raise BncliError if it fails."""
    import subprocess

    done = subprocess.run(command, input=stdin.encode(), capture_output=True)
    if done.returncode:
        raise _rejected("PostgreSQL", done.stderr.decode(errors="replace"))
    return done.stdout.decode()


def postgres_programs() -> Path | None:
    """Return the folder with initdb, pg_ctl and psql, or None if there is none or no user can run a server.

    Only POSIX systems are supported; the result is None on others.
    """
    import glob
    import shutil
    from pathlib import Path

    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    # the newest version first: 16 before 9.6
    installed = map(Path, glob.glob("/usr/lib/postgresql/[0-9]*/bin"))
    folders += sorted(installed, key=lambda path: [*map(int, re.findall("[0-9]+", path.parent.name))], reverse=True)
    complete = (path for path in folders if all((path / name).exists() for name in ("initdb", "pg_ctl", "psql")))
    return next(complete, None) if os.name == "posix" and (os.getuid() != 0 or _server_user()) else None


def _server_user() -> str | None:
    """Return the user who runs the server in place of root, whom PostgreSQL refuses, or None if there is none."""
    import pwd

    names = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in names), None)


@contextmanager
def postgres_server(folder: str) -> Iterator[list[str]]:
    """Run a PostgreSQL server in the folder and yield the psql command that connects to it.

    Raises BncliError if it does not start.
    """
    import shutil
    import subprocess

    programs = postgres_programs()
    assert programs is not None
    user = _server_user() if os.getuid() == 0 else None
    if user is not None:
        shutil.chown(folder, user)
    control = [str(programs / "pg_ctl"), "-D", f"{folder}/data"]
    initdb = str(programs / "initdb")
    init = [initdb, "-D", f"{folder}/data", "-A", "trust", "-U", "bncli", "-E", "UTF8", "--locale=C", "-N"]
    socket = f"-k '{folder}' -c listen_addresses='' -c fsync=off"
    start = [*control, "-w", "-l", f"{folder}/log", "-o", socket, "start"]
    # Without pipes, which the server that pg_ctl starts would keep open.
    none = subprocess.DEVNULL
    options: dict[str, Any] = {"user": user, "cwd": folder, "stdin": none, "stdout": none, "stderr": none}
    try:
        if subprocess.run(init, **options).returncode or subprocess.run(start, **options).returncode:
            what = "the PostgreSQL server that should test the export does not start"
            raise BncliError(what, hint=f"run {initdb} to see its error message, or use another --dialect")
        yield [str(programs / "psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", folder, "-U", "bncli", "postgres"]
    finally:
        subprocess.run([*control, "-m", "immediate", "-w", "stop"], **options)


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
