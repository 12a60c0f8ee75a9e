"""The query of a model as layers (common table expressions), each computed from the previous layer.

    valued    v0, ...       every input as a number or a string, NULL if it is missing
    coded     c0, ...       its code, from the cuts (part of the query) or from the table of levels
    grouped   c...          further columns, if tables merge codes: the digits of the merged codes
    added     z<s>_<r>      the shift and the table entries of stage s, added up; they are the scores of the stage
    summed    z<s>_<r>      only if a stage continues the one before: `added` has d<s>_<r>, and scores are their sums
    highest   m<s>          the greatest score
    shares    e<s>_<y>      exp(score - greatest)
    divided   n<s>          the sum of the shares
    mixed     q<y>          sum over stages of weight * share / n

Then, if the model is calibrated by powers,

    summed    t             the sum of q
    logs      l<y>          ln P
    scaled    g<y>          scale * l + shift
    topped    u             the greatest of them
    powers    q<y>          exp(g - u)

With a single stage, `logs` is computed as score - n0 instead, where n0 is the only new column of `shares`: the
logarithm of the sum of exp(score). If the model is calibrated by lines,

    summed    t             the sum of q
    divided   p<y>          q / t
    lines     q<y>          the value of the line at p (two labels: q1 is in a layer `line`, and q0 = 1 - q1)

and in all cases

    whole     t, best       the sum of q and the greatest of them
    expected  d<y>          with costs: sum over the labels of cost * q, for the decision y
    lowest    cheapest      with costs: the smallest of them

Stages are processed `STAGES` at a time, from `added` to `mixed`, to limit the width of a layer. With two labels there
is one score: the second label's score minus the first label's.

The table entries of the model form one array, so that the query needs neither averages nor special cases:

    score[r] of a stage = shift[r] + sum over its terms of numbers[r, base + sum over the axes of stride * digit]

For this, tables are expanded, so that "unobserved" has entries of its own. Within a stage, the tables over one input
are added up to one entry per code of the input. Tables over several inputs are added up if they have the same digits.

The dialects are those of SQLite, DuckDB and PostgreSQL. DuckDB runs every statement of PostgreSQL's dialect unchanged.
Its own dialect looks levels up in maps and has no fences between layers, because a fence would keep it from using
several threads.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from bncli.errors import ModelError

if TYPE_CHECKING:
    from bncli.engine.kernels.arrays import Array
    from bncli.engine.prediction.portable import Input, PortableLine, PortableScorer, PortableTable
    from bncli.files.exports.programs import ProgramTarget

HEADER_PREFIX = "-- bncli: "
"""The beginning of the first line of an exported file; JSON follows."""
DIALECTS = ("sqlite", "duckdb", "postgres")
_SQLITE_BLANKS = "' ' || char(9, 13, 10)"
MOST_NUMBERS = 5_000_000
"""The maximum number of table entries in a file, which then takes about 100 MB."""
STAGES = 16
MOST_MAPPED_LEVELS = 64
"""The maximum number of levels of an input that DuckDB looks up in a map, one after the other.

