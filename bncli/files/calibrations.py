"""The calibration of a model as JSON: the method, its numbers, and what it was learnt from."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from bncli.engine.calibration.maps import METHODS, Calibration, CalibrationMap, Isotonic, Knots, PerClass, Temperature
from bncli.files.documents import Node

CALIBRATION = "calibration"
"""The key in a model file."""
_FREQUENCIES = "label_frequencies"
_KEYS = {"temperature": ("temperature",), "per-class": ("scales", "shifts"), "isotonic": ("knots",)}


def calibration_json(calibration: Calibration) -> dict[str, Any]:
    """`log_loss` is that of the calibration rows, before and after, in nats a row."""
    numbers = _numbers(calibration.map)
    log_loss = {"before": calibration.before, "after": calibration.after}
    counted = {_FREQUENCIES: list(calibration.frequencies)} if calibration.frequencies else {}
    return {"method": calibration.map.method, "rows": calibration.rows, "log_loss": log_loss, **counted, **numbers}


def _numbers(found: CalibrationMap) -> dict[str, Any]:
    if isinstance(found, Temperature):
        return {"temperature": found.temperature}
    if isinstance(found, PerClass):
        return {"scales": list(found.scales), "shifts": list(found.shifts)}
    return {"knots": [{"at": list(one.at), "values": list(one.values)} for one in found.knots]}


def read_calibration(node: Node, n_labels: int) -> Calibration:
    """What `calibration_json` wrote, for a model of so many labels."""
    members = node.members()
    if "method" not in members:
        node.fail("the key 'method' is missing")
    method = members["method"].text()
    if method not in METHODS:
        members["method"].fail(f"no calibration is called {method!r}")
    counted = () if method == Temperature.method else (_FREQUENCIES,)
    fields = node.fields(("method", "rows", "log_loss", *_KEYS[method]), counted)
    losses = fields["log_loss"].fields(("before", "after"))
    before, after = losses["before"].number(), losses["after"].number()
    frequencies = _row(fields[_FREQUENCIES], n_labels) if _FREQUENCIES in fields else ()
    if frequencies and min(frequencies) <= 0:
        fields[_FREQUENCIES].fail("the weight of a label is above 0")
    return Calibration(_map(fields, method, n_labels), fields["rows"].integer(1), before, after, frequencies)


def _map(fields: dict[str, Node], method: str, n_labels: int) -> CalibrationMap:
    if method == Temperature.method:
        temperature = fields["temperature"].number()
        if temperature <= 0:
            fields["temperature"].fail("a temperature is above 0")
        return Temperature(temperature)
    if method == PerClass.method:
        scales = _row(fields["scales"], n_labels)
        if min(scales) < 0:
            fields["scales"].fail("no scale is below 0")
        return PerClass(scales, _row(fields["shifts"], n_labels))
    knots = fields["knots"].items()
    if len(knots) != (1 if n_labels == 2 else n_labels):
        fields["knots"].fail("these are not the maps of the labels")
    return Isotonic(tuple(map(_knots, knots)))


def _row(node: Node, length: int) -> tuple[float, ...]:
    numbers = tuple(item.number() for item in node.items())
    if len(numbers) != length:
        node.fail("there is a number for each label")
    return numbers


def _knots(node: Node) -> Knots:
    fields = node.fields(("at", "values"))
    at = tuple(item.number() for item in fields["at"].items())
    values = _row(fields["values"], len(at))
    if not at or at[0] < 0 or at[-1] > 1 or any(b <= a for a, b in pairwise(at)):
        fields["at"].fail("knots are probabilities, each above the one before")
    if not values[0] > 0 or not values[-1] < 1 or any(b < a for a, b in pairwise(values)):
        fields["values"].fail("values are between 0 and 1 and never fall")
    return Knots(at, values)
