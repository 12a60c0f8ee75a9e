"""Discretizers: where to cut a numeric attribute. The name of each module is a value of `--discretize`.

- `mdl`: cuts by the entropy of the class (Fayyad & Irani)
- `equal_frequency`: intervals of about equal weight
- `equal_width`: intervals of equal width

Every module defines the function

    cut_points(values, labels, n_labels, weights, *, <options>) -> tuple[float, ...]

- values (N,): finite values, float64 or a narrower type that represents them exactly; the caller leaves out rows
  without a finite value;
- labels (N,): unsigned class codes below n_labels;
- weights (N,): positive float64, or None if every row weighs 1;
- the result: cuts in ascending order, each at or above the lowest value and below the highest, so that
  (-inf, c1], (c1, c2], ..., (cm, inf) are the intervals. Without cuts there is a single interval.

A module may also define `uncut(values, labels, n_labels)` with values (columns, N), which returns for each
column whether it certainly has no cut. It saves time in wide tables, because it tests many columns at once, and is
called only if the rows have no weights and N is at most the module's FEW_ROWS.

The order of rows never matters, and a row of weight 2 counts as two equal rows. Keyword options have defaults and are
the ones that the catalogue lists for the method. A method that uses the labels is also listed in SUPERVISED.
"""

SUPERVISED = ("mdl",)
"""Discretizers whose cuts depend on the labels; held-out losses are computed with cuts from the other rows."""
