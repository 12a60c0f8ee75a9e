"""A Newton direction, not quite: conjugate gradients on Hd = -g that end early (Dembo & Steihaug 1983, Math. Prog. 26).

They lower the quadratic model m(d) = g'd + d'Hd / 2 step by step, preconditioned by Q, a guess of the inverse Hessian,
and end when the residual r = -g - Hd is small beside the gradient, r'Qr <= TRUNCATION^2 g'Qg: a rough direction is
enough where the next point has another Hessian. (The test of Nash & Sofer, by the progress of the model, ends too soon
where Q is poor: on the hardest problems it took two to three times as many products.)

Where H is singular a direction may have no curvature but that of rounding, and a step along it would be rounding too.
They end there as well: at a direction p whose curvature in the metric of Q, p'Hp / p'Q^-1 p, is under FLAT times the
largest before it. The metric costs nothing: p_i'Q^-1 p_i = r_i'Qr_i + beta_i^2 p_(i-1)'Q^-1 p_(i-1).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bncli.engine.kernels.arrays import Array
from bncli.engine.optimizers.objective import Precondition

TRUNCATION = 0.3
MAX_PRODUCTS = 200
FLAT = 1e-12


def newton_direction(
    product: Callable[[Array], Array], precondition: Precondition, gradient: Array
) -> tuple[Array, int]:
    """(a direction of descent, products taken); `product` multiplies by H, positive semidefinite."""
    d = np.zeros(len(gradient))
    residual = -gradient
    direction = precondition(residual)
    fit = first = length = float(residual @ direction)
    steepest = 0.0
    for i in range(1, MAX_PRODUCTS + 1):
        image = product(direction)
        curvature = float(direction @ image)
        if curvature <= FLAT * steepest * length:
            return (d, i) if i > 1 else (direction, i)
        steepest = max(steepest, curvature / length)
        alpha = fit / curvature
        d += alpha * direction
        residual -= alpha * image
        z = precondition(residual)
        last, fit = fit, float(residual @ z)
        if fit <= TRUNCATION**2 * first:
            break
        beta = fit / last
        direction = z + beta * direction
        length = fit + beta**2 * length
    return d, i
