"""The wire's settings: who may ask, how often and how much. Reads no environment.

`app.py` fills them. Every default is written here and nowhere else.
"""

from __future__ import annotations

from limits import parse_many
from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from studio.listed import Names, Secrets


class ApiSettings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    # Who may ask. Without keys everybody may.
    keys: Secrets = ()  # who may ask, separated by commas; none: everybody
    origins: Names = ()  # web pages of other sites that may ask (CORS), or *

    # How often: "60/minute" or "10/second;1000/hour". Empty: no limit.
    key_rate: str = ""  # requests of one key, like 60/minute
    address_rate: str = ""  # requests of one address, like 10/second;1000/hour

    # How much, told before any work is done.
    body_bytes: int = Field(16 * 2**20, ge=1024)  # of one request at most
    audio_bytes: int = Field(10 * 2**20, ge=1024)  # of one recording at most
    message_bytes: int = Field(128 * 2**10, ge=1024)  # a WebSocket message of text
    batch_items: int = Field(32, ge=1)  # of one batch at most
    batch_parallel: int = Field(8, ge=1)  # items of one batch in the engine at a time
    saved_voices: int = Field(1000, ge=0)  # in the library at most
    sockets: int = Field(256, ge=1)  # WebSockets at a time
    utterances: int = Field(4, ge=1)  # of one socket, spoken or waiting

    # How long.
    idle_timeout: float = Field(30.0, gt=0)  # seconds that a silent socket stays open
    stall_timeout: float = Field(300.0, gt=0)  # seconds that a listener may take nothing

    @field_validator("keys")
    @classmethod
    def _filled(cls, keys: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        if any(not key.get_secret_value().strip() for key in keys):
            raise ValueError("a key must not be empty")
        return keys

    @field_validator("key_rate", "address_rate")
    @classmethod
    def _readable(cls, rate: str) -> str:
        try:
            parse_many(rate) if rate else None
        except ValueError:
            raise ValueError("write a rate like 60/minute or 10/second;1000/hour") from None
        return rate
