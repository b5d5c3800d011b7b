"""The version of Fairshift: read by the build, recorded of each worker, shown by the pages."""

__version__ = "0.1.0"
