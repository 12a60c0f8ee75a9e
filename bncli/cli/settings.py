"""Options that are set rather than typed: `BNCLI_*` variables, and a TOML file that `--config` or BNCLI_CONFIG names.

What is typed wins, then a variable, then the file. A key is an option's name without its hyphens in front; keys at the
top hold for all commands that have the option, those in a table `[COMMAND]` for that command. A setting of another
command, or one that has no effect beside what is typed, is left aside: a note says so where it concerns how to learn.
One value is as good as a list of one. An empty variable is none.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bncli.catalogue.choices import flag_of
from bncli.cli.commands import COMMANDS
from bncli.errors import BncliError, UsageError

if TYPE_CHECKING:
    from bncli.cli.options import Flag
    from bncli.files.reading.source import Source

PREFIX = "BNCLI_"
_META, _FILE = "bncli.settings", "bncli.settings.file"
_NO_SETTING = ("Network", "Output")
"""Groups of options that say what this one run is to do."""
_MOST_BYTES, _MOST_DIGITS, _LONGEST = 1 << 20, 400, 200


class SettingsFile(NamedTuple):
    """A configuration file: what holds for all commands, and what for one."""

    path: str = ""
    shared: Mapping[str, Any] = MappingProxyType({})
    tables: Mapping[str, Mapping[str, Any]] = MappingProxyType({})


class Setting(NamedTuple):
    """The value of an option as it was set, and where: the name of a variable or of a file."""

    value: Any
    where: str


def read_settings(path: str) -> SettingsFile:
    """Return what the file sets; UsageError for a file that cannot be read, and for names that do not exist."""
    content = _content(path)
    words = [entry.word for entry in COMMANDS]
    tables = {key: value for key, value in content.items() if isinstance(value, dict)}
    shared = {key: value for key, value in content.items() if key not in tables}
    known = all_settings()
    for key in shared:
        if key not in known:
            raise UsageError(f"there is no option {clipped(repr(key))} to set", where=path, hint=near(key, list(known)))
    for word, table in tables.items():
        if word not in words:
            what = f"there is no command {clipped(repr(word))}"
            raise UsageError(what, where=f"in the tables of {path}", hint=near(word, words))
        _check_table(word, table, path)
    return SettingsFile(path, shared, tables)


def _content(path: str) -> dict[str, Any]:
    """Return the TOML of a file of any kind, pipes included; UsageError for everything else."""
    import tomllib

    try:
        with open(path, "rb") as opened:
            content = opened.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        what = f"cannot read the configuration: {(getattr(error, 'strerror', None) or str(error)).lower()}"
        raise UsageError(what, where=path) from error
    if len(content) > _MOST_BYTES:
        raise UsageError(f"a configuration has at most {_MOST_BYTES:,} bytes", where=path)
    try:
        return tomllib.loads(content.decode("utf-8-sig").replace("\r\n", "\n"))
    except RecursionError as error:
        raise UsageError("this is no TOML that can be read: it is nested too deeply", where=path) from error
    except ValueError as error:
        hint = 'it holds lines like: structure = "tan"'
        raise UsageError(f"this is no TOML: {clipped(str(error).rstrip('.'))}", where=path, hint=hint) from error


def _check_table(word: str, table: Mapping[str, Any], path: str) -> None:
    """Raise UsageError for a key that is no option of the command."""
    known = settings_of(word)
    for key in table:
        if key not in known:
            hint = near(key, list(known)) if known else f"nothing of {word} can be set"
            raise UsageError(
                f"{word} has no option {clipped(repr(key))} to set", where=f"[{word}] in {path}", hint=hint
            )


def is_setting(flag: Any) -> bool:
    """Return whether an option may be set: those that name files of this run, or what comes out of it, may not."""
    names_file = (flag.metavar or "") == "FILE" and "--schema" not in flag.opts
    return flag.setting and not names_file and (flag.group not in _NO_SETTING or "--quiet" in flag.opts)


def setting_key(flag: Flag) -> str:
    """Return the key of an option in the file."""
    return max(flag.opts, key=len).removeprefix("--")


def variable_of(flag: Flag) -> str:
    """Return the name of its variable."""
    return PREFIX + setting_key(flag).upper().replace("-", "_")


def apply_settings(ctx: click.Context, flags: Sequence[Flag]) -> None:
    """Put settings in the place of options that were not typed, and remembers which these are."""
    if "config" not in ctx.params:
        return
    path = ctx.params.pop("config") or os.environ.get(f"{PREFIX}CONFIG")
    file = ctx.meta[_FILE] = SettingsFile() if not path else read_settings(path)
    table = {**file.shared, **file.tables.get(ctx.command.name or "", {})}
    found: dict[str, Setting] = {}
    for flag in filter(is_setting, flags):
        name = flag.name or ""
        if ctx.get_parameter_source(name) not in (click.core.ParameterSource.DEFAULT, None):
            continue
        setting = _setting(flag, table, file.path)
        if setting is not None:
            value = converted(flag, setting, ctx)
            ctx.params[name] = value
            found[name] = Setting(value, setting.where)
    ctx.meta[_META] = found


def _setting(flag: Flag, file: Mapping[str, Any], path: str) -> Setting | None:
    text = os.environ.get(variable_of(flag))
    if text:
        return Setting(text.split(",") if flag.lists else text, variable_of(flag))
    value = file.get(setting_key(flag))
    return None if value is None else Setting(value, f"{setting_key(flag)} in {path}")


def settings_of_run() -> Mapping[str, Setting]:
    """Return the options that were set, by the name of their parameter; none outside a command."""
    ctx = click.get_current_context(silent=True)
    return {} if ctx is None else ctx.meta.get(_META, {})


def settings_file() -> SettingsFile:
    """Return the configuration file of the command that runs."""
    file: SettingsFile = click.get_current_context().meta[_FILE]
    return file


def with_place_of_setting(error: BncliError) -> BncliError:
    """Return the error, with the place where the value was set that it speaks of."""
    places = [
        setting.where
        for name, setting in settings_of_run().items()
        for text in (setting.value if isinstance(setting.value, tuple) else [setting.value])
        if isinstance(text, str)
        and (
            any(repr(part) in error.what for part in (text, *text.split(",")))
            or text == error.where
            or error.what.startswith(f"{flag_of(name)} ")
        )
    ]
    if not places or places[0] in error.where:
        return error
    where = ", ".join(filter(None, (error.where, places[0])))
    return type(error)(error.what, where=where, hint=error.hint)


def converted(flag: Flag, setting: Setting, ctx: click.Context) -> Any:
    """Return the value as if it had been typed; UsageError that says where it was set."""
    value = setting.value
    try:
        if isinstance(value, list) and not flag.lists:
            raise ValueError(f"{setting_key(flag)} takes one value, no list")
        if flag.is_flag:
            # A switch that is off is as good as not typed.
            words = {"1": True, "true": True, "yes": True, "0": None, "false": None, "no": None}
            if isinstance(value, bool):
                return value or None
            if str(value).lower() not in words:
                raise ValueError(f"{str(value)!r} is neither true nor false")
            return words[str(value).lower()]
        members = value if isinstance(value, list) else [value]
        texts = [_text(member) for member in members]
        return flag.type_cast_value(ctx, texts if flag.multiple else texts[0])
    except click.BadParameter as error:
        raise UsageError(clipped(error.message.rstrip(".")), where=setting.where) from error
    except ValueError as error:
        raise UsageError(clipped(str(error)), where=setting.where) from error


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("this is neither a text nor a number")
    if isinstance(value, int) and abs(value) >= 10**_MOST_DIGITS:
        raise ValueError(f"a number of more than {_MOST_DIGITS} digits")
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def clipped(text: str) -> str:
    """Return the text, at most a few lines of it."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def settings_of(word: str) -> dict[str, Flag]:
    """Return every option of a command that may be set, by its key."""
    from bncli.cli.group import group

    command = group.get_command(click.Context(group), word)
    assert command is not None
    flags: list[Any] = [flag for flag in command.params if hasattr(flag, "setting") and is_setting(flag)]
    takes = any("--config" in flag.opts for flag in command.params)
    return {setting_key(flag): flag for flag in flags} if takes else {}


def all_settings() -> dict[str, Flag]:
    """Return every option that may be set, by its key, in the order of the commands and of their help."""
    flags: dict[str, Flag] = {}
    for entry in COMMANDS:
        flags = {**settings_of(entry.word), **flags}
    return flags


def near(word: str, words: Sequence[str]) -> str:
    """Return the nearest word as advice; else how to see them all."""
    from bncli.recipe.defaults import suggestion

    hint = suggestion(word, words)
    return hint if hint.startswith("did") else "'bncli config' shows them all"


def refuse_cluster(typed: Mapping[str, Any], reason: str) -> None:
    """Raise UsageError where --cluster was typed beside what leaves it nothing to do; as a setting it may stand."""
    if typed["cluster"] and "cluster" not in settings_of_run():
        raise UsageError(f"--cluster has no effect with {reason}", hint="leave one of them out")


def cluster_of_files(typed: Mapping[str, Any], source: Source) -> str | None:
    """Return the cluster typed; one that is set is left aside for the standard input."""
    if source.paths == ("-",):
        refuse_cluster(typed, "the standard input, which its workers cannot read")
        return None
    address: str | None = typed["cluster"]
    return address
