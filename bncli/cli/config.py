"""`bncli config`: every option that may be set, with its default and meaning, as a configuration file."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from bncli.catalogue import CHOICES, KEYS, OMITTED_IF_NONE, OPTIONS
from bncli.catalogue.choices import key_of
from bncli.catalogue.option_kinds import Costs, Integer, Kind, Real, ThresholdRule, json_schema
from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.commands import COMMANDS
from bncli.cli.console import Console
from bncli.cli.options import KindType, flag
from bncli.cli.settings import (
    Setting,
    SettingsFile,
    all_settings,
    converted,
    near,
    setting_key,
    settings_file,
    settings_of,
    variable_of,
)
from bncli.errors import UsageError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from bncli.cli.options import Flag

EXAMPLES = """\
bncli config > bncli.toml             a file to edit, for --config of the other commands
bncli config --config bncli.toml      the same with what it sets
BNCLI_THREADS=1 bncli fit data.csv    one option by its variable
bncli config --schema fit             what 'bncli fit' prints as JSON, as JSON Schema
"""


def _complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    return [word for word in schema_words() if word.startswith(incomplete)]


SCHEMA = flag(
    "--schema",
    group="Output",
    metavar="COMMAND",
    setting=False,
    shell_complete=_complete,
    help="The JSON Schema of what COMMAND --json prints.",
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
    """Print the file, or a schema."""
    console = Console()
    if typed["schema"] is not None:
        console.text(schema_text(typed["schema"]))
        return
    console.text("\n".join(_lines(settings_file())) + "\n")


def schema_text(word: str) -> str:
    """Return the schema of a command's JSON; UsageError for a command that prints none."""
    words = schema_words()
    if word not in words:
        hint = near(word, words)
        raise UsageError(
            f"{word!r} is no command that prints JSON", hint=hint if hint.startswith("did") else ", ".join(words)
        )
    import json

    schema = json.loads((_folder() / f"{word}.json").read_text(encoding="utf-8"))
    if "recipe" in schema["properties"]:
        # The learning options of a model: what each may be, or null where it had no effect.
        values: dict[str, Any] = {key_of(choice.flag): {"type": "string"} for choice in CHOICES}
        values |= {key_of(option.flag): json_schema(option.kind) for option in OPTIONS}
        values["seed"] = json_schema(Integer())
        properties = {key: {"anyOf": [values[key], {"type": "null"}]} for key in KEYS}
        required = [key for key in KEYS if key not in OMITTED_IF_NONE]
        schema["properties"]["recipe"] = {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }
    return json.dumps(schema, indent=2) + "\n"


def schema_words() -> list[str]:
    """Return the commands that print JSON."""
    return [entry.word for entry in COMMANDS if (_folder() / f"{entry.word}.json").is_file()]


def _folder() -> Traversable:
    from importlib import resources

    return resources.files("bncli.cli") / "schemas"


def _lines(file: SettingsFile) -> Iterable[str]:
    """Yield a section per group; an option is its meaning, its values and its default, then the line that sets it."""
    yield "# Settings of bncli, in TOML: take away the # before an option to set it."
    yield "# Keys in a table such as [score] hold for that command alone."
    groups: dict[str, list[Flag]] = {}
    for entry in all_settings().values():
        groups.setdefault(entry.group, []).append(entry)
    for group, flags in groups.items():
        yield f"\n# ---- {group} ----"
        for entry in flags:
            yield ""
            yield from _option(entry, file)
    for word, table in file.tables.items():
        yield f"\n[{word}]"
        known = settings_of(word)
        yield from (_checked(known[key], value, f"{key} of [{word}] in {file.path}") for key, value in table.items())


def _option(entry: Flag, file: SettingsFile) -> Iterable[str]:
    default = f" [{entry.default_text}]" if entry.default_text else ""
    yield from textwrap.wrap(f"{entry.help}{default}", _WIDTH, initial_indent="# ", subsequent_indent="# ")
    for word, meaning in entry.words:
        yield from textwrap.wrap(f"{word}: {meaning}", _WIDTH, initial_indent="#   ", subsequent_indent="#     ")
    key, variable = setting_key(entry), variable_of(entry)
    if text := os.environ.get(variable):
        yield f"{_checked(entry, text.split(',') if entry.lists else text, variable)}  # {variable}"
    elif key in file.shared:
        yield _checked(entry, file.shared[key], f"{key} in {file.path}")
    else:
        yield f"# {key} = {_example(entry)}"


def _checked(entry: Flag, value: Any, where: str) -> str:
    """Return the line that sets a value; UsageError for one that can never be right."""
    converted(entry, Setting(value, where), click.get_current_context())
    return f"{setting_key(entry)} = {_toml(value)}"


def _example(entry: Flag) -> str:
    """Return the default as TOML, where it can be written; else something of its kind."""
    if entry.is_flag:
        return "true"
    if entry.lists:
        return f'["{entry.words[0][0] if entry.words else entry.metavar}"]'
    words = [word for word, _ in entry.words]
    default = entry.default_text
    if default and (default in words or " " not in default):
        # A default in words as TOML: what reads as a number needs no quotes.
        return default if re.fullmatch(r"(0|[1-9][0-9]*)(\.[0-9]+)?(e-?[0-9]+)?", default) else _toml(default)
    if isinstance(entry.type, click.Choice):
        return _toml(entry.type.choices[0])
    if isinstance(entry.type, KindType):
        return _of_kind(entry.type.kind) or _toml(_shortest(entry))
    return _toml(_shortest(entry))


def _of_kind(kind: Kind) -> str | None:
    """Return a value of a kind as TOML; None where its words say it."""
    if isinstance(kind, Integer):
        return "2"
    if isinstance(kind, Real):
        return "60" if kind.below > 1 else "0.1"
    if isinstance(kind, Costs):
        return _toml("no:yes=5,yes:no=1")
    return _toml(kind.words[0]) if isinstance(kind, ThresholdRule) else None


def _shortest(entry: Flag) -> str:
    """Return the first of what may be typed."""
    words = [word for word, _ in entry.words]
    shortest = str(entry.metavar).split("|")[0].split("[")[0]
    return {"CHAR": ",", "A,B": "1,1000"}.get(shortest, words[0] if words else shortest)


def _toml(value: Any) -> str:
    import json

    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower()
