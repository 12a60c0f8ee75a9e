"""Generative parameters: smoothed relative frequencies, in closed form (see `bncli.engine.smoothing`)."""

from __future__ import annotations

from bncli.engine.counts import Counts
from bncli.engine.generative import generative_tables
from bncli.engine.likelihood import conditional_likelihood
from bncli.engine.model import Parameters, StoppedBy
from bncli.engine.structure import Structure
from bncli.watch import Watch, silent


def learn(counts: Counts, structure: Structure, *, smoothing: str, watch: Watch = silent) -> Parameters:
    """The network's log probabilities as tables; one pass more for their conditional log-likelihood."""
    tables = generative_tables(counts, structure, smoothing)
    likelihood = conditional_likelihood(counts.data, tables.families)
    cll, _ = likelihood.value_and_gradient(likelihood.flatten(tables))
    return Parameters(tables, tables.n_parameters, cll, cll, 0, 1, StoppedBy.CLOSED_FORM)
