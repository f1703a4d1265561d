"""The command `antiphon`."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import structlog
import uvloop

from antiphon.collector import relax_collector
from antiphon.gateway import GatewayError
from antiphon.settings import Logging, Settings, SettingsError, load

if TYPE_CHECKING:
    from antiphon.app import Addresses, App

__all__ = ["main"]


@click.group(context_settings={"auto_envvar_prefix": "ANTIPHON"})
@click.version_option(package_name="antiphon", prog_name="antiphon")
def main() -> None:
    """A self-hosted server for the Responses API."""


@main.command(context_settings={"auto_envvar_prefix": "ANTIPHON", "show_default": True})
@click.option("--host", envvar="ANTIPHON_HOST", show_envvar=True, help="Address to listen on.")
@click.option(
    "--port", envvar="ANTIPHON_PORT", show_envvar=True, type=int, help="The gateway's port; 0: any."
)
@click.option(
    "--grpc-port",
    envvar="ANTIPHON_GRPC_PORT",
    show_envvar=True,
    type=int,
    help="The gRPC server's port; 0: any.",
)
@click.option(
    "--config",
    envvar="ANTIPHON_CONFIG",
    show_envvar=True,
    type=click.Path(path_type=Path),
    help="A TOML file with settings.",
)
@click.option(
    "--no-gateway",
    envvar="ANTIPHON_NO_GATEWAY",
    show_envvar=True,
    is_flag=True,
    help="Serve gRPC alone, without Envoy.",
)
@click.option(
    "--insecure",
    envvar="ANTIPHON_INSECURE",
    show_envvar=True,
    is_flag=True,
    help="Listen on other addresses than loopback without API keys.",
)
def serve(config: Path | None, no_gateway: bool, insecure: bool, **options: Any) -> None:
    """Serve the Responses API: JSON, SSE and gRPC through the gateway, gRPC directly."""
    given = {name: value for name, value in options.items() if value is not None}
    if no_gateway:
        given["gateway"] = False
    if insecure:
        given["insecure"] = True
    try:
        settings = load(config, **given)
    except SettingsError as error:
        raise click.ClickException(str(error)) from None
    _configure_logging(settings.logging)
    # Read when gRPC is imported: this process starts Envoy and no copy of itself, so that gRPC
    # need not prepare for a fork, and warn that it cannot.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    from antiphon.app import PortError

    try:
        died = uvloop.run(_serve(settings))
    except (PortError, GatewayError, SettingsError) as error:
        raise click.ClickException(str(error)) from None
    if died is not None:
        raise click.ClickException(f"{died}; the server has stopped")


@main.command()
def hash_key() -> None:
    """Read an API key from standard input and print what the settings hold of it."""
    from antiphon.core.keys import hash_key as hashed

    key = click.prompt("API key", hide_input=True, err=True).strip()
    click.echo(hashed(key))


@main.group()
def schema() -> None:
    """The schema of the API, for other languages."""


@schema.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
def export(directory: Path) -> None:
    """Write the .proto files, a self-contained descriptor set and the OpenAPI document."""
    from antiphon.app import export_schema

    try:
        export_schema(directory)
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}") from None
    click.echo(f"{directory}: proto/, antiphon.binpb, openapi.json")


async def _serve(settings: Settings) -> str | None:
    """Serves until a signal comes, or until a part dies.

    Returns:
        What to say of the part that died, or None after a signal.
    """
    from antiphon.app import App

    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    app = App(settings)
    try:
        addresses = await app.start()
        relax_collector()
        click.echo(_greeting(addresses))
        sys.stdout.flush()
        return await _first(stop, app)
    finally:
        await app.stop()


def _greeting(addresses: Addresses) -> str:
    """Returns where the server is, and a command to try it with."""
    if addresses.gateway is None:
        return f"gRPC:    {addresses.grpc}"
    body = '{"model":"sim","input":"Hello","stream":true}'
    return (
        f"Gateway: http://{addresses.gateway}  (REST, SSE, gRPC, gRPC-Web)\n"
        f"gRPC:    {addresses.grpc}\n"
        "Try it:\n"
        f"  curl -N http://{addresses.gateway}/v1/responses "
        f"-H 'content-type: application/json' -d '{body}'"
    )


async def _first(stop: asyncio.Event, app: App) -> str | None:
    """Waits for the signal or a death, whichever comes first."""
    signalled = asyncio.ensure_future(stop.wait())
    died = asyncio.ensure_future(app.wait_died())
    done, pending = await asyncio.wait({signalled, died}, return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    return died.result() if died in done else None


def _configure_logging(settings: Logging) -> None:
    """Sends the log to standard error, so that standard output holds the addresses alone."""
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if settings.format == "json"
        # Plain tracebacks: others show the values of variables, which may be a client's.
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[settings.level.upper()]
        ),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


if __name__ == "__main__":
    main()
