"""Settings that are lists: in the environment one line, its parts separated by commas."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, SecretStr
from pydantic_settings import NoDecode


def _parts(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return tuple(part.strip() for part in value.split(",") if part.strip())


Names: TypeAlias = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_parts)]
Secrets: TypeAlias = Annotated[tuple[SecretStr, ...], NoDecode, BeforeValidator(_parts)]
