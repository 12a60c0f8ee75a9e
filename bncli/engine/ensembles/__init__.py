"""Weighted averages of models: the candidates of `auto`, and boosted trees."""
