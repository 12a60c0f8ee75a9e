"""`bncli describe`: a first look at a table, at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from bncli.cli import options, pages
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.options import flag

if TYPE_CHECKING:
    from rich.table import Table

    from bncli.files.pictures.page import Page
    from bncli.steps.describe import ColumnReport, DescribeReport

EXAMPLES = """\
bncli describe data.csv
bncli describe data.csv --class churn --schema-out data.schema.json    a file to edit
bncli describe big.parquet --json
"""
SCHEMA_OUT = flag(
    "--schema-out",
    group="Output",
    metavar="FILE",
    help="The roles of the columns as a schema file to edit; NAME.schema.json beside the data is read by itself.",
)
_WIDTH = 80
_NAME, _EXAMPLE, _VALUES, _DATE = 18, 14, 38, 10
_MOST_NAMED = 60
_ESTIMATED = "~ estimated: there are more different values than are kept"
_MOST_COLUMNS = 1000
_MOST_LABELS = 12


@declare("describe", EXAMPLES, (options.data,), options.TABLE, (SCHEMA_OUT, pages.REPORT), options.RUNNING)
def command(**typed: Any) -> None:
    """Describe the table; nothing is learnt."""
    source = options.source(typed, typed["data"])
    from bncli.steps.describe import describe
    from bncli.watch import Run

    pages.check_page(typed, typed["schema_out"])
    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        run = Run(options.threads(typed), watch=console.watch)
        report = describe(source, schema_out=options.named(typed["schema_out"]), run=run)
        pages.write_page(typed, lambda: _page(typed, report))
        if console.as_json:
            console.json(report)
        else:
            console.tables(*_tables(report))
        console.summary([f"written     {report.schema_file}"] if report.schema_file else [])


def _page(typed: Mapping[str, Any], report: DescribeReport) -> Page:
    from bncli.steps.report.table_pages import description_page

    return description_page(report, typed["data"])


def _tables(report: DescribeReport) -> list[str | Table]:
    # All columns, or of a very wide table those that tell most of the class, in their order.
    order = sorted(report.columns, key=lambda column: -(column.bits or 0))
    kept = {column.name for column in order[:_MOST_COLUMNS]}
    shown = [column for column in report.columns if column.name in kept]
    hidden = len(report.columns) - len(shown)
    return [
        *_heading(report),
        "",
        _overview(shown, report),
        _values(shown),
        *([f"... and {hidden:,} more columns, which tell less of the class; --json has all", ""] if hidden else []),
        *([_ESTIMATED, ""] if any(not column.exact for column in shown) else []),
        "What fit does",
        "",
        *_verdicts(shown),
        "",
        *(line for note in report.notes for line in _wrapped(f"Note: {note}")),
        *([f"Recommended: {report.recommended}"] if report.recommended else []),
    ]


def _heading(report: DescribeReport) -> list[str]:
    """Return rows, columns, and the class with the share of each label."""
    size = f"{report.rows:,} rows, {len(report.columns):,} columns"
    known = report.of_class
    if known is None:
        return [size, "No class" if report.class_name is None else f"Class {_short(report.class_name)}"]
    if not report.rows:
        return [size, f"Class {_short(known.name)}"]
    total = max(sum(known.rows), 1)
    order = sorted(range(len(known.rows)), key=lambda i: -known.rows[i])
    parts = [f"{_short(known.labels[i])} {_percent(known.rows[i], total)}" for i in order[:_MOST_LABELS]]
    parts += [f"{len(order) - _MOST_LABELS} more labels"] if len(order) > _MOST_LABELS else []
    parts += [f"{known.unlabelled:,} rows without"] if known.unlabelled else []
    return [size, *_wrapped(f"Class {_short(known.name)}: {', '.join(parts)}; {known.bits:.3f} bits")]


def _short(text: str, most: int = _NAME) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _percent(part: int, whole: int) -> str:
    """Return a share that is neither 0 nor 1 is never rounded to it."""
    share = 100 * part / whole
    if 0 < share < 0.1:
        return "<0.1 %"
    return ">99.9 %" if 99.9 < share < 100 else f"{share:.1f} %"


def _wrapped(text: str) -> list[str]:
    from textwrap import wrap

    return wrap(text, _WIDTH, subsequent_indent="  ") or [""]


def _overview(columns: list[ColumnReport], report: DescribeReport) -> Table:
    """Return the type of each column, how many values it has and lacks, what it tells, whether `fit` uses it."""
    from bncli.cli.tables import add_row, plain_table

    table = plain_table("Columns", "name", "type", "distinct", "missing", "bits", "fit", numbers=(2, 3, 4))
    for column in columns:
        about = "" if column.exact else "~"
        distinct = f"{column.distinct:,}" if column.exact else f"~{float(f'{column.distinct:.3g}'):,.0f}"
        bits = "-" if column.bits is None else f"{about}{column.bits:.3f}"
        does = "uses" if column.use else "leaves out"
        does = "the class" if column.use and column.name == report.class_name else does
        share = _percent(column.missing, report.rows) if column.missing else "-"
        add_row(table, _short(column.name), column.type, distinct, share, bits, does)
    return table


def _values(columns: list[ColumnReport]) -> Table:
    """Return an example of each column; its smallest, median and largest number, or its commonest values."""
    from bncli.cli.tables import add_row, plain_table

    table = plain_table("Values", "name", "example", "smallest, median, largest, or commonest")
    for column in columns:
        if column.smallest is not None:
            about = "" if column.exact else "~"
            values = f"{_figure(column.smallest)}  {about}{_figure(column.median)}  {_figure(column.largest)}"
        else:
            values = ""
            for value, rows in column.commonest:
                one = f"{_short(value)} {rows:,}"
                if len(values) + len(one) > _VALUES - 2:
                    break
                values += f"{', ' if values else ''}{one}"
        add_row(table, _short(column.name), _short(column.example, _EXAMPLE), values)
    return table


def _figure(value: float | str | None) -> str:
    """Return a number, or a date without its time of the day."""
    return (value or "")[:_DATE] if isinstance(value, str) or value is None else f"{value:.6g}"


def _verdicts(columns: list[ColumnReport]) -> Iterator[str]:
    """Yield each reason once, with the columns that it holds for."""
    groups: dict[tuple[bool, str], list[str]] = {}
    for column in columns:
        groups.setdefault((column.use, column.reason), []).append(_short(column.name))
    for (use, reason), names in sorted(groups.items(), key=lambda item: not item[0][0]):
        more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
        listed = ", ".join(names[:_MOST_NAMED]) + more
        yield from _wrapped(f"{'uses' if use else 'leaves out'} {listed}: {reason}")
