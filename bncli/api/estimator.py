"""`bncli.Classifier`: bncli as an estimator of scikit-learn (the extra `sklearn`, scikit-learn 1.8 or later).

Columns of an array are called x0, x1, ...; those of a data frame keep their names, and its columns of text, of
categories and those named in `categorical` are categorical. Missing values and values that training never saw are
taken as `bncli score` takes them. Class labels may be anything that scikit-learn allows.

Conventions: a column of an object array is of numbers if all its values are, else of text. A single class is learnt
from as the constant that it is. Rows are sorted before folds are drawn, and one whose weight is a whole number is so
many rows (up to MOST_ROWS in all): so neither the order of rows nor their repetition changes what is learnt.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bncli.api.learning import fit
from bncli.api.models import Model
from bncli.api.tables import column_of, table_of
from bncli.engine.kernels.arrays import Array
from bncli.errors import BncliError

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils import check_array, check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _check_sample_weight, check_consistent_length, check_is_fitted, validate_data
except ImportError as error:
    raise ImportError('bncli.Classifier needs scikit-learn: pip install "bncli[sklearn]"') from error

MOST_ROWS = 10_000_000
_CLASS, _WEIGHT = "class", "weight"


class Classifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A Bayesian network classifier for scikit-learn.

    structure, param, penalty, k, smoothing, discretize, effort: the options of `bncli fit`, None for its defaults;
    `options`: any others, by their words with `_` for `-`. categorical: names of columns (of an array x0, x1, ..., or
    numbers) whose values are categories. class_weight: what rows of a class weigh (`bncli fit --class-weights`), as
    `balanced` or a number per label, 1 where none is said. random_state: the seed of folds and draws. n_jobs: threads,
    None for one, -1 for every core.

    Learnt: `model_`, a `bncli.Model` (None of a single class); `classes_` (K,); `n_features_in_`, `feature_names_in_`
    as scikit-learn has them.
    """

    def __init__(
        self,
        structure: str | None = None,
        param: str | None = None,
        *,
        penalty: Any = None,
        k: int | None = None,
        smoothing: str | None = None,
        discretize: str | None = None,
        effort: int | None = None,
        categorical: Sequence[str | int] | None = None,
        class_weight: str | Mapping[Any, float] | None = None,
        options: Mapping[str, Any] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.structure = structure
        self.param = param
        self.penalty = penalty
        self.k = k
        self.smoothing = smoothing
        self.discretize = discretize
        self.effort = effort
        self.categorical = categorical
        self.class_weight = class_weight
        self.options = options
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Classifier:
        """Learn from rows X (N, n) and classes y (N,); rows whose sample_weight (N,) is 0 count for nothing."""
        if y is None:
            raise ValueError("This Classifier estimator requires y to be passed, but the target y is None.")
        columns = self._columns(X, reset=True)
        from sklearn.utils import column_or_1d

        labels: NDArray[Any] = column_or_1d(y, warn=True)
        if labels.dtype.kind == "O" and any(label is None for label in labels):
            raise ValueError("y has missing labels: leave these rows out")
        if labels.dtype.kind == "O" and len({isinstance(label, str) for label in labels}) > 1:
            raise ValueError("y mixes texts and other labels")
        check_consistent_length(X, labels)
        if labels.dtype.kind == "f":
            check_array(labels, ensure_2d=False, input_name="y")
        check_classification_targets(labels)
        y = labels
        self.classes_, codes = np.unique(y, return_inverse=True)
        weights = np.ones(len(codes))
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        self._met = np.unique(codes[weights > 0])
        """Those of `classes_` that rows of any weight have: the others have probability 0."""
        self.model_: Model | None = None
        if len(self._met) > 1:
            self.model_ = self._learnt(columns, codes, weights)
        return self

    def _learnt(self, columns: dict[str, Any], codes: NDArray[Any], weights: Array) -> Model:
        columns[self._free(_CLASS, columns)] = pa.array(codes.astype(str))
        said: dict[str, Any] = {"class_": next(reversed(columns)), "categorical": self._categorical(columns)}
        table = pa.table(columns)
        whole = (weights == np.floor(weights)).all() and weights.sum() <= MOST_ROWS
        times = weights.astype(np.int64) if whole else (weights > 0).astype(np.int64)
        if not whole:
            said["weights"] = self._free(_WEIGHT, columns)
            table = table.append_column(said["weights"], pa.array(weights))
        table = table.take(pa.array(np.repeat(np.arange(len(weights)), times)))
        words = ("structure", "param", "penalty", "k", "smoothing", "discretize", "effort")
        chosen = {word: getattr(self, word) for word in words if getattr(self, word) is not None}
        if twice := [
            word for word in (*words, "seed", "categorical", "class_", "weights") if word in (self.options or {})
        ]:
            raise ValueError(f"options cannot hold {twice[0]!r}, which has a parameter of its own")
        seed = 0 if self.random_state is None else self.random_state
        if not isinstance(seed, (int, np.integer)):
            seed = int(check_random_state(seed).randint(1 << 31))
        try:
            # The rows in an order that follows from what they hold.
            plain = {
                f"c{i}": _plain(column) for i, column in enumerate(table.columns) if not pa.types.is_nested(column.type)
            }
            keys = [(name, "ascending") for name in plain]
            return fit(
                table.take(pc.sort_indices(pa.table(plain), sort_keys=keys)),
                threads=self._threads(),
                progress=lambda event: None,
                **{"seed": int(seed), **chosen, **(self.options or {}), **self._of_labels(), **said},
            )
        except BncliError as error:
            raise ValueError(str(error)) from error

    def _of_labels(self) -> dict[str, Any]:
        """Return the options that name labels, by the names that these have in the table that is learnt from."""
        found = {"class_weights": self._class_weights()}
        options, labels = self.options or {}, self.classes_.tolist()
        if (towards := options.get("towards")) is None:
            if (options.get("increasing") or options.get("decreasing")) and len(self._met) > 2:
                what = f"directions are about one label, and y has {len(self._met)}"
                raise ValueError(f"{what}: name it in the options, as in 'towards': {labels[max(self._met)]!r}")
            return found
        codes = [code for code, label in enumerate(labels) if label == towards and code in self._met]
        if not codes:
            raise ValueError(f"towards names the label {towards!r}, which y does not have")
        return found | {"towards": str(codes[0])}

    def _class_weights(self) -> Any:
        """Return a number per label."""
        weights = (self.options or {}).get("class_weights", self.class_weight)
        if weights is not self.class_weight and self.class_weight is not None:
            raise ValueError("class_weight and the option 'class_weights' say the same: leave one of them out")
        if not isinstance(weights, Mapping):
            return weights
        codes = {label: code for code, label in enumerate(self.classes_.tolist())}
        if unknown := [label for label in weights if label not in codes]:
            raise ValueError(f"class_weight names the label {unknown[0]!r}, which y does not have")
        return {str(codes[label]): w for label, w in weights.items() if codes[label] in self._met} or None

    def predict_proba(self, X: Any) -> Array:
        """Return P(y | x_t), shape (N, K), the columns as `classes_`."""
        check_is_fitted(self)
        columns = self._columns(X, reset=False)
        found = np.zeros((len(next(iter(columns.values()))), len(self.classes_)))
        try:
            found[:, self._met] = (
                1.0 if self.model_ is None else self.model_.predict_proba(pa.table(columns), threads=self._threads())
            )
        except BncliError as error:
            raise ValueError(str(error)) from error
        return found

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of every row (N,)."""
        best = self.predict_proba(X).argmax(axis=1)
        found: NDArray[Any] = self.classes_[best]
        return found

    def _threads(self) -> int:
        if self.n_jobs is None:
            return 1
        return int(self.n_jobs) if self.n_jobs > 0 else os.cpu_count() or 1

    def _columns(self, X: Any, reset: bool) -> dict[str, pa.Array]:
        """Return the columns by name, checked as scikit-learn wants it."""
        if hasattr(X, "__arrow_c_stream__") and hasattr(X, "columns"):
            validate_data(self, X, reset=reset, skip_check_array=True)
            table = table_of(X)
            if not table.num_rows:
                raise ValueError(f"Found array with 0 sample(s) (shape={X.shape}) while a minimum of 1 is required.")
            return dict(zip(table.column_names, table.columns, strict=True))
        rows = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")
        return {f"x{i}": _column(rows[:, i]) for i in range(rows.shape[1])}

    def _free(self, name: str, columns: Mapping[str, Any]) -> str:
        """Return a name that no column has."""
        while name in columns:
            name += "_"
        return name

    def _categorical(self, columns: Mapping[str, pa.Array]) -> list[str]:
        names = [f"x{one}" if isinstance(one, (int, np.integer)) else str(one) for one in self.categorical or ()]
        if unknown := [name for name in names if name not in columns]:
            what = f"there is no column {unknown[0]!r} to be categorical"
            raise ValueError(f"{what}: categorical lists names of columns, or their numbers from 0")
        return names

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column as Arrow can sort it."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(pa.float32()) if pa.types.is_float16(column.type) else column


def _column(values: NDArray[Any]) -> pa.Array:
    """Return a column of an array: numbers with NaN missing; texts, numbers too if all are; what objects are."""
    if values.dtype.kind in "biuf":
        return pa.array(values.astype(np.float64) if values.dtype.kind == "f" else values, from_pandas=True)
    if wrong := next((v for v in values if isinstance(v, (dict, list, set, tuple))), None):
        raise TypeError(f"argument must be a string or a real number, not {type(wrong).__name__}")
    if values.dtype.kind in "US":
        with suppress(ValueError):
            return pa.array(values.astype(np.float64), from_pandas=True)
    return column_of(values, "of the array")
