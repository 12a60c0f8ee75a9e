"""Functions of arrays only: no networks, no schemas, no options.

- `arrays`: names of array types, sums in the log domain
- `cells`: mixed-radix cell numbers, and counts of cells
- `binning`: interval codes, groups of equal weight, distinct values in order
- `level_variation`: how much the class varies among the levels of a category
- `value_grouping`: groups of the values of a categorical column
- `information`: mutual information from contingency tables
- `passes`: the conditional log-likelihood of coded rows, its gradient and Hessian products
- `gram`: weighted Gram matrices of indicator columns
- `preconditioning`: approximate inverses of the Hessian
"""
