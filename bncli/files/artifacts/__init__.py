"""The files that bncli writes and reads again.

model                                       the model file
predictors, families, provenance            parts of it: tables and their families, and how the model was fitted
cuts, structure, counts, codes              the files that the steps before `fit` pass on
monitors, traces                            what scoring counted; the iterations of an optimizer
archive                                     the ZIP container of models and counts, with its checksum
file_kinds                                  recognises what kind of file this is by its first bytes
arrow_sizes                                 checks the sizes that an Arrow file claims
"""
