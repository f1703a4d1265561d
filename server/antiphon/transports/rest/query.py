"""Parameters of a URL, read into the message that the typed service takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from google.protobuf.message import Message

from antiphon.json import InvalidValue, check
from antiphon.json.plan import Field, descriptor_of, plan
from antiphon.transports.rest.message import RestRequest

__all__ = ["read_flag", "read_parameters"]

M = TypeVar("M", bound=Message)

_FLAGS: Final = {"true": True, "false": False, "1": True, "0": False}
_DIGITS: Final = 20


def read_parameters(message: type[M], request: RestRequest) -> M:
    """Returns a message whose fields are the parameters of a URL, checked by its rules.

    Args:
        message: the message's class; parameters that it has no field for are ignored.
        request: the request.

    Raises:
        InvalidValue: a parameter is not what its field accepts.
    """
    fields: dict[str, Any] = {}
    for member in plan(descriptor_of(message)).members:
        if not isinstance(member, Field):
            continue
        name = member.name
        if name in request.path:
            fields[name] = request.path[name]
        elif request.query.get(name):
            fields[name] = _value(member, request.query[name])
    made = message(**fields)
    check(made)
    return made


def read_flag(query: Mapping[str, Sequence[str]], name: str) -> bool:
    """Returns a parameter that is true or false; missing or empty is false.

    Args:
        query: the query parameters.
        name: the parameter's name.

    Raises:
        InvalidValue: it is neither.
    """
    text = query.get(name, ("",))[-1]
    return _flag(text, name) if text else False


def _value(member: Field, texts: Sequence[str]) -> Any:
    if member.repeated:
        return list(texts)
    read = _READERS.get(member.kind)
    return texts[-1] if read is None else read(texts[-1], member.name)


def _flag(text: str, name: str) -> bool:
    flag = _FLAGS.get(text.lower())
    if flag is None:
        raise InvalidValue("must be true or false", "invalid_value", name)
    return flag


def _integer(text: str, name: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        raise InvalidValue("must be an integer", "invalid_type", name)
    number = int(text) if len(text) < _DIGITS else 2**63
    if not -(2**63) <= number < 2**63:
        raise InvalidValue("is out of range", "invalid_value", name)
    return number


_READERS: Final[Mapping[str, Callable[[str, str], Any]]] = {"bool": _flag, "int": _integer}
