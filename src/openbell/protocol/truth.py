"""The truth header's key and text form, and the `data_source` of payloads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openbell.desk.desk import Desk
from openbell.feeds.registry import described
from openbell.market.instruments import Instrument

TRUTH = "openbell/truth"
"""The key of the header in a result's `_meta`."""


def data_source(desk: Desk, instrument: Instrument | None = None) -> str:
    """Returns the value of `data_source` in payloads: a description of the feed that delivers an instrument."""
    return described(desk.settings.feed, instrument)[1]


def truth_line(truth: Mapping[str, Any]) -> str:
    """Returns the header as one line of text; unknown values are dashes."""
    return "truth: " + " ".join(f"{name}={'-' if value is None else value}" for name, value in truth.items())
