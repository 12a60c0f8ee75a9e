"""The report page of a model, section by section."""
