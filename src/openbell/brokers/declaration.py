"""How a broker declares itself: its package defines BROKER, which desk, settings and documentation read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openbell.feeds.declaration import Option

if TYPE_CHECKING:
    from openbell.trading.broker import Broker


@dataclass(frozen=True, slots=True)
class BrokerParts:
    """The settings and variables that a broker is created from."""

    settings: Mapping[str, Any]
    """All settings by name, including the broker's own options."""
    environ: Mapping[str, str]
    """Environment variables, including the vendors' own."""


@dataclass(frozen=True, slots=True)
class BrokerKind:
    """One broker."""

    name: str
    """Its value of OPENBELL_BROKER."""
    help: str
    make: Callable[[BrokerParts], Broker] | None
    """Makes the connection to it; None for paper, where the desk fills orders from its own bars."""
    live: Callable[[Mapping[str, Any]], bool] = lambda _settings: False
    """Returns True if orders move real money with the given settings."""
    options: tuple[Option, ...] = ()
    needs: str = ""
    """The variables to check if it cannot be reached."""
    paper_account: str = "its own paper account"
    """The account that is used unless `live`."""
    look_up_every: float = 3.0
    """Seconds between two lookups of a working order: brokers limit the number of requests."""
    look_up_most: int = 2
    """How many orders are looked up per second."""
