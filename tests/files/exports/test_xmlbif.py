"""XMLBIF as other programs write it, and what may be wrong with it."""

from __future__ import annotations

import numpy as np
import pytest

from bncli.engine.networks.network import NamedNetwork, Node
from bncli.errors import BncliError
from bncli.files.exports.xmlbif import parse_xml, read_xmlbif, xmlbif_text

DOCTYPE = """\
<!DOCTYPE BIF [
  <!ELEMENT BIF ( NETWORK )*>
  <!ATTLIST BIF VERSION CDATA #REQUIRED>
  <!ELEMENT NETWORK ( NAME, ( PROPERTY | VARIABLE | DEFINITION )* )>
]>
"""
GOOD = """\
<?xml version="1.0" encoding="UTF-8"?>
<!-- From another program -->
<BIF VERSION="0.3"><NETWORK><NAME>Dogs &amp; lights</NAME>
<PROPERTY>author Charniak</PROPERTY>
<VARIABLE TYPE="nature"><NAME> a </NAME><OUTCOME>u</OUTCOME><OUTCOME>v</OUTCOME></VARIABLE>
<VARIABLE><NAME>b</NAME><OUTCOME>&lt;5</OUTCOME><OUTCOME>x</OUTCOME><OUTCOME>é</OUTCOME>
<PROPERTY>x = 1</PROPERTY></VARIABLE>
<DEFINITION><FOR>a</FOR><TABLE>0.5 0.5</TABLE></DEFINITION>
<DEFINITION><FOR>b</FOR><GIVEN>a</GIVEN><TABLE>0.1 0.2 0.7 <!-- v --> 3e-1
0.3 .4</TABLE></DEFINITION>
</NETWORK></BIF>
"""


@pytest.mark.parametrize("text", [GOOD, GOOD.replace("<BIF", DOCTYPE + "<BIF"), "\ufeff" + GOOD, GOOD.encode()])
def test_a_network_of_another_program(text: str | bytes) -> None:
    network = read_xmlbif(text if isinstance(text, bytes) else text.encode(), "f.xml")
    assert (network.name, network.class_name) == ("Dogs & lights", None)
    assert network.dag.parents == {"a": (), "b": ("a",)}
    assert network.by_name["b"].states == ("<5", "x", "é")
    assert network.by_name["b"].probabilities.tolist() == [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]]


def test_the_encoding_is_the_one_that_the_document_names() -> None:
    data = GOOD.replace("UTF-8", "ISO-8859-1").encode("latin-1")
    assert read_xmlbif(data, "f.xml").by_name["b"].states[2] == "é"


def test_the_written_file() -> None:
    nodes = (Node("y", ("no", "<1"), (), np.array([0.25, 0.75])), Node("a", ("u",), ("y",), np.ones((2, 1))))
    text = xmlbif_text(NamedNetwork("net", "y", nodes))
    assert "<OUTCOME>&lt;1</OUTCOME>" in text
    assert '  <VARIABLE TYPE="nature">\n    <NAME>a</NAME>\n    <OUTCOME>u</OUTCOME>\n  </VARIABLE>\n' in text
    assert "    <GIVEN>y</GIVEN>\n    <TABLE>\n      1.0\n      1.0\n    </TABLE>\n" in text
    assert text.count("<PROPERTY>") == 1
    assert text.splitlines()[1] == "<!DOCTYPE BIF ["


