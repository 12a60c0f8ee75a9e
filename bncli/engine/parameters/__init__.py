"""Parameters: what all parameter learners share, from the likelihood of the rows to the choice of the penalty.

generative, smoothing           closed forms: smoothed relative frequencies
likelihood                      the conditional log-likelihood of the rows, its gradient and its Hessian products
coordinates, effect_coding      maps from free parameters to tables, and their transposes
optimization, restarts          from a likelihood and coordinates to a fitted model
preconditioner, few_rows        curvature of the likelihood, for all rows and for few rows with many effects
nested_samples                  growing samples for the first iterations on many rows
penalty_cv, arc_cv, early_stopping   choices made on held-out rows; here the inner folds are drawn
monotone                        constraints that make an effect rise or fall
incomplete_space                the same for rows with missing values
network_scores, flops, memory_estimate   scores of a network; what a fit costs
"""
