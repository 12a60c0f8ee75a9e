"""Options of the command line: their classes and types, and every flag that several commands share.

- `Flag` and `Paths`: an option and a file argument, with their rows in the help and their shell completion.
- `KindType` and `SizesType`: types with which click converts a value, such as the kinds of the catalogue.
- Flags about tables, output and running; `bncli.cli.learning_options` has the learning options.
- `source` and `threads`: values that follow from the flags on the command line.
- `without_settings`: the options, leaving out settings that have no effect together with the others.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click

from bncli.catalogue.option_kinds import (
    ClassPairPrior,
    ClassWeights,
    ColumnNames,
    Costs,
    DomainKnowledge,
    Integer,
    Kind,
    Label,
    NetworkFile,
    NumberChoice,
    Real,
    Switch,
    ThresholdRule,
    Word,
)
from bncli.errors import BncliError, UsageError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from bncli.files.reading.source import Source

SETTINGS_KEY = "bncli.settings"
"""The key, in the click context, of the settings that apply to the running command."""
Callback = Callable[..., None]
Decorator = Callable[[Callback], Callback]


class Flag(click.Option):
    """An option with its place in the help.

    group: the heading above it. default_text: the default that the help shows; without it, the help shows `default`.
    words: the words that the option accepts, each with its line of help. setting: whether an environment variable or a
    configuration file may set it. everyday: whether `--help` shows it; `--help-all` shows every option. once: whether
    giving it twice is an error; otherwise the last value counts, or all values with `multiple`.
    """

    def __init__(
        self,
        *declarations: Any,
        group: str = "Other",
        default_text: str = "",
        words: Iterable[tuple[str, str]] = (),
        setting: bool = True,
        everyday: bool = True,
        once: bool = False,
        **settings: Any,
    ) -> None:
        if isinstance(settings.get("type"), KindType):
            settings = {"metavar": settings["type"].name, **settings}
        if once:
            settings["multiple"] = True  # otherwise click keeps the last of several values
        super().__init__(*declarations, **settings)
        self.once = once
        self.group = group
        self.default_text = default_text or settings.get("default") or ""
        self.words = tuple(words)
        self.setting = setting
        self.everyday = everyday

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Convert the value from the command line.

        Raises BadParameter for an empty string, unless the option may be repeated or takes a column, and for a second
        value of an option that is allowed only once.
        """
        if value == "" and self.metavar not in ("COLUMN", "COLUMN,..."):
            raise click.BadParameter("the value is empty", ctx, self)
        values = super().type_cast_value(ctx, value)
        if not self.once:
            return values
        if len(values) > 1:
            raise click.BadParameter(
                f"it was given {len(values)} times, with {' and '.join(map(repr, values))}", ctx, self
            )
        return values[0] if values else None

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Process the value; an option that is allowed only once gets None, not an empty tuple, if it is not given."""
        processed = super().process_value(ctx, value)
        return None if self.once and processed == () else processed

    @property
    def is_list(self) -> bool:
        return self.multiple and not self.once

    def help_rows(self, ctx: click.Context, *, with_words: bool) -> list[tuple[str, str]]:
        """Return the rows of the help about the option.

        With `with_words`, a row with the whole help text is followed by a row per word that the option accepts.
        Otherwise there is one row, with the help text up to its first period or semicolon, and the words without
        explanations. A hidden option has no rows.
        """
        record = self.get_help_record(ctx)
        if record is None:
            return []
        default = f" [{self.default_text}]" if self.default_text else ""
        if not with_words:
            # Words that are examples, such as "explain_1 ...", need their explanations.
            words = ", ".join(word for word, _ in self.words if word.replace("-", "").isalnum())
            first = re.split(r"(?<=\w)[.;] ", record[1])[0].removesuffix(".")
            return [(record[0], f"{first}{': ' if words else ''}{words}.{default}")]
        return [(record[0], record[1] + default), *((f"    {word}", meaning) for word, meaning in self.words)]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete columns of the table on the command line, words that the option accepts, or names of files."""
        from click.shell_completion import CompletionItem

        metavar = self.metavar or ""
        if metavar in ("COLUMN", "COLUMN,..."):
            before, comma, last = incomplete.rpartition(",") if "," in metavar else ("", "", incomplete)
            names = _columns_of_typed_table(ctx)
            return [CompletionItem(before + comma + name) for name in names if name.startswith(last)]
        # The words of a numeric option describe ranges of values; they are not values themselves.
        words = [word for word, _ in self.words] if metavar != "N" else []
        items = [
            CompletionItem(word)
            for word in words or metavar.split("|")
            if word.islower() and word.startswith(incomplete)
        ]
        files = [CompletionItem(incomplete, type="file")] if "FILE" in metavar else []
        return items + files or super().shell_complete(ctx, incomplete)


