"""Explanation: what every attribute, and every set of them, adds to the log-odds of a class.

Contract of this room: pure functions of a model and of codes. Start reading at `purification.py`; `effects.py` looks at
a model as a whole, `contributions.py` at single rows, and both tell the same numbers. Of very many tables the purified
terms stand in `pure_tables.py`, and `joint_effects.py` adds up those over the same attributes.
"""
