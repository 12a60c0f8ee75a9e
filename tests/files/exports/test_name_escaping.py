"""What formats cannot hold goes into properties and comes back."""

from __future__ import annotations

import numpy as np
import pytest

from bncli.engine.networks.named_network import NamedNetwork, Node
from bncli.errors import BncliError
from bncli.files.exports.legal_names import identifier
from bncli.files.exports.names import NameRules, escape_names, origin, origin_marks, parse_property, restore_names
from tests.networks import assert_same

RULES = NameRules(identifier, identifier, identifier, str.lower)
NODES = (
    Node("y", ("no", "yes!"), (), np.array([0.25, 0.75])),
    Node("Y", ("0.5", "_0_5"), ("y",), np.full((2, 2), 0.5)),
)
NETWORK = NamedNetwork("my net", "y", NODES, "kdb", {"k": 2, "a": 0.1})


def test_only_what_is_lost_is_kept() -> None:
    escaped = escape_names(NETWORK, RULES)
    assert (escaped.name, [node.name for node in escaped.nodes]) == ("my_net", ["y", "Y_2"])
    assert escaped.properties == {
        "bncli_name": "my%20net",
        "bncli_method": "kdb",
        "bncli_options": "%7B%22a%22%3A0.1%2C%22k%22%3A2%7D",
    }
    assert escaped.nodes[0].properties == {"bncli_role": "class", "bncli_states": "no yes%21"}
    assert escaped.nodes[0].states == ("no", "yes")
    assert escaped.nodes[1].properties == {"bncli_name": "Y", "bncli_states": "0.5 _0_5"}
    assert escaped.nodes[1].states == ("_0_5_2", "_0_5")
    assert_same(restore_names(escaped, "f"), NETWORK)
    assert origin_marks("file", {}) == {}


def test_whatever_is_wrong_names_the_file() -> None:
    escaped = escape_names(NETWORK, RULES)
    with pytest.raises(BncliError, match="the network has no variables, f"):
        restore_names(escaped._replace(nodes=()), "f")
    with pytest.raises(BncliError, match="does not hold a percent-encoded text, f; leave it out"):
        restore_names(escaped._replace(properties={"bncli_method": "%ff"}), "f")


@pytest.mark.parametrize(
    "options", ["%", "x", "%5B1%5D", "%7B%22a%22%3A%5B%5D%7D", "%7B%22a%22%3ANaN%7D", "%5B" * 99_999]
)
def test_options_are_plain_values_by_name(options: str) -> None:
    with pytest.raises(BncliError, match="f, property bncli_options"):
        origin({"bncli_options": options}, "f")


def test_properties() -> None:
    assert parse_property(" a = b = c ") == ("a", "b = c")
    assert parse_property("just words") == ("just words", "")
