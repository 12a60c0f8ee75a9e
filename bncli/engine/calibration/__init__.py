"""From probabilities that are too bold or too timid to those that the rows of another table bear out.

`maps.py` has the maps and applies them, `fitting.py` learns one from predictions and labels.
"""