class Paths(click.Argument):
    """A file argument, which a shell completes with names of files."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


class FilePath(Paths):
    """An argument that names one file, which must not be the standard input."""

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Return the path; raise UsageError if it is `-`."""
        if value == "-" and not ctx.resilient_parsing:
            kinds = {"network": "a network", "file": "a file to inspect"}
            refuse_standard_input(kinds.get(self.name or "", "a model"))
        return super().process_value(ctx, value)


def refuse_standard_input(what: str) -> NoReturn:
    """Raise UsageError, because `what` cannot be read from the standard input."""
    raise UsageError(f"{what} cannot be read from the standard input", hint="give the path of the file")


def _columns_of_typed_table(ctx: click.Context) -> Sequence[str]:
    """Return the column names of the table on the unfinished command line, or () if it cannot be read."""
    before = [argument for argument in ctx.command.params if isinstance(argument, Paths) and argument.nargs == 1]
    # click stops at an option whose value is still missing, and leaves the arguments unassigned in ctx.args.
    paths = ctx.params.get("data") or [word for word in ctx.args if not word.startswith("-")][len(before) :]
    paths = tuple(os.path.expanduser(path) for path in paths)
    if not paths or not all(os.path.isfile(path) or os.path.isdir(path) for path in paths):
        return ()  # reading a pipe would block, and consume its rows
    try:
        from bncli.files.reading.source import Source
        from bncli.files.reading.table import read_column_names

        typed: dict[str, Any] = {name: ctx.params.get(name) for name in ("format", "delimiter", "encoding")}
        return read_column_names(Source(paths, **typed))
    except (BncliError, OSError, ValueError):
        return ()


def flag(*declarations: str, group: str, **settings: Any) -> Decorator:
    """Return a decorator that adds an option, under the heading `group`, to a command."""
    return click.option(*declarations, cls=Flag, group=group, **settings)


if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType


class KindType(_ParamType):
    """The type of an option whose value has one of the kinds of the catalogue."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.name = kind_metavar(kind) or "flag"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse a value; class weights, costs and domain knowledge may also be given as the path of a file."""
        try:
            if isinstance(self.kind, ClassWeights):
                from bncli.files.option_files import resolve_label_numbers

                value = resolve_label_numbers(value)
            if isinstance(self.kind, Costs):
                from bncli.files.option_files import resolve_costs

                value = resolve_costs(value)
            if isinstance(self.kind, DomainKnowledge):
                from bncli.files.option_files import resolve_knowledge

                value = resolve_knowledge(value)
            return self.kind.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class SizesType(_ParamType):
    """The type of an option that takes increasing numbers of rows, such as 50,100,200; the last one may be `all`."""

    name = "N,N,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int | str, ...]:
        *words, last = [word.strip() for word in str(value).split(",")]
        sizes: list[int] = []
        for word in words if last == "all" else [*words, last]:
            if word == "all":
                self.fail("'all' is the largest size, so it must come last", param, ctx)
            try:
                size = int(Integer(1).parse(word))
            except ValueError as error:
                self.fail(f"{error}; give for example 50,100,200,all", param, ctx)
            if sizes and size <= sizes[-1]:
                how = "twice" if size == sizes[-1] else f"after {sizes[-1]}"
                self.fail(f"{size} is listed {how}: sizes must be increasing", param, ctx)
            sizes.append(size)
        return (*sizes, last) if last == "all" else tuple(sizes)


