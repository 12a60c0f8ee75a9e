"""The files that bncli writes and reads again.

model, predictors, provenance     the model file: its description, its arrays, and how the model was fitted
cuts, structure, counts, codes    what the steps before `fit` pass on
monitors, traces                  what scoring counted; the iterations of an optimizer
archive                           the ZIP container of models and counts, with its checksum
file_kinds                        what kind of file this is, from its first bytes
arrow_sizes                       checks the sizes that an Arrow file claims
"""
