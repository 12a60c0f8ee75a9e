"""XMLBIF, the XML form of the Interchange Format (version 0.3; Cozman 1998): a network as elements.

    <BIF VERSION="0.3"><NETWORK><NAME>asia</NAME>
    <VARIABLE TYPE="nature"><NAME>lung</NAME><OUTCOME>yes</OUTCOME><OUTCOME>no</OUTCOME></VARIABLE>
    <DEFINITION><FOR>lung</FOR><GIVEN>smoke</GIVEN><TABLE>0.1 0.9 0.01 0.99</TABLE></DEFINITION>
    </NETWORK></BIF>

In a table the state of the node (FOR) changes fastest, then that of the last parent (GIVEN).

Decided here: XML holds any visible text, so names stay as they are unless they hold line breaks, control characters or
blanks that a reader would trim; the originals of those stand in properties (`bncli.files.name_escaping`). No DOCTYPE is
written, for not every reader takes one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from xml.sax.saxutils import escape

import numpy as np

from bncli.engine.kernels.arrays import Array
from bncli.engine.networks.named_network import NamedNetwork
from bncli.files.elements import Element, parse_xml
from bncli.files.legal_names import printed
from bncli.files.name_escaping import Draft, DraftNode, Rules, disguise, parse_property, restore
from bncli.files.tokens import NUMBER


def read_xmlbif(text: str | bytes, where: str) -> NamedNetwork:
    """The network in an XMLBIF text, or in bytes whose encoding XML itself tells; errors name `where` and the line."""
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
    return restore(Draft(names[0].text if names else "unknown", nodes, _properties_of(network)), where)


def _variable(element: Element) -> DraftNode:
    """The node without its parents and its table."""
    kind = element.attributes.get("TYPE")
    if kind in ("decision", "utility"):
        element.fail(f"a variable of the type '{kind}'", hint="only networks of random variables (nature) are read")
    states = tuple(outcome.text for outcome in element.all("OUTCOME"))
    return DraftNode(element.only("NAME").text, states, (), np.empty(0), _properties_of(element))


def _properties_of(element: Element) -> dict[str, str]:
    return dict(parse_property(inner.text) for inner in element.all("PROPERTY"))


def _defined(network: Element, variables: Mapping[str, DraftNode]) -> Iterator[DraftNode]:
    """The variables in their order, with what their definitions say."""
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
    element: Element, variable: DraftNode, parents: tuple[str, ...], variables: Mapping[str, DraftNode]
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


def write_xmlbif(network: NamedNetwork) -> str:
    """The text of the XMLBIF file, to be stored as UTF-8."""
    name, nodes, properties = disguise(network, Rules(printed, printed, printed, str))
    inner = [_element("NAME", name), *_properties(properties)]
    for node in nodes:
        outcomes = [_element("OUTCOME", state) for state in node.states]
        body = [_element("NAME", node.name), *outcomes, *_properties(node.properties)]
        inner += ['<VARIABLE TYPE="nature">', *_indented(body), "</VARIABLE>"]
    for node in nodes:
        given = [_element("GIVEN", parent) for parent in node.parents]
        body = [_element("FOR", node.name), *given, "<TABLE>", *_indented(_rows(node)), "</TABLE>"]
        inner += ["<DEFINITION>", *_indented(body), "</DEFINITION>"]
    head = ['<?xml version="1.0" encoding="UTF-8"?>', '<BIF VERSION="0.3">', "<NETWORK>"]
    return "\n".join([*head, *_indented(inner), "</NETWORK>", "</BIF>"]) + "\n"


def _element(tag: str, text: str) -> str:
    return f"<{tag}>{escape(text)}</{tag}>"


def _properties(properties: Mapping[str, str]) -> list[str]:
    return [_element("PROPERTY", f"{name} = {value}") for name, value in properties.items()]


def _rows(node: DraftNode) -> list[str]:
    rows = node.probabilities.reshape(-1, len(node.states)).tolist()
    return [" ".join(map(repr, row)) for row in rows]


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]
