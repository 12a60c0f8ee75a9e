"""XMLBIF, the XML form of the Interchange Format (version 0.3; Cozman 1998): a network as elements.

    <BIF VERSION="0.3"><NETWORK><NAME>asia</NAME>
    <VARIABLE TYPE="nature"><NAME>lung</NAME><OUTCOME>yes</OUTCOME><OUTCOME>no</OUTCOME></VARIABLE>
    <DEFINITION><FOR>lung</FOR><GIVEN>smoke</GIVEN><TABLE>0.1 0.9 0.01 0.99</TABLE></DEFINITION>
    </NETWORK></BIF>

In a table the state of the node (FOR) changes fastest, then that of the last parent (GIVEN).

Conventions: XML holds any visible text, so names stay as they are unless they hold line breaks, control characters or
blanks that a reader would trim; the originals of those stand in properties (`name_escaping`). The document type is that
of the format's definition, by which Weka's reader validates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bncli.files.exports import NetworkFormat, Signature
from bncli.files.exports.legal_names import printed

if TYPE_CHECKING:
    from bncli.engine.networks.named_network import NamedNetwork
    from bncli.files.exports.names import EscapedNode


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
"""TinyXML, by which pyAgrum reads, knows no document type: to it every declaration is an unknown tag that ends at the
first `>`, and `]>` the end of the document. The processing instruction, which means nothing in XML, opens what it takes
for a comment, so that it reads over that.
"""
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def read_xmlbif(text: str | bytes, where: str) -> NamedNetwork:
    """Return the network in an XMLBIF text, or in bytes whose encoding XML itself tells.

    Errors name `where` and the line.
    """
    from bncli.files.exports.names import restore_names
    from bncli.files.exports.xmlbif_parser import parse_xmlbif

    return restore_names(parse_xmlbif(text, where), where)


def write_xmlbif(network: NamedNetwork) -> str:
    """Return the text of the XMLBIF file, to be stored as UTF-8."""
    from bncli.files.exports.names import NameRules, escape_names

    name, nodes, properties = escape_names(network, NameRules(printed, printed, printed, str))
    inner = [_element("NAME", name), *_properties(properties)]
    for node in nodes:
        outcomes = [_element("OUTCOME", state) for state in node.states]
        body = [_element("NAME", node.name), *outcomes, *_properties(node.properties)]
        inner += ['<VARIABLE TYPE="nature">', *_indented(body), "</VARIABLE>"]
    for node in nodes:
        given = [_element("GIVEN", parent) for parent in node.parents]
        body = [_element("FOR", node.name), *given, "<TABLE>", *_indented(_rows(node)), "</TABLE>"]
        inner += ["<DEFINITION>", *_indented(body), "</DEFINITION>"]
    head = ['<?xml version="1.0" encoding="UTF-8"?>', _DOCTYPE, '<BIF VERSION="0.3">', "<NETWORK>"]
    return "\n".join([*head, *_indented(inner), "</NETWORK>", "</BIF>"]) + "\n"


def _element(tag: str, text: str) -> str:
    return f"<{tag}>{text.translate(_ESCAPES)}</{tag}>"


def _properties(properties: Mapping[str, str]) -> list[str]:
    return [_element("PROPERTY", f"{name} = {value}") for name, value in properties.items()]


def _rows(node: EscapedNode) -> list[str]:
    rows = node.probabilities.reshape(-1, len(node.states)).tolist()
    return [" ".join(map(repr, row)) for row in rows]


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]


FORMAT = NetworkFormat(
    "xmlbif",
    "the same as XML, version 0.3",
    (".xml", ".bifxml", ".xmlbif"),
    write_xmlbif,
    read_xmlbif,
    Signature(rb"\A(?:\xef\xbb\xbf)?\s*<(?s:.*?)<BIF\b|\A(?:\xef\xbb\xbf)?\s*<BIF\b", "an XMLBIF network"),
)
