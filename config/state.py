"""The folder where this installation keeps its own state; never in git."""

import hashlib
import os
import re
import secrets
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

PROJECT = Path(__file__).resolve().parent.parent
ROOT_STATE = Path("/var/lib/fairshift")


def default_state_dir() -> Path:
    """Return `.fairshift` in the project or, for root, a folder outside of all home folders.

    For root, the embedded servers run as another user, who may not reach the project's folder.
    """
    if os.geteuid() != 0:
        return PROJECT / ".fairshift"
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", PROJECT.name).strip("-.") or "project"
    return ROOT_STATE / f"{name}-{hashlib.sha256(bytes(PROJECT)).hexdigest()[:8]}"


def kept_secret(folder: Path, name: str) -> str:
    """Return the secret in this file, which is made at the first call for its owner only."""
    path = folder / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            _make_secret(path)
        return path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise ImproperlyConfigured(
            f"Cannot keep a secret in {folder}: {error.strerror}."
            " Set FAIRSHIFT_STATE_DIR to a folder that this user may write to."
        ) from error


def _make_secret(path: Path) -> None:
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_urlsafe(48))
    try:
        # A link, not a rename: of two processes that make it, both use the first one's.
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
