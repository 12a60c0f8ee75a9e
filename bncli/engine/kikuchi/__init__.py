"""Kikuchi-Bayes: classifiers made of overlapping regions, sets of attributes that share a table with the class.

- `model_paths`: submodels, the path of models along the regions, the tables of one model
- `search_trace`: the steps of a search: degrees of freedom, likelihoods, posteriors, bootstrap losses
- `candidate_gains`: what every candidate would add to the log-likelihood of the current model
- `candidate_tables`: tables of many candidates in one array, and their sums over rows
- `upper_bounds`: bounds on gains, so that only some candidates need be looked up

A region is a tuple of attribute indices, ascending, without the class; () is the class alone. The search itself is
`bncli.engine.structure_learners.kikuchi`.
"""
