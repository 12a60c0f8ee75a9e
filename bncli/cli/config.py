"""Settings: options given by `BNCLI_*` environment variables or by a TOML file (`--config` or BNCLI_CONFIG).

Options on the command line take precedence over environment variables, and these over the file. A key of the file is
the name of an option without its leading hyphens. Keys at the top level apply to every command that has the option;
keys in a table `[COMMAND]` apply to that command. A single value is accepted in place of a list, and an empty variable
counts as not set.

Settings for other commands are ignored, and so is a setting that has no effect together with the options on the command
line (`without_settings`); if it is a learning option, a note says so (`bncli.cli.learning_options`).

The command `bncli config` prints every option that may be set, with its meaning and default, as a configuration file;
with --schema it prints the JSON Schema of the output of a command.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bncli.catalogue import CHOICES, KEYS, OMITTED_IF_NONE, OPTIONS
from bncli.catalogue.choices import flag_of, key_of
from bncli.catalogue.option_kinds import Costs, Integer, Real, ThresholdRule, json_schema
from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.commands import BY_WORD, load_command
from bncli.cli.console import Console
from bncli.cli.options import SETTINGS_KEY, KindType, Setting, output_flag, settings_of_run
from bncli.errors import BncliError, UsageError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from bncli.cli.options import Flag
    from bncli.files.reading.source import Source

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
        Console().text("\n".join(_configuration_lines(click.get_current_context().meta[_FILE_KEY])) + "\n")


def schema_text(word: str) -> str:
    """Return the JSON Schema of a command's output; raise UsageError if the command prints no JSON."""
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
    """Return the JSON Schema files, keyed by command; commands that print no JSON have none."""
    from importlib import resources

    folder = resources.files("bncli.cli") / "schemas"
    files = {word: folder / f"{word}.json" for word in BY_WORD}
    return {word: file for word, file in files.items() if file.is_file()}


def _configuration_lines(file: SettingsFile) -> Iterator[str]:
    """Yield the lines of a configuration file: a section per group of options, then the tables of `file`.

    The meaning, the accepted words and the default of an option are comments above the line that sets it.
    """
    from textwrap import wrap

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
            yield from wrap(text, _COMMENT_WIDTH, initial_indent="# ", subsequent_indent="# ")
            for word, meaning in option.words:
                text = f"{word}: {meaning}"
                yield from wrap(text, _COMMENT_WIDTH, initial_indent="#   ", subsequent_indent="#     ")
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
    """Return the default of an option in TOML, or another example if the default cannot be written as a value."""
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
    """Format a string, number, Boolean, or list of these as TOML."""
    import json

    if isinstance(value, list):
        return f"[{', '.join(map(to_toml, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower()


PREFIX = "BNCLI_"
_FILE_KEY = "bncli.settings.file"
"""The key of the click context under which the configuration file of a run is stored."""
_GROUPS_OF_ONE_RUN = ("Network", "Output")
"""Groups of options that describe a single run and therefore cannot be set, except --quiet."""
_MOST_BYTES, _MOST_DIGITS, _MOST_LETTERS = 1 << 20, 400, 200


class SettingsFile(NamedTuple):
    """The content of a configuration file: values for all commands, and tables of values for single commands."""

    path: str = ""
    shared: Mapping[str, Any] = MappingProxyType({})
    tables: Mapping[str, Mapping[str, Any]] = MappingProxyType({})


def read_settings(path: str) -> SettingsFile:
    """Load a configuration file; raise UsageError if it cannot be read or names an unknown option or command."""
    content = _read_toml(path)
    tables = {key: value for key, value in content.items() if isinstance(value, dict)}
    shared = {key: value for key, value in content.items() if key not in tables}
    known = all_settings()
    for key in shared:
        if key not in known:
            raise UsageError(f"there is no option {clipped(repr(key))} to set", where=path, hint=suggestion(key, known))
    for word, table in tables.items():
        if word not in BY_WORD:
            what = f"there is no command {clipped(repr(word))}"
            raise UsageError(what, where=f"in {path}", hint=suggestion(word, BY_WORD))
        known = settings_of(word)
        for key in table:
            if key not in known:
                hint = suggestion(key, known) if known else f"{word} has no options that can be set"
                what = f"{word} has no option {clipped(repr(key))} to set"
                raise UsageError(what, where=f"[{word}] in {path}", hint=hint)
    return SettingsFile(path, shared, tables)


