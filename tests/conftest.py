"""What holds for every test: no deadline for hypothesis, since a busy machine is not a fault of the code.

Where the environment sets CI the examples are the same in every run; elsewhere new ones are tried each time.
"""

import os

from hypothesis import settings

settings.register_profile("house", deadline=None, max_examples=50, derandomize="CI" in os.environ)
settings.load_profile("house")
