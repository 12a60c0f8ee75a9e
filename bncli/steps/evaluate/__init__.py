"""Cross-validate learning options, or test a model on a table."""
