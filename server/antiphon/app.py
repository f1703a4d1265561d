"""The composition root: puts the parts together and runs them."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import grpc
import structlog
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from antiphon import resources
from antiphon.backends.documents.maker import DocumentMaker
from antiphon.backends.echo import EchoBackend
from antiphon.backends.models import ModelTable
from antiphon.backends.protocol import Backend
from antiphon.backends.sim import SimBackend
from antiphon.core.limits import RateLimiter
from antiphon.engine.conversations import Conversations
from antiphon.engine.engine import Engine, EngineOptions
from antiphon.gateway import Gateway, GatewayConfig, server_options
from antiphon.settings import Settings, SettingsError
from antiphon.stores.memory import Bounds, MemoryStore
from antiphon.stores.protocol import Store
from antiphon.transports.grpc.conversations import ConversationsServicer
from antiphon.transports.grpc.interceptor import ErrorInterceptor
from antiphon.transports.grpc.responses import ResponsesServicer
from antiphon.transports.identity import Gate
from antiphon.transports.rest.document import openapi_document
from antiphon.transports.rest.servicer import rest_handlers
from antiphon.transports.rest.surface import RestSurface
from antiphon.v1 import conversations_service_pb2, responses_service_pb2, rest_service_pb2
from antiphon.v1.conversations_service_pb2_grpc import (
    add_ConversationsServiceServicer_to_server,
)
from antiphon.v1.responses_service_pb2_grpc import add_ResponsesServiceServicer_to_server

__all__ = [
    "Addresses",
    "App",
    "PortError",
    "build_engine",
    "build_gate",
    "build_store",
    "export_schema",
]

_GRACE_SECONDS: Final = 5.0
_COVERING_LOOPBACK: Final = frozenset({"127.0.0.1", "0.0.0.0", "::", "localhost"})  # noqa: S104
"""Hosts at which the gateway, which asks on 127.0.0.1, reaches the server already."""
_SERVICES: Final = tuple(
    file.services_by_name[name].full_name
    for file, name in (
        (responses_service_pb2.DESCRIPTOR, "ResponsesService"),
        (conversations_service_pb2.DESCRIPTOR, "ConversationsService"),
        (rest_service_pb2.DESCRIPTOR, "RestService"),
    )
)

_log = structlog.get_logger(__name__)


class PortError(Exception):
    """A port cannot be listened on."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where a running server is reached.

    Args:
        grpc: host and port of the gRPC server.
        gateway: host and port of the gateway, or None without one.
    """

    grpc: str
    gateway: str | None


def build_engine(settings: Settings, store: Store, documents: DocumentMaker) -> Engine:
    """Returns the engine of the settings, with its backends.

    Args:
        settings: the settings.
        store: where responses are kept.
        documents: makes what `sim` writes by a schema; whoever made it closes it.
    """
    kinds: dict[str, Backend] = {"sim": SimBackend(documents), "echo": EchoBackend()}
    if settings.models is None:
        models = ModelTable(kinds, fallback=kinds["sim"])
    else:
        models = ModelTable({name: kinds[kind] for name, kind in settings.models.items()})
    options = EngineOptions(
        store_by_default=settings.store.default,
        replay_all=settings.store.replay == "all",
        accept_seconds=settings.accept_seconds,
        max_run_seconds=settings.max_run_seconds,
        max_event_bytes=settings.max_output_event_bytes,
        response_prefix=settings.response_id_prefix,
        concurrent_runs=settings.limits.concurrent_runs,
    )
    return Engine(store, models, options)


def build_store(settings: Settings) -> Store:
    """Returns the store of the settings.

    Args:
        settings: the settings.
    """
    kept = settings.store
    return MemoryStore(
        Bounds(
            max_turns=kept.max_responses,
            max_bytes=kept.max_bytes,
            turn_ttl_seconds=kept.response_ttl_seconds,
            max_event_bytes=kept.max_event_bytes,
            event_ttl_seconds=kept.event_ttl_seconds,
            max_conversations=kept.max_conversations,
            max_conversation_bytes=kept.max_conversation_bytes,
            conversation_ttl_seconds=kept.conversation_ttl_seconds,
        )
    )


def build_gate(settings: Settings) -> Gate:
    """Returns what lets the calls of the settings' clients in.

    Args:
        settings: the settings.
    """
    rate = settings.limits.requests_per_minute
    return Gate(
        {key.hash: key.project for key in settings.api_keys},
        user_headers=settings.isolation.user_headers,
        chat_header=settings.isolation.chat_header,
        limiter=RateLimiter(rate) if rate is not None else None,
    )


def export_schema(directory: Path) -> None:
    """Writes the schema for other languages: .proto files, descriptor set, OpenAPI document.

    Args:
        directory: where to write; it is made if it is not there.

    Raises:
        OSError: it cannot be written to.
    """
    directory.mkdir(parents=True, exist_ok=True)
    shutil.copytree(resources.proto_dir(), directory / "proto", dirs_exist_ok=True)
    shutil.copyfile(resources.descriptor_set(), directory / "antiphon.binpb")
    settings = Settings()
    store = build_store(settings)
    engine = build_engine(settings, store, DocumentMaker())
    surface = RestSurface(engine, Conversations(store), document=partial(_document, None))
    (directory / "openapi.json").write_bytes(_document(None, surface.built))


def _document(override: bytes | None, built: Collection[str]) -> bytes:
    return openapi_document(resources.descriptor_set().read_bytes(), built, override)


def _read_override(path: str | None) -> bytes | None:
    """Reads the operator's changes of the OpenAPI document, and sees that they can be applied."""
    if path is None:
        return None
    try:
        override = Path(path).read_bytes()
        _document(override, ())
    except OSError as error:
        raise SettingsError(f"openapi_override: {path}: {error.strerror}") from None
    except ValueError:
        raise SettingsError(f"openapi_override: {path}: not a JSON object") from None
    return override


