"""Tasks on a cluster: the files of a table read by workers, and clusters that end in the middle.

Here the workers are this process, but everything that would travel between processes is pickled.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from bncli.errors import BncliError
from bncli.files.reading import training_rows
from bncli.files.reading.source import Source
from bncli.recipe import Recipe
from bncli.steps import encode as step
from bncli.steps.cluster import tasks
from bncli.steps.cluster.connection import Cluster, ClusterGoneError, LostResultsError, Worker
from bncli.steps.cluster.tasks import run_tasks
from bncli.watch import Event, Note, Run


class IdleCluster(Cluster):
    """Two workers that do nothing."""

    def __init__(self) -> None:
        self.workers = {"a": Worker(1), "b": Worker(1)}


def pickled(_: Cluster, serve: Callable[[Any], Any], shared: Any, tasks: Iterable[Any]) -> Iterator[Any]:
    """Pickle every task before the first is run, and every result."""
    sent = [pickle.dumps((serve, shared, task)) for task in tasks]
    for message in sent:
        serve, shared, task = pickle.loads(message)
        yield pickle.loads(pickle.dumps(serve(shared)(task)))


@contextmanager
def here(_: str) -> Iterator[Cluster]:
    yield IdleCluster()


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "connected", here)
    monkeypatch.setattr(tasks, "results_in_order", pickled)
    monkeypatch.setattr(tasks, "check_workers", lambda *_: None)


def table(folder: Path, seed: int, kind: str) -> Path:
    """Write four files: a column that is numeric in the first file only, missing values, weights."""
    r = random.Random(seed)
    folder.mkdir()
    for k in range(4):
        rows = []
        for _ in range(150):
            y = r.choice("abc")
            x = r.gauss(ord(y), 2) if r.random() > 0.05 else None
            rows.append((x, r.choice("uv1") if k else "1", r.randint(0, 9 if k else 1), r.choice([0, 0.5, 1]), y))
        names = ("x", "n", "z", "w", "class")
        if kind == "parquet":
            parquet.write_table(
                pa.table(dict(zip(names, zip(*rows, strict=True), strict=True))), folder / f"{k}.parquet"
            )
            continue
        lines = [",".join("" if v is None else str(v) for v in row) for row in rows]
        if kind == "bad rows" and k == 2:
            lines.insert(50, "1,2,3")
        (folder / f"{k}.csv").write_text("\n".join([",".join(names), *lines, ""]))
    return folder


def both(source: Source, folder: Path) -> list[tuple[bytes | str, list[str]]]:
    """Return the encoded file, or the error, and the notes: of one process, then of a cluster."""
    found: list[tuple[bytes | str, list[str]]] = []
    for name, run in (("one", Run(2)), ("many", Run(2, cluster="local:2"))):
        notes: list[str] = []

        def watch(event: Event, notes: list[str] = notes) -> None:
            if isinstance(event, Note):
                notes.append(event.text)

        path = folder / f"{name}.codes"
        try:
            step.encode(source, Recipe(), output=str(path), run=run._replace(watch=watch))
            found.append((path.read_bytes(), notes))
        except BncliError as error:
            found.append((str(error), notes))
            assert not path.exists()
    return found


@pytest.mark.parametrize("budget", [1 << 30, 2000], ids=["one round", "two rounds"])
@pytest.mark.parametrize("kind", ["csv", "parquet", "bad rows"])
@pytest.mark.parametrize("more", [{}, {"weights": "w"}], ids=["", "weights"])
def test_the_bytes_are_those_of_one_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, more: dict[str, Any], kind: str, budget: int
) -> None:
    monkeypatch.setattr(training_rows, "BUDGET", budget)
    monkeypatch.setattr(training_rows, "SAMPLE_ROWS", 200)
    source = Source((str(table(tmp_path / "parts", 1, kind)),), on_bad_row="skip", **more)
    one, many = both(source, tmp_path)
    assert isinstance(one[0], bytes)
    assert many == one
    assert any("drawn at random" in note for note in one[1]) == (budget == 2000)


@pytest.mark.parametrize(
    ("spoilt", "said"),
    [
        ("x,n,z,w,class\n1,u,3,1,a\n1,u\n", "malformed row"),
        (
            "x,n,z,w,class\n1,u,0.5,1,a\n"
            + "2,u,2,1,b\n" * 30
            + "".join(f"1,u,{word},1,b\n" for word in ("low", "mid", "high", "top")),
            "has numbers in",
        ),
        ("x,n,w,class\n1,u,1,a\n", "different columns: 'z'"),
        ("x,n,z,w,class\n1,u,3,1,\n", "the class is missing in 1 row"),
        ('x,n,z,w,class\n1,u,3,1,a\n1,"u,3,1,b\n', "malformed row"),
    ],
)
def test_an_error_is_that_of_one_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, spoilt: str, said: str
) -> None:
    """It also names the files as they were typed."""
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "parts", 2, "csv")
    Path("parts/3.csv").write_text(spoilt)
    one, many = both(Source(tuple(f"parts/{k}.csv" for k in range(4))), Path("."))
    assert isinstance(one[0], str)
    assert said in one[0]
    assert many == one


def test_a_schema_file_beside_the_first_is_that_of_one_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(training_rows, "BUDGET", 2000)
    folder = table(tmp_path / "parts", 1, "csv")
    (folder / "0.schema.json").write_text('{"ignore": ["x"]}')
    one, many = both(Source((str(folder),)), tmp_path)
    assert isinstance(one[0], bytes)
    assert many == one


def test_threads_that_cannot_help_are_told(tmp_path: Path) -> None:
    folder = table(tmp_path / "parts", 1, "csv")
    _, many = both(Source((str(folder / "1.csv"),)), tmp_path)
    assert "one file makes one task, so only 1 of 2 threads of the cluster are used" in many[1]


class EndingCluster(Cluster):
    """A cluster that raises `error` when it waits for the first task (`at_first`), or when it fetches a value."""

    def __init__(self, error: Exception, *, at_first: bool) -> None:
        self.workers = {"here": Worker(1)}
        self._error, self._at_first = error, at_first

    def submit(self, *_: Any, **__: Any) -> Any:
        return object()

    def first(self, futures: Any) -> Any:
        if self._at_first:
            raise self._error
        return list(futures)[:1]

    def values(self, futures: Any) -> Any:
        raise self._error


@pytest.mark.parametrize("at_first", [True, False])
@pytest.mark.parametrize("error", [LostResultsError("x"), ClusterGoneError("x")], ids=["lost", "gone"])
def test_a_cluster_that_ends_is_an_error_of_the_command(error: Exception, at_first: bool) -> None:
    with pytest.raises(ClusterGoneError):
        list(run_tasks(EndingCluster(error, at_first=at_first), _serve, None, range(3), lambda _: False))


def test_an_error_of_a_task_is_its_result() -> None:
    error = BncliError("x")
    results = list(run_tasks(EndingCluster(error, at_first=False), _serve, None, range(3), lambda _: False))
    assert results == [(k, error) for k in range(3)]


def _serve(_: Any) -> Any:
    raise AssertionError("the tests' cluster runs nothing")
