"""Parameter learners, one module per word typed after --param.

Contract: `learn(counts, structure, *, <options>, watch) -> Parameters`, with the options that the catalogue names. A
discriminative learner supplies only `space(counts, structure, *, <options>) -> ParameterSpace`; the optimization is
shared.
"""
