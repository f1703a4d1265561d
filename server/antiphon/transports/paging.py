"""Pages as the typed services ask for them."""

from __future__ import annotations

from antiphon.core.page import DEFAULT_LIMIT, PageRequest
from antiphon.v1.conversations_service_pb2 import ListConversationItemsRequest
from antiphon.v1.responses_service_pb2 import ListInputItemsRequest

__all__ = ["page_request"]


def page_request(asked: ListInputItemsRequest | ListConversationItemsRequest) -> PageRequest:
    """Returns which page a request asks for; the newest items come first unless it says so.

    Args:
        asked: the request, checked.
    """
    return PageRequest(
        limit=asked.limit if asked.HasField("limit") else DEFAULT_LIMIT,
        ascending=asked.order == "asc",
        after=asked.after,
        before=asked.before,
    )
