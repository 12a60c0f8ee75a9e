"""What holds for every test: no deadline for hypothesis, since a busy machine is not a fault of the code."""

from hypothesis import settings

settings.register_profile("house", deadline=None, max_examples=50)
settings.load_profile("house")
