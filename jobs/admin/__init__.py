"""The admin of Fairshift: one module a model, on the stock Django admin."""

# While the modules are being written (other engineers run the tree meanwhile): import only those
# that are there. To be put back to a plain import list once all seven exist.
from importlib import import_module
from importlib.util import find_spec

for _name in ("audit", "job", "owner", "run", "submission", "target", "worker"):
    if find_spec(f"jobs.admin.{_name}"):
        import_module(f"jobs.admin.{_name}")
