"""The engine: pure functions from tables to models and from models to probabilities.

No files, no printing, no clock, no global state, no hidden randomness. Start reading at `learn.py` and `model.py`.
"""
