"""Tables with defects that make held-out figures too good, each with the finding that it must have.

Sizes, numbers of units and noise vary; labels cannot be learned from the attributes unless the defect gives them away.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Defect:
    """A table, what must be found in it, and the option that the finding names; ignored: columns to leave out."""

    name: str
    columns: dict[str, Sequence[Any]]
    kind: str
    option: str
    ignored: tuple[str, ...] = ()

    def write(self, folder: Path) -> Path:
        path = folder / f"{self.name}.csv"
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            writer.writerows(zip(*self.columns.values(), strict=True))
        return path


def visits(
    n_units: int, sizes: tuple[int, int], jitter: float, seed: int, n_attributes: int = 8, categorical: bool = False
) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """Return the unit of each row, attributes that are nearly the same within a unit, and a random label per unit."""
    rng = np.random.default_rng(seed)
    units = np.repeat(np.arange(n_units), rng.integers(sizes[0], sizes[1] + 1, n_units))
    attributes = []
    for _ in range(n_attributes):
        if categorical:
            values = rng.integers(0, 4, n_units)[units]
            changed = rng.random(len(units)) < jitter
            attributes.append(np.where(changed, rng.integers(0, 4, len(units)), values))
        else:
            attributes.append((rng.normal(size=n_units)[units] + jitter * rng.normal(size=len(units))).round(3))
    labels = np.array(["no", "yes"])[(rng.random(n_units) < 0.43).astype(int)][units]
    return units, attributes, labels


def table(
    units: np.ndarray | None, attributes: Sequence[np.ndarray], labels: np.ndarray, **more: Any
) -> dict[str, Any]:
    first = {} if units is None else {"patient": [f"p{1000 + unit}" for unit in units]}
    return {**first, **{f"x{i}": values for i, values in enumerate(attributes)}, **more, "class": labels}


def shuffled(columns: dict[str, Any], seed: int) -> dict[str, Any]:
    order = np.random.default_rng(seed).permutation(len(columns["class"]))
    return {name: np.asarray(values)[order] for name, values in columns.items()}


def tables_with_defects() -> Iterator[Defect]:
    """Yield the tables."""
    rng = np.random.default_rng(7)
    yield Defect("visits", table(*visits(300, (3, 8), 0.0, 1)), "grouped-rows", "--group patient")
    yield Defect("visits_noisy", shuffled(table(*visits(300, (3, 8), 0.03, 2)), 2), "repeated-rows", "--group patient")
    units, attributes, labels = visits(150, (2, 4), 0.01, 3)
    numbered = {"id": units * 7 + 1003, **table(None, attributes, labels)}
    yield Defect("integer_ids", shuffled(numbered, 3), "grouped-rows", "--group id")
    yield Defect(
        "no_ids", shuffled(table(None, *visits(400, (3, 8), 0.02, 4)[1:]), 4), "repeated-rows", "--group COLUMN"
    )
    yield Defect("ignored_ids", table(*visits(300, (3, 8), 0.0, 5)), "repeated-rows", "--group patient", ("patient",))
    names = table(None, *visits(250, (3, 6), 0.05, 6, 14, categorical=True)[1:])
    yield Defect("names_only", names, "repeated-rows", "--group COLUMN")
    # noise of 15 % and no identifier: only the labels give the copies away
    for name, noisy in {
        "noisy_numbers": visits(300, (3, 8), 0.15, 21),
        "noisy_names": visits(300, (3, 8), 0.15, 22, categorical=True),
        "noisy_pairs": visits(400, (2, 3), 0.15, 23),
        "noisy_many": visits(1000, (2, 10), 0.15, 24),
    }.items():
        made = table(None, *noisy[1:])
        yield Defect(name, shuffled(made, 5), "repeated-rows", "--group COLUMN")
    units, attributes, labels = visits(400, (3, 6), 0.15, 25)
    named = visits(400, (3, 6), 0.15, 25, 4, categorical=True)[1]
    mixed = table(None, [*attributes[:4], *(np.array(list("abcd"))[column] for column in named)], labels)
    yield Defect("noisy_mixed", shuffled(mixed, 6), "repeated-rows", "--group COLUMN")
    units, attributes, labels = visits(300, (3, 8), 0.15, 26)
    labels = np.where(attributes[0] + attributes[1] > 1.2, "yes", labels)
    yield Defect("noisy_learnable", table(None, attributes, labels), "repeated-rows", "--group COLUMN")
    # attributes of orders are independent of each other; the label is mostly that of the customer
    units, _, labels = visits(800, (2, 6), 0.0, 7)
    flipped = rng.random(len(units)) < 0.1
    labels = np.where(flipped, np.where(labels == "yes", "no", "yes"), labels)
    fresh = [rng.normal(size=len(units)).round(2) for _ in range(5)]
    yield Defect("orders", shuffled(table(units, fresh, labels), 7), "grouped-rows", "--group patient")
    yield Defect(
        "orders_ignored", shuffled(table(units, fresh, labels), 8), "grouped-rows", "--group patient", ("patient",)
    )
    units, _, labels = visits(60, (30, 50), 0.0, 9)
    readings = [rng.normal(size=len(units)).round(2) for _ in range(4)]
    yield Defect("machines", table(units, readings, labels), "grouped-rows", "--group patient")
    rows = np.repeat(np.arange(200), rng.integers(1, 4, 200))
    copied = table(None, [rng.normal(size=200).round(2)[rows] for _ in range(6)], np.array(["a", "b", "c"])[rows % 3])
    yield Defect("copies", shuffled(copied, 10), "repeated-rows", "--group COLUMN")
    n = 1200
    labels = np.array(["kept", "cancelled"])[(rng.random(n) < 0.2).astype(int)]
    noise = [rng.normal(size=n).round(2) for _ in range(5)]
    reasons = np.where(labels == "cancelled", rng.choice(["price", "moved", "other"], n), "")
    yield Defect("reason", table(None, noise, labels, reason=reasons), "leak", "--ignore reason")
    refund = np.where(labels == "cancelled", rng.gamma(2, 50, n) + 5, 0) * (rng.random(n) > 0.01)
    yield Defect("refund", table(None, noise, labels, refund=refund.round(2)), "leak", "--ignore refund")
    days = np.sort(rng.integers(0, 700, n))
    when = [str(date(2023, 1, 1) + timedelta(days=int(day))) for day in days]
    drifting = np.array(["no", "yes"])[(rng.random(n) < 0.1 + 0.6 * days / 700).astype(int)]
    yield Defect("class_drift", shuffled(table(None, noise, drifting, when=when), 11), "drift", "--time when")
    moving = [(rng.normal(size=n) + 3 * days / 700).round(2) for _ in range(3)]
    still = np.array(["no", "yes"])[rng.integers(0, 2, n)]
    yield Defect("attribute_drift", table(None, [*moving, *noise], still, when=when), "drift", "--time when")
