"""`bncli.Classifier` is an estimator of scikit-learn by scikit-learn's own checks."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
import pyarrow as pa
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_class_weight

from bncli import Classifier, fit

X, Y = load_iris(return_X_y=True)
NB: dict[str, Any] = {"structure": "nb", "param": "map"}


@pytest.mark.parametrize(
    "options",
    [
        NB,
        # Held-out rows choose the penalty; tests/published/test_exports has other learners with one that is typed.
        pytest.param({"structure": "nb", "param": "weighted"}, id="nb-cv", marks=pytest.mark.slow),
    ],
    ids=lambda options: options["structure"],
)
def test_the_checks_of_scikit_learn(options: dict[str, Any]) -> None:
    from sklearn.utils.estimator_checks import check_estimator  # its import takes seconds

    found = check_estimator(Classifier(**options), on_skip=None)
    assert {one["status"] for one in found} <= {"passed", "skipped"}
    assert sum(one["status"] == "passed" for one in found) >= 55


def test_with_other_parts() -> None:
    pipeline = make_pipeline(StandardScaler(), Classifier(**NB))
    assert cross_val_score(pipeline, X, Y).mean() > 0.9
    search = GridSearchCV(Classifier(structure="kdb", param="map"), {"k": [1, 2]}).fit(X, Y)
    assert search.best_score_ > 0.9
    calibrated = CalibratedClassifierCV(Classifier(**NB), cv=3).fit(X, Y)
    assert np.allclose(calibrated.predict_proba(X).sum(axis=1), 1)


def test_empty_containers_are_refused() -> None:
    rows = np.empty((len(Y), 1), object)
    rows[:, 0] = [[] for _ in Y]
    with pytest.raises(TypeError, match="not list"):
        Classifier(**NB).fit(rows, Y)


def test_class_weights_are_rows_so_many_times() -> None:
    labels = np.array(["setosa", "versicolor", "virginica"])[Y]
    weighted = Classifier(**NB, class_weight={"virginica": 3}).fit(X, labels)
    again = np.concatenate([np.arange(len(Y)), *[np.flatnonzero(Y == 2)] * 2])
    repeated = Classifier(**NB).fit(X[again], labels[again])
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-9)
    plain = Classifier(**NB).fit(X, labels)
    assert not np.allclose(weighted.predict_proba(X), plain.predict_proba(X))
    by_words = Classifier(**NB, options={"class_weights": {"virginica": 3}}).fit(X, labels)
    assert np.array_equal(by_words.predict_proba(X), weighted.predict_proba(X))


def test_directions_lead_to_a_label_as_y_has_it() -> None:
    labels = np.array(["setosa", "versicolor", "virginica"])[Y]
    said: dict[str, Any] = {"decreasing": ["x2"]}
    for y, towards in ((labels, "virginica"), (Y, 2), (Y + 0.0, 2.0), (Y - 5, -3)):
        found = Classifier(structure="nb", penalty=1, options=said | {"towards": towards}).fit(X, y)
        assert found.model_ is not None
        line = np.tile(X[60], (50, 1))
        line[:, 2] = np.linspace(0, 8, 50)
        assert np.diff(found.predict_proba(line)[:, 2]).max() <= 1e-9
    with pytest.raises(ValueError, match="towards names the label 'rosa', which does not occur in y"):
        Classifier(options=said | {"towards": "rosa"}).fit(X, labels)
    with pytest.raises(
        ValueError, match="to one label, but y has 3 labels; choose it in options, as in 'towards': 'virginica'"
    ):
        Classifier(options=said).fit(X, labels)


@pytest.mark.parametrize("said", [{"class_weight": "balanced"}, {"options": {"class_weights": "balanced"}}])
def test_balanced_weights_are_those_of_scikit_learn(said: dict[str, Any]) -> None:
    rows = np.flatnonzero((Y < 2) | (np.arange(len(Y)) % 5 == 0))
    x, y = X[rows], Y[rows]
    numbers = compute_class_weight("balanced", classes=np.unique(y), y=y)
    found = Classifier(**NB, **said).fit(x, y).predict_proba(X)
    expected = Classifier(**NB, class_weight=dict(enumerate(numbers))).fit(x, y).predict_proba(X)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert not np.allclose(found, Classifier(**NB).fit(x, y).predict_proba(X))


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"class_weight": {5: 1.0}}, "names the label 5, which does not occur in y"),
        ({"class_weight": {0: -1.0}}, "weight"),
        ({"class_weight": "even"}, "even"),
        ({"class_weight": "balanced", "options": {"class_weights": {0: 2}}}, "are the same setting"),
    ],
)
def test_class_weights_that_are_none(said: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Classifier(**NB, **said).fit(X, Y)


def test_a_label_without_rows_of_weight_needs_none() -> None:
    found = Classifier(**NB, class_weight={0: 2.0, 2: 5.0}).fit(X, Y, sample_weight=(Y < 2).astype(float))
    assert (found.predict_proba(X)[:, 2] == 0).all()


def test_a_pickle_says_the_same() -> None:
    model = Classifier(**NB).fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.classes_.dtype == Y.dtype


def test_text_missing_and_unseen_values() -> None:
    rows = np.array([["red", 1.0, None], ["blue", 2.0, "u"], ["red", np.nan, "v"], ["blue", 3.0, "u"]] * 20, object)
    labels = np.array([True, False, True, False] * 20)
    model = Classifier(**NB).fit(rows, labels)
    assert model.predict(rows).tolist() == labels.tolist()
    p = model.predict_proba(np.array([["green", np.nan, None], [None, 1e9, "never"]], object))
    assert np.isfinite(p).all()


def test_categories_by_name_or_number() -> None:
    codes = np.repeat(np.arange(4), 30)[:, None]
    labels = np.isin(codes[:, 0], (0, 2))
    assert Classifier(**NB, categorical=[0]).fit(codes, labels).score(codes, labels) == 1
    with pytest.raises(ValueError, match="the column 'x7', which X does not have"):
        Classifier(**NB, categorical=[7]).fit(codes, labels)


def test_weights_are_repetitions() -> None:
    times = np.arange(len(Y)) % 3
    weighted = Classifier(**NB).fit(X, Y, sample_weight=times)
    repeated = Classifier(**NB).fit(np.repeat(X, times, axis=0), np.repeat(Y, times))
    assert np.allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-12)


def test_one_class_is_a_constant() -> None:
    model = Classifier(**NB).fit(X, np.ones(len(X)))
    assert model.predict_proba(X).tolist() == [[1.0]] * len(X)
    assert model.predict(X[:2]).tolist() == [1.0, 1.0]


def test_names_of_a_data_frame() -> None:
    class Frame:
        """What scikit-learn and Arrow ask of a data frame."""

        def __init__(self, table: pa.Table) -> None:
            self.table, self.columns, self.shape = table, table.column_names, table.shape

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return self.table.__arrow_c_stream__()

        def __len__(self) -> int:
            return int(self.shape[0])

    table = pa.table({"size": X[:, 2], "weight": X[:, 3], "class": ["a", "b", "c"] * 50})
    model = Classifier(**NB).fit(Frame(table), Y)
    assert model.predict(Frame(table)).shape == Y.shape
    assert set(model.model_.feature_names_in_) <= {"size", "weight", "class"}


@pytest.mark.parametrize("some", [1.0, 0.5])
def test_a_class_without_weight_has_no_probability(some: float) -> None:
    model = Classifier(**NB).fit(X, Y, sample_weight=np.where(Y == 0, 0.0, some))
    p = model.predict_proba(X)
    assert p.shape == (len(X), 3)
    assert not p[:, 0].any()
    assert (model.predict(X)[Y > 0] == Y[Y > 0]).mean() > 0.9
    constant = Classifier(**NB).fit(X, Y, sample_weight=np.where(Y == 2, some, 0.0))
    assert set(constant.predict(X)) == {2}
    with pytest.raises(ValueError, match="at least one non-zero"):
        Classifier(**NB).fit(X, Y, sample_weight=np.zeros(len(Y)))


def test_the_seed_and_the_threads_as_scikit_learn_has_them() -> None:
    model = Classifier(**NB, random_state=np.random.RandomState(3), n_jobs=-1).fit(X, Y)
    assert model.score(X, Y) > 0.9


def test_the_number_of_threads_is_that_of_joblib(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = list[int]()

    def record(*args: Any, **options: Any) -> Any:
        threads.append(options["threads"])
        return fit(*args, **options)

    monkeypatch.setattr("bncli.api.estimator.fit", record)
    cores = joblib.cpu_count()
    for n_jobs in (None, 3, -1, -2):
        Classifier(**NB, n_jobs=n_jobs).fit(X, Y)
    assert threads == [1, 3, cores, max(cores - 1, 1)]
    with pytest.raises(ValueError, match="n_jobs"):
        Classifier(**NB, n_jobs=0).fit(X, Y)


@pytest.mark.slow
def test_the_seed_decides_on_the_folds() -> None:
    """By these folds the penalty is chosen; without a seed it is 0, as everywhere."""

    def learnt(seed: Any) -> np.ndarray:
        found = Classifier(structure="nb", param="discriminative", random_state=seed).fit(X, Y)
        return np.asarray(found.predict_proba(X[:3]))

    by_seed = [learnt(seed) for seed in range(6)]
    assert np.array_equal(learnt(None), by_seed[0])
    assert not all(np.array_equal(one, by_seed[0]) for one in by_seed)
    assert np.array_equal(learnt(np.random.RandomState(3)), learnt(np.random.RandomState(3)))
    drawn = int(np.random.RandomState(3).randint(1 << 31))
    assert np.array_equal(learnt(np.random.RandomState(3)), learnt(drawn))


def test_an_option_has_one_place() -> None:
    with pytest.raises(ValueError, match="options cannot contain 'structure'"):
        Classifier(**NB, options={"structure": "tan"}).fit(X, Y)


@pytest.mark.parametrize(("labels", "words"), [([None, "a"], "missing labels"), (["1", 1], "labels of several types")])
def test_labels_that_cannot_be_ordered(labels: list[Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Classifier(**NB).fit(X, np.array(labels * 75, object))


@pytest.mark.parametrize("missing", [None, math.nan])
@pytest.mark.parametrize("name", [lambda unit: float(unit), lambda unit: f"p{unit}" if unit else 7])
def test_a_row_without_a_group_is_a_group_of_its_own(missing: Any, name: Callable[[int], Any]) -> None:
    groups: list[Any] = [missing if i % 10 == 0 else name(i // 15) for i in range(len(X))]
    with pytest.warns(
        UserWarning, match=f"groups has no value for {len(X) // 10} of {len(X)} rows; each of them is a group"
    ):
        fitted = Classifier(**NB).fit(X, Y, groups=np.array(groups, object))
    assert fitted.model_ is not None
    split = fitted.model_._model.split
    assert split is not None
    assert split.units == len(X) // 10 + len({name(i // 15) for i in range(len(X))})
