"""Tables and a view say in a database what the model says, whatever its names, and are refused where they cannot."""

from __future__ import annotations

import json
import signal
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from bncli.engine.data.schema import CategoricalAttribute
from bncli.engine.model import Model
from bncli.engine.prediction.portable import Input, PortableScorer, PortableStage, PortableTable, make_portable
from bncli.engine.prediction.verification import probe_rows
from bncli.errors import BncliError, ModelError
from bncli.files.exports import sql
from bncli.files.exports.programs import ProgramTarget
from bncli.files.exports.sql_layers import POSTGRES, SQLITE
from tests.paths import Case, learnt_paths, model_of
from tests.portable_oracle import portable_probabilities
from tests.strategies import models, regrouped_models
from tests.sweeps import every_pair

NASTY = ('it\'s "so"', "back\\slash", "new\nline", "SELECT", "-- x", "; DROP", "😀{}", "%s :x ?", "10", "a" * 62, "$$")
NEEDS_SERVER = pytest.mark.skipif(sql.postgres_programs() is None, reason="PostgreSQL is not at hand")


def target(dialect: str, **options: str) -> ProgramTarget:
    return ProgramTarget("m 1", ("", "?"), ("", "?", "NA"), {"dialect": dialect, **options})


def nasty(model: Model) -> Model:
    schema = model.schema
    attributes = tuple(
        replace(a, name=NASTY[i], **({"levels": NASTY[: len(a.levels)]} if isinstance(a, CategoricalAttribute) else {}))
        for i, a in enumerate(schema.attributes)
    )
    return replace(
        model, schema=replace(schema, class_name="a\nclass", labels=NASTY[-len(schema.labels) :], attributes=attributes)
    )


def difference(model: Model, dialect: str) -> float:
    probes = probe_rows(model, 40, np.random.default_rng(0))
    written = sql.sql_text(make_portable(model), target(dialect, input='my "rows"', key="the key"))
    said = sql.run_sql(written, probes.rows())
    assert said is not None
    return float(np.abs(np.array(said).T - probes.probabilities).max())


@settings(deadline=None)
@given(models(), regrouped_models())
def test_sqlite(model: Model, regrouped: Model) -> None:
    for one in (model, nasty(model), regrouped):
        assert difference(one, "sqlite") < 1e-12


def test_a_long_run_of_sqlite_ends_when_it_is_asked_to() -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n) SELECT i, 0, 0, 0 FROM n WHERE i < 0"
    header = json.dumps({"dialect": "sqlite", "input": "rows", "key": "id", "view": "v", "columns": ["a", "b"]})
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            sql.run_sql(f"{sql.HEADER_PREFIX}{header}\nCREATE VIEW v AS {endless};", [{"x": 1.0}])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@settings(deadline=None)
@given(learnt_paths())
def test_a_path(case: Case) -> None:
    assert difference(model_of(*case[:3]), "sqlite") < 1e-12


@settings(deadline=None, max_examples=8)
@given(models(), regrouped_models(), learnt_paths())
def test_duckdb(model: Model, regrouped: Model, case: Case) -> None:
    pytest.importorskip("duckdb")
    for one in (nasty(model), regrouped, model_of(*case[:3])):
        assert difference(one, "duckdb") < 1e-12


@pytest.mark.slow
@NEEDS_SERVER
@settings(deadline=None, max_examples=1)
@given(regrouped_models(), learnt_paths())
def test_postgres(regrouped: Model, case: Case) -> None:
    for one in (nasty(regrouped), model_of(*case[:3])):
        assert difference(one, "postgres") < 1e-12


def text_input(name: str, levels: tuple[str, ...] = ("u", "v")) -> Input:
    n = len(levels)
    return Input(name, None, {level: i for i, level in enumerate(levels)}, n, n + 1, (1 / (n + 1),) * (n + 1))


def number_input(name: str) -> Input:
    return Input(name, (0.1, 0.30000000000000004, 1e300), None, 4, 5, (0.2,) * 5)


def scorer_of(*inputs: Input, labels: tuple[str, ...] = ("no", "yes"), stages: int = 1) -> PortableScorer:
    """A table an input, of scores that tell all codes apart; labels of equal scores where there are no inputs."""
    rng = np.random.default_rng(len(inputs))
    n_rows = len(labels) if len(labels) > 2 else 1
    sizes = [one.unobserved + 1 for one in inputs]
    found = tuple(
        PortableStage(
            0.5**s,
            s % 3 == 0,
            np.zeros(n_rows),
            tuple(
                PortableTable((p,), (tuple(range(n)),), (n,), rng.normal(size=(n_rows, n))) for p, n in enumerate(sizes)
            ),
        )
        for s in range(stages)
    )
    return PortableScorer("class", labels, inputs, found)


