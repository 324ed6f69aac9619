"""Finds all feeds: the packages in feeds/, each of which defines FEED."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from openbell import feeds
from openbell.feeds.declaration import FeedKind
from openbell.market.errors import SettingsError


@cache
def all_feeds() -> dict[str, FeedKind]:
    """Returns all feeds by name."""
    packages = sorted(each.name for each in pkgutil.iter_modules(feeds.__path__) if each.ispkg)
    found: list[FeedKind] = [importlib.import_module(f"{feeds.__name__}.{name}").FEED for name in packages]
    return {kind.name: kind for kind in found}


def feed_of(feed: str) -> FeedKind:
    """Returns the feed that a value of OPENBELL_FEED selects. Raises `SettingsError`."""
    for kind in all_feeds().values():
        if kind.matches(feed):
            return kind
    known = ", ".join(kind.shown for kind in all_feeds().values())
    raise SettingsError(f"OPENBELL_FEED is {feed!r}: use one of {known}")
