"""The options of `bncli score` that ask more of a row than its prediction.

The options of `bncli score` about watching a model at work, and the lines that tell what came of it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from bncli.cli.options import flag, whole
from bncli.errors import UsageError

if TYPE_CHECKING:
    from bncli.steps.row_scoring import WhatIfQuestions
    from bncli.steps.score import MonitorSummary

_GROUP = "What if"
WHAT_IF = (
    flag(
        "--set",
        group=_GROUP,
        multiple=True,
        metavar="COLUMN=VALUE",
        help="The prediction with this value in every row, beside that of the row as it is (prediction_if, "
        "p_if_<label>); may be repeated. COLUMN= sets it to missing.",
    ),
    flag(
        "--flip",
        group=_GROUP,
        is_flag=True,
        help="The fewest changed values that lead to another label (flip), the most probable of them: to another "
        "decision where the model or an option says what to decide.",
    ),
    flag(
        "--flip-columns",
        group=_GROUP,
        multiple=True,
        metavar="COLUMN,...",
        default_text="all",
        help="Columns that may change.",
    ),
    flag(
        "--flip-changes",
        group=_GROUP,
        metavar="N",
        type=whole(1, 6),
        default_text="2",
        help="At most so many values change.",
    ),
    flag(
        "--next-best",
        group=_GROUP,
        is_flag=True,
        help="The missing column whose value is expected to tell most of the class (next_best); of networks.",
    ),
    flag(
        "--surprise",
        group=_GROUP,
        is_flag=True,
        help="How improbable the row is, whatever its class: -ln P(x) in nats (surprise); of networks.",
    ),
)
MONITORING = (
    flag(
        "--monitor",
        group="Monitoring",
        metavar="FILE",
        help="Count values, predictions and confidence beside those of training; FILE gets them as JSON.",
    ),
    flag(
        "--fail-on-drift",
        group="Monitoring",
        is_flag=True,
        help="Exit with code 4, after all is written, where values have drifted from those of training.",
    ),
)


def refuse_idle_questions(typed: Mapping[str, Any]) -> None:
    """Raise UsageError for options that have no effect or exclude each other."""
    for name in ("flip_columns", "flip_changes"):
        if typed[name] and not typed["flip"]:
            raise UsageError(f"--{name.replace('_', '-')} has no effect without --flip", hint="say --flip")


def questions(typed: Mapping[str, Any]) -> WhatIfQuestions:
    """Return what was typed; UsageError for a --set that is no COLUMN=VALUE."""
    from bncli.steps.row_scoring import WhatIfQuestions

    return WhatIfQuestions(
        next_best=typed["next_best"],
        changes=tuple(_changes(typed["set"])),
        flip=typed["flip"],
        flip_columns=tuple(name.strip() for names in csv.reader(typed["flip_columns"]) for name in names),
        flip_changes=typed["flip_changes"] or 2,
        surprise=typed["surprise"],
        labels_only=typed["labels_only"],
    )


def _changes(texts: Iterable[str]) -> Iterable[tuple[str, str]]:
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--set takes COLUMN=VALUE, not {text!r}", hint="for example --set smoker=no")
        yield name.strip(), value


def refuse_idle_monitor(typed: Mapping[str, Any]) -> None:
    """Raise UsageError for options that have no effect or exclude each other."""
    if typed["fail_on_drift"] and typed["monitor"] is None:
        raise UsageError("--fail-on-drift has no effect without --monitor", hint="say --monitor FILE.json")
    if typed["monitor"] == "-":
        raise UsageError("--monitor needs a file, not the standard output", hint="say --monitor FILE.json")


def monitor_lines(found: MonitorSummary | None, fails: bool) -> list[str]:
    """Return whether anything has drifted, and what; left to the error where drift is one."""
    return [] if found is None or (fails and found.monitor.drifted) else [found.sentence()]
