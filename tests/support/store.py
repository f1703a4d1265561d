"""A store that waits or fails where a test says so."""

from collections.abc import Sequence

from antiphon.core.scope import Scope
from antiphon.stores.memory import Bounds, MemoryStore
from antiphon.stores.protocol import Turn, TurnContent, TurnEnd
from tests.support.gate import Gate

__all__ = ["SteeredStore"]


class SteeredStore(MemoryStore):
    """The store in memory, behind gates and faults.

    A fault is raised, and a gate waited at, before the store itself is asked.
    """

    def __init__(self) -> None:
        super().__init__(Bounds(max_turns=1_000, max_bytes=1 << 24))
        self.gates: dict[str, Gate] = {}
        """By the name of a method, where it waits."""
        self.faults: dict[str, Exception] = {}
        """By the name of a method, what it raises."""
        self.calls: list[str] = []
        """The names of the methods that were called."""

    async def begin(
        self,
        scope: Scope,
        response_id: str,
        parent: Turn | None,
        content: TurnContent,
        *,
        conversation_id: str = "",
        replayable: bool = False,
    ) -> None:
        await self._enter("begin")
        await super().begin(
            scope,
            response_id,
            parent,
            content,
            conversation_id=conversation_id,
            replayable=replayable,
        )

    async def finish(self, scope: Scope, response_id: str, end: TurnEnd) -> bool:
        await self._enter("finish")
        return await super().finish(scope, response_id, end)

    async def find(self, scope: Scope, response_id: str) -> Turn | None:
        await self._enter("find")
        return await super().find(scope, response_id)

    async def delete(self, scope: Scope, response_id: str) -> bool:
        await self._enter("delete")
        return await super().delete(scope, response_id)

    async def append_events(
        self, scope: Scope, response_id: str, events: Sequence[bytes], *, last: bool
    ) -> None:
        await self._enter("append_events")
        await super().append_events(scope, response_id, events, last=last)

    async def _enter(self, method: str) -> None:
        self.calls.append(method)
        if method in self.gates:
            await self.gates[method].enter()
        if method in self.faults:
            raise self.faults[method]
