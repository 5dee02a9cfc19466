"""All settings of an operator; `app.py` fills them from arguments and environment.

Defaults and descriptions are written here, or in the group that a setting belongs to;
docs/settings.md is the table that `table()` prints.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import BeforeValidator, Field, SecretStr, field_validator
from pydantic_settings import NoDecode

from engine import EngineSettings, Settings
from studio.layout import COMMAND, PREFIX, data_folder

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


def _parts(value: Any) -> Any:
    """Parse a list from the environment: one line, separated by commas."""
    if not isinstance(value, str):
        return value
    return tuple(part.strip() for part in value.split(",") if part.strip())


Names: TypeAlias = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_parts)]
Secrets: TypeAlias = Annotated[tuple[SecretStr, ...], NoDecode, BeforeValidator(_parts)]


class ApiLimits(Settings):
    """Limits of the API that are no settings: far above what a client needs that behaves."""

    page_rate: str = Field(
        "600/minute",
        description="Events of the page from one address. Empty: no limit. Speech from the page "
        "counts for the rate of an address as well.",
    )
    body_bytes: int = Field(16 * 2**20, ge=1024, description="Bytes of one request.")
    audio_bytes: int = Field(10 * 2**20, ge=1024, description="Bytes of one recording.")
    page_bytes: int = Field(
        2 * 2**30,
        ge=2**20,
        description="Bytes of one address to the page in an hour, project files apart.",
    )
    message_bytes: int = Field(
        128 * 2**10, ge=1024, description="Bytes of one text message of a WebSocket."
    )
    batch_items: int = Field(32, ge=1, description="Items of one batch.")
    batch_parallel: int = Field(
        8, ge=1, description="Items of one batch that run at the same time."
    )
    sockets: int = Field(256, ge=1, description="WebSockets open at the same time.")
    address_sockets: int = Field(64, ge=1, description="WebSockets of one address.")
    utterances: int = Field(4, ge=1, description="Utterances of one WebSocket that run or wait.")
    idle_timeout: float = Field(
        30.0, gt=0, description="Seconds for which a WebSocket without messages stays open."
    )
    stall_timeout: float = Field(
        300.0, gt=0, description="Seconds for which a client may read nothing of its answer."
    )


class ApiSettings(ApiLimits):
    """The API: keys, rates and sizes."""

    # Access.
    keys: Secrets = Field((), description="API keys, also the page's passwords. None: no login.")
    mcp: bool = Field(
        False,
        description="Offer tools at /mcp to programs that speak MCP: speak, list voices, design "
        "and clone. With keys they need one. Needs the extra mcp, or requirements-mcp.txt.",
    )
    origins: Names = Field(
        (), description="Other sites whose pages may send requests (CORS); * is any."
    )
    reference_consent: Literal["auto", "operator", "request"] = Field(
        "auto",
        description="Who says that a recording sent with a request may be copied: operator is "
        "whoever runs this server, request asks each request for consent: true. auto is operator "
        "on 127.0.0.1 without guests and proxies, else request.",
    )

    # Rates.
    key_rate: str = Field("", description="Requests of one key, like 60/minute. Empty: no limit.")
    address_rate: str = Field(
        "", description="Requests of one address, like 10/second;1000/hour. Empty: no limit."
    )

    # Sizes.
    saved_voices: int = Field(
        2000,
        ge=0,
        description="Voices that may be saved, and as many in the trash; past that the oldest "
        "deleted ones go for good.",
    )

    @field_validator("keys")
    @classmethod
    def _filled(cls, keys: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        if any(not key.get_secret_value().strip() for key in keys):
            raise ValueError("a key must not be empty")
        return keys

    @field_validator("key_rate", "address_rate", "page_rate")
    @classmethod
    def _readable(cls, rate: str) -> str:
        from limits import parse_many

        try:
            parse_many(rate) if rate else None
        except ValueError:
            raise ValueError("write a rate like 60/minute or 10/second;1000/hour") from None
        return rate


class ClusterLimits(Settings):
    """What is no setting of a cluster."""

    grace: float = Field(
        120.0,
        ge=0,
        description="Seconds at least that a replica which is exchanged or scaled down has to "
        "finish; more if the server's grace is longer.",
    )
    dashboard: str = Field(
        "",
        description="Address of Ray's dashboard as browsers reach it, linked on the Engine page: "
        "that of a Ray which is started here.",
    )


class ClusterSettings(ClusterLimits):
    """Many engines behind one address, served by Ray (docs/cluster.md)."""

    removed: ClassVar[dict[str, str]] = {
        "store": "mount a volume that all machines share as TIMBRE_DATA, docs/cluster.md says how"
    }

    replicas: int = Field(
        0,
        ge=0,
        le=1000,
        description="Replicas of the engine, served by Ray. 0: one engine in this process.",
    )
    max_replicas: int = Field(
        0,
        ge=0,
        le=1000,
        description="Replicas that may be started under load. 0: as many as there are.",
    )
    least: int | None = Field(
        None,
        ge=0,
        le=1000,
        description="Replicas that stay when nobody speaks, if there may be more (max_replicas). "
        "0: none; who comes first waits for one to start. Unset: as many as at the start.",
    )
    address: str = Field(
        "", description="A Ray cluster to join, like auto or 10.0.0.1:6379. Empty: this machine."
    )
    gpus: float | None = Field(
        None,
        ge=0,
        description="GPUs of a replica, or a share of one. Unset: 1 if the cluster has GPUs.",
    )
    cpus: float | None = Field(
        None,
        gt=0,
        description="Cores of a replica. Unset: 1 beside a GPU, else an equal share of them all.",
    )
    haproxy: bool = Field(
        False,
        description="Let HAProxy take HTTP instead of Ray's proxy, for more than 1,000 chunks a "
        "second on one node. All visitors count as one address then (docs/cluster.md).",
    )


class StudioLimits(Settings):
    """What is no setting of the studio."""

    superseded_days: float = Field(
        30.0,
        gt=0,
        description="Days after which audio of a script is deleted that no line, take or undo step "
        "has used since.",
    )
    guest_voices: int = Field(200, ge=0, description="Voices that one guest may save.")


class StudioSettings(StudioLimits):
    """The model, the address, the visitors, and groups for API, engine and cluster."""

    renamed: ClassVar[dict[str, str]] = {"frames": "frame_ancestors"}

    # The model.
    model: Names = Field(
        (), description="Folders or hub ids, separated by commas. None: the embedded model."
    )
    device: str = Field(
        "auto", description="auto, cpu, cuda or cuda:1; mps or xpu, which nobody has measured."
    )
    dtype: str = Field("auto", description="auto, float32, bfloat16 or float16.")
    weights: str = Field(
        "auto",
        description="On CPUs: full, 8bit or 4bit. auto takes 8 bits for large models, which is "
        "not heard; 4 bits are faster and choose otherwise: of Timbre Mini's most likely codes 7 % "
        "(first codebook) to 66 % (last) become others, in 8 bits 1 to 12 %.",
    )
    process: Literal["auto", "own", "shared"] = Field(
        "auto",
        description="own: the engine runs in a process of its own, which nothing that the page "
        "and the API do can hold up. shared: in theirs. auto is own on Linux.",
    )
    profile: str | None = Field(
        None, description="latency, throughput or cpu. Unset: chosen by the device."
    )

    # Address and data.
    data: Path = Field(
        default_factory=data_folder,
        description="The folder of voices, takes and scripts. Unset: data/ in a checkout that has "
        "one, else the system's folder for a user's data; `info` says which.",
    )
    cache: Path | None = Field(
        None,
        description="The folder where a first start keeps what later ones need not make again: on "
        "a CPU up to 1 GB a model, on a GPU 1 MB. It may be deleted. Unset: cache in the data "
        "folder.",
    )
    host: str = Field("127.0.0.1", description="The address to listen on; 0.0.0.0 is every one.")
    port: int = Field(7860, ge=1, le=65535, description="The port to listen on.")
    hosts: Names = Field(
        (),
        description="Names this server answers to, besides addresses, localhost and the "
        "machine's own; * is any. A proxy with a domain of its own needs it here.",
    )
    proxies: Names = Field(
        (),
        description="Addresses or networks of proxies whose X-Forwarded-For is believed, like "
        "127.0.0.1 or 10.0.0.0/8; without, all visitors of a proxy count as one address.",
    )
    wyoming: str = Field(
        "",
        description="A port, or an address with one, for Home Assistant's Wyoming, like 10200. It "
        "has no keys: with keys set, 127.0.0.1 unless the address is written here too. Needs "
        "the extra wyoming, or requirements-wyoming.txt.",
    )
    page: bool = Field(True, description="Serve the page; false serves the API alone.")
    guests: bool = Field(
        False,
        description="Serve strangers: each visitor has own voices and takes, nobody loads models.",
    )
    guest_days: float = Field(
        7.0, gt=0, description="Days after which what a guest has made is deleted."
    )
    guest_requests: int = Field(
        8, ge=1, description="Requests of one guest that run or wait at the same time."
    )
    guest_text: int = Field(
        20_000, ge=1, description="Characters of one request where guests are served."
    )
    frame_ancestors: Names = Field(
        (), description="Sites that may show the page in a frame, like https://example.org."
    )
    grace: float = Field(
        20.0,
        ge=0,
        description="Seconds after SIGTERM at which the server is gone, 2 at least. Requests that "
        "run have them to finish, less 5 (or half) to close.",
    )
    watermark: bool = Field(
        False,
        description="Mark all audio inaudibly. Needs the extra watermark, or "
        "requirements-watermark.txt.",
    )
    transcriber: str = Field(
        "",
        description="A faster-whisper model that fills in transcripts under Clone, on this "
        "machine: a folder, or a hub id like Systran/faster-whisper-base. Needs "
        "the extra transcribe, or requirements-transcribe.txt.",
    )
    debug: bool = Field(
        False,
        description="Show where an internal error happened; a server's log then has the messages "
        "of errors, which may quote what a visitor has sent.",
    )

    # The command line as a client.
    server: str = Field(
        "", description="A Timbre server that `say` and `voices` use instead of a local model."
    )
    key: SecretStr = Field(SecretStr(""), description="An API key for that server.")

    # Groups.
    api: ApiSettings = ApiSettings()
    engine: EngineSettings = EngineSettings()
    cluster: ClusterSettings = ClusterSettings()

    @property
    def own_machine(self) -> bool:
        """Whether only this machine can send requests."""
        return self.host in LOOPBACK and not (self.guests or self.hosts or self.proxies)

    def decided_api(self) -> ApiSettings:
        """The API's settings with `reference_consent` resolved."""
        if self.api.reference_consent != "auto":
            return self.api
        decided = "operator" if self.own_machine else "request"
        return self.api.model_copy(update={"reference_consent": decided})

    def engine_changes(self) -> dict[str, Any]:
        """The engine settings that were set; the profile has the rest."""
        changes = {"max_text": self.guest_text} if self.guests else {}
        return changes | self.engine.model_dump(exclude_unset=True)


