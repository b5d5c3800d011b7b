"""The pytest plugin for projects' own tests: runs without Redis and without a worker process.

pytest finds `plugin` by its entry point; the other modules are loaded with its fixture.
"""
