"""The text of network files: legal names for writers, and tokens for parsers.

A format for networks restricts names, and has no field for the class or for how the structure was learned. What the
format cannot hold goes into properties, which other programs ignore (`NAME = VALUE`, with percent-encoded values):

    of the network    bncli_name, bncli_method, bncli_options (a JSON object)
    of a node         bncli_role = class, bncli_name, bncli_states (separated by blanks)

A property is written only if there is something to keep. `restore_network` undoes `escape_network`.

The grammar of a parser is a regular expression whose named groups are the kinds of tokens; the group `skip` is skipped.
The text is scanned one token at a time, so that a parser can also take a stretch of raw text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from bncli.errors import BncliError

if TYPE_CHECKING:
    from bncli.engine.kernels.arrays import Array
    from bncli.engine.networks.network import NamedNetwork

LegalName = Callable[[str], str]
"""A function that turns any string into one that the format can hold, and leaves such strings unchanged."""
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
"""A decimal number as network files write it, without NaN and infinity."""


class EscapedNode(NamedTuple):
    """A node, with names as in the file; the axes of `probabilities` are the parents' states, then its own states."""

    name: str
    states: tuple[str, ...]
    parents: tuple[str, ...]
    probabilities: Array
    properties: Mapping[str, str]


class EscapedNetwork(NamedTuple):
    """A network, with names as in the file."""

    name: str
    nodes: tuple[EscapedNode, ...]
    properties: Mapping[str, str]


def escape_network(
    network: NamedNetwork,
    *,
    legal_network: LegalName,
    legal_node: LegalName,
    legal_state: LegalName,
    fold: Callable[[str], str] = str,
) -> EscapedNetwork:
    """Return the network with legal names, and with the properties that `restore_network` needs.

    The legal names of any two nodes differ even after `fold`, because the format cannot tell them apart otherwise.
    """
    names = [node.name for node in network.nodes]
    legal = dict(zip(names, legal_names(names, legal_node, fold), strict=True))
    nodes = []
    for node in network.nodes:
        states = legal_names(node.states, legal_state)
        properties = {"bncli_role": "class"} if node.name == network.class_name else {}
        properties |= _name_property(legal[node.name], node.name)
        if states != node.states:
            properties["bncli_states"] = " ".join(percent_encode(state) for state in node.states)
        parents = tuple(legal[parent] for parent in node.parents)
        nodes.append(EscapedNode(legal[node.name], states, parents, node.probabilities, properties))
    name = legal_network(network.name)
    properties = _name_property(name, network.name) | origin_properties(network.method, network.options)
    return EscapedNetwork(name, tuple(nodes), properties)


def _name_property(legal: str, name: str) -> dict[str, str]:
    return {} if legal == name else {"bncli_name": percent_encode(name)}


def origin_properties(method: str, options: Mapping[str, Any]) -> dict[str, str]:
    """Return a structure's method (except `file`) and its options (if any), percent-encoded, as properties."""
    properties = {} if method == "file" else {"bncli_method": percent_encode(method)}
    if options:
        import json  # imported here, because help and the recognition of files do not need it

        text = json.dumps(dict(sorted(options.items())), ensure_ascii=False, separators=(",", ":"))
        properties["bncli_options"] = percent_encode(text)
    return properties


def restore_network(escaped: EscapedNetwork, where: str) -> NamedNetwork:
    """Return the network with its original names; raise BncliError with `where` if it is not a valid network."""
    from bncli.engine.networks.network import NamedNetwork, Node

    try:
        if not escaped.nodes:
            raise BncliError("the network has no variables")
        names = {node.name: original_name(node.properties, node.name) for node in escaped.nodes}
        method, options = read_origin(escaped.properties, where)
        nodes = []
        for node in escaped.nodes:
            states = node.states
            if "bncli_states" in node.properties:
                states = tuple(percent_decode(word) for word in node.properties["bncli_states"].split())
                if len(states) != len(node.states):
                    what = f"'{node.name}' has {len(node.states)} states, but its property bncli_states lists"
                    raise BncliError(
                        f"{what} {len(states)}", hint="leave the property out, or export the network again"
                    )
            parents = tuple(names.get(parent, parent) for parent in node.parents)
            nodes.append(Node(names[node.name], states, parents, node.probabilities))
        name = original_name(escaped.properties, escaped.name)
        class_name = find_class((names[node.name], node.properties) for node in escaped.nodes)
        return NamedNetwork(name, class_name, tuple(nodes), method, options)
    except BncliError as error:
        raise BncliError(error.what, where=error.where or where, hint=error.hint) from error


