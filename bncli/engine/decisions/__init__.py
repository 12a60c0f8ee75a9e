"""What is made of probabilities once a model has given them; none of it changes the model's own.

prior.py: the same probabilities under other class frequencies. class_weights.py in `engine/data` is where frequencies
are changed for learning; here is the way back.
"""
