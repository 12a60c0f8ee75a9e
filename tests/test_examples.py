"""The examples in the docstrings, each line with what it prints."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "bncli"
WITH_EXAMPLES = sorted(path for path in PACKAGE.rglob("*.py") if "\n    >>> " in path.read_text())


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_examples_print_what_they_say(path: Path) -> None:
    """In the names of their own module, as if it were typed there."""
    name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    failed, tried = doctest.testmod(import_module(name))
    assert tried > 0
    assert failed == 0
