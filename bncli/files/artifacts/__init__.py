"""The files that bncli writes and reads again.

model, predictors, penalties, recipes, attributes    the model file and its parts
cuts, structure, counts, codes, binned_tables        what the steps before `fit` pass on
monitors, traces                                     what scoring counted; the iterations of an optimizer
archive                                              the ZIP container of models and counts, with its checksum
recognition                                          what kind of file this is, from its first bytes
"""
