"""The truth header's key and text form, and the `data_source` of payloads."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from openbell.desk.desk import Desk
from openbell.feeds.registry import described
from openbell.market.instruments import Instrument
from openbell.market.provenance import TRUTH, Origin, Source

__all__ = ["TRUTH", "data_source", "origins", "truth_line"]


def data_source(desk: Desk, instrument: Instrument | None = None, sources: Collection[Source] = frozenset()) -> str:
    """Returns the value of `data_source` in payloads: a description of the sources of the bars.

    Without `sources`, or if the feed does not serve stored bars as they are, it describes the feed.
    """
    feed = described(desk.settings.feed, instrument)[1]
    if not sources or desk.data in {Origin.SIMULATED, Origin.REPLAY}:
        return feed
    own = desk.feed.route(instrument).source if instrument and desk.feed.supports(instrument) else None
    live = (each for each in sources if each.origin is Origin.LIVE)
    names = {feed if each == own else f"{each.feed.removeprefix('ccxt-')} (live data)" for each in live}
    imported = ["imported bars"] if any(each.origin is Origin.IMPORTED for each in sources) else []
    text = " and ".join([*sorted(names), *imported])
    return text[:1].upper() + text[1:] if not names else text


def origins(desk: Desk, sources: Collection[Source]) -> str:
    """Returns the kind of data of bars of some sources: `live`, `imported`, `imported+live`, …"""
    kind = desk.data
    if not sources or kind in {Origin.SIMULATED, Origin.REPLAY}:
        return kind
    return "+".join(sorted({str(each.origin) for each in sources}))


def truth_line(truth: Mapping[str, Any]) -> str:
    """Returns the header as one line of text; unknown values are dashes."""
    return "truth: " + " ".join(f"{name}={'-' if value is None else value}" for name, value in truth.items())
