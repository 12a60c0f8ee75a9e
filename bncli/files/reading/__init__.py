"""Tables, from bytes to `Columns`. Each module uses only modules above it in this list.

- `source`: what to read and how, and the row blocks in which tables are read
- `single_values`: the patterns of numbers and dates; the values of one row in Python
- `byte_streams`: the files of a table, decompressed and decoded
- `numbers`, `dates`: numbers and dates written as text
- `values`: convert strings to numbers, dates, levels and codes; describe values that do not fit
- `csv_text`: text files: header, blocks of whole rows, malformed rows
- `arrow_files`: Parquet and Arrow files: the same row blocks from record batches
- `table`: several files as one table; blocks are parsed on several threads, in order
- `column_roles`: which column is the class, which are attributes, which holds the row weights
- `column_builder`: one column while its rows arrive block by block and its type is still open
- `column_meaning`: columns that are dates, percentages, identifiers or codes, and the notes about them
- `split_columns`: the columns of groups and of time, by which rows are split
- `training_rows`: a table to learn from, with types found over all rows; a sample if it does not fit in memory
- `rows_by_schema`: rows to test or to score, encoded with a model's schema
- `rows_by_cuts`: rows to count, and the second pass over a table that does not fit in memory, encoded by given cuts
- `column_summaries`: the counts that `bncli describe` reports
"""
