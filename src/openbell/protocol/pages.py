"""Pages: `offset` counts from the newest; the order inside a page is the caller's choice."""

from __future__ import annotations

from typing_extensions import TypedDict


class Pagination(TypedDict):
    """Where a page stands in the whole."""

    offset: int
    limit: int
    total: int
    has_more: bool


def pagination(offset: int, limit: int, total: int) -> Pagination:
    """Where a page of so many, after so many, stands among all."""
    return {"offset": offset, "limit": limit, "total": total, "has_more": offset + limit < total}
