"""Tables larger than memory: a sample, and a second pass under its cuts."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from bncli.engine.data.columns import Columns
from bncli.engine.data.cutting import cuts_of, learn_dataset
from bncli.engine.data.dataset import Dataset
from bncli.engine.data.schema import CategoricalAttribute, Cuts
from bncli.errors import BncliError
from bncli.files.artifacts.codes import read_codes
from bncli.files.artifacts.cuts import read_cuts
from bncli.files.artifacts.model import read_model
from bncli.files.reading.rows_by_cuts import SampledTable, read_table
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns, row_keys
from bncli.recipe import Recipe
from bncli.steps.discretize import discretize
from bncli.steps.encode import encode
from bncli.steps.fit import fit
from bncli.steps.learning_inputs import SuppliedFiles, read_supplied
from bncli.watch import Event, Note, Run

ROWS = 6000


def _table(seed: int = 0, rows: int = ROWS) -> pa.Table:
    """Numbers, numbers with gaps, names with a rare level, a label, weights some of which are 0."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, rows)
    names = np.array(["red", "green", "blue"])[(y + rng.integers(0, 2, rows)) % 3].astype(object)
    names[-1] = "once"
    gaps = rng.normal(y, 1.0)
    gaps[rng.random(rows) < 0.1] = np.nan
    return pa.table(
        {
            "x": rng.normal(y, 2.0),
            "gaps": pa.array(gaps, from_pandas=True),
            "name": pa.array(names.tolist()),
            "whole": rng.integers(0, 500, rows) + 3 * y,
            "w": rng.integers(0, 3, rows) / 2,
            "class": pa.array([f"k{k}" for k in y]),
        }
    )


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """A folder of three parts in three formats."""
    folder, table = tmp_path / "parts", _table()
    folder.mkdir()
    parquet.write_table(table.slice(0, 2500), folder / "a.parquet", row_group_size=700)
    csv.write_csv(table.slice(2500, 1500), folder / "b.csv")
    with pa.ipc.new_file(folder / "c.arrow", table.schema) as writer:
        writer.write_table(table.slice(4000), max_chunksize=333)
    return folder


@pytest.fixture
def tight(monkeypatch: pytest.MonkeyPatch) -> None:
    """A budget that a third of the table spends, and a small sample."""
    monkeypatch.setattr("bncli.files.reading.training_rows.BUDGET", 30_000)
    monkeypatch.setattr("bncli.files.reading.training_rows.SAMPLE_ROWS", 800)


def _two(source: Source, given: Cuts | None = None, run: Run = Run()) -> SampledTable:
    found = read_table(source, cuts=given, seed=0, run=run)
    assert isinstance(found, SampledTable)
    return found


def _rows(data: Dataset) -> list[np.ndarray]:
    weights = np.ones(data.n_rows) if data.weights is None else data.weights
    return [*data.codes, data.labels, weights]


@pytest.mark.usefixtures("tight")
@pytest.mark.parametrize("weights", [None, "w"])
@pytest.mark.parametrize("threads", [1, 3])
def test_the_codes_are_those_of_one_round(parts: Path, weights: str | None, threads: int) -> None:
    source = Source((str(parts),), weights=weights, ignore=() if weights else ("w",))
    whole = read_columns(source)
    cuts = cuts_of(learn_dataset(whole).schema, "mdl", {})
    direct = learn_dataset(read_columns(source, cuts=cuts), cuts=cuts)
    found = _two(source, cuts, Run(threads))
    memory = learn_dataset(SuppliedFiles(cuts).read(source, Run(threads), Recipe()), cuts=cuts)
    assert memory.schema == direct.schema
    for one, other in zip(_rows(direct), _rows(memory), strict=True):
        np.testing.assert_array_equal(one, other)
    blocks = list(found.row_blocks(cuts))
    for i, codes in enumerate(direct.codes):
        np.testing.assert_array_equal(np.concatenate([block.codes[i] for block in blocks]), codes)


@pytest.mark.usefixtures("tight")
def test_the_sample_knows_every_level_and_gap(parts: Path) -> None:
    told: list[Event] = []
    rows = _two(Source((str(parts),)), run=Run(watch=told.append)).rows
    assert 800 <= rows.n_rows <= 820
    attributes = learn_dataset(rows).schema.attributes
    by_name = {attribute.name: attribute for attribute in attributes}
    assert by_name["gaps"].missing
    assert set(by_name["name"].levels) == {"red", "green", "blue", "once"}  # type: ignore[union-attr]
    assert any(isinstance(e, Note) and "6,000 rows are too many" in e.text for e in told)


