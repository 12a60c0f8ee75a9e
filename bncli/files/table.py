"""Tables come in here: CSV and TSV, plain or compressed, Parquet, Arrow; from files, a directory or stdin.

    read_columns    a table to learn from, types found over all rows
    read_labelled   a test set, read as a model's schema says, with its class
    Batches         rows to score, in batches of bounded size; `read_batches` is its short form

How it works, from the bytes up (one module per step in `reading/`): `inputs` finds and decompresses, `headers` and
`text_blocks` cut text into blocks of whole rows, `parse` turns one into typed arrays (`row_blocks`) and finds malformed
rows, `columnar` does the same for Parquet and Arrow, `reader` joins files into one table. On top of it `learning` lets
columns grow and finds their types, `coding` reads them as a schema says. Blocks are parsed on several threads (`ahead`)
and taken in order, so the number of threads changes nothing.
"""

from bncli.files.reading.raw_table import Table
from bncli.files.reading.rows_by_schema import Batch, Batches, read_batches, read_labelled
from bncli.files.reading.source import Source
from bncli.files.reading.training_rows import read_columns

__all__ = ["Batch", "Batches", "Source", "column_names", "read_batches", "read_columns", "read_labelled"]


def column_names(source: Source) -> tuple[str, ...]:
    """Return the names of the table's columns, in its order; only the head is read."""
    with Table(source, keep=True) as table:
        return table.names
