"""Both clients of the official Python SDK, asked in the same words."""

import inspect
from collections.abc import Iterator
from contextlib import AsyncExitStack
from functools import cached_property
from typing import Any, Final

import openai
from openai._legacy_response import LegacyAPIResponse

from tests.e2e.server import Server

__all__ = ["RAW", "STREAMING", "Sdk", "connect", "connect_async", "operations", "resolve", "told"]

RAW: Final = "with_raw_response"
STREAMING: Final = "with_streaming_response"

# Strict: whatever does not fit the SDK's types is an error.
_OPTIONS: Final[dict[str, Any]] = {
    "api_key": "unused",
    "max_retries": 0,
    "_strict_response_validation": True,
}


def connect(server: Server, **options: Any) -> openai.OpenAI:
    """Returns the synchronous client of a server."""
    return openai.OpenAI(base_url=f"{server.url}/v1", **{**_OPTIONS, **options})


def connect_async(server: Server, **options: Any) -> openai.AsyncOpenAI:
    """Returns the asynchronous client of a server."""
    return openai.AsyncOpenAI(base_url=f"{server.url}/v1", **{**_OPTIONS, **options})


class Sdk:
    """One client of the SDK, whose answers are read to their end.

    Args:
        client: the client.
    """

    def __init__(self, client: openai.OpenAI | openai.AsyncOpenAI) -> None:
        self.client: Any = client

    async def __call__(self, path: str, *args: Any, **options: Any) -> Any:
        """Calls a method, and returns what it answers: of a stream or a list, everything.

        Args:
            path: the method, from the client on: `responses.create`.
            args: its arguments.
            options: its arguments by name.
        """
        value = resolve(self.client, path)(*args, **options)
        async with AsyncExitStack() as stack:
            return await read(value, stack)


async def read(value: Any, stack: AsyncExitStack) -> Any:
    """Returns what an answer of the SDK comes to.

    A stream is the list of its events, a page the list of all items from it on, a helper for
    streams its events and its final response, and a raw response what is in it.

    Args:
        value: the answer.
        stack: keeps open what must not be closed before it is read.
    """
    if isinstance(value, openai.APIResponse | openai.AsyncAPIResponse | LegacyAPIResponse):
        assert value.status_code == 200
        assert value.headers["x-request-id"]
        return await read(value.parse(), stack)
    if isinstance(value, openai.BaseModel) and not hasattr(value, "get_next_page"):
        return value
    if hasattr(value, "__aiter__"):
        found = [each async for each in value]
    elif hasattr(value, "__iter__"):
        found = list(value)
    elif inspect.isawaitable(value):
        return await read(await value, stack)
    elif hasattr(value, "__aenter__"):
        return await read(await stack.enter_async_context(value), stack)
    elif hasattr(value, "__enter__"):
        return await read(stack.enter_context(value), stack)
    else:
        return value
    if hasattr(value, "get_final_response"):
        final = value.get_final_response()
        return found, await final if inspect.isawaitable(final) else final
    return found


def told(model: Any) -> dict[str, Any]:
    """Returns an object of the SDK's as JSON has it."""
    # What the SDK parsed itself does not fit its declared types.
    members: dict[str, Any] = model.to_dict(warnings=False)
    return members


def resolve(client: Any, path: str) -> Any:
    """Returns what a path of attributes leads to."""
    for name in path.split("."):
        client = getattr(client, name)
    return client


def operations(resource: Any, path: str) -> Iterator[str]:
    """Yields the path of every method that a resource and those under it have.

    Args:
        resource: the resource.
        path: its path.
    """
    for name in sorted({*dir(type(resource)), *vars(resource)}):
        if name.startswith("_"):
            continue
        declared = inspect.getattr_static(type(resource), name, None) or vars(resource)[name]
        if isinstance(declared, cached_property | property):
            # The wrappers of what is below are reached from below.
            if RAW not in path and STREAMING not in path:
                yield from operations(getattr(resource, name), f"{path}.{name}")
        else:
            assert callable(declared), f"{path}.{name} is something else"
            yield f"{path}.{name}"
