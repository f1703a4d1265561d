"""The Python source that plans are compiled to, and functions made when first called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Function", "Scope", "Source", "lazy"]

Function = Callable[..., Any]
Scope = dict[str, Any]
"""The global names of a family of compiled functions, which call each other through it."""


class Source:
    """Lines of Python source with their indentation.

    Args:
        scope: the global names that the source can use.
    """

    def __init__(self, scope: Scope) -> None:
        self._lines: list[str] = []
        self._depth = 0
        self._scope = scope

    def add(self, line: str) -> None:
        """Adds one line at the current indentation."""
        self._lines.append("    " * self._depth + line)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """Adds a header, and indents what is added inside."""
        self.add(header)
        self._depth += 1
        yield
        self._depth -= 1

    def bind(self, value: Any) -> str:
        """Gives an object a global name, and returns the name."""
        name = f"_{len(self._scope)}"
        self._scope[name] = value
        return name

    def define(self, name: str, title: str) -> Function:
        """Runs the source, and returns the function of that name which it defines.

        Args:
            name: the function's name in the source.
            title: what tracebacks call the source.
        """
        code = compile("\n".join(self._lines), f"<{title}>", "exec")
        exec(code, self._scope)  # noqa: S102 - made from our own descriptors alone
        function: Function = self._scope[name]
        return function


def lazy(table: dict[str, Any], key: str, make: Callable[[], Function]) -> None:
    """Puts a function into a table that makes its real self when it is first called.

    Messages contain each other, so that none can be compiled before all others; and a server
    should not wait at its start for messages that nobody sends.

    Args:
        table: where the function is looked up at every call.
        key: its key there; nothing happens if there is one already.
        make: returns the real function, which replaces this one in the table.
    """
    if key in table:
        return

    def first_call(*args: Any) -> Any:
        function = table[key] = make()
        return function(*args)

    table[key] = first_call
