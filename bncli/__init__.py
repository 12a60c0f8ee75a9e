"""Bayesian network classifiers on the command line and in Python.

    import bncli
    model = bncli.fit(table, class_="churn", structure="tan", param="weighted")
    model.predict_proba(other)

The Python functions have the same options as the command line, spelled with `_` instead of `-`, and the same defaults,
except that `threads` is 1. The same rows and options give the same model file, byte for byte, unless there is a time
limit. Modules are loaded when they are first used.

- `cli`, `api`: the command line, and the functions and classes for Python
- `steps`: what the commands do
- `files`: what is read and written
- `engine`: learning and prediction, without files, clocks or options
- `catalogue`, `recipe`: all methods and their options as data; the options of one fit as a value
- `errors`, `watch`: errors with a hint; events that a running step reports
"""

TYPE_CHECKING = False  # type checkers take it for typing.TYPE_CHECKING, which would have to be loaded
if TYPE_CHECKING:
    from typing import Any

    from bncli.api.estimator import Classifier as Classifier
    from bncli.api.learning import compare, evaluate, fit, simulate
    from bncli.api.models import Model, load

__version__ = "0.1.0"
__all__ = ["Model", "compare", "evaluate", "fit", "load", "simulate"]

_MODULES = {"Classifier": "estimator", "Model": "models", "load": "models"}


def __getattr__(name: str) -> "Any":
    if name not in (*__all__, "Classifier"):
        raise AttributeError(f"module 'bncli' has no attribute {name!r}")
    from importlib import import_module

    try:
        return getattr(import_module(f"bncli.api.{_MODULES.get(name, 'learning')}"), name)
    except ImportError as error:
        raise AttributeError(str(error)) from error


def __dir__() -> list[str]:
    return ["Classifier", *__all__, "__version__"]
