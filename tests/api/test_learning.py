"""From Python: any table, the same bytes as the command, probabilities as `score` writes them."""

from __future__ import annotations

import csv
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import bncli
from bncli.errors import BncliError, ModelError, UsageError
from bncli.watch import Event, Stage
from tests import started

SAMPLE_DATA = Path(__file__).parents[2] / "sample_data"
WINE = SAMPLE_DATA / "wine_holes.csv"


def silent(_: Event) -> None:
    """Notes are not of interest here."""


def command(*words: str) -> None:
    subprocess.run([started.bncli(), *words, "-q"], check=True)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return pyarrow.csv.read_csv(WINE)


@pytest.mark.parametrize(
    ("options", "forms"),
    [
        ({"structure": "nb", "param": "map"}, ("path", "arrow", "arrays")),
        ({"structure": "tan", "penalty": 1}, ("arrow",)),
        ({"structure": "kdb", "k": 2, "param": "map", "smoothing": "hdp"}, ("arrays",)),
        ({"structure": "auto", "effort": 1, "seed": 3}, ("path",)),
        ({"structure": "kikuchi", "param": "kbma"}, ("arrow",)),
    ],
    ids=lambda said: said["structure"] if isinstance(said, dict) else "-".join(said),
)
def test_the_bytes_of_the_command(
    tmp_path: Path, table: pa.Table, options: dict[str, Any], forms: tuple[str, ...]
) -> None:
    flags = [text for word, value in options.items() for text in (f"--{word}", str(value))]
    command("fit", str(WINE), *flags, "-o", str(tmp_path / "command.bnc"))
    arrays = {name: table[name].to_numpy(False) for name in table.column_names}
    tables = {"path": WINE, "arrow": table, "arrays": arrays}
    for number, form in enumerate(forms):
        model = bncli.fit(tables[form], progress=silent, threads=2 - number % 2, **options)
        model.save(tmp_path / "python.bnc")
        assert (tmp_path / "python.bnc").read_bytes() == (tmp_path / "command.bnc").read_bytes()


def test_probabilities_are_those_of_score(tmp_path: Path, table: pa.Table) -> None:
    model = bncli.fit(table, structure="tan", penalty=1, progress=silent)
    model.save(tmp_path / "m.bnc")
    command("score", str(tmp_path / "m.bnc"), str(WINE), "-o", str(tmp_path / "s.csv"))
    with open(tmp_path / "s.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    expected = [[float(row[f"p_{label}"]) for label in model.classes_] for row in rows]
    for data in (table, table.drop_columns("class"), WINE):
        assert np.allclose(model.predict_proba(data), expected, rtol=0, atol=1e-15)
        assert model.predict(data).tolist() == [row["prediction"] for row in rows]
    loaded = bncli.load(tmp_path / "m.bnc")
    assert np.array_equal(loaded.predict_proba(table), model.predict_proba(table))
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(table), model.predict_proba(table))
    assert again.report == model.report


def test_explanations_add_up(table: pa.Table) -> None:
    model = bncli.fit(table, structure="nb", param="map", progress=silent)
    for row, p in zip(model.explain(table, 20), model.predict_proba(table), strict=True):
        best = p.argmax()
        others = np.delete(np.log(p), best).mean()
        assert row.prediction == model.classes_[best]
        assert row.log_odds == pytest.approx(np.log(p[best]) - others, abs=1e-9)
        parts = row.base + row.rest + sum(one.contribution for one in row.contributions)
        assert parts == pytest.approx(row.log_odds, abs=1e-9)
    strongest = model.effects()[0]
    assert strongest.values.shape == (*(len(names) for names in strongest.names), len(model.classes_))


def test_what_is_said_of_columns() -> None:
    rows = {"a": [1, 2, 1, 2, 3, 1] * 20, "w": [1.0, 0.0] * 60, "y": ["no", "yes", "no", "yes", "yes", "no"] * 20}
    told = {"class_": "y", "structure": "nb", "param": "map", "progress": silent}
    assert bncli.fit(rows, **told).feature_names_in_.tolist() == ["a", "w"]
    model = bncli.fit(rows, weights="w", categorical="a", **told)
    assert model.feature_names_in_.tolist() == ["a"]
    assert model.report is not None
    assert model.report["rows"] == 60
    of_categories = {**rows, "a": pa.array(rows["a"]).dictionary_encode()}
    seen = [
        bncli.fit(data, categorical=said, ignore=["w"], **told) for data, said in ((rows, ["a"]), (of_categories, None))
    ]
    assert pickle.dumps(seen[0]._model) == pickle.dumps(seen[1]._model)
    assert seen[0].predict_proba({"a": [None, 9, 1]}).shape == (3, 2)


class Frame:
    """A data frame of another library, as Arrow sees one, with an index."""

    def __init__(self, table: pa.Table) -> None:
        index = pa.array(range(table.num_rows))
        told = {b"pandas": b'{"index_columns": ["__index_level_0__"]}'}
        self._table = table.append_column("__index_level_0__", index).replace_schema_metadata(told)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__()


