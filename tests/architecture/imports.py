"""Who imports whom in the server, read from the source, and who may."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["RULES", "Rule", "violations"]

PACKAGE = "antiphon"

GRPC = ("grpc", "grpc_health", "grpc_reflection", "grpc_status")
CONCURRENCY = ("anyio", "asyncio", "concurrent", "multiprocessing", "threading", "uvloop")
NETWORK = ("aiohttp", "http", "httpcore", "httpx", "socket", "ssl", "urllib.request", "websockets")
PURE = GRPC + CONCURRENCY + NETWORK


@dataclass(frozen=True)
class Rule:
    """What the modules of an area may import, apart from their own area.

    Args:
        inside: prefixes of modules of the package, without the package's name.
        not_outside: prefixes of modules elsewhere that are refused.
    """

    inside: tuple[str, ...] = ()
    not_outside: tuple[str, ...] = ()


# The area of a module is the name after the package's: `antiphon.core.ids` is of `core`.
# The composition root, `app`, is the one that knows the implementations.
PROTOCOLS = ("backends.protocol", "stores.protocol")
RULES = {
    "": Rule(not_outside=PURE),
    "v1": Rule(),
    "json": Rule(("v1",), PURE),
    "core": Rule(("json", "v1"), PURE),
    "resources": Rule(not_outside=PURE),
    "settings": Rule(("core", "gateway"), PURE),
    "backends": Rule(("core", "json", "v1"), GRPC),
    "stores": Rule(("core", "json", "v1"), GRPC),
    "engine": Rule(("core", "json", "v1", *PROTOCOLS), GRPC + NETWORK),
    "transports": Rule(("engine", "core", "json", "v1", *PROTOCOLS)),
    "collector": Rule(not_outside=PURE),
    "gateway": Rule(("core", "resources"), GRPC),
    "app": Rule(("",)),
    "cli": Rule(("app", "collector", "core", "gateway", "resources", "settings"), GRPC),
}


def violations(root: Path) -> list[str]:
    """Check every module of a package against the rules.

    Args:
        root: the folder of the package.

    Returns:
        One line for each import that the rules refuse, and for each module that has no rule.
    """
    found = []
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        area = module.partition(".")[0]
        if area not in RULES:
            found.append(f"{module}: the area {area!r} has no rule")
            continue
        names = set(_imports(ast.parse(path.read_bytes()), parts[:-1]))
        found += [
            f"{module or PACKAGE} imports {name}"
            for name in sorted(names)
            if not _allowed(area, name)
        ]
    return found


def _allowed(area: str, name: str) -> bool:
    rule = RULES[area]
    if not _below(name, PACKAGE):
        return not any(_below(name, prefix) for prefix in rule.not_outside)
    inner = name.removeprefix(PACKAGE).removeprefix(".")
    return any(_below(inner, prefix) for prefix in (area, *rule.inside) if prefix or area == "app")


def _below(name: str, prefix: str) -> bool:
    return not prefix or name == prefix or name.startswith(f"{prefix}.")


def _imports(tree: ast.Module, package: tuple[str, ...]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = (PACKAGE, *package)[: len(package) + 2 - node.level]
                base = ".".join((*above, base) if base else above)
            for alias in node.names:
                # A name taken from the package itself, or from an area's package, may be a module.
                yield base if base.partition(".")[0] != PACKAGE else f"{base}.{alias.name}"
