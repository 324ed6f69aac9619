"""What answers are made of: the truth header's name and text, and the words that payloads carry as `data_source`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openbell.desk.desk import Desk

TRUTH = "openbell/truth"
"""Where the header stands in a result's `_meta`."""

_SOURCES = {
    "sim": "Openbell simulator (simulated data)",
    "replay": "Replay of stored bars",
    "none": "Imported bars",
    "alpaca": "Alpaca (live data)",
}


def data_source(desk: Desk) -> str:
    """Where the numbers come from, in words."""
    feed = desk.settings.feed
    return _SOURCES.get(feed) or f"{feed.removeprefix('ccxt:')} (live data)"


def truth_line(truth: Mapping[str, Any]) -> str:
    """The header as one line of text; what is not known is a dash."""
    return "truth: " + " ".join(f"{name}={'-' if value is None else value}" for name, value in truth.items())
