"""`bncli.Classifier`: bncli as an estimator of scikit-learn (needs the extra `sklearn`, scikit-learn 1.8 or later).

- Columns of an array are named x0, x1, ...; columns of a data frame keep their names. Columns of strings or
  categories, and columns named in `categorical`, are categorical. But a column of an object array is numeric if all its
  values are numbers, and so is a column of a string array if all its values can be read as numbers.
- Missing values and values not seen in training are treated as by `bncli score`.
- Class labels may be anything that scikit-learn allows. With a single class the model is constant.
- Rows are sorted before folds are drawn. If all weights are integers, a row of weight w becomes w rows (up to MOST_ROWS
  in total). So the order of the rows does not change the model, and a weight of 2 is the same as repeating the row.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bncli.api.calls import column_of, table_of
from bncli.api.learning import fit
from bncli.api.models import Model
from bncli.engine.kernels.arrays import Array
from bncli.errors import BncliError

try:
    from joblib import effective_n_jobs  # a dependency of scikit-learn
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils import check_array, check_random_state, column_or_1d
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _check_sample_weight, check_consistent_length, check_is_fitted, validate_data
except ImportError as error:
    raise ImportError('bncli.Classifier needs scikit-learn: pip install "bncli[sklearn]"') from error

MOST_ROWS = 10_000_000
_CLASS, _WEIGHT, _GROUP = "class", "weight", "group"
_PARAMETERS = ("structure", "param", "penalty", "k", "smoothing", "discretize", "effort")


class Classifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A Bayesian network classifier for scikit-learn.

    structure, param, penalty, k, smoothing, discretize, effort: options of `bncli fit`; None for the defaults.
    categorical: names of columns whose values are categories (for an array x0, x1, ..., or column numbers).
    class_weight: weight of the rows of each class (`bncli fit --class-weights`), as `balanced` or a number per label; a
        label without a number has weight 1.
    options: any other options of `bncli fit`, with `_` for `-`.
    random_state: the seed of folds and draws. n_jobs: number of threads, None for one, -1 for all cores,
        -2 for all but one.

    Attributes after `fit`: `model_`, a `bncli.Model` (None with a single class); `classes_` (K,); `n_features_in_` and
    `feature_names_in_` as usual in scikit-learn.
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Classifier:
        """Learn from rows X (N, n) with classes y (N,), and return self; rows of `sample_weight` 0 are ignored.

        sample_weight: one weight per row, shape (N,). groups: the group of each row (N,); no split inside learning has
        rows of one group on both sides. A row whose group is None or NaN is a group of its own, with a warning. Raises
        ValueError for missing labels, for strings mixed with other labels, and in place of a BncliError; TypeError for
        an unknown option.
        """
        if y is None:
            raise ValueError("This Classifier estimator requires y to be passed, but the target y is None.")
        columns = self._columns(X, reset=True)
        labels: NDArray[Any] = column_or_1d(y, warn=True)
        if labels.dtype.kind == "O" and any(label is None for label in labels):
            raise ValueError("y has missing labels; remove these rows")
        if labels.dtype.kind == "O" and len({isinstance(label, str) for label in labels}) > 1:
            raise ValueError("y has labels of several types, strings among them; convert all to one type")
        check_consistent_length(X, labels)
        if labels.dtype.kind == "f":
            check_array(labels, ensure_2d=False, input_name="y")
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        weights = np.ones(len(codes))
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        # Classes without any row of positive weight are not learned; they get probability 0.
        self._codes_learnt = np.unique(codes[weights > 0])
        self.model_: Model | None = None
        if len(self._codes_learnt) > 1:
            self.model_ = self._fit_model(columns, codes, weights, groups)
        return self

    def _fit_model(self, columns: dict[str, Any], codes: NDArray[Any], weights: Array, groups: Any) -> Model:
        """Return a model fitted to these columns, class codes (N,), weights (N,), and groups (N,) or None.

        The columns of the class and of the groups are added to `columns`. Raises ValueError for unknown columns in
        `categorical`, for a misplaced option, and in place of a BncliError.
        """
        other_options = self.options or {}
        class_column = _unused_name(_CLASS, columns)
        columns[class_column] = pa.array(codes.astype(str))
        categorical = [f"x{c}" if isinstance(c, (int, np.integer)) else str(c) for c in self.categorical or ()]
        if unknown := [name for name in categorical if name not in columns]:
            what = f"categorical names the column {unknown[0]!r}, which X does not have"
            raise ValueError(f"{what}; categorical must list column names, or column numbers starting at 0")
        table_options: dict[str, Any] = {"class_": class_column, "categorical": categorical}
        if groups is not None:
            values: NDArray[Any] = column_or_1d(groups)
            check_consistent_length(codes, values)
            table_options["group"] = [_unused_name(_GROUP, columns)]
            # `!=` holds for NaN; pandas.NA cannot be compared
            is_missing = np.array([v is None or type(v).__name__ == "NAType" or v != v for v in values.tolist()], bool)
            present = values[~is_missing]
            # numbers and strings together cannot be sorted
            has_both = len({isinstance(value, str) for value in present.tolist()}) > 1
            group_codes = len(values) + np.arange(len(values))
            group_codes[~is_missing] = np.unique(present.astype(str) if has_both else present, return_inverse=True)[1]
            columns[table_options["group"][0]] = pa.array(group_codes)
            if n_missing := int(is_missing.sum()):
                what = (
                    f"groups has no value for {n_missing:,} of {len(values):,} rows; each of them is a group of its own"
                )
                warnings.warn(what, UserWarning, stacklevel=3)
        table = pa.table(columns)
        # Whole weights are repetitions of rows; other weights are a column.
        are_whole = (weights == np.floor(weights)).all() and weights.sum() <= MOST_ROWS
        times = weights.astype(np.int64) if are_whole else (weights > 0).astype(np.int64)
        if not are_whole:
            table_options["weights"] = _unused_name(_WEIGHT, columns)
            table = table.append_column(table_options["weights"], pa.array(weights))
        table = table.take(pa.array(np.repeat(np.arange(len(weights)), times)))
        for word in (*_PARAMETERS, "seed", "categorical", "class_", "weights", "group"):
            if word in other_options:
                raise ValueError(
                    f"options cannot contain {word!r}: use the parameter of Classifier or the argument of fit instead"
                )
        parameters = {word: getattr(self, word) for word in _PARAMETERS if getattr(self, word) is not None}
        seed = 0 if self.random_state is None else self.random_state
        if not isinstance(seed, (int, np.integer)):
            seed = int(check_random_state(seed).randint(1 << 31))
        try:
            # Sort the rows by their contents, with columns as Arrow can sort them.
            keys = {}
            for i, column in enumerate(table.columns):
                if not pa.types.is_nested(column.type):
                    if pa.types.is_dictionary(column.type):
                        column = column.cast(column.type.value_type)
                    keys[f"c{i}"] = column.cast(pa.float32()) if pa.types.is_float16(column.type) else column
            order = pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys])
            return fit(
                table.take(order),
                threads=effective_n_jobs(self.n_jobs),
                progress=lambda event: None,
                **{"seed": int(seed), **parameters, **other_options, **self._label_options(), **table_options},
            )
        except BncliError as error:
            raise ValueError(str(error)) from error

    def _label_options(self) -> dict[str, Any]:
        """Return class_weights, and towards if it is given, with codes in place of labels.

        Raises ValueError for labels that y lacks, for two settings of the class weights, and for a missing `towards` if
        monotonicity constraints need one.
        """
        options, labels = self.options or {}, self.classes_.tolist()
        class_weights = options.get("class_weights", self.class_weight)
        if class_weights is not self.class_weight and self.class_weight is not None:
            raise ValueError("class_weight and options['class_weights'] are the same setting: leave one of them out")
        if isinstance(class_weights, Mapping):
            code_of = {label: code for code, label in enumerate(labels)}
            if unknown := [label for label in class_weights if label not in code_of]:
                raise ValueError(f"class_weight names the label {unknown[0]!r}, which does not occur in y")
            learnt = {label: w for label, w in class_weights.items() if code_of[label] in self._codes_learnt}
            class_weights = {str(code_of[label]): w for label, w in learnt.items()} or None
        if (towards := options.get("towards")) is None:
            if (options.get("increasing") or options.get("decreasing")) and len(self._codes_learnt) > 2:
                what = f"increasing and decreasing refer to one label, but y has {len(self._codes_learnt)} labels"
                example = f"'towards': {labels[max(self._codes_learnt)]!r}"
                raise ValueError(f"{what}; choose it in options, as in {example}")
            return {"class_weights": class_weights}
        codes = [code for code, label in enumerate(labels) if label == towards and code in self._codes_learnt]
        if not codes:
            raise ValueError(f"towards names the label {towards!r}, which does not occur in y")
        return {"class_weights": class_weights, "towards": str(codes[0])}

    def predict_proba(self, X: Any) -> Array:
        """Return P(y | x_t), shape (N, K), with columns in the order of `classes_`.

        Raises ValueError for rows that do not fit the model.
        """
        check_is_fitted(self)
        columns = self._columns(X, reset=False)
        probabilities = np.zeros((len(next(iter(columns.values()))), len(self.classes_)))
        if self.model_ is None:
            probabilities[:, self._codes_learnt] = 1.0
            return probabilities
        try:
            learnt = self.model_.predict_proba(pa.table(columns), threads=effective_n_jobs(self.n_jobs))
        except BncliError as error:
            raise ValueError(str(error)) from error
        probabilities[:, self._codes_learnt] = learnt
        return probabilities

    def predict_interval(self, X: Any, level: float = 0.9) -> Array:
        """Return the lower and the upper end of the interval of each probability, shape (N, K, 2).

        An interval contains the true P(y | x_t) with probability `level`. The estimator needs the option `intervals`:
        `options={"intervals": True}`. Raises ValueError without it, for a level that is not between 0 and 1, and for
        rows that do not fit the model.
        """
        check_is_fitted(self)
        columns = self._columns(X, reset=False)
        ends = np.zeros((len(next(iter(columns.values()))), len(self.classes_), 2))
        if self.model_ is None:
            ends[:, self._codes_learnt] = 1.0
            return ends
        try:
            learnt = self.model_.predict_interval(pa.table(columns), level, threads=effective_n_jobs(self.n_jobs))
        except BncliError as error:
            raise ValueError(str(error)) from error
        ends[:, self._codes_learnt] = learnt
        return ends

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row, shape (N,)."""
        best = self.predict_proba(X).argmax(axis=1)
        classes: NDArray[Any] = self.classes_[best]
        return classes

    def _columns(self, X: Any, reset: bool) -> dict[str, pa.Array]:
        """Return the columns of X, keyed by name, after the checks that scikit-learn requires.

        Raises the errors of these checks, such as ValueError if there are no rows.
        """
        if hasattr(X, "__arrow_c_stream__") and hasattr(X, "columns"):
            validate_data(self, X, reset=reset, skip_check_array=True)
            table = table_of(X)
            if not table.num_rows:
                raise ValueError(f"Found array with 0 sample(s) (shape={X.shape}) while a minimum of 1 is required.")
            return dict(zip(table.column_names, table.columns, strict=True))
        rows = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")
        return {f"x{i}": _array_column(rows[:, i]) for i in range(rows.shape[1])}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def _unused_name(name: str, columns: Mapping[str, Any]) -> str:
    """Return the name, with underscores added until no column has it."""
    while name in columns:
        name += "_"
    return name


def _array_column(values: NDArray[Any]) -> pa.Array:
    """Convert an array to an Arrow column; NaN becomes missing.

    An array of a string dtype becomes numbers if every string is a number; strings in an object array stay strings.

    Raises TypeError for values that are dicts, lists, sets or tuples.
    """
    if values.dtype.kind in "biuf":
        return pa.array(values.astype(np.float64) if values.dtype.kind == "f" else values, from_pandas=True)
    container = next((value for value in values if isinstance(value, (dict, list, set, tuple))), None)
    if container is not None:
        raise TypeError(f"argument must be a string or a real number, not {type(container).__name__}")
    if values.dtype.kind in "US":
        with suppress(ValueError):
            return pa.array(values.astype(np.float64), from_pandas=True)
    return column_of(values, "of the array")