def view(scorer: PortableScorer, table: str, *rows: tuple[Any, ...], **options: str) -> list[dict[str, Any]]:
    """What SQLite's view says of a table made by a statement of the user."""
    with closing(sqlite3.connect(":memory:")) as base:
        base.execute(table)
        base.executemany(f"INSERT INTO input VALUES ({', '.join('?' * len(rows[0]))})", rows)
        base.executescript(sql.sql_text(scorer, target("sqlite", **options)))
        found = base.execute("SELECT * FROM m_1_scores")
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found]


def expected(scorer: PortableScorer, *values: float | str | None) -> list[float]:
    codes = [np.array([one.code(value)]) for one, value in zip(scorer.inputs, values, strict=True)]
    return list(portable_probabilities(scorer, codes)[:, 0])


@pytest.mark.parametrize(
    ("stages", "dialect", "labels"), every_pair([1, 3, 17, 40], ["sqlite", "duckdb"], [("a", "b"), ("a", "b", "c")])
)
def test_stages_that_go_on_and_begin_anew(stages: int, dialect: str, labels: tuple[str, ...]) -> None:
    if dialect == "duckdb":
        pytest.importorskip("duckdb")
    scorer = scorer_of(text_input("t"), number_input("n"), labels=labels, stages=stages)
    rows: list[dict[str, Any]] = [{"t": t, "n": n} for t in ("u", None, "?", "w") for n in (0.1, 0.2, None, 1e301)]
    said = sql.run_sql(sql.sql_text(scorer, target(dialect)), rows)
    assert said is not None
    for row, found in zip(rows, said, strict=True):
        value = None if row["t"] == "?" else row["t"]
        assert found == pytest.approx(expected(scorer, value, row["n"]), abs=1e-14)


def test_texts_in_place_of_values() -> None:
    scorer = scorer_of(text_input("t", ("1", "2")), number_input("n"))
    table = "CREATE TABLE input (id, T, n TEXT)"
    rows = [(1, " 1\t", " 0.2"), (2, 2.0, "?"), (3, "?", "NA"), (4, 2, ".35"), (5, "9", "-1e3")]
    said = view(scorer, table, *rows)
    values = [("1", 0.2), ("2", None), (None, None), ("2", 0.35), ("9", -1e3)]
    for row, value in zip(said, values, strict=True):
        p = expected(scorer, *value)
        assert [row["p_no"], row["p_yes"]] == pytest.approx(p, abs=1e-14)
        assert row["prediction"] == ("no", "yes")[int(np.argmax(p))]
    assert [row["id"] for row in said] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("kind", "value", "level"),
    [
        ("double", 10.0, "10"),
        ("double", 100.5, "100.5"),
        ("double", 1.05, "1.05"),
        ("integer", 10, "10"),
        ("text", "10.0", "10.0"),
        ("text", " 10.\t", "10."),
    ],
)
def test_levels_that_are_numbers_in_duckdb(kind: str, value: Any, level: str) -> None:
    """A whole number is written without its zeros behind the point, and without these alone; a text as it is."""
    duckdb = pytest.importorskip("duckdb")
    levels = ("10", "10.0", "10.", "1", "100", "100.5", "1.05", "15", "1005")
    scorer = scorer_of(text_input("t", levels))
    for dialect in ("duckdb", "postgres"):
        with duckdb.connect() as base:
            base.execute(f"CREATE TABLE input (id integer, t {kind})")
            base.execute("INSERT INTO input VALUES (1, ?)", [value])
            base.execute(sql.sql_text(scorer, target(dialect)))
            found = base.execute("SELECT p_no, p_yes FROM m_1_scores").fetchone()
        assert found == pytest.approx(expected(scorer, level), abs=1e-14)


@pytest.mark.parametrize("bad", ["abc", "1,5", "1-2", "x];["])
def test_a_text_that_is_no_number_is_an_error(bad: str) -> None:
    with pytest.raises(sqlite3.OperationalError, match="malformed JSON"):
        view(scorer_of(number_input("n")), "CREATE TABLE input (id, n TEXT)", (1, bad))


def test_a_column_that_is_not_there_is_an_error() -> None:
    """SQLite would take its quoted name for a text."""
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        view(scorer_of(text_input("t")), "CREATE TABLE input (id, other)", (1, "u"))


def test_labels_have_columns_of_their_own_and_the_first_of_equals_wins() -> None:
    (row,) = view(scorer_of(labels=("A", "a", "a_2", "x")), "CREATE TABLE input (p_x)", (7,), key="p_x")
    assert row == {"p_x": 7, "prediction": "A", "p_A": 0.25, "p_a_2": 0.25, "p_a_2_2": 0.25, "p_x_2": 0.25}