Other inputs are looked up in the table of levels by a subquery each, which costs DuckDB planning time.
"""
MOST_FLAT_CUTS = 8
"""The maximum number of cuts that are compared one after the other; with more, the middle one is compared first."""
Coding = tuple[int, tuple[int, ...]]
"""The index of an input, and the digit of each of its codes."""
_ZERO = "0.0e0"
_LEAST_PROBABILITY = "1e-300"
"""Smaller probabilities are replaced by this one before their logarithm is taken."""


class Dialect(NamedTuple):
    """A dialect of SQL; its methods return names and SQL expressions.

    columns: the maximum number of columns of a table or query. name_bytes: the maximum length of an identifier in
    bytes, 0 for no limit. fence: SQL at the end of a query whose columns must be computed once, and not wherever they
    are used. ignores_case: identifiers that differ only in the case of ASCII letters are the same. has_arrays: arrays
    and the functions of PostgreSQL are available. has_maps: maps are available.
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
        """Return a key that is equal for names of the same column or table.

        The name is truncated, and its ASCII letters are in lower case if the database ignores their case.
        """
        name = self.shorten(name)
        return "".join(c.lower() if c.isascii() else c for c in name) if self.ignores_case else name

    def shorten(self, name: str, spare: int = 0) -> str:
        """Truncate a name, between two characters, to the limit of the database minus `spare` bytes."""
        if not self.name_bytes:
            return name
        return name.encode()[: self.name_bytes - spare].decode(errors="ignore")

    def greatest(self, terms: Sequence[str]) -> str:
        """Return SQL for the greatest of two or more terms."""
        if self.has_arrays:
            return f"greatest({', '.join(terms)})"
        if len(terms) <= 100:  # a function of SQLite takes 127 arguments, and max of one argument is an aggregate
            return f"max({', '.join(terms)})"
        half = len(terms) // 2
        return f"max({self.greatest(terms[:half])}, {self.greatest(terms[half:])})"

    def exp(self, exponent: str) -> str:
        """Return SQL for exp(x), x <= 0; x is clamped at -600 because PostgreSQL raises an error on underflow."""
        return f"exp({self.greatest([exponent, '-600.0e0'])})"

    def text_value(self, column: str, missing: Sequence[str]) -> str:
        """Return SQL for a column as trimmed strings: whole numbers without decimals, the `missing` strings as NULL."""
        if self.has_arrays:
            text = f"CAST({column} AS text)"
            bare = f"CASE WHEN {_is_text(column)} THEN {text} ELSE regexp_replace({text}, '[.]0+$', '') END"
        else:
            whole = f"typeof({column}) = 'real' AND {column} = CAST({column} AS INTEGER)"
            bare = f"CASE WHEN {whole} THEN CAST({column} AS INTEGER) ELSE {column} END"
        return self._null_if_missing(self._trim(bare), missing)

    def number_value(self, column: str, missing: Sequence[str]) -> str:
        """Return SQL for a column as a double, NULL if it is missing; other strings must be numeric."""
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
    """Quote a string as an SQL constant."""
    return "'" + text.replace("'", "''") + "'"


def quote_identifier(name: str) -> str:
    """Quote a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def number_constant(value: float) -> str:
    """Format a double so that it reads back exactly; without its exponent, SQL would read a decimal."""
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def sum_of(terms: Sequence[str]) -> str:
    """Return SQL for the sum of the terms, as a balanced tree because databases limit the depth of expressions."""
    if len(terms) <= 2:
        return " + ".join(terms) if terms else "0.0e0"
    half = len(terms) // 2
    return f"({sum_of(terms[:half])}) + ({sum_of(terms[half:])})"


class Term(NamedTuple):
    """A table of the model, stored in `SqlModel.numbers`.

    base: the index of its first cell. axes: per axis, the index of its coding in `SqlModel.codings`, and its stride.
    """

    base: int
    axes: tuple[tuple[int, int], ...]


class SqlStage(NamedTuple):
    """A `PortableStage` with terms in place of tables."""

    weight: float
    anew: bool
    shift: tuple[float, ...]
    terms: tuple[Term, ...]


class SqlModel(NamedTuple):
    """A model as one array `numbers` (scores, cells); the first codings are the inputs' own, where code = digit."""

    codings: tuple[Coding, ...]
    stages: tuple[SqlStage, ...]
    numbers: Array


