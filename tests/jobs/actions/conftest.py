"""The people and the programs of scenes of actions are those of the admin and the API."""

from tests.jobs.admin.conftest import as_root, offered, person, root
from tests.jobs.api.conftest import _own_limits, caller

__all__ = ["_own_limits", "as_root", "caller", "offered", "person", "root"]
