"""The tables of a network whose parameters maximise the approximate conditional log-likelihood, in closed form.

theta of each family is as in `scores.class_contrast`: the contrasts of its counts, at least N', made to sum to 1.
"""

from __future__ import annotations

from bncli.engine.counting.counts import Counts
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Tables
from bncli.engine.scores.class_contrast import log_theta
from bncli.engine.structures.structure import Structure
from bncli.engine.training.generative import family_tables


def acll_tables(counts: Counts, structure: Structure, beta: Array, pseudo_counts: float) -> Tables:
    """ln theta of every family that contains the class; one counting pass for what is not known yet."""
    return family_tables(counts, structure, lambda table, axis: log_theta(table, beta, pseudo_counts, axis))
