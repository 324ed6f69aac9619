"""Finds the brokers: every package in brokers/ that defines BROKER."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from openbell import brokers
from openbell.brokers.declaration import BrokerKind


@cache
def all_brokers() -> dict[str, BrokerKind]:
    """All brokers by name."""
    packages = sorted(each.name for each in pkgutil.iter_modules(brokers.__path__) if each.ispkg)
    found: list[BrokerKind] = [importlib.import_module(f"{brokers.__name__}.{name}").BROKER for name in packages]
    return {kind.name: kind for kind in found}
