"""A table to learn from: all rows read, the type of every column found over all of them.

One pass with types guessed from the first rows, which hold for nearly every file; then the columns that turned out to
be text are read again where they had been read as numbers. Rows of weight 0 do not exist.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from bncli.engine.data.columns import Columns
from bncli.engine.data.forms import Form, NumberForm
from bncli.engine.data.schema import Cuts
from bncli.errors import BncliError
from bncli.files.reading import sampling
from bncli.files.reading.ahead import in_order
from bncli.files.reading.assembly import assemble
from bncli.files.reading.bad_rows import BadRows
from bncli.files.reading.coded import are_codes, read_coded
from bncli.files.reading.columnar import Batch
from bncli.files.reading.forms import want_in_form
from bncli.files.reading.growing import ColumnBlock, Growing, digest
from bncli.files.reading.leading_zeros import columns_with_leading_zeros
from bncli.files.reading.numerals import kinds_of
from bncli.files.reading.parse import parse_block
from bncli.files.reading.part_types import PartTypes
from bncli.files.reading.reader import RawBlock, Table, parse
from bncli.files.reading.roles import Roles, assign_roles, tell_left_out
from bncli.files.reading.row_blocks import BadRow, Kind, RowBlock, Want
from bncli.files.reading.sampling import RowSampler
from bncli.files.reading.source import Source, Tokens
from bncli.files.reading.text_blocks import BLOCK_SIZE, TextBlock
from bncli.files.reading.vocabulary import EMPTY
from bncli.watch import Run, Watch, silent


def read_columns(
    source: Source,
    *,
    threads: int = 1,
    watch: Watch = silent,
    given: Cuts | None = None,
    block_size: int = BLOCK_SIZE,
    memory: int | None = None,
) -> Columns:
    """The whole table, its types inferred over all rows; `given` cuts fix the attributes and their types instead.

    Notes tell what was left out, what looks like codes, and how many malformed rows were skipped. memory: of `Table`.
    A `.codes` file is such a table too, whose columns are coded.
    """
    run = Run(threads, memory, watch=watch)
    return first_round(source, given=given, run=run, rounds=Rounds(0, None, block_size))[0]


@dataclass(frozen=True)
class Rounds:
    """How the first of two rounds keeps rows: a sample by `seed` beyond `budget` bytes (None: all, in one round)."""

    seed: int
    budget: int | None = -1
    block_size: int = BLOCK_SIZE


def first_round(source: Source, *, given: Cuts | None, run: Run, rounds: Rounds) -> tuple[Columns, int]:
    """The rows that are kept, as `read_columns` has them, and the number of all."""
    if are_codes(source.paths):
        found = read_coded(source)
        return found, found.n_rows
    tokens = Tokens.of(source.missing_tokens)
    watch = run.watch
    with Table(source, keep=True, block_size=rounds.block_size, memory=run.memory) as table:
        roles = assign_roles(source, table.names, table.name, given)
        tell_left_out(roles, watch)
        columns = start_columns(table, roles, source)
        budget = sampling.BUDGET if rounds.budget == -1 else rounds.budget
        sampler = RowSampler(rounds.seed, budget, roles, tokens)
        with BadRows(source.on_bad_row, watch) as bad:
            parts = PartTypes(columns, roles.categorical | roles.numeric, tokens) if table.n_files > 1 else None
            _read_all(_digests(table, columns, source, tokens, run), columns, sampler, bad, parts)
        _read_again(table, columns, sampler, tokens, run.threads, any_bad=bad.count > 0)
        n = sampler.n_kept
        found = assemble(columns, n, roles, table, source, given=given, watch=watch)
        return found, found.n_rows if n == sampler.n_rows else sampler.n_rows


def start_columns(table: Table, roles: Roles, source: Source, *, guess: bool = True) -> dict[str, Growing]:
    """The columns in use, each with the type that is said or guessed; of a text file not guessed, it is text so far."""
    tokens = Tokens.of(source.missing_tokens)
    said = roles.categorical | roles.numeric
    form = None if source.decimal is None else NumberForm(source.decimal)
    hint = table.hint()
    open_names = [name for name in roles.attributes if name not in said]
    guessed = {name: Want(name, Kind.TEXT) for name in open_names}
    if guess or not isinstance(hint, TextBlock):
        guessed = _guess(hint, open_names, source, tokens)
    columns = {}
    for name in roles.attributes:
        want = _said(name, roles, form) if name in said else guessed[name]
        # The text of a columnar file is meant as text, whatever it looks like; and 1.5 may be no number but 1,5.
        open_text = isinstance(hint, TextBlock) and source.decimal != ","
        free = name not in said and (open_text or want != Want(name, Kind.TEXT))
        columns[name] = Growing(want, free=free, tokens=tokens)
    if roles.class_name not in columns:  # a table of one column may be described without a class
        columns[roles.class_name] = Growing(Want(roles.class_name, Kind.TEXT), free=False, tokens=tokens)
    if roles.weights is not None:
        want = replace(want_in_form(roles.weights, form), weight=True)
        columns[roles.weights] = Growing(want, free=False, tokens=tokens)
    return columns


def _said(name: str, roles: Roles, form: Form | None) -> Want:
    """A column whose type is said; `form` is what the user says of numbers."""
    if name in roles.in_form:
        return want_in_form(name, roles.in_form[name][0].form)
    return want_in_form(name, form) if name in roles.numeric else Want(name, Kind.TEXT)


def _guess(
    hint: dict[str, Want] | TextBlock | None, names: Sequence[str], source: Source, tokens: Tokens
) -> dict[str, Want]:
    """A first guess, from what a file says itself or from the first rows of a text file, which later ones may overturn.

    INTEGER or NUMBER where there are more than two numbers and nothing else, TEXT elsewhere.
    """
    wants = {name: Want(name, Kind.TEXT) for name in names}
    if isinstance(hint, TextBlock):
        if source.decimal != ",":
            texts = parse_block(hint, list(wants.values()), tokens).values
            kinds = kinds_of(texts, tokens.number)
            wants = {name: Want(name, kind) for name, kind in zip(names, kinds, strict=True)}
    elif hint is not None:
        wants |= {name: hint[name] for name in names if hint[name].form is None or source.dates != "off"}
    return wants


@dataclass(frozen=True)
class _Digested:
    """A row block of a file; `wants` are how its columns were asked for, `schema` what a columnar file declares."""

    path: str
    columns: list[ColumnBlock]
    n_rows: int
    bad: tuple[BadRow, ...]
    locate: Callable[[int], str]
    leading_zeros: frozenset[str]
    wants: tuple[Want, ...]
    schema: pa.Schema | None


def _read_all(
    blocks: Iterable[_Digested],
    columns: dict[str, Growing],
    sampler: RowSampler,
    bad: BadRows,
    parts: PartTypes | None,
) -> None:
    """Fills the columns, of whose rows the sampler may keep a part; `parts` hears of them where files are several."""
    growing = list(columns.values())
    for digested in blocks:
        if parts is not None and digested.schema is not None:
            parts.declared(digested.path, digested.schema)
        bad.take(digested.bad)
        for column, block in zip(growing, digested.columns, strict=True):
            column.add(block, digested.locate)
            column.leading_zeros |= column.want.name in digested.leading_zeros
        if parts is not None:
            parts.take(digested.path, digested.columns)
        sampler.took(growing, digested.n_rows)
    if parts is not None:
        parts.finish()
    sampler.finish(growing)


def _digests(
    table: Table, columns: dict[str, Growing], source: Source, tokens: Tokens, run: Run
) -> Iterator[_Digested]:
    """Every row block, as it is kept; what is asked of the next rows knows what earlier ones have taught."""
    growing = list(columns.values())
    if run.each_file is None:
        tasks = (
            partial(_digest, raw, [(c.want, c.shared) for c in growing], _watched(growing), tokens)
            for raw in table.raw_blocks(list(columns), run.watch)
        )
        yield from in_order(tasks, run.threads)
        return
    for path, blocks, error in run.each_file(digest_file, lambda: ([c.want for c in growing], _watched(growing))):
        for number, block in enumerate(blocks):
            bad = tuple(replace(row, path=path) for row in block.bad)
            locate = partial(_located, replace(source, paths=(path,)), number, block.wants)
            yield replace(block, path=path, bad=bad, locate=locate)
        if error is not None:
            raise error


def digest_file(
    source: Source, begin: int, run: Run, wants: Sequence[Want], watched: Sequence[str]
) -> Iterator[_Digested]:
    """The row blocks of the last files of a table, which may travel."""
    tokens = Tokens.of(source.missing_tokens)
    with Table(source, keep=False, memory=run.memory) as table:
        for raw in table.raw_blocks([want.name for want in wants], run.watch, begin):
            found = _digest(raw, [(want, EMPTY) for want in wants], watched, tokens)
            yield replace(found, locate=str)
            if found.bad and source.on_bad_row == "fail":
                return


def _located(source: Source, number: int, wants: Sequence[Want], row: int) -> str:
    """Where a row of the block of that number stands: the file is read again up to it."""
    with Table(source, keep=False) as table:
        raw = next(itertools.islice(table.raw_blocks([want.name for want in wants], silent), number, None))
        return parse(raw, wants, Tokens.of(source.missing_tokens)).locate(row)


def _watched(growing: Sequence[Growing]) -> list[str]:
    """The columns whose leading zeros are looked for."""
    return [column.want.name for column in growing if column.may_be_codes]


def _digest(raw: RawBlock, asked: Sequence[tuple[Want, object]], watched: Sequence[str], tokens: Tokens) -> _Digested:
    block = parse(raw, [want for want, _ in asked], tokens)
    columns = [digest(values, shared) for values, (_, shared) in zip(block.values, asked, strict=True)]
    zeros = (
        columns_with_leading_zeros(raw, block.n_rows, watched, tokens) if isinstance(raw, TextBlock) else frozenset()
    )
    wants, schema = tuple(want for want, _ in asked), raw.data.schema if isinstance(raw, Batch) else None
    return _Digested(raw.path, columns, block.n_rows, block.bad, block.locate, zeros, wants, schema)


def _read_again(
    table: Table, columns: dict[str, Growing], sampler: RowSampler, tokens: Tokens, threads: int, *, any_bad: bool
) -> None:
    """Reads the columns that turned out to be text once more where they had been read as numbers.

    any_bad: there were malformed rows, which must be the same ones again.
    """
    asked = [column.want for column in columns.values()]
    lost = {name: set(column.settle()) for name, column in columns.items()}
    again = [name for name, blocks in lost.items() if blocks]
    if not again:
        return
    # The columns that say which rows are malformed come along: strict ones, and where a number may be infinite, all.
    wants = [Want(name, Kind.TEXT) for name in again]
    wants += [want for want in asked if want.strict or (any_bad and want.kind is Kind.NUMBER)]
    needed = set().union(*lost.values())
    raw_blocks = enumerate(table.raw_blocks([want.name for want in wants], silent))
    tasks = (partial(_numbered, i, raw, wants, tokens) for i, raw in raw_blocks if i in needed)
    for i, block in in_order(tasks, threads):
        if block.n_rows != sampler.sizes[i]:
            raise BncliError("the file changed while it was read", where=table.name, hint="run again")
        for name, values in zip(again, block.values, strict=False):
            if i in lost[name]:
                rows = sampler.rows[i]
                columns[name].replace(i, values if rows is None else values.take(pa.array(rows)))


def _numbered(i: int, raw: RawBlock, wants: Sequence[Want], tokens: Tokens) -> tuple[int, RowBlock]:
    return i, parse(raw, wants, tokens)
