"""Compare several learners over several tables."""