def sql_model(scorer: PortableScorer) -> SqlModel:
    """Convert a model to one array; raise ModelError if it has more than MOST_NUMBERS table entries."""
    from dataclasses import replace

    import numpy as np

    from bncli.engine.prediction.portable import PortableTable

    size = sum(table.expanded_size for table in scorer.tables)
    if size > MOST_NUMBERS:
        what = f"the model is too large to be written as SQL: {size:,} table entries"
        raise ModelError(what, hint=f"the maximum is {MOST_NUMBERS:,}; learn with fewer parents, or with --effort 1")
    number_of_coding: dict[Coding, int] = {}
    for p, column in enumerate(scorer.inputs):
        number_of_coding[p, tuple(range(column.unobserved + 1))] = p
    blocks: list[Array] = [np.zeros((len(scorer.stages[0].shift), 0))]
    n_cells = 0
    stages = []
    for stage in scorer.stages:
        merged: dict[tuple[tuple[int, ...], tuple[tuple[int, ...], ...]], PortableTable] = {}
        for stored in stage.tables:
            # The expanded table; one with a single axis has an entry per code.
            table = stored.expanded()
            digits = tuple(tuple(map(int, axis)) for axis in table.digits)
            shape, entries = table.shape, table.entries
            if len(digits) == 1:
                entries = entries[:, list(digits[0])]
                digits, shape = (tuple(range(len(digits[0]))),), (len(digits[0]),)
            table = PortableTable(table.inputs, digits, shape, entries)
            key = (table.inputs, table.digits)
            known = merged.get(key)
            merged[key] = table if known is None else replace(table, entries=known.entries + table.entries)
        terms = []
        for table in merged.values():
            codings = zip(table.inputs, table.digits, strict=True)
            positions = [number_of_coding.setdefault(coding, len(number_of_coding)) for coding in codings]
            strides = [math.prod(table.shape[i + 1 :]) for i in range(len(table.shape))]
            terms.append(Term(n_cells, tuple(zip(positions, strides, strict=True))))
            blocks.append(table.entries)
            n_cells += table.entries.shape[1]
        stages.append(SqlStage(stage.weight, stage.anew, tuple(stage.shift.tolist()), tuple(terms)))
    return SqlModel(tuple(number_of_coding), tuple(stages), np.concatenate(blocks, axis=1))