class App:
    """A server: the gRPC services in this process, and Envoy beside it.

    Args:
        settings: the settings.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        store = build_store(settings)
        self._documents = DocumentMaker()
        self._engine = build_engine(settings, store, self._documents)
        self._conversations = Conversations(store)
        self._gateway: Gateway | None = None
        self._override = _read_override(settings.openapi_override)
        self._health = health.aio.HealthServicer()
        # Without the last one, a second server would share the port instead of being refused it.
        options = [*server_options(settings.max_body_bytes), ("grpc.so_reuseport", 0)]
        self._server = grpc.aio.server(interceptors=(ErrorInterceptor(),), options=options)

    async def start(self) -> Addresses:
        """Starts everything, and returns when requests are answered.

        Raises:
            PortError: the gRPC port cannot be listened on.
            GatewayError: the gateway did not start.
        """
        settings = self._settings
        gate = build_gate(settings)
        surface = RestSurface(
            self._engine,
            self._conversations,
            gate,
            max_body_bytes=settings.max_body_bytes,
            strict_fields=settings.strict_fields,
            document=partial(_document, self._override),
        )
        self._server.add_generic_rpc_handlers((rest_handlers(surface),))
        add_ResponsesServiceServicer_to_server(ResponsesServicer(self._engine, gate), self._server)
        add_ConversationsServiceServicer_to_server(
            ConversationsServicer(self._conversations, gate), self._server
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        reflection.enable_server_reflection(
            (*_SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME), self._server
        )
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        try:
            port = self._server.add_insecure_port(f"{host}:{settings.grpc_port}")
            if settings.gateway and settings.host not in _COVERING_LOOPBACK:
                self._server.add_insecure_port(f"127.0.0.1:{port}")
        except RuntimeError:
            taken = f"port {settings.grpc_port} on {settings.host} cannot be listened on"
            raise PortError(f"{taken}: is it in use?") from None
        await self._server.start()
        serving = health_pb2.HealthCheckResponse.SERVING
        for service in ("", *_SERVICES):
            await self._health.set(service, serving)
        gateway = await self._start_gateway(port) if settings.gateway else None
        return Addresses(f"{host}:{port}", None if gateway is None else f"{host}:{gateway}")

    async def _start_gateway(self, grpc_port: int) -> int:
        settings = self._settings
        config = GatewayConfig(
            host=settings.host,
            port=settings.port,
            upstream_port=grpc_port,
            body_limit=settings.max_body_bytes,
        )
        envoy = None if settings.envoy is None else Path(settings.envoy)
        self._gateway = Gateway(config, envoy=envoy)
        await self._gateway.start()
        return self._gateway.port

    async def wait_died(self) -> str:
        """Waits until a part of the server dies by itself, and returns what to say of it."""
        terminated = asyncio.ensure_future(self._server.wait_for_termination())
        parts: dict[asyncio.Future[Any], str] = {terminated: "the gRPC server stopped"}
        if self._gateway is not None:
            parts[self._gateway.died] = "the gateway died"
        done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        return parts[done.pop()]

    async def stop(self) -> None:
        """Ends what is running, each with its terminal event, and stops everything."""
        try:
            await self._health.enter_graceful_shutdown()
            await self._engine.close(self._settings.grace_seconds)
            if self._gateway is not None:
                await self._gateway.flush()
            await self._server.stop(_GRACE_SECONDS)
        finally:
            self._documents.close()
            if self._gateway is not None:
                await self._gateway.stop()
