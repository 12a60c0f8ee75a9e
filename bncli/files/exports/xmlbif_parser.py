"""The reader of XMLBIF (`bncli.files.exports.xmlbif`): elements in, a network by the names in the file out.

XML from unknown sources as a small tree that knows its lines; nothing in a document can make it grow.

Conventions: a document type may declare elements and attributes, as those of XMLBIF files do, but no entities, and
nothing outside the document is read: entities that stand for one another are how a kilobyte becomes a gigabyte
("billion laughs"), and external ones read files.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from bncli.engine.kernels.arrays import Array
from bncli.errors import BncliError
from bncli.files.exports.names import EscapedNetwork, EscapedNode, parse_property
from bncli.files.exports.tokens import NUMBER

MAX_DEPTH = 64
"""So deep may elements be nested."""


@dataclass
class Element:
    """An element: its text is that between its tags, blanks around it left out, without the text of inner elements."""

    tag: str
    attributes: Mapping[str, str]
    where: str
    line: int
    texts: list[str] = field(default_factory=list)
    children: list[Element] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.texts).strip()

    def all(self, tag: str) -> list[Element]:
        """Return the inner elements with this tag."""
        return [child for child in self.children if child.tag == tag]

    def only(self, tag: str) -> Element:
        """Return the one inner element with this tag."""
        found = self.all(tag)
        if len(found) != 1:
            self.fail(f"expected one element {tag} in {self.tag}, found {len(found)}")
        return found[0]

    def fail(self, what: str, *, hint: str = "") -> NoReturn:
        raise BncliError(what, where=f"{self.where}, line {self.line}", hint=hint)


class _Builder:
    """Collects what expat reports."""

    def __init__(self, where: str) -> None:
        from xml.parsers import expat

        self.root = Element("", {}, where, 1)
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.EntityDeclHandler = self._refuse
        self.parser.SkippedEntityHandler = self._refuse
        self._path = [self.root]

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes, self.root.where, self.parser.CurrentLineNumber)
        if len(self._path) > MAX_DEPTH:
            element.fail(f"elements are nested more than {MAX_DEPTH} deep")
        self._path[-1].children.append(element)
        self._path.append(element)

    def _end(self, tag: str) -> None:
        self._path.pop()

    def _text(self, text: str) -> None:
        self._path[-1].texts.append(text)

    def _refuse(self, name: str, *rest: Any) -> None:
        place = f"{self.root.where}, line {self.parser.CurrentLineNumber}"
        what = f"the document uses an entity of its own, '{name}'"
        raise BncliError(what, where=place, hint="write out what it stands for")


def parse_xml(text: str | bytes, where: str) -> Element:
    """Return the root element of a document; bytes are decoded as the document says."""
    from xml.parsers import expat

    builder = _Builder(where)
    try:
        builder.parser.Parse(text.removeprefix("\ufeff") if isinstance(text, str) else text, True)
    except expat.ExpatError as error:
        what = f"not valid XML: {expat.ErrorString(error.code)}"
        raise BncliError(what, where=f"{where}, line {error.lineno}, column {error.offset + 1}") from error
    except (LookupError, ValueError) as error:
        raise BncliError(f"not valid XML: {error}", where=where) from error
    return builder.root.children[0]


def parse_xmlbif(text: str | bytes, where: str) -> EscapedNetwork:
    """Return the network in an XMLBIF text, or in bytes whose encoding XML itself tells.

    Errors name `where` and the line.
    """
    root = parse_xml(text, where)
    if root.tag != "BIF":
        root.fail(f"expected the element BIF, found {root.tag}")
    network = root.only("NETWORK")
    variables = {}
    for element in network.all("VARIABLE"):
        variable = _variable(element)
        if variable.name in variables:
            element.fail(f"the variable '{variable.name}' is declared twice", hint="declare every variable once")
        variables[variable.name] = variable
    nodes = tuple(_defined(network, variables))
    names = network.all("NAME")
    return EscapedNetwork(names[0].text if names else "unknown", nodes, _properties_of(network))


def _variable(element: Element) -> EscapedNode:
    """Return the node without its parents and its table."""
    kind = element.attributes.get("TYPE")
    if kind in ("decision", "utility"):
        element.fail(f"a variable of the type '{kind}'", hint="only networks of random variables (nature) are read")
    states = tuple(outcome.text for outcome in element.all("OUTCOME"))
    return EscapedNode(element.only("NAME").text, states, (), np.empty(0), _properties_of(element))


def _properties_of(element: Element) -> dict[str, str]:
    return dict(parse_property(inner.text) for inner in element.all("PROPERTY"))


def _defined(network: Element, variables: Mapping[str, EscapedNode]) -> Iterator[EscapedNode]:
    """Yield the variables in their order, with what their definitions say."""
    definitions: dict[str, Element] = {}
    for element in network.all("DEFINITION"):
        name = element.only("FOR").text
        if name not in variables:
            element.fail(f"'{name}' is no variable", hint="declare it as a VARIABLE")
        if name in definitions:
            element.fail(f"'{name}' has two definitions", hint="give every variable one")
        definitions[name] = element
    for name, variable in variables.items():
        if name not in definitions:
            network.fail(f"the variable '{name}' has no DEFINITION", hint="give every variable one")
        parents = tuple(given.text for given in definitions[name].all("GIVEN"))
        table = _table(definitions[name], variable, parents, variables)
        yield variable._replace(parents=parents, probabilities=table)


def _table(
    element: Element, variable: EscapedNode, parents: tuple[str, ...], variables: Mapping[str, EscapedNode]
) -> Array:
    for parent in parents:
        if parent not in variables:
            element.fail(f"the parent '{parent}' of '{variable.name}' is no variable", hint="declare it as a VARIABLE")
    words = element.only("TABLE").text.split()
    wrong = next((word for word in words if not NUMBER.fullmatch(word)), None)
    if wrong is not None:
        element.fail(f"expected a number in the table of '{variable.name}', found '{wrong[:40]}'")
    shape = (*(len(variables[parent].states) for parent in parents), len(variable.states))
    if len(words) != math.prod(shape):
        what = f"the table of '{variable.name}' has {len(words)} numbers, not {math.prod(shape)}"
        element.fail(what, hint="give one per state and combination of the parents' states")
    return np.array([float(word) for word in words]).reshape(shape)
