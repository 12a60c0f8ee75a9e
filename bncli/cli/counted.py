"""What commands say of counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bncli.engine.counting.counted_rows import CountedRows


def of_counts(counted: CountedRows) -> list[str]:
    """What counts are of."""
    weight = counted.class_counts.sum().item()
    weighted = "" if weight == counted.n_rows else f", which weigh {weight:,.10g}"
    tables = "all pairs" if counted.wanted is None else "those of a structure"
    return [
        f"class       {counted.cuts.class_name} ({len(counted.labels):,} labels)",
        f"rows        {counted.n_rows:,}{weighted}",
        f"attributes  {len(counted.cuts.attributes):,}",
        f"tables      {tables}, {len(counted.numbers):,} {'sums that decay' if counted.is_decayed else 'numbers'}",
    ]