def original_name(properties: Mapping[str, str], name: str) -> str:
    """Return the original name of a network or node that has this name and these properties in the file.

    Raises BncliError if the property with the original name is not percent-encoded text.
    """
    return percent_decode(properties["bncli_name"]) if "bncli_name" in properties else name


def find_class(nodes: Iterable[tuple[str, Mapping[str, str]]]) -> str | None:
    """Return the node that its properties mark as the class, or None; raise BncliError if several are marked."""
    marked = [name for name, properties in nodes if properties.get("bncli_role") == "class"]
    if len(marked) > 1:
        raise BncliError(f"both '{marked[0]}' and '{marked[1]}' are marked as the class", hint="mark only one node")
    return marked[0] if marked else None


def read_origin(properties: Mapping[str, str], where: str) -> tuple[str, dict[str, int | float | str | bool]]:
    """Parse the method (by default `file`) and the options (by default none) of a structure from its properties.

    Raises BncliError if they are not valid.
    """
    from bncli.files.exports.structure_json import read_options
    from bncli.files.json_documents import parse_json

    method = percent_decode(properties["bncli_method"]) if "bncli_method" in properties else "file"
    if "bncli_options" not in properties:
        return method, {}
    text = percent_decode(properties["bncli_options"])
    document = parse_json(text.encode(), f"{where}, property bncli_options")
    return method, read_options(document.members())


def parse_property(text: str) -> tuple[str, str]:
    """Split a property into its name and value, which is empty if there is no `=`."""
    name, _, value = text.partition("=")
    return name.strip(), value.strip()


def legal_names(texts: Sequence[str], legal: LegalName, fold: Callable[[str], str] = str) -> tuple[str, ...]:
    """Return a legal name for each of the distinct `texts`, no two equal after `fold`.

    A legal string is unchanged, unless it collides with an earlier legal one. Any other string is replaced by its
    `legal` form, with a number (`name_2`, `name_3`, ...) if that form is taken.
    """
    taken: dict[str, str] = {}
    for text in texts:
        if legal(text) == text:
            taken.setdefault(fold(text), text)
    chosen = {text: text for text in taken.values()}
    used = set(taken)
    numbers: dict[str, int] = {}
    for text in texts:
        if text in chosen:
            continue
        name = candidate = legal(text)
        while fold(candidate) in used:
            numbers[name] = numbers.get(name, 1) + 1
            candidate = f"{name}_{numbers[name]}"
        used.add(fold(candidate))
        chosen[text] = candidate
    return tuple(chosen[text] for text in texts)


def to_identifier(text: str) -> str:
    """Return an ASCII identifier that resembles the string: `(-1, 2.5]` gives `minus_1_2_5`."""
    if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", text):
        return text
    signed = re.sub(r"(?<![\w.])-(?=[\d.]|inf)", "minus_", text)
    plain = unicodedata.normalize("NFKD", signed)  # separates letters from their accents
    ascii_only = "".join(c if c.isascii() else "" if unicodedata.combining(c) else "_" for c in plain)
    word = re.sub("[^A-Za-z0-9]+", "_", ascii_only).strip("_")
    return word if word[:1].isalpha() else f"_{word}"


def to_visible_line(text: str) -> str:
    """Return the string as one line with single spaces; invisible characters become `_`, and so does an empty line."""
    if text and text.isprintable() and text == " ".join(text.split()):
        return text
    visible = "".join(c if c.isprintable() else " " if c.isspace() else "_" for c in text)
    return " ".join(visible.split()) or "_"


