"""Encryption keys of scenes, and the rings that are made of them."""

from base64 import b64encode
from typing import Any, Final


def _key(number: int) -> str:
    return f"{number}:{b64encode(bytes([number]) * 32).decode()}"


KEY_1: Final = _key(1)
KEY_2: Final = _key(2)
KEY_3: Final = _key(3)


def use_ring(settings: Any, *keys: str) -> None:
    """Give this process a ring of these keys, the last of which encrypts; without one, no ring."""
    settings.FAIRSHIFT = {**settings.FAIRSHIFT, "ENCRYPTION_KEYS": ",".join(keys)}
