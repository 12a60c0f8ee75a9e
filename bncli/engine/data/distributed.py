"""Coded rows whose row blocks live elsewhere: the sister of Dataset, with the same blocks and the same sums.

The blocks follow from N alone, wherever they are, and partial sums are added in block order here: so one machine and
many give the same bytes. Row state that is kept stays beside its block. What a question takes of single rows (`take`:
folds, samples) is drawn from the codes as this process sees them, and is an ordinary Dataset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from bncli.engine.data.dataset import Dataset
from bncli.engine.kernels.arrays import Index


class BlockKeeper(Protocol):
    """Who has the row blocks, in block order."""

    def results(
        self, kernel: Callable[..., Any], broadcast: Sequence[Any], states: Sequence[Any] | None
    ) -> Sequence[Any]:
        """`kernel(block, *broadcast)` of every block, brought here; `states` are arrays or what `keep` returned."""

    def keep(self, kernel: Callable[..., Any], broadcast: Sequence[Any], states: Sequence[Any] | None) -> list[Any]:
        """Stands for the result of every block, which stays where the block is."""


@dataclass(frozen=True)
class DistributedDataset(Dataset):
    """Training rows whose sums are made by `keeper`; codes, labels and weights are the same rows as seen from here."""

    keeper: BlockKeeper = field(kw_only=True)

    def take(self, rows: Index) -> Dataset:
        """The given rows in the given order, copied here."""
        return Dataset(self.schema, self.codes, self.labels, self.weights, self.threads).take(rows)

    def keep(self, kernel: Callable[..., Any], *broadcast: Any, states: Sequence[Any] | None = None) -> list[Any]:
        """`map` without the way home."""
        return self.keeper.keep(kernel, broadcast, states)

    def _results(self, kernel: Callable[..., Any], broadcast: Any, states: Sequence[Any] | None) -> Iterator[Any]:
        return iter(self.keeper.results(kernel, broadcast, states))
