"""What structure learners weigh: how strongly attributes depend, how well a family scores, what a network loses."""
