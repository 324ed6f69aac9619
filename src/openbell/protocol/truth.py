"""What answers are made of: the truth header's name and text, and the words that payloads carry as `data_source`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openbell.desk.desk import Desk
from openbell.feeds.registry import feed_of

TRUTH = "openbell/truth"
"""Where the header stands in a result's `_meta`."""


def data_source(desk: Desk) -> str:
    """Where the numbers come from, in words."""
    feed = desk.settings.feed
    return feed_of(feed).source.format(argument=feed.partition(":")[2])


def truth_line(truth: Mapping[str, Any]) -> str:
    """The header as one line of text; what is not known is a dash."""
    return "truth: " + " ".join(f"{name}={'-' if value is None else value}" for name, value in truth.items())
