"""From a network by index to one by names, as other programs know it.

Only the nodes that P(y | x) depends on are named: an attribute that the structure does not use, or that is not in the
class's Markov blanket, tells nothing of the class in a complete row. Where missing values are marginalized, rows need
not be complete, and every node with an arc is named. Conventions: the class comes first, both among the nodes and among
parents; attributes follow in schema order, parents in their listed order. A probability of 0 is written as the smallest
normal number, so that no row is impossible under every class; in a table without the class, which cancels from P(y | x)
but may be multiplied in by other programs, as 1e-12, so that no product of them vanishes.
"""

from __future__ import annotations

import numpy as np

from bncli.engine.networks.named_network import NamedNetwork, Node
from bncli.engine.networks.network import Network
from bncli.engine.networks.state_names import state_names

_LEAST = float(np.finfo(np.float64).tiny)
_LEAST_APART = 1e-12


def name_network(network: Network) -> NamedNetwork:
    """The class and what tells of it, with named states; the network is called like its class.

    Every parent of a node must be one of these: as in what `equivalent_network` makes.
    """
    schema, structure = network.schema, network.structure
    names = [attribute.name for attribute in schema.attributes]
    above_class = tuple(names[j] for j in structure.class_parents)
    nodes = [Node(schema.class_name, schema.labels, above_class, np.maximum(network.theta_class, _LEAST))]
    children = set(structure.class_children)
    for i in structure.nodes if schema.marginalizes else structure.attributes:
        parents = tuple(names[j] for j in structure.parents[i])
        theta = np.moveaxis(network.theta[i], 0, -1)
        if i in children:
            parents = (schema.class_name, *parents)
            theta = np.moveaxis(theta, -2, 0)
        least = _LEAST if i in children else _LEAST_APART
        nodes.append(Node(names[i], state_names(schema.attributes[i]), parents, np.maximum(theta, least)))
    return NamedNetwork(schema.class_name, schema.class_name, tuple(nodes), structure.method, dict(structure.options))
