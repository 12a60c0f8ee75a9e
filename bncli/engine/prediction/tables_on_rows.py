"""What tables say of coded rows: the scorer applied to a data set, as learners ask for it.

Where rows are asked about once, and the tables are many and small, this costs a fraction of fusing the rows for them
(`counting.fusion`); results are those of the scorer to the last bit, whatever the number of threads.
"""

from __future__ import annotations

import numpy as np

from bncli.engine.data.dataset import Dataset, RowBlock
from bncli.engine.kernels.arrays import Array
from bncli.engine.model import Predictor
from bncli.engine.prediction.scoring import Scorer, compile_predictor, log_probabilities


def log_probabilities_of(predictor: Predictor, data: Dataset) -> Array:
    """ln P(y | x_t) of every row, (K, N); unobserved values, coded by the cardinality, are averaged over."""
    scorer = compile_predictor(predictor, data.schema)
    return np.concatenate(data.map(_of_block, scorer), axis=1)


def _of_block(block: RowBlock, scorer: Scorer) -> Array:
    return log_probabilities(scorer, [block.codes[a] for a in scorer.used], block.n_rows)
