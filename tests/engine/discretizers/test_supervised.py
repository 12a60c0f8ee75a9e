"""The discretizers that use the class are the listed ones."""

from importlib import import_module

import numpy as np
import pytest

from bncli.catalogue import DISCRETIZERS
from bncli.engine.discretizers import SUPERVISED


@pytest.mark.parametrize("word", DISCRETIZERS.words)
def test_cuts_depend_on_the_class_where_the_list_says_so(word: str) -> None:
    cut_points = import_module(f"bncli.engine.discretizers.{word.replace('-', '_')}").cut_points
    values = np.arange(100.0)
    found = {cut_points(values, (values >= first).astype(np.uint8), 2, None) for first in (20, 50, 80)}
    assert (len(found) > 1) == (word in SUPERVISED)
