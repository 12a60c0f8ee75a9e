"""BIF, the Interchange Format for Bayesian networks (version 0.15; Cozman 1998).

    network asia { }
    variable lung { type discrete [ 2 ] { yes, no }; }
    probability ( lung | smoke ) { (yes) 0.1, 0.9; (no) 0.01, 0.99; }

A table can be given in three ways, and all are read: one row per combination of the parents' states; a `default` row
for the combinations without a row of their own; or `table` with all numbers, where the child's state changes slowest
and the last parent's state fastest. Commas can be omitted, names can stand in double quotes, and comments are written
as in C and C++. Nodes without parents are written as `table`, and others as rows. Numbers are written with all their
digits.

Files are written so that other programs (pgmpy, pyAgrum, bnlearn) do not misread them. Names are ASCII identifiers,
and states may also be integers. No name is a keyword, and no two nodes have names that differ only in case. Properties
hold the original names.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from bncli.files.exports import BLANK, NAME, NetworkFormat, Signature
from bncli.files.exports.network_text import (
    NUMBER,
    EscapedNetwork,
    EscapedNode,
    Token,
    Tokens,
    escape_network,
    parse_property,
    quoted_token,
    restore_network,
    to_identifier,
)

if TYPE_CHECKING:
    from bncli.engine.kernels.arrays import Array
    from bncli.engine.networks.network import NamedNetwork

MAX_CELLS = 1 << 24
"""The maximum number of entries in a table with a `default` row."""
_PROPERTY = re.compile(r'(?:"[^"\n]*"|[^;"{}])*+;')
_NUMBERS = re.compile(rf"(?:{NUMBER.pattern}(?:\s*,\s*|\s+|(?=;)))*+;", re.ASCII)
_KEYWORDS = ("network", "variable", "probability", "property", "type", "discrete", "table", "default")


def bif_text(network: NamedNetwork) -> str:
    """Format a network as BIF; the result is ASCII."""
    name, nodes, properties = escape_network(
        network,
        # pgmpy finds the blocks of a file by these words, even as parts of others.
        legal_network=lambda text: re.sub("(variabl|probabilit)(e|y)", r"\1_", _legal_name(text)),
        legal_node=_legal_name,
        legal_state=_legal_state,
        fold=str.lower,
    )
    states = {node.name: node.states for node in nodes}
    lines = [f"network {name} {{", *_property_lines(properties), "}"]
    for node in nodes:
        kind = f"  type discrete [ {len(node.states)} ] {{ {', '.join(node.states)} }};"
        lines += [f"variable {node.name} {{", kind, *_property_lines(node.properties), "}"]
    for node in nodes:
        heading = f"{node.name} | {', '.join(node.parents)}" if node.parents else node.name
        lines.append(f"probability ( {heading} ) {{")
        combinations = itertools.product(*(states[parent] for parent in node.parents))
        rows = node.probabilities.reshape(-1, len(node.states)).tolist()
        for combination, row in zip(combinations, rows, strict=True):
            parents = f"({', '.join(combination)})" if combination else "table"
            lines.append(f"  {parents} {', '.join(map(repr, row))};")
        lines.append("}")
    return "\n".join(lines) + "\n"


def _legal_name(text: str) -> str:
    word = to_identifier(text)
    if word.lower() in _KEYWORDS:
        return f"{word}_"
    # pgmpy reads `table1` in a heading as a table with the number 1.
    return re.sub("(table|default)(?=[0-9eE])", r"\1_", word)


def _legal_state(text: str) -> str:
    if re.fullmatch("-?[0-9]+", text):
        return text
    word = to_identifier(text)
    return f"{word}_" if word.lower() in _KEYWORDS else word


def _property_lines(properties: Mapping[str, str]) -> list[str]:
    return [f"  property {name} = {value} ;" for name, value in properties.items()]


class _Variable(NamedTuple):
    name: str
    states: tuple[str, ...]
    properties: Mapping[str, str]
    at: int


class _Row(NamedTuple):
    states: tuple[str, ...]
    numbers: list[float]
    at: int


class _Block:
    """A probability block; `table` and `default` are None if it has no such entry."""

    def __init__(self, parents: tuple[str, ...], at: int) -> None:
        self.parents = parents
        self.at = at
        self.rows: list[_Row] = []
        self.table: list[float] | None = None
        self.default: list[float] | None = None


def read_bif(data: bytes, where: str) -> NamedNetwork:
    """Parse a BIF file; if it is not valid, raise BncliError with `where` and, if known, line and column."""
    from bncli.files.json_documents import decode_utf8

    grammar = re.compile(
        r"""(?P<skip>\s+ | //[^\n]* | /\*.*?\*/)
          | "(?P<quoted>[^"\n]*)"
          | (?P<mark>[{}()\[\],;|])
          | (?P<word>(?:(?!//|/\*)[^\s{}()\[\],;|"])+)""",
        re.VERBOSE | re.DOTALL,
    )
    tokens = Tokens(decode_utf8(data, where), where, grammar)
    name = "unknown"
    properties: dict[str, str] = {}
    if tokens.take_if("network"):
        if not tokens.at("{"):
            name = _take_name(tokens, "the name of the network").text
        tokens.expect("{")
        while not tokens.take_if("}"):
            tokens.expect("property", "}")
            _read_property(tokens, properties)
    variables: dict[str, _Variable] = {}
    blocks: dict[str, _Block] = {}
    while tokens.next.kind != "end":
        if tokens.expect("variable", "probability").text == "variable":
            _read_variable(tokens, variables)
        else:
            _read_probability(tokens, blocks)
    for child, block in blocks.items():
        if child not in variables:
            hint = "declare the variable: variable NAME { type discrete ... }"
            tokens.fail(f"'{child}' is not a variable", at=block.at, hint=hint)
    nodes = tuple(_read_node(tokens, variable, variables, blocks) for variable in variables.values())
    return restore_network(EscapedNetwork(name, nodes, properties), where)


def _take_name(tokens: Tokens, what: str) -> Token:
    if tokens.next.kind not in ("word", "quoted"):
        tokens.fail(f"expected {what}, found {quoted_token(tokens.next)}")
    return tokens.take()


def _take_names(tokens: Tokens, closing: str, what: str) -> Iterator[Token]:
    """Take and yield names, with or without commas between them, and take the closing mark."""
    while not tokens.take_if(closing):
        yield _take_name(tokens, f"{what} or '{closing}'")
        tokens.take_if(",")


def _read_property(tokens: Tokens, properties: dict[str, str]) -> None:
    """Read a property up to the first semicolon outside quotes, and add it to `properties`."""
    text = tokens.take_raw(_PROPERTY)
    if text is None:
        tokens.fail("the property does not end with ';'")
    name, value = parse_property(text.removesuffix(";").strip().strip('"'))
    properties[name] = value


def _read_variable(tokens: Tokens, variables: dict[str, _Variable]) -> None:
    name = _take_name(tokens, "the name of a variable")
    if name.text in variables:
        tokens.fail(f"the variable '{name.text}' is declared twice", at=name.at, hint="declare every variable once")
    tokens.expect("{")
    states: dict[str, None] | None = None
    properties: dict[str, str] = {}
    while not tokens.take_if("}"):
        if tokens.expect("type", "property", "}").text == "property":
            _read_property(tokens, properties)
            continue
        if states is not None:
            tokens.fail(f"the variable '{name.text}' has two types")
        if not tokens.take_if("discrete"):
            tokens.fail(f"the variable '{name.text}' is not discrete", hint="bncli reads only discrete networks")
        tokens.expect("[")
        size = _take_name(tokens, "the number of states")
        tokens.expect("]")
        tokens.expect("{")
        states = {}
        for token in _take_names(tokens, "}", "a state"):
            if token.text in states:
                tokens.fail(f"the variable '{name.text}' has the state '{token.text}' twice", at=token.at)
            states[token.text] = None
        tokens.expect(";")
        if size.text != str(len(states)):
            what = f"the variable '{name.text}' should have {size.text[:20]} states, but {len(states)} are listed"
            tokens.fail(what, at=size.at)
    if states is None:
        tokens.fail(
            f"the variable '{name.text}' has no type", at=name.at, hint="give it a type: type discrete [ N ] { ... };"
        )
    variables[name.text] = _Variable(name.text, tuple(states), properties, name.at)


def _read_probability(tokens: Tokens, blocks: dict[str, _Block]) -> None:
    tokens.expect("(")
    child = _take_name(tokens, "the name of a variable")
    if child.text in blocks:
        tokens.fail(
            f"'{child.text}' has two probability blocks", at=child.at, hint="give every variable one probability block"
        )
    if not tokens.take_if("|"):
        tokens.take_if(",")
    parents = tuple(token.text for token in _take_names(tokens, ")", "a parent"))
    block = blocks[child.text] = _Block(parents, child.at)
    tokens.expect("{")
    while not tokens.take_if("}"):
        start = tokens.next.at
        entry = tokens.expect("(", "table", "default", "property", "}").text
        if entry == "(":
            states = tuple(token.text for token in _take_names(tokens, ")", "a state"))
            block.rows.append(_Row(states, _read_numbers(tokens), start))
        elif entry == "property":
            _read_property(tokens, {})
        elif entry == "table" and block.table is None:
            block.table = _read_numbers(tokens)
        elif entry == "default" and block.default is None:
            block.default = _read_numbers(tokens)
        else:
            tokens.fail(f"there are two entries '{entry}'", at=start)


def _read_numbers(tokens: Tokens) -> list[float]:
    """Read numbers and the semicolon after them; return the numbers."""
    # Plain numbers up to the semicolon are most of a large file, so they are read in one step.
    plain = tokens.take_raw(_NUMBERS)
    if plain is not None:
        return [float(word) for word in plain.removesuffix(";").replace(",", " ").split()]
    numbers = []
    for token in _take_names(tokens, ";", "a number"):
        if not NUMBER.fullmatch(token.text):
            tokens.fail(f"expected a number, found {quoted_token(token)}", at=token.at)
        numbers.append(float(token.text))
    return numbers


def _read_node(
    tokens: Tokens, variable: _Variable, variables: Mapping[str, _Variable], blocks: Mapping[str, _Block]
) -> EscapedNode:
    """Build the node of a variable with the table of its probability block; raise BncliError if it is not valid."""
    import numpy as np

    block = blocks.get(variable.name)
    if block is None:
        what = f"the variable '{variable.name}' has no probability block"
        tokens.fail(what, at=variable.at, hint=f"add it: probability ( {variable.name} ) {{ table ...; }}")
    for parent in block.parents:
        if parent not in variables:
            tokens.fail(f"the parent '{parent}' of '{variable.name}' is not a variable", at=block.at)
    states = [variables[parent].states for parent in block.parents]
    if block.table is None:
        table = _table_of_rows(tokens, variable, block, states)
    else:
        if block.rows or block.default is not None:
            tokens.fail(f"'{variable.name}' has both a table and rows", at=block.at, hint="leave one of them out")
        shape = (len(variable.states), *map(len, states))
        if len(block.table) != math.prod(shape):
            what = f"the table of '{variable.name}' has {len(block.table)} numbers, not {math.prod(shape)}"
            tokens.fail(what, at=block.at, hint="give one number per state and combination of the parents' states")
        table = np.moveaxis(np.array(block.table).reshape(shape), 0, -1)
    return EscapedNode(variable.name, variable.states, block.parents, table, variable.properties)


def _table_of_rows(tokens: Tokens, variable: _Variable, block: _Block, states: list[tuple[str, ...]]) -> Array:
    """Build a table (states of each parent, own states) from the rows of a block and its default row, if any."""
    import numpy as np

    size, sizes = len(variable.states), [len(listed) for listed in states]
    n_rows = math.prod(sizes)
    digits = [{state: digit for digit, state in enumerate(listed)} for listed in states]
    rows: dict[int, list[float]] = {}
    for row in block.rows:
        if len(row.states) != len(block.parents):
            what = f"the row lists {len(row.states)} states for {len(block.parents)} parents"
            tokens.fail(what, at=row.at)
        # The mixed-radix number of the row; the state of the last parent is its least significant digit.
        place = 0
        for state, parent, digit in zip(row.states, block.parents, digits, strict=True):
            if state not in digit:
                tokens.fail(f"'{state}' is not a state of '{parent}'", at=row.at)
            place = place * len(digit) + digit[state]
        if place in rows:
            tokens.fail(f"the row ({', '.join(row.states)}) of '{variable.name}' is given twice", at=row.at)
        if len(row.numbers) != size:
            tokens.fail(
                f"expected {size} numbers, one per state of '{variable.name}', found {len(row.numbers)}", at=row.at
            )
        rows[place] = row.numbers
    if len(rows) < n_rows:
        if block.default is None:
            tokens.fail(
                f"'{variable.name}' has only {len(rows)} of {n_rows} rows", at=block.at, hint="add the other rows"
            )
        if len(block.default) != size or n_rows * size > MAX_CELLS:
            what = (
                f"the default row of '{variable.name}' has the wrong length, or stands for more than "
                f"{MAX_CELLS:,} numbers"
            )
            tokens.fail(what, at=block.at)
    table = np.empty((n_rows, size))
    table[:] = block.default if len(rows) < n_rows and block.default is not None else 0.0
    if rows:
        table[list(rows)] = list(rows.values())
    return table.reshape(*sizes, size)


FORMAT = NetworkFormat(
    "bif",
    "the network with its probabilities, in the Bayesian Interchange Format",
    (".bif",),
    bif_text,
    read_bif,
    Signature(BLANK + rb"(?:network(?:\s+" + NAME + rb")?|variable\s+" + NAME + rb")\s*\{", "a BIF network"),
)