GROUPS: Final[tuple[tuple[type[Settings], str], ...]] = (
    (StudioSettings, PREFIX),
    (ApiSettings, f"{PREFIX}API_"),
    (EngineSettings, f"{PREFIX}ENGINE_"),
    (ClusterSettings, f"{PREFIX}CLUSTER_"),
)
GROUP_NAMES: Final = ("api", "engine", "cluster")


def names() -> Iterator[str]:
    """The environment variable of every setting."""
    return (row[0] for row in _rows())


def fixed() -> set[str]:
    """Variables that are read no longer."""
    now = {name for name, _, _ in _rows(settable=False)}
    for kind, prefix in GROUPS:
        old = (old for old, new in kind.renamed.items() if f"{prefix}{new.upper()}" in now)
        now |= {f"{prefix}{name.upper()}" for name in old}
    return now


def advice(variable: str) -> str:
    """Advice for a variable that is no setting."""
    for kind, prefix in reversed(GROUPS):
        name = variable.removeprefix(prefix).lower()
        if variable.startswith(prefix) and name in kind.renamed:
            return f"it is called {prefix}{kind.renamed[name].upper()} now"
        if variable.startswith(prefix) and name in kind.removed:
            return f"it is gone: {kind.removed[name]}"
    return f"no such setting; {COMMAND} settings lists what there is"


def table() -> str:
    """All settings as Markdown: variable, default, description."""
    lines = ["| variable | default | |", "|---|---|---|"]
    lines += (f"| `{name}` | {default} | {words} |" for name, default, words in _rows())
    return "\n".join(lines)


def _rows(settable: bool = True) -> Iterator[tuple[str, str, str]]:
    """Fields that a group adds to its limits are settings; those of its limits are not."""
    for kind, prefix in GROUPS:
        for name, field in kind.model_fields.items():
            if name in GROUP_NAMES or (name in vars(kind)["__annotations__"]) != settable:
                continue
            default = "" if field.default_factory else _default(field.default)
            words = (field.description or "").replace("|", "\\|")
            yield f"{prefix}{name.upper()}", default, words


def _default(value: Any) -> str:
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if isinstance(value, bool):
        value = str(value).lower()
    if isinstance(value, tuple):
        value = list(value) if value else ""
    return "" if value in ("", None) else f"`{value}`"
