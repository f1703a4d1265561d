"""The OpenAPI document of the REST surface, with an operator's changes."""

from __future__ import annotations

import json
from collections.abc import Collection
from importlib.metadata import version
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from antiphon.json import openapi
from antiphon.json.plan import descriptor_of

# All messages that operations name have to be known before the document is written.
from antiphon.v1 import (
    conversations_service_pb2,
    error_pb2,
    model_pb2,
    responses_service_pb2,
    rest_service_pb2,
)

__all__ = ["openapi_document"]

_MODULES = (conversations_service_pb2, model_pb2, responses_service_pb2)


def openapi_document(
    descriptors: bytes, built: Collection[str], override: bytes | None = None
) -> bytes:
    """Returns the document as JSON.

    Args:
        descriptors: the serialised descriptor set of the schema, with its comments.
        built: the names of the operations to list.
        override: a JSON merge patch (RFC 7396) of the operator's, or None.

    Raises:
        ValueError: the override is not a JSON object.
    """
    assert all(module.DESCRIPTOR.package == "antiphon.v1" for module in _MODULES)
    document = openapi.openapi(
        rest_service_pb2.DESCRIPTOR.services_by_name["RestService"],
        openapi.comments(FileDescriptorSet.FromString(descriptors)),
        title="Responses API",
        version=version("antiphon"),
        built=built,
        errors=descriptor_of(error_pb2.ErrorResponse),
    )
    if override is not None:
        try:
            patch = json.loads(override)
        except RecursionError:
            raise ValueError("the override is nested too deeply") from None
        if not isinstance(patch, dict):
            raise ValueError("the override is not a JSON object")
        document = _merge(document, patch)
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode()


def _merge(target: Any, patch: Any) -> Any:
    """Applies a merge patch: null removes a member, objects are merged, all else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge(merged.get(key), value)
    return merged
