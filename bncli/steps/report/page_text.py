"""Numbers with as many digits as a reader needs, and lists cut to a few names."""

from __future__ import annotations

import math
from collections.abc import Sequence


def percent(share: float) -> str:
    """Return a share in per cent with one decimal, or more if it is small, and a no-break space before the sign.

    >>> percent(0.1234), percent(0.00012), percent(1)
    ('12.3\\xa0%', '0.012\\xa0%', '100.0\\xa0%')
    """
    return f"{100 * share:.2g}\u00a0%" if 0 < share < 0.001 else f"{100 * share:.1f}\u00a0%"


def figure(value: float | None) -> str:
    """Return a figure with four decimals, or a dash if it is undefined."""
    return "–" if value is None or not math.isfinite(value) else f"{value + 0.0:.4f}"


def times(log_odds: float) -> str:
    """Return the factor by which log-odds change the odds, as text.

    >>> times(0.0), times(-math.log(4)), times(math.log(2000)), times(-math.log(2000)), times(-math.log(83210))
    ('×\\xa01.00', '×\\xa00.25', '×\\xa02,000', '×\\xa00.0005', '÷\\xa083,000')
    """
    if abs(log_odds) > 20:
        return "×\u00a0more than 10⁸" if log_odds > 0 else "×\u00a0less than 10⁻⁸"
    factor = math.exp(log_odds)
    if 0.1 <= factor < 10:
        return f"×\u00a0{factor:.2f}"
    if factor < 1e-4:
        return f"÷\u00a0{float(f'{1 / factor:.2g}'):,.0f}"
    return f"×\u00a0{factor:,.0f}" if factor >= 100 else f"×\u00a0{factor:.2g}"


def count(number: float, what: str, plural: str = "") -> str:
    """Return a number with its noun: `1 row`, `1,204 rows`."""
    return f"{number:,.10g} {what if number == 1 else plural or what + 's'}"


def listed(names: Sequence[str]) -> str:
    """Return the first five names, and the number of the others."""
    more = f" and {len(names) - 5:,} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more
