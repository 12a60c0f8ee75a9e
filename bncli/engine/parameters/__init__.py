"""Parameters of a structure: their coordinates, likelihood, penalty and optimization."""
