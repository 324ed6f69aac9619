"""Finds the brokers: every package in brokers/ defines BROKER, which desk, settings and documentation read."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from openbell import brokers
from openbell.feeds.registry import Option

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


@cache
def all_brokers() -> dict[str, BrokerKind]:
    """All brokers by name."""
    packages = sorted(each.name for each in pkgutil.iter_modules(brokers.__path__) if each.ispkg)
    found: list[BrokerKind] = [importlib.import_module(f"{brokers.__name__}.{name}").BROKER for name in packages]
    return {kind.name: kind for kind in found}
