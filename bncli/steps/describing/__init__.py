"""What `describe` says of a table: of each column, of the class, and the command line it recommends."""
