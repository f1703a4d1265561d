"""Media: what can be told of images, files and sounds without looking into them."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Iterable
from typing import Final

from antiphon.v1.content_pb2 import Content, InputFile

__all__ = ["described"]

_DATA_URL: Final = re.compile(r"data:([\w.+-]{1,40}/[\w.+-]{1,80})?((?:;[^,;]{0,80})*),", re.ASCII)
_BLANK: Final = re.compile(r"\s")
_NAME: Final = re.compile(r"[^\w.() +-]")
_LONGEST_NAME: Final = 80


def described(parts: Iterable[Content]) -> list[str]:
    """Returns what a model sees of the parts that are no text: kind, type and size.

    Args:
        parts: the parts of a message.
    """
    return [text for text in map(_described, parts) if text]


def _described(part: Content) -> str:
    kind = part.WhichOneof("kind")
    if kind in ("input_image", "computer_screenshot"):
        image = part.input_image if kind == "input_image" else part.computer_screenshot
        detail = f"detail {image.detail or 'auto'}"
        return f"an image ({_source(image.image_url, image.file_id)}, {detail})"
    if kind == "input_file":
        return f"a file ({_file(part.input_file)})"
    if kind == "input_audio":
        sound = part.input_audio.input_audio
        return f"a sound (audio/{sound.format}, {_size(sound.data)} bytes)"
    return ""


def _file(file: InputFile) -> str:
    told = []
    if file.filename:
        told.append(_name(file.filename))
    if file.file_data:
        data = file.file_data
        if data.startswith("data:"):
            told.append(_data(data))
        else:
            guessed, _ = mimetypes.guess_type(_name(file.filename))
            told.append(f"{guessed or 'application/octet-stream'}, {_size(data)} bytes")
    else:
        told.append(_source(file.file_url, file.file_id))
    return ", ".join(told)


def _source(url: str, file_id: str) -> str:
    if url.startswith("data:"):
        return _data(url)
    if url:
        # An address may be a secret.
        return "by URL"
    return f"file id {_name(file_id)}" if file_id else "nothing in it"


def _data(url: str) -> str:
    match = _DATA_URL.match(url)
    if match is None:
        return "of an unknown type"
    data = url[match.end() :]
    size = _size(data) if ";base64" in match[2].lower() else len(data)
    return f"{match[1] or 'text/plain'}, {size} bytes"


def _size(data: str) -> int:
    """Returns how many bytes a text in base64 stands for."""
    digits = len(data) - len(_BLANK.findall(data)) - data.count("=")
    return digits * 3 // 4


def _name(text: str) -> str:
    return _NAME.sub("_", text[:_LONGEST_NAME])
