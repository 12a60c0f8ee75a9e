"""Kikuchi-Bayes: classifiers made of regions, overlapping sets of attributes that share a table with the class.

- `model_paths`: counting numbers of overlapping regions, submodels, the path of models, the tables of one model
- `search_trace`: the degrees of freedom, likelihoods, posteriors and bootstrap losses of the steps of a search
- `candidate_gains`: how much each candidate would add to the log-likelihood of the current model, or upper bounds on it

A region is a tuple of attribute indices, ascending, without the class; () is the class alone. The search itself is
`bncli.engine.structure_learners.kikuchi`.
"""
