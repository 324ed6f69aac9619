"""What stands between a request and the protocol: the principal of its token."""

from __future__ import annotations

from typing import Protocol

from openbell.protocol.session import Principal


class Credentials(Protocol):
    """Knows which principal a token stands for."""

    async def principal(self, token: str, resource: str) -> Principal | None:
        """Returns the principal of a token that is valid now for a resource (the URL of an endpoint); None if it is not."""


class AnyOf:
    """Tokens of several kinds."""

    def __init__(self, *kinds: Credentials) -> None:
        self._kinds = kinds

    async def principal(self, token: str, resource: str) -> Principal | None:
        """See `Credentials`."""
        for kind in self._kinds:
            if (found := await kind.principal(token, resource)) is not None:
                return found
        return None
