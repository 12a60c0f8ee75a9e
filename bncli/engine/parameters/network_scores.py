"""Scores of a whole network, in nats; higher is better.

`ll`, `bic`, `aic`, `k2` and `bdeu` are scores of the joint distribution of class and attributes: the sum of the family
scores (`bncli.engine.structures.scores`) over all nodes, including the class. A node without the class as a parent is
scored on the rows of all classes together. `acll` is the approximate conditional log-likelihood at its best parameters,

    aCLL = sum over families with the class, k, j, c of M_kjc ln theta_kjc - N gamma,

including constants (see `bncli.engine.structures.scores`), so that it approximates the conditional
log-likelihood CLL of the same parameters; its relative error is |aCLL - CLL| / |CLL|.

Conventions: if missing values are marginalized, each node is scored on the rows that have its whole family, and there
is no aCLL, which is defined for complete rows only. Cost: at most one counting pass, and one pass for the CLL.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any, NamedTuple

from bncli.catalogue.option_kinds import ClassPairPrior, parse_decimal
from bncli.engine.counting.counts import Counts
from bncli.engine.model import Tables
from bncli.engine.parameters.generative import acll_tables, closed_form
from bncli.engine.structures.scores import (
    LinearApproximation,
    aic,
    bdeu,
    bic,
    class_contrasts,
    dirichlet_approximation,
    k2,
    log_likelihood,
    prior_approximation,
)
from bncli.engine.structures.structure import Dag
from bncli.recipe import Recipe


class NetworkScores(NamedTuple):
    """The six scores, in nats; acll is None if rows with missing values are marginalized."""

    ll: float
    bic: float
    aic: float
    k2: float
    bdeu: float
    acll: float | None


class ScoredNetwork(NamedTuple):
    """The scores, and the relative error of acll, which is None without acll or if the CLL is 0."""

    scores: NetworkScores
    acll_relative_error: float | None


class Strengths(NamedTuple):
    """The parameters of scores: the prior rows of bdeu, and the pseudo-counts and class pair prior of acll."""

    bdeu: float = 1.0
    pseudo_counts: float = 5.0
    prior: str | None = None

    @classmethod
    def of(cls, recipe: Recipe) -> Strengths:
        """Return the parameters that a recipe sets for bdeu and acll, and the defaults for the others."""
        name, _, numbers = (recipe.structure_score or "").partition(":")
        number, _, prior = numbers.partition("/")
        field = {"bdeu": "bdeu", "acll": "pseudo_counts", "acll-uniform": "pseudo_counts"}.get(name)
        # a structure file may contain any text here
        value = parse_decimal(number)
        of_score: dict[str, Any] = {} if field is None or not value else {field: value}
        if prior:
            try:
                of_score["prior"] = ClassPairPrior().parse(prior)
            except ValueError:
                of_score["prior"] = None
        typed = {"pseudo_counts": recipe.pseudo_counts, "prior": recipe.class_pair_prior}
        return cls(**of_score)._replace(**{key: value for key, value in typed.items() if value})


def score_network(counts: Counts, network: Dag, strengths: Strengths = Strengths()) -> ScoredNetwork:
    """Return all scores of a network, and the relative error of acll, on the rows behind the counts."""
    # the counts (r, q, K) of every node and its parents; K is 1 if the class is the child or not a parent
    children = set(network.class_children)
    families = [(i, *network.parents[i]) for i in network.nodes]
    of_class, *tables = counts.tables([network.class_parents, *families])
    # the class as a child: (K, configurations of its parents, 1)
    nodes = [of_class.reshape(-1, of_class.shape[-1]).T[..., None]]
    for family, table in zip(families, tables, strict=True):
        by_class = table.reshape(len(table), -1, table.shape[-1])
        nodes.append(by_class if family[0] in children else by_class.sum(axis=-1, keepdims=True))
    acll = error = None
    if not any(counts.data.n_missing):
        k, n = counts.data.n_labels, float(counts.class_counts().sum())
        line = dirichlet_approximation(k, n) if strengths.prior is None else prior_approximation(strengths.prior, k)
        best = acll_tables(counts, network, line.beta, strengths.pseudo_counts)
        acll, cll = approximate_cll(counts, best, line), closed_form(counts, best).cll
        error = abs(acll - cll) / abs(cll) if cll else None
    scores = NetworkScores(
        ll=sum(float(log_likelihood(n)) for n in nodes),
        bic=sum(float(bic(n)) for n in nodes),
        aic=sum(float(aic(n)) for n in nodes),
        k2=sum(float(k2(n)) for n in nodes),
        bdeu=sum(float(bdeu(n, strengths.bdeu)) for n in nodes),
        acll=acll,
    )
    return ScoredNetwork(scores, error)


def approximate_cll(counts: Counts, tables: Tables, line: LinearApproximation) -> float:
    """Return the aCLL of network tables: the sum over rows of ln U_y - beta (sum over c of ln U_c) - gamma, in nats."""
    # a bias of 0, if the class has parents, adds nothing
    terms = [(counts.class_counts(), tables.bias)]
    family_counts = counts.tables([family.attributes for family in tables.families])
    for family, n, weights in zip(tables.families, family_counts, tables.weights, strict=True):
        if family.by_class:
            terms.append((n.reshape(weights.shape), weights))
    total = sum(float((class_contrasts(n, line.beta) * weights).sum()) for n, weights in terms)
    return total - float(counts.class_counts().sum()) * float(line.gamma)


def mean_scores(scored: Sequence[ScoredNetwork]) -> ScoredNetwork:
    """Return the mean of every score over several networks; a score that any network lacks is None."""
    scores = NetworkScores(*(_mean(values) for values in zip(*(one.scores for one in scored), strict=True)))  # type: ignore[arg-type]
    return ScoredNetwork(scores, _mean([one.acll_relative_error for one in scored]))


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(values) else None
