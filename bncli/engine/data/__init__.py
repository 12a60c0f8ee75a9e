"""Rows: the columns as they were read, the schema learned from them, and their codes in row blocks.

- `columns`: raw and coded columns, and tables of them, which the engine gets from the readers; class weights
- `schema`: the class, its labels, the cuts or levels of every attribute, and how numbers and dates are written
- `cutting`: learn a schema from columns, and encode the columns with it; monotonicity constraints
- `dataset`: encode columns with an existing schema; encoded rows in blocks, and sums over them (`Dataset.reduce`)
- `splits`: stratified folds, splits by time, and samples: the one place where rows are split
"""
