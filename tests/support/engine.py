"""An engine with one model, and what tests ask of it."""

from collections.abc import Sequence

from antiphon.backends.models import ModelTable
from antiphon.backends.protocol import Backend
from antiphon.core.scope import Scope
from antiphon.engine.engine import Engine, EngineOptions
from antiphon.engine.reader import Reader
from antiphon.engine.run import Run
from antiphon.stores.protocol import Store
from antiphon.v1.event_pb2 import ResponseStreamEvent
from antiphon.v1.response_pb2 import Response
from antiphon.v1.responses_service_pb2 import CreateResponseRequest
from tests.support.clock import Clock
from tests.support.store import SteeredStore
from tests.support.stream import messages_of

__all__ = ["MODEL", "OTHER", "SCOPE", "a_request", "an_engine", "answer", "read_all", "stream"]

MODEL = "m"
SCOPE = Scope(project="ours")
OTHER = Scope(project="theirs")

# Never up in a test: what waits for longer waits for ever.
LONG_SECONDS = 3_600.0


def an_engine(
    backend: Backend,
    store: Store | None = None,
    *,
    store_by_default: bool = True,
    accept_seconds: float = LONG_SECONDS,
    clock: Clock | None = None,
) -> Engine:
    """Returns an engine whose model `MODEL` is answered by a backend."""
    return Engine(
        SteeredStore() if store is None else store,
        ModelTable({MODEL: backend}),
        EngineOptions(store_by_default=store_by_default, accept_seconds=accept_seconds),
        clock=Clock() if clock is None else clock,
    )


def a_request(
    text: str = "hi",
    *,
    parent: str | None = None,
    stream: bool = False,
    store: bool | None = None,
) -> CreateResponseRequest:
    """Returns a request to the model."""
    return CreateResponseRequest(
        model=MODEL, input_text=text, previous_response_id=parent, stream=stream, store=store
    )


async def answer(
    engine: Engine, text: str = "hi", *, parent: str | None = None, scope: Scope = SCOPE
) -> Response:
    """Asks, and returns the final response."""
    run = await engine.create(scope, a_request(text, parent=parent))
    return (await run.result()).response


async def stream(engine: Engine, text: str = "hi") -> Run:
    """Asks for a stream, and returns the run as its answer begins."""
    return await engine.create(SCOPE, a_request(text, stream=True))


async def read_all(reader: Reader | None) -> Sequence[ResponseStreamEvent]:
    """Reads to the end of a run, and closes the reader."""
    assert reader is not None
    found = []
    while entries := await reader.read():
        found += messages_of(entries)
    reader.close()
    return found
