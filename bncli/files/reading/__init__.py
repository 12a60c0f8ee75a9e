"""How tables are read, a step a module; `bncli.files.table` is the way in and describes their order."""
