"""Request ids: every request has one, in `scope["state"]["request_id"]`, and its response repeats it as X-Request-ID."""

from __future__ import annotations

import re
import secrets
from itertools import count

from openbell.gateway.guard.headers import RequestHeaders

HEADER = b"x-request-id"
_GOOD = re.compile(rb"[A-Za-z0-9._-]{1,64}")


class RequestIds:
    """Takes the client's id if it is 1–64 letters, digits, dots, dashes or underscores; otherwise it makes one."""

    def __init__(self) -> None:
        self._numbers = count(1)
        # Ids are unique among processes. They are no secret, so a number is enough after that.
        self._prefix = secrets.token_hex(6).encode()

    def of(self, headers: RequestHeaders) -> bytes:
        """Returns the id of a request."""
        given = headers.all(HEADER)
        if len(given) == 1 and _GOOD.fullmatch(given[0]):
            return given[0]
        return b"%s-%x" % (self._prefix, next(self._numbers))
