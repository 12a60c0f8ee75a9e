"""Every flag that is no learning option, declared once, and the frozen values that groups of flags collapse into.

Options and arguments of commands: what the help says of them, and the words that fit while they are typed.

Values as a user types them: read by the kinds of the catalogue, and named in the error when they are not that.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from bncli.catalogue.option_kinds import (
    ClassPairPrior,
    ClassWeights,
    ColumnNames,
    Costs,
    Integer,
    Kind,
    Label,
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


Callback = Callable[..., None]
Decorator = Callable[[Callback], Callback]


class Flag(click.Option):
    """An option with the group it is shown in, its default in words, and a row of help for each word it accepts.

    `setting`: it may also be set by a variable or a configuration file. `everyday`: --help shows it, not only
    --help-all. `once`: typing it twice is an error, where the last one might not be what is meant; the value is one.
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
        super().__init__(*declarations, **(settings | ({"multiple": True} if once else {})))
        self.once = once
        self.group = group
        self.default_text = default_text
        self.words = tuple(words)
        self.setting = setting
        self.everyday = everyday

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """Return what was typed as the option's type; nothing is no value, unless it may be the name of a column."""
        if value == "" and self.metavar not in ("COLUMN", "COLUMN,..."):
            raise click.BadParameter("the value is empty", ctx, self)
        found = super().type_cast_value(ctx, value)
        if not self.once:
            return found
        if len(found) > 1:
            raise click.BadParameter(
                f"it is given {len(found)} times, with {' and '.join(map(repr, found))}", ctx, self
            )
        return found[0] if found else None

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        """Return None, rather than no values, where one could be typed and was not."""
        found = super().process_value(ctx, value)
        return None if self.once and found == () else found

    @property
    def lists(self) -> bool:
        """Whether the value is a list."""
        return self.multiple and not self.once

    def rows(self, ctx: click.Context) -> list[tuple[str, str]]:
        """Return the lines of the help: the option, then its words."""
        record = self.get_help_record(ctx)
        if record is None:
            return []
        default = f" [{self.default_text}]" if self.default_text else ""
        return [(record[0], record[1] + default), *((f"    {word}", what) for word, what in self.words)]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the words of a method, the columns of the table that is typed already, or files."""
        from click.shell_completion import CompletionItem

        if self.metavar in ("COLUMN", "COLUMN,..."):
            before, comma, last = incomplete.rpartition(",") if "," in (self.metavar or "") else ("", "", incomplete)
            names = columns_typed(ctx)
            return [CompletionItem(before + comma + name) for name in names if name.startswith(last)]
        told = [] if self.metavar == "N" else [word for word, _ in self.words]  # those of a number are no values
        words = told or (self.metavar or "").split("|")
        items = [CompletionItem(word) for word in words if word.islower() and word.startswith(incomplete)]
        files = [CompletionItem(incomplete, type="file")] if "FILE" in (self.metavar or "") else []
        return items + files or super().shell_complete(ctx, incomplete)


class Paths(click.Argument):
    """An argument that is completed by the names of files."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


def columns_typed(ctx: click.Context) -> Sequence[str]:
    """Return the columns of the table that stands on the command line so far; none where it cannot be read."""
    before = [argument for argument in ctx.command.params if isinstance(argument, Paths) and argument.nargs == 1]
    # An option that still lacks its value ends click's reading: the arguments are left where they were.
    paths = ctx.params.get("data") or [word for word in ctx.args if not word.startswith("-")][len(before) :]
    paths = tuple(os.path.expanduser(path) for path in paths)
    if not paths or not all(os.path.isfile(path) or os.path.isdir(path) for path in paths):
        return ()  # a pipe would wait, and lose what is read from it
    try:
        from bncli.files.reading.source import Source
        from bncli.files.reading.table import read_column_names

        typed: dict[str, Any] = {name: ctx.params.get(name) for name in ("format", "delimiter", "encoding")}
        return read_column_names(Source(paths, **typed))
    except (BncliError, OSError, ValueError):
        return ()


def flag(*declarations: str, group: str, **settings: Any) -> Decorator:
    """Declare an option of a group."""
    return click.option(*declarations, cls=Flag, group=group, **settings)


if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType


