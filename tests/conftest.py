"""Settings of hypothesis for every test: no deadlines; on CI the same examples every time."""

import os

from hypothesis import settings

settings.register_profile("robomodel", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("robomodel")
