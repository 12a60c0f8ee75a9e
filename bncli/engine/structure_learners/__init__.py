"""Structure learners, one module per word typed after --structure.

Contract: `learn(counts, *, <options>, watch) -> Dag`, with the options that the catalogue names. The network spans
the informative attributes of `counts.data.schema`; the result depends on the counts alone, and every tie goes to
the attribute that comes first in the schema.
"""
