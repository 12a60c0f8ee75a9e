"""A calibration in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bncli.engine.calibration.maps import Calibration


def calibration_facts(calibration: Calibration, labels: tuple[str, ...]) -> dict[str, str]:
    """The calibration in two lines, by what they are about."""
    from bncli.engine.calibration.maps import Isotonic, Temperature

    found, rows = calibration.map, f"{calibration.rows:,} row{'s' * (calibration.rows != 1)}"
    if isinstance(found, Temperature):
        told = f"temperature {found.temperature:.4g}"
    elif isinstance(found, Isotonic):
        names = labels if len(found.knots) > 1 else labels[1:]
        counts = zip(names, found.knots, strict=True)
        told = "isotonic, " + _listed([f"{label} by {len(one.at):,} knots" for label, one in counts])
    else:
        pairs = zip(labels, found.scales, found.shifts, strict=True)
        told = "per-class, " + _listed([f"{label} x {a:.4g} {b:+.4g}" for label, a, b in pairs])
    change = f"{calibration.before:.4f} before, {calibration.after:.4f} after, on the {rows} it was learnt from"
    return {"calibration": told, "log-loss": change}


def _listed(texts: list[str]) -> str:
    more = f" and {len(texts) - 5:,} more labels" if len(texts) > 5 else ""
    return ", ".join(texts[:5]) + more