_METAVARS = {
    Switch: "",
    ClassPairPrior: "A,B[:DRAWS]",
    Costs: "FILE|TRUE:DECIDED=C",
    ThresholdRule: "P|CRITERION",
    DomainKnowledge: "FILE",
    NetworkFile: "MODEL",
    ColumnNames: "COLUMN",
    Label: "LABEL",
}
"""The placeholders for kinds whose placeholder does not depend on the option."""


def kind_metavar(kind: Kind) -> str:
    """Return the placeholder that the help shows for a value of a kind, or "" for a switch."""
    if isinstance(kind, NumberChoice):
        return "|".join(kind.numbers)
    if isinstance(kind, Real):
        return "|".join(("NUMBER", *kind.words))
    if isinstance(kind, Word | Integer | ClassWeights):
        other = {Integer: ["N"], ClassWeights: ["FILE"]}.get(type(kind), [])
        return "|".join((*kind.words, *other))
    return _METAVARS[type(kind)]


def integer(least: int, most: int = 10**18) -> KindType:
    """Return the type of an option that takes an integer between `least` and `most`, inclusive."""
    return KindType(Integer(least, most))


real = KindType(Real())
"""The type of an option that takes a finite number of at least 0."""

share = KindType(Real(below=1))
"""The type of an option that takes a number of at least 0 and below 1."""

level = KindType(Real(above=True, below=1))
"""The type of an option that takes a number above 0 and below 1."""


data_flag = partial(flag, group="Data")
_rare_data_flag = partial(data_flag, everyday=False)
"""`data_flag` for an option that only --help-all shows."""
output_flag = partial(flag, group="Output")
other_flag = partial(flag, group="Other")

data: Decorator = click.argument("data", nargs=-1, required=True, metavar="DATA...", cls=Paths)
data_or_counts: Decorator = click.argument("data", nargs=-1, metavar="DATA...", cls=Paths)
"""The argument DATA of commands that also take --from-counts."""