class Layers:
    """The layers so far; `texts` has a pair (name, query) per layer."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.texts: list[tuple[str, str]] = []

    def add(self, name: str, columns: Sequence[tuple[str, str]], source: str = "") -> None:
        """Add a layer with these columns (expression, name), selected from `source`, by default the last layer.

        Raises ModelError for more columns than the database allows.
        """
        if len(columns) > self.dialect.columns:
            allowed = f"{self.dialect.product} allows {self.dialect.columns:,}"
            what = f"the query needs {len(columns):,} columns, but {allowed}"
            raise ModelError(what, hint="use another --dialect or --to python, or learn with fewer columns")
        name = f"{name}_{len(self.texts)}"
        selected = ",\n    ".join(e if e == alias else f"{e} AS {alias}" for e, alias in columns)
        source = source or self.texts[-1][0]
        self.texts.append((name, f"  SELECT\n    {selected}\n  FROM {source}{self.dialect.fence}"))

    def text(self) -> str:
        """Return the WITH clause that defines the layers."""
        return "WITH " + ",\n".join(f"{name} AS NOT MATERIALIZED (\n{text}\n)" for name, text in self.texts)


def _unchanged(*names: str) -> list[tuple[str, str]]:
    """Return columns that a layer takes unchanged from the previous layer."""
    return [(name, name) for name in names]


def query_layers(scorer: PortableScorer, model: SqlModel, dialect: Dialect, target: ProgramTarget, stem: str) -> Layers:
    """Build the layers of the query up to `whole`, or up to `lowest` if the decision rule has costs.

    The rows come from the table `target.options["input"]`; the names of the model's own tables begin with `stem`.
    """
    layers = Layers(dialect)
    columns = [(f"t.{quote_identifier(target.options['key'])}", "row_key")]
    for p, column in enumerate(scorer.inputs):
        value = f"t.{quote_identifier(dialect.shorten(column.name))}"
        if column.cuts is None:
            columns.append((dialect.text_value(value, target.missing), f"v{p}"))
        else:
            columns.append((dialect.number_value(value, target.missing_numbers), f"v{p}"))
    layers.add("valued", columns, f"{quote_identifier(target.options['input'])} AS t")
    codes = _add_codes(layers, scorer.inputs, quote_identifier(f"{stem}_levels"))
    if len(model.codings) > len(codes):
        digits = []
        for c, (p, digit_of) in enumerate(model.codings[len(codes) :], start=len(codes)):
            # A test for each run of codes with the same digit.
            runs = [(d, list(run)) for d, run in itertools.groupby(range(len(digit_of)), key=digit_of.__getitem__)]
            tests = " ".join(f"WHEN c{p} <= {run[-1]} THEN {digit}" for digit, run in runs[:-1])
            digits.append((f"CASE {tests} ELSE {runs[-1][0]} END" if tests else str(runs[-1][0]), f"c{c}"))
        layers.add("grouped", [*_unchanged("row_key", *codes), *digits])
    shares = [f"q{y}" for y in range(len(scorer.labels))]
    calibration = scorer.calibration
    # The logarithms of one softmax are computed directly, without exponentials.
    has_logs = calibration is not None and bool(calibration.powers) and len(model.stages) == 1
    _add_stages(layers, model, len(shares), quote_identifier(f"{stem}_weights"), has_logs)
    if calibration is not None and calibration.powers:
        _add_powers(layers, calibration.powers, shares, has_logs)
    elif calibration is not None:
        _add_lines(layers, calibration.lines, shares)
    layers.add("whole", [*_unchanged("row_key", *shares), (sum_of(shares), "t"), (dialect.greatest(shares), "best")])
    if target.rule is not None and target.rule.costs is not None:
        add_costs(layers, target.rule.costs, shares)
    return layers


def _add_codes(layers: Layers, inputs: Sequence[Input], levels: str) -> list[str]:
    """Add the codes of all inputs; return the names of their columns."""
    dialect, source = layers.dialect, layers.texts[-1][0]
    mapped: dict[int, int] = {}
    if dialect.has_maps:
        known = enumerate((p for p, column in enumerate(inputs) if column.codes), start=1)
        mapped = {p: i for i, p in known if len(inputs[p].codes or ()) <= MOST_MAPPED_LEVELS}
    if mapped:
        one_map = f"SELECT l.input, map(list(l.level), list(l.code)) AS codes FROM {levels} AS l GROUP BY l.input"
        source += f",\n  (SELECT list(codes ORDER BY input) AS known FROM ({one_map}) AS maps) AS maps"
    columns = []
    for p, column in enumerate(inputs):
        if column.cuts is not None:
            code = _choose_by_cuts(f"v{p}", column.cuts, list(map(str, range(len(column.cuts) + 1))))
        elif p in mapped:
            code = f"coalesce(known[{mapped[p]}][v{p}], {column.unobserved})"
        else:
            value = f'v{p} COLLATE "C"' if dialect.has_arrays else f"v{p}"
            lookup = f"SELECT l.code FROM {levels} AS l WHERE l.input = {p} AND l.level = {value}"
            code = f"coalesce(({lookup}), {column.unobserved})"
        columns.append((f"CASE WHEN v{p} IS NULL THEN {column.missing} ELSE {code} END", f"c{p}"))
    layers.add("coded", [*_unchanged("row_key"), *columns], source)
    return [name for _, name in columns]


def _choose_by_cuts(value: str, cuts: Sequence[float], choices: Sequence[str]) -> str:
    """Return SQL for choices[i], where i is the number of cuts below the value."""
    if len(cuts) <= MOST_FLAT_CUTS:
        tests = " ".join(f"WHEN {value} <= {number_constant(cut)} THEN {choices[i]}" for i, cut in enumerate(cuts))
        return f"CASE {tests} ELSE {choices[-1]} END" if cuts else choices[0]
    half = len(cuts) // 2
    below = _choose_by_cuts(value, cuts[:half], choices[: half + 1])
    above = _choose_by_cuts(value, cuts[half + 1 :], choices[half + 1 :])
    return f"CASE WHEN {value} <= {number_constant(cuts[half])} THEN {below} ELSE {above} END"


def _add_stages(layers: Layers, model: SqlModel, n_labels: int, weights: str, has_logs: bool) -> None:
    """Add the layers up to q<y>, or to l<y> if `has_logs`, which needs a single stage."""
    codes = [f"c{c}" for c in range(len(model.codings))]
    scores = [f"s{r}" for r in range(len(model.numbers))]
    shares = [f"q{y}" for y in range(n_labels)]
    for first in range(0, len(model.stages), STAGES):
        stages = model.stages[first : first + STAGES]
        following = model.stages[first + STAGES : first + STAGES + 1]
        carried = ["row_key", *(codes if following else []), *(shares if first else [])]
        _add_scores(layers, stages, carried, scores, weights)
        last_scores = scores if following and not following[0].anew else []
        if has_logs:
            own = [f"z0_{r}" for r in range(n_labels if n_labels > 2 else 1)]
            terms = own if n_labels > 2 else [_ZERO, *own]
            layers.add("highest", [*_unchanged("row_key", *own), (layers.dialect.greatest(terms), "m0")])
            total = sum_of([layers.dialect.exp(f"{term} - m0") for term in terms])
            layers.add("shares", [*_unchanged("row_key", *own), (f"m0 + ln({total})", "n0")])
            layers.add("logs", [*_unchanged("row_key"), *((f"{term} - n0", f"l{y}") for y, term in enumerate(terms))])
        else:
            _add_mix(layers, stages, carried, last_scores, n_labels)


def _add_scores(
    layers: Layers, stages: Sequence[SqlStage], carried: Sequence[str], scores: Sequence[str], weights: str
) -> None:
    """Add z<s>_<r> next to the carried columns; the first stage may continue the scores of the stages before."""
    dialect, source = layers.dialect, layers.texts[-1][0]
    all_anew = all(stage.anew for stage in stages)
    columns = []
    for s, stage in enumerate(stages):
        # Cells are numbered from 1.
        cells = [
            " + ".join(
                [str(term.base + 1), *(f"c{c} * {stride}" if stride > 1 else f"c{c}" for c, stride in term.axes)]
            )
            for term in stage.terms
        ]
        for r in range(len(scores)):
            if dialect.has_arrays:
                terms = [f"w{r}[{cell}]" for cell in cells]
            elif cells:
                # One cursor for all tables, because SQLite walks through all open ones whenever it opens another.
                terms = [f"(SELECT sum(w.s{r}) FROM {weights} AS w WHERE w.cell IN ({', '.join(cells)}))"]
            else:
                terms = []
            columns.append((sum_of([number_constant(stage.shift[r]), *terms]), f"{'z' if all_anew else 'd'}{s}_{r}"))
    if dialect.has_arrays:
        arrays = ", ".join(f"array_agg(w.s{r} ORDER BY w.cell) AS w{r}" for r in range(len(scores)))
        source += f",\n  (SELECT {arrays} FROM {weights} AS w) AS numbers"
    previous = [] if stages[0].anew else scores
    layers.add("added", [*_unchanged(*carried, *previous), *columns], source)
    if all_anew:
        return
    sums = []
    for s in range(len(stages)):
        # A stage adds to those since the last that begins anew, or to the scores before the first of these stages.
        start = max((i for i in range(s + 1) if stages[i].anew), default=-1)
        for r, name in enumerate(scores):
            terms = [f"d{i}_{r}" for i in range(max(start, 0), s + 1)]
            sums.append((sum_of([name, *terms] if start < 0 else terms), f"z{s}_{r}"))
    layers.add("summed", [*_unchanged(*carried), *sums])


def _add_mix(
    layers: Layers, stages: Sequence[SqlStage], carried: Sequence[str], last_scores: Sequence[str], n_labels: int
) -> None:
    """Add q<y> from the scores of the stages, next to the carried columns and the scores `last_scores`."""
    dialect, labels = layers.dialect, range(n_labels)
    rows = range(n_labels if n_labels > 2 else 1)
    scores = [f"z{s}_{r}" for s in range(len(stages)) for r in rows]
    terms_of = [[f"z{s}_{r}" for r in rows] if n_labels > 2 else [_ZERO, f"z{s}_0"] for s in range(len(stages))]
    highest = [(dialect.greatest(terms), f"m{s}") for s, terms in enumerate(terms_of)]
    last = [(f"z{len(stages) - 1}_{r}", name) for r, name in enumerate(last_scores)]
    layers.add("highest", [*_unchanged(*carried, *scores), *last, *highest])
    carried = [*carried, *last_scores]
    shares = []
    for s, terms in enumerate(terms_of):
        shares += [(dialect.exp(f"{term} - m{s}"), f"e{s}_{y}") for y, term in enumerate(terms)]
    layers.add("shares", [*_unchanged(*carried), *shares])
    totals = [(sum_of([f"e{s}_{y}" for y in labels]), f"n{s}") for s in range(len(stages))]
    layers.add("divided", [*_unchanged(*carried, *(name for _, name in shares)), *totals])
    mixed = []
    for y in labels:
        parts = [f"{number_constant(stage.weight)} * e{s}_{y} / n{s}" for s, stage in enumerate(stages)]
        mixed.append((sum_of([*(name for name in carried if name == f"q{y}"), *parts]), f"q{y}"))
    layers.add("mixed", [*_unchanged(*(name for name in carried if not name.startswith("q"))), *mixed])


def _add_powers(layers: Layers, powers: Sequence[Sequence[float]], shares: Sequence[str], has_logs: bool) -> None:
    """Add the calibrated q<y>, computed from l<y> if `has_logs`, or else from q<y>; `powers` are scales and shifts."""
    dialect = layers.dialect
    if not has_logs:
        layers.add("summed", [*_unchanged("row_key", *shares), (sum_of(shares), "t")])
        logs = [(f"ln({dialect.greatest([f'{q} / t', _LEAST_PROBABILITY])})", f"l{y}") for y, q in enumerate(shares)]
        layers.add("logs", [*_unchanged("row_key"), *logs])
    names = [f"g{y}" for y in range(len(shares))]
    scaled = []
    for y, (scale, shift) in enumerate(zip(*powers, strict=True)):
        scaled.append((f"{number_constant(scale)} * l{y} + {number_constant(shift)}", names[y]))
    layers.add("scaled", [*_unchanged("row_key"), *scaled])
    layers.add("topped", [*_unchanged("row_key", *names), (dialect.greatest(names), "u")])
    raised = [(dialect.exp(f"{name} - u"), q) for name, q in zip(names, shares, strict=True)]
    layers.add("powers", [*_unchanged("row_key"), *raised])


def _add_lines(layers: Layers, lines: Sequence[PortableLine], shares: Sequence[str]) -> None:
    """Add the q<y> calibrated by piecewise linear maps: one per label or, with two labels, only one for the second."""
    layers.add("summed", [*_unchanged("row_key", *shares), (sum_of(shares), "t")])
    divided = [(f"{q} / t", f"p{y}") for y, q in enumerate(shares)]
    layers.add("divided", [*_unchanged("row_key"), *divided])
    levels = []
    for (_, p), line in zip(divided[-len(lines) :], lines, strict=True):
        segments = zip(line.starts, line.levels, line.slopes, strict=True)
        choices = [
            f"{number_constant(level)} + {number_constant(slope)} * ({p} - {number_constant(start)})"
            for start, level, slope in segments
        ]
        levels.append(_choose_by_cuts(p, line.ends, choices))
    if len(levels) == len(shares):
        layers.add("lines", [*_unchanged("row_key"), *zip(levels, shares, strict=True)])
        return
    layers.add("line", [*_unchanged("row_key"), (levels[0], shares[1])])
    layers.add("lines", [*_unchanged("row_key", shares[1]), (f"1.0e0 - {shares[1]}", shares[0])])


def add_costs(layers: Layers, costs: Sequence[Sequence[float]], shares: Sequence[str]) -> None:
    """Add d<y>, the expected cost of deciding y, and `cheapest`, the lowest; `costs` has a row per true label."""
    carried = ["row_key", *shares, "t", "best"]
    names = [f"d{d}" for d in range(len(shares))]
    expected = []
    for d, name in enumerate(names):
        terms = [f"{number_constant(row[d])} * {q}" for row, q in zip(costs, shares, strict=True)]
        expected.append((sum_of(terms), name))
    layers.add("expected", [*_unchanged(*carried), *expected])
    lowest = f"-({layers.dialect.greatest([f'-{name}' for name in names])})"
    layers.add("lowest", [*_unchanged(*carried, *names), (lowest, "cheapest")])
