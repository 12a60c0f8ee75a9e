"""Structures: directed acyclic graphs and regions over the attributes, their families, and the graph theory below.

`structure` has the two kinds and what they have in common; `named_structure` the same by names, as files hold them;
`binning` and `regrouping` let a family look at an attribute through fewer intervals. The other modules are functions
of numbered nodes: trees, branchings, orders, separation, counting numbers of regions.
"""