FORMAT = (
    _rare_data_flag(
        "--format",
        type=click.Choice(["csv", "tsv", "parquet", "arrow"]),
        default_text="recognized by the first bytes",
        help="Format of DATA.",
    ),
    _rare_data_flag(
        "--delimiter", metavar="CHAR", default_text="detected from the header", help="The field separator."
    ),
    _rare_data_flag(
        "--encoding",
        metavar="NAME",
        default_text="UTF-8, or by the byte-order mark",
        help="Encoding of text files: latin-1, cp1252, utf-16, ...",
    ),
    _rare_data_flag(
        "--names",
        metavar="NAME,...",
        default_text="the first row",
        setting=False,
        help="Column names of a text file without a header row, in order; quote a name that has a comma.",
    ),
)
BAD_ROWS = (
    _rare_data_flag(
        "--on-bad-row",
        metavar="fail|skip|FILE",
        default="fail",
        help="What to do with a malformed row: stop, skip it, or write it to FILE.",
    ),
)
MISSING = (
    data_flag(
        "--missing",
        multiple=True,
        metavar="TOKEN",
        default_text="?, and among numbers NA, NaN, null",
        help="Treat this text as missing instead of the default; +TOKEN adds to the default. May be repeated.",
    ),
)
UNSEEN = (
    _rare_data_flag(
        "--unseen",
        type=click.Choice(["average", "error"]),
        default_text="average, stored in the model",
        help="When scoring, a value that was not seen in training counts as unknown (average) or is an error (error).",
    ),
)
MISSING_COLUMNS = (
    _rare_data_flag(
        "--allow-missing-columns",
        is_flag=True,
        help="Treat columns of the model that the table lacks as missing instead of stopping.",
    ),
)
_CLASS = data_flag(
    "--class", "class_name", metavar="COLUMN", default_text="'class', else the last", help="The column to predict."
)
_WEIGHTS = _rare_data_flag("--weights", metavar="COLUMN", help="A column with the weight of each row.")
_DROP_UNLABELLED = _rare_data_flag(
    "--drop-unlabelled", is_flag=True, help="Leave out rows without a class instead of stopping."
)
COLUMNS = (
    _CLASS,
    data_flag("--ignore", multiple=True, metavar="COLUMN,...", help="Leave these columns out."),
    _rare_data_flag(
        "--use",
        multiple=True,
        metavar="COLUMN,...",
        default_text="all",
        help="Use only these columns. May be repeated.",
    ),
    data_flag(
        "--categorical", multiple=True, metavar="COLUMN,...", help="Treat the numbers in these columns as categories."
    ),
    _rare_data_flag("--numeric", multiple=True, metavar="COLUMN,...", help="Treat these columns as numbers."),
    _rare_data_flag(
        "--dates",
        type=click.Choice(["auto", "off", "dmy", "mdy"]),
        default="auto",
        help="Turn columns of dates into numbers: year, month, day, weekday, hour, days.",
        words=(
            ("auto", "recognize the order; day first if both orders are possible"),
            ("off", "dates stay text"),
            ("dmy, mdy", "the day, or the month, comes first when the year is last"),
        ),
    ),
    _rare_data_flag(
        "--decimal",
        metavar="CHAR",
        default_text="detected in each column",
        help="The decimal mark, '.' or ','; the other one separates thousands.",
    ),
    _WEIGHTS,
    _rare_data_flag(
        "--schema",
        metavar="FILE",
        default_text="NAME.schema.json beside the data, if it exists",
        help="A JSON file with the roles of columns: class, categorical, numeric, ignore, weights. Options take "
        "precedence.",
    ),
    _DROP_UNLABELLED,
    _rare_data_flag("--drop-incomplete", is_flag=True, help="Leave out rows with missing values."),
)
POSITIVE = _rare_data_flag(
    "--positive",
    metavar="LABEL",
    default_text="the second of two, stored in the model",
    help="The positive label (the event), to which thresholds, rates, effects and points refer.",
)
GROUP = data_flag(
    "--group",
    multiple=True,
    metavar="COLUMN,...",
    help="Keep rows with equal values together in splits.",
)
TIME = _rare_data_flag(
    "--time",
    metavar="COLUMN",
    help="Learn from earlier rows and test on later ones, by this column of dates, times or numbers. It is not an "
    "attribute unless --categorical or --numeric names it.",
)
GAP = _rare_data_flag(
    "--gap",
    metavar="DURATION",
    help="With --time: leave out training rows that precede the held-out rows by less than this: 30d, 12h, or a "
    "number if the column is numeric.",
)
WINDOW = _rare_data_flag(
    "--window",
    type=integer(1),
    help="With --time: learn from the latest N blocks only. Blocks are those of --folds, or fifths of the rows.",
)
SPLIT = (GROUP, TIME, GAP, WINDOW)
"""Flags about which rows belong together, and about their order in time."""
LABELLED_TABLE = (_CLASS, _WEIGHTS, _DROP_UNLABELLED)
"""Flags about a labelled table whose attributes are determined by a model."""
TABLE = (*COLUMNS, *MISSING, *FORMAT, *BAD_ROWS)
"""Flags about the columns, values and format of a labelled table to learn from."""


