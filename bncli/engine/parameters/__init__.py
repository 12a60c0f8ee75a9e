"""Parameters: the common parts of parameter learners, from the likelihood of the rows to the choice of the penalty.

- `generative`: closed forms: smoothed relative frequencies, tables of a network
- `likelihood`: the conditional log-likelihood of the rows, its gradient and products with its Hessian
- `coordinates`, `effect_coding`: maps from free parameters to tables, and their transposes
- `level_effects`: the penalty on the levels of attributes with many levels
- `optimization`: from a likelihood and coordinates to an optimum, from one start or several
- `preconditioner`, `few_rows`: approximate inverse Hessians, for all rows and for few rows with many effects
- `weighted_samples`: weighted samples of many rows for the first iterations
- `monotone`: constraints that make an effect rise or fall
- `penalty_choice`: penalty, shrinkage and arcs chosen on held-out rows
- `card_tables`: fits of the few small tables of a score card
- `cut_grids`: grids of cuts through tables of several attributes
- `uncertainty`: variances of fitted tables, for intervals of probabilities
- `network_scores`, `costs`: scores of a network; memory and operations of a fit
"""