def test_long_names_are_shortened_for_postgres() -> None:
    columns = sql.label_columns(("é" * 60, "é" * 61), POSTGRES, "id")
    assert columns == ["p_" + "é" * 30, "p_" + "é" * 29 + "_2"]
    assert all(len(column.encode()) <= 63 for column in columns)
    with pytest.raises(ModelError, match=r"PostgreSQL does not distinguish the columns 'x{63}1' and 'x{63}2'"):
        sql.sql_text(scorer_of(text_input("x" * 63 + "1"), text_input("x" * 63 + "2")), target("postgres"))
    assert sql.sql_text(scorer_of(text_input("a"), text_input("A")), target("postgres"))


@pytest.mark.parametrize(
    ("scorer", "options", "said"),
    [
        (scorer_of(text_input("a"), text_input("A")), {}, "SQLite does not distinguish the columns 'a' and 'A'"),
        (scorer_of(text_input("ID")), {}, "--key id: the model uses that column"),
        (scorer_of(text_input("a")), {"key": "Prediction"}, "another column of that name"),
        (scorer_of(text_input("a")), {"input": "M_1_scores"}, "the name of a table or view that the file creates"),
        (scorer_of(text_input("a", ("u\0", "v"))), {}, "contains a NUL character"),
        (scorer_of(*(text_input(f"a{i}") for i in range(2000))), {}, "needs 2,001 columns, but SQLite allows 2,000"),
    ],
    ids=["case", "key", "prediction", "input", "nul", "columns"],
)
def test_what_cannot_be_is_refused(scorer: PortableScorer, options: dict[str, str], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        sql.sql_text(scorer, target("sqlite", **options))


def test_what_a_database_refuses_is_one_line() -> None:
    text = sql.sql_text(scorer_of(text_input("t")), target("sqlite"))
    with pytest.raises(BncliError, match=r"^SQLite rejects the exported statements: no such column: t\.t$"):
        sql.run_sql(text, [{"other": "u"}])


@pytest.mark.slow
def test_two_thousand_tables() -> None:
    """Of two inputs each, and a few labels: the depth of expressions, open cursors, arguments of a function."""
    rng = np.random.default_rng(0)
    inputs, labels = tuple(number_input(f"n{i}") for i in range(64)), tuple(f"y{i}" for i in range(3))
    digits = tuple(range(6))
    tables = tuple(
        PortableTable((i % 64, (i + 1 + i // 64) % 64), (digits, digits), (6, 6), rng.normal(size=(3, 36)) / 50)
        for i in range(2000)
        if (i + 1 + i // 64) % 64 != i % 64
    )
    scorer = PortableScorer("c", labels, inputs, (PortableStage(1.0, True, np.zeros(3), tables),))
    values = [(0.2, None, 1e301)[i % 3] for i in range(64)]
    said = sql.run_sql(sql.sql_text(scorer, target("sqlite")), [{f"n{i}": v for i, v in enumerate(values)}])
    assert said == [pytest.approx(expected(scorer, *values), abs=1e-13)]


def test_many_labels() -> None:
    scorer = scorer_of(text_input("t"), labels=tuple(f"y{i}" for i in range(301)))
    said = sql.run_sql(sql.sql_text(scorer, target("sqlite")), [{"t": "u"}])
    assert said == [pytest.approx(expected(scorer, "u"), abs=1e-14)]


def test_a_server_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    text = sql.sql_text(scorer_of(text_input("t"), number_input("n")), target("postgres"))
    monkeypatch.setattr(sql, "postgres_programs", lambda: None)
    pytest.importorskip("duckdb")
    assert (
        sql.remark(text)
        == "PostgreSQL is not installed, so the export was run by DuckDB, which accepts the same statements"
    )
    said = sql.run_sql(text, [{"t": "u", "n": 0.2}])
    assert said == [pytest.approx(expected(scorer_of(text_input("t"), number_input("n")), "u", 0.2), abs=1e-14)]
    assert sql.remark(sql.sql_text(scorer_of(text_input("t")), target("sqlite"))) is None


@pytest.mark.slow
@NEEDS_SERVER
def test_a_server_of_postgres_goes_away() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.raises(BncliError, match=r'PostgreSQL rejects .*syntax error at or near "SELEC"'),
        sql.postgres_server(folder) as psql,
    ):
        sql.run_psql(psql, "SELEC 1")


def test_the_greatest_of_many_takes_no_function_of_too_many_arguments() -> None:
    with closing(sqlite3.connect(":memory:")) as base:
        terms = [str(i) for i in range(1001)]
        assert base.execute(f"SELECT {SQLITE.greatest(terms)}").fetchone() == (1000,)
