"""Runs the statements of an export in a database: SQLite in memory, DuckDB where it is installed, a PostgreSQL server.

The server is one of our own, in a folder that goes with it, on a socket alone. Where there are no programs of
PostgreSQL, DuckDB takes its statements as they are.
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
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from bncli.errors import BncliError
from bncli.files.exports.sql_dialects import BEGINNING, BY_WORD, Dialect, identifier

Rows = Sequence[dict[str, Any]]


def run(text: str, rows: Rows) -> list[list[float]] | None:
    """Return the probabilities of every row, by the database that the text is for; None where nothing can run it."""
    found, n_labels = _in_order(text, rows), len(_header(text)["columns"])
    return None if found is None else [[float(p) for p in row[2 : 2 + n_labels]] for row in found]


def _in_order(text: str, rows: Rows) -> list[Sequence[Any]] | None:
    """Return the view, row by row."""
    known, dialect = _header(text), dialect_of(text)
    engine = engine_of(dialect)
    if engine is None:
        return None
    found = {"SQLite": _by_sqlite, "DuckDB": _by_duckdb, "PostgreSQL": _by_postgres}[engine](text, rows, known, dialect)
    return sorted(found, key=lambda row: int(row[0]))


def _header(text: str) -> dict[str, Any]:
    known: dict[str, Any] = json.loads(text.split("\n", 1)[0].removeprefix(BEGINNING))
    return known


def _by_sqlite(text: str, rows: Rows, known: dict[str, Any], dialect: Dialect) -> list[Sequence[Any]]:
    """Return the result of the view, queried in another thread because only this one receives signals."""
    create, names = _table(rows, known, dialect)
    marks = ", ".join("?" * (len(names) + 1))
    base = sqlite3.connect(":memory:", check_same_thread=False)
    with closing(base), _refusal(dialect.product, sqlite3.Error), ThreadPoolExecutor(1) as beside:
        try:
            base.execute("SELECT exp(1.0)")
        except sqlite3.OperationalError:  # built without the functions of mathematics
            base.create_function("exp", 1, math.exp, deterministic=True)
            base.create_function("ln", 1, math.log, deterministic=True)
        base.execute(create)
        numbered = ([i, *(row[name] for name in names)] for i, row in enumerate(rows))
        base.executemany(f"INSERT INTO {_of(known)} VALUES ({marks})", numbered)
        base.executescript(text)
        asked = beside.submit(lambda: base.execute(f"SELECT * FROM {identifier(known['view'])}").fetchall())
        try:
            return asked.result()
        except KeyboardInterrupt:
            base.interrupt()
            raise


def _table(rows: Rows, known: dict[str, Any], dialect: Dialect) -> tuple[str, list[str]]:
    """Return the statement that creates the table of rows, with the key, and the names of the rows' values."""
    kinds: dict[str, str] = {}
    for row in rows:
        for name, value in row.items():
            kinds[name] = "double precision" if isinstance(value, float) else kinds.get(name, "text")
    named = [f"{identifier(dialect.shortened(name))} {kind}" for name, kind in kinds.items()]
    return f"CREATE TABLE {_of(known)} ({', '.join([f'{_key(known)} integer', *named])})", list(kinds)


def _of(known: dict[str, Any]) -> str:
    return identifier(known["input"])


def _key(known: dict[str, Any]) -> str:
    return identifier(known["key"])


@contextmanager
def _refusal(product: str, kind: type[Exception]) -> Iterator[None]:
    try:
        yield
    except kind as error:
        raise _refused(product, str(error)) from error


def _refused(product: str, said: str) -> BncliError:
    """Return one line of what a database says."""
    line = next((line.strip() for line in said.splitlines() if line.strip()), "no reason given")
    return BncliError(f"{product} refuses what would be written: {line[:300]}")


def _by_duckdb(text: str, rows: Rows, known: dict[str, Any], dialect: Dialect) -> list[Sequence[Any]]:
    import duckdb
    import pyarrow as pa

    create, names = _table(rows, known, dialect)
    columns = [[row[name] for row in rows] for name in names]
    with closing(duckdb.connect()) as base, _refusal("DuckDB", duckdb.Error):
        base.execute(create)
        base.register(
            "bncli_rows",
            pa.table([pa.array(c) for c in [range(len(rows)), *columns]], [f"c{i}" for i in range(len(columns) + 1)]),
        )
        base.execute(f"INSERT INTO {_of(known)} SELECT * FROM bncli_rows")
        base.execute(text)
        return list(base.execute(f"SELECT * FROM {identifier(known['view'])}").fetchall())


