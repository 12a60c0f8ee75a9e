"""Whether one method beats another on one data set: the t-test for folds that share training rows.

The differences d_1, ..., d_n over the folds of (repeated) cross-validation are not independent, since any two training
sets overlap. The plain paired t-test takes them for independent and finds differences where there are none, ever more
of them with more repeats. Nadeau & Bengio (2003, Machine Learning 52) widen the variance by what the overlap hides:

    t = mean(d) / sqrt((1 / n + n_test / n_train) variance(d)),   Student's distribution with n - 1 degrees of freedom

With folds of one size, n_test / n_train = s / (1 - s), s = 1 / folds the share of the rows that is tested.

Decided here: all differences 0 is p = 1; all equal but not 0, t infinite. Give it differences in which noise in the
last digits is 0 already (`paired_differences` of significance.py makes them). Cost: two sums.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bncli.engine.evaluation.significance import PairedT, paired_differences, t_test
from bncli.errors import BncliError


def corrected_resampled_t(differences: ArrayLike, test_share: float) -> PairedT:
    """The corrected test of differences (n,), first less second, a fold an element; 0 < test_share < 1."""
    d = np.asarray(differences, np.float64)
    if not 0 < test_share < 1:
        raise BncliError(f"the share of rows tested lies between 0 and 1, not at {test_share}")
    return t_test(paired_differences(d, np.zeros_like(d)), overlap=test_share / (1 - test_share))
