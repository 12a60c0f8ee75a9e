"""How probable training rows are to the network learnt from them: ln P(x), beside which new rows are looked at."""

from __future__ import annotations

from typing import NamedTuple

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


class TrainingLogP(NamedTuple):
    """The mean of ln P(x), in nats, over so many training rows, and what a share of QUANTILES do not exceed."""

    rows: int
    mean: float
    quantiles: tuple[float, ...]

    @property
    def lowest(self) -> float:
        """That of the first of QUANTILES."""
        return self.quantiles[0]
