"""The parts of `bncli compare`: who takes part, how it is run, what is kept of it, and what follows from it."""
