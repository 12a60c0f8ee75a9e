"""The sections of a report, one module a question of the reader; each gathers aggregates and draws them."""
