"""XMLBIF, the XML form of the Interchange Format for Bayesian networks (version 0.3; Cozman 1998).

    <BIF VERSION="0.3"><NETWORK><NAME>asia</NAME>
    <VARIABLE TYPE="nature"><NAME>lung</NAME><OUTCOME>yes</OUTCOME><OUTCOME>no</OUTCOME></VARIABLE>
    <DEFINITION><FOR>lung</FOR><GIVEN>smoke</GIVEN><TABLE>0.1 0.9 0.01 0.99</TABLE></DEFINITION>
    </NETWORK></BIF>

In a table, the state of the node (FOR) changes fastest, followed by the state of the last parent (GIVEN).

XML can hold any visible text, so names are unchanged unless they contain line breaks, invisible characters, or blanks
that a reader would strip or merge. Properties hold the originals of changed names (`network_text.py`). The document
type is taken from the definition of the format, because Weka's reader validates against it.

A document that defines entities is refused, because nested entities can turn a kilobyte into a gigabyte ("billion
laughs"). Nothing outside the document is read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from bncli.errors import BncliError
from bncli.files.exports import NetworkFormat, Signature
from bncli.files.exports.network_text import (
    NUMBER,
    EscapedNetwork,
    EscapedNode,
    escape_network,
    parse_property,
    restore_network,
    to_visible_line,
)

if TYPE_CHECKING:
    from bncli.engine.networks.network import NamedNetwork

MAX_DEPTH = 64
"""The maximum depth of nested elements."""
_DOCTYPE = """\
<!DOCTYPE BIF [
  <!ELEMENT BIF ( NETWORK )*>
    <!ATTLIST BIF VERSION CDATA #REQUIRED>
  <!ELEMENT NETWORK ( NAME, ( PROPERTY | VARIABLE | DEFINITION )* )>
  <!ELEMENT NAME (#PCDATA)>
  <!ELEMENT VARIABLE ( NAME, ( OUTCOME | PROPERTY )* )>
    <!ATTLIST VARIABLE TYPE (nature|decision|utility) "nature">
  <!ELEMENT OUTCOME (#PCDATA)>
  <!ELEMENT DEFINITION ( FOR | GIVEN | TABLE | PROPERTY )*>
  <!ELEMENT FOR (#PCDATA)>
  <!ELEMENT GIVEN (#PCDATA)>
  <!ELEMENT TABLE (#PCDATA)>
  <!ELEMENT PROPERTY (#PCDATA)>
  <?bncli > <!-- ?>
]>
<!-- -->"""
"""pyAgrum reads with TinyXML, which does not know document types. It takes every declaration for an unknown tag that
ends at the first `>`, and `]>` for the end of the document. The processing instruction, which XML readers ignore,
contains what TinyXML takes for the beginning of a comment, so that TinyXML skips `]>`.
"""
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def xmlbif_text(network: NamedNetwork) -> str:
    """Format a network as XMLBIF, to be encoded as UTF-8."""
    name, nodes, properties = escape_network(
        network, legal_network=to_visible_line, legal_node=to_visible_line, legal_state=to_visible_line
    )
    inner = [_element("NAME", name), *_property_elements(properties)]
    for node in nodes:
        outcomes = [_element("OUTCOME", state) for state in node.states]
        body = [_element("NAME", node.name), *outcomes, *_property_elements(node.properties)]
        inner += ['<VARIABLE TYPE="nature">', *_indented(body), "</VARIABLE>"]
    for node in nodes:
        given = [_element("GIVEN", parent) for parent in node.parents]
        rows = [" ".join(map(repr, row)) for row in node.probabilities.reshape(-1, len(node.states)).tolist()]
        body = [_element("FOR", node.name), *given, "<TABLE>", *_indented(rows), "</TABLE>"]
        inner += ["<DEFINITION>", *_indented(body), "</DEFINITION>"]
    head = ['<?xml version="1.0" encoding="UTF-8"?>', _DOCTYPE, '<BIF VERSION="0.3">', "<NETWORK>"]
    return "\n".join([*head, *_indented(inner), "</NETWORK>", "</BIF>"]) + "\n"


def _element(tag: str, text: str) -> str:
    return f"<{tag}>{text.translate(_ESCAPES)}</{tag}>"


def _property_elements(properties: Mapping[str, str]) -> list[str]:
    return [_element("PROPERTY", f"{name} = {value}") for name, value in properties.items()]


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def read_xmlbif(data: bytes, where: str) -> NamedNetwork:
    """Parse an XMLBIF file; if it is not valid, raise BncliError naming `where` and, if known, the line.

    The bytes are decoded with the encoding that the document declares.
    """
    import numpy as np

    root = parse_xml(data, where)
    if root.tag != "BIF":
        root.fail(f"expected the element BIF, found {root.tag}")
    network = root.only("NETWORK")
    states: dict[str, tuple[str, ...]] = {}
    properties: dict[str, dict[str, str]] = {}
    for element in network.all("VARIABLE"):
        kind = element.attributes.get("TYPE")
        if kind in ("decision", "utility"):
            element.fail(
                f"a variable of the type '{kind}'", hint="bncli reads only networks of random variables (nature)"
            )
        outcomes = tuple(outcome.text for outcome in element.all("OUTCOME"))
        name = element.only("NAME").text
        if name in states:
            element.fail(f"the variable '{name}' is declared twice", hint="declare every variable once")
        states[name], properties[name] = outcomes, _read_properties(element)
    definitions: dict[str, Element] = {}
    for element in network.all("DEFINITION"):
        name = element.only("FOR").text
        if name not in states:
            element.fail(f"'{name}' is not a variable", hint="declare it as a VARIABLE")
        if name in definitions:
            element.fail(f"'{name}' has two definitions", hint="give every variable one DEFINITION")
        definitions[name] = element
    nodes = []
    for name in states:
        if name not in definitions:
            network.fail(f"the variable '{name}' has no DEFINITION", hint="give every variable one DEFINITION")
        definition = definitions[name]
        parents = tuple(given.text for given in definition.all("GIVEN"))
        for parent in parents:
            if parent not in states:
                definition.fail(f"the parent '{parent}' of '{name}' is not a variable", hint="declare it as a VARIABLE")
        words = definition.only("TABLE").text.split()
        wrong = next((word for word in words if not NUMBER.fullmatch(word)), None)
        if wrong is not None:
            definition.fail(f"expected a number in the table of '{name}', found '{wrong[:40]}'")
        shape = (*(len(states[parent]) for parent in parents), len(states[name]))
        if len(words) != math.prod(shape):
            what = f"the table of '{name}' has {len(words)} numbers, not {math.prod(shape)}"
            definition.fail(what, hint="give one number per state and combination of the parents' states")
        table = np.array([float(word) for word in words]).reshape(shape)
        nodes.append(EscapedNode(name, states[name], parents, table, properties[name]))
    names = network.all("NAME")
    escaped = EscapedNetwork(names[0].text if names else "unknown", tuple(nodes), _read_properties(network))
    return restore_network(escaped, where)


def _read_properties(element: Element) -> dict[str, str]:
    return dict(parse_property(inner.text) for inner in element.all("PROPERTY"))


class Element:
    """An element of an XML document, with its line number."""

    def __init__(self, tag: str, attributes: Mapping[str, str], where: str, line: int) -> None:
        self.tag = tag
        self.attributes = attributes
        self.where = where
        self.line = line
        self.texts: list[str] = []
        self.children: list[Element] = []

    @property
    def text(self) -> str:
        """The stripped text between the tags, without the text of child elements."""
        return "".join(self.texts).strip()

    def all(self, tag: str) -> list[Element]:
        """Return the child elements with this tag."""
        return [child for child in self.children if child.tag == tag]

    def only(self, tag: str) -> Element:
        """Return the child element with this tag; raise BncliError unless there is exactly one."""
        elements = self.all(tag)
        if len(elements) != 1:
            self.fail(f"expected one element {tag} in {self.tag}, found {len(elements)}")
        return elements[0]

    def fail(self, what: str, *, hint: str = "") -> NoReturn:
        """Raise BncliError with the line of the element."""
        raise BncliError(what, where=f"{self.where}, line {self.line}", hint=hint)


def parse_xml(data: bytes, where: str) -> Element:
    """Parse a document and return its root element.

    Raises BncliError if it is not well-formed XML, defines entities, or nests elements more than MAX_DEPTH deep.
    """
    from xml.parsers import expat

    builder = _TreeBuilder(where)
    try:
        builder.parser.Parse(data, True)
    except expat.ExpatError as error:
        what = f"not valid XML: {expat.ErrorString(error.code)}"
        raise BncliError(what, where=f"{where}, line {error.lineno}, column {error.offset + 1}") from error
    except (LookupError, ValueError) as error:
        raise BncliError(f"not valid XML: {error}", where=where) from error
    return builder.root.children[0]


class _TreeBuilder:
    """A builder of the tree of elements from the events of the expat parser."""

    def __init__(self, where: str) -> None:
        from xml.parsers import expat

        self.root = Element("", {}, where, 1)
        self._path = [self.root]
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = lambda tag: self._path.pop()
        self.parser.CharacterDataHandler = lambda text: self._path[-1].texts.append(text)
        self.parser.EntityDeclHandler = self._refuse_entity
        self.parser.SkippedEntityHandler = self._refuse_entity

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes, self.root.where, self.parser.CurrentLineNumber)
        if len(self._path) > MAX_DEPTH:
            element.fail(f"elements are nested more than {MAX_DEPTH} deep")
        self._path[-1].children.append(element)
        self._path.append(element)

    def _refuse_entity(self, name: str, *_: Any) -> None:
        place = f"{self.root.where}, line {self.parser.CurrentLineNumber}"
        what = f"the document defines the entity '{name}'"
        raise BncliError(what, where=place, hint="replace the entity by its text")


FORMAT = NetworkFormat(
    "xmlbif",
    "the same network as XML, version 0.3",
    (".xml", ".bifxml", ".xmlbif"),
    xmlbif_text,
    read_xmlbif,
    Signature(rb"\A(?:\xef\xbb\xbf)?\s*<(?s:.*?)<BIF\b|\A(?:\xef\xbb\xbf)?\s*<BIF\b", "an XMLBIF network"),
)
