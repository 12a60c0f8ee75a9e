"""Functions of arrays only: no networks, no schemas, no options.

- `arrays`: names of array types, sums in the log domain, mixed-radix cell numbers and counts of cells
- `binning`: interval codes, groups of equal weight, distinct values in order
- `value_grouping`: groups of the values of a categorical column
- `information`: mutual information, and how much the class varies among levels, from contingency tables
- `passes`: the conditional log-likelihood of coded rows, its gradient and Hessian products
- `gram`: weighted Gram matrices of indicator columns
- `preconditioning`: approximate inverses of the Hessian
"""
