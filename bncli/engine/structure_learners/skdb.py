"""Selective k-dependence classifier: KDB with the number of parents and of attributes chosen by leave-one-out.

KDB (Sahami 1996) with at most k parents orders the attributes by falling I(X_i; Y) and lists each one's parents by
falling I(X_i; X_j | Y). Here both lists are cut short: of all k' <= k and all prefixes of the attribute order, 0
to n attributes, those with the lowest loss on the rows, each left out in its turn, are taken (Martinez, Webb, Chen &
Zaidi 2016, Journal of Machine Learning Research 17). Losses, with p_t = P(y_t | x_t) without row t:

    rmse = sqrt( mean of (1 - p_t)^2 ),    error = mean of [y_t is not predicted],    log-loss = mean of -ln p_t

Conventions: ties (at 12 significant digits) go to fewer parents, then to fewer attributes. No attribute at all may
win: then none tells of the class. Networks with parents whose tables come to more than 2^27 entries (1 GiB) are not
candidates. Under `--missing-policy marginalize`, the choice takes a missing value for one more level (see
`bncli.engine.structure_search.missing_levels`). Cost: KDB's counting pass over all pairs, then a few passes for each
attribute and k'.
"""

from __future__ import annotations

import numpy as np

from bncli.engine.counting.counts import Counts
from bncli.engine.counting.table_batches import MAX_ENTRIES
from bncli.engine.kernels.information import rounded
from bncli.engine.structure_search.k_dependence import Ordered, order_attributes
from bncli.engine.structure_search.leave_one_out import nested_losses
from bncli.engine.structure_search.missing_levels import with_missing_levels
from bncli.engine.structures.structure import Dag
from bncli.watch import Note, Watch, silent


def learn(counts: Counts, *, k: int, loss: str, watch: Watch = silent) -> Dag:
    """The network of lowest leave-one-out loss; attributes that are not chosen stay outside it."""
    counts = with_missing_levels(counts, "skdb", watch)
    data = counts.data
    ordered = order_attributes(counts, k, watch)
    members = [(i, ordered.parents[i]) for i in ordered.order]
    n_k = _candidates(counts, ordered, min(k, max(len(members) - 1, 0)))
    losses = nested_losses(data, members, n_k, loss, watch)
    # infinite losses compare as the largest number: their digits cannot be rounded
    compared = rounded(np.where(np.isinf(losses), np.finfo(float).max, losses))
    # argmin takes the first of equals: fewer parents, then fewer attributes
    best_k, n_chosen = divmod(int(compared.argmin()), losses.shape[1])
    chosen = ordered.order[:n_chosen]
    parents: list[tuple[int, ...]] = [()] * len(data.schema.attributes)
    for i in chosen:
        parents[i] = ordered.parents[i][:best_k]
    found = f"the first {n_chosen} of {len(members)} attributes and k = {best_k}"
    watch(Note(f"skdb chose {found}: leave-one-out {loss} {losses[best_k, n_chosen]:.6g}{_left_out(n_k)}"))
    return Dag(tuple(parents), tuple(sorted(chosen)), method="skdb", options={"k": k, "loss": loss})


def _candidates(counts: Counts, ordered: Ordered, k: int) -> list[int]:
    """For each prefix of the order, one more than the highest k' up to k whose tables fit together; at least 1."""
    schema = counts.data.schema
    limits, totals = [], [0] * (k + 1)
    for i in ordered.order:
        entries = len(schema.labels) * schema.cardinalities[i]
        for n_parents in range(len(totals)):
            if 1 <= n_parents <= len(ordered.parents[i]):
                entries *= schema.cardinalities[ordered.parents[i][n_parents - 1]]
            totals[n_parents] += entries
        totals = totals[: max(1, sum(total <= MAX_ENTRIES for total in totals))]
        limits.append(len(totals))
    return limits


def _left_out(n_k: list[int]) -> str:
    """What the choice did not run over, in words."""
    if not n_k or n_k[-1] == n_k[0]:
        return ""
    return f" (k above {n_k[-1] - 1} was tried with fewer attributes only: larger tables do not fit)"
