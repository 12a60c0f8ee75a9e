"""`bncli describe`: a first look at a table, 80 characters wide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bncli.cli import options
from bncli.cli.command import declare
from bncli.cli.console import Console
from bncli.cli.model_text import first_names
from bncli.cli.options import output_flag, settings_of_run
from bncli.cli.terminal_tables import filled_table
from bncli.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from bncli.steps.describe import AttributeBins, DescribeReport

EXAMPLES = """\
bncli describe data.csv
bncli describe data.csv --class churn --schema-out data.schema.json    a file to edit
bncli describe data.csv --bins        weight of evidence and information value of each bin
bncli describe big.parquet --json
"""
SCHEMA_OUT = output_flag(
    "--schema-out",
    metavar="FILE",
    help="Write the roles of the columns as a schema file to edit. NAME.schema.json in the folder of the data is "
    "read automatically.",
)
BINS = output_flag(
    "--bins",
    is_flag=True,
    help="With two labels: print the rows, events, weight of evidence and information value of each bin of each "
    "attribute. The event is the second label, or that of --positive.",
)
_WIDTH = 80
_NAME_WIDTH, _EXAMPLE_WIDTH, _VALUES_WIDTH, _DATE_WIDTH = 18, 14, 38, 10
_MOST_NAMES = 60
_MOST_COLUMNS = 1000
_MOST_LABELS = 12
_MOST_BINNED = 100


@declare(
    "describe",
    EXAMPLES,
    (options.data,),
    (*options.TABLE, options.POSITIVE),
    (BINS, SCHEMA_OUT, options.REPORT),
    options.RUNNING,
)
def command(**typed: Any) -> None:
    """Describe the table; nothing is learned."""
    if typed["positive"] is not None and not typed["bins"] and "positive" not in settings_of_run():
        raise UsageError("--positive has no effect without --bins", hint="add --bins")
    source = options.source(typed, typed["data"])
    from bncli.steps.describe import describe
    from bncli.watch import Run

    options.check_page(typed, typed["schema_out"])
    with Console(quiet=typed["quiet"], as_json=typed["as_json"]) as console:
        run = Run(options.threads(typed), watch=console.watch)
        report = describe(source, schema_out=options.output_path(typed["schema_out"]), bins=typed["bins"], run=run)
        if typed["report"]:
            from bncli.steps.report.command_pages import description_page
            from bncli.steps.report.report import write_page

            write_page(typed["report"], description_page(report, typed["data"]))
        if console.as_json:
            console.json(report)
        else:
            console.tables(*_tables(report))
        console.summary([f"written     {report.schema_file}"] if report.schema_file else [])


def _tables(report: DescribeReport) -> list[str | Table]:
    """Return the tables and lines of the report in the order in which they are printed.

    Of a very wide table, the _MOST_COLUMNS columns with the most information about the class are included.
    """
    # For a very wide table, show only the columns with the highest mutual information with the class, in file order.
    by_bits = sorted(report.columns, key=lambda column: -(column.bits or 0))
    names = {column.name for column in by_bits[:_MOST_COLUMNS]}
    columns = [column for column in report.columns if column.name in names]
    hidden = len(report.columns) - len(columns)

    # Rows of two tables: the type of each column and what `fit` does with it; examples of its values.
    rows, examples = [], []
    for column in columns:
        name, about = _clipped(column.name), "" if column.exact else "~"
        distinct = f"{column.distinct:,}" if column.exact else f"~{float(f'{column.distinct:.3g}'):,.0f}"
        bits = "-" if column.bits is None else f"{about}{column.bits:.3f}"
        does = "uses" if column.use else "leaves out"
        does = "the class" if column.use and column.name == report.class_name else does
        share = _percentage(column.missing, report.rows) if column.missing else "-"
        rows.append((name, column.type, distinct, share, bits, does))
        if column.smallest is not None:
            values = f"{_number(column.smallest)}  {about}{_number(column.median)}  {_number(column.largest)}"
        else:
            values = ""
            for value, n_rows in column.commonest:
                text = f"{_clipped(value)} {n_rows:,}"
                if len(values) + len(text) > _VALUES_WIDTH - 2:
                    break
                values += f"{', ' if values else ''}{text}"
        examples.append((name, _clipped(column.example, _EXAMPLE_WIDTH), values))

    lines: list[str | Table] = [
        *_heading(report),
        "",
        filled_table("Columns", ("name", "type", "distinct", "missing", "bits", "fit"), rows, numbers=(2, 3, 4)),
        filled_table("Values", ("name", "example", "smallest, median, largest; most frequent"), examples),
    ]
    if hidden:
        lines += [f"... and {hidden:,} more columns with less information about the class; --json prints all", ""]
    if any(not column.exact for column in columns):
        lines += ["~ estimated, because there are too many distinct values to count exactly", ""]

    # Each reason to use or leave out columns, with the columns that it applies to.
    lines += ["What fit does", ""]
    groups: dict[tuple[bool, str], list[str]] = {}
    for column in columns:
        groups.setdefault((column.use, column.reason), []).append(_clipped(column.name))
    for (use, reason), listed in sorted(groups.items(), key=lambda item: not item[0][0]):
        lines += _wrapped(f"{'uses' if use else 'leaves out'} {first_names(listed, _MOST_NAMES)}: {reason}")
    lines.append("")

    if report.bins is not None:
        lines += _bin_tables(report.bins, report.event or "")
    for note in report.notes:
        lines += _wrapped(f"{'Warning' if note in report.warnings else 'Note'}: {note}")
    if report.recommended:
        options = dict.fromkeys(one.option for one in report.findings if not one.option.endswith(" COLUMN"))
        if options:
            lines += _wrapped(
                f"If the warnings about the rows are right, add {' '.join(options)} to the command below."
            )
        lines.append(f"Recommended: {report.recommended}")
    return lines


def _heading(report: DescribeReport) -> list[str]:
    """Return lines with the number of rows and columns, and the class with the proportions of up to 12 labels."""
    size = f"{report.rows:,} rows, {len(report.columns):,} columns"
    known = report.of_class
    if known is None:
        return [size, "No class" if report.class_name is None else f"Class {_clipped(report.class_name)}"]
    if not report.rows:
        return [size, f"Class {_clipped(known.name)}"]
    total = max(sum(known.rows), 1)
    order = sorted(range(len(known.rows)), key=lambda i: -known.rows[i])
    parts = [f"{_clipped(known.labels[i])} {_percentage(known.rows[i], total)}" for i in order[:_MOST_LABELS]]
    parts += [f"{len(order) - _MOST_LABELS} more labels"] if len(order) > _MOST_LABELS else []
    parts += [f"{known.unlabelled:,} rows without a class"] if known.unlabelled else []
    return [size, *_wrapped(f"Class {_clipped(known.name)}: {', '.join(parts)}; {known.bits:.3f} bits")]


def _bin_tables(bins: tuple[AttributeBins, ...], event: str) -> list[str | Table]:
    """Return a table of the attributes by information value, and a table of the bins of each, for the first 100."""
    shown = bins[:_MOST_BINNED]
    ranks = [(_clipped(entry.attribute), f"{len(entry.bins):,}", f"{entry.iv:.4f}") for entry in shown]
    tables: list[str | Table] = [
        filled_table(f"Information value (event: {_clipped(event)})", ("name", "bins", "IV"), ranks, numbers=(1, 2))
    ]
    headings = ("value", "rows", "events", "event rate", "WoE", "IV")
    for entry in shown:
        about = "" if entry.exact else "~"
        rows = []
        for value, own in zip(entry.values, entry.bins, strict=True):
            counts = (f"{about}{own.rows:,.10g}", f"{about}{own.events:,.10g}")
            rates = ("-" if number is None else f"{number:.4f}" for number in (own.event_rate, own.woe, own.iv))
            rows.append((_clipped(value, _VALUES_WIDTH // 2), *counts, *rates))
        tables.append(filled_table(_clipped(entry.attribute), headings, rows, numbers=range(1, 6)))
    if len(bins) > len(shown):
        tables += [f"... and {len(bins) - len(shown):,} more attributes with less information; --json prints all", ""]
    return tables


def _number(value: float | str | None) -> str:
    """Format a number with six significant digits, or a date without its time of day; None becomes ""."""
    return (value or "")[:_DATE_WIDTH] if isinstance(value, str) or value is None else f"{value:.6g}"


def _clipped(text: str, most: int = _NAME_WIDTH) -> str:
    """Return the string if it has at most `most` characters, or its first `most` - 3 characters and "..."."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _percentage(n_part: int, n_total: int) -> str:
    """Format a fraction as a percentage; only the fractions 0 and 1 are printed as 0.0 % and 100.0 %."""
    share = 100 * n_part / n_total
    if 0 < share < 0.1:
        return "<0.1 %"
    return ">99.9 %" if 99.9 < share < 100 else f"{share:.1f} %"


def _wrapped(text: str) -> list[str]:
    from textwrap import wrap

    return wrap(text, _WIDTH, subsequent_indent="  ") or [""]
