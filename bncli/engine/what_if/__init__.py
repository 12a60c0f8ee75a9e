"""Questions about a row beyond its prediction: what to ask next, and what would change the decision.

`next_best` names the missing attribute that is worth asking for, `flips` the fewest changes that lead to another label.
"""
