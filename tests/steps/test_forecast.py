"""A dry run: what it says agrees with what a fit finds, and it reads heads alone."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from pyarrow import parquet

from bncli.engine.parameters import costs
from bncli.engine.structures.structure import Dag
from bncli.errors import BncliError, UsageError
from bncli.files.artifacts.model import read_model
from bncli.files.reading.source import Source
from bncli.files.reading.table import TableHead
from bncli.files.reading.training_rows import read_columns
from bncli.recipe import Recipe
from bncli.steps.encode import encode
from bncli.steps.fit import fit
from bncli.steps.forecast import forecast
from bncli.steps.learn_structure import learn_structure
from bncli.steps.learning_inputs import read_supplied
from bncli.watch import Event, Note, Run, Stage
from tests.cli.conftest import Bncli, bncli
from tests.performance.measure import run
from tests.sweeps import first_few
from tests.transcripts import ROOT

__all__ = ["bncli"]
HOLES = str(ROOT / "sample_data" / "wine_holes.csv")


def test_the_tables_are_those_that_are_learnt(tmp_path: Path) -> None:
    codes, structure = str(tmp_path / "x.codes"), str(tmp_path / "s.json")
    encode(Source((HOLES,)), Recipe(), output=codes)
    learn_structure(Source((HOLES,)), Recipe(), output=structure)
    supplied = read_supplied(codes, structure)
    found = forecast(Source((codes,)), Recipe(), supplied)
    fit(Source((codes,)), Recipe.of(structure="tan", param="map"), output=str(tmp_path / "m.bnc"), supplied=supplied)
    model = read_model(str(tmp_path / "m.bnc"))
    assert isinstance(model.structure, Dag)
    names = [attribute.name for attribute in model.schema.attributes]
    learnt = {
        names[family.attributes[0]]: family.n_cells for family in model.structure.families(model.schema.cardinalities)
    }
    assert found.tables is not None
    assert {table.attributes[0]: table.cells for table in found.tables if table.attributes[0] in learnt} == learnt
    assert (found.rows, found.rows_exact, found.rounds) == (178, True, 0)


def entangled(path: Path) -> str:
    """Write 400 rows of 10 columns, of four values each, that chance and the class make dependent; return the path."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 400)
    columns = [np.where(rng.random(400) < 0.4, labels, rng.integers(0, 4, 400)) for _ in range(10)]
    table = {f"x{i}": [f"v{value}" for value in column] for i, column in enumerate(columns)}
    parquet.write_table(pa.table(table | {"class": ["uv"[label] for label in labels]}), path)
    return str(path)


def test_the_tables_of_gbn_are_searched_for(tmp_path: Path) -> None:
    """A search without a limit of parents may find tables of any size, which no head shows."""
    path = entangled(tmp_path / "t.parquet")
    sizes = []
    for epsilon in (0.1, 0.05):
        recipe = Recipe.of(structure="gbn", param="weighted", penalty=1.0, max_iterations=1, epsilon=epsilon)
        found = forecast(Source((path,)), recipe)
        fit(Source((path,)), recipe, output=str(tmp_path / "m.bnc"))
        model = read_model(str(tmp_path / "m.bnc"))
        assert found.tables is not None
        assert [table.cells for table in found.tables] == [family.n_cells for family in model.predictor.families]
        sizes.append((sum(table.cells or 0 for table in found.tables), found.memory))
    (few, small), (many, large) = sizes
    assert many > 2 * few
    assert large > small


def test_large_tables_are_announced_before_they_are_learnt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "NOTED", 1 << 16)
    path, events = entangled(tmp_path / "t.parquet"), list[Event]()
    recipe = Recipe.of(structure="gbn", param="weighted", penalty=1.0, max_iterations=1, epsilon=0.05)
    fit(Source((path,)), recipe, output=str(tmp_path / "m.bnc"), run=Run(watch=events.append))
    notes = [
        i for i, event in enumerate(events) if isinstance(event, Note) and event.text.startswith("the tables have")
    ]
    begun = next(i for i, event in enumerate(events) if isinstance(event, Stage) and event.name == "parameters")
    assert len(notes) == 1
    assert notes[0] < begun
    note = events[notes[0]]
    assert isinstance(note, Note)
    assert "of memory" in note.text
    assert "larger --epsilon, such as 0.25" in note.text


