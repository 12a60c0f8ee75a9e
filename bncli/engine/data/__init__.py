"""Rows: the columns as they were read, the schema learned from them, and their codes in row blocks.

columns, number_formats     where reading ends and the engine begins: `Columns`; how numbers and dates are written
schema                      the class, its labels, and the cuts or levels of every attribute
cutting                     learn a schema from columns, and encode the columns with it
encoding                    encode columns under a schema that exists
dataset                     the encoded rows in blocks, and sums over them (`Dataset.reduce`)
splits                      stratified folds: the one function by which rows are split
class_weights, monotone_directions   what a user may say about labels and about the direction of an effect
"""
