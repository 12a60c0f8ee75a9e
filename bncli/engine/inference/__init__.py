"""Exact inference for rows with missing values: every unobserved attribute is marginalized.

- `program`: compile rows into a program: the tables they need, the order of elimination, and the operations
- `incomplete_likelihood`: run programs, forward for probabilities, backward for expected counts; the likelihood of a
  data set, through which other packages use inference
"""
