"""How a feed declares itself: its package defines FEED, and desk, settings, doctor and documentation follow from that.

Nothing here loads the feed: settings are read before anything is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openbell.market.provenance import Origin

if TYPE_CHECKING:
    from openbell.feeds.port import Feed
    from openbell.market.clock import Clock
    from openbell.stores.port import BarStore
    from openbell.stores.threads import Threads


@dataclass(frozen=True, slots=True)
class Option:
    """A setting that one feed or broker has for itself: OPENBELL_NAME, or the name in `openbell.toml`."""

    name: str
    default: str | bool
    help: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FeedParts:
    """What a feed is made of."""

    clock: Clock
    settings: Mapping[str, Any]
    """Every setting by its name, the feed's own options among them."""
    environ: Mapping[str, str]
    """Where vendors' own variables are."""
    store: Callable[[], BarStore]
    threads: Threads
    """Where the store is read."""
    argument: str
    """What follows the colon in OPENBELL_FEED."""


@dataclass(frozen=True, slots=True)
class FeedKind:
    """One feed."""

    name: str
    """As in OPENBELL_FEED, before a colon."""
    origin: Origin
    """What results call its data."""
    help: str
    source: str
    """What payloads call their data; `{argument}` is what follows the colon."""
    make: Callable[[FeedParts], Feed]
    argument: str = ""
    """What follows the colon, in capitals; empty: nothing does."""
    pattern: str = "[a-z0-9_]+"
    """What the argument may look like."""
    extra: str = ""
    """The extra of `pip install openbell[…]` that it needs, and the module that comes with it."""
    module: str = ""
    options: tuple[Option, ...] = ()

    @property
    def shown(self) -> str:
        """How it is written in OPENBELL_FEED."""
        return f"{self.name}:{self.argument}" if self.argument else self.name

    def fits(self, feed: str) -> bool:
        """Whether a value of OPENBELL_FEED is this one."""
        wanted = re.escape(self.name) + (f":{self.pattern}" if self.argument else "")
        return re.fullmatch(wanted, feed) is not None
