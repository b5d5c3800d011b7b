"""Builds in a folder of its own: `pip install ./fairshift` leaves nothing in the checkout.

All else is said in pyproject.toml, which cannot name a folder that is made for one build, nor
packages that stand elsewhere than where they are imported: the top-level `templates` becomes
`jobs/templates` in the wheel.
"""

import atexit
import shutil
import tempfile

from setuptools import find_namespace_packages, setup

folder = tempfile.mkdtemp(prefix="fairshift-build-")
atexit.register(shutil.rmtree, folder, ignore_errors=True)
code = find_namespace_packages(include=["fleet*", "jobs*"])  # `config` is an installation's own
pages = [f"jobs.templates.{name}" for name in find_namespace_packages("templates")]
setup(
    packages=[*code, "jobs.templates", *pages],
    package_dir={"jobs.templates": "templates"},
    options={"build": {"build_base": folder}, "egg_info": {"egg_base": folder}},
)
