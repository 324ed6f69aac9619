"""Accounts: the owner, the starting cash, and the check of who may use one."""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256

from openbell.market.errors import OpenbellError, Refused

PAPER = "paper"
"""The broker that paper accounts name."""


class AccountNotFound(OpenbellError):
    """There is no such account."""


class Unauthorized(Refused):
    """The account belongs to another principal, or its token is missing or wrong."""


@dataclass(frozen=True, slots=True)
class Account:
    """One account. Its book starts with `cash`; fills change it from there."""

    name: str
    broker: str
    owner: str
    """The principal that owns it."""
    cash: Decimal
    token: str | None
    """The hash of the token that a caller must pass; None if no token is needed."""
    created_at: float

    def admit(self, principal: str, token: str) -> None:
        """Raise `Unauthorized` unless this principal, with this token, may use the account."""
        if principal != self.owner:
            raise Unauthorized(f"the account {self.name} belongs to somebody else", account=self.name)
        if self.token is not None and not hmac.compare_digest(self.token, hashed(token)):
            wrong = "is not its token" if token else "is not set"
            raise Unauthorized(
                f"the account {self.name} needs its token, and OPENBELL_ACCOUNT_TOKEN {wrong}; "
                f"openbell account token {self.name} makes a new one",
                account=self.name,
            )


def slug(principal: str) -> str:
    """Returns a short, plain text for a principal, for use in ids and names; different principals have different ones."""
    plain = re.sub(r"[^a-z0-9]", "", principal.lower())[:16]
    return plain if plain == principal else f"{plain}{sha256(principal.encode()).hexdigest()[:8]}"


def hashed(token: str) -> str:
    """Returns the hash of a token that is stored. Tokens are long and random, so an unsalted hash is safe."""
    return sha256(token.encode()).hexdigest()


def new_token() -> str:
    """Returns a new random token."""
    return f"ob_{secrets.token_urlsafe(32)}"
