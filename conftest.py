"""How hard the property tests try: ``pytest --hypothesis-profile=thorough`` for longer runs."""

import os

from hypothesis import settings

# Nothing here is slow by itself, but the machine may be; hangs are caught by pytest's timeout.
settings.register_profile("quick", deadline=None)
settings.register_profile("thorough", deadline=None, max_examples=5000)
# The same examples on every run, so that a red build is about the change, not about luck.
settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "quick")
