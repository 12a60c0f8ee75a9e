"""The engine: pure functions from columns to models and from models to probabilities.

No files, no printing, no clock, no globals, no hidden randomness. Start reading at `learn.py`.
"""
