"""Rows: columns as they were read, the schema learnt from them, and their codes in row blocks.

`columns` is where reading ends and the engine begins; `cutting` learns a schema and the codes under it, `encoding`
finds the codes under a schema that is there; `dataset` holds them, and `folds` divides the rows.
"""
