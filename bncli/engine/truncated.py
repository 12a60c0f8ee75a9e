"""A Newton direction, not quite: conjugate gradients on Hd = -g that end early (Dembo & Steihaug 1983, Math. Prog. 26).

They lower the quadratic model m(d) = g'd + d'Hd / 2 step by step, preconditioned by Q, a guess of the inverse Hessian,
and end when the residual r = -g - Hd is small beside the gradient, r'Qr <= TRUNCATION^2 g'Qg: a rough direction is
enough where the next point has another Hessian. (The test of Nash & Sofer, by the progress of the model, ends too soon
where Q is poor: on the hardest problems it took two to three times as many products.)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bncli.engine.objective import Precondition, Vector

TRUNCATION = 0.3
MAX_PRODUCTS = 200


def newton_direction(
    product: Callable[[Vector], Vector], precondition: Precondition, gradient: Vector
) -> tuple[Vector, int]:
    """(a direction of descent, products taken); `product` multiplies by H, positive semidefinite."""
    d = np.zeros(len(gradient))
    residual = -gradient
    direction = precondition(residual)
    fit = first = float(residual @ direction)
    for i in range(1, MAX_PRODUCTS + 1):
        image = product(direction)
        curvature = float(direction @ image)
        if curvature <= 0.0:  # rounding, or a direction that changes nothing
            return (d, i) if i > 1 else (direction, i)
        alpha = fit / curvature
        d += alpha * direction
        residual -= alpha * image
        z = precondition(residual)
        last, fit = fit, float(residual @ z)
        if fit <= TRUNCATION**2 * first:
            break
        direction = z + (fit / last) * direction
    return d, i
