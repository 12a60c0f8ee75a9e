"""Functions of arrays only: no networks, no schemas, no options."""