def test_rows_are_those_of_the_footers(tmp_path: Path) -> None:
    table = pa.table({"a": list(range(500)), "class": ["x", "y"] * 250})
    parquet.write_table(table, tmp_path / "a.parquet")
    with pa.ipc.new_file(tmp_path / "b.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=77)
    found = forecast(Source((str(tmp_path),)), Recipe())
    assert (found.rows, found.rows_exact, found.attributes, found.class_name) == (1000, True, 1, "class")
    # the rows themselves are not looked at
    data = bytearray((tmp_path / "a.parquet").read_bytes())
    data[4:60] = b"\xff" * 56
    (tmp_path / "a.parquet").write_bytes(data)
    assert forecast(Source((str(tmp_path),)), Recipe()).rows == 1000


def test_compressed_values_of_arrow_files_are_not_looked_at(tmp_path: Path) -> None:
    table = pa.table({"a": [k * k % 49_999 for k in range(50_000)], "class": ["x", "y"] * 25_000})
    path = tmp_path / "a.arrow"
    with pa.ipc.new_file(path, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    data = bytearray(path.read_bytes())
    data[2000 : len(data) // 2] = bytes(len(data) // 2 - 2000)
    path.write_bytes(data)
    with pytest.raises(BncliError):
        read_columns(Source((str(path),)))
    found = forecast(Source((str(path),)), Recipe())
    assert (found.rows, found.rows_exact) == (50_000, True)


def test_rows_of_text_are_guessed_from_the_first(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,class\n" + "1234,x\n" * 50_000)
    found = forecast(Source((str(tmp_path / "t.csv"),)), Recipe())
    assert abs(found.rows - 50_000) < 100
    assert not found.rows_exact


def test_more_rows_and_more_work_take_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory and seconds: by rows, by an optimizer, by choosing a penalty; seconds by a second reading, too."""
    found = []
    for n in (1_000_000, 2_000_000, 20_000_000):
        monkeypatch.setattr("bncli.steps.forecast.read_head", lambda _, n=n: TableHead(("a", "b", "class"), n, True, 1))
        found.append([forecast(Source((HOLES,)), recipe) for recipe in RECIPES])
    for fewer, more in itertools.pairwise(found):
        for one, other in zip(fewer, more, strict=True):
            assert one.memory < other.memory
            assert one.seconds < other.seconds
    for closed, one_penalty, chosen in found:
        assert closed.memory < one_penalty.memory == chosen.memory
    closed, one_penalty, chosen = found[-1]
    assert closed.seconds < one_penalty.seconds < chosen.seconds
    monkeypatch.setattr("bncli.steps.forecast.BUDGET", 1000)
    for once, recipe in zip(found[-1], RECIPES, strict=True):
        twice = forecast(Source((HOLES,)), recipe)
        assert (once.rounds, twice.rounds) == (1, 2)
        assert once.seconds < twice.seconds


RECIPES = (
    Recipe.of(structure="nb", param="map"),
    Recipe.of(structure="nb", param="discriminative", penalty=1.0),
    Recipe.of(structure="nb", param="discriminative"),
)


def test_past_the_budget_there_are_two_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bncli.steps.forecast.BUDGET", 1000)
    assert forecast(Source((HOLES,)), Recipe()).rounds == 2


def test_what_can_be_read_only_once_has_no_head() -> None:
    with pytest.raises(UsageError, match="read only once"):
        forecast(Source(("-",)), Recipe())


def test_the_command_writes_nothing(bncli: Bncli, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    ran = bncli("fit", "iris.csv", "--structure", "nb", "--dry-run")
    assert (ran.code, ran.err) == (0, "")
    for line in ("class       class", "tables      4", "recipe      discretize=mdl", "memory", "seconds"):
        assert line in ran.out
    report = json.loads(bncli("fit", "iris.csv", "--dry-run", "--json").out)["dry_run"]
    assert report["tables"] is None
    assert report["recipe"]["structure"] == "tan"
    assert sorted(tmp_path.iterdir()) == before
    assert bncli("fit", "iris.csv", "--dry-run", "--class", "nothing").code == 2


QUICK = (
    (1_000, 5, 5, 20, 2, "--structure nb --param map"),
    (1_000, 5, 5, 20, 2, "--structure tan --param map"),
    (1_000, 5, 5, 20, 2, ""),
    (200, 2_500, 0, 20, 2, "--structure nb --param map"),
)
SLOW = (
    (1_000, 15, 15, 20, 2, ""),
    (1_000, 15, 15, 20, 2, "--structure interactions"),
    (1_000, 5, 5, 20, 2, "--structure auto"),
    (100_000, 5, 5, 20, 2, ""),
    (100_000, 15, 15, 20, 2, "--structure kdb --param map"),
    (1_000_000, 5, 5, 20, 2, "--structure tan --param map"),
    (1_000_000, 15, 15, 20, 2, "--structure nb --param map"),
    (50_000, 3, 5, 5_000, 2, ""),
    (20_000, 5, 5, 20, 100, ""),
    (2_000, 500, 500, 20, 2, "--structure tan --param map"),
    (500, 0, 400, 12, 2, ""),
    (200, 5_000, 0, 20, 2, ""),
    (200, 5_000, 0, 20, 2, "--structure kdb --param map"),
    (200, 5_000, 0, 20, 2, "--structure interactions"),
    (200, 20_000, 0, 20, 2, "--structure tan --param map"),
)
DEAR = (
    (10_000, 15, 15, 20, 2, ""),
    (100_000, 15, 15, 20, 2, ""),
)
"""They take longer than all the others together, and SLOW has fewer rows and fewer columns of the same kind."""


@pytest.mark.parametrize(
    "shape", [*first_few([*QUICK, *SLOW]), *(pytest.param(shape, marks=pytest.mark.performance) for shape in DEAR)]
)
def test_the_memory_is_within_a_factor_of_two(shape: tuple[int, int, int, int, int, str], tmp_path: Path) -> None:
    """The forecast, and the peak of a process of its own that fits the table."""
    *numbers, options = shape
    path = str(tmp_path / "table.csv")
    write_table(path, *numbers)
    line = [sys.executable, "-m", "bncli", "fit", path, "--class", "class", *options.split()]
    expected = json.loads(run([*line, "--dry-run", "--json"]).output)["dry_run"]["memory"] / 2**20
    peak = run([*line, "-o", str(tmp_path / "m.bnc")]).peak_mb
    assert 0.5 < expected / peak < 2, (expected, peak)


def write_table(path: str, n_rows: int, n_numbers: int, n_names: int, n_levels: int, n_labels: int) -> None:
    """Write columns of which every fifth number and every fourth name depends on the class."""
    rng = np.random.default_rng(1)
    labels = rng.integers(n_labels, size=n_rows)
    columns = {}
    for i in range(n_numbers):
        columns[f"x{i}"] = np.round(rng.normal(50.0, 10.0, n_rows) + labels * 7 % 11 * (i % 5 == 0), 3)
    for i in range(n_names):
        levels = (rng.integers(n_levels, size=n_rows) + labels * 3 * (i % 4 == 0)) % n_levels
        columns[f"c{i}"] = np.char.add("v", levels.astype(str))
    columns["class"] = np.char.add("k", labels.astype(str))
    pyarrow.csv.write_csv(pa.table(columns), path)