def _by_postgres(text: str, rows: Rows, known: dict[str, Any], dialect: Dialect) -> list[Sequence[Any]]:
    create, names = _table(rows, known, dialect)
    content = "".join(",".join([str(i), *(_field(row[name]) for name in names)]) + "\n" for i, row in enumerate(rows))
    with tempfile.TemporaryDirectory(prefix="bncli-") as folder, postgres_server(folder) as psql:
        _engine_message(psql, f"{create};\n{text}")
        _engine_message([*psql, "-c", f"COPY {_of(known)} FROM STDIN (FORMAT csv)"], content)
        query = f"COPY (SELECT * FROM {identifier(known['view'])}) TO STDOUT (FORMAT csv)"
        return list(csv.reader(io.StringIO(_engine_message([*psql, "-c", query], ""))))


def _field(value: float | str | None) -> str:
    """Return a field of CSV; nothing is NULL."""
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"'
    return "" if value is None else repr(value)


def _engine_message(command: Sequence[str], given: str) -> str:
    done = subprocess.run(command, input=given.encode(), capture_output=True)
    if done.returncode:
        raise _refused("PostgreSQL", done.stderr.decode(errors="replace"))
    return done.stdout.decode()


def decisions(text: str, rows: Rows) -> list[str | None] | None:
    """Return the decision of every row, None for none, likewise."""
    found = _in_order(text, rows)
    return None if found is None else [row[-1] or None for row in found]  # PostgreSQL writes NULL as no text


def dialect_of(text: str) -> Dialect:
    """Return what the text was written for."""
    return BY_WORD[_header(text)["dialect"]]


def engine_of(dialect: Dialect) -> str | None:
    """Return the database that runs the dialect here."""
    if dialect.word == "sqlite" or (dialect.word == "postgres" and postgres_programs()):
        return dialect.product
    try:
        import duckdb  # noqa: F401
    except ImportError:
        return None
    return "DuckDB"


def postgres_programs() -> Path | None:
    """Return the folder with initdb, pg_ctl and psql; None where there is none, or no user to run a server as."""
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    folders += sorted(map(Path, glob.glob("/usr/lib/postgresql/*/bin")), reverse=True)
    found = (one for one in folders if all((one / name).exists() for name in ("initdb", "pg_ctl", "psql")))
    return next(found, None) if os.name == "posix" and (os.getuid() != 0 or _other_user()) else None


def _other_user() -> str | None:
    """Whom the server belongs to where we are root, as which it would not run."""
    import pwd

    names = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in names), None)


@contextmanager
def postgres_server(folder: str) -> Iterator[list[str]]:
    """Yield the words of psql, for a server that lives in the folder, on a socket in it, until the end."""
    programs = postgres_programs()
    assert programs is not None
    user = _other_user() if os.getuid() == 0 else None
    if user is not None:
        shutil.chown(folder, user)
    control = [str(programs / "pg_ctl"), "-D", f"{folder}/data"]
    made = [str(programs / "initdb"), "-D", f"{folder}/data", "-A", "trust", "-U", "bncli", "-E", "UTF8", "--locale=C"]
    socket = f"-k '{folder}' -c listen_addresses='' -c fsync=off"

    def done(*command: str) -> bool:
        # No pipes: the server that pg_ctl starts would keep them open.
        none = subprocess.DEVNULL
        return not subprocess.run(command, user=user, cwd=folder, stdin=none, stdout=none, stderr=none).returncode

    try:
        if not (done(*made, "-N") and done(*control, "-w", "-l", f"{folder}/log", "-o", socket, "start")):
            what = "the server of PostgreSQL, in which the file is run, does not start"
            raise BncliError(what, hint=f"see what {made[0]} says here, or take another --dialect")
        yield [str(programs / "psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", folder, "-U", "bncli", "postgres"]
    finally:
        done(*control, "-m", "immediate", "-w", "stop")
