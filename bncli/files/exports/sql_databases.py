"""Run the statements of an SQL export in a database: SQLite in memory, DuckDB, or a PostgreSQL server.

DuckDB is used if it is installed. PostgreSQL runs as a server of our own in a temporary folder, reachable only through
a socket in that folder. Without PostgreSQL's programs, DuckDB runs its statements, which it takes as they are.
"""

from __future__ import annotations

import csv
import glob
import io
import json
import math
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bncli.errors import BncliError
from bncli.files.exports.sql_dialects import BY_WORD, HEADER_PREFIX, Dialect, quote_identifier
from bncli.files.temporary_folders import temporary_folder

Rows = Sequence[dict[str, Any]]


class _InputTable(NamedTuple):
    """The table that the view reads: a key column with the numbers of the rows, and the columns of the rows.

    create: the statement that creates it. name: its quoted name. columns: the names of the columns in the rows. select:
    the query of the view.
    """

    create: str
    name: str
    columns: list[str]
    select: str


def score_in_database(text: str, rows: Rows) -> list[list[float]] | None:
    """Return the probabilities of every row, or None if no database that can run the statements is installed."""
    scored, n_labels = _run_view(text, rows), len(_read_header(text)["columns"])
    return None if scored is None else [[float(p) for p in row[2 : 2 + n_labels]] for row in scored]


def decide_in_database(text: str, rows: Rows) -> list[str | None] | None:
    """Return each row's decision (None if the rule abstains), or None if no database that can decide is installed."""
    scored = _run_view(text, rows)
    return None if scored is None else [row[-1] or None for row in scored]  # PostgreSQL writes NULL as an empty field


def dialect_of(text: str) -> Dialect:
    """Return the dialect that the statements are written in."""
    return BY_WORD[_read_header(text)["dialect"]]


def engine_of(dialect: Dialect) -> str | None:
    """Return the product that runs the dialect on this machine, or None."""
    if dialect.word == "sqlite" or (dialect.word == "postgres" and postgres_programs()):
        return dialect.product
    try:
        import duckdb  # noqa: F401
    except ImportError:
        return None
    return "DuckDB"


def _read_header(text: str) -> dict[str, Any]:
    header: dict[str, Any] = json.loads(text.split("\n", 1)[0].removeprefix(HEADER_PREFIX))
    return header


def _run_view(text: str, rows: Rows) -> list[Sequence[Any]] | None:
    """Return the rows of the view in the order of the input rows, or None if no database can run the statements."""
    header, dialect = _read_header(text), dialect_of(text)
    engine = engine_of(dialect)
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
        raise _refused(product, str(error)) from error


def _refused(product: str, message: str) -> BncliError:
    """Return the error with the first line of what the database reports."""
    line = next((line.strip() for line in message.splitlines() if line.strip()), "no reason given")
    return BncliError(f"{product} rejects the exported statements: {line[:300]}")


def run_psql(command: Sequence[str], stdin: str) -> str:
    """Return the output of psql; raise BncliError if it fails."""
    done = subprocess.run(command, input=stdin.encode(), capture_output=True)
    if done.returncode:
        raise _refused("PostgreSQL", done.stderr.decode(errors="replace"))
    return done.stdout.decode()


def postgres_programs() -> Path | None:
    """Return the folder with initdb, pg_ctl and psql, or None if there is none or no user to run a server as."""
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    folders += sorted(map(Path, glob.glob("/usr/lib/postgresql/*/bin")), reverse=True)
    complete = (path for path in folders if all((path / name).exists() for name in ("initdb", "pg_ctl", "psql")))
    return next(complete, None) if os.name == "posix" and (os.getuid() != 0 or _server_user()) else None


def _server_user() -> str | None:
    """Return the user that runs the server in place of root, whom PostgreSQL refuses, or None if there is none."""
    import pwd

    names = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in names), None)


@contextmanager
def postgres_server(folder: str) -> Iterator[list[str]]:
    """Run a server in the folder and yield the psql command that connects to it.

    Raises BncliError if it does not start.
    """
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
