"""Structures: directed acyclic graphs and sets of regions over the attributes, and the scores of their families.

- `structure`: both kinds, by attribute index, and their families
- `named_structure`: both kinds by column names, as files hold them
- `arc_constraints`: required, forbidden and ordered arcs (`--knowledge`)
- `regrouping`: families that use an attribute with fewer intervals than its cuts define
- `scores`: the scores that structure learners maximise: ll, aic, bic, k2, bdeu, acll, acll-uniform; and the
  linear approximation behind acll
"""
