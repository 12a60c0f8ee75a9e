"""Generative parameters: smoothed relative frequencies, in closed form (see `bncli.engine.parameters.smoothing`)."""

from __future__ import annotations

from bncli.engine.counting.counts import Counts
from bncli.engine.model import Parameters
from bncli.engine.parameters.generative import closed_form, generative_tables
from bncli.engine.structures.structure import Structure
from bncli.watch import Watch, silent


def learn(counts: Counts, structure: Structure, *, smoothing: str, watch: Watch = silent) -> Parameters:
    """Return the network's log probabilities as tables; one pass more for their conditional log-likelihood."""
    return closed_form(counts, generative_tables(counts, structure, smoothing))