def test_a_data_frame_comes_without_its_index(table: pa.Table) -> None:
    model = bncli.fit(Frame(table), structure="nb", param="map", progress=silent)
    assert "__index_level_0__" not in model.feature_names_in_
    assert model.predict_proba(Frame(table)).shape == (table.num_rows, 3)


def test_measuring_and_drawing(tmp_path: Path, table: pa.Table) -> None:
    told = bncli.evaluate(table, structure="nb", param="map", folds=3, progress=silent)
    assert told["accuracy"] > 0.9
    assert bncli.evaluate(table, test=WINE, structure="nb", param="map", progress=silent)["accuracy"] > 0.9
    report = bncli.compare([WINE], {"a": "--structure nb --param map", "b": "--param map"}, folds=2, progress=silent)
    assert report["learners"]
    drawn = bncli.simulate(bncli.fit(table, param="map", progress=silent), 7, seed=1)
    assert (drawn.num_rows, drawn.column_names) == (7, table.column_names)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (3, "expected a table, found an object of type int"),
        ({"a": [1, "x", {}]}, "column 'a' cannot be read"),
        ({"a": [1], "b": [1, 2]}, "the object is not a table"),
        ({"a": 1, "class": ["x"]}, "column 'a' is of type int; it should be a list"),
        ({"a": "abc", "class": ["x", "y", "z"]}, "column 'a' is of type str; it should be a list"),
        ({"a": [], "class": []}, "no rows"),
    ],
)
def test_what_is_no_table(data: Any, words: str) -> None:
    with pytest.raises(BncliError, match=words):
        bncli.fit(data)


def test_an_error_names_the_table_and_not_a_file_that_is_gone() -> None:
    model = bncli.fit({"a": [1.0, 2.0, 3.0] * 9, "class": ["x", "y", "y"] * 9}, structure="nb", progress=silent)
    with pytest.raises(ModelError, match="no column 'a', which the model uses, the table"):
        model.predict_proba({"b": [1]})
    with pytest.raises(BncliError, match="the table row 2"):
        model.predict_proba({"a": ["1", "zwei"]})
    assert model.predict_proba({"b": [1]}, allow_missing_columns=True).shape == (1, 2)


def test_options() -> None:
    rows = {"a": [1, 2] * 9, "class": ["x", "y"] * 9}
    with pytest.raises(TypeError, match="no option 'structur'; did you mean 'structure'"):
        bncli.fit(rows, structur="nb")
    with pytest.raises(UsageError, match="weights is of type list; it should be the name of a column"):
        bncli.fit(rows, weights=[1.0] * 18)
    with pytest.raises(UsageError, match="group lists a value of type int64; it should be a string"):
        bncli.fit(rows, group=np.arange(3))
    with pytest.raises(UsageError, match="not an object of type dict"):
        bncli.compare([rows], {"a": "--structure nb"})
    model = bncli.fit(rows, structure="nb", param="map", progress=silent)
    with pytest.raises(UsageError, match="n is 0"):
        model.explain(rows, 0)
    with pytest.raises(UsageError, match="rows is 0"):
        bncli.simulate(model, 0)
    with pytest.raises(ModelError, match=r"of a network, model\.bnc; learn the model with param='map'"):
        bncli.simulate(bncli.fit(rows, structure="nb", param="weighted", penalty=1, progress=silent), 1)
    for threads in (0, -1, 1.5, True):
        with pytest.raises(UsageError, match=r"threads is .*at least 1"):
            model.predict_proba(rows, threads=threads)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"k= has no effect.* structure='nb'"):
        bncli.fit(rows, structure="nb", k=2)
    names = {"name": [f"n{i}" for i in range(120)], "b": [1, 1, 2, 2] * 30, "class": ["x", "y"] * 60}
    with pytest.warns(UserWarning, match="name"):
        bncli.fit(names, structure="nb", param="map")
    heard: list[Event] = []
    bncli.fit(rows, structure="nb", param="map", progress=heard.append)
    assert Stage("read") in heard


def test_everything_is_loaded_at_its_first_use() -> None:
    script = "import sys, bncli; assert 'numpy' not in sys.modules; print(sorted(dir(bncli)), bncli.__version__)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "'Classifier'" in done.stdout
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = bncli.nothing


def test_the_environment_and_the_threads_of_others_stay(table: pa.Table) -> None:
    threadpoolctl = pytest.importorskip("threadpoolctl")
    with threadpoolctl.threadpool_limits(limits=2, user_api="blas"):
        before, environment = threadpoolctl.threadpool_info(), dict(os.environ)
        bncli.fit(table, structure="nb", penalty=1, progress=silent)
        assert threadpoolctl.threadpool_info() == before
    assert dict(os.environ) == environment


def test_notebooks_see_names_as_they_are() -> None:
    rows = {"<b>": [1.0, 2.0] * 20, "class": ["<i>", "y"] * 20}
    html = bncli.fit(rows, structure="nb", progress=silent)._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<i>" not in html
