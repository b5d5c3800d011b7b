"""Builds in a folder of its own: `pip install ./fairshift` leaves nothing in the checkout.

All else is said in pyproject.toml, which cannot name a folder that is made for one build.
"""

import atexit
import shutil
import tempfile

from setuptools import setup

folder = tempfile.mkdtemp(prefix="fairshift-build-")
atexit.register(shutil.rmtree, folder, ignore_errors=True)
setup(options={"build": {"build_base": folder}, "egg_info": {"egg_base": folder}})
