"""`Secret[str]`: the annotation of an argument whose value no page, answer or export shows."""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeVar

T = TypeVar("T")


class Hidden:
    """The mark in the annotation; in a JSON schema it is `writeOnly`."""

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> Any:
        return {**handler(core_schema), "writeOnly": True}


HIDDEN: Final = Hidden()

Secret = Annotated[T, HIDDEN]
