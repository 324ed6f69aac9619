"""Conditional requests: whether a client has the current answer already."""

from __future__ import annotations

import re

_TAG = re.compile(r'\s*(?:W/)?("[\x21\x23-\x7e\x80-\xff]*")\s*(?:,|$)|\s*,')


def matches(condition: str, tag: str) -> bool:
    """Returns True if the value of If-None-Match has a tag: in a list, as a weak one, or as `*`.

    Tags are compared weakly, as RFC 9110 demands for this header. A value that is not a list of tags matches nothing.
    """
    if condition.strip() == "*":
        return True
    at, found = 0, False
    while at < len(condition):
        part = _TAG.match(condition, at)
        if part is None:
            return False
        found = found or part[1] == tag
        at = part.end()
    return found
