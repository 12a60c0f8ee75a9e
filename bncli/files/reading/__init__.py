"""Tables, from bytes to `Columns`. Each step uses only modules above it in this list.

source              what to read: paths, and what the user says about missing values, dates and bad rows
byte_streams        find the files, decompress them, decode their text
csv_text            cut text into blocks of whole rows; the header; malformed rows
numbers, dates, values   what a text means: decimal marks, percentages, dates, missing values
column_builder      one column while its rows arrive block by block and its type is still open
arrow_files         the same blocks out of Parquet and Arrow files
column_roles        which column is the class, which are attributes, which weigh the rows
table               several files as one table of parsed blocks; blocks are parsed on several threads, in order
column_meaning      columns that are dates, percentages, identifiers or leaks, and the notes about them
training_rows       a table to learn from: two rounds where it does not fit into memory, types found over all rows
rows_by_schema      rows to test or to score, read and encoded as a model's schema says
column_summaries    the counts behind `bncli describe`
"""
