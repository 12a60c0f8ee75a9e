"""`bncli edit`: change an effect of a model by hand; the model records the edit and its reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.model_text import edit_lines
from bncli.cli.options import FilePath, flag
from bncli.errors import UsageError

EXAMPLES = """\
bncli edit data.bnc --effect age --set '>80=0.9' --why "five patients, coding error"
bncli edit data.bnc --effect age --monotone up --why "risk rises with age" --refit data.csv -o new.bnc
bncli edit data.bnc --undo
bncli edit data.bnc --list
"""
MODEL = click.argument("model", metavar="MODEL", cls=FilePath)
ACTIONS = ("set", "flatten", "smooth", "monotone")
EDIT = (
    flag(
        "--effect",
        group="Edit",
        setting=False,
        metavar="NAME[,NAME]",
        help="The effect to change: an attribute, or several that share a table.",
    ),
    flag(
        "--set",
        group="Edit",
        setting=False,
        multiple=True,
        metavar="VALUE=LOG_ODDS",
        help="Set the log-odds of this value, as shown by inspect --effects. May be repeated.",
    ),
    flag("--flatten", group="Edit", setting=False, is_flag=True, help="Set the whole effect to 0."),
    flag(
        "--smooth",
        group="Edit",
        setting=False,
        is_flag=True,
        help="Replace each interval's value by the mean of itself and its neighbours.",
    ),
    flag(
        "--monotone",
        group="Edit",
        setting=False,
        type=click.Choice(["up", "down"]),
        help="Replace the effect by the nearest curve that never falls (up) or never rises (down).",
    ),
    flag(
        "--label",
        group="Edit",
        setting=False,
        metavar="LABEL",
        default_text="the second of two",
        help="The label whose log-odds --set and --monotone change.",
    ),
    flag(
        "--refit",
        group="Edit",
        setting=False,
        metavar="DATA",
        help="Refit the other tables to these rows with the edited effect fixed, and print the cost in held-out "
        "log-loss.",
    ),
)
RECORD = (
    flag("--why", group="Record", setting=False, metavar="TEXT", help="The reason; required."),
    flag("--by", group="Record", setting=False, metavar="NAME", help="The person who made the edit."),
    flag(
        "--when",
        group="Record",
        setting=False,
        metavar="TEXT",
        help="The date, as text; bncli does not read the clock.",
    ),
    flag("--undo", group="Record", setting=False, is_flag=True, help="Undo the last edit."),
    flag("--list", "list_edits", group="Record", setting=False, is_flag=True, help="List the edits; change nothing."),
)


@declare(
    "edit",
    EXAMPLES,
    (MODEL,),
    EDIT,
    RECORD,
    (options.output("The edited model [MODEL itself]."),),
    (options.JSON, options.QUIET, options.THREADS, options.CONFIG, options.DEBUG),
    more="Predictions of rows with other values do not change. The model file records each edit and the values that "
    "it replaced.",
)
def command(**typed: Any) -> None:
    """Edit one effect, undo the last edit, or list all edits."""
    action = _check_options(typed)
    from bncli.steps.edit import EditChoice, edit, list_edits, undo
    from bncli.watch import Run

    output = options.output_path(typed["output"])
    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        if action == "list":
            report = list_edits(typed["model"])
            if console.as_json:
                console.json(report)
            else:
                lines = [line for each in report.edits for line in edit_lines(each, report.labels)]
                console.text("\n".join(lines or ["no edits"]) + "\n")
            return
        if action == "undo":
            report = undo(typed["model"], output)
        else:
            names = tuple(name.strip() for name in typed["effect"].split(","))
            choice = EditChoice(
                names,
                tuple(typed["set"]),
                typed["flatten"],
                typed["smooth"],
                typed["monotone"],
                typed["label"],
                typed["why"],
                typed["by"] or "",
                typed["when"] or "",
            )
            source = None if typed["refit"] is None else options.source({}, (typed["refit"],))
            run = Run(options.threads(typed), watch=console.watch)
            report = edit(typed["model"], choice, output, source, run=run)
        assert report.done is not None
        lines = edit_lines(report.done, report.labels)
        if report.undone:
            lines = [f"undone      {lines[0]}"]
        console.finish(report, [*lines, f"model       {report.output}"])


def _check_options(typed: Mapping[str, Any]) -> str:
    """Return the requested action; raise UsageError unless there is exactly one and its options are valid."""
    actions = [name for name in ACTIONS if typed[name]]
    actions += [word for word, name in (("undo", "undo"), ("list", "list_edits")) if typed[name]]
    if len(actions) != 1:
        what = "an edit needs --set, --flatten, --smooth or --monotone"
        if len(actions) > 1:
            what = f"--{actions[0]} and --{actions[1]} cannot be combined"
        raise UsageError(what, hint="use one of them")
    (action,) = actions
    if action in ("undo", "list"):
        others = ("effect", "label", "refit", "why", "by", "when", *(("output",) if action == "list" else ()))
        idle = next((name for name in others if typed[name] is not None), None)
        if idle is not None:
            raise UsageError(f"--{idle} has no effect with --{action}", hint="leave it out")
        return action
    if typed["effect"] is None:
        raise UsageError("--effect NAME is missing", hint="to list the effects, type bncli inspect MODEL --effects")
    if not (typed["why"] or "").strip():
        raise UsageError(
            "--why TEXT is missing: the model file records the reason of every edit",
            hint='for example --why "typing error"',
        )
    return action
