"""`bncli config`: every option that may be set, with its default and meaning, as a configuration file."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from bncli.catalogue import CHOICES, COMMANDS, KEYS, OPTIONS
from bncli.choices import Whole, key_of
from bncli.cli import options
from bncli.cli.command import declare, flag
from bncli.cli.console import Console
from bncli.cli.settings import all_settings, near, setting_key, settings_in_file, variable_of
from bncli.errors import UsageError

if TYPE_CHECKING:
    from bncli.cli.command import Flag

EXAMPLES = """\
bncli config > bncli.toml             a file to edit, for --config of the other commands
bncli config --config bncli.toml      the same with what it sets
BNCLI_THREADS=1 bncli fit data.csv    one option by its variable
bncli config --schema fit             what 'bncli fit' prints as JSON, as JSON Schema
"""

SCHEMA = flag(
    "--schema", group="Output", metavar="COMMAND", setting=False, help="The JSON Schema of what COMMAND --json prints."
)
_WIDTH = 96


@declare(
    "config",
    EXAMPLES,
    (SCHEMA, options.CONFIG, options.DEBUG),
    more="What is typed wins, then variables, then the file. Options that --config or a variable sets now are shown "
    "with their values, all others as comments with their defaults.",
)
def command(**typed: Any) -> None:
    """Prints the file, or a schema."""
    console = Console()
    if typed["schema"] is not None:
        console.text(schema_text(typed["schema"]))
        return
    console.text("\n".join(_lines(settings_in_file())) + "\n")


def schema_text(word: str) -> str:
    """The schema of a command's JSON; UsageError for a command that prints none."""
    from importlib import resources

    folder = resources.files("bncli.cli") / "schemas"
    words = [entry.word for entry in COMMANDS if (folder / f"{entry.word}.json").is_file()]
    if word not in words:
        hint = near(word, words)
        raise UsageError(
            f"{word!r} is no command that prints JSON", hint=hint if hint.startswith("did") else ", ".join(words)
        )
    import json

    schema = json.loads((folder / f"{word}.json").read_text(encoding="utf-8"))
    if "recipe" in schema["properties"]:
        schema["properties"]["recipe"] = _recipe_schema()
    return json.dumps(schema, indent=2) + "\n"


def _recipe_schema() -> dict[str, Any]:
    """The learning options of a model: what each may be, or null where it had no effect."""
    values: dict[str, Any] = {key_of(choice.flag): {"type": "string"} for choice in CHOICES}
    values |= {key_of(option.flag): option.kind.schema for option in OPTIONS}
    values["seed"] = Whole().schema
    properties = {key: {"anyOf": [values[key], {"type": "null"}]} for key in KEYS}
    return {"type": "object", "properties": properties, "required": list(KEYS), "additionalProperties": False}


def _lines(in_force: Mapping[str, Any]) -> Iterable[str]:
    """A section a group; an option is its meaning, its values and its default, then the line that sets it."""
    yield "# Settings of bncli, in TOML: take away the # before an option to set it."
    yield "# Keys in a table such as [score] hold for that command alone."
    groups: dict[str, list[Flag]] = {}
    for entry in all_settings():
        groups.setdefault(entry.group, []).append(entry)
    for group, flags in groups.items():
        yield f"\n# ---- {group} ----"
        for entry in flags:
            yield ""
            yield from _option(entry, in_force)


def _option(entry: Flag, in_force: Mapping[str, Any]) -> Iterable[str]:
    default = f" [{entry.stands_for}]" if entry.stands_for else ""
    yield from textwrap.wrap(f"{entry.help}{default}", _WIDTH, initial_indent="# ", subsequent_indent="# ")
    for word, meaning in entry.words:
        yield from textwrap.wrap(f"{word}: {meaning}", _WIDTH, initial_indent="#   ", subsequent_indent="#     ")
    key = setting_key(entry)
    text = os.environ.get(variable_of(entry))
    if text:
        yield f"{key} = {_toml(text.split(',') if entry.multiple else text)}  # {variable_of(entry)}"
    elif key in in_force:
        yield f"{key} = {_toml(in_force[key])}"
    else:
        yield f"# {key} = {_example(entry)}"


def _example(entry: Flag) -> str:
    """The default as TOML, where it can be written; else something of its kind."""
    if entry.is_flag:
        return "true"
    if entry.multiple:
        return f'["{entry.metavar}"]'
    words = [word for word, _ in entry.words]
    default = entry.stands_for
    if default and (default in words or " " not in default):
        return _toml(default)
    return _toml(words[0] if words else str(entry.metavar).split("|")[0])


def _toml(value: Any) -> str:
    import json

    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return json.dumps(value, ensure_ascii=False)
        return value
    return json.dumps(value, ensure_ascii=False)
