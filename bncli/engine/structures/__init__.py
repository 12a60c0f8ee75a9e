"""Structures: directed acyclic graphs and sets of regions over the attributes.

structure           the two kinds by attribute index, and what they have in common
named_structure     the same by column names, as files hold them
binning             families that use an attribute with fewer intervals than its cuts make
region_graph        counting numbers of overlapping regions
"""
