"""`--report FILE` of commands that do something else: one page to look at beside their result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from bncli.cli.options import flag

if TYPE_CHECKING:
    from bncli.files.pictures.page import Page

REPORT = flag(
    "--report",
    group="Output",
    metavar="FILE",
    setting=False,
    help="Write a page to look at too (bncli help report).",
)
BESIDE = flag(
    "--beside",
    group="Output",
    multiple=True,
    metavar="MODEL",
    setting=False,
    help="Another model of the same class, whose figures on the same rows stand beside on the page; may be repeated.",
)


def check_page(typed: Mapping[str, Any], *others: str | None) -> None:
    """Before any work: an error where the page cannot be written, or would be written over what is read."""
    if typed["report"]:
        from bncli.steps.report.report import check_page as check

        check(typed["report"], (*typed.get("data", ()), *others))


def write_page(typed: Mapping[str, Any], page: Callable[[], Page]) -> None:
    """Write the page if it was requested."""
    if typed["report"]:
        from bncli.steps.report.report import write_page as write

        write(typed["report"], page())
