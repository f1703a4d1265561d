"""How long the server takes to start."""

from __future__ import annotations

import http.client
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Final

from tests.bench.table import Figure

__all__ = ["start"]

_COMMAND: Final = (
    *(sys.executable, "-m", "antiphon.cli", "serve"),
    *("--port", "0", "--grpc-port", "0"),
)
_ADDRESS: Final = re.compile(r"Gateway: http://127\.0\.0\.1:(\d+)")
_STOP_SECONDS: Final = 15.0


def start(quick: bool) -> Iterator[Figure]:
    """Yields the time from the command to the first answer through the gateway.

    Args:
        quick: whether to measure just enough to see that it works.
    """
    times = [_start() for _ in range(1 if quick else 5)]
    yield Figure(
        name="start: from the command to the first answer",
        value=statistics.median(times),
        unit="s",
        least=3,
        aim=1.5,
        better="less",
        detail=f"median of {len(times)}, best {min(times):.2f} s, worst {max(times):.2f} s",
    )


def _start() -> float:
    begun = time.perf_counter()
    with subprocess.Popen(_COMMAND, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            greeting = process.stdout.readline()
            address = _ADDRESS.match(greeting)
            if address is None:
                raise AssertionError(f"the server said {greeting!r}")
            _ask(int(address[1]))
            return time.perf_counter() - begun
        finally:
            process.terminate()
            process.wait(_STOP_SECONDS)


def _ask(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/healthz")
        status = connection.getresponse().status
    finally:
        connection.close()
    if status != http.HTTPStatus.OK:
        raise AssertionError(f"the server is not healthy: {status}")
