"""SQL dialects: the functions, types and limits in which SQLite, DuckDB and PostgreSQL differ.

DuckDB runs every statement of PostgreSQL's dialect as it is. Its own dialect looks levels up in maps and has no fences
between layers, because a fence would keep it from using several threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

HEADER_PREFIX = "-- bncli: "
"""The beginning of the first line of an exported file; JSON follows."""
DIALECTS = ("sqlite", "duckdb", "postgres")
_SQLITE_BLANKS = "' ' || char(9, 13, 10)"


class Dialect(NamedTuple):
    """A dialect of SQL; its methods return names and SQL expressions.

    columns: most columns of a table or a query. name_bytes: most bytes of an identifier, 0 for no limit. fence: ends a
    query whose columns must be computed once, and not where they are used. ignores_case: identifiers that differ only
    in the case of ASCII letters are the same.
    """

    word: str
    product: str
    columns: int
    name_bytes: int
    fence: str
    ignores_case: bool
    has_arrays: bool
    has_maps: bool = False

    def fold_name(self, name: str) -> str:
        """Return a key that is equal for two names of one column or table."""
        name = self.shorten(name)
        return "".join(c.lower() if c.isascii() else c for c in name) if self.ignores_case else name

    def shorten(self, name: str, spare: int = 0) -> str:
        """Return the name cut at the end of a character to the limit of the database, less `spare` bytes."""
        if not self.name_bytes:
            return name
        return name.encode()[: self.name_bytes - spare].decode(errors="ignore")

    def greatest(self, terms: Sequence[str]) -> str:
        """Return the greatest of two or more terms."""
        if self.has_arrays:
            return f"greatest({', '.join(terms)})"
        if len(terms) <= 100:  # a function of SQLite takes 127 arguments, and max of one argument is an aggregate
            return f"max({', '.join(terms)})"
        half = len(terms) // 2
        return f"max({self.greatest(terms[:half])}, {self.greatest(terms[half:])})"

    def exp(self, exponent: str) -> str:
        """Return exp(x) for x <= 0; x is limited to -600, because PostgreSQL raises an error on underflow."""
        return f"exp({self.greatest([exponent, '-600.0e0'])})"

    def text_value(self, column: str, missing: Sequence[str]) -> str:
        """Return the column as trimmed text, whole numbers without decimals, and NULL for one of the missing texts."""
        if self.has_arrays:
            text = f"CAST({column} AS text)"
            bare = f"CASE WHEN {_is_text(column)} THEN {text} ELSE regexp_replace({text}, '[.]0+$', '') END"
        else:
            whole = f"typeof({column}) = 'real' AND {column} = CAST({column} AS INTEGER)"
            bare = f"CASE WHEN {whole} THEN CAST({column} AS INTEGER) ELSE {column} END"
        return self._null_if_missing(self._trim(bare), missing)

    def number_value(self, column: str, missing: Sequence[str]) -> str:
        """Return the column as a double, NULL for one of the missing texts; the database refuses any other text."""
        if self.has_arrays:
            text = self._null_if_missing(self._trim(f"CAST({column} AS text)"), missing)
            number = f"CAST({column} AS double precision)"
            chosen = f"CASE WHEN {_is_text(column)} THEN CAST({text} AS double precision) ELSE {number} END"
            return f"nullif({chosen}, CAST('NaN' AS double precision))"
        trimmed = self._trim(column)
        # SQLite compares a text that reads as a number as a number, and any other text as greater than all numbers. The
        # invalid JSON raises an error for the latter.
        return (
            f"CASE WHEN typeof({column}) <> 'text' THEN CAST({column} AS REAL) "
            f"WHEN {trimmed} IN ({', '.join(map(quote_text, missing))}) THEN NULL "
            f"WHEN {trimmed} < CAST(9e999 AS REAL) THEN CAST({trimmed} AS REAL) ELSE json('[' || {column} || '}}') END"
        )

    def _trim(self, text: str) -> str:
        return f"trim(both E' \\t\\r\\n' from {text})" if self.has_arrays else f"trim({text}, {_SQLITE_BLANKS})"

    def _null_if_missing(self, text: str, missing: Sequence[str]) -> str:
        return f"CASE WHEN {text} NOT IN ({', '.join(map(quote_text, missing))}) THEN {text} END" if missing else text


SQLITE = Dialect("sqlite", "SQLite", 2000, 0, " LIMIT -1 OFFSET 0", True, False)
DUCKDB = Dialect("duckdb", "DuckDB", 100_000, 0, "", True, True, True)
POSTGRES = Dialect("postgres", "PostgreSQL", 1600, 63, " OFFSET 0", False, True)
BY_WORD = {dialect.word: dialect for dialect in (SQLITE, DUCKDB, POSTGRES)}


def _is_text(column: str) -> str:
    return f"CAST(pg_typeof({column}) AS text) IN ('text', 'varchar', 'character varying', 'character')"


def quote_text(text: str) -> str:
    """Return the text as a SQL constant."""
    return "'" + text.replace("'", "''") + "'"


def quote_identifier(name: str) -> str:
    """Return a name in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def number_constant(value: float) -> str:
    """Return a double that reads back exactly, with an exponent, without which it would be read as a decimal."""
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def sum_of(terms: Sequence[str]) -> str:
    """Return the sum of the terms as a balanced tree, because databases limit the depth of expressions."""
    if len(terms) <= 2:
        return " + ".join(terms) if terms else "0.0e0"
    half = len(terms) // 2
    return f"({sum_of(terms[:half])}) + ({sum_of(terms[half:])})"
