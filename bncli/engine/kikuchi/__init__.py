"""Kikuchi-Bayes: classifiers made of overlapping regions, sets of attributes that are looked up with the class.

Contract: a region is a tuple of attribute indices, ascending, the class left out; () is the class alone. What a region
adds to a model depends on the subsets that no region of the model contained before (`structures.region_graph`)
and on the smoothed relative frequencies of regions (`submodels`); nothing here chooses regions.
"""
