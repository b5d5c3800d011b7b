"""Settings of all tests."""

from hypothesis import settings

# One busy machine must not fail what another one passes: the same examples each time, at any speed.
# `--hypothesis-profile random` plays more than three times as many, and new ones each time.
settings.register_profile("same", deadline=None, derandomize=True, max_examples=30)
settings.register_profile("random", deadline=None)
settings.load_profile("same")