class KindType(_ParamType):
    """The type of an option whose value is of a kind."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.name = metavar(kind) or "flag"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value that was typed; a default that is one already stays. A file stands for what it holds."""
        try:
            if isinstance(self.kind, ClassWeights):
                from bncli.files.label_numbers import resolve_label_numbers

                value = resolve_label_numbers(value)
            if isinstance(self.kind, Costs):
                from bncli.files.label_numbers import resolve_costs

                value = resolve_costs(value)
            return self.kind.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class SizesType(_ParamType):
    """The type of an option that takes ascending numbers of rows, and at the end perhaps `all`: 50,100,200,all."""

    name = "N,N,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int | str, ...]:
        """Return the sizes that were typed."""
        *words, last = [word.strip() for word in str(value).split(",")]
        sizes: list[int] = []
        for word in words if last == "all" else [*words, last]:
            if word == "all":
                self.fail("'all' is the largest size, and stands at the end", param, ctx)
            try:
                size = int(Integer(1).parse(word))
            except ValueError as error:
                self.fail(f"{error}; say for example 50,100,200,all", param, ctx)
            if sizes and size <= sizes[-1]:
                how = "twice" if size == sizes[-1] else f"after {sizes[-1]}"
                self.fail(f"{size} stands {how}: sizes must ascend, each of them once", param, ctx)
            sizes.append(size)
        return (*sizes, last) if last == "all" else tuple(sizes)


def metavar(kind: Kind) -> str:
    """Return what stands for a value of a kind in the help."""
    if isinstance(kind, Word):
        return "|".join(kind.words)
    if isinstance(kind, NumberChoice):
        return "|".join(kind.numbers)
    if isinstance(kind, Switch):
        return ""
    if isinstance(kind, ClassPairPrior):
        return "A,B[:DRAWS]"
    if isinstance(kind, Costs):
        return "FILE|TRUE:DECIDED=C"
    if isinstance(kind, ThresholdRule):
        return "P|CRITERION"
    if isinstance(kind, ColumnNames):
        return "COLUMN"
    if isinstance(kind, Label):
        return "LABEL"
    if isinstance(kind, ClassWeights):
        return "|".join((*kind.words, "FILE"))
    return "|".join((*kind.words, "N")) if isinstance(kind, Integer) else "|".join(("NUMBER", *kind.words))


def whole(least: int, most: int = 10**18) -> KindType:
    """Return the type of an option that takes a whole number of at least `least` and at most `most`."""
    return KindType(Integer(least, most))


real = KindType(Real())
"""The type of an option that takes a finite number of at least 0."""

share = KindType(Real(below=1))
"""The type of an option that takes a number of at least 0 and below 1."""


_DATA = "Data"
_OUTPUT = "Output"
_OTHER = "Other"

data: Decorator = click.argument("data", nargs=-1, required=True, metavar="DATA...", cls=Paths)
data_or_counts: Decorator = click.argument("data", nargs=-1, metavar="DATA...", cls=Paths)
"""Of a command that also takes --from-counts."""

