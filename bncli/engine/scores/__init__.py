"""Scores of a family, one module per word typed after --structure-score: how well its parents explain a child.

Contract: `family_scores(counts[, number]) -> Array` and a constant `EQUIVALENT`. `counts` has the shape
(..., r, q, K): batch axes, the child's r values, one flat axis of its q attribute-parent configurations (q = 1
without any), and the class, which is a parent too. `number` is the one written after the word, as 1 in `bdeu:1`.
The result has the batch axes' shape, is in nats, and higher is better. The score of a network is the sum of its
families' scores. A score is equivalent if the arc j -> i gains as much as i -> j:

    score(i | class, j) - score(i | class) = score(j | class, i) - score(j | class)

N is the sum of the family's counts. Rows may be weighted, so counts need not be whole.
"""
