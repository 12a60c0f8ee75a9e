"""The reader of BIF (`bncli.files.exports.bif`): a text in, a network by the names in the file out."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from bncli.engine.kernels.arrays import Array
from bncli.files.exports.names import EscapedNetwork, EscapedNode, parse_property
from bncli.files.exports.tokens import NUMBER, Token, Tokens, describe

MAX_CELLS = 1 << 24
"""So many numbers a `default` row may stand for."""
_GRAMMAR = re.compile(
    r"""(?P<skip>\s+ | //[^\n]* | /\*.*?\*/)
      | "(?P<quoted>[^"\n]*)"
      | (?P<mark>[{}()\[\],;|])
      | (?P<word>(?:(?!//|/\*)[^\s{}()\[\],;|"])+)""",
    re.VERBOSE | re.DOTALL,
)
_PROPERTY = re.compile(r'(?:"[^"\n]*"|[^;"{}])*+;')
_NUMBERS = re.compile(rf"(?:{NUMBER.pattern}(?:\s*,\s*|\s+|(?=;)))*+;", re.ASCII)
"""Nothing but numbers up to the semicolon: most of a large file, so read at one stroke."""


@dataclass
class _Variable:
    name: str
    states: tuple[str, ...]
    properties: Mapping[str, str]
    at: int


@dataclass
class _Row:
    states: tuple[str, ...]
    numbers: list[float]
    at: int


@dataclass
class _Block:
    """What a probability block says: `table` and `default` are None where it does not have them."""

    parents: tuple[str, ...]
    at: int
    rows: list[_Row] = field(default_factory=list)
    table: list[float] | None = None
    default: list[float] | None = None


def parse_bif(text: str, where: str) -> EscapedNetwork:
    """Return the network in a BIF text; errors name `where`, line and column."""
    tokens = Tokens(text, where, _GRAMMAR)
    name, properties = _network_block(tokens)
    variables: dict[str, _Variable] = {}
    tables: dict[str, _Block] = {}
    while tokens.next.kind != "end":
        if tokens.expect("variable", "probability").text == "variable":
            _read_variable(tokens, variables)
        else:
            _read_probability(tokens, tables)
    for child, block in tables.items():
        if child not in variables:
            tokens.fail(
                f"'{child}' is no variable", at=block.at, hint="declare it: variable NAME { type discrete ... }"
            )
    nodes = tuple(_node(tokens, variable, variables, tables) for variable in variables.values())
    return EscapedNetwork(name, nodes, properties)


def _network_block(tokens: Tokens) -> tuple[str, dict[str, str]]:
    if not tokens.take_if("network"):
        return "unknown", {}
    name = "unknown" if tokens.at("{") else _name(tokens, "the name of the network").text
    tokens.expect("{")
    properties: dict[str, str] = {}
    while not tokens.take_if("}"):
        tokens.expect("property", "}")
        _read_property(tokens, properties)
    return name, properties


def _name(tokens: Tokens, what: str) -> Token:
    if tokens.next.kind not in ("word", "quoted"):
        tokens.fail(f"expected {what}, found {describe(tokens.next)}")
    return tokens.take()


def _read_property(tokens: Tokens, properties: dict[str, str]) -> None:
    text = tokens.take_raw(_PROPERTY) or tokens.fail("the property does not end with ';'")
    name, value = parse_property(text.removesuffix(";").strip().strip('"'))
    properties[name] = value


def _read_variable(tokens: Tokens, variables: dict[str, _Variable]) -> None:
    name = _name(tokens, "the name of a variable")
    if name.text in variables:
        tokens.fail(f"the variable '{name.text}' is declared twice", at=name.at, hint="declare every variable once")
    tokens.expect("{")
    states: tuple[str, ...] | None = None
    properties: dict[str, str] = {}
    while not tokens.take_if("}"):
        if tokens.expect("type", "property", "}").text == "property":
            _read_property(tokens, properties)
        elif states is None:
            states = _states(tokens, name.text)
        else:
            tokens.fail(f"the variable '{name.text}' has two types")
    if states is None:
        tokens.fail(f"the variable '{name.text}' has no type", at=name.at, hint="give it: type discrete [ N ] { ... };")
    variables[name.text] = _Variable(name.text, states, properties, name.at)


def _states(tokens: Tokens, name: str) -> tuple[str, ...]:
    if not tokens.take_if("discrete"):
        tokens.fail(f"the variable '{name}' is not discrete", hint="only discrete networks are read")
    tokens.expect("[")
    size = _name(tokens, "the number of states")
    tokens.expect("]")
    tokens.expect("{")
    states: dict[str, None] = {}
    for token in _listed(tokens, "}", "a state"):
        if token.text in states:
            tokens.fail(f"the variable '{name}' has the state '{token.text}' twice", at=token.at)
        states[token.text] = None
    tokens.expect(";")
    if size.text != str(len(states)):
        what = f"the variable '{name}' should have {size.text[:20]} states, but {len(states)} are named"
        tokens.fail(what, at=size.at)
    return tuple(states)


def _listed(tokens: Tokens, closing: str, what: str) -> Iterator[Token]:
    """Yield names up to the closing mark, which is taken, with or without commas between them."""
    while not tokens.take_if(closing):
        yield _name(tokens, f"{what} or '{closing}'")
        tokens.take_if(",")


def _read_probability(tokens: Tokens, tables: dict[str, _Block]) -> None:
    tokens.expect("(")
    child = _name(tokens, "the name of a variable")
    if child.text in tables:
        tokens.fail(f"'{child.text}' has two probability blocks", at=child.at, hint="give every variable one")
    if not tokens.take_if("|"):
        tokens.take_if(",")
    parents = tuple(token.text for token in _listed(tokens, ")", "a parent"))
    block = tables[child.text] = _Block(parents, child.at)
    tokens.expect("{")
    while not tokens.take_if("}"):
        _read_entry(tokens, block)


def _read_entry(tokens: Tokens, block: _Block) -> None:
    """Read the row, table, default row or property at the cursor."""
    start = tokens.next.at
    keyword = tokens.expect("(", "table", "default", "property", "}").text
    if keyword == "(":
        states = tuple(token.text for token in _listed(tokens, ")", "a state"))
        block.rows.append(_Row(states, _numbers(tokens), start))
    elif keyword == "property":
        _read_property(tokens, {})
    elif keyword == "table" and block.table is None:
        block.table = _numbers(tokens)
    elif keyword == "default" and block.default is None:
        block.default = _numbers(tokens)
    else:
        tokens.fail(f"there are two entries '{keyword}'", at=start)


def _numbers(tokens: Tokens) -> list[float]:
    """Return numbers up to the semicolon, which is taken."""
    plain = tokens.take_raw(_NUMBERS)
    if plain is not None:
        return [float(word) for word in plain.removesuffix(";").replace(",", " ").split()]
    numbers = []
    for token in _listed(tokens, ";", "a number"):
        if not NUMBER.fullmatch(token.text):
            tokens.fail(f"expected a number, found {describe(token)}", at=token.at)
        numbers.append(float(token.text))
    return numbers


def _node(
    tokens: Tokens, variable: _Variable, variables: Mapping[str, _Variable], tables: Mapping[str, _Block]
) -> EscapedNode:
    block = tables.get(variable.name)
    if block is None:
        what = f"the variable '{variable.name}' has no probability block"
        tokens.fail(what, at=variable.at, hint=f"add it: probability ( {variable.name} ) {{ table ...; }}")
    for parent in block.parents:
        if parent not in variables:
            tokens.fail(f"the parent '{parent}' of '{variable.name}' is no variable", at=block.at)
    states = [variables[parent].states for parent in block.parents]
    if block.table is not None:
        if block.rows or block.default is not None:
            tokens.fail(f"'{variable.name}' has a table and rows besides", at=block.at, hint="leave one of them out")
        table = _from_table(tokens, variable, block, [len(listed) for listed in states])
    else:
        table = _from_rows(tokens, variable, block, states)
    return EscapedNode(variable.name, variable.states, block.parents, table, variable.properties)


def _from_table(tokens: Tokens, variable: _Variable, block: _Block, sizes: list[int]) -> Array:
    assert block.table is not None
    shape = (len(variable.states), *sizes)
    if len(block.table) != math.prod(shape):
        what = f"the table of '{variable.name}' has {len(block.table)} numbers, not {math.prod(shape)}"
        tokens.fail(what, at=block.at, hint="give one per state and combination of the parents' states")
    return np.moveaxis(np.array(block.table).reshape(shape), 0, -1)


def _from_rows(tokens: Tokens, variable: _Variable, block: _Block, states: list[tuple[str, ...]]) -> Array:
    size, sizes = len(variable.states), [len(listed) for listed in states]
    n_rows = math.prod(sizes)
    rows: dict[int, list[float]] = {}
    digits = [{state: digit for digit, state in enumerate(listed)} for listed in states]
    for row in block.rows:
        place = _place(tokens, row, block.parents, digits)
        if place in rows:
            tokens.fail(f"the row ({', '.join(row.states)}) of '{variable.name}' is given twice", at=row.at)
        if len(row.numbers) != size:
            tokens.fail(f"the row has {len(row.numbers)} numbers for {size} states of '{variable.name}'", at=row.at)
        rows[place] = row.numbers
    if len(rows) < n_rows:
        if block.default is None:
            tokens.fail(f"'{variable.name}' has {len(rows)} of {n_rows} rows", at=block.at, hint="give the others")
        if len(block.default) != size or n_rows * size > MAX_CELLS:
            what = f"the default row of '{variable.name}' does not fit, or stands for more than {MAX_CELLS:,} numbers"
            tokens.fail(what, at=block.at)
    table = np.empty((n_rows, size))
    table[:] = block.default if len(rows) < n_rows and block.default is not None else 0.0
    if rows:
        table[list(rows)] = list(rows.values())
    return table.reshape(*sizes, size)


def _place(tokens: Tokens, row: _Row, parents: tuple[str, ...], digits: list[dict[str, int]]) -> int:
    """Return the mixed-radix number of a row, the state of the last parent its least significant digit."""
    if len(row.states) != len(parents):
        tokens.fail(f"the row names {len(row.states)} states for {len(parents)} parents", at=row.at)
    place = 0
    for state, parent, digit in zip(row.states, parents, digits, strict=True):
        if state not in digit:
            tokens.fail(f"'{state}' is no state of '{parent}'", at=row.at)
        place = place * len(digit) + digit[state]
    return place
