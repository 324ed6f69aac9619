"""Accounts: whose money it is, and who may touch it."""

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
    """The account is another's, or its token was not given."""


@dataclass(frozen=True, slots=True)
class Account:
    """One account: its book begins with `cash`, the rest is fills."""

    name: str
    broker: str
    owner: str
    """The principal whose it is."""
    cash: Decimal
    token: str | None
    """The hash of what a caller must know; None: nothing."""
    created_at: float

    def admit(self, principal: str, token: str) -> None:
        """Raise `Unauthorized` unless this principal, with this token, may use the account."""
        known = self.token is None or hmac.compare_digest(self.token, hashed(token))
        if principal != self.owner or not known:
            raise Unauthorized(f"not authorized to use the account {self.name}", account=self.name)


def slug(principal: str) -> str:
    """Returns a short, plain text for a principal, for use in ids and names; different principals have different ones."""
    plain = re.sub(r"[^a-z0-9]", "", principal.lower())[:16]
    return plain if plain == principal else f"{plain}{sha256(principal.encode()).hexdigest()[:8]}"


def hashed(token: str) -> str:
    """What is kept of a token: it is random and long, so a plain hash gives nothing away."""
    return sha256(token.encode()).hexdigest()


def new_token() -> str:
    """A token that nobody guesses."""
    return f"ob_{secrets.token_urlsafe(32)}"
