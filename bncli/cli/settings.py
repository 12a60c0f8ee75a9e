"""Options that are set rather than typed: `BNCLI_*` variables, and a TOML file that `--config` or BNCLI_CONFIG names.

What is typed wins, then a variable, then the file. A key is an option's name without its hyphens in front; keys at the
top hold for all commands that have the option, those in a table `[COMMAND]` for that command. A setting of another
command, or one that has no effect beside what is typed, is left aside: a note says so where it concerns how to learn.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bncli.catalogue import COMMANDS
from bncli.errors import UsageError

if TYPE_CHECKING:
    from bncli.cli.command import Flag

PREFIX = "BNCLI_"
_META, _FILE = "bncli.settings", "bncli.settings.file"
_NO_SETTING = ("Network", "Output")
"""Groups of options that say what this one run is to do."""


class Setting(NamedTuple):
    """The value of an option as it was set, and where: the name of a variable or of a file."""

    value: Any
    where: str


def is_setting(flag: Flag) -> bool:
    """Whether an option may be set: those that name files of this run, or what comes out of it, may not."""
    names_file = (flag.metavar or "") == "FILE" and "--schema" not in flag.opts
    return flag.setting and not names_file and (flag.group not in _NO_SETTING or "--quiet" in flag.opts)


def setting_key(flag: Flag) -> str:
    """The key of an option in the file."""
    return max(flag.opts, key=len).removeprefix("--")


def variable_of(flag: Flag) -> str:
    """The name of its variable."""
    return PREFIX + setting_key(flag).upper().replace("-", "_")


def apply_settings(ctx: click.Context, flags: Sequence[Flag]) -> None:
    """Puts settings in the place of options that were not typed, and remembers which these are."""
    path = ctx.params.pop("config", None) or os.environ.get(f"{PREFIX}CONFIG")
    file = ctx.meta[_FILE] = {} if not path else read_settings(path, ctx.command.name or "")
    found: dict[str, Setting] = {}
    for flag in filter(is_setting, flags):
        name = flag.name or ""
        if ctx.get_parameter_source(name) not in (click.core.ParameterSource.DEFAULT, None):
            continue
        setting = _setting(flag, file, str(path))
        if setting is not None:
            value = _converted(flag, setting, ctx)
            ctx.params[name] = value
            found[name] = Setting(value, setting.where)
    ctx.meta[_META] = found


def settings_of_run() -> Mapping[str, Setting]:
    """The options that were set, by the name of their parameter; none outside a command."""
    ctx = click.get_current_context(silent=True)
    return {} if ctx is None else ctx.meta.get(_META, {})


def settings_in_file() -> Mapping[str, Any]:
    """What the configuration file sets for this command, whether it has the options or not."""
    file: Mapping[str, Any] = click.get_current_context().meta[_FILE]
    return file


def _setting(flag: Flag, file: Mapping[str, Any], path: str) -> Setting | None:
    text = os.environ.get(variable_of(flag))
    if text:
        return Setting(text.split(",") if flag.multiple else text, variable_of(flag))
    value = file.get(setting_key(flag))
    return None if value is None else Setting(value, f"{setting_key(flag)} in {path}")


def _converted(flag: Flag, setting: Setting, ctx: click.Context) -> Any:
    """The value as if it had been typed; UsageError that says where it was set."""
    value = setting.value
    if isinstance(value, list) != flag.multiple:
        wanted = "a list" if flag.multiple else "one value"
        raise UsageError(f"{setting_key(flag)} takes {wanted}", where=setting.where)
    try:
        if flag.is_flag:
            return _switch(value)
        texts = [_text(member) for member in value] if flag.multiple else _text(value)
        return flag.type_cast_value(ctx, texts)
    except click.BadParameter as error:
        raise UsageError(error.message.rstrip("."), where=setting.where) from error
    except ValueError as error:
        raise UsageError(str(error), where=setting.where) from error


def _switch(value: Any) -> bool | None:
    """A switch that is off is as good as not typed."""
    words = {"1": True, "true": True, "yes": True, "0": None, "false": None, "no": None}
    if isinstance(value, bool):
        return value or None
    if str(value).lower() not in words:
        raise ValueError(f"{str(value)!r} is neither true nor false")
    return words[str(value).lower()]


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{value!r} is neither a text nor a number")
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def read_settings(path: str, command: str) -> dict[str, Any]:
    """What the file sets for a command; UsageError for a file that cannot be read, and for names that do not exist."""
    import tomllib

    try:
        with open(path, "rb") as opened:
            content = tomllib.load(opened)
    except OSError as error:
        raise UsageError(
            f"cannot read the configuration: {(error.strerror or str(error)).lower()}", where=path
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        hint = 'it holds lines like: structure = "tan"'
        raise UsageError(f"this is no TOML: {str(error).rstrip('.')}", where=path, hint=hint) from error
    words = [entry.word for entry in COMMANDS]
    tables = {key: value for key, value in content.items() if isinstance(value, dict)}
    for word, table in tables.items():
        if word not in words:
            raise UsageError(f"there is no command {word!r}", where=f"[{word}] in {path}", hint=near(word, words))
        check_keys(table, path)
    shared = {key: value for key, value in content.items() if key not in tables}
    check_keys(shared, path)
    return shared | tables.get(command, {})


def check_keys(settings: Mapping[str, Any], path: str) -> None:
    """UsageError for a key that is no option of any command."""
    known = [setting_key(flag) for flag in all_settings()]
    for key in settings:
        if key not in known:
            raise UsageError(f"there is no option {key!r} to set", where=path, hint=near(key, known))


def all_settings() -> list[Flag]:
    """Every option that may be set, in the order of the commands and of their help."""
    from bncli.cli.command import Flag
    from bncli.cli.group import group

    flags: dict[str, Flag] = {}
    ctx = click.Context(group)
    for entry in COMMANDS:
        command = group.get_command(ctx, entry.word)
        for flag in [] if command is None else command.params:
            if isinstance(flag, Flag) and is_setting(flag):
                flags.setdefault(setting_key(flag), flag)
    return list(flags.values())


def near(word: str, words: Sequence[str]) -> str:
    """The nearest word as advice; else how to see them all."""
    from bncli.recipe.defaults import near as nearest

    hint = nearest(word, words)
    return hint if hint.startswith("did") else "'bncli config' shows them all"
