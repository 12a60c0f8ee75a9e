"""Boosted oblivious decision trees, kept as tables: the component "boosted" of `--structure auto`.

An oblivious tree (Kohavi 1994, ECML: Bottom-up induction of oblivious read-once decision graphs; the symmetric trees of
Prokhorenkova et al. 2018, NeurIPS: CatBoost) asks the same question in all nodes of a level. So a tree of depth D is a
table over at most D attributes, each seen through a coarser binning of its codes, and a sum of trees is a sum of tables
like any other.

One module a step: `columns` (the rows as they are counted), `splits` (which cut gains most), `boosting` (tree after
tree, until rows held out gain no more), `joint_fit` (the leaves of all trees once more, together), `trees` (trees of
the members of a bag as one sum of tables).
"""
