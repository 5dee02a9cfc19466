"""The connection to a server, with clear errors."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from engine import TimbreError

PATIENCE = httpx.Timeout(10, read=300, pool=None)  # waiting in a full queue may take minutes


class ServerError(TimbreError):
    """The server refused, or cannot be reached."""


@dataclass(frozen=True)
class Connection:
    """A server's address, as typed, and key."""

    address: str
    key: str = ""

    @property
    def base(self) -> str:
        whole = self.address if "://" in self.address else f"http://{self.address}"
        return whole.rstrip("/").removesuffix("/v1")

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"} if self.key else {}

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.base, headers=self.headers, timeout=PATIENCE)

    def check(self, answer: httpx.Response) -> None:
        """Raises ServerError with the server's message."""
        if not answer.is_success:
            raise self.refusal(answer.status_code, answer.read())

    def refusal(self, status: int, body: bytes) -> ServerError:
        if status == 401:
            return ServerError(f"{self.base} wants a valid key. Give it with --key or TIMBRE_KEY.")
        try:
            return ServerError(str(json.loads(body)["error"]["message"]))
        except (ValueError, KeyError, TypeError):
            return self.not_timbre(status)

    def not_timbre(self, status: int) -> ServerError:
        message = f"{self.base} answers {status}, and not as a Timbre server does."
        return ServerError(f"{message} Check --server.")

    def interrupted(self) -> ServerError:
        return ServerError(f"{self.base} broke off in the middle. Try again.")

    def invalid_address(self) -> ServerError:
        return ServerError(f"'{self.address}' is no address. Write http://HOST:PORT.")

    def unreachable(self, error: BaseException) -> ServerError:
        if tls := _tls_error(error):
            why = getattr(tls, "verify_message", "") or tls.reason or tls
            return ServerError(
                f"No secure connection to {self.base} ({why}). Check whether --server begins with "
                "http or https; SSL_CERT_FILE names the file of a certificate of your own."
            )
        return ServerError(f"No server answers at {self.base}. Start one there, or check --server.")

    @contextmanager
    def explained_errors(self) -> Iterator[None]:
        """Convert HTTP errors to ServerError."""
        try:
            yield
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise self.invalid_address() from error
        except httpx.ConnectError as error:
            raise self.unreachable(error) from error
        except httpx.TimeoutException as error:
            raise ServerError(f"{self.base} did not answer in time. Try again later.") from error
        except httpx.TransportError as error:
            raise self.interrupted() from error


def _tls_error(error: BaseException | None) -> ssl.SSLError | None:
    """The error of TLS that led to another one."""
    while error:
        if isinstance(error, ssl.SSLError):
            return error
        error = error.__cause__ or error.__context__
    return None
