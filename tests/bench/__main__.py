"""The benchmarks: `make bench`, or `python -m tests.bench`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Final

# Read when gRPC is imported. Processes are spawned here and not forked, so that gRPC need not
# prepare for it.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

from tests.bench import table
from tests.bench.mapping import mapping
from tests.bench.memory import chain, memory, store
from tests.bench.replay import replay
from tests.bench.start import start
from tests.bench.table import Figure
from tests.bench.traffic import background, create, fanout, stream

__all__ = ["SECTIONS", "main"]

SECTIONS: Final[dict[str, Callable[[bool], Iterator[Figure]]]] = {
    "mapping": mapping,
    "create": create,
    "stream": stream,
    "memory": memory,
    "chain": chain,
    "store": store,
    "fanout": fanout,
    "background": background,
    "replay": replay,
    "start": start,
}


def main() -> None:
    """Runs the sections that are asked for, and prints one table.

    The exit status is 1 if a section could not be measured, whatever the figures are.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "--only",
        action="append",
        choices=SECTIONS,
        metavar="SECTION",
        help=f"run this section; may be repeated: {', '.join(SECTIONS)}",
    )
    parser.add_argument(
        "--quick", action="store_true", help="measure just enough to see that it works"
    )
    arguments = parser.parse_args()
    begun = time.monotonic()
    print(table.machine(), table.header(), sep="\n\n", flush=True)
    failed = False
    for name in arguments.only or SECTIONS:
        try:
            for figure in SECTIONS[name](arguments.quick):
                print(table.line(figure), flush=True)
        except Exception as error:  # noqa: BLE001 - the other sections are worth having
            failed = True
            print(f"{name}: not measured: {error}", flush=True)
    print(f"\n{time.monotonic() - begun:.0f} s in all")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
