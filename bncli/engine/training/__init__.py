"""Training: what parameter learners share, from the conditional log-likelihood of the rows to the penalty of a fit.

`likelihood` passes over the rows, `optimization` maximises in the coordinates of a parameter space, `whitening` makes
that quick; `penalty_cv` and `early_stopping` choose how far to go; `generative` and `acll_tables` have closed forms.
"""
