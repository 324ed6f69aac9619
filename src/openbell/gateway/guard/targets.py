"""Request targets: a path that two programs could read in two ways is refused before it is routed."""

from __future__ import annotations

import re
from functools import lru_cache

from starlette.types import Scope

from openbell.gateway.guard.refusals import GuardRefusal

LONGEST = 8192
"""Bytes of a path and its query."""
_AMBIGUOUS = re.compile(
    rb"""//                        # empty segments
    | /\.{1,2}(?:[/;]|$)           # dot segments
    | %(?:2e|2f|5c|25|[01][0-9a-f]|7f)   # encoded dots, slashes, backslashes, percent signs and control characters
    | %(?![0-9a-f]{2})             # incomplete encodings
    | [^!-~] | \\                  # anything but visible ASCII
    """,
    re.IGNORECASE | re.VERBOSE,
)
_TOO_LONG = GuardRefusal(414, "target_too_long", f"The path and the query may have {LONGEST:,} bytes together.")
_NOT_A_PATH = GuardRefusal(400, "bad_target", "The request target must be a path, such as /mcp, not a whole address.")
_UNCLEAR = GuardRefusal(
    400, "bad_target", "The path must not have empty or dot segments, backslashes, control characters or %2F."
)


def target_refusal(scope: Scope) -> GuardRefusal | None:
    """Returns why the path of a request is refused; None if it is not."""
    path: bytes = scope["raw_path"]
    if len(path) + len(scope["query_string"]) > LONGEST:
        return _TOO_LONG
    if path[:1] != b"/":
        return _NOT_A_PATH
    return _UNCLEAR if _is_unclear(path) else None


@lru_cache(maxsize=64)  # clients use few paths
def _is_unclear(path: bytes) -> bool:
    return _AMBIGUOUS.search(path) is not None
