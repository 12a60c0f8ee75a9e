"""What SQLite, DuckDB and PostgreSQL write differently, and how long and wide they let things be.

DuckDB takes every statement of PostgreSQL's dialect as it is; its own looks levels up in maps and has no fences between
layers, which would cost it its threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

BEGINNING = "-- bncli: "
DIALECTS = ("sqlite", "duckdb", "postgres")
_BLANKS_SQLITE = "' ' || char(9, 13, 10)"


class Dialect(NamedTuple):
    """columns: of a table or a query at most. name_bytes: of an identifier; 0 where there is no limit.

    fence: ends a query whose columns are to be computed once and not where they are used. blind_to_case: identifiers
    that differ in ASCII capitals alone are the same.
    """

    word: str
    product: str
    columns: int
    name_bytes: int
    fence: str
    blind_to_case: bool
    has_arrays: bool
    has_maps: bool = False

    def same_name(self, name: str) -> str:
        """Equal for identifiers that are one."""
        name = self.shortened(name)
        return "".join(c.lower() if c.isascii() else c for c in name) if self.blind_to_case else name

    def shortened(self, name: str, spare: int = 0) -> str:
        """Return the identifier as the database cuts it, at the end of a character."""
        if not self.name_bytes:
            return name
        return name.encode()[: self.name_bytes - spare].decode(errors="ignore")

    def most(self, terms: Sequence[str]) -> str:
        """Return the greatest of two expressions or more."""
        if self.has_arrays:
            return f"greatest({', '.join(terms)})"
        if len(terms) <= 100:  # a function of SQLite takes 127 arguments, one argument makes it an aggregate
            return f"max({', '.join(terms)})"
        half = len(terms) // 2
        return f"max({self.most(terms[:half])}, {self.most(terms[half:])})"

    def power(self, exponent: str) -> str:
        """Return exp of a number that is not positive; PostgreSQL fails where the result is 0."""
        return f"exp({self.most([exponent, '-600.0e0'])})"

    def text_value(self, column: str, missing: Sequence[str]) -> str:
        """Return the column as a text without blanks around it, a whole number without its zeros.

        NULL where it is missing.
        """
        if self.has_arrays:
            text = f"CAST({column} AS text)"
            bare = f"CASE WHEN {_is_text(column)} THEN {text} ELSE regexp_replace({text}, '[.]0+$', '') END"
        else:
            whole = f"typeof({column}) = 'real' AND {column} = CAST({column} AS INTEGER)"
            bare = f"CASE WHEN {whole} THEN CAST({column} AS INTEGER) ELSE {column} END"
        return self._unless(self._trimmed(bare), missing)

    def number_value(self, column: str, missing: Sequence[str]) -> str:
        """Return the column as a double; NULL where it is missing or not a number; an error for a text that is none."""
        if self.has_arrays:
            text = self._unless(self._trimmed(f"CAST({column} AS text)"), missing)
            number = f"CAST({column} AS double precision)"
            chosen = f"CASE WHEN {_is_text(column)} THEN CAST({text} AS double precision) ELSE {number} END"
            return f"nullif({chosen}, CAST('NaN' AS double precision))"
        trimmed = self._trimmed(column)
        # A text that reads as a number is compared as one, any other is greater than all numbers: it is an error.
        return (
            f"CASE WHEN typeof({column}) <> 'text' THEN CAST({column} AS REAL) "
            f"WHEN {trimmed} IN ({', '.join(map(literal, missing))}) THEN NULL "
            f"WHEN {trimmed} < CAST(9e999 AS REAL) THEN CAST({trimmed} AS REAL) ELSE json('[' || {column} || '}}') END"
        )

    def _trimmed(self, text: str) -> str:
        return f"trim(both E' \\t\\r\\n' from {text})" if self.has_arrays else f"trim({text}, {_BLANKS_SQLITE})"

    def _unless(self, text: str, missing: Sequence[str]) -> str:
        return f"CASE WHEN {text} NOT IN ({', '.join(map(literal, missing))}) THEN {text} END" if missing else text


SQLITE = Dialect("sqlite", "SQLite", 2000, 0, " LIMIT -1 OFFSET 0", True, False)
DUCKDB = Dialect("duckdb", "DuckDB", 100_000, 0, "", True, True, True)
POSTGRES = Dialect("postgres", "PostgreSQL", 1600, 63, " OFFSET 0", False, True)
BY_WORD = {one.word: one for one in (SQLITE, DUCKDB, POSTGRES)}


def literal(text: str) -> str:
    """Return a text as a constant."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """Return a name in quotes."""
    return '"' + name.replace('"', '""') + '"'


def number(value: float) -> str:
    """Return a double that reads back as it was: with an exponent, without which it would be a decimal first."""
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def total(terms: Sequence[str]) -> str:
    """Return the sum, as a tree that is not deep: databases limit the depth of an expression."""
    if len(terms) <= 2:
        return " + ".join(terms) if terms else "0.0e0"
    half = len(terms) // 2
    return f"({total(terms[:half])}) + ({total(terms[half:])})"


def _is_text(column: str) -> str:
    return f"CAST(pg_typeof({column}) AS text) IN ('text', 'varchar', 'character varying', 'character')"
