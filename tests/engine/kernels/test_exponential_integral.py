"""Against scipy, from where the fraction is used on."""

from __future__ import annotations

import numpy as np
from scipy.special import exp1

from bncli.engine.kernels.exponential_integral import exponential_integral


def test_scipy() -> None:
    z = np.concatenate([np.linspace(1.0, 50.0, 500), np.geomspace(50.0, 700.0, 50)])
    np.testing.assert_allclose(exponential_integral(z), exp1(z), rtol=1e-13)


def test_far_out_it_vanishes() -> None:
    np.testing.assert_array_equal(exponential_integral(np.array([1e3, 1e19])), 0)
