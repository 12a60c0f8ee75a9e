"""Boosting and additive models of other packages, for `anchors`: EBM, LightGBM and CatBoost, one setting each.

All see categories as such, and a missing category as one more level; numbers have NaN where they are missing. LightGBM
and CatBoost stop by a seventh of the training rows, the same rows as "xgboost, early" of `references`.
EBM is interpret's ExplainableBoostingClassifier with its defaults: 14 outer bags, each a whole fit whose validation
rows are others, pairs searched for, at most 1,024 intervals an attribute and 64 in a pair. One thread each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bncli.engine.data.columns import CategoricalColumn, Columns
from tests.published.references import LEARNERS as REFERENCES
from tests.published.references import Array, Learner, frame, held_out, labels_of, spread

OUTER_BAGS = 14
"""EBM's default, stated because its seconds are proportional to it."""


def _lightgbm(train: Columns, test: Columns, n_labels: int) -> Callable[[], Array]:
    import lightgbm

    shape: dict[str, Any] = {
        "num_leaves": 15,
        "subsample": 0.8,
        "subsample_freq": 1,
        "colsample_bytree": 0.8,
        "reg_lambda": 1.0,
    }
    model = lightgbm.LGBMClassifier(n_estimators=600, learning_rate=0.1, **shape, n_jobs=1, random_state=0, verbose=-1)
    x, z, y = frame(train), frame(test), labels_of(train)
    kept, held = held_out(y)
    stop = lightgbm.early_stopping(20, verbose=False)
    model.fit(x[kept], y[kept], eval_X=x[held], eval_y=y[held], callbacks=[stop])
    return lambda: spread(model, z, n_labels)


def _catboost(train: Columns, test: Columns, n_labels: int) -> Callable[[], Array]:
    """CatBoost's defaults: 1,000 trees at most, the rate of learning its own choice; stopped after 50 without gain."""
    import catboost

    x, z, y = _integers(train), _integers(test), labels_of(train)
    kept, held = held_out(y)
    names = [name for name, is_categorical in zip(x.columns, _categorical(train), strict=True) if is_categorical]
    model = catboost.CatBoostClassifier(
        iterations=1000, thread_count=1, random_seed=0, allow_writing_files=False, verbose=False
    )
    model.fit(x[kept], y[kept], cat_features=names, eval_set=(x[held], y[held]), early_stopping_rounds=50)
    return lambda: spread(model, z, n_labels)


def _ebm(train: Columns, test: Columns, n_labels: int) -> Callable[[], Array]:
    from interpret.glassbox import ExplainableBoostingClassifier

    x, z = (_integers(part) for part in (train, test))
    kinds = ["nominal" if is_categorical else "continuous" for is_categorical in _categorical(train)]
    model = ExplainableBoostingClassifier(feature_types=kinds, outer_bags=OUTER_BAGS, n_jobs=1)
    model.fit(x, labels_of(train))
    return lambda: spread(model, z, n_labels)


def _categorical(columns: Columns) -> list[bool]:
    return [isinstance(c, CategoricalColumn) for c in columns.attributes.values()]


def _integers(columns: Columns) -> Any:
    """The frame with categories as whole numbers, -1 for a missing one."""
    x = frame(columns)
    return x.astype({name: int for name, c in zip(x.columns, _categorical(columns), strict=True) if c})


ANCHORS: dict[str, Learner] = {
    "HistGradientBoosting, early": REFERENCES["HistGradientBoosting, early"],
    "xgboost, early": REFERENCES["xgboost, early"],
    "LightGBM, early": _lightgbm,
    "CatBoost, early": _catboost,
    "EBM": _ebm,
}
"""By name; the first two are measured again, so that all seconds are those of one machine."""
