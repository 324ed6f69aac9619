"""The headers of a request by name, read in one pass for all checks."""

from __future__ import annotations

from itertools import chain

from starlette.types import Scope

_KEY = "openbell.headers"


class RequestHeaders:
    """The headers of one request. Names are in lower case."""

    __slots__ = ("_first", "has_repeats", "pairs")

    def __init__(self, pairs: list[tuple[bytes, bytes]]) -> None:
        self.pairs = pairs
        """All headers in their order."""
        self._first = dict(pairs)
        self.has_repeats = len(self._first) != len(pairs)
        """True if a name is given more than once."""
        if self.has_repeats:
            self._first = dict(reversed(pairs))

    def __contains__(self, name: bytes) -> bool:
        return name in self._first

    def first(self, name: bytes) -> bytes | None:
        """Returns the first value of a name without white space around it; None if there is none."""
        found = self._first.get(name)
        return None if found is None else found.strip()

    def text(self, name: bytes) -> str | None:
        """Returns the first value of a name as text; None if there is none."""
        found = self._first.get(name)
        return None if found is None else found.strip().decode("latin-1")

    def all(self, name: bytes) -> list[bytes]:
        """Returns the values of a name as they were sent."""
        if self.has_repeats:
            return [value for each, value in self.pairs if each == name]
        found = self._first.get(name)
        return [] if found is None else [found]

    @property
    def size(self) -> int:
        """The bytes of all names and values."""
        return len(b"".join(chain.from_iterable(self.pairs)))


def headers_of(scope: Scope) -> RequestHeaders:
    """Returns the headers of a request. The first call reads them, and later ones return the same value."""
    found: RequestHeaders | None = scope.get(_KEY)
    if found is None or found.pairs is not scope["headers"]:
        found = scope[_KEY] = RequestHeaders(scope["headers"])
    return found
