"""A store that waits or fails where a test says so."""

from antiphon.core.scope import Scope
from antiphon.stores.memory import MemoryStore
from antiphon.stores.protocol import Turn, TurnContent, TurnEnd
from tests.support.gate import Gate

__all__ = ["SteeredStore"]


class SteeredStore:
    """The store in memory, behind gates and faults.

    A fault is raised, and a gate waited at, before the store itself is asked.
    """

    def __init__(self) -> None:
        self.inner = MemoryStore(1_000, 1 << 24)
        self.gates: dict[str, Gate] = {}
        """By the name of a method, where it waits."""
        self.faults: dict[str, Exception] = {}
        """By the name of a method, what it raises."""
        self.calls: list[str] = []
        """The names of the methods that were called."""

    async def begin(
        self, scope: Scope, response_id: str, parent: Turn | None, content: TurnContent
    ) -> None:
        await self._enter("begin")
        await self.inner.begin(scope, response_id, parent, content)

    async def finish(self, scope: Scope, response_id: str, end: TurnEnd) -> bool:
        await self._enter("finish")
        return await self.inner.finish(scope, response_id, end)

    async def find(self, scope: Scope, response_id: str) -> Turn | None:
        await self._enter("find")
        return await self.inner.find(scope, response_id)

    async def delete(self, scope: Scope, response_id: str) -> bool:
        await self._enter("delete")
        return await self.inner.delete(scope, response_id)

    async def _enter(self, method: str) -> None:
        self.calls.append(method)
        if method in self.gates:
            await self.gates[method].enter()
        if method in self.faults:
            raise self.faults[method]
