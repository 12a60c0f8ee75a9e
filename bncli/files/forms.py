"""The form of a numeric attribute as JSON, an optional member of it; `attributes` shows examples."""

from __future__ import annotations

import datetime
from typing import Any

from bncli.engine.data.forms import DATE_ORDERS, DATE_PARTS, DateForm, Form, NumberForm
from bncli.engine.data.schema import Attribute, NumericAttribute
from bncli.files.documents import Node

_EPOCH = datetime.date(1970, 1, 1).toordinal()


def form_json(form: Form) -> dict[str, Any]:
    """What `read_form` reads."""
    if isinstance(form, NumberForm):
        return {"decimal": form.decimal} | ({"sign": form.affix} if form.affix else {})
    origin = {"origin": _day(form.origin)} if form.part == "days" else {}
    return {"date": form.source, "part": form.part, "order": form.order} | origin


def _day(number: int) -> str | int:
    """A day as an ISO date, as its number since 1970 where it has none."""
    ordinal = number + _EPOCH
    return datetime.date.fromordinal(ordinal).isoformat() if 1 <= ordinal <= datetime.date.max.toordinal() else number


def read_form(node: Node) -> Form:
    """The form in an attribute's member, checked."""
    if "decimal" in node.members():
        fields = node.fields(("decimal",), ("sign",))
        if fields["decimal"].text() not in (".", ","):
            fields["decimal"].fail("the decimal mark is '.' or ','")
        return NumberForm(fields["decimal"].text(), fields["sign"].text() if "sign" in fields else "")
    fields = node.fields(("date", "part", "order"), ("origin",))
    part, order = fields["part"].text(), fields["order"].text()
    for key, word, words in (("part", part, DATE_PARTS), ("order", order, DATE_ORDERS)):
        if word not in words:
            fields[key].fail(f"unknown {key} '{word}' of a date", hint=f"one of {', '.join(words)}")
    if (order == "time") != (part == "hour") and order == "time":
        fields["part"].fail("a time of the day has an hour and no other part")
    if (part == "days") != ("origin" in fields):
        node.fail("'days' is counted from an origin, and nothing else is")
    origin = _read_day(fields["origin"]) if "origin" in fields else 0
    return DateForm(fields["date"].text(), part, order, origin)  # type: ignore[arg-type]


def _read_day(node: Node) -> int:
    if isinstance(node.value, int):
        return node.integer()
    try:
        return datetime.date.fromisoformat(node.text()).toordinal() - _EPOCH
    except ValueError:
        node.fail("the origin is no date", hint="write it as 2024-03-01")


def check_forms(node: Node, class_name: str, attributes: tuple[Attribute, ...]) -> None:
    """Refuses a column of dates that is read in two orders, or for anything else as well."""
    orders: dict[str, str] = {}
    names = {class_name, *(attribute.name for attribute in attributes)}
    for item, attribute in zip(node.items(), attributes, strict=True):
        form = attribute.form if isinstance(attribute, NumericAttribute) else None
        if isinstance(form, DateForm):
            if form.source in names:
                item.fail(f"'{attribute.name}' is made from the dates of '{form.source}', which is used itself")
            if orders.setdefault(form.source, form.order) != form.order:
                item.fail(f"the dates of '{form.source}' are read in two orders")