FORMAT = (
    flag(
        "--format",
        group=_DATA,
        everyday=False,
        type=click.Choice(["csv", "tsv", "parquet", "arrow"]),
        default_text="told by the first bytes",
        help="Format of DATA.",
    ),
    flag(
        "--delimiter",
        group=_DATA,
        everyday=False,
        metavar="CHAR",
        default_text="found in the header",
        help="What separates fields.",
    ),
    flag(
        "--encoding",
        group=_DATA,
        everyday=False,
        metavar="NAME",
        default_text="UTF-8, or as a byte-order mark says",
        help="How text is encoded: latin-1, cp1252, utf-16, ...",
    ),
    flag(
        "--names",
        group=_DATA,
        everyday=False,
        metavar="NAME,...",
        default_text="the first row",
        setting=False,
        help="The columns of a text file that has no header row, in order; a name with a comma in double quotes.",
    ),
)
BAD_ROWS = (
    flag(
        "--on-bad-row",
        group=_DATA,
        everyday=False,
        metavar="fail|skip|FILE",
        default="fail",
        default_text="fail",
        help="A malformed row stops the run, is skipped, or is put into FILE.",
    ),
)
MISSING = (
    flag(
        "--missing",
        group=_DATA,
        multiple=True,
        metavar="TOKEN",
        default_text="?, and NA NaN null among numbers",
        help="What means a missing value besides the empty field, in place of the tokens in brackets, or with a plus "
        "(+n/a) beside them; may be repeated.",
    ),
)
UNSEEN = (
    flag(
        "--unseen",
        group=_DATA,
        everyday=False,
        type=click.Choice(["average", "error"]),
        default_text="average, stored in the model",
        help="A value never seen in training counts as unknown when scored, or stops the run.",
    ),
)
MISSING_COLUMNS = (
    flag(
        "--allow-missing-columns",
        group=_DATA,
        everyday=False,
        is_flag=True,
        help="Columns that the model uses and the table to score lacks are unknown, and no error.",
    ),
)
_CLASS = flag(
    "--class", "class_name", group=_DATA, metavar="COLUMN", default_text="'class', else the last", help="The class."
)
_WEIGHTS = flag("--weights", group=_DATA, everyday=False, metavar="COLUMN", help="The weight of each row.")
_DROP_UNLABELLED = flag(
    "--drop-unlabelled",
    group=_DATA,
    everyday=False,
    is_flag=True,
    help="Leave out rows without a class instead of stopping.",
)
COLUMNS = (
    _CLASS,
    flag(
        "--ignore",
        group=_DATA,
        multiple=True,
        metavar="COLUMN,...",
        help="Leave these columns out.",
    ),
    flag(
        "--use",
        group=_DATA,
        multiple=True,
        everyday=False,
        metavar="COLUMN,...",
        default_text="all",
        help="Learn from these columns alone; may be repeated.",
    ),
    flag(
        "--categorical",
        group=_DATA,
        multiple=True,
        metavar="COLUMN,...",
        help="Numbers in these columns are names.",
    ),
    flag(
        "--numeric",
        group=_DATA,
        multiple=True,
        metavar="COLUMN,...",
        help="These columns hold numbers.",
    ),
    flag(
        "--dates",
        group=_DATA,
        everyday=False,
        type=click.Choice(["auto", "off", "dmy", "mdy"]),
        default="auto",
        default_text="auto",
        help="A column of dates becomes numbers: its year, month, day of the month and of the week, hour, and days.",
        words=(
            ("auto", "day or month first as all dates of the column allow, the day where both do"),
            ("off", "dates stay text"),
            ("dmy, mdy", "of three numbers with the year last, the first is the day, the month"),
        ),
    ),
    flag(
        "--decimal",
        group=_DATA,
        everyday=False,
        metavar="CHAR",
        default_text="found in each column",
        help="The decimal mark, '.' or ','; the others part thousands.",
    ),
    _WEIGHTS,
    flag(
        "--schema",
        group=_DATA,
        everyday=False,
        metavar="FILE",
        default_text="NAME.schema.json beside the data, if there",
        help="The choices of columns as JSON: class, categorical, numeric, ignore, weights. Flags win.",
    ),
    _DROP_UNLABELLED,
    flag(
        "--drop-incomplete",
        group=_DATA,
        everyday=False,
        is_flag=True,
        help="Leave out rows that lack a value of any attribute.",
    ),
)
POSITIVE = flag(
    "--positive",
    group=_DATA,
    everyday=False,
    metavar="LABEL",
    default_text="the second of two, stored in the model",
    help="The label that is the event: thresholds, rates, effects and points count towards it.",
)
OF_LABELLED = (_CLASS, _WEIGHTS, _DROP_UNLABELLED)
"""Of a labelled table whose columns a model knows."""
TABLE = (*COLUMNS, *MISSING, *FORMAT, *BAD_ROWS)
"""All that can be said of a labelled table."""


def output(what: str) -> Decorator:
    """Return `-o`, the file that a command writes."""
    return flag("-o", "--output", group=_OUTPUT, metavar="FILE", help=what)


def output_path(typed: Mapping[str, Any]) -> str | None:
    """Return the file that follows `-o`."""
    return named(typed["output"])


def named(path: str | None) -> str | None:
    """Return a path to write to; a hyphen is the standard output."""
    return "/dev/stdout" if path == "-" else path