def _read_toml(path: str) -> dict[str, Any]:
    """Parse the TOML in a file or pipe; raise UsageError if it cannot be read, is too long, or is not valid TOML."""
    import tomllib

    try:
        with open(path, "rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except IsADirectoryError as error:
        what = "cannot read the configuration: this is a folder"
        raise UsageError(what, where=path, hint="give the path of a file") from error
    except (OSError, ValueError) as error:
        what = f"cannot read the configuration: {(getattr(error, 'strerror', None) or str(error)).lower()}"
        raise UsageError(what, where=path) from error
    if len(content) > _MOST_BYTES:
        raise UsageError(f"the configuration is longer than the maximum of {_MOST_BYTES:,} bytes", where=path)
    try:
        return tomllib.loads(content.decode("utf-8-sig").replace("\r\n", "\n"))
    except RecursionError as error:
        raise UsageError("the configuration cannot be read: it is nested too deeply", where=path) from error
    except ValueError as error:
        hint = 'a configuration has lines such as structure = "tan"'
        raise UsageError(
            f"the configuration is not valid TOML: {clipped(str(error).rstrip('.'))}", where=path, hint=hint
        ) from error


def is_setting(flag: Any) -> bool:
    """Return whether an option may be set in a file or variable.

    An option cannot be set if its declaration says so, if it names a file of the run, or if it describes the output or
    the random network of the run. The exceptions are --quiet and --schema FILE.
    """
    names_file = (flag.metavar or "") == "FILE" and "--schema" not in flag.opts
    return flag.setting and not names_file and (flag.group not in _GROUPS_OF_ONE_RUN or "--quiet" in flag.opts)


def setting_key(flag: Flag) -> str:
    """Return the key of an option in the configuration file."""
    return max(flag.opts, key=len).removeprefix("--")


def variable_of(flag: Flag) -> str:
    """Return the name of the environment variable of an option."""
    return PREFIX + setting_key(flag).upper().replace("-", "_")


def settings_of(word: str) -> dict[str, Flag]:
    """Return the options of a command that may be set, keyed by `setting_key`; none if it has no --config."""
    params = load_command(word).params
    flags: list[Any] = [flag for flag in params if hasattr(flag, "setting") and is_setting(flag)]
    has_config = any("--config" in flag.opts for flag in params)
    return {setting_key(flag): flag for flag in flags} if has_config else {}


def all_settings() -> dict[str, Flag]:
    """Return every option that may be set, keyed by `setting_key`; shared options are taken from the first command."""
    flags: dict[str, Flag] = {}
    for word in BY_WORD:
        for key, flag in settings_of(word).items():
            flags.setdefault(key, flag)
    return flags


def apply_settings(ctx: click.Context, flags: Sequence[Flag]) -> None:
    """Apply settings to options that are not on the command line, and store the applied settings in the context."""
    if "config" not in ctx.params:
        return
    path = ctx.params.pop("config") or os.environ.get(f"{PREFIX}CONFIG")
    file = ctx.meta[_FILE_KEY] = SettingsFile() if not path else read_settings(path)
    table = {**file.shared, **file.tables.get(ctx.command.name or "", {})}
    settings: dict[str, Setting] = {}
    for flag in filter(is_setting, flags):
        name, key, variable = flag.name or "", setting_key(flag), variable_of(flag)
        if ctx.get_parameter_source(name) not in (click.core.ParameterSource.DEFAULT, None):
            continue
        text = os.environ.get(variable)
        if text:
            setting = Setting(text.split(",") if flag.is_list else text, variable)
        elif table.get(key) is not None:
            setting = Setting(table[key], f"{key} in {file.path}")
        else:
            continue
        value = convert_setting(flag, setting, ctx)
        ctx.params[name] = value
        settings[name] = Setting(value, setting.where)
    ctx.meta[SETTINGS_KEY] = settings


def convert_setting(flag: Flag, setting: Setting, ctx: click.Context) -> Any:
    """Convert the value as if it came from the command line; raise UsageError, with its location, if it is invalid."""
    value = setting.value
    try:
        if isinstance(value, list) and not flag.is_list:
            raise ValueError(f"{setting_key(flag)} takes one value, not a list")
        if flag.is_flag:
            # A switch that is off counts as not given.
            words = {"1": True, "true": True, "yes": True, "0": None, "false": None, "no": None}
            if isinstance(value, bool):
                return value or None
            if str(value).lower() not in words:
                raise ValueError(f"{str(value)!r} is neither true nor false")
            return words[str(value).lower()]
        members = value if isinstance(value, list) else [value]
        texts = []
        for member in members:  # as they would be typed
            if isinstance(member, bool) or not isinstance(member, str | int | float):
                raise ValueError("the value is neither a string nor a number")
            if isinstance(member, int) and abs(member) >= 10**_MOST_DIGITS:
                raise ValueError(f"the number has more than {_MOST_DIGITS} digits")
            texts.append(repr(member).removesuffix(".0") if isinstance(member, float) else str(member))
        return flag.type_cast_value(ctx, texts if flag.multiple else texts[0])
    except click.BadParameter as error:
        raise UsageError(clipped(error.message.rstrip(".")), where=setting.where) from error
    except ValueError as error:
        raise UsageError(clipped(str(error)), where=setting.where) from error


def with_place_of_setting(error: BncliError) -> BncliError:
    """Return the error with the location of the setting that it mentions, or unchanged if it mentions none."""
    locations = [
        setting.where
        for name, setting in settings_of_run().items()
        for text in (setting.value if isinstance(setting.value, tuple) else [setting.value])
        if error.what.startswith(f"{flag_of(name)} ")
        or (
            isinstance(text, str)
            and (any(repr(part) in error.what for part in (text, *text.split(","))) or text == error.where)
        )
    ]
    if not locations or locations[0] in error.where:
        return error
    where = ", ".join(filter(None, (error.where, locations[0])))
    return type(error)(error.what, where=where, hint=error.hint)


def clipped(text: str) -> str:
    """Truncate a string to its first _MOST_LETTERS characters, followed by "...", if it is longer."""
    return text if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]}..."


def suggestion(word: str, words: Iterable[str]) -> str:
    """Return a hint that names the most similar word or, if none is similar, how to list all options."""
    from bncli.recipe import defaults

    hint = defaults.suggestion(word, words)
    return hint if hint.startswith("did") else "type 'bncli config' to list all options"


def refuse_cluster(typed: Mapping[str, Any], reason: str) -> None:
    """Raise UsageError if --cluster, which has no effect with `reason`, is on the command line."""
    if typed["cluster"] and "cluster" not in settings_of_run():
        raise UsageError(f"--cluster has no effect with {reason}", hint="leave one of them out")


def cluster_for_files(typed: Mapping[str, Any], source: Source) -> str | None:
    """Return the address of the cluster that is to read the files, or None.

    Workers cannot read the standard input. For it, an address on the command line raises UsageError, and an address
    from the settings is ignored.
    """
    if source.paths == ("-",):
        refuse_cluster(typed, "the standard input, which workers cannot read")
        return None
    address: str | None = typed["cluster"]
    return address
