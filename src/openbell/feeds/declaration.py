"""The declaration of a feed: its package defines FEED, which desk, settings, doctor and documentation read.

The declaration does not load the feed, because the settings are read first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openbell.market.provenance import Origin

if TYPE_CHECKING:
    from openbell.feeds.port import Feeds
    from openbell.market.clock import Clock
    from openbell.stores.port import BarStore
    from openbell.stores.threads import Threads


US_STOCKS = tuple(
    "SPY QQQ IWM AAPL MSFT GOOGL AMZN META NVDA TSLA BBAI RIOT NVDX SMR APLD SOUN SERV ACHR BITQ UEC".split()
)
"""US stocks and funds of the chart-signals contract."""
STOCKS_AND_CRYPTO = (*US_STOCKS, "BTC/USD", "ETH/USD")
"""The watchlist of the chart-signals contract, for feeds that have both."""


@dataclass(frozen=True, slots=True)
class Option:
    """A setting of one feed or broker: the variable OPENBELL_NAME, or the name in `openbell.toml`."""

    name: str
    default: str | bool
    help: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FeedParts:
    """What a feed is built from."""

    clock: Clock
    settings: Mapping[str, Any]
    """All settings by name, including the feed's own options."""
    environ: Mapping[str, str]
    """The environment variables, for those that a vendor defines."""
    store: Callable[[], BarStore]
    threads: Threads
    """The threads that read the store."""
    argument: str
    """The text after the colon in OPENBELL_FEED."""


@dataclass(frozen=True, slots=True)
class FeedKind:
    """The declaration of one feed."""

    name: str
    """The value of OPENBELL_FEED, without the colon and the argument."""
    origin: Origin
    """The kind of its data, in the truth header of results."""
    help: str
    source: str
    """The value of `data_source` in payloads; `{argument}` is replaced by the text after the colon."""
    make: Callable[[FeedParts], Feeds]
    argument: str = ""
    """The name of the argument after the colon, in capitals; empty if the feed has none."""
    pattern: str = "[a-z0-9_]+"
    """A regular expression for the argument."""
    extra: str = ""
    """The extra of `pip install openbell[…]` that the feed needs."""
    module: str = ""
    """A module that the extra installs, to check that it is there."""
    options: tuple[Option, ...] = ()
    watchlist: Callable[[str], tuple[str, ...]] | None = None
    """Returns the default watchlist, given the argument: symbols that the feed has. None stands for the stored symbols."""
    notice: str = ""
    """What users must know about the data, such as its delay and the vendor's terms: shown by doctor, in the instructions
    of servers and in the truth header."""

    @property
    def shown(self) -> str:
        """The value of OPENBELL_FEED with the argument's name: `ccxt:EXCHANGE`."""
        return f"{self.name}:{self.argument}" if self.argument else self.name

    def matches(self, feed: str) -> bool:
        """Returns True if this value of OPENBELL_FEED selects this feed."""
        wanted = re.escape(self.name) + (f":{self.pattern}" if self.argument else "")
        return re.fullmatch(wanted, feed) is not None