@pytest.mark.usefixtures("tight")
def test_a_file_of_codes_is_that_of_one_round(parts: Path, tmp_path: Path) -> None:
    source = Source((str(parts),), weights="w")
    cuts = replace(cuts_of(learn_dataset(read_columns(source)).schema, "mdl", {}), method="file")
    encode(source, Recipe(), output=str(tmp_path / "two.codes"), supplied=SuppliedFiles(cuts))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bncli.files.reading.training_rows.BUDGET", 1 << 40)
        encode(source, Recipe(), output=str(tmp_path / "one.codes"), supplied=SuppliedFiles(cuts))
    two, one = (read_codes(str(tmp_path / f"{name}.codes")) for name in ("two", "one"))
    assert two.batches == one.batches
    assert two.counts == one.counts
    assert two.header == one.header


@pytest.mark.usefixtures("tight")
def test_cuts_of_a_sample_are_told_wherever_they_go(parts: Path, tmp_path: Path) -> None:
    """In codes, cuts and models alike; nobody says so of cuts that were given, or of a table that fits."""
    source, recipe = Source((str(parts),), ignore=("w",)), Recipe.of(structure="nb", param="map")
    codes, cuts = str(tmp_path / "x.codes"), str(tmp_path / "cuts.json")
    sampled = encode(source, recipe, output=codes).sampled_rows
    assert sampled is not None
    assert 800 <= sampled <= 820
    discretized = discretize(source, recipe, cuts_out=cuts, output=str(tmp_path / "binned.csv"))
    assert replace(read_cuts(cuts), options={}) == replace(read_codes(codes).header.cuts, options={})
    assert discretized.rows == len((tmp_path / "binned.csv").read_text().splitlines()) - 1 == ROWS
    files = []
    for paths, given in ((source, None), (source, cuts), (Source((codes,)), None), (Source((codes,)), codes)):
        fit(paths, recipe, output=str(tmp_path / "m.bnc"), supplied=read_supplied(given))
        files.append((tmp_path / "m.bnc").read_bytes())
    assert read_model(str(tmp_path / "m.bnc")).sampled_rows == sampled
    assert len(set(files)) == 1
    by_hand = SuppliedFiles(replace(read_cuts(cuts), sampled_rows=None))
    told: list[Event] = []
    fit(source, recipe, output=str(tmp_path / "m.bnc"), supplied=by_hand, run=Run(watch=told.append))
    assert read_model(str(tmp_path / "m.bnc")).sampled_rows is None
    assert not any(isinstance(event, Note) and "drawn" in event.text for event in told)


@pytest.mark.usefixtures("tight")
def test_fit_reads_in_two_rounds_by_itself(parts: Path, tmp_path: Path) -> None:
    """As from the codes that encode writes, the penalty too; `auto` cuts by its own rule."""
    source = Source((str(parts),), ignore=("w",))
    recipe = Recipe.of(structure="nb")
    encode(source, recipe, output=str(tmp_path / "x.codes"))
    fit(source, recipe, output=str(tmp_path / "a.bnc"))
    codes = str(tmp_path / "x.codes")
    fit(
        Source((codes,)),
        recipe,
        output=str(tmp_path / "b.bnc"),
        supplied=read_supplied(codes),
    )
    assert (tmp_path / "a.bnc").read_bytes() == (tmp_path / "b.bnc").read_bytes()
    auto = Recipe.of(structure="auto", effort=1)
    assert fit(source, auto, output=str(tmp_path / "auto.bnc")).cuts > 200


@pytest.mark.usefixtures("tight")
def test_a_part_that_changes_or_vanishes_is_told(parts: Path, tmp_path: Path) -> None:
    source = Source((str(parts),))
    found = _two(source)
    cuts = cuts_of(learn_dataset(found.rows).schema, "mdl", {})
    os.utime(parts / "b.csv", ns=(0, 1))
    with pytest.raises(BncliError, match="changed while it was being read") as caught:
        list(found.row_blocks(cuts))
    assert "b.csv" in str(caught.value)
    found = _two(source)
    (parts / "c.arrow").unlink()
    with pytest.raises(BncliError, match="was removed while it was being read"):
        list(found.row_blocks(cuts))
    assert not list(tmp_path.glob("*.codes"))