BY = flag(
    "--by",
    group="Output",
    multiple=True,
    metavar="COLUMN[,COLUMN]",
    setting=False,
    help="Also every figure of the rows of each value of this column, which may be one that is left out with --ignore; "
    "numbers by the intervals of the model. May be repeated.",
)
JSON = flag("--json", "as_json", group=_OUTPUT, is_flag=True, help="Print the result as one JSON object.")
QUIET = flag("--quiet", "-q", group=_OUTPUT, is_flag=True, help="No bars, notes or summary on the standard error.")
THREADS = flag(
    "--threads",
    group=_OTHER,
    metavar="N",
    type=whole(1),
    default_text="all cores",
    help="Threads; never change a result.",
)
SEED = flag(
    "--seed",
    group=_OTHER,
    metavar="N",
    type=whole(0),
    default="0",
    default_text="0",
    help="Seed of all that is random.",
)
CONFIG = flag(
    "--config",
    group=_OTHER,
    everyday=False,
    metavar="FILE",
    setting=False,
    default_text="BNCLI_CONFIG",
    help="Options of this TOML file stand for those not typed.",
)
DEBUG = flag(
    "--debug",
    group=_OTHER,
    everyday=False,
    is_flag=True,
    expose_value=False,
    setting=False,
    help="Show the traceback of an error.",
)
CLUSTER = flag(
    "--cluster",
    group=_OTHER,
    everyday=False,
    metavar="ADDRESS",
    help="Have the workers of a Dask cluster do the work, with the same result: tcp://HOST:PORT, file:SCHEDULER.json, "
    "or local:N processes of this machine. Every worker must see DATA.",
)


RUNNING = (JSON, QUIET, THREADS, SEED, CONFIG, DEBUG)
"""What every command that works on rows takes."""


def source(typed: Mapping[str, Any], paths: tuple[str, ...]) -> Source:
    """Return the table at `paths` with everything that was typed about it.

    Flags that the command does not have are unset.
    """
    from bncli.files.reading.source import Source

    if "-" in paths and len(paths) > 1:
        raise UsageError("'-' (the standard input) cannot be mixed with other files")
    return Source(
        paths=paths,
        format=typed.get("format"),
        delimiter=delimiter_of(typed.get("delimiter")),
        class_name=typed.get("class_name"),
        ignore=typed.get("ignore", ()),
        categorical=typed.get("categorical", ()),
        numeric=typed.get("numeric", ()),
        weights=typed.get("weights"),
        schema_file=typed.get("schema"),
        missing_tokens=typed.get("missing") or None,
        on_bad_row=typed.get("on_bad_row", "fail"),
        drop_unlabelled=typed.get("drop_unlabelled", False),
        dates=typed.get("dates", "auto"),
        decimal=decimal_of(typed.get("decimal")),
        encoding=typed.get("encoding"),
        allow_missing_columns=typed.get("allow_missing_columns", False),
        use=typed.get("use", ()),
        positive=typed.get("positive"),
        drop_incomplete=typed.get("drop_incomplete", False),
        names=names_of(typed.get("names")),
    )


def names_of(text: str | None) -> tuple[str, ...] | None:
    """Return a list of names with commas between them; one that holds a comma is in double quotes."""
    if text is None:
        return None
    import csv

    names = tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True)))
    if not all(names):
        raise UsageError(f"--names: a name is empty in {text!r}", hint="give every column a name")
    return names


def delimiter_of(text: str | None) -> str | None:
    """Return one character; the tab may be written as a word or with a backslash, for it is hard to type."""
    if text is None:
        return None
    character = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(character) != 1 or character in '"\r\n' or not character.isascii():
        raise UsageError(f"--delimiter takes one character, not {text!r}", hint="say ',' ';' '|' or tab")
    return character


def decimal_of(mark: str | None) -> str | None:
    """Return the mark, if it is one."""
    if mark not in (None, ".", ","):
        raise UsageError(f"--decimal takes a point or a comma, not {mark!r}")
    return mark


def words_of_data() -> dict[str, tuple[str, ...]]:
    """Return the words that flags about DATA take, by the names of the flags.

    Of some a file may stand in their place.
    """

    def nothing() -> None:
        """Never called: only the options are of use."""

    callback: Any = nothing
    for decorator in (*TABLE, *UNSEEN):
        callback = decorator(callback)
    found = {
        one.name: getattr(one.type, "choices", (one.metavar or "").split("|")) for one in callback.__click_params__
    }
    return {name: tuple(filter(str.islower, words)) for name, words in found.items() if any(map(str.islower, words))}


def threads(typed: Mapping[str, Any]) -> int:
    """Return the number typed, or the cores that this process may use."""
    import os

    if typed["threads"] is not None:
        return int(typed["threads"])
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


SCORES = flag(
    "--scores",
    group="Output",
    is_flag=True,
    everyday=False,
    help="Also tell what the network is worth by ll, bic, aic, k2, bdeu and acll, in nats, on the rows learnt from, "
    "and how far acll is off the conditional log-likelihood that it stands for.",
)
