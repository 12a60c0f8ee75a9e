"""`bncli config`: every option that may be set, with its meaning and default, as a configuration file.

With --schema: the JSON Schema of what a command prints.
"""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from bncli.catalogue import CHOICES, KEYS, OMITTED_IF_NONE, OPTIONS
from bncli.catalogue.choices import key_of
from bncli.catalogue.option_kinds import Costs, Integer, Real, ThresholdRule, json_schema
from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.commands import BY_WORD
from bncli.cli.console import Console
from bncli.cli.options import KindType, output_flag
from bncli.cli.settings import (
    Setting,
    SettingsFile,
    all_settings,
    convert_setting,
    setting_key,
    settings_file_of_run,
    settings_of,
    suggestion,
    variable_of,
)
from bncli.errors import UsageError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from bncli.cli.options import Flag

EXAMPLES = """\
bncli config > bncli.toml             a file to edit, for --config of the other commands
bncli config --config bncli.toml      the same, with the values of this file
BNCLI_THREADS=1 bncli fit data.csv    one option, set by an environment variable
bncli config --schema fit             the JSON Schema of what 'bncli fit --json' prints
"""


SCHEMA = output_flag(
    "--schema",
    metavar="COMMAND",
    setting=False,
    shell_complete=lambda _ctx, _param, begun: [word for word in schema_files() if word.startswith(begun)],
    help="The JSON Schema of what COMMAND --json prints.",
)
_COMMENT_WIDTH = 96


@declare(
    "config",
    EXAMPLES,
    (SCHEMA, options.CONFIG, options.DEBUG),
    more="Options on the command line take precedence over environment variables, and these over the file. Options "
    "that --config or a variable sets now are shown with their values, all others as comments with their "
    "defaults.",
)
def command(**typed: Any) -> None:
    """Print the configuration file, or a schema."""
    if typed["schema"] is not None:
        Console().text(schema_text(typed["schema"]))
    else:
        Console().text("\n".join(_configuration_lines(settings_file_of_run())) + "\n")


def schema_text(word: str) -> str:
    """Return the JSON Schema of what a command prints; raise UsageError if it prints no JSON."""
    import json

    files = schema_files()
    if word not in files:
        hint = suggestion(word, files)
        hint = hint if hint.startswith("did") else f"choose one of {', '.join(files)}"
        raise UsageError(f"{word!r} is not a command that prints JSON", hint=hint)
    schema = json.loads(files[word].read_text(encoding="utf-8"))
    if "recipe" in schema["properties"]:
        # The learning options come from the catalogue; null stands for an option without effect.
        values: dict[str, Any] = {key_of(choice.flag): {"type": "string"} for choice in CHOICES}
        values |= {key_of(option.flag): json_schema(option.kind) for option in OPTIONS}
        values["seed"] = json_schema(Integer())
        schema["properties"]["recipe"] = {
            "type": "object",
            "properties": {key: {"anyOf": [values[key], {"type": "null"}]} for key in KEYS},
            "required": [key for key in KEYS if key not in OMITTED_IF_NONE],
            "additionalProperties": False,
        }
    return json.dumps(schema, indent=2) + "\n"


def schema_files() -> dict[str, Traversable]:
    """Return the files of the JSON schemas by command; a command without a file prints no JSON."""
    from importlib import resources

    folder = resources.files("bncli.cli") / "schemas"
    files = {word: folder / f"{word}.json" for word in BY_WORD}
    return {word: file for word, file in files.items() if file.is_file()}


def _configuration_lines(file: SettingsFile) -> Iterator[str]:
    """Yield the lines of a section per group of options, then those of the tables of the file.

    The meaning, the words and the default of an option are comments above the line that sets it.
    """
    yield "# Settings of bncli, in TOML: remove the # before an option to set it."
    yield "# Keys in a table such as [score] apply to that command only."
    groups: dict[str, list[Flag]] = {}
    for option in all_settings().values():
        groups.setdefault(option.group, []).append(option)
    for group, flags in groups.items():
        yield f"\n# ---- {group} ----"
        for option in flags:
            yield ""
            default = f" [{option.default_text}]" if option.default_text else ""
            text = f"{option.help}{default}"
            yield from textwrap.wrap(text, _COMMENT_WIDTH, initial_indent="# ", subsequent_indent="# ")
            for word, meaning in option.words:
                text = f"{word}: {meaning}"
                yield from textwrap.wrap(text, _COMMENT_WIDTH, initial_indent="#   ", subsequent_indent="#     ")
            key, variable = setting_key(option), variable_of(option)
            if value := os.environ.get(variable):
                line = _setting_line(option, value.split(",") if option.is_list else value, variable)
                yield f"{line}  # {variable}"
            elif key in file.shared:
                yield _setting_line(option, file.shared[key], f"{key} in {file.path}")
            else:
                yield f"# {key} = {_example(option)}"
    for word, table in file.tables.items():
        yield f"\n[{word}]"
        known = settings_of(word)
        for key, value in table.items():
            yield _setting_line(known[key], value, f"{key} of [{word}] in {file.path}")


def _setting_line(option: Flag, value: Any, where: str) -> str:
    """Return the line that sets a value; raise UsageError if the option does not accept it."""
    convert_setting(option, Setting(value, where), click.get_current_context())
    return f"{setting_key(option)} = {to_toml(value)}"


def _example(option: Flag) -> str:
    """Return the default of an option as TOML, or some other value if the default cannot be written."""
    words = [word for word, _ in option.words]
    if option.is_flag:
        return "true"
    if option.is_list:
        return f'["{words[0] if words else option.metavar}"]'
    default = option.default_text
    if default and (default in words or " " not in default):
        is_number = re.fullmatch(r"(0|[1-9][0-9]*)(\.[0-9]+)?(e-?[0-9]+)?", default)
        return default if is_number else to_toml(default)
    if isinstance(option.type, click.Choice):
        return to_toml(option.type.choices[0])
    kind = option.type.kind if isinstance(option.type, KindType) else None
    if isinstance(kind, Integer):
        return "2"
    if isinstance(kind, Real):
        return "60" if kind.below > 1 else "0.1"
    if isinstance(kind, Costs):
        return to_toml("no:yes=5,yes:no=1")
    if isinstance(kind, ThresholdRule):
        return to_toml(kind.words[0])
    placeholder = str(option.metavar).split("|")[0].split("[")[0]
    return to_toml({"CHAR": ",", "A,B": "1,1000"}.get(placeholder, words[0] if words else placeholder))


def to_toml(value: Any) -> str:
    """Return a text, number, truth value, or list of them as TOML."""
    import json

    if isinstance(value, list):
        return f"[{', '.join(map(to_toml, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower()
