"""Pages: `offset` counts from the newest; the order inside a page is the caller's choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from typing_extensions import TypedDict

T = TypeVar("T")


class Pagination(TypedDict):
    """Where a page stands in the whole."""

    offset: int
    limit: int
    total: int
    has_more: bool


class Page(TypedDict, Generic[T]):
    """One page of items."""

    items: list[T]
    pagination: Pagination


def page(items: Sequence[T], offset: int, limit: int, *, oldest_first: bool = False) -> Page[T]:
    """Cut a page from items that run from oldest to newest; inside it they run as `oldest_first` says."""
    total = len(items)
    end = max(0, total - offset)
    chosen = list(items[max(0, end - limit) : end])
    if not oldest_first:
        chosen.reverse()
    return {
        "items": chosen,
        "pagination": {"offset": offset, "limit": limit, "total": total, "has_more": end - limit > 0},
    }