def parse_rows(flag: str, text: str | None) -> tuple[int, int] | None:
    """Parse the value of an option for rows, N or A-B, into the first and the last row, counted from 1.

    Returns None for None, and raises UsageError for any other value.
    """
    if text is None:
        return None
    first, hyphen, last = text.partition("-")
    if not (first.isdecimal() and (last.isdecimal() or not hyphen)):
        raise UsageError(f"{flag} {text}: give a row such as 17, or a range such as 10-20")
    rows = int(first), int(last if hyphen else first)
    if not 1 <= rows[0] <= rows[1]:
        raise UsageError(f"{flag} {text}: rows are numbered from 1, and the first must not come after the last")
    return rows


def output(what: str) -> Decorator:
    """Return the flag `-o` for the file that a command writes, with `what` as its help text."""
    return output_flag("-o", "--output", metavar="FILE", help=what)


BY = output_flag(
    "--by",
    multiple=True,
    metavar="COLUMN[,COLUMN]",
    setting=False,
    help="Also report all figures for each value of this column; for numeric columns, each interval of the model. The "
    "column may be one that --ignore leaves out. May be repeated.",
)
REPORT = output_flag("--report", metavar="FILE", setting=False, help="Also write an HTML page (bncli help report).")
BESIDE = output_flag(
    "--beside",
    multiple=True,
    metavar="MODEL",
    setting=False,
    help="Also show the figures of another model on the same rows. May be repeated.",
)
SCORES = output_flag(
    "--scores",
    is_flag=True,
    everyday=False,
    help="Also print the scores of the network on the training rows, in nats: ll, bic, aic, k2, bdeu and acll, and "
    "the error of acll as an approximation of the conditional log-likelihood.",
)
JSON = output_flag("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
QUIET = output_flag("--quiet", "-q", is_flag=True, help="No progress, notes or summary on the standard error.")
VERBOSE = output_flag(
    "--verbose",
    "-v",
    is_flag=True,
    setting=False,
    help="Print the time of each stage; with fit also the optimizer, with evaluate the figures of each fold.",
)
THREADS = other_flag(
    "--threads",
    everyday=False,
    type=integer(1),
    default_text="all cores",
    help="Number of threads; it never changes a result.",
)
SEED = other_flag("--seed", type=integer(0), default="0", help="Seed of all random numbers.")
CONFIG = other_flag(
    "--config",
    everyday=False,
    metavar="FILE",
    setting=False,
    default_text="BNCLI_CONFIG",
    help="A TOML file with options; options on the command line take precedence.",
)
DEBUG = other_flag(
    "--debug", everyday=False, is_flag=True, expose_value=False, setting=False, help="Show the traceback of an error."
)
CLUSTER = other_flag(
    "--cluster",
    everyday=False,
    metavar="ADDRESS",
    help="Run on the workers of a Dask cluster, with the same result: tcp://HOST:PORT, file:SCHEDULER.json, or "
    "local:N processes on this machine. Every worker must be able to read DATA.",
)


RUNNING = (JSON, QUIET, THREADS, SEED, CONFIG, DEBUG)
"""Flags of most commands that read rows."""


_SOURCE_FIELDS = (
    *("format", "encoding", "class_name", "weights", "positive", "ignore", "use", "categorical", "numeric", "dates"),
    *("on_bad_row", "drop_unlabelled", "drop_incomplete", "allow_missing_columns", "group", "time", "gap", "window"),
)
"""The fields of a `Source` that have the same name as the key of their flag."""


class Setting(NamedTuple):
    """The value of an option, and the environment variable or file that set it."""

    value: Any
    where: str


def settings_of_run() -> Mapping[str, Setting]:
    """Return the settings that apply to the running command, keyed by parameter name; empty outside a command."""
    ctx = click.get_current_context(silent=True)
    return {} if ctx is None else ctx.meta.get(SETTINGS_KEY, {})


def without_settings(typed: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return the options, without the values of `names` that come from settings and not from the command line.

    A command calls this for options that have no effect together with the others: on the command line they are an
    error, but a setting applies to every run of the command.
    """
    settings = settings_of_run()
    empty = {name: False if typed[name] is True else () if isinstance(typed[name], tuple) else None for name in names}
    return {**typed, **{name: value for name, value in empty.items() if name in settings}}


def source(typed: Mapping[str, Any], paths: tuple[str, ...]) -> Source:
    """Build the `Source` for the table at `paths` from the options in `typed`; nothing is read.

    Flags that the command does not have may be missing from `typed`. Raises UsageError for an invalid delimiter,
    decimal mark or list of names, and if the standard input is mixed with other files.
    """
    from bncli.files.reading.source import Source

    if "-" in paths and len(paths) > 1:
        raise UsageError("'-' (the standard input) cannot be mixed with other files")
    if not typed.get("time"):
        typed = without_settings(typed, *typed.keys() & {"window", "gap"})
    delimiter, decimal = parse_delimiter(typed.get("delimiter")), check_decimal_mark(typed.get("decimal"))
    names = typed.get("names")
    if names is not None:
        import csv

        text = names
        names = tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True)))
        if not all(names):
            raise UsageError(f"--names has an empty name in {text!r}", hint="give every column a name")
    return Source(
        paths=paths,
        delimiter=delimiter,
        decimal=decimal,
        names=names,
        schema_file=typed.get("schema"),
        missing_tokens=typed.get("missing") or None,
        **{name: typed[name] for name in _SOURCE_FIELDS if name in typed},
    )


def parse_delimiter(text: str | None) -> str | None:
    """Return the delimiter, or None for None; a tab may be written as `tab` or `\\t`.

    Raises UsageError unless it is a single ASCII character other than a quotation mark or a line end.
    """
    if text is None:
        return None
    character = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(character) != 1 or character in '"\r\n' or not character.isascii():
        raise UsageError(f"--delimiter must be one character, not {text!r}", hint="use ',', ';', '|' or a tab")
    return character


def check_decimal_mark(mark: str | None) -> str | None:
    """Return the mark; raise UsageError unless it is a point, a comma or None."""
    if mark not in (None, ".", ","):
        raise UsageError(f"--decimal must be a point or a comma, not {mark!r}")
    return mark


def threads(typed: Mapping[str, Any]) -> int:
    """Return the number of threads that was given or, by default, the number of cores that this process may use."""
    if typed["threads"] is not None:
        return int(typed["threads"])
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def output_path(path: str | None) -> str | None:
    """Return the path to write to: /dev/stdout for a hyphen, and None for None."""
    return "/dev/stdout" if path == "-" else path


def refuse_terminal(data: Sequence[str]) -> None:
    """Raise UsageError if DATA is missing and the standard input is a terminal."""
    if not data and sys.stdin is not None and sys.stdin.isatty():
        raise UsageError("there is no table to score", hint="give DATA, or pipe it in")


def check_page(typed: Mapping[str, Any], *others: str | None) -> None:
    """Check the file of --report, if it was given, before any work is done.

    Raises UsageError if the file would be compressed or is also DATA or one of `others`, and BncliError if it is not
    writable.
    """
    if typed["report"]:
        from bncli.steps.report.report import check_page as check

        check(typed["report"], (*typed.get("data", ()), *others))


def words_about_tables() -> dict[str, tuple[str, ...]]:
    """Return the words that the flags about tables accept, keyed by the Python name of the flag."""
    words = {flag.name: getattr(flag.type, "choices", (flag.metavar or "").split("|")) for flag in _flags_of_tables()}
    lower = {name: tuple(filter(str.islower, choices)) for name, choices in words.items()}
    return {name: choices for name, choices in lower.items() if choices}


def switches_about_tables() -> set[str]:
    """Return the Python names of the flags about tables that take no value."""
    return {flag.name for flag in _flags_of_tables() if flag.is_flag}


def _flags_of_tables() -> list[Any]:
    command: Any = click.Command("table")
    for decorator in (*TABLE, *UNSEEN):
        decorator(command)
    return list(command.params)
