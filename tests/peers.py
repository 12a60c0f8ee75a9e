"""Other programs that read networks, for tests: P(class | x) as they compute it. Each is skipped where not installed.

States are named by their position, for names may have been changed to what a format can hold.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import pytest

Posterior = Callable[[str, Mapping[str, int]], list[float]]
"""P(node | evidence), the evidence as positions of states."""


def by_pyagrum(path: str) -> Posterior:
    """The network in a file whose ending is .bif or .bifxml."""
    gum = _imported("pyagrum")
    network = gum.loadBN(path)

    def posterior(node: str, evidence: Mapping[str, int]) -> list[float]:
        inference = gum.VariableElimination(network)
        inference.setEvidence(dict(evidence))
        return [float(p) for p in inference.posterior(node).tolist()]

    return posterior


def by_pgmpy(path: str) -> Posterior:
    """The network in a file whose ending is .bif, or else in XMLBIF."""
    readwrite, inference = _imported("pgmpy.readwrite"), _imported("pgmpy.inference")
    with _no_warnings():
        reader = readwrite.BIFReader(path) if path.endswith(".bif") else readwrite.XMLBIFReader(path)
        network = reader.get_model()
        elimination = inference.VariableElimination(network)

    def posterior(node: str, evidence: Mapping[str, int]) -> list[float]:
        names = {name: network.get_cpds(name).state_names[name] for name in (node, *evidence)}
        named = {name: names[name][position] for name, position in evidence.items()}
        with _no_warnings():
            factor = elimination.query([node], evidence=named, show_progress=False)
        return [float(factor.get_value(**{node: state})) for state in names[node]]

    return posterior


def _imported(name: str) -> Any:
    with _no_warnings():
        return pytest.importorskip(name, exc_type=ImportError)


def _no_warnings() -> warnings.catch_warnings[Any]:
    """Their warnings are not ours; as errors they would even crash pyAgrum."""
    return warnings.catch_warnings(action="ignore")
