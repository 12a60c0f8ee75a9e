"""What a network is worth by every score: sums over its nodes, nats, higher is better.

`ll`, `bic`, `aic`, `k2` and `bdeu` are those of the joint distribution of class and attributes, the sum of
`bncli.engine.structures.scores` over all nodes, the class among them: a node without the class as a parent counts with
the rows of all classes together. `acll` is the approximate conditional log-likelihood at its best parameters,

    aCLL = sum over families with the class, k, j, c of M_kjc ln theta_kjc - N gamma,

constants included (see `bncli.engine.structures.acll_approximation`), so that it stands for the conditional
log-likelihood CLL of the same parameters; its relative error is |aCLL - CLL| / |CLL|.

Conventions: where missing values are marginalized each node counts the rows that have its whole family, and there is no
aCLL, which knows complete rows only. Cost: one counting pass for what is not known yet, and one pass for the CLL.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any, NamedTuple

from bncli.catalogue.option_kinds import ClassPairPrior, parse_decimal
from bncli.engine.counting.counts import Counts
from bncli.engine.model import Tables
from bncli.engine.parameters.generative import acll_tables, closed_form
from bncli.engine.structures.acll_approximation import (
    LinearApproximation,
    class_contrasts,
    dirichlet_approximation,
    prior_approximation,
)
from bncli.engine.structures.scores import aic, bdeu, bic, k2, log_likelihood
from bncli.engine.structures.structure import Dag
from bncli.recipe import Recipe


class NetworkScores(NamedTuple):
    """The six, in nats; acll is None where missing values are marginalized."""

    ll: float
    bic: float
    aic: float
    k2: float
    bdeu: float
    acll: float | None


class ScoredNetwork(NamedTuple):
    """The scores, and the relative error of acll; None where there is no acll, or the CLL is 0."""

    scores: NetworkScores
    acll_relative_error: float | None


class Strengths(NamedTuple):
    """What scores take: rows spread by bdeu; for acll the least count of a cell and a distribution."""

    bdeu: float = 1.0
    pseudo_counts: float = 5.0
    prior: str | None = None

    @classmethod
    def of(cls, recipe: Recipe) -> Strengths:
        """Return those of a recipe that learns by such a score, or acll parameters.

        The usual ones where it does not.
        """
        name, _, numbers = (recipe.structure_score or "").partition(":")
        number, _, prior = numbers.partition("/")
        given = {"bdeu": "bdeu", "acll": "pseudo_counts", "acll-uniform": "pseudo_counts"}.get(name)
        value = parse_decimal(number)  # a structure file may say anything
        found: dict[str, Any] = {} if given is None or not value else {given: value}
        found |= {"prior": _prior(prior)} if prior else {}
        typed = {"pseudo_counts": recipe.pseudo_counts, "prior": recipe.class_pair_prior}
        return cls(**found)._replace(**{key: value for key, value in typed.items() if value})


def score_network(counts: Counts, network: Dag, strengths: Strengths = Strengths()) -> ScoredNetwork:
    """Return all scores of a network on some rows."""
    # The counts (r, q, K) of every node with its parents; K is 1 where the class is none of them, or the child.
    children = set(network.class_children)
    families = [(i, *network.parents[i]) for i in network.nodes]
    of_class, *tables = counts.tables([network.class_parents, *families])
    found = [of_class.reshape(-1, of_class.shape[-1]).T[..., None]]
    for family, table in zip(families, tables, strict=True):
        by_class = table.reshape(len(table), -1, table.shape[-1])
        found.append(by_class if family[0] in children else by_class.sum(axis=-1, keepdims=True))
    nodes = found
    acll, error = (None, None) if any(counts.data.n_missing) else _acll(counts, network, strengths)
    scores = NetworkScores(
        ll=sum(float(log_likelihood(n)) for n in nodes),
        bic=sum(float(bic(n)) for n in nodes),
        aic=sum(float(aic(n)) for n in nodes),
        k2=sum(float(k2(n)) for n in nodes),
        bdeu=sum(float(bdeu(n, strengths.bdeu)) for n in nodes),
        acll=acll,
    )
    return ScoredNetwork(scores, error)


def _acll(counts: Counts, network: Dag, strengths: Strengths) -> tuple[float, float | None]:
    """Return aCLL at its best parameters, and its relative error as an approximation of their CLL."""
    k, n = counts.data.n_labels, float(counts.class_counts().sum())
    line = dirichlet_approximation(k, n) if strengths.prior is None else prior_approximation(strengths.prior, k)
    tables = acll_tables(counts, network, line.beta, strengths.pseudo_counts)
    approximate, exact = approximate_cll(counts, tables, line), closed_form(counts, tables).cll
    return approximate, abs(approximate - exact) / abs(exact) if exact else None


def mean_scores(scored: Sequence[ScoredNetwork]) -> ScoredNetwork:
    """Return the mean of every figure over several networks; None where any of them has none."""
    scores = NetworkScores(*(_mean(values) for values in zip(*(one.scores for one in scored), strict=True)))  # type: ignore[arg-type]
    return ScoredNetwork(scores, _mean([one.acll_relative_error for one in scored]))


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(values) else None


def approximate_cll(counts: Counts, tables: Tables, line: LinearApproximation) -> float:
    """Return aCLL of any network tables: sum over rows of ln U_y - beta (sum over c of ln U_c) - gamma, in nats."""
    found = counts.tables([family.attributes for family in tables.families])
    # a bias of 0, where the class has parents, adds nothing
    terms = [(counts.class_counts(), tables.bias)]
    terms += [
        (n.reshape(weights.shape), weights)
        for family, n, weights in zip(tables.families, found, tables.weights, strict=True)
        if family.by_class
    ]
    total = sum(float((class_contrasts(n, line.beta) * weights).sum()) for n, weights in terms)
    return total - float(counts.class_counts().sum()) * float(line.gamma)


def _prior(text: str) -> str | None:
    try:
        return ClassPairPrior().parse(text)
    except ValueError:
        return None
