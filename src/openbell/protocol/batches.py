"""Batches, several messages sent as one JSON array: which are served, on every transport."""

from __future__ import annotations

from typing import Any

REVISION = "2025-03-26"
"""The only revision of the protocol that has batches."""
MOST_MESSAGES = 50


def wrong(messages: list[Any], revision: str) -> str | None:
    """Returns why a batch of a client that has negotiated `revision` is refused; None if it is served."""
    if revision != REVISION:
        return "Invalid Request: batches are not supported, send one message"
    if not messages:
        return "Invalid Request: an empty batch"
    if len(messages) > MOST_MESSAGES:
        return f"Invalid Request: a batch of {len(messages)} messages; the most is {MOST_MESSAGES}"
    requests = [each for each in messages if isinstance(each, dict) and "method" in each]
    if any(each["method"] == "initialize" for each in requests):
        return "Invalid Request: initialize cannot be part of a batch"
    ids = [(type(each["id"]), str(each["id"])) for each in requests if "id" in each]
    if len(set(ids)) != len(ids):
        return "Invalid Request: two requests of the batch have the same id"
    return None
