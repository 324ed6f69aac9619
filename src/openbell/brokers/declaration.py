"""How a broker declares itself: its package defines BROKER, and desk, settings and documentation follow from that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openbell.feeds.declaration import Option

if TYPE_CHECKING:
    from openbell.trading.broker import Broker


@dataclass(frozen=True, slots=True)
class BrokerParts:
    """What a broker is made of."""

    settings: Mapping[str, Any]
    """Every setting by its name, the broker's own options among them."""
    environ: Mapping[str, str]
    """Where vendors' own variables are."""


@dataclass(frozen=True, slots=True)
class BrokerKind:
    """One broker."""

    name: str
    """As in OPENBELL_BROKER."""
    help: str
    make: Callable[[BrokerParts], Broker] | None
    """Makes the connection to it; None for paper, where the desk fills orders from its own bars."""
    live: Callable[[Mapping[str, Any]], bool] = lambda _settings: False
    """Whether orders move real money, under some settings."""
    options: tuple[Option, ...] = ()
