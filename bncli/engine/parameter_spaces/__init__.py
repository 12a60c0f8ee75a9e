"""Spaces of discriminative parameters: their maps to tables, what an iteration in them costs, their preconditioners."""
