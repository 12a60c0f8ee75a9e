"""Every flag that is no learning option, declared once, and the frozen values that groups of flags collapse into."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from bncli.cli.flags import Decorator, Paths, flag
from bncli.cli.numbers import whole
from bncli.errors import UsageError

if TYPE_CHECKING:
    from bncli.files.table import Source

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
        stands_for="told by the first bytes",
        help="Format of DATA.",
    ),
    flag(
        "--delimiter",
        group=_DATA,
        everyday=False,
        metavar="CHAR",
        stands_for="found in the header",
        help="What separates fields.",
    ),
    flag(
        "--encoding",
        group=_DATA,
        everyday=False,
        metavar="NAME",
        stands_for="UTF-8, or as a byte-order mark says",
        help="How text is encoded: latin-1, cp1252, utf-16, ...",
    ),
)
BAD_ROWS = (
    flag(
        "--on-bad-row",
        group=_DATA,
        everyday=False,
        metavar="fail|skip|FILE",
        default="fail",
        stands_for="fail",
        help="A malformed row stops the run, is skipped, or is put into FILE.",
    ),
)
MISSING = (
    flag(
        "--missing",
        group=_DATA,
        multiple=True,
        metavar="TOKEN",
        stands_for="?, and NA NaN null among numbers",
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
        stands_for="average, stored in the model",
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
    "--class", "class_name", group=_DATA, metavar="COLUMN", stands_for="'class', else the last", help="The class."
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
    flag("--ignore", group=_DATA, multiple=True, metavar="COLUMN", help="Leave this column out; may be repeated."),
    flag(
        "--categorical",
        group=_DATA,
        multiple=True,
        metavar="COLUMN",
        help="Numbers in this column are names; may be repeated.",
    ),
    flag("--numeric", group=_DATA, multiple=True, metavar="COLUMN", help="This column holds numbers; may be repeated."),
    flag(
        "--dates",
        group=_DATA,
        everyday=False,
        type=click.Choice(["auto", "off", "dmy", "mdy"]),
        default="auto",
        stands_for="auto",
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
        stands_for="found in each column",
        help="The decimal mark, '.' or ','; the others part thousands.",
    ),
    _WEIGHTS,
    flag(
        "--schema",
        group=_DATA,
        everyday=False,
        metavar="FILE",
        stands_for="NAME.schema.json beside the data, if there",
        help="The choices of columns as JSON: class, categorical, numeric, ignore, weights. Flags win.",
    ),
    _DROP_UNLABELLED,
)
OF_LABELLED = (_CLASS, _WEIGHTS, _DROP_UNLABELLED)
"""Of a labelled table whose columns a model knows."""
TABLE = (*COLUMNS, *MISSING, *FORMAT, *BAD_ROWS)
"""All that can be said of a labelled table."""


def output(what: str) -> Decorator:
    """`-o`, the file that a command writes."""
    return flag("-o", "--output", group=_OUTPUT, metavar="FILE", help=what)


def output_path(typed: Mapping[str, Any]) -> str | None:
    """The file that follows `-o`."""
    return named(typed["output"])


def named(path: str | None) -> str | None:
    """A path to write to; a hyphen is the standard output."""
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
    stands_for="all cores",
    help="Threads; never change a result.",
)
SEED = flag(
    "--seed", group=_OTHER, metavar="N", type=whole(0), default="0", stands_for="0", help="Seed of all that is random."
)
CONFIG = flag(
    "--config",
    group=_OTHER,
    everyday=False,
    metavar="FILE",
    setting=False,
    stands_for="BNCLI_CONFIG",
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


def refuse_cluster(typed: Mapping[str, Any], reason: str) -> None:
    """UsageError where --cluster was typed beside what leaves it nothing to do; as a setting it may stand."""
    from bncli.cli.settings import settings_of_run

    if typed["cluster"] and "cluster" not in settings_of_run():
        raise UsageError(f"--cluster has no effect with {reason}", hint="leave one of them out")


def cluster_of_files(typed: Mapping[str, Any], source: Source) -> str | None:
    """The cluster typed; one that is set is left aside for the standard input."""
    if source.paths == ("-",):
        refuse_cluster(typed, "the standard input, which its workers cannot read")
        return None
    address: str | None = typed["cluster"]
    return address


RUNNING = (JSON, QUIET, THREADS, SEED, CONFIG, DEBUG)
"""What every command that works on rows takes."""


def source(typed: Mapping[str, Any], paths: tuple[str, ...]) -> Source:
    """The table at `paths` with everything that was typed about it; flags that the command does not have are unset."""
    from bncli.files.table import Source

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
    )


def delimiter_of(text: str | None) -> str | None:
    """One character; the tab may be written as a word or with a backslash, for it is hard to type."""
    if text is None:
        return None
    character = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(character) != 1 or character in '"\r\n' or not character.isascii():
        raise UsageError(f"--delimiter takes one character, not {text!r}", hint="say ',' ';' '|' or tab")
    return character


def decimal_of(mark: str | None) -> str | None:
    """The mark, if it is one."""
    if mark not in (None, ".", ","):
        raise UsageError(f"--decimal takes a point or a comma, not {mark!r}")
    return mark


def words_of_data() -> dict[str, tuple[str, ...]]:
    """The words that flags about DATA take, by the names of the flags; of some a file may stand in their place."""

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
    """The number typed, or the cores that this process may use."""
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
