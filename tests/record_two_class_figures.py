"""Record the two-class figures of other packages: optbinning, scikit-learn, statsmodels and dcurves.

    python tests/record_two_class_figures.py > tests/engine/evaluation/two_class_figures.json

needs `pip install optbinning scikit-learn statsmodels dcurves`; `test_two_class.py` compares with what is recorded.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np


def bins(seed: int, n_bins: int) -> dict[str, Any]:
    """The weight of evidence and information value by optbinning, whose event is the denominator."""
    from optbinning import OptimalBinning

    rng = np.random.default_rng(seed)
    values = rng.integers(n_bins, size=400)
    labels = (rng.random(400) < 0.15 + 0.6 * values / n_bins).astype(int)
    cuts = np.arange(1, n_bins) - 0.5
    binning = OptimalBinning(dtype="numerical", user_splits=cuts, user_splits_fixed=[True] * len(cuts))
    binning.fit(values.astype(float), labels)
    table = binning.binning_table.build()
    counts = [[int(((values == v) & (labels == y)).sum()) for y in (0, 1)] for v in range(n_bins)]
    assert table["Count"][:n_bins].tolist() == [sum(row) for row in counts]
    woe, iv = ([float(x) for x in table[name][:n_bins]] for name in ("WoE", "IV"))
    return {"counts": counts, "woe": [-x for x in woe], "iv": iv, "total": float(table["IV"]["Totals"])}


def predictions(seed: int, n_rows: int, digits: int) -> dict[str, Any]:
    """KS by scikit-learn's ROC curve, calibration by statsmodels, net benefit by dcurves at 0.01, 0.02, ..., 0.99."""
    import pandas as pd
    import statsmodels.api as sm
    from dcurves import dca
    from sklearn.metrics import roc_curve

    rng = np.random.default_rng(seed)
    log_odds = rng.normal(-0.5, 1.5, n_rows)
    p = np.clip(1 / (1 + np.exp(-log_odds)), 0.001, 0.999).round(digits)
    labels = (rng.random(n_rows) < 1 / (1 + np.exp(-0.7 * log_odds - 0.3))).astype(int)
    fpr, tpr, _ = roc_curve(labels, p, drop_intermediate=False)
    fitted = sm.GLM(labels, sm.add_constant(np.log(p / (1 - p))), family=sm.families.Binomial()).fit(tol=1e-14)
    offset = np.log(p / (1 - p))
    large = sm.GLM(labels, np.ones(n_rows), family=sm.families.Binomial(), offset=offset).fit(tol=1e-14)
    table = pd.DataFrame({"label": labels, "model": p})
    thresholds = [t / 100 for t in range(1, 100)]
    curves = dca(data=table, outcome="label", modelnames=["model"], thresholds=thresholds).sort_values("threshold")
    benefit = {name: [float(x) for x in curves.net_benefit[curves.model == name]] for name in ("model", "all")}
    return {
        "p": p.tolist(),
        "labels": labels.tolist(),
        "ks": float((tpr - fpr).max()),
        "intercept": float(fitted.params[0]),
        "slope": float(fitted.params[1]),
        "intervals": fitted.conf_int().tolist(),
        "large": [float(large.params[0]), *large.conf_int()[0].tolist()],
        "net_benefit": benefit["model"],
        "net_benefit_all": benefit["all"],
    }


if __name__ == "__main__":
    recorded = {"bins": [bins(1, 5), bins(2, 3)], "predictions": [predictions(1, 200, 6), predictions(2, 150, 2)]}
    json.dump(recorded, sys.stdout)
    print()
