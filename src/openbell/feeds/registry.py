"""The feeds that there are, found by looking: a package in feeds/ that defines FEED is one."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from openbell import feeds
from openbell.feeds.declaration import FeedKind
from openbell.market.errors import SettingsError


@cache
def all_feeds() -> dict[str, FeedKind]:
    """Every feed by its name."""
    packages = sorted(each.name for each in pkgutil.iter_modules(feeds.__path__) if each.ispkg)
    found: list[FeedKind] = [importlib.import_module(f"{feeds.__name__}.{name}").FEED for name in packages]
    return {kind.name: kind for kind in found}


def feed_of(feed: str) -> FeedKind:
    """The feed of a value of OPENBELL_FEED. Raises `SettingsError`."""
    for kind in all_feeds().values():
        if kind.fits(feed):
            return kind
    known = ", ".join(kind.shown for kind in all_feeds().values())
    raise SettingsError(f"OPENBELL_FEED is {feed!r}: use one of {known}")
