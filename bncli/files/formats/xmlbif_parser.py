"""The reader of XMLBIF (`bncli.files.formats.xmlbif`): elements in, a network by the names in the file out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from bncli.engine.kernels.arrays import Array
from bncli.files.formats.elements import Element, parse_xml
from bncli.files.formats.name_escaping import EscapedNetwork, EscapedNode, parse_property
from bncli.files.formats.tokens import NUMBER


def parse_xmlbif(text: str | bytes, where: str) -> EscapedNetwork:
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
    return EscapedNetwork(names[0].text if names else "unknown", nodes, _properties_of(network))


def _variable(element: Element) -> EscapedNode:
    """The node without its parents and its table."""
    kind = element.attributes.get("TYPE")
    if kind in ("decision", "utility"):
        element.fail(f"a variable of the type '{kind}'", hint="only networks of random variables (nature) are read")
    states = tuple(outcome.text for outcome in element.all("OUTCOME"))
    return EscapedNode(element.only("NAME").text, states, (), np.empty(0), _properties_of(element))


def _properties_of(element: Element) -> dict[str, str]:
    return dict(parse_property(inner.text) for inner in element.all("PROPERTY"))


def _defined(network: Element, variables: Mapping[str, EscapedNode]) -> Iterator[EscapedNode]:
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
