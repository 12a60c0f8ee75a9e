"""What holds for every test: no deadline for hypothesis, since a busy machine is not a fault of the code.

Where the environment sets CI the examples are the same in every run; elsewhere new ones are tried each time.
"""

import os

import pytest
from hypothesis import settings

from bncli.engine import dataset

settings.register_profile("house", deadline=None, max_examples=30, derandomize="CI" in os.environ)
settings.load_profile("house")


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards of 1,024 rows: 20,000 rows make as many as ever there are, in a seventh of the time of real ones."""
    monkeypatch.setattr(dataset, "ROWS_PER_SHARD", 1 << 10)
