"""Pagination: `offset` counts from the newest item; each tool chooses the order within a page."""

from __future__ import annotations

from typing_extensions import TypedDict


class Pagination(TypedDict):
    """The position of a page in the whole list."""

    offset: int
    limit: int
    total: int
    has_more: bool


def pagination(offset: int, limit: int, total: int) -> Pagination:
    """Returns the position of a page of `limit` items after the first `offset` of `total`."""
    return {"offset": offset, "limit": limit, "total": total, "has_more": offset + limit < total}