ENTITY = '<!DOCTYPE BIF [ <!ENTITY a "aaaaaaaaaa"> <!ENTITY b "&a;&a;&a;&a;&a;"> ]>\n'
EXTERNAL = '<!DOCTYPE BIF [ <!ENTITY a SYSTEM "file:///etc/passwd"> ]>\n'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<BIF", ENTITY + "<BIF", "the document defines the entity 'a', f.xml, line 3"),
        ("<BIF", EXTERNAL + "<BIF", "the document defines the entity 'a'"),
        ("<BIF", '<!DOCTYPE BIF SYSTEM "http://localhost/x.dtd">\n<BIF', None),
        ("<OUTCOME>u", "<OUTCOME>&unknown;", "not valid XML: undefined entity, f.xml, line 5, column 50"),
        ("</NETWORK></BIF>", "", "not valid XML: no element found, f.xml, line 12"),
        ("</NETWORK></BIF>", "</BIF></NETWORK>", "not valid XML: mismatched tag, f.xml, line 11"),
        ("BIF", "BEEF", "not valid XML: mismatched tag|expected the element BIF"),
        ("<NAME>b</NAME>", "", "expected one element NAME in VARIABLE, found 0, f.xml, line 6"),
        ("<NAME>b</NAME>", "<NAME>a</NAME>", "the variable 'a' is declared twice, f.xml, line 6"),
        ("<NAME>b</NAME>", "<NAME>b</NAME><NAME>b</NAME>", "expected one element NAME in VARIABLE, found 2"),
        ('"nature"', '"discrete"', None),
        ('"nature"', '"decision"', "a variable of the type 'decision', f.xml, line 5"),
        ("<OUTCOME>u</OUTCOME><OUTCOME>v</OUTCOME>", "", "the table of 'a' has 2 numbers, not 0"),
        ("<OUTCOME>u", "<OUTCOME>v", "the node 'a' has the state 'v' twice, f.xml"),
        ("<FOR>b", "<FOR>a", "'a' has two definitions, f.xml, line 9"),
        ("<FOR>b", "<FOR>c", "'c' is not a variable, f.xml, line 9"),
        ("<GIVEN>a", "<GIVEN>c", "the parent 'c' of 'b' is not a variable, f.xml, line 9"),
        ("<GIVEN>a</GIVEN>", "", "the table of 'b' has 6 numbers, not 3"),
        ("<GIVEN>a</GIVEN>", "<GIVEN>b</GIVEN>", "has 6 numbers, not 9"),
        ("0.1 0.2", "0,1 0,2", "expected a number in the table of 'b', found '0,1'"),
        ("0.1 0.2", "nan 0.2", "found 'nan'"),
        ("0.1 0.2", "0.1 0.3", "a row of the table of 'b' sums to 1.1, f.xml"),
        ("<DEFINITION><FOR>a</FOR><TABLE>0.5 0.5</TABLE></DEFINITION>", "", "the variable 'a' has no DEFINITION"),
        ("UTF-8", "klingon", "not valid XML: unknown encoding"),
        ("é", "\x01", "not valid XML: not well-formed"),
    ],
)
def test_faults_are_told_in_a_line_with_the_place(old: str, new: str, message: str | None) -> None:
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    if message is None:
        assert read_xmlbif(text.encode(), "f.xml").dag == read_xmlbif(GOOD.encode(), "f.xml").dag
        return
    with pytest.raises(BncliError, match=message) as caught:
        read_xmlbif(text.encode(), "f.xml")
    assert "\n" not in str(caught.value)


def test_skipped_entities_are_refused_where_a_document_type_lies_elsewhere() -> None:
    text = GOOD.replace("<BIF", '<!DOCTYPE BIF SYSTEM "x.dtd">\n<BIF', 1).replace("<OUTCOME>u", "<OUTCOME>&u;")
    with pytest.raises(BncliError, match="defines the entity 'u'"):
        read_xmlbif(text.encode(), "f")


def test_every_truncation_is_a_short_error() -> None:
    for end in range(len(GOOD) - 2):
        with pytest.raises(BncliError):
            read_xmlbif(GOOD[:end].encode(), "f")


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(BncliError, match="nested more than 64 deep"):
        read_xmlbif(b"<BIF>" * 100_000, "f")


def test_a_tree_knows_its_texts_and_lines() -> None:
    root = parse_xml(b'<a x="1">\n <b> t &amp; <!-- no --> u<c>inner</c> </b>\n<b><![CDATA[<d>]]></b></a>', "f")
    assert (root.tag, root.attributes, root.text, root.line) == ("a", {"x": "1"}, "", 1)
    assert [(b.text, b.line) for b in root.all("b")] == [("t &  u", 2), ("<d>", 3)]
    assert root.all("b")[0].only("c").text == "inner"
    with pytest.raises(BncliError, match="expected one element c in a, found 0, f, line 1"):
        root.only("c")


def test_a_billion_laughs_end_at_the_first() -> None:
    lines = ['<!ENTITY l0 "ha">', *(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))]
    document = f"<!DOCTYPE a [{chr(10).join(lines)}]><a>&l9;</a>"
    with pytest.raises(
        BncliError, match=("the document defines the entity 'l0', f, line 1; replace the entity by its text")
    ):
        parse_xml(document.encode(), "f")


@pytest.mark.parametrize("data", [b"", b"x", b"<a>", b"<a></b>", b"<a/><b/>", b"<a>\0</a>", b"<a b=1/>", b"\xff\xfe<"])
def test_what_is_no_xml(data: bytes) -> None:
    with pytest.raises(BncliError, match="not valid XML"):
        parse_xml(data, "f")
