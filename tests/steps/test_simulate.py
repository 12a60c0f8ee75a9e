"""Drawing rows as a program would call it: files, reports, and learning from what was drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from bncli.engine.data.columns import NumericColumn
from bncli.engine.networks.simulation import RandomNetworkKind
from bncli.errors import BncliError, ModelError, UsageError
from bncli.files.artifacts.model import read_model
from bncli.files.artifacts.structure import read_structure
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns
from bncli.recipe import Recipe
from bncli.steps.evaluate.evaluate import evaluate_model
from bncli.steps.fit import fit
from bncli.steps.learn_structure import learn_structure
from bncli.steps.learning_inputs import read_supplied
from bncli.steps.simulate import SimulateOutputs, simulate
from bncli.watch import Event, Note, Progress

SAMPLE_DATA = Path(__file__).parents[2] / "sample_data"
MAP = Recipe.of(param="map")
TAN = RandomNetworkKind("tan", 1, 6, (2, 4), (3, 3), options={"network": "tan"})


def test_the_truth_is_found_again(tmp_path: Path) -> None:
    rows, network, model = (str(tmp_path / name) for name in ("rows.csv", "network.json", "model.bnc"))
    report = simulate(TAN, 60_000, seed=3, outputs=SimulateOutputs(rows=rows, network=network, model=model))
    truth = read_structure(network)
    assert (report.rows, report.attributes, report.classes, report.arcs, report.perfect) == (60_000, 6, 3, 11, True)
    assert (report.output, report.network_file, report.model_file) == (rows, network, model)
    assert report.probabilities == read_model(model).tables.n_parameters
    learnt = learn_structure(Source((rows,)), Recipe()).structure
    edges = [
        {frozenset((a, b)) for a, parents in s.parents.items() for b in parents if b != "class"}
        for s in (truth, learnt)
    ]
    assert edges[0] == edges[1]
    fit(Source((rows,)), MAP, supplied=read_supplied(None, network), output=str(tmp_path / "fit.bnc"))
    fitted = read_model(str(tmp_path / "fit.bnc"))
    for table, true in zip(fitted.tables.weights, read_model(model).tables.weights, strict=True):
        assert np.abs(np.exp(table) - np.exp(true)).max() < 0.2


def test_the_model_counts_the_rows(tmp_path: Path) -> None:
    simulate(TAN, 40_000, outputs=SimulateOutputs(rows=str(tmp_path / "r.parquet"), model=str(tmp_path / "m.bnc")))
    model, rows = read_model(str(tmp_path / "m.bnc")), pq.read_table(tmp_path / "r.parquet")
    assert model.n_rows == 40_000
    for attribute in model.schema.attributes:
        counted = [rows.column(attribute.name).to_pylist().count(level) for level in attribute.levels]  # type: ignore[union-attr]
        assert list(attribute.frequencies) == counted


def test_both_formats_hold_the_same_rows(tmp_path: Path) -> None:
    for name in ("r.csv", "r.parquet"):
        simulate(TAN, 500, outputs=SimulateOutputs(rows=str(tmp_path / name)))
    lines = (tmp_path / "r.csv").read_text().splitlines()
    rows = pq.read_table(tmp_path / "r.parquet")
    assert lines[0].split(",") == rows.column_names
    assert [line.split(",") for line in lines[1:]] == [list(row.values()) for row in rows.to_pylist()]


def test_more_rows_begin_with_the_same(tmp_path: Path) -> None:
    for name, n in (("few", 10), ("many", 70_000)):
        simulate(TAN, n, seed=9, outputs=SimulateOutputs(rows=str(tmp_path / name)))
    few, many = ((tmp_path / name).read_text().splitlines() for name in ("few", "many"))
    assert many[:11] == few
    assert len(many) == 70_001
    simulate(TAN, 10, seed=8, outputs=SimulateOutputs(rows=str(tmp_path / "other")))
    assert (tmp_path / "other").read_text().splitlines() != few


@pytest.mark.parametrize("name", ["wine_holes.csv", "iris.csv", "tic_tac_toe.csv"])
def test_rows_of_a_model_are_classified_by_it(tmp_path: Path, name: str) -> None:
    model, rows = str(tmp_path / "m.bnc"), str(tmp_path / "rows.csv")
    fit(Source((str(SAMPLE_DATA / name),)), MAP, output=model)
    report = simulate(model, 2_000, outputs=SimulateOutputs(rows=rows, network=str(tmp_path / "n.json")))
    assert (report.model, report.network) == (model, None)
    again, schema = read_columns(Source((rows,))), read_model(model).schema
    assert tuple(again.attributes) == tuple(a.name for a in schema.attributes)
    accuracy = evaluate_model(model, Source((rows,))).metrics["accuracy"]
    assert accuracy is not None
    assert accuracy > 0.7
    if name == "wine_holes.csv":
        column = again.attributes["ash"]
        assert isinstance(column, NumericColumn)
        assert 0 < np.isnan(column.values.astype(float)).sum() < 1_000


def test_the_truth_behind_rows_with_missing_values_marginalizes_them(tmp_path: Path) -> None:
    report = simulate(
        TAN,
        20_000,
        missing=0.5,
        outputs=SimulateOutputs(rows=str(tmp_path / "r.parquet"), model=str(tmp_path / "m.bnc")),
    )
    *columns, label = pq.read_table(tmp_path / "r.parquet").columns
    model = read_model(str(tmp_path / "m.bnc"))
    assert model.schema.marginalizes
    assert label.null_count == 0
    assert [a.missing_weight for a in model.schema.attributes] == [column.null_count for column in columns]
    assert [sum(a.frequencies) for a in model.schema.attributes] == [len(c) - c.null_count for c in columns]
    assert report.holes == sum(column.null_count for column in columns)
    assert 0.49 < report.holes / (20_000 * 6) < 0.51
    truth = evaluate_model(str(tmp_path / "m.bnc"), Source((str(tmp_path / "r.parquet"),))).metrics
    source = Source((str(tmp_path / "r.parquet"),))
    fit(source, MAP.replaced(missing_policy="marginalize"), output=str(tmp_path / "f.bnc"))
    fitted = evaluate_model(str(tmp_path / "f.bnc"), source).metrics
    assert truth["log_loss"] == pytest.approx(fitted["log_loss"], abs=0.005)


def test_values_are_missing_as_often_as_the_model_met_it(tmp_path: Path) -> None:
    """Where they are marginalized, it knows their share; the rows that it draws without being asked have none."""
    model, rows = str(tmp_path / "m.bnc"), str(tmp_path / "r.parquet")
    source = Source((str(SAMPLE_DATA / "wine_holes.csv"),))
    fit(source, Recipe.of(missing_policy="marginalize", param="map"), output=model)
    assert simulate(model, 100, outputs=SimulateOutputs(rows=rows)).holes == 0
    simulate(model, 20_000, missing="model", outputs=SimulateOutputs(rows=rows))
    drawn, read = pq.read_table(rows), read_columns(source)
    for name, column in read.attributes.items():
        assert isinstance(column, NumericColumn)
        share = np.isnan(column.values.astype(float)).mean()
        assert drawn.column(name).null_count / 20_000 == pytest.approx(share, abs=0.015)


def test_conditioning(tmp_path: Path) -> None:
    simulate(2.0, 1_000, outputs=SimulateOutputs(rows=str(tmp_path / "r.csv"), model=str(tmp_path / "m.bnc")))
    lines = [line.split(",") for line in (tmp_path / "r.csv").read_text().splitlines()[1:]]
    assert {y for x1, *_, y in lines if x1 == "1"} == {"1"}
    assert {y for x1, *_, y in lines if x1 == "0"} == {"0", "1"}
    assert read_model(str(tmp_path / "m.bnc")).structure.class_parents == (0, 1, 2)


def test_a_model_that_is_no_network(tmp_path: Path) -> None:
    model = str(tmp_path / "m.bnc")
    fit(Source((str(SAMPLE_DATA / "iris.csv"),)), Recipe(), output=model)
    with pytest.raises(ModelError, match=r"'weighted' of the model .*m\.bnc; learn the model with --param map"):
        simulate(model, 10, outputs=SimulateOutputs(rows=str(tmp_path / "rows.csv")))
    assert [path.name for path in tmp_path.iterdir()] == ["m.bnc"]


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    model = str(tmp_path / "m.bnc")
    fit(Source((str(SAMPLE_DATA / "iris.csv"),)), MAP, output=model)
    with pytest.raises(UsageError, match=r"the input .* is the same file"):
        simulate(model, 10, outputs=SimulateOutputs(rows=model))
    with pytest.raises(UsageError, match="is the same file"):
        simulate(TAN, 10, outputs=SimulateOutputs(rows=str(tmp_path / "x"), network=str(tmp_path / "x")))
    with pytest.raises(UsageError, match="rows are written as CSV or Parquet"):
        simulate(TAN, 10, outputs=SimulateOutputs(rows=str(tmp_path / "x.arrow")))
    with pytest.raises(BncliError, match="there is no folder"):
        simulate(
            TAN, 10, outputs=SimulateOutputs(rows=str(tmp_path / "x.csv"), network=str(tmp_path / "nowhere" / "n.json"))
        )
    assert [path.name for path in tmp_path.iterdir()] == ["m.bnc"]


def test_what_it_tells(tmp_path: Path) -> None:
    events: list[Event] = []
    (tmp_path / "x.csv").write_text("zip,class\n" + "".join(f"{i % 4},{'ab'[i % 3 == 0]}\n" for i in range(60)))
    fit(Source((str(tmp_path / "x.csv"),), categorical=("zip",)), MAP, output=str(tmp_path / "m.bnc"))
    simulate(
        str(tmp_path / "m.bnc"), 40_000, watch=events.append, outputs=SimulateOutputs(rows=str(tmp_path / "r.csv"))
    )
    assert [e.text for e in events if isinstance(e, Note)] == [
        "values of zip are categories that look like numbers; to learn from these rows, add --categorical NAME"
    ]
    assert [e.done for e in events if isinstance(e, Progress)] == [32_768, 40_000]
