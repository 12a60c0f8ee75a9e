"""Rows: the columns as they were read, the schema learned from them, and their codes in row blocks.

- `columns`: raw and coded columns, and tables of them: where reading ends and the engine begins
- `number_formats`: how numbers and dates are written
- `schema`: the class, its labels, and the cuts or levels of every attribute
- `cutting`: learn a schema from columns, and encode the columns with it
- `encoding`: encode columns under a schema that exists
- `dataset`: the encoded rows in blocks, and sums over them (`Dataset.reduce`)
- `splits`: stratified folds and samples: the one place where rows are split
- `class_weights`: the factors by which the rows of each class are weighted
- `monotone_directions`: attributes along which the log-odds of a label only rise, or only fall
"""