def percent_encode(text: str) -> str:
    """Percent-encode a string (RFC 3986) with letters, digits and `%_.-~` only; an empty string becomes `%`.

    The first letter of keywords by which simple BIF parsers find blocks, such as `variable`, is encoded, too.
    """
    from urllib.parse import quote

    encoded = quote(text, safe="") or "%"
    return re.sub("(v)(?=ariable)|(p)(?=roper|robab)", lambda found: f"%{ord(found[0]):x}", encoded)


def percent_decode(text: str) -> str:
    """Decode a string encoded by `percent_encode`; raise BncliError if the bytes are not UTF-8."""
    from urllib.parse import unquote

    try:
        return "" if text == "%" else unquote(text, errors="strict")
    except ValueError as error:
        what = "a property is not percent-encoded text"
        raise BncliError(what, hint="leave the property out, or export the network again") from error


class Token(NamedTuple):
    """A token of a text: `kind` is a group name of the grammar, or "end"; `at` is the offset of its first character."""

    kind: str
    text: str
    at: int


class Tokens:
    """A cursor over the tokens of a text; `next` is the token at the cursor.

    Methods that move the cursor raise BncliError, with `where`, line and column, if no token begins at the new place.
    """

    def __init__(self, text: str, where: str, grammar: re.Pattern[str]) -> None:
        self._text = text.removeprefix("\ufeff")
        self._where = where
        self._grammar = grammar
        self.next = Token("end", "", 0)
        self._end = 0
        self._scan(0)

    def _scan(self, start: int) -> None:
        """Move the cursor to the first token from `start` on that is not skipped."""
        while start < len(self._text):
            match = self._grammar.match(self._text, start)
            if match is None:
                self.fail(f"unexpected character: '{self._text[start]}'", at=start)
            kind = match.lastgroup or ""
            if kind != "skip":
                self.next, self._end = Token(kind, match[kind], match.start()), match.end()
                return
            start = match.end()
        self.next, self._end = Token("end", "", len(self._text)), len(self._text)

    def take(self) -> Token:
        """Return the token at the cursor and move on."""
        token = self.next
        self._scan(self._end)
        return token

    def at(self, *texts: str) -> bool:
        """Return whether one of these marks or keywords is at the cursor; a quoted string is neither."""
        return self.next.kind != "quoted" and self.next.text in texts

    def take_if(self, *texts: str) -> bool:
        """Take the token at the cursor if it is one of these marks or keywords; return whether it was."""
        is_next = self.at(*texts)
        if is_next:
            self.take()
        return is_next

    def expect(self, *texts: str) -> Token:
        """Take and return the token at the cursor; raise BncliError if it is not one of these marks or keywords."""
        if not self.at(*texts):
            self.fail(f"expected {' or '.join(repr(text) for text in texts)}, found {quoted_token(self.next)}")
        return self.take()

    def take_raw(self, pattern: re.Pattern[str]) -> str | None:
        """Take and return the text at the cursor that `pattern` matches, or return None if it does not match."""
        match = pattern.match(self._text, self.next.at)
        if match is None:
            return None
        self._scan(match.end())
        return match[0]

    def fail(self, what: str, *, at: int | None = None, hint: str = "") -> NoReturn:
        """Raise BncliError with the position of the cursor, or of the offset `at`."""
        at = self.next.at if at is None else at
        line = self._text.count("\n", 0, at) + 1
        column = at - (self._text.rfind("\n", 0, at) + 1) + 1
        raise BncliError(what, where=f"{self._where}, line {line}, column {column}", hint=hint)


def quoted_token(token: Token) -> str:
    """Return a token in quotes for an error message, truncated to 40 characters, or words for the end of the file."""
    if token.kind == "end":
        return "the end of the file"
    text = token.text if len(token.text) <= 40 else token.text[:37] + "..."
    return f"'{text}'"
