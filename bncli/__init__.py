"""Bayesian network classifiers on the command line, and in Python.

    import bncli
    model = bncli.fit(table, class_="churn", structure="tan", param="weighted")
    model.predict_proba(other)

What a command learns, Python learns too: options by their words with `_` for `-`, the same defaults, the same bytes.
Everything is loaded at its first use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bncli.api.estimator import Classifier as Classifier
    from bncli.api.learning import compare, evaluate, fit, simulate
    from bncli.api.models import Model, load

__version__ = "0.1.0"
__all__ = ["Model", "compare", "evaluate", "fit", "load", "simulate"]

_PLACES = {"Classifier": "estimator", "Model": "models", "load": "models"}


def __getattr__(name: str) -> Any:
    if name not in (*__all__, "Classifier"):
        raise AttributeError(f"module 'bncli' has no attribute {name!r}")
    from importlib import import_module

    try:
        return getattr(import_module(f"bncli.api.{_PLACES.get(name, 'learning')}"), name)
    except ImportError as error:
        raise AttributeError(str(error)) from error


def __dir__() -> list[str]:
    return ["Classifier", *__all__, "__version__"]
