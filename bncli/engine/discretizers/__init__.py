"""Discretizers: where to cut a numeric attribute. The module's name is the word typed after `--discretize`.

- `mdl`: cuts by the entropy of the class (Fayyad & Irani)
- `equal_frequency`: intervals of about equal weight
- `equal_width`: intervals of equal width

Every module has one function:

    cut_points(values, labels, n_labels, weights, *, <options>) -> tuple[float, ...]

- values (N,): finite numbers, float64 or a narrower type that holds the same numbers; rows without one are left out;
- labels (N,): unsigned class codes below n_labels;
- weights (N,): positive float64, or None if every row weighs 1;
- the result: cuts in ascending order, each at or above the lowest value and below the highest, so that
  (-inf, c1], (c1, c2], ..., (cm, inf) are the intervals. Without cuts the attribute is not informative.

A module may have a second function, `uncut(values, labels, n_labels)` with values (columns, N), which returns for each
column whether it certainly has no cut. It is called for N up to the module's FEW_ROWS and rows of weight 1, because in
wide tables many columns are then tested at once.

The order of rows never matters, and a row of weight 2 is the row twice. Keyword options have defaults and are the ones
that the catalogue lists for the method. A method that uses the labels is also listed in SUPERVISED.
"""

SUPERVISED = ("mdl",)
"""Discretizers whose cuts depend on the labels; held-out losses are measured with cuts from the other rows."""
