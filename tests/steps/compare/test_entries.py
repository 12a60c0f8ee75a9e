"""The data sets of a comparison: their names, what is refused, what is known of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bncli.engine.evaluation.cross_validation import Protocol
from bncli.errors import BncliError, UsageError
from bncli.files.reading.source import Source
from bncli.steps.compare.entries import Entry, read_entries
from bncli.watch import Event, Note, Progress, Stage, silent
from tests.steps.compare.tables import write_table


def entries_of(*sources: Source, folds: int = 3) -> tuple[Entry, ...]:
    return read_entries(sources, Protocol(folds, 1, 0), threads=1, watch=silent)


def test_what_is_known_of_a_data_set(tmp_path: Path) -> None:
    source = write_table(tmp_path / "some.data.csv", 30, 0)
    (entry,) = entries_of(source)
    truth = [line.split(",")[2] for line in (tmp_path / "some.data.csv").read_text().splitlines()[1:]]
    assert ["xyz"[code] for code in entry.labels] == truth
    assert (entry.name, entry.n_rows, entry.n_labels, entry.cells, entry.weights) == ("some", 30, 3, 60, None)
    assert entry.source.class_name == "class"


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["a/x.csv", "b/y.csv"], ["x", "y"]),
        (["a/x.csv", "b/x.csv", "b/y.csv"], ["a/x", "b/x", "y"]),
        (["a/b/x.csv", "c/b/x.csv"], ["a/b/x", "c/b/x"]),
    ],
)
def test_names_are_as_short_as_they_can_be(tmp_path: Path, paths: list[str], names: list[str]) -> None:
    for seed, path in enumerate(paths):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        write_table(tmp_path / path, 12, seed)
    assert [entry.name for entry in entries_of(*(Source((str(tmp_path / path),)) for path in paths))] == names


def test_where_no_part_of_the_path_tells_files_apart_they_are_called_by_it(tmp_path: Path) -> None:
    sources = [write_table(tmp_path / name, 12, 0) for name in ("x.csv", "x.txt")]
    assert [entry.name for entry in entries_of(*sources)] == [source.paths[0] for source in sources]


def test_the_digest_is_that_of_the_values(tmp_path: Path) -> None:
    one, same, other = (
        write_table(tmp_path / f"{name}.csv", 20, seed) for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )
    first, second, third = (entry.digest for entry in entries_of(one, same, other))
    assert first == second != third
    ignoring = Source(one.paths, ignore=("word",))
    weighing = Source(one.paths, weights="number", drop_unlabelled=True)
    text = (tmp_path / "a.csv").read_text()
    (tmp_path / "w.csv").write_text(text.replace("-", ""))
    assert entries_of(ignoring)[0].digest != first
    assert (
        entries_of(Source((str(tmp_path / "w.csv"),)))[0].digest
        != entries_of(Source((str(tmp_path / "w.csv"),), weights=weighing.weights))[0].digest
    )


def test_what_cannot_be_read_twice_or_at_all_is_refused(tmp_path: Path) -> None:
    good = write_table(tmp_path / "good.csv", 12, 0)
    with pytest.raises(UsageError, match="the standard input can be read only once"):
        entries_of(good, Source(("-",)))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="pipe can be read only once"):
        entries_of(good, Source((str(tmp_path / "pipe"),)))
    with pytest.raises(UsageError, match="the same data is given twice"):
        entries_of(good, good)
    with pytest.raises(BncliError, match=r"no such file, .*god\.csv; did you mean .*good\.csv"):
        entries_of(good, Source((str(tmp_path / "god.csv"),)))
    with pytest.raises(BncliError, match=r"13 folds are more than the 12 rows, .*good\.csv"):
        entries_of(good, folds=13)
    assert len(entries_of(good, folds=12)) == 1  # more folds than rows of a class are no error


def test_notes_name_their_data_set_where_there_are_several(tmp_path: Path) -> None:
    first, second = (write_table(tmp_path / f"{name}.csv", 12, 0) for name in "ab")
    (tmp_path / "a.csv").write_text("code,class\n" + "".join(f"{i % 4},{'xy'[i % 2]}\n" for i in range(20)))
    heard: list[Event] = []
    read_entries([first, second], Protocol(2, 1, 0), threads=1, watch=heard.append)
    (note,) = [event for event in heard if isinstance(event, Note)]
    assert note.text.startswith("a: ")
    assert "code" in note.text
    assert [event for event in heard if not isinstance(event, Note)] == [
        Stage("read"),
        Progress(0, 2, "a"),
        Progress(1, 2, "b"),
        Progress(2, 2),
    ]
    heard.clear()
    read_entries([first], Protocol(2, 1, 0), threads=1, watch=heard.append)
    (note,) = [event for event in heard if isinstance(event, Note)]
    assert not note.text.startswith("a: ")


def test_a_warning_about_one_of_several_stays_a_warning(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("a,price\n" + "".join(f"{i % 5},{i % 90 / 2}\n" for i in range(270)))
    sources = [write_table(tmp_path / "a.csv", 30, 0), Source((str(tmp_path / "b.csv"),))]
    heard: list[Event] = []
    read_entries(sources, Protocol(3, 1, 0), threads=1, watch=heard.append)
    (text,) = (event.text for event in heard if isinstance(event, Note) and event.warning)
    assert text.startswith("b: the class 'price' looks like a number, not a class: ")