@pytest.mark.usefixtures("tight")
@pytest.mark.parametrize(("weights", "ignore"), [(None, ("w",)), ("w", ())])
def test_an_unknown_value_is_located_by_its_own_row(
    tmp_path: Path, weights: str | None, ignore: tuple[str, ...]
) -> None:
    """Rows of weight 0, which are left out, count as well."""
    table = _table().to_pydict()
    table["w"][-1] = 1.0
    csv.write_csv(pa.table(table), tmp_path / "t.csv")
    found = _two(Source((str(tmp_path / "t.csv"),), weights=weights, ignore=ignore))
    cuts = cuts_of(learn_dataset(found.rows).schema, "mdl", {})
    fewer = [
        replace(a, levels=("red", "green", "blue")) if isinstance(a, CategoricalAttribute) else a
        for a in cuts.attributes
    ]
    with pytest.raises(BncliError, match=f"t.csv line {ROWS + 1}"):
        list(found.row_blocks(replace(cuts, attributes=tuple(fewer))))


@pytest.mark.usefixtures("tight")
def test_rows_without_a_class_are_told_in_the_second_round(parts: Path) -> None:
    table = _table().to_pydict()
    table["class"][ROWS // 2] = None
    for path in parts.iterdir():
        path.unlink()
    parquet.write_table(pa.table(table), parts / "a.parquet")
    source = Source((str(parts),), drop_unlabelled=True)
    found = _two(source)
    cuts = cuts_of(learn_dataset(found.rows).schema, "mdl", {})
    assert sum(len(rows.labels) for rows in found.row_blocks(cuts)) == ROWS - 1


def test_a_sample_depends_on_the_rows_alone() -> None:
    """Not on how they come in blocks."""
    keys = row_keys(0, 1000, 3)
    np.testing.assert_array_equal(np.concatenate([row_keys(0, 300, 3), row_keys(300, 700, 3)]), keys)
    assert len(set(keys.tolist())) == 1000
    assert not set(keys.tolist()) & set(row_keys(0, 1000, 4).tolist())


@pytest.mark.usefixtures("tight")
def test_columns_that_turn_out_to_be_text_are_read_again(tmp_path: Path) -> None:
    """Numbers in all but the last rows."""
    lines = [f"{i % 7},{i % 5}.5,{'ab'[i % 2]}" for i in range(40_000)]
    lines += [f"{text},1.5,a" for text in ("w", "x", "y", "z")]
    (tmp_path / "t.csv").write_text("c,n,class\n" + "\n".join(lines) + "\n")
    source = Source((str(tmp_path / "t.csv"),))
    columns = SuppliedFiles().read(source, Run(), Recipe())
    assert isinstance(columns, Columns)
    assert columns.n_rows == 40_004
    data = learn_dataset(columns)
    assert len(data.schema.attributes[0].levels) == 11  # type: ignore[union-attr]


@pytest.mark.usefixtures("tight")
@pytest.mark.parametrize("drop", ["weight 0", "no class", "NA among numbers"])
def test_what_is_first_met_in_a_row_that_does_not_count_is_known(tmp_path: Path, drop: str) -> None:
    """A missing number, a missing name and a rare level: each first in a row that goes, then once in one that stays."""
    n, lines = 12_000, []
    for i in range(n):
        goes, special = i in (5, 3000), i in (5, 3000, 9001)
        missing = "" if drop == "no class" else "NA"
        label = missing if goes and drop != "weight 0" else str(i % 2)
        gap = "" if special else f"{i % 997}.5"
        names = ("", "once") if special else ("a", "b")
        lines.append(f"{gap},{','.join(names)},{0 if goes and drop == 'weight 0' else 1},{label}")
    (tmp_path / "t.csv").write_text("x,hole,name,w,class\n" + "\n".join(lines) + "\n")
    source = Source((str(tmp_path / "t.csv"),), weights="w", drop_unlabelled=True)
    encode(source, Recipe(), output=str(tmp_path / "t.codes"))
    heading = read_codes(str(tmp_path / "t.codes")).header
    assert heading.rows == n - 2
    assert set(heading.missing) == {"x", "hole"}
    assert set(heading.cuts.attributes[2].levels) == {"b", "once"}  # type: ignore[union-attr]
