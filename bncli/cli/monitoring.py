"""The options of `bncli score` about watching a model at work, and the lines that tell what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bncli.cli.flags import flag
from bncli.errors import UsageError

if TYPE_CHECKING:
    from bncli.steps.scoring.monitoring import Monitored

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


def refuse_idle_monitor(typed: Mapping[str, Any]) -> None:
    """What has no effect, or cannot go together."""
    if typed["fail_on_drift"] and typed["monitor"] is None:
        raise UsageError("--fail-on-drift has no effect without --monitor", hint="say --monitor FILE.json")
    if typed["monitor"] == "-":
        raise UsageError("--monitor needs a file, not the standard output", hint="say --monitor FILE.json")


def monitor_lines(found: Monitored | None, fails: bool) -> list[str]:
    """Whether anything has drifted, and what; left to the error where drift is one."""
    return [] if found is None or (fails and found.monitor.drifted) else [found.sentence()]
